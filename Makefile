.PHONY: test lint bench bench-quick

# the tests of the README, in the environment that is active
test:
	pytest -n 2 --dist loadfile -m "not slow and not wheel"

lint:
	ruff check .
	ruff format --check .
	mypy
	lint-imports
	mrag-eval tasks --check

bench:
	python -m benchmarks -o bench.json

bench-quick:
	python -m benchmarks --quick
