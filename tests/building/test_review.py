"""The review sheet: written, filled in by people, read back; passes, failures and the agreement."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from mrag_eval.building.review._review import ReviewDocument, ReviewItem, read_reviews
from mrag_eval.building.review._review_outcome import Review, crossdoc_type, outcome, review
from mrag_eval.platform import DataError, read_sheet, write_sheet

YES = {"natural": "yes", "answerable": "yes", "correct": "yes"}


def item(n: int, **changes: str) -> ReviewItem:
    documents = (
        ReviewDocument("=SUM(A1) is how the ferry log begins.", "en", "Ferry", "2026-01-05"),
        ReviewDocument("Die Fähre fährt um sieben.", "de"),
    )
    texts = {"question": f"When does ferry {n} leave?", "answer": f"At {n}.", "language": "de", **changes}
    return ReviewItem(f"q{n}", documents=documents, kind="comparison", **texts)


ITEMS = [item(n) for n in range(1, 5)]


def filled(path: Path, answers: Mapping[str, Mapping[str, str]], keep: Callable[[str], bool] = bool) -> Path:
    """Write the sheet as the build does, fill in these cells, and return its path."""
    sheet = path.with_name("written.csv")
    review([sheet], ITEMS)
    rows = [dict(row.cells) for row in read_sheet(sheet, ())]
    columns = list(rows[0])
    write_sheet(path, columns, [row | dict(answers.get(row["id"], {})) for row in rows if keep(row["id"])])
    sheet.unlink()
    return path


def read(*paths: Path) -> Review:
    return outcome(read_reviews(paths, ITEMS))


def test_the_sheet_shows_what_an_annotator_needs(tmp_path: Path) -> None:
    path = tmp_path / "sheet.csv"
    assert review([path], ITEMS) is None
    assert path.read_bytes().startswith(b"\xef\xbb\xbf")
    rows = read_sheet(path, ())
    assert [row.cells["id"] for row in rows] == ["q1", "q2", "q3", "q4"]
    first = rows[0].cells
    assert first["document_1"] == "[en] · Ferry · 2026-01-05\n\n=SUM(A1) is how the ferry log begins."
    assert first["document_2"] == "[de]\n\nDie Fähre fährt um sieben."
    empty = ["annotator", "natural", "answerable", "correct", "corrected_answer"]
    assert [first[name] for name in [*empty, "document_1_holds", "document_2_holds", "note"]] == [""] * 8


def test_only_accepted_and_corrected_rows_pass(tmp_path: Path) -> None:
    answers = {
        "q1": YES,
        "q2": {"natural": "Yes", "answerable": "y", "correct": "No", "corrected_answer": "At  two."},
        "q3": {"natural": "yes", "answerable": "no"},
        "q4": {"natural": "no", "note": "two questions in one"},
    }
    found = read(filled(tmp_path / "ida.csv", answers))
    assert {name: d.answer for name, d in found.decisions.items()} == {
        "q1": "At 1.",
        "q2": "At two.",
        "q3": None,
        "q4": None,
    }
    assert [d.corrected for d in found.decisions.values()] == [False, True, False, False]
    assert found.counts == {
        "items": 4,
        "reviewed": 4,
        "accepted": 1,
        "corrected": 1,
        "dropped": {"unanswerable": 1, "unnatural": 1},
        "annotators": ["ida"],
        "missing": {"ida": 0},
        "incomplete": {},
        "notes": 1,
    }
    assert found.agreement == {}
    assert "passed     2 (1 with a corrected answer)" in found.lines()


def test_a_wrong_answer_without_a_better_one_is_dropped(tmp_path: Path) -> None:
    found = read(filled(tmp_path / "a.csv", {"q1": {"natural": "yes", "answerable": "yes", "correct": "no"}}))
    assert found.decisions["q1"].reason == "wrong"


def test_missing_empty_and_unfinished_rows_are_counted_and_do_not_pass(tmp_path: Path) -> None:
    answers = {"q1": YES, "q2": {"natural": "yes"}, "q3": {"document_1_holds": "some"}}
    found = read(filled(tmp_path / "ida.csv", answers, keep=lambda name: name != "q4"))
    assert [d.reason for d in found.decisions.values()] == [None, "not reviewed", "not reviewed", "not reviewed"]
    assert found.counts["missing"] == {"ida": 3}
    assert found.counts["incomplete"] == {"ida": 2}
    assert found.counts["dropped"] == {"not reviewed": 3}
    assert any(line.startswith("incomplete 2 rows of ida") for line in found.lines())
    assert any(line.startswith("missing    1 question without a row of ida") for line in found.lines())


def test_text_after_the_first_no_is_not_read(tmp_path: Path) -> None:
    path = filled(
        tmp_path / "a.csv", {"q1": {"natural": "no", "answerable": "yes", "correct": "no", "corrected_answer": "x"}}
    )
    assert read(path).decisions["q1"].reason == "unnatural"


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ({"id": "q9"}, "'q9' is not a question of this build"),
        ({"natural": "perhaps"}, "column 'natural': 'perhaps' is neither yes nor no"),
        ({"document_2_holds": "half"}, "column 'document_2_holds': 'half' is not one of sufficient, some, none"),
        (YES | {"corrected_answer": "At two."}, "called correct, and there is a corrected one"),
        ({"version": "00000000"}, "differs from the question on the sheet"),
        ({"id": "q2"}, "'q2' was already annotated by 'ida'"),
    ],
)
def test_wrong_rows_are_named(tmp_path: Path, cells: dict[str, str], message: str) -> None:
    with pytest.raises(DataError) as caught:
        read(filled(tmp_path / "ida.csv", {"q2": YES, "q3": cells | ({"version": ""} if "id" in cells else {})}))
    assert message in caught.value.message
    assert f"{tmp_path / 'ida.csv'}, row 4" in caught.value.message


def test_a_sheet_of_another_build(tmp_path: Path) -> None:
    path = filled(tmp_path / "a.csv", {"q1": YES})
    with pytest.raises(DataError, match="differs from the question on the sheet"):
        read_reviews([path], [item(1, answer="At noon."), *ITEMS[1:]])


def test_an_untouched_sheet_and_a_missing_one(tmp_path: Path) -> None:
    path = filled(tmp_path / "a.csv", {})
    with pytest.raises(DataError, match="no row is filled in"):
        read(path)
    with pytest.raises(DataError, match="no such sheet"):
        review([path, tmp_path / "b.csv"], ITEMS)
    with pytest.raises(DataError, match="no question to review"):
        review([tmp_path / "c.csv"], [])
    with pytest.raises(DataError, match="share the id 'q1'"):
        review([tmp_path / "c.csv"], [ITEMS[0], ITEMS[0]])


def test_three_annotators_by_majority(tmp_path: Path) -> None:
    def corrected(text: str) -> dict[str, str]:
        return {"natural": "yes", "answerable": "yes", "correct": "no", "corrected_answer": text}

    no = {"natural": "no"}
    sheets = {
        "ida": {"q1": YES, "q2": corrected("At two."), "q3": YES, "q4": corrected("a")},
        "kai": {"q1": YES, "q2": corrected("At two."), "q3": no, "q4": corrected("b")},
        "lea": {"q1": no, "q2": corrected("At 2"), "q3": {"natural": "yes", "answerable": "no"}, "q4": no},
    }
    found = read(*(filled(tmp_path / f"{name}.csv", answers) for name, answers in sheets.items()))
    assert {n: (d.answer, d.reason) for n, d in found.decisions.items()} == {
        "q1": ("At 1.", None),
        "q2": ("At two.", None),
        "q3": (None, "rejected"),
        "q4": (None, "corrections differ"),
    }


def test_two_annotators_that_differ(tmp_path: Path) -> None:
    """Of 4 items, natural agrees in 3; answerable was judged by both in 2 and agrees in 1."""
    first = {"q1": YES, "q2": YES, "q3": YES, "q4": {"natural": "no"}}
    second = {"q1": YES, "q2": {"natural": "yes", "answerable": "no"}, "q3": {"natural": "no"}, "q4": {"natural": "no"}}
    found = read(filled(tmp_path / "ida.csv", first), filled(tmp_path / "kai.csv", second))
    assert [d.reason for d in found.decisions.values()] == [None, "annotators split", "annotators split", "unnatural"]
    natural, answerable = found.agreement["natural"], found.agreement["answerable"]
    assert (natural["items"], natural["agreeing"]["value"], natural["agreeing"]["n"]) == (4, 0.75, 4)
    # p_o = 3/4; p_e = 3/4 * 2/4 + 1/4 * 2/4 = 1/2; kappa = (3/4 - 1/2) / (1/2)
    assert natural["kappa"]["value"] == pytest.approx(0.5, abs=1e-12)
    # 8 labels, 5 yes and 3 no: D_e = 2 * 5 * 3 / (8 * 7), D_o = 2/8; alpha = 1 - (1/4) / (30/56)
    assert natural["alpha"]["value"] == pytest.approx(1 - 0.25 * 56 / 30, abs=1e-12)
    assert (answerable["items"], answerable["agreeing"]["value"]) == (2, 0.5)
    assert found.agreement["document_1_holds"]["agreeing"]["value"] is None
    (line,) = [line for line in found.lines() if line.startswith("agreement  natural: ")]
    assert line.startswith("agreement  natural: agreeing 75.0 [")
    assert line.endswith("(n=4)")


def test_one_sheet_may_hold_several_annotators(tmp_path: Path) -> None:
    path = filled(tmp_path / "a.csv", {"q1": YES | {"annotator": "ida"}})
    rows = [dict(row.cells) for row in read_sheet(path, ())]
    write_sheet(path, list(rows[0]), [rows[0], rows[0] | {"annotator": "kai", "natural": "no"}])
    found = read(path)
    assert found.counts["annotators"] == ["ida", "kai"]
    assert found.decisions["q1"].reason == "annotators split"


@pytest.mark.parametrize(
    ("holds", "kind"),
    [
        (("sufficient", "none"), 0),
        (("none", "sufficient"), 0),
        (("some", "sufficient"), 1),
        (("sufficient", "sufficient"), 1),
        (("some", "some"), 2),
        (("some", "none"), None),
        (("some", None), None),
        (("sufficient",), None),
    ],
)
def test_the_documents_contents_give_the_type(holds: tuple[str, ...], kind: int | None) -> None:
    assert crossdoc_type(holds) == kind  # type: ignore[arg-type]
