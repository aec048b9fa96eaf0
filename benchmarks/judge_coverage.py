"""Simulate how often the intervals of corrected judges contain the rate that people would have found.

    python benchmarks/judge_coverage.py                 2,000 simulations a row
    python benchmarks/judge_coverage.py --quick         100, for a smoke test

Prints one line per case: the true rate, the judge's sensitivity and specificity, the labelled rows, and for both
estimators the coverage of the samples that have an interval, its mean width, and the share of samples without one. For
comparison, the coverage of the judge's own rate (Wilson) is printed.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import numpy as np

from mrag_eval.metrics import Estimate, corrected_rate, wilson


@dataclass(frozen=True)
class Case:
    """A true rate, a judge, and a labelled draw. ``size`` rows share a group, and its difficulty."""

    rate: float
    sensitivity: float
    specificity: float
    labels: int
    rows: int = 600
    size: int = 1
    languages: tuple[float, ...] = ()

    @property
    def name(self) -> str:
        more = f", groups of {self.size}" if self.size > 1 else ""
        more += f", {len(self.languages)} languages" if self.languages else ""
        return f"{self.rate:g}, judge {self.sensitivity:g}/{self.specificity:g}, {self.labels} of {self.rows}{more}"

    def draw(self, rng: np.random.Generator) -> tuple[Estimate, Estimate, Estimate]:
        """Return the judge's rate and both corrected ones, from one sample of the population."""
        languages = np.sort(rng.permutation(self.rows) % 6 // 5) if self.languages else np.zeros(self.rows, dtype=int)
        means = np.array(self.languages or (self.rate,))[languages]
        groups = np.arange(self.rows) // self.size
        if self.size > 1:
            means = rng.beta(2 * self.rate, 2 * (1 - self.rate), size=groups[-1] + 1)[groups]
        people = rng.random(self.rows) < means
        verdicts = np.where(people, rng.random(self.rows) < self.sensitivity, rng.random(self.rows) > self.specificity)
        labels: list[float | None] = [None] * self.rows
        count = len(self.languages) or 1
        for language in range(count):
            # every language gives the same number, although one has five times the rows of the other
            for row in rng.permutation(np.flatnonzero(languages == language))[: self.labels // count]:
                labels[row] = float(people[row])
        found = corrected_rate(
            verdicts.astype(float).tolist(), labels, strata=languages.tolist(), groups=groups.tolist()
        )
        return wilson(int(verdicts.sum()), self.rows), found.prediction_powered, found.rogan_gladen

    @property
    def truth(self) -> float:
        return (5 * self.languages[0] + self.languages[1]) / 6 if self.languages else self.rate


def cases() -> list[Case]:
    plain = [Case(0.7, 0.9, 0.8, labels) for labels in (20, 50, 100, 200)]
    lenient = [Case(0.5, 0.97, 0.75, labels) for labels in (20, 50, 100)]
    easy = [Case(0.9, 0.95, 0.7, labels) for labels in (50, 100)]
    grouped = [Case(0.7, 0.9, 0.8, labels, size=4) for labels in (50, 100)]
    return [*plain, *lenient, *easy, *grouped, Case(0.75, 0.9, 0.8, 100, languages=(0.8, 0.5))]


def simulate(case: Case, simulations: int, rng: np.random.Generator) -> list[tuple[float, float, float]]:
    """Return coverage, mean width and the share without an interval: of the judge, PPI++ and Rogan-Gladen."""
    hits, widths, held = np.zeros(3), np.zeros(3), np.zeros(3)
    for _ in range(simulations):
        for i, found in enumerate(case.draw(rng)):
            if found.low is not None and found.high is not None:
                held[i] += 1
                hits[i] += found.low <= case.truth <= found.high
                widths[i] += found.high - found.low
    some = np.maximum(held, 1)
    return list(zip(hits / some, widths / some, 1 - held / simulations, strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="100 simulations, to see that it runs")
    parser.add_argument("--simulations", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    simulations = 100 if options.quick else options.simulations
    heads = "".join(f"{name:>9} {'width':>6} {'none':>5}" for name in ("PPI++", "R-G"))
    print(f"{'rate, judge, labels':<46} {'judge':>6}{heads}")
    for i, case in enumerate(cases()):
        own, powered, gladen = simulate(case, simulations, np.random.default_rng([options.seed, i]))
        both = "  ".join(f"{100 * hit:7.1f} {width:6.3f} {100 * none:5.1f}" for hit, width, none in (powered, gladen))
        print(f"{case.name:<46} {100 * own[0]:6.1f}  {both}", flush=True)


if __name__ == "__main__":
    main()
