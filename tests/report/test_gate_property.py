"""A candidate whose every answer is wrong never passes, whatever the data and the rules."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mrag_eval.report import GateResult, GateRules, gate
from tests.report.runs import row, write_run

METRICS = {"acc": 0.0, "f1": 0.0, "option_unread": 1.0}
_UNDETECTABLE = ("needed to show even the worst candidate", "no candidate could fail")


def world(rng: np.random.Generator, folder: Path, lost: float) -> tuple[Path, Path]:
    """Write a good run of random tasks, and one that got every answer wrong; ``lost`` rows have no score there."""
    tasks: dict[str, list[dict[str, Any]]] = {}
    wrong: dict[str, list[dict[str, Any]]] = {}
    for task in range(rng.integers(1, 4)):
        name, size = f"qa{task}", int(rng.choice([1, 1, 2, 5]))
        tasks[name], wrong[name] = [], []
        right = rng.uniform(0.2, 1.0)
        for lang in ("de", "ko", "th")[: rng.integers(1, 4)]:
            for i in range(rng.integers(5, 90)):
                group = f"{lang if rng.random() < 0.5 else ''}g{i // size}"
                values = {
                    "acc": float(rng.random() < right),
                    "f1": float(rng.beta(3, 1) * (rng.random() < right)),
                    "option_unread": float(rng.random() > right),
                }
                good, bad = row(i, lang, group, **values), row(i, lang, group, **METRICS)
                good["cell"]["doc_lang"] = bad["cell"]["doc_lang"] = "en" if i % 3 else lang
                bad["values"] = {name: value for name, value in METRICS.items() if rng.random() >= lost}
                tasks[name].append(good)
                wrong[name].append(bad)
    return write_run(folder / "a", tasks), write_run(folder / "b", wrong)


def some_rules(rng: np.random.Generator) -> GateRules:
    """Return a random file of rules that compare, some of them such that nothing could fail them."""
    made = []
    for _ in range(rng.integers(1, 8)):
        rule: dict[str, Any] = {"metric": str(rng.choice(list(METRICS))), "task": str(rng.choice(["*", "qa0"]))}
        kind = rng.integers(0, 4)
        if kind:
            # half the range and more is refused where the baseline has no more to lose
            most = 0.45 if kind < 3 else 0.95
            rule["max_drop" if kind < 3 else "max_drop_relative"] = float(rng.choice([0.01, 0.05, 0.3, most]))
            rule["non_inferiority"] = bool(rng.random() < 0.2)
        for key, chance, values in (
            ("per_language", 0.3, [{"max_drop": 0.05, "min_n": 5}, {"max_drop": 0.9, "min_n": 2}]),
            ("per_pair", 0.2, [{"max_drop": 0.05, "min_n": 2}]),
            ("must_detect", 0.2, [0.01, 0.2]),
            ("max_unpaired", 0.2, [0.0, 0.5]),
            ("max_unscored", 0.3, [0.0, 0.2]),
            ("min_n", 0.5, [2, 50]),
        ):
            if rng.random() < chance:
                rule[key] = values[int(rng.integers(len(values)))]
        made.append(rule)
    return GateRules.model_validate(
        {
            "rules": made,
            "min_n": int(rng.choice([2, 20, 100])),
            "alpha": float(rng.choice([0.05, 0.01, 0.2])),
            "correction": str(rng.choice(["holm", "holm", "bh", "none"])),
        }
    )


def result(seed: int, folder: Path) -> tuple[GateResult, bool]:
    rng = np.random.default_rng(seed)
    lost = float(rng.choice([0.0, 0.0, 0.1, 0.6]))
    before, after = world(rng, folder, lost)
    return gate([before], [after], some_rules(rng)), lost == 0


def check(seed: int, folder: Path) -> int:
    """Check one random gate; return the number of drops that it found."""
    found, complete = result(seed, folder)
    assert found.exit_code != 0, seed
    # by Benjamini and Hochberg a rejection needs others, and the share without a score is the best there is
    helped = found.correction != "bh" or not any(one.unscored for one in found.checks)
    for one in found.checks:
        if one.p_value is None or one.unscored or not complete or not helped:
            continue
        undetectable = any(told in str(one.reason) for told in _UNDETECTABLE)
        few = " rows needed" in str(one.reason) or " groups of rows needed" in str(one.reason)
        # nothing but too little data keeps a drop of everything from being found
        assert one.verdict == "fail" or undetectable or few, (seed, one)
        if few and not undetectable:
            assert one.p_adjusted is None or one.p_adjusted > found.alpha, (seed, one)
    return sum(one.verdict == "fail" for one in found.checks)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(25))
def test_a_candidate_that_is_wrong_everywhere_never_passes(seed: int, tmp_path: Path) -> None:
    check(seed, tmp_path)


@pytest.mark.slow
def test_no_candidate_that_is_wrong_everywhere_passes(tmp_path: Path) -> None:
    found = [check(seed, tmp_path / str(seed)) for seed in range(100, 250)]
    # the worlds are no excuse: most have something to find
    assert sum(n > 0 for n in found) > 75
    print(f"{len(found)} random gates, {sum(found)} drops found, {sum(n > 0 for n in found)} gates failed, none passed")


def test_the_same_run_never_fails(tmp_path: Path) -> None:
    for seed in range(12):
        rng = np.random.default_rng(seed)
        before, _ = world(rng, tmp_path / str(seed), 0.0)
        found = gate([before], [before], some_rules(rng))
        assert found.exit_code != 1
        assert {one.difference for one in found.checks} <= {0.0, None}
