"""95 % intervals contain the true value in 93-97 % of samples, within the error of the simulation."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

SIMULATIONS = 1000


def load() -> ModuleType:
    """Return the benchmark that prints the table, so that both use the same populations."""
    path = Path(__file__).parents[2] / "benchmarks" / "coverage.py"
    sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location("coverage_cases", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(path.parent))
    module.RESAMPLES = 500
    return module


COVERAGE = load()
LARGE = [case for case in COVERAGE.cases() if case.held == COVERAGE.LARGE]
SMALL = [case for case in (*COVERAGE.cases(), *COVERAGE.small_cases()) if case.held == COVERAGE.AT_LEAST]


@pytest.mark.slow
@pytest.mark.parametrize("case", LARGE, ids=lambda case: case.name)
def test_coverage(case: Any) -> None:
    found = COVERAGE.simulate(case, SIMULATIONS, np.random.default_rng(1))
    error = found.error(SIMULATIONS)
    assert 0.93 - error <= found.coverage <= 0.97 + error


@pytest.mark.slow
@pytest.mark.parametrize("case", SMALL, ids=lambda case: case.name)
def test_coverage_of_few_or_equal_rows(case: Any) -> None:
    found = COVERAGE.simulate(case, SIMULATIONS // 2, np.random.default_rng(1))
    if "x 1 rows" in case.name:
        assert found.given == 0
    else:
        enough = found.coverage + found.error(SIMULATIONS // 2) >= 0.93
        assert (enough, found.given > 0.6) == (True, True)


def test_intervals_of_macro_means_with_small_languages_hold() -> None:
    """Taking no width from languages that are all right held a third of the true values."""
    case = next(case for case in SMALL if case.name == "macro mean of 0.98, 1 x 500 + 4 x 5 rows")
    assert COVERAGE.simulate(case, 200, np.random.default_rng(1)).coverage >= 0.9


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

    case = COVERAGE.Case("blind", 0.0, blind)
    assert COVERAGE.simulate(case, 200, np.random.default_rng(1)).coverage < 0.85
