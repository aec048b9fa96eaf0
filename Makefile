.PHONY: bench bench-quick

bench:
	mrag-eval bench -o bench.json

bench-quick:
	mrag-eval bench --quick
