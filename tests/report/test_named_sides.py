"""What compare and gate say of the two sides beside their models: versions that differ."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from mrag_eval.config import package_versions
from mrag_eval.report import compare, comparison_text, gate, gate_lines, gate_markdown, junit, write_baseline
from mrag_eval.report.comparison._gate_rules import Rules
from tests.report.runs import row, write_run

RULES = Rules.model_validate({"min_n": 2, "rules": [{"metric": "acc", "max_drop": 0.5}]})


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
    assert gate_lines(result)[: len(lines)] == lines
    shown = gate_markdown(result).replace("&#124;", "|"), junit(result).replace('" value="', ": ")
    assert all(line in form for line in lines for form in shown)
    assert result.as_dict()["runs"] == result.runs
    found = compare([first], [second])
    assert all(f"- {note}" in comparison_text(found) for note in found.notes)
    return list(found.notes), lines


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
