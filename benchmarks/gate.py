"""Simulate how often the gate alarms without a change, and how often it finds a drop.

    python benchmarks/gate.py              200 gates a row
    python benchmarks/gate.py --quick      5, for a smoke test

A gate has one rule for each of its tasks. Prints, by the number of rules: the share of gates that fail if nothing got
worse, with answers that are right or wrong and with graded scores of regular and of skewed differences, beside t-tests
with Holm's correction; and the share that finds a drop of five points in one task. At last the alarms of one rule at a
drop of exactly what is allowed, by the number of rows.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from mrag_eval.core import pipe_table
from mrag_eval.metrics import PairedCell, benjamini_hochberg, holm, margin_tests
from mrag_eval.metrics._paired_shares import PairedShares

ROWS = 500
LEVEL = 0.05
RULES = (1, 5, 10, 30, 300)
# Graded scores: the rows of a rule, the drop allowed in the last table, and its numbers of rows.
GRADED = 100
ALLOWED = 0.05
GRADED_ROWS = (30, 50, 100, 300)
RESAMPLES = 1_000
Draw = Callable[[np.random.Generator, int, int], np.ndarray]


def p_of_answers(rng: np.random.Generator, rules: int, change: float, drop: float) -> list[float]:
    """Return the p-values of the rules of one gate on right and wrong answers, of which the first loses ``drop``."""
    found = []
    for rule in range(rules):
        lost, gained = (change + drop * (rule == 0)) / 2, (change - drop * (rule == 0)) / 2
        kinds = rng.multinomial(ROWS, (lost, gained, 1 - lost - gained))
        found.append(PairedShares(ROWS, int(kinds[0]), int(kinds[1])).p_value(0.0))
    return found


def alarms(gates: Sequence[Sequence[float]], corrected: Callable[[list[float]], Sequence[float | None]]) -> str:
    """Return the percentage of gates with a p-value at the level after a correction."""
    return f"{100 * np.mean([any((p or 1.0) <= LEVEL for p in corrected(list(one))) for one in gates]):.1f}"


def regular(rng: np.random.Generator, rows: int, rules: int) -> np.ndarray:
    """Return losses of graded scores (rows, rules), of mean 0: half of the rows change, in both directions."""
    return np.where(rng.random((rows, rules)) < 0.5, 0.0, rng.uniform(-0.4, 0.4, (rows, rules)))


def rare(chance: float, sign: int) -> Draw:
    """Return the same of rows of which a few lose (``sign`` 1) or gain .8, and all others change a little."""

    def draw(rng: np.random.Generator, rows: int, rules: int) -> np.ndarray:
        shape = rows, rules
        small = chance * 0.8 / (1 - chance)
        return sign * np.where(rng.random(shape) < chance, 0.8, -small + rng.normal(0, 0.02, shape))

    return draw


def heavy(rng: np.random.Generator, rows: int, rules: int) -> np.ndarray:
    """Return the same with heavy tails: Student's t of two degrees of freedom."""
    return np.clip(0.03 * rng.standard_t(2, (rows, rules)), -1, 1)


SHAPES: dict[str, Draw] = {
    "half of the rows change": regular,
    "10% of the rows lose .8": rare(0.1, 1),
    "10% of the rows gain .8": rare(0.1, -1),
    "heavy tails": heavy,
}


def fails(losses: np.ndarray, allowed: float, seed: int) -> np.ndarray:
    """Return for each rule (column) whether the gate fails it; the rules are on the same questions."""
    units = [str(i) for i in range(len(losses))]
    cells = [
        PairedCell(np.maximum(loss, 0).tolist(), np.maximum(-loss, 0).tolist(), units, allowed) for loss in losses.T
    ]
    return np.array([one.shown for one in margin_tests(cells, n_resamples=RESAMPLES, seed=seed)])


def fails_by_t(losses: np.ndarray, allowed: float) -> np.ndarray:
    """Return the same by one-sided t-tests with Holm's correction, for comparison."""
    from scipy.stats import ttest_1samp

    p_values = ttest_1samp(losses, allowed, alternative="greater").pvalue
    return np.array([(p or 0.0) <= LEVEL for p in holm(np.atleast_1d(p_values).tolist())])


def graded(gates: int, rules_of: Sequence[int]) -> Iterator[tuple[str, ...]]:
    """Yield a row for each shape and number of rules: how often gate and t-tests alarm, and find five points."""
    for name, draw in SHAPES.items():
        for rules in rules_of:
            rng = np.random.default_rng(rules)
            times = max(1, gates // 10) if rules == max(RULES) else gates
            counts = np.zeros(4)
            for gate in range(times):
                losses = draw(rng, GRADED, rules)
                worse = np.clip(losses + np.where(np.arange(rules) == 0, 0.05, 0.0), -1, 1)
                counts += (
                    fails(losses, 0.0, gate).any(),
                    fails_by_t(losses, 0.0).any(),
                    fails(worse, 0.0, gate)[0],
                    fails_by_t(worse, 0.0)[0],
                )
            yield name, str(rules), *(f"{100 * count / times:.1f}" for count in counts), str(times)


def at_the_margin(gates: int) -> Iterator[tuple[str, ...]]:
    """Yield a row for each kind of losses and test, with the percentage of alarms at a drop of exactly ``max_drop``."""
    kinds = {"half of the rows change": regular} | {
        f"{chance:.0%} of the rows gain .8": rare(chance, -1) for chance in (0.02, 0.05, 0.1)
    }
    for name, draw in kinds.items():
        for test in ("of the gate", "t"):
            rng = np.random.default_rng(2)
            shares = []
            for rows in GRADED_ROWS:
                losses = [np.clip(ALLOWED + draw(rng, rows, 1), -1, 1) for _ in range(gates)]
                found = [fails(x, ALLOWED, 0) if test == "of the gate" else fails_by_t(x, ALLOWED) for x in losses]
                shares.append(f"{100 * np.mean(found):.1f}")
            yield name, test, *shares


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="5 gates a row")
    quick = parser.parse_args().quick
    gates, rules_of = (5, RULES[:3]) if quick else (200, RULES)
    rng = np.random.default_rng(0)
    same = [p_of_answers(rng, rules_of[-1], 0.1, 0.0) for _ in range(gates)]
    corrections = {"none": list, "bh": benjamini_hochberg, "holm": holm}
    table = [
        (str(rules), *(alarms([one[:rules] for one in same], corrected) for corrected in corrections.values()))
        for rules in rules_of
    ]
    print(f"Gates that fail without a change, in percent of {gates}; {ROWS} rows a rule, 10% of the answers change\n")
    print(pipe_table(("rules", *corrections), table, "rrrr"), end="\n\n")
    table = []
    for change in (0.06, 0.1, 0.2, 0.3):
        found = [p_of_answers(rng, 1, change, 0.05)[0] for _ in range(gates)]
        # Holm's first step; the other rules do not alarm
        shares = (f"{100 * np.mean([rules * p <= LEVEL for p in found]):.1f}" for rules in RULES)
        table.append((f"{100 * change:.0f}", *shares))
    print(f"Gates that find a drop of five points in one task, in percent of {gates}; {ROWS} rows a rule\n")
    print(
        pipe_table(("answers that change, %", *(f"{n} rule" + "s" * (n > 1) for n in RULES)), table, "r" * 6),
        end="\n\n",
    )
    print(f"Graded scores, {GRADED} rows a rule: gates that fail without a change, and that find five points of one\n")
    head = ("differences", "rules", "alarms", "of t-tests", "found", "by t-tests", "gates")
    print(pipe_table(head, list(graded(gates, rules_of)), "lrrrrrr"), end="\n\n")
    print(f"Rules on graded scores that fail at a drop of exactly max_drop, in percent of {gates}; by rows\n")
    print(pipe_table(("losses", "test", *map(str, GRADED_ROWS)), list(at_the_margin(gates)), "llrrrr"))


if __name__ == "__main__":
    main()
