.PHONY: bench bench-quick

bench:
	python -m benchmarks -o bench.json

bench-quick:
	python -m benchmarks --quick
