"""Simulate how often the gate alarms without a change, and how often it finds a drop of five points.

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

from mrag_eval.core import pipe_table
from mrag_eval.metrics import benjamini_hochberg, holm
from mrag_eval.report import gate, read_rules

ROWS = 500
RIGHT = 0.6
LEVEL = 0.05
Correction = Callable[[list[float]], Sequence[Any]]


def write_baseline(path: Path, values: np.ndarray) -> None:
    """Write the scores (tasks, rows) as the baseline file of a run."""
    tasks = {
        f"task{t}": {
            "settings": {"config": {"version": 1}, "groups": []},
            "rows": [[f"row{i}", "en", f"row{i}", {"acc": float(x)}, "en"] for i, x in enumerate(task)],
        }
        for t, task in enumerate(values)
    }
    path.write_text(json.dumps({"format": 2, "tasks": tasks}), "utf-8")


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
    print(pipe_table(("answers that change, %", "1 rule: found, %", "10 rules: found, %"), table, "rrr"))


if __name__ == "__main__":
    main()
