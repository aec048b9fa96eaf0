"""Sheets for people: the content survives whatever a spreadsheet program does to the file."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrag_eval.datasets import read_table
from mrag_eval.platform import DataError, escaped, read_sheet, unescaped, write_sheet
from mrag_eval.platform._sheets import MAX_CELL

COLUMNS = ("id", "question", "category")
ROWS = [
    {"id": "r1", "question": "من بنى المنارة؟", "category": ""},
    {"id": "r2", "question": '=HYPERLINK("http://x", "y")', "category": None},
    {"id": "-3", "question": "灯塔,在哪\n个城市?", "category": "a; b"},
]


def _read(path: Path) -> list[dict[str, str]]:
    return [dict(row.cells) for row in read_sheet(path, COLUMNS)]


def test_written_sheets_are_read_back(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "sheet.csv"
    write_sheet(path, COLUMNS, ROWS)
    assert _read(path) == [{key: value or "" for key, value in row.items()} for row in ROWS]
    assert [row.line for row in read_sheet(path, COLUMNS)] == [2, 3, 4]
    assert [p.name for p in path.parent.iterdir()] == ["sheet.csv"]


def test_excel_knows_it_for_utf_8_and_calculates_nothing(tmp_path: Path) -> None:
    path = tmp_path / "sheet.csv"
    write_sheet(path, COLUMNS, ROWS)
    assert path.read_bytes().startswith(b"\xef\xbb\xbf")
    with path.open(encoding="utf-8-sig", newline="") as lines:
        cells = [cell for row in csv.reader(lines) for cell in row]
    assert not [cell for cell in cells if cell[:1] in {"=", "+", "-", "@", "\t", "\r"}]
    assert "'-3" in cells


@pytest.mark.parametrize("cell", ["=1", "+1", "-1", "@A1", "\tx", " =1", "＝1", "'=1", "''=1"])
def test_formulas_get_an_apostrophe(cell: str) -> None:
    assert escaped(cell) == f"'{cell}"
    assert unescaped(escaped(cell)) == cell


@pytest.mark.parametrize("cell", ["", "a=1", "'tis", "'", "1-2", "Ελλάδα"])
def test_other_cells_stay_as_they_are(cell: str) -> None:
    assert escaped(cell) == unescaped(cell) == cell


@given(st.text(alphabet=st.sampled_from("'=+-@ \t\nab＝灯")))
def test_escaping_is_undone_exactly(cell: str) -> None:
    assert unescaped(escaped(cell)) == cell


@pytest.mark.parametrize(
    ("delimiter", "encoding"), [(",", "utf-8"), (";", "utf-8-sig"), ("\t", "utf-16"), (",", "utf-16-be")]
)
def test_it_is_read_however_a_spreadsheet_program_saves_it(tmp_path: Path, delimiter: str, encoding: str) -> None:
    path = tmp_path / "saved.csv"
    sign = "\ufeff" if encoding == "utf-16-be" else ""
    # columns moved, one added, an empty row left over
    text = delimiter.join(("category", "note", "id", "question")) + "\r\n"
    text += delimiter.join(("x", "mine", "r1", '"من, بنى; المنارة؟"')) + "\r\n" + delimiter * 3 + "\r\n"
    path.write_bytes((sign + text).encode(encoding))
    assert _read(path) == [{"category": "x", "note": "mine", "id": "r1", "question": "من, بنى; المنارة؟"}]


def test_a_cell_longer_than_excel_holds_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "sheet.csv"
    write_sheet(path, COLUMNS, [{"id": "r", "question": "=" + "x" * 40_000}])
    question = _read(path)[0]["question"]
    assert len(question) == MAX_CELL - 1  # the apostrophe is the last character that fits
    assert question.endswith("x…")


def test_faults_name_file_and_row(tmp_path: Path) -> None:
    path = tmp_path / "sheet.csv"
    path.write_text("id,question\nr1,who\n", "utf-8")
    with pytest.raises(DataError, match=r"sheet\.csv: no column 'category' \(it has: id, question\)"):
        read_sheet(path, COLUMNS)
    path.write_text("id,question,category\nr1,who, really?,x\n", "utf-8")
    with pytest.raises(DataError, match="row 2: more cells"):
        read_sheet(path, COLUMNS)
    path.write_text("id,question,category,id\n", "utf-8")
    with pytest.raises(DataError, match="two columns"):
        read_sheet(path, COLUMNS)
    path.write_bytes("id,question,category\nr1,où,x\n".encode("latin-1"))
    with pytest.raises(DataError, match="not UTF-8"):
        read_sheet(path, COLUMNS)
    with pytest.raises(DataError, match="cannot be read"):
        read_sheet(tmp_path / "none.csv", COLUMNS)


def test_a_lone_surrogate_is_written(tmp_path: Path) -> None:
    path = tmp_path / "sheet.csv"
    write_sheet(path, COLUMNS, [{"id": "r", "question": "a\ud800b\0c"}])
    assert _read(path)[0]["question"] == "a\\ud800bc"


@pytest.mark.parametrize("ending", ["csv", "tsv"])
def test_a_column_that_is_read_comes_once_and_another_may_come_twice(tmp_path: Path, ending: str) -> None:
    file, comma = tmp_path / f"table.{ending}", {"csv": ",", "tsv": "\t"}[ending]
    file.write_text("question,answer,answer\nq,1841,1814\n".replace(",", comma), "utf-8")
    assert [row["question"] for _, row in read_table(file, ("question",))] == ["q"]
    with pytest.raises(DataError, match=r"table\.\wsv: two columns are called 'answer'"):
        list(read_table(file, ("question", "answer")))
