"""What replies without a readable choice leave open of an accuracy: planted languages, from rows to the report."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from mrag_eval import load_results
from mrag_eval.cli import main
from mrag_eval.core import RagDoc, RowScores
from mrag_eval.report import write_report
from mrag_eval.scoring import RowRecord, row_record, summarize
from tests.report.runs import row, write_run
from tests.tables import single_spaced

# 100 rows each: right, read and wrong, unread
PLANTED = {"en": (70, 28, 2), "sw": (40, 30, 30)}
# by hand: sw .40 to .70, and the means of .70 and .40, and of .72 and .70
BOUNDS = {"en": (0.70, 0.72), "sw": (0.40, 0.70), "macro": (0.55, 0.71)}


def rows(planted: Mapping[str, tuple[int, int, int]], name: str = "acc", group: int = 1) -> list[RowRecord]:
    out = []
    for language, (right, wrong, unread) in planted.items():
        values = [(1.0, 1.0)] * right + [(0.0, 1.0)] * wrong + [(0.0, 0.0)] * unread
        for i, (hit, read) in enumerate(values):
            doc = RagDoc(f"{language}{i}", "q", language, group_id=f"{language}g{i // group}")
            out.append(row_record(doc, RowScores(values={name: hit, "choice_parsed": read})))
    return out


@pytest.mark.parametrize("name", ["acc", "acc_micro"])
def test_bounds_are_given_for_every_language_and_for_their_mean(name: str) -> None:
    found = summarize(rows(PLANTED, name)).metrics[name]
    assert {where: pytest.approx(ends) for where, ends in BOUNDS.items()} == dict(found.unread)
    assert summarize(rows(PLANTED, name)).to_dict()["metrics"][name]["unread"]["sw"] == pytest.approx((0.4, 0.7))


@pytest.mark.parametrize(
    "planted",
    [
        {"en": (70, 28, 2), "sw": (40, 55, 5)},  # 2 and 5 of 100 do not differ beyond chance
        {"en": (70, 0, 30), "sw": (40, 30, 30)},
        {"en": (100, 0, 0), "sw": (100, 0, 0)},
        {"en": (0, 0, 100)},
        {"en": (1, 0, 0), "sw": (0, 0, 1)},
    ],
)
def test_shares_that_may_be_the_same_leave_no_bounds(planted: Mapping[str, tuple[int, int, int]]) -> None:
    found = summarize(rows(planted)).to_dict()["metrics"]
    assert "unread" not in found["acc"]


def test_a_language_of_a_few_groups_may_differ_by_chance() -> None:
    """30 unread rows of 100 are three of ten groups, and two more of another one."""
    assert summarize(rows(PLANTED, group=10)).metrics["acc"].unread == {}


def test_other_metrics_and_rows_without_a_reading_have_none() -> None:
    found = summarize(rows(PLANTED, "match")).metrics["match"]
    assert found.unread == {}
    alone = [row_record(RagDoc(f"{i}", "q", "en"), RowScores(values={"acc": 0.0})) for i in range(5)]
    assert summarize(alone).metrics["acc"].unread == {}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    scores = summarize(rows(PLANTED)).to_dict()
    return write_run(tmp_path / "out", {"qa": [row(0)]}, config={"scores": scores})


def test_the_text_report_names_the_bounds(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["report", str(run), "--metrics", "all"])
    assert not ended.value.code
    text = single_spaced(capsys.readouterr().out.replace("\n", " "))
    assert (
        "acc: languages differ in the share of replies without a readable choice, which count as wrong; with all "
        "of these wrong, and all right: en 70.0 to 72.0, sw 40.0 to 70.0, macro 55.0 to 71.0" in text
    )


def test_the_page_and_the_table_of_scores_have_them(run: Path) -> None:
    write_report([run], run / "page.html")
    _, _, section = (run / "page.html").read_text("utf-8").partition('<h3 id="unscored">')
    table = section.partition("Replies without a readable choice")[2].partition("</table>")[0]
    lines = [re.findall(r"<td[^>]*>(.*?)</td>", line) for line in re.split("<tr[^>]*>", table) if "<td" in line]
    assert [(language, unread, bounds) for _, language, unread, bounds in lines] == [
        ("en", "2.0", "70.0 to 72.0"),
        ("sw", "30.0", "40.0 to 70.0"),
        ("macro", "16.0", "55.0 to 71.0"),
    ]
    frame = load_results(run)
    cells = frame[(frame["metric"] == "acc") & (frame["dimension"] == "query_lang")].set_index("cell")
    assert cells.loc["sw", "worst_case"] == pytest.approx(0.4)
    assert cells.loc["sw", "best_case"] == pytest.approx(0.7)
    whole = frame[(frame["metric"] == "acc") & (frame["dimension"] == "")]
    assert whole["worst_case"].isna().all()
