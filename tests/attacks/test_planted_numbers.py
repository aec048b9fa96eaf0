"""Numbers that are none, in a run's results and samples: no command prints, exports or stumbles over them."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mrag_eval.cli import main
from mrag_eval.platform import json_value
from tests.report.runs import write_full_run

PLACES: dict[str, tuple[str, ...]] = {
    "a score": ("configs", "qa_one", "scores", "metrics", "match", "value"),
    "an end of an interval": ("configs", "qa_one", "scores", "metrics", "match", "low"),
    "a number of rows": ("configs", "qa_one", "scores", "metrics", "match", "n"),
    "a cell": ("configs", "qa_one", "scores", "metrics", "match", "by", "pair", "ar->en", "value"),
    "a count": ("configs", "qa_one", "scores", "loop", "per_question", "calls"),
    "a setting": ("configs", "qa_one", "measurement", "setting", "retrieval", "k"),
    "rows of the task": ("configs", "qa_one", "measurement", "data", "ran", "of"),
    "the date": ("date",),
    "the duration": ("total_evaluation_time_seconds",),
    "a row's score": ("rows", "values", "match"),
}
NUMBER = re.compile(r"(?i)(?<![a-z])-?(?:nan|inf|infinity|\.nan|\.inf)(?![a-z])")


def planted(path: Path, place: tuple[str, ...], value: float) -> None:
    """Write the value to one place of the results, or of the second sample."""
    lines = path.read_text("utf-8").splitlines()
    number = min(1, len(lines) - 1)
    content = json.loads(lines[number])
    inner = content
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    lines[number] = json.dumps(content)
    path.write_text("\n".join(lines) + "\n", "utf-8")


def commands(folder: Path) -> Iterator[list[Any]]:
    run, other = folder / "a", folder / "b"
    rules = folder / "rules.yaml"
    rules.write_text("rules:\n- metric: match\n  max_drop: 0.01\n", "utf-8")
    yield ["report", run]
    yield ["report", run, "-o", folder / "out.json"]
    yield ["report", run, "-o", folder / "out.html"]
    yield ["compare", run, other, "--differs", "all", "--format", "json"]
    for form in ("csv", "latex", "model-index", "eee", "eval-results"):
        yield ["export", run, "--format", form, "-o", folder / f"out-{form}"]
    yield ["gate", "--save", folder / "out-baseline.json", run]
    yield ["gate", "--baseline", folder / "out-baseline.json", "--candidate", other, "--rules", rules]
    shown = ["--html", folder / "out-gate.html", "--markdown", folder / "out-gate.md"]
    yield ["gate", "--baseline", other, "--candidate", run, "--rules", rules, *shown]


@pytest.mark.slow
@pytest.mark.parametrize("value", [math.nan, 1e308])
@pytest.mark.parametrize("what", PLACES)
def test_a_planted_number_reaches_nobody(
    what: str, value: float, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("a", "b"):
        write_full_run(tmp_path / name, mode="coral", loop=True)
    place = PLACES[what]
    pattern = "samples_qa_one_*.jsonl" if place[0] == "rows" else "results_*.json"
    (path,) = (tmp_path / "a").rglob(pattern)
    planted(path, place, value)
    for words in commands(tmp_path):
        with pytest.raises(SystemExit) as ended:
            main([str(word) for word in words])
        shown = capsys.readouterr()
        assert ended.value.code in (0, None, 1, 2), words
        assert "report it with" not in shown.err, words
        assert "Traceback" not in shown.err, words
        written = [file for file in tmp_path.rglob("out*") if file.is_file() and file.suffix != ".html"]
        for text in (shown.out, *(file.read_text("utf-8") for file in written)):
            assert NUMBER.search(text.replace(f"the score is {value}, which is not a finite number", "")) is None, words
        for file in written:
            if file.suffix == ".json":
                json_value(file.read_bytes())
