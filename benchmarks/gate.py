"""Simulate how often the gate alarms without a change, and how often it finds a drop of five points.

With graded scores, also how often it alarms at a drop of exactly the five points that are allowed.

    python benchmarks/gate.py              200 gates a row
    python benchmarks/gate.py --quick      5, for a smoke test

A gate has one rule for each of its tasks, which have 500 questions answered right or wrong. Between two runs a share of
the answers changes. Prints the share of gates that fail if nothing got worse, by number of rules and correction, and
the share that fails if one task loses five points.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from mrag_eval.config import Measurement
from mrag_eval.core import pipe_table
from mrag_eval.metrics import benjamini_hochberg, holm, paired_margin
from mrag_eval.report import gate, read_rules

ROWS = 500
RIGHT = 0.6
LEVEL = 0.05
# Graded scores: the drop allowed, and the numbers of rows.
ALLOWED = 0.05
GRADED_ROWS = (30, 50, 100, 300)
Correction = Callable[[list[float]], Sequence[Any]]


def write_baseline(path: Path, values: np.ndarray) -> None:
    """Write the scores (tasks, rows) as the baseline file of a run."""
    tasks = {
        f"task{t}": {
            "settings": {"measurement": Measurement(f"task{t}").to_dict(), "groups": [], "failed": []},
            "rows": [[f"row{i}", "en", f"row{i}", {"acc": float(x)}, "en"] for i, x in enumerate(task)],
        }
        for t, task in enumerate(values)
    }
    path.write_text(json.dumps({"format": 3, "tasks": tasks}), "utf-8")


def simulate(gates: int, tasks: int, change: float, drop: float, seed: int = 0) -> list[list[float]]:
    """Return the p-values of ``gates`` in which a share ``change`` of answers changes, and task 0 loses ``drop``."""
    rng = np.random.default_rng(seed)
    found = []
    with TemporaryDirectory() as name:
        folder = Path(name)
        before, after, rules = folder / "before.json", folder / "after.json", folder / "gate.yaml"
        named = ", ".join(f"{{metric: acc, task: task{t}}}" for t in range(tasks))
        rules.write_text(f"rules: [{named}]", "utf-8")
        for _ in range(gates):
            kinds = np.stack([_kinds(rng, change, drop if t == 0 else 0.0) for t in range(tasks)])
            write_baseline(before, np.isin(kinds, (0, 2)))
            write_baseline(after, np.isin(kinds, (1, 2)))
            result = gate([before], [after], read_rules(rules))
            found.append([check.p_value for check in result.checks if check.p_value is not None])
            assert (result.exit_code == 1) == (min(holm(found[-1])) <= LEVEL)
    return found


def share(gates: list[list[float]], corrected: Correction) -> float:
    """Return the percentage of gates with a regression after a correction."""
    return 100 * sum(any(p <= LEVEL for p in corrected(one)) for one in gates) / len(gates)


def _kinds(rng: np.random.Generator, change: float, drop: float) -> np.ndarray:
    """Return for each row whether it is lost (0), gained (1), right twice (2) or wrong twice (3)."""
    lost, gained = (change + drop) / 2, (change - drop) / 2
    return rng.choice(4, size=ROWS, p=[lost, gained, RIGHT - lost, 1 - RIGHT - gained])


def regular(rng: np.random.Generator, rows: int) -> np.ndarray:
    """Return losses of graded scores, of mean ALLOWED: half of the rows change, in both directions."""
    return ALLOWED + np.where(rng.random(rows) < 0.5, 0.0, rng.uniform(-0.4, 0.4, rows))


def with_rare_gains(chance: float) -> Callable[[np.random.Generator, int], np.ndarray]:
    """Return the same of rows of which a few gain .8, and all others lose a little."""

    def draw(rng: np.random.Generator, rows: int) -> np.ndarray:
        small = (ALLOWED + chance * 0.8) / (1 - chance)
        return np.where(rng.random(rows) < chance, -0.8, small + rng.normal(0, 0.02, rows))

    return draw


def students_t(losses: np.ndarray) -> float:
    """Return p that the mean loss is above ALLOWED by a one-sided t-test, for comparison."""
    from scipy.stats import ttest_1samp

    return float(ttest_1samp(losses, ALLOWED, alternative="greater").pvalue)


def of_the_gate(losses: np.ndarray) -> float:
    """Return the p-value of a rule with ``max_drop``."""
    found = paired_margin(losses.tolist(), [0.0] * len(losses), ALLOWED, n_resamples=1000)
    return 1.0 if found.p_value is None else found.p_value


def graded_alarms(gates: int, seed: int = 2) -> list[tuple[str, ...]]:
    """Return a row for each kind of losses and test, with the percentage of alarms by number of rows."""
    kinds = {"half of the rows change": regular} | {
        f"{chance:.0%} of the rows gain .8": with_rare_gains(chance) for chance in (0.02, 0.05, 0.1)
    }
    out = []
    for name, draw in kinds.items():
        for test, p_of in (("of the gate", of_the_gate), ("t", students_t)):
            rng = np.random.default_rng(seed)
            shares = [sum(p_of(draw(rng, rows)) <= LEVEL for _ in range(gates)) / gates for rows in GRADED_ROWS]
            out.append((name, test, *(f"{100 * alarms:.1f}" for alarms in shares)))
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="5 gates a row")
    gates = 5 if parser.parse_args().quick else 200
    same = simulate(gates, 10, 0.1, 0.0)
    corrections: dict[str, Correction] = {"none": list, "bh": benjamini_hochberg, "holm": holm}
    table = [
        (str(rules), name, f"{share([one[:rules] for one in same], corrected):.1f}")
        for rules in (1, 10)
        for name, corrected in corrections.items()
    ]
    print(f"Gates that fail without a change, of {gates}; {ROWS} rows a rule, 10 % of the answers change\n")
    print(pipe_table(("rules", "correction", "failed, %"), table, "rlr"), end="\n\n")
    table = []
    for change in (0.06, 0.1, 0.2, 0.3):
        found = simulate(gates, 1, change, 0.05, 1)
        # Holm's first step; the other nine rules do not alarm
        shares = (share([[rules * p for p in one] for one in found], list) for rules in (1, 10))
        table.append((f"{100 * change:.0f}", *(f"{value:.1f}" for value in shares)))
    print(f"Gates that find a drop of five points in one task, of {gates}; {ROWS} rows, Holm\n")
    print(pipe_table(("answers that change, %", "1 rule: found, %", "10 rules: found, %"), table, "rrr"), end="\n\n")
    print(f"Rules on graded scores that fail at a drop of exactly max_drop, in percent, of {gates}; by rows\n")
    print(pipe_table(("losses", "test", *map(str, GRADED_ROWS)), graded_alarms(gates), "llrrrr"))


if __name__ == "__main__":
    main()
