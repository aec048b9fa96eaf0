"""Simulate how often the intervals of corrected judges contain the rate that people would have found.

    python benchmarks/judge_coverage.py                 2,000 simulations a row
    python benchmarks/judge_coverage.py --quick         100, for a smoke test
    python benchmarks/judge_coverage.py --one-sided     judges that err to one side, by the counts of single rows

Prints one line per case: the true rate, the judge's sensitivity and specificity, the labelled rows, and for both
estimators the coverage of the samples that have an interval, its mean width, and the share of samples without one. For
comparison, the coverage of the judge's own rate (Wilson) is printed.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from mrag_eval.core import pipe_table
from mrag_eval.metrics import Estimate, corrected_rate, wilson
from mrag_eval.metrics._judge_correction import _UNSEEN


@dataclass(frozen=True)
class Case:
    """A true rate, a judge, and a labelled draw. ``size`` rows share a group, and its difficulty.

    ``languages`` have (rows, rate, labels) each, instead of ``rate``, ``labels`` and ``rows``.
    """

    rate: float
    sensitivity: float
    specificity: float
    labels: int
    rows: int = 600
    size: int = 1
    languages: tuple[tuple[int, float, int], ...] = ()

    @property
    def name(self) -> str:
        judge = f"judge {self.sensitivity:g}/{self.specificity:g}"
        if self.languages:
            counts = Counter(self.languages)
            parts = (f"{n} x {x[1]:g}: {x[2]} of {x[0]:,}".removeprefix("1 x ") for x, n in counts.items())
            return f"{judge}, {' + '.join(parts)}"
        return f"{self.rate:g}, {judge}, {self.labels} of {self.rows}" + (
            f", groups of {self.size}" if self.size > 1 else ""
        )

    def draw(self, rng: np.random.Generator) -> tuple[Estimate, Estimate, Estimate]:
        """Return the judge's rate and both corrected ones, from one sample of the population."""
        parts = self.languages or ((self.rows, self.rate, self.labels),)
        languages = np.repeat(np.arange(len(parts)), [rows for rows, _, _ in parts])
        means = np.array([rate for _, rate, _ in parts])[languages]
        groups = np.arange(len(languages)) // self.size
        if self.size > 1:
            means = rng.beta(2 * self.rate, 2 * (1 - self.rate), size=groups[-1] + 1)[groups]
        people = rng.random(len(languages)) < means
        right, wrong = (rng.random(len(languages)) < share for share in (self.sensitivity, self.specificity))
        verdicts = np.where(people, right, ~wrong)
        labels: list[float | None] = [None] * len(languages)
        for language, (_, _, count) in enumerate(parts):
            for row in rng.permutation(np.flatnonzero(languages == language))[:count]:
                labels[row] = float(people[row])
        found = corrected_rate(
            verdicts.astype(float).tolist(), labels, strata=languages.tolist(), groups=groups.tolist()
        )
        return wilson(int(verdicts.sum()), len(languages)), found.prediction_powered, found.rogan_gladen

    @property
    def truth(self) -> float:
        if not self.languages:
            return self.rate
        return sum(rows * rate for rows, rate, _ in self.languages) / sum(rows for rows, _, _ in self.languages)


def uneven(large: tuple[float, int], small: tuple[float, int]) -> Case:
    """Return a language of 2,000 rows and nine of 100, with (rate, labels) of the one and of each of the nine."""
    return Case(0, 0.9, 0.8, 0, languages=((2000, *large), *[(100, *small)] * 9))


def cases() -> list[Case]:
    plain = [Case(0.7, 0.9, 0.8, labels) for labels in (20, 50, 100, 200)]
    lenient = [Case(0.5, 0.97, 0.75, labels) for labels in (20, 50, 100)]
    easy = [Case(0.9, 0.95, 0.7, labels) for labels in (50, 100)]
    grouped = [Case(0.7, 0.9, 0.8, labels, size=4) for labels in (50, 100)]
    # the same number of labels in every language, and by rows with five or more
    labels = [(count, count) for count in (3, 5, 10, 30)] + [(55, 5), (137, 7)]
    rates = [(0.7, 0.7), (0.5, 0.9), (0.9, 0.5)]
    two = Case(0, 0.9, 0.8, 0, languages=((500, 0.8, 50), (100, 0.5, 50)))
    by_size = [uneven((rate, ours), (other, theirs)) for ours, theirs in labels for rate, other in rates]
    return [*plain, *lenient, *easy, *grouped, two, *by_size]


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


ONE_SIDED = ((0.85, 1.0), (0.9, 1.0), (0.93, 1.0), (0.97, 1.0), (1.0, 0.7), (1.0, 0.8), (1.0, 0.9), (0.9, 0.8))
DESIGNS = {
    "900 + 300, 15 each": ((900, 300), (15, 15)),
    "900 + 300, 20 each": ((900, 300), (20, 20)),
    "900 + 300, 30 each": ((900, 300), (30, 30)),
    "900 + 300, 100 each": ((900, 300), (100, 100)),
    "600 + 600, 15 each": ((600, 600), (15, 15)),
    "300 + 100, 20 each": ((300, 100), (20, 20)),
    "2,000 + 9 × 100, 20 and 5 each": ((2000, *[100] * 9), (20, *[5] * 9)),
    "2,000 + 9 × 100, 55 and 5 each": ((2000, *[100] * 9), (55, *[5] * 9)),
    "10 × 100, 10 each": ((100,) * 10, (10,) * 10),
}


def by_counts(
    sizes: Sequence[int], labels: Sequence[int], rate: float, right: np.ndarray, unseen: float, n: int, seed: int
) -> tuple[float, float]:
    """Return coverage and mean width of PPI++ over ``n`` samples, from the counts of single rows in each language.

    The formulas are those of ``corrected_rate``; ``right`` is sensitivity and specificity by language, (2, S).
    """
    rng, drawn, rest = np.random.default_rng(seed), np.array(labels), np.array(sizes) - np.array(labels)
    share, free = np.array(sizes) / sum(sizes), np.array(labels) - 1
    p = np.stack([rate * right[0], rate * (1 - right[0]), (1 - rate) * (1 - right[1]), (1 - rate) * right[1]], axis=1)
    known = np.stack([rng.multinomial(k, q, size=n) for k, q in zip(drawn, p, strict=True)], axis=1)
    other = np.stack([rng.multinomial(k, q, size=n) for k, q in zip(rest, p, strict=True)], axis=1)
    people, told = known[..., :2].sum(-1) / drawn, known[..., ::2].sum(-1) / drawn
    elsewhere = other[..., ::2].sum(-1) / rest
    of_rest = (share**2 * elsewhere * (1 - elsewhere) / (rest - 1)).sum(1)

    def variances(power: np.ndarray) -> np.ndarray:
        values = np.stack([1 - power, np.ones(n), -power, np.zeros(n)], axis=1)[:, None]
        mean = (people - power[:, None] * told)[..., None]
        return np.asarray((known * (values - mean) ** 2).sum(-1) / free)

    ends = [
        (share**2 / drawn).sum() * (variances(np.full(n, x)) @ free / free.sum()) + x * x * of_rest
        for x in (0.0, 0.5, 1.0)
    ]
    bend = 2 * (ends[0] + ends[2] - 2 * ends[1])
    power = np.clip(0.5 - (ends[2] - ends[0]) / (2 * np.maximum(bend, 1e-15)), 0, 1) * (bend > 1e-15)
    value = (share * people).sum(1) - power * (share * (told - elsewhere)).sum(1)
    by_label = variances(power) + unseen / drawn
    pooled = by_label @ free / free.sum()
    own = share**2 / drawn * (3 * pooled[:, None] + free * by_label) / (3 + free)
    total = own.sum(1) + power**2 * of_rest
    uncertain = np.maximum((own**2 / np.minimum(free + 3, free.sum())).sum(1), 1e-300)
    degrees = np.clip(total**2 / uncertain, 1.0, free.sum())
    reach = stdtrit(degrees, 0.975) * np.sqrt(total)
    correct = known[..., :2].sum((1, 2))
    some = (correct >= 5) & (drawn.sum() - correct >= 5)
    if some.mean() < 0.3:
        return 1.0, 0.0
    hit = (np.maximum(value - reach, 0) <= rate) & (rate <= np.minimum(value + reach, 1))
    return float(hit[some].mean()), float(2 * reach[some].mean())


def one_sided(simulations: int) -> Iterator[tuple[str, ...]]:
    """Yield for each design the lowest coverage, and the mean width, of 30 worlds, without and with unseen errors."""
    for name, (sizes, labels) in DESIGNS.items():
        row = [name]
        rest = [1.0] * (len(sizes) - 1)
        alike = [np.repeat([[a], [b]], len(sizes), axis=1) for a, b in ONE_SIDED]
        judges = [*alike, np.array([[0.88, *rest], [1.0, *rest]]), np.array([[1.0, *rest], [0.8, *rest]])]
        for unseen in (0.0, 0.25, _UNSEEN):
            worlds = [(rate, right) for rate in (0.5, 0.7, 0.85) for right in judges]
            found = [by_counts(sizes, labels, *world, unseen, simulations, seed) for seed, world in enumerate(worlds)]
            widths = [width for _, width in found if width]
            row.append(f"{100 * min(hit for hit, _ in found):.1f} ({100 * np.mean(widths):.0f})")
        yield tuple(row)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="100 simulations, to see that it runs")
    parser.add_argument("--one-sided", action="store_true", help="the lowest coverage of 30 judges, by design")
    parser.add_argument("--simulations", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    simulations = 100 if options.quick else options.simulations
    if options.one_sided:
        head = ("rows and labels", "nothing unseen", "a quarter", "one disagreement")
        print(pipe_table(head, list(one_sided(simulations)), "lrrr"))
        return
    heads = "".join(f"{name:>9} {'width':>6} {'none':>5}" for name in ("PPI++", "R-G"))
    print(f"{'rate, judge, labels':<62} {'judge':>6}{heads}")
    for i, case in enumerate(cases()):
        own, powered, gladen = simulate(case, simulations, np.random.default_rng([options.seed, i]))
        both = "  ".join(f"{100 * hit:7.1f} {width:6.3f} {100 * none:5.1f}" for hit, width, none in (powered, gladen))
        print(f"{case.name:<62} {100 * own[0]:6.1f}  {both}", flush=True)


if __name__ == "__main__":
    main()
