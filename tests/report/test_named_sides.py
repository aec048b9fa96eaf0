"""What compare and gate say of the two sides beside what was asked: versions that differ, and models that replied."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from mrag_eval.config import package_versions
from mrag_eval.models import UNKNOWN_MODEL
from mrag_eval.platform import DataError
from mrag_eval.report import GateRules, compare, comparison_text, gate, gate_lines, gate_markdown, junit, write_baseline
from tests.report.runs import row, write_run

RULES = GateRules.model_validate({"min_n": 2, "rules": [{"metric": "acc", "max_drop": 0.5}]})


def written(folder: Path, role: str, values: Mapping[str, Any], *tasks: str) -> Path:
    """Write a run whose record of each task has these values in a role; return its folder."""
    write_run(folder, {task: [row(i, acc=1.0) for i in range(30)] for task in tasks or ("qa",)})
    (path,) = folder.rglob("results_*.json")
    content = json.loads(path.read_text("utf-8"))
    for config in content["configs"].values():
        config["measurement"][role] |= values
    path.write_text(json.dumps(content), "utf-8")
    return folder


def said(first: Path, second: Path, baseline: Path | None = None) -> tuple[list[str], list[str]]:
    """Return what a comparison says in its notes, and a gate of its sides in every form."""
    result = gate([baseline or first], [second], RULES, pinned=[first])
    lines = [f"{side}: {run}" for side, run in result.runs.items()]
    told = gate_lines(result)
    begin = told.index(lines[0])
    assert told[begin : begin + len(lines)] == lines
    shown = gate_markdown(result).replace("&#124;", "|"), junit(result).replace('" value="', ": ")
    assert all(line in form for line in lines for form in shown)
    assert result.as_dict()["runs"] == result.runs
    found = compare([first], [second])
    assert all(f"- {note}" in comparison_text(found) for note in found.notes)
    return list(found.notes), lines


@pytest.mark.slow
@pytest.mark.parametrize("name", [*package_versions(), "a package of tomorrow"])
def test_a_version_that_differs_is_named_once_and_stops_nothing(name: str, tmp_path: Path) -> None:
    versions = {**package_versions(), name: "2"}
    one = written(tmp_path / "one", "environment", {"versions": {**versions, name: "1"}}, "qa", "qb")
    two = written(tmp_path / "two", "environment", {"versions": versions}, "qa", "qb")
    write_baseline([one], tmp_path / "base.json")
    notes, lines = said(one, two, tmp_path / "base.json")
    assert notes == [f"versions that differ, first | second: {name} 1 | 2"]
    assert [line for line in lines if "versions" in line] == [
        f"versions that differ, {side} | candidate: {name} 1 | 2" for side in ("baseline", "pinned")
    ]
    notes, lines = said(one, one)
    assert not any("versions" in line for line in (*notes, *lines))


ASKED = {"model": "local-chat-completions", "model_args": {"model": "mod"}}


@pytest.mark.parametrize(
    ("names", "said_of", "several"),
    [
        (["mod"], None, False),
        ([], None, False),
        (["mod-2026"], "mod-2026", False),
        (["mod", UNKNOWN_MODEL], f"mod, {UNKNOWN_MODEL}", False),
        (["mod", "tiny"], "mod, tiny", True),
        (["mod-2025", "mod-2026"], "mod-2025, mod-2026", True),
    ],
)
@pytest.mark.parametrize("side", ["first", "second"])
def test_models_that_replies_named_are_named_and_a_side_is_one_model(
    names: list[str], said_of: str | None, several: bool, side: str, tmp_path: Path
) -> None:
    folders = {
        name: written(tmp_path / name, "subject", {"answered_by": names if name == side else ["mod"]}, "qa", "qb")
        for name in ("first", "second")
    }
    for folder in folders.values():
        (path,) = folder.rglob("results_*.json")
        path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | {"config": ASKED}), "utf-8")
    first, second = folders.values()
    write_baseline([first], tmp_path / "base.json")
    assert compare([first], [second]).notes == ((f"{side} run: answered by {said_of}",) if said_of else ())
    if several:
        where = "baseline" if side == "first" else "candidate"
        for baseline in (first, tmp_path / "base.json"):
            with pytest.raises(DataError, match=f"{where}, qa: 2 models answered: {said_of}") as caught:
                gate([baseline], [second], RULES)
            assert "differs: [answered_by]" in str(caught.value.next_step)
    permitted = RULES.model_copy(update={"differs": ("answered_by",)}) if several else RULES
    result = gate([tmp_path / "base.json"], [second], permitted)
    told = {where: run.partition(", answered by ")[2] for where, run in result.runs.items()}
    assert told == {
        "baseline": said_of or "" if side == "first" else "",
        "candidate": said_of or "" if side == "second" else "",
    }
    assert result.exit_code == 0
