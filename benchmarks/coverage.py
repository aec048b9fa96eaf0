"""Simulate how often the 95 % intervals contain the true value.

    python benchmarks/coverage.py                 4,000 simulations a row
    python benchmarks/coverage.py --quick         100, for a smoke test

Prints one line per case: the population, its size, the interval's method, the coverage with its simulation error, and
the mean width. Large cases (200 rows or more, 50 clusters or more) should be within 93 % and 97 %; small ones show what
an interval from so little data is worth.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mrag_eval.metrics import (
    Estimate,
    cluster_bootstrap,
    interval_for,
    paired_difference,
    stratified_bootstrap,
    wilson,
)

RESAMPLES = 1000
Draw = Callable[[np.random.Generator], Estimate]


@dataclass(frozen=True)
class Case:
    """A population with a known mean, and an interval from one sample of it. ``large`` cases must be within 93-97 %."""

    name: str
    truth: float
    draw: Draw
    large: bool


def proportion(n: int, p: float) -> Case:
    # Near 0 the counts jump and the true coverage is close to 97 %, within the simulation's error of it, so the test
    # sums over all outcomes instead.
    large = n >= 200 and n * p * (1 - p) >= 20
    return Case(f"share of {p:g}, n = {n}", p, lambda rng: wilson(int(rng.binomial(n, p)), n), large)


def rows(name: str, n: int, truth: float, sample: Callable[[np.random.Generator, int], np.ndarray]) -> Case:
    def draw(rng: np.random.Generator) -> Estimate:
        return interval_for(sample(rng, n), kind="bootstrap", n_resamples=RESAMPLES, seed=rng)

    return Case(f"{name}, n = {n}", truth, draw, n >= 200)


def clusters(
    name: str,
    count: int,
    truth: float,
    effect: Callable[[np.random.Generator, int], np.ndarray],
    observe: Callable[[np.random.Generator, np.ndarray], np.ndarray],
) -> Case:
    """Draw ``count`` clusters of 1 to 7 rows; every row of a cluster shares its effect."""

    def draw(rng: np.random.Generator) -> Estimate:
        groups = np.repeat(np.arange(count), rng.integers(1, 8, size=count))
        values = observe(rng, effect(rng, count)[groups])
        return cluster_bootstrap(values, groups.tolist(), n_resamples=RESAMPLES, seed=rng)

    return Case(f"{name}, {count} clusters of 1-7", truth, draw, count >= 50)


def normal_rows(rng: np.random.Generator, effects: np.ndarray) -> np.ndarray:
    return effects + rng.normal(size=len(effects))


def zero_one_rows(rng: np.random.Generator, effects: np.ndarray) -> np.ndarray:
    return (rng.random(len(effects)) < effects).astype(float)


def macro(sizes: tuple[int, ...], means: tuple[float, ...]) -> Case:
    cells = np.repeat(np.arange(len(sizes)), sizes)

    def draw(rng: np.random.Generator) -> Estimate:
        values = (rng.random(len(cells)) < np.array(means)[cells]).astype(float)
        return stratified_bootstrap(values, cells.tolist(), n_resamples=RESAMPLES, seed=rng)

    return Case(f"macro mean, cells of {', '.join(map(str, sizes))}", sum(means) / len(means), draw, sum(sizes) >= 200)


def paired(n: int) -> Case:
    def draw(rng: np.random.Generator) -> Estimate:
        kind = rng.choice(3, size=n, p=[0.13, 0.07, 0.8])
        return paired_difference((kind == 0).astype(float), (kind == 1).astype(float), n_resamples=RESAMPLES, seed=rng)

    return Case(f"paired difference of 0/1, n = {n}", 0.06, draw, n >= 200)


def cases() -> list[Case]:
    exponential = [rows("exponential", n, 1.0, lambda rng, n: rng.exponential(size=n)) for n in (10, 20, 50, 200)]
    beta = [rows("beta(0.3, 1.2)", n, 0.2, lambda rng, n: rng.beta(0.3, 1.2, size=n)) for n in (20, 50, 200)]
    recall = [
        rows("recall in thirds", n, 0.7, lambda rng, n: rng.choice(4, size=n, p=[0.2, 0.1, 0.1, 0.6]) / 3)
        for n in (20, 200)
    ]
    normal = [
        clusters("normal", count, 0.0, lambda rng, size: rng.normal(size=size), normal_rows)
        for count in (5, 10, 20, 50)
    ]
    shares = [
        clusters("0/1", count, 0.25, lambda rng, size: rng.beta(1, 3, size=size), zero_one_rows)
        for count in (10, 20, 50, 250)
    ]
    skewed = [
        clusters("exponential", count, 1.0, lambda rng, size: rng.exponential(size=size), normal_rows)
        for count in (5, 10, 20, 50, 100)
    ]
    return [
        *(proportion(n, p) for n in (10, 50, 200, 1000) for p in (0.05, 0.3, 0.5)),
        *exponential,
        *beta,
        *recall,
        *normal,
        *shares,
        *skewed,
        macro((20, 10), (0.3, 0.7)),
        macro((80, 60, 40, 40), (0.9, 0.6, 0.5, 0.2)),
        paired(50),
        paired(300),
    ]


def simulate(case: Case, simulations: int, rng: np.random.Generator) -> tuple[float, float, str]:
    """Return coverage, mean width and the interval's method. A sample without an interval covers nothing."""
    hits, width, method = 0, 0.0, ""
    for _ in range(simulations):
        found = case.draw(rng)
        method = found.method
        if found.low is not None and found.high is not None:
            hits += found.low <= case.truth <= found.high
            width += found.high - found.low
    return hits / simulations, width / simulations, method


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="100 simulations, to see that it runs")
    parser.add_argument("--simulations", type=int, default=4000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    simulations = 100 if options.quick else options.simulations
    rng = np.random.default_rng(options.seed)
    print(f"{'case':<44} {'interval':<32} {'coverage':>8} {'+-':>5} {'width':>7}  held to 93-97 %")
    for case in cases():
        coverage, width, method = simulate(case, simulations, rng)
        error = 1.96 * math.sqrt(coverage * (1 - coverage) / simulations)
        verdict = "" if not case.large else "yes" if 0.93 <= coverage <= 0.97 else "OUTSIDE"
        print(
            f"{case.name:<44} {method:<32} {100 * coverage:8.1f} {100 * error:5.1f} {width:7.3f}  {verdict}", flush=True
        )


if __name__ == "__main__":
    main()
