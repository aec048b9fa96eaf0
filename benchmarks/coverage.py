"""Simulate how often the 95 % intervals contain the true value.

    python benchmarks/coverage.py                 4,000 simulations a row
    python benchmarks/coverage.py --quick         100, for a smoke test
    python benchmarks/coverage.py --small         only few, equal or extreme rows

    python benchmarks/coverage.py --against OLD   beside the same table by the source tree of another version

Prints one line per case: the population, its size, the coverage with its simulation error, the mean width, the share of
samples that have an interval (coverage and width are theirs), and the interval's method. Large cases (200 rows or more,
50 clusters or more) should be within 93 % and 97 %; small ones show what an interval from so little data is worth, and
some are held to 93 % or more.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from _coverage_small import small_cases
from _simulate import AT_LEAST, LARGE, RESAMPLES, Case, Simulated, simulate

from mrag_eval.metrics import (
    Estimate,
    PairedCell,
    interval_for,
    paired_tests,
    stratified_bootstrap,
    wilson,
)


def proportion(n: int, p: float) -> Case:
    # Near 0 the counts jump and the true coverage is close to 97 %, within the simulation's error of it, so the test
    # sums over all outcomes instead.
    held = LARGE if n >= 200 and n * p * (1 - p) >= 20 else None
    return Case(f"share of {p:g}, n = {n}", p, lambda rng: wilson(int(rng.binomial(n, p)), n), held)


def rows(name: str, n: int, truth: float, sample: Callable[[np.random.Generator, int], np.ndarray]) -> Case:
    def draw(rng: np.random.Generator) -> Estimate:
        return interval_for(sample(rng, n), kind="bootstrap", n_resamples=RESAMPLES, seed=rng)

    return Case(f"{name}, n = {n}", truth, draw, LARGE if n >= 200 else None)


def one_to_seven(rng: np.random.Generator, count: int) -> np.ndarray:
    return rng.integers(1, 8, size=count)


def six(rng: np.random.Generator, count: int) -> np.ndarray:
    return np.full(count, 6)


def one_third(rng: np.random.Generator, count: int) -> np.ndarray:
    """Return sizes of which the first is a third of all rows."""
    return np.r_[3 * (count - 1), np.full(count - 1, 6)]


def clusters(
    name: str,
    count: int,
    truth: float,
    effect: Callable[[np.random.Generator, int], np.ndarray],
    observe: Callable[[np.random.Generator, np.ndarray], np.ndarray],
    sizes: Callable[[np.random.Generator, int], np.ndarray] = one_to_seven,
    held: tuple[float, float] | None = None,
) -> Case:
    """Draw ``count`` clusters; every row of a cluster shares its effect. 50 or more of 1-7 rows are a large case."""

    def draw(rng: np.random.Generator) -> Estimate:
        groups = np.repeat(np.arange(count), sizes(rng, count))
        values = observe(rng, effect(rng, count)[groups])
        return interval_for(values, groups=groups.tolist(), kind="cluster", n_resamples=RESAMPLES, seed=rng, **within)

    within: dict[str, Any] = {"bounds": (0.0, 1.0)} if observe is zero_one_rows else {}
    shape = {one_to_seven: "of 1-7", six: "of 6", one_third: "of 6, one of a third of the rows"}[sizes]
    large = count >= 50 and sizes is one_to_seven
    return Case(f"{name}, {count} clusters {shape}", truth, draw, LARGE if large else held)


def normal_rows(rng: np.random.Generator, effects: np.ndarray) -> np.ndarray:
    return effects + rng.normal(size=len(effects))


def zero_one_rows(rng: np.random.Generator, effects: np.ndarray) -> np.ndarray:
    return (rng.random(len(effects)) < effects).astype(float)


def macro(sizes: tuple[int, ...], means: tuple[float, ...]) -> Case:
    cells = np.repeat(np.arange(len(sizes)), sizes)

    def draw(rng: np.random.Generator) -> Estimate:
        values = (rng.random(len(cells)) < np.array(means)[cells]).astype(float)
        return stratified_bootstrap(values, cells.tolist(), n_resamples=RESAMPLES, seed=rng)

    return Case(
        f"macro mean, cells of {', '.join(map(str, sizes))}",
        sum(means) / len(means),
        draw,
        LARGE if sum(sizes) >= 200 else None,
    )


def paired(n: int) -> Case:
    def draw(rng: np.random.Generator) -> Estimate:
        kind = rng.choice(3, size=n, p=[0.13, 0.07, 0.8])
        lost, gained = ((kind == k).astype(float).tolist() for k in range(2))
        (found,) = paired_tests([PairedCell(lost, gained)], n_resamples=RESAMPLES)
        return Estimate(found.difference, found.low, found.high, n)

    return Case(f"paired difference of 0/1, n = {n}", 0.06, draw, LARGE if n >= 200 else None)


def cases() -> list[Case]:
    exponential = [rows("exponential", n, 1.0, lambda rng, n: rng.exponential(size=n)) for n in (10, 20, 50, 200)]
    beta = [rows("beta(0.3, 1.2)", n, 0.2, lambda rng, n: rng.beta(0.3, 1.2, size=n)) for n in (20, 50, 200)]
    recall = [
        rows("recall in thirds", n, 0.7, lambda rng, n: rng.choice(4, size=n, p=[0.2, 0.1, 0.1, 0.6]) / 3)
        for n in (20, 200)
    ]

    def normal(rng: np.random.Generator, count: int) -> np.ndarray:
        return rng.normal(size=count)

    def beta_shares(a: float, b: float) -> Callable[[np.random.Generator, int], np.ndarray]:
        return lambda rng, count: rng.beta(a, b, size=count)

    symmetric = [
        clusters(name, count, truth, effect, observe, sizes, AT_LEAST if count >= 10 else None)
        for name, truth, effect, observe in (
            ("normal", 0.0, normal, normal_rows),
            ("0/1 of mean 0.5", 0.5, beta_shares(1, 1), zero_one_rows),
        )
        for sizes in (six, one_to_seven, one_third)
        for count in (5, 10, 20, 50)
    ]
    shares = [
        *(clusters("0/1 of mean 0.25", count, 0.25, beta_shares(1, 3), zero_one_rows) for count in (10, 20, 50, 250)),
        *(
            clusters("0/1 of mean 0.9", count, 0.9, beta_shares(1.8, 0.2), zero_one_rows, sizes)
            for sizes in (six, one_third)
            for count in (10, 20, 50)
        ),
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
        *symmetric,
        *shares,
        *skewed,
        macro((20, 10), (0.3, 0.7)),
        macro((80, 60, 40, 40), (0.9, 0.6, 0.5, 0.2)),
        paired(50),
        paired(300),
    ]


def report(chosen: Sequence[Case], simulations: int, seed: int) -> Iterator[tuple[Case, Simulated]]:
    """Yield each case with what its intervals are worth, from the same draws however many cases there are."""
    for i, case in enumerate(chosen):
        yield case, simulate(case, simulations, np.random.default_rng([seed, i]))


def other(folder: Path, arguments: Sequence[str]) -> dict[str, Simulated]:
    """Return the same table by the version of the package in ``folder``."""
    command = [sys.executable, __file__, *arguments, "--json"]
    path = os.pathsep.join([str(folder.resolve()), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=environment)
    return {name: Simulated(*found) for name, found in json.loads(done.stdout).items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="100 simulations, to see that it runs")
    parser.add_argument("--simulations", type=int, default=4000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--small", action="store_true", help="only the cases of few, equal or extreme rows")
    parser.add_argument("--against", type=Path, metavar="FOLDER", help="another version's source tree, to print beside")
    parser.add_argument("--json", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    simulations = 100 if options.quick else options.simulations
    chosen = small_cases() if options.small else [*cases(), *small_cases()]
    if options.json:
        print(json.dumps({case.name: tuple(found) for case, found in report(chosen, simulations, options.seed)}))
        return
    arguments = [
        "--simulations",
        str(simulations),
        "--seed",
        str(options.seed),
        *(["--small"] if options.small else []),
    ]
    before = other(options.against, arguments) if options.against else {}
    head = f"{'case':<62} {'coverage':>8} {'+-':>4} {'width':>6} {'given':>6}  {'held to':<8} {'':<7}"
    print(head + (f" {'before':>8} {'width':>6} {'given':>6}" if before else "") + "  interval")
    for case, found in report(chosen, simulations, options.seed):
        held = "" if case.held is None else f"{100 * case.held[0]:.0f}-{100 * case.held[1]:.0f}"
        inside = case.held is None or not found.given or case.held[0] <= found.coverage <= case.held[1]
        line = f"{case.name:<62} {_shown(found)[:8]} {100 * found.error(simulations):4.1f} {_shown(found)[9:]}"
        line += f"  {held:<8} {'' if inside else 'OUTSIDE':<7}"
        line += f" {_shown(before[case.name])}" if before else ""
        print(f"{line}  {found.method}", flush=True)


def _shown(found: Simulated) -> str:
    coverage = f"{100 * found.coverage:8.1f}" if found.given else f"{'-':>8}"
    return f"{coverage} {found.width:6.3f} {100 * found.given:5.0f}%"


if __name__ == "__main__":
    main()
