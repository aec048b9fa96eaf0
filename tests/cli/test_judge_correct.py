"""``mrag-eval judge correct``: planted verdicts and labels, from the sample files to the printed table."""

from __future__ import annotations

import csv
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from mrag_eval.cli import Session, app
from mrag_eval.platform import DataError
from mrag_eval.report import read_labels_of, read_verdicts
from tests.report.runs import row, write_run

# verdicts on 60 rows: the first 20 are labelled, 12 of them correct, of which the judge finds 10
VERDICTS = [1.0] * 10 + [0.0] * 2 + [1.0] * 3 + [0.0] * 5 + [1.0] * 28 + [0.0] * 12
LABELS = ["correct"] * 12 + ["incorrect"] * 8


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run of two modes: one in English, one in English and Swahili, where one row has no verdict."""
    english = [row(i, judge_correct=verdict) for i, verdict in enumerate(VERDICTS)]
    swahili = [row(i, "sw", judge_correct=1.0) for i in range(20)]
    unjudged = row(99, "sw") | {"unscored": {"judge_correct": "unjudged (timeout)"}}
    return write_run(tmp_path / "out", {"mine_norag": english, "mine_trag": [*english, *swahili, unjudged]})


def cli(*arguments: str | Path) -> Any:
    return CliRunner().invoke(app, ["judge", "correct", *map(str, arguments)], obj=Session())


def sheet(path: Path, *lines: str, head: str = "id,label") -> Path:
    path.write_text("\n".join([head, *lines]) + "\n", "utf-8")
    return path


def planted(path: Path, *tasks: str) -> Path:
    return sheet(path, *(f"{task}: r{i},{label}" for task in tasks for i, label in enumerate(LABELS)))


def cells(output: str) -> dict[tuple[str, str], dict[str, str]]:
    """Return the lines of the printed CSV: (task / language, column) -> line."""
    return {(line["row"], line["column"]): line for line in csv.DictReader(output.splitlines())}


def test_the_printed_rates_are_those_worked_by_hand(run: Path, tmp_path: Path) -> None:
    done = cli(run, "--labels", planted(tmp_path / "labels.csv", "mine_norag", "mine_trag"), "--format", "csv")
    assert done.exit_code == 0, done.output
    found = cells(done.stdout)
    judge = found["mine_norag / en", "judge"]
    # 41 of 60 verdicts
    assert (judge["value"], judge["n"]) == ("68.3", "60")
    powered = found["mine_norag / en", "PPI++"]
    # sums of squares: 4.8 of y, 4.55 of f, 2.2 of both, 8.4 of the 40 other verdicts; t(19) = 2.093
    tuning = (2.2 / 380) / (4.55 / 380 + 8.4 / 1560)
    value = 12 / 20 - tuning * (13 / 20 - 28 / 40)
    margin = 2.093024 * ((4.8 - 2 * tuning * 2.2 + tuning**2 * 4.55) / 380 + tuning**2 * 8.4 / 1560) ** 0.5
    worked = [f"{100 * x:.1f}" for x in (value, value - margin, value + margin)]
    assert worked == ["61.7", "40.0", "83.3"]
    assert [powered[key] for key in ("value", "low", "high", "n")] == [*worked, "20"]
    assert found["mine_norag / en", "lambda"]["value"] == "0.33"
    # (41/60 + 5/8 - 1) / (10/12 + 5/8 - 1)
    assert found["mine_norag / en", "Rogan-Gladen"]["value"] == "67.3"
    assert found["mine_norag / en", "sensitivity"]["value"] == "83.3"
    assert found["mine_norag / en", "specificity"]["value"] == "62.5"
    assert found["mine_trag / en", "PPI++"]["value"] == "61.7"


def test_a_language_without_labels_has_a_reason_and_no_rate(run: Path, tmp_path: Path) -> None:
    done = cli(run, "--labels", planted(tmp_path / "labels.csv", "mine_trag"))
    assert "- sw, blank: mine_trag, PPI++; mine_trag, lambda; mine_trag, Rogan-Gladen: no label\n" in done.stdout
    found = cells(cli(run, "--labels", tmp_path / "labels.csv", "--format", "csv").stdout)
    assert found["mine_trag / sw", "PPI++"]["reason"] == "no label"
    assert found["mine_trag / all", "PPI++"]["reason"] == "no label in 1 of 2 languages"
    assert found["mine_trag / all", "PPI++"]["value"] == ""
    assert "mine_trag: 1 row not covered: unjudged (timeout)" in done.stdout


def test_few_labels_print_a_rate_and_the_reason_why_it_has_no_interval(run: Path, tmp_path: Path) -> None:
    labels = sheet(tmp_path / "labels.csv", "mine_norag: r0,correct", "mine_norag: r19,no", "mine_norag: r3,")
    done = cli(run, "--labels", labels)
    assert done.exit_code == 0, done.output
    assert "mine_norag, en, PPI++: no interval: 2 labelled rows, 20 are needed" in done.stdout
    assert "1 row of the sheet without a label" in done.stdout


def test_the_sheet_spreads_over_modes_and_languages_and_hides_the_verdicts(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "sheet.csv"
    done = cli(run, "--write", out, "--n", "30")
    assert done.exit_code == 0, done.output
    with out.open(encoding="utf-8-sig", newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert Counter((line["id"].partition(":")[0], line["language"]) for line in rows) == {
        # five each, then in proportion to 60, 60 and 20 rows
        ("mine_norag", "en"): 13,
        ("mine_trag", "en"): 12,
        ("mine_trag", "sw"): 5,
    }
    assert list(rows[0]) == ["id", "label", "language", "question", "reference answers", "reply"]
    assert {line["label"] for line in rows} == {""}
    assert "mine_trag: sw99" not in {line["id"] for line in rows}
    again = cli(run, "--write", out)
    assert again.exit_code == 1
    assert isinstance(again.exception, DataError)
    assert "is already there" in str(again.exception)


def test_the_next_rows_follow_the_labelled_ones_in_one_random_order(run: Path, tmp_path: Path) -> None:
    def ids(path: Path) -> list[str]:
        return [line.split(",")[0] for line in path.read_text("utf-8-sig").splitlines()[1:]]

    task = run / "some-model" / "samples_mine_norag_2026-01-01T00-00-00.000000.jsonl"
    cli(task, "--write", tmp_path / "first.csv", "--n", "10")
    cli(task, "--write", tmp_path / "both.csv", "--n", "25")
    labels = sheet(tmp_path / "labels.csv", *(f"{name},correct" for name in ids(tmp_path / "first.csv")))
    done = cli(task, "--labels", labels, "--write", tmp_path / "next.csv", "--n", "15", "--format", "json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)
    first, following = ids(tmp_path / "first.csv"), ids(tmp_path / "next.csv")
    assert len(first) == 10
    assert set(first) | set(following) == set(ids(tmp_path / "both.csv"))
    assert not set(first) & set(following)
    # not the order of the file
    assert first != sorted(first, key=lambda name: int(name.rpartition("r")[2]))
    cli(task, "--write", tmp_path / "other.csv", "--n", "10", "--seed", "1")
    assert set(ids(tmp_path / "other.csv")) != set(first)


def test_rows_of_a_group_count_once(tmp_path: Path) -> None:
    rows = [row(i, group=f"g{i // 2}", judge_correct=verdict) for i, verdict in enumerate(VERDICTS)]
    run = write_run(tmp_path / "grouped", {"mine": rows})
    done = cli(run, "--labels", sheet(tmp_path / "l.csv", *(f"r{i},{label}" for i, label in enumerate(LABELS))))
    assert "no interval: 10 groups of labelled rows, 20 are needed" in done.stdout


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["mine_norag: r0,maybe"], "line 2: label 'maybe' is neither correct nor incorrect"),
        (["mine_norag: r0,yes", "mine_norag: r0,no"], "line 3: the id 'mine_norag: r0' comes a second time"),
        (["r0,yes"], "line 2: the id 'r0' is a row of several tasks"),
        (["mine_norag: r77,yes"], "line 2: the id 'mine_norag: r77' is no row of this run"),
        (["mine_norag: r0,"], "holds no label of a row with a verdict"),
    ],
)
def test_bad_labels_are_one_line_that_names_file_and_line(
    run: Path, tmp_path: Path, lines: list[str], message: str
) -> None:
    path = sheet(tmp_path / "labels.csv", *lines)
    with pytest.raises(DataError) as caught:
        read_labels_of(path, read_verdicts([run]))
    assert str(path) in str(caught.value)
    # the second line is the next step
    assert message in str(caught.value).splitlines()[0]


def test_a_sheet_without_the_columns_is_refused(run: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no column 'label'"):
        read_labels_of(sheet(tmp_path / "x.csv", "r0,yes", head="id,verdict"), read_verdicts([run]))


def test_a_run_without_verdicts_is_refused(run: Path, tmp_path: Path) -> None:
    plain = write_run(tmp_path / "plain", {"mine": [row(0, match=1.0, word_f1=0.5)]})
    with pytest.raises(DataError, match=r"no row can be corrected \(no judge_correct\)"):
        read_verdicts([plain])
    with pytest.raises(DataError, match=r"row 'r0': word_f1 is 0\.5"):
        read_verdicts([plain], "word_f1")
    with pytest.raises(DataError, match="a second run of the task 'mine_norag'"):
        read_verdicts([run, write_run(tmp_path / "b", {"mine_norag": [row(0, judge_correct=1.0)]})])
    assert cli(run).exit_code == 2
