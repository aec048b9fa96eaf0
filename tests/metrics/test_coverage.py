"""95 % intervals contain the true value in 93-97 % of samples: binomial, skewed and clustered data, by simulation."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

SIMULATIONS = 2000


def load() -> ModuleType:
    """Return the benchmark that prints the table, so that both use the same populations."""
    path = Path(__file__).parents[2] / "benchmarks" / "coverage.py"
    spec = importlib.util.spec_from_file_location("coverage_cases", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    module.RESAMPLES = 500
    return module


COVERAGE = load()
LARGE = [case for case in COVERAGE.cases() if case.large]


@pytest.mark.slow
@pytest.mark.parametrize("case", LARGE, ids=lambda case: case.name)
def test_coverage(case: object) -> None:
    coverage, _, _ = COVERAGE.simulate(case, SIMULATIONS, np.random.default_rng(1))
    assert 0.93 <= coverage <= 0.97


@pytest.mark.parametrize("n", [200, 400, 1000])
@pytest.mark.parametrize("share", [0.05, 0.1, 0.3, 0.5])
def test_coverage_of_shares_without_chance(n: int, share: float) -> None:
    """Every outcome of a binomial count can be listed, so the coverage is a sum without simulation error."""
    from scipy.stats import binom

    from mrag_eval.metrics import wilson

    intervals = [wilson(successes, n) for successes in range(n + 1)]
    held = [k for k, e in enumerate(intervals) if e.low is not None and e.high is not None and e.low <= share <= e.high]
    assert 0.93 <= binom.pmf(held, n, share).sum() <= 0.97


def test_the_cases_include_every_kind_of_data() -> None:
    kinds = ("share of", "exponential, n", "beta", "recall", "normal", "0/1", "exponential, 50", "macro", "paired")
    assert all(any(case.name.startswith(kind) for case in LARGE) for kind in kinds)


def test_an_interval_that_ignores_the_clusters_would_be_caught() -> None:
    from mrag_eval.metrics import bootstrap_mean

    def blind(rng: np.random.Generator) -> object:
        values = np.repeat(rng.normal(size=50), 4) + rng.normal(scale=0.3, size=200)
        return bootstrap_mean(values, n_resamples=200, seed=rng)

    coverage, _, _ = COVERAGE.simulate(COVERAGE.Case("blind", 0.0, blind, True), 200, np.random.default_rng(1))
    assert coverage < 0.85
