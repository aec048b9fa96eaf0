"""The sheet for manual inspection: drawn evenly and repeatably, and never miscounted silently."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mrag_eval.cli import Session, app
from mrag_eval.platform import DataError
from mrag_eval.report import inspection_table, read_inspection, write_inspection
from mrag_eval.report.labels._inspection import CATEGORIES, COLUMNS, draw
from tests.report.runs import write_full_run
from tests.tables import single_spaced

Cells = dict[str, str]


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    return write_full_run(tmp_path / "out")


@pytest.fixture
def sheet(runs: Path, tmp_path: Path) -> Path:
    write_inspection([runs], tmp_path / "sheet.csv", n=8)
    return tmp_path / "sheet.csv"


def _filled(sheet: Path, change: Callable[[list[Cells]], list[Cells] | None]) -> None:
    with sheet.open(encoding="utf-8-sig", newline="") as lines:
        rows = list(csv.DictReader(lines))
    kept = change(rows)
    with sheet.open("w", encoding="utf-8-sig", newline="") as out:
        writer = csv.DictWriter(out, COLUMNS)
        writer.writeheader()
        writer.writerows(rows if kept is None else kept)


def _all(cell: str) -> Callable[[list[Cells]], None]:
    def change(rows: list[Cells]) -> None:
        for row in rows:
            row["categories"] = cell

    return change


def test_every_language_gives_as_many(runs: Path) -> None:
    counts = Counter(one.language for one in draw([runs], n=10))
    # 10 of ar, en, hi, zh: two each, and one more for two of them
    assert sorted(counts.values()) == [2, 2, 3, 3]
    assert Counter(one.language for one in draw([runs], n=3, per_language=True)) == dict.fromkeys(
        ("ar", "en", "hi", "zh"), 3
    )
    assert len(draw([runs], n=1_000)) == 48


def test_the_draw_is_of_its_seed(runs: Path) -> None:
    first, again, other = ([one.key for one in draw([runs], n=12, seed=s)] for s in (1, 1, 2))
    assert first == again != other
    assert len(set(first)) == 12


def test_wrong_predictions_of_one_task(runs: Path) -> None:
    found = draw([runs], n=100, wrong=True, task="qa_two")
    # i % 6 > 3 is right: 16 of 24 are wrong, and one of them, row 7, has no verdict
    assert len(found) == 15
    assert {one.task for one in found} == {"qa_two"}
    with pytest.raises(DataError, match="no wrong prediction of the task 'qa_three'"):
        draw([runs], wrong=True, task="qa_three")


def test_a_sheet_shows_everything_a_person_needs(sheet: Path) -> None:
    with sheet.open(encoding="utf-8-sig", newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert sheet.read_bytes().startswith(b"\xef\xbb\xbf")
    arabic = next(row for row in rows if row["language"] == "ar")
    assert arabic["question"] == "أي مدينة فيها المنارة؟"
    assert arabic["reference answers"] == "Varga"
    assert arabic["passages"].startswith("[1] (en) Harbour\nThe lighthouse")
    legend = "\n".join(row["legend"] for row in rows).split("\n")
    assert legend == [
        "0: nothing to note",
        *(f"{number}: {name}" for number, (_, name) in CATEGORIES.items()),
    ]
    assert not any(row["categories"] for row in rows)


def test_a_filled_sheet_is_not_overwritten(runs: Path, sheet: Path) -> None:
    with pytest.raises(DataError, match="already there"):
        write_inspection([runs], sheet)


def test_counts_by_language_and_category(sheet: Path) -> None:
    def fill(rows: list[Cells]) -> None:
        for row in rows:
            row["categories"] = "0"
        arabic = [row for row in rows if row["language"] == "ar"]
        arabic[0]["categories"] = "1; 12"
        arabic[1]["categories"] = "1: retrieved documents do not contain the correct response"
        next(row for row in rows if row["language"] == "zh")["categories"] = " Typo in  question. ,14"

    _filled(sheet, fill)
    found = read_inspection(sheet)
    assert found.complete
    assert found.inspected == {"ar": 2, "en": 2, "hi": 2, "zh": 2}
    assert found.counts[1] == {"ar": 2}
    assert found.counts[12] == {"ar": 1}
    assert found.counts[10] == found.counts[14] == {"zh": 1}
    assert found.counts[0] == {"en": 2, "hi": 2, "zh": 1}
    table = inspection_table(found)
    row = next(row for row in table.rows if row.labels[1].startswith("retrieved documents"))
    cells = dict(zip(table.columns, row.cells, strict=True))
    assert cells["ar"].value == 2
    # Wilson: 2 of 2 is [1 / (1 + 1.96^2 / 2), 1] = [34.2, 100]
    assert cells["ar %"].low == pytest.approx(100 / (1 + 1.959964**2 / 2), abs=1e-3)
    assert (cells["all"].value, cells["all %"].value, cells["all %"].n) == (2, 25.0, 8)


def test_rows_left_open_do_not_count_as_free_of_errors(sheet: Path) -> None:
    _filled(sheet, lambda rows: rows[0].update(categories="0"))
    found = read_inspection(sheet)
    assert (found.left, sum(found.inspected.values()), found.complete) == (7, 1, False)
    assert "7 not filled in yet" in inspection_table(found).notes


def test_lost_foreign_altered_and_repeated_rows_do_not_count(runs: Path, sheet: Path, tmp_path: Path) -> None:
    write_inspection([runs], tmp_path / "other.csv", n=3, seed=9)
    with (tmp_path / "other.csv").open(encoding="utf-8-sig", newline="") as lines:
        foreign = next(csv.DictReader(lines))

    def change(rows: list[Cells]) -> list[Cells]:
        _all("2")([*rows, foreign])
        rows[1]["language"] = "xx"
        rows[2]["sample"] = "qa_one: another"
        return [*rows[:7], rows[0], foreign]

    _filled(sheet, change)
    found = read_inspection(sheet)
    assert sum(found.inspected.values()) == 5
    said = "\n".join(found.faults)
    assert "row 3 (" in said
    assert "row 4 (qa_one: another): not a row of this sheet" in said
    assert "row 9 (" in said
    assert "the same as row 2" in said
    assert "row 10 (" in said
    assert "3 of the 8 rows drawn are not in the sheet: number 2, 3, 8" in said
    assert len(found.faults) == 5


@pytest.mark.parametrize("cell", ["15", "typos", "1;99", "0;1", ";", "1 2", "²"])
def test_unknown_categories_do_not_count(sheet: Path, cell: str) -> None:
    def fill(rows: list[Cells]) -> None:
        _all("0")(rows)
        rows[0]["categories"] = cell

    _filled(sheet, fill)
    found = read_inspection(sheet)
    assert sum(found.inspected.values()) == 7
    assert len(found.faults) == 1
    assert found.faults[0].startswith("row 2 (")


def test_another_table_is_not_a_sheet(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("a,b\n1,2\n", "utf-8")
    with pytest.raises(DataError, match="no column 'categories'"):
        read_inspection(path)
    path.write_text("draw,language,model,sample,categories\n1,en,m,t,0\n", "utf-8")
    with pytest.raises(DataError, match="no row of a sheet"):
        read_inspection(path)


def test_the_command(runs: Path, tmp_path: Path) -> None:
    def typed(*words: str) -> tuple[int, str]:
        done = CliRunner().invoke(app, ["judge", "inspect", *words], obj=Session())
        return done.exit_code, done.output

    sheet = tmp_path / "s.csv"
    code, said = typed(str(runs), "--n", "4", "--seed", "3", "-o", str(sheet))
    assert code == 0
    assert said.splitlines()[0] == f"{sheet}: 4 predictions (ar 1, en 1, hi 1, zh 1), seed 3"
    code, said = typed("--read", str(sheet))
    assert code == 1
    assert "- 0 of 4 rows drawn are inspected" in said
    _filled(sheet, _all("2;7"))
    code, said = typed("--read", str(sheet))
    assert code == 0
    # Wilson: 1 of 1 is [1 / (1 + 1.96^2), 1]
    assert (
        "| system performance | wrong response with correct retrieval | people | 1 | 100.0 [20.7, 100.0] (n=1)"
        in single_spaced(said)
    )
    code, said = typed("--read", str(sheet), "--format", "json")
    assert json.loads(said)[0]["id"] == "inspection"
    assert typed()[0] == typed(str(runs), "--read", str(sheet))[0] == 2
