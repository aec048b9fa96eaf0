"""Names that a spreadsheet would calculate stay text in every CSV of the reports and exports."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pandas as pd
import pytest

from mrag_eval.platform import escaped
from mrag_eval.report import Cell, Options, Row, Table, render
from mrag_eval.report.comparison._compare_text import _flat
from mrag_eval.report.exports import _csv
from mrag_eval.report.labels._rewrites import read_people

FORMULAS = ["=1+1", "+1+cmd", "-1+1", "@SUM(A1)", "\t=1", "\r=1", '=HYPERLINK("http://x")']


@pytest.mark.parametrize("name", FORMULAS)
def test_a_table_holds_no_formula(name: str) -> None:
    cell = Cell(-0.5, None, -1.0, 0.5, 3, name, name)
    table = Table(name, "title", ("model",), (name,), (Row((name,), name, (cell,)),), 1)
    head, line = csv.reader(io.StringIO(render([table], "csv"), newline=""))
    by_name = dict(zip(head, line, strict=True))
    assert {key: by_name[key] for key in ("value", "low", "high", "n")} == {
        "value": "-0.5", "low": "-1.0", "high": "0.5", "n": "3",
    }  # fmt: skip
    for key in ("table", "row", "from", "column", "task", "metric"):
        assert by_name[key] == f"'{name}".replace("\r", "\n")


@pytest.mark.parametrize("name", FORMULAS)
def test_an_export_holds_no_formula(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    figures = pd.DataFrame([{column: -0.5 if column == "value" else name for column in _csv._COLUMNS}])
    monkeypatch.setattr(_csv, "frame_of", lambda runs: figures)
    _csv.write_csv([], tmp_path / "scores.csv", Options())
    with (tmp_path / "scores.csv").open(encoding="utf-8", newline="") as file:
        (line,) = csv.DictReader(file)
    assert line["value"] == "-0.5"
    assert line["model"] == f"'{name}".replace("\r", "\n")


def test_a_comparison_holds_no_formula() -> None:
    assert _flat("=1+1") == "'=1+1"
    assert _flat(("=1+1", "row")) == "'=1+1 row"
    assert _flat(-0.5) == -0.5


def test_labelled_rewritings_read_back_without_the_apostrophe(tmp_path: Path) -> None:
    with (tmp_path / "pairs.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("previous", "rewritten", "label"), (escaped("=1"), escaped("@x"), "expand")])
    assert read_people(tmp_path / "pairs.csv") == {("=1", "@x"): "expand"}
