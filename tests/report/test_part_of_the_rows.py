"""A run over a part of the rows says so wherever commands that compare runs show a score."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mrag_eval.cli import main
from tests.report.runs import row, write_run

PART = "[12 of 125 rows]"
RULES = "min_n: 2\nrules:\n  - {metric: acc, task: qa}\n  - {metric: acc, task: qa, max_drop: 0, per_language: {}}\n"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two runs over 12 of 125 rows in ``a`` and ``b``, the second half as good, and rules of a gate."""
    for name, right in (("a", 12), ("b", 2)):
        rows = [row(i, lang, acc=float(i < right)) for i in range(12) for lang in ("de",)]
        write_run(tmp_path / name, {"qa": rows}, config={"scores": {"rows": 12, "metrics": {}}})
        (path,) = (tmp_path / name).rglob("results_*.json")
        content = json.loads(path.read_text("utf-8"))
        content["n-samples"] = {"qa": {"original": 125, "effective": 12}}
        path.write_text(json.dumps(content), "utf-8")
    (tmp_path / "rules.yaml").write_text(RULES, "utf-8")
    monkeypatch.chdir(tmp_path)
    for name in ("GITHUB_STEP_SUMMARY", "GITHUB_ACTIONS"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    capsys.readouterr()
    with pytest.raises(SystemExit):
        main([*arguments])
    return capsys.readouterr().out


@pytest.mark.parametrize("form", ["md", "csv", "json"])
def test_compare_shows_the_part(place: Path, capsys: pytest.CaptureFixture[str], form: str) -> None:
    found = shown(capsys, "compare", "a", "b", "--format", form)
    assert (f"qa {PART}" if form == "md" else PART.strip("[]")) in found


@pytest.mark.parametrize("kind", [["--answers"], ["--languages", "--by", "row"]])
def test_compare_of_answers_shows_the_part(place: Path, capsys: pytest.CaptureFixture[str], kind: list[str]) -> None:
    (place / "a" / "some-model").rename(place / "a" / "some-other")
    for file in (place / "b" / "some-model").iterdir():
        renamed = file.read_text("utf-8").replace('"qa"', '"qb"').replace('"query_lang": "de"', '"query_lang": "fr"')
        file.with_name(file.name.replace("_qa_", "_qb_")).write_text(renamed, "utf-8")
        if "qa" in file.name:
            file.unlink()
    for form in ("md", "json"):
        found = shown(capsys, "compare", *kind, "a", "b", "--format", form)
        for task in ("qa", "qb"):
            assert (f"{task} {PART}" if form == "md" else f'"{task}": "{PART[1:-1]}"') in found


def test_a_gate_shows_the_part(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["gate", "--baseline", "a", "--candidate", "b", "--rules", "rules.yaml"]
    text = shown(capsys, *command, "--markdown", "gate.md", "--junit", "gate.xml")
    assert f"acc · all {PART}" in text
    assert f"| qa {PART} " in (place / "gate.md").read_text("utf-8")
    assert f'{PART}" />' in (place / "gate.xml").read_text("utf-8")
    checks = json.loads(shown(capsys, *command, "--json"))["checks"]
    assert {check["part"] for check in checks} == {PART[1:-1]}


def test_a_gate_shows_the_part_of_a_baseline_file(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown(capsys, "gate", "--save", "base.json", "a")
    (results,) = (place / "b").rglob("results_*.json")
    content = json.loads(results.read_text("utf-8"))
    content["n-samples"]["qa"]["original"] = 12
    results.write_text(json.dumps(content), "utf-8")
    command = ["gate", "--baseline", "base.json", "--candidate", "b", "--rules", "rules.yaml"]
    assert "acc · all [12 of 125 rows | all rows]" in shown(capsys, *command)
