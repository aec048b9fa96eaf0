"""The commands under ``mrag-eval build`` as users type them: their output, and faults in one line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mrag_eval import models as lm
from mrag_eval.cli import main
from tests.building.scripted import ScriptedModel
from tests.building.test_qa_build import answers, corpus
from tests.building.test_territories import write
from tests.tables import single_spaced

SETTINGS = "balance: none\nmin_words: 5\nper_document: 2\nseed: 3\n"


@pytest.fixture
def models(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Stands in for any model of the config file; remembers which ones were requested."""
    found: dict[str, Any] = {}

    def named(name: str) -> Any:
        return found.setdefault(name, ScriptedModel(answers, name))

    monkeypatch.setattr(lm, "get", named)
    return found


def call(*arguments: object) -> int:
    with pytest.raises(SystemExit) as done:
        main(["build", *map(str, arguments)])
    return int(done.value.code or 0)


def test_qa_prints_its_yield_and_what_to_run(
    tmp_path: Path, models: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    settings = tmp_path / "qa.yaml"
    settings.write_text(SETTINGS, encoding="utf-8")
    source, out = corpus(tmp_path), tmp_path / "my set"
    command = ("qa", source, "-o", out, "--settings", settings, "--kind", "bm25", "--model", "gpt")
    assert call(*command, "--checker", "claude") == 0
    said = capsys.readouterr().out
    assert set(models) == {"gpt", "claude"}
    assert "| check | 6 | 6 | 0 | |" in single_spaced(said)
    assert "note " not in said.split("| step")[0]
    assert f"datasheet  {out / 'datasheet.md'}" in said
    # a folder with a space in its name survives the shell
    assert f"--metadata 'data.path={out},data.corpus=none,retrieval.corpus={out / 'index'}' --model" in said
    assert call(*command, "--checker", "claude", "--seed", "4") == 0
    assert json.loads((out / "datasheet.json").read_text(encoding="utf-8"))["seed"] == 4


def test_qa_writes_the_sheet_and_waits(
    tmp_path: Path, models: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    settings, sheet = tmp_path / "qa.yaml", tmp_path / "ida.csv"
    settings.write_text(SETTINGS, encoding="utf-8")
    command = ("qa", corpus(tmp_path), "-o", tmp_path / "out", "--settings", settings, "--kind", "bm25", "--model", "m")
    assert call(*command, "--review", sheet) == 0
    assert f"review     {sheet}: fill it in, then run the same command again" in capsys.readouterr().out
    assert sheet.is_file()
    assert call(*command, "--review", sheet) == 2
    assert "no row is filled in" in capsys.readouterr().err


def test_territories_and_the_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    assert call("territories", write(tmp_path / "tables"), "-o", out, "--kind", "bm25") == 0
    said = capsys.readouterr().out
    assert f"{out}: 5 questions on 2 territories (en 2, uk 1, zh-Hant 2)" in said
    assert "missing    14 of 18 subjects and languages" in said
    assert "--tasks bordirlines_rel_langs_direct_own" in said
    assert call("report", out) == 0
    assert "### Questions by type and language (territories)" in capsys.readouterr().out
    page = tmp_path / "report.json"
    assert call("report", out, "--format", "json", "-o", page) == 0
    assert json.loads(page.read_text(encoding="utf-8"))[0]["id"] == "types: territories"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("qa", "nowhere.jsonl", "-o", "out", "--model", "gpt"), "corpus nowhere.jsonl does not exist"),
        (("qa", "x.jsonl", "-o", "out", "--model", "gpt", "--settings", "none.yaml"), "none.yaml: cannot be read"),
        (("territories", "nowhere", "-o", "out"), "nowhere: no such folder"),
        (("report", "nowhere"), "nowhere: no set that `mrag-eval build` wrote"),
        (("report", "nowhere", "--format", "pdf"), "nowhere: no set"),
    ],
)
def test_faults_are_one_line_and_the_next_step(
    tmp_path: Path,
    models: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert call(*arguments) == 2
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith(f"mrag-eval: {message}")
    assert len(lines) == 2


def test_a_model_that_the_config_file_does_not_have(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call("qa", corpus(tmp_path), "-o", tmp_path / "out", "--model", "gpt") == 2
    assert "gpt" in capsys.readouterr().err
