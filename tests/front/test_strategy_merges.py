"""What merges gain and lose beside ``score``: figures by hand, and what is recommended."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import mrag_eval
from mrag_eval import strategies
from mrag_eval._front import Measured, MergeGain, merge_gains, strategies_of
from mrag_eval.metrics import Estimate
from mrag_eval.report import Difference
from mrag_eval.scoring import RowRecord

SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "all_dense_score": {"mode": "all", "kind": "dense", "merge": "score"},
    "all_dense_centered": {"mode": "all", "kind": "dense", "merge": "centered"},
}


def rows(*parts: tuple[str, str, int, int]) -> list[RowRecord]:
    """Return rows by language of question and document, number, and how many of them have a hit."""
    return [
        RowRecord(f"{asked}{doc}{n}", {"query_lang": asked, "doc_lang": doc}, {"shown@k": float(n < right)})
        for asked, doc, count, right in parts
        for n in range(count)
    ]


def gain(score: list[RowRecord], merged: list[RowRecord]) -> MergeGain:
    (found,) = merge_gains(SETTINGS, {"all_dense_score": score, "all_dense_centered": merged}, "shown@k", 0)
    return found


# Questions in two languages: 100 within each, 50 across from each.
SHAPE = (("en", "en", 100), ("ko", "ko", 100), ("en", "ko", 50), ("ko", "en", 50))


def asked(*right: int) -> list[RowRecord]:
    return rows(*((*part, hits) for part, hits in zip(SHAPE, right, strict=True)))


def test_gain_loss_and_the_share_at_which_they_are_equal() -> None:
    found = gain(asked(100, 90, 20, 20), asked(96, 86, 40, 35))
    assert {part: test.n for part, test in found.parts.items()} == {
        "all": 300, "their document's language": 200, "another language": 100, "in en": 150, "in ko": 150
    }  # fmt: skip
    differences = {part: test.difference for part, test in found.parts.items()}
    # -8 of 200 within a language, +35 of 100 across: (35 - 8) / 300; en (20 - 4) / 150, ko (15 - 4) / 150
    assert differences == pytest.approx(
        {
            "all": 0.09,
            "their document's language": -0.04,
            "another language": 0.35,
            "in en": 16 / 150,
            "in ko": 11 / 150,
        }
    )
    assert found.crossing == pytest.approx(1 / 3)
    # .04 / (.04 + .35)
    assert found.break_even == pytest.approx(0.04 / 0.39)
    figures = json.loads(json.dumps(found.to_dict()))
    assert figures["parts"]["another language"]["difference"] == pytest.approx(0.35)
    # beside what score has: 40 of 100 across, 190 of 200 within a language, 230 of 300
    assert {part: figures["parts"][part]["score"] for part in [*figures["parts"]][:3]} == pytest.approx(
        {"all": 230 / 300, "their document's language": 0.95, "another language": 0.4}
    )
    assert (figures["merge"], figures["break_even"]) == ("centered", found.break_even)
    assert found.is_shown
    assert found.losing == []
    told_of = verdict(found, 0.79, told(-0.09, 0.001))
    text = str(told_of)
    assert "| breaks even at crossing" in text
    assert "10 % |" in text
    assert "33 % of the questions cross here" in text
    said = told_of.sentences[2]
    assert said.startswith("merge of all_dense_score: centered, +9.0 [")
    assert "within one language -4.0 [" in said
    assert "it pays from 10 % of questions that cross (33 % do here)" in said


@pytest.mark.parametrize(
    ("merged", "break_even"),
    [
        (asked(100, 90, 20, 20), 0.0),  # nothing lost, nothing gained
        (asked(90, 90, 20, 10), 1.0),  # lost within one language, and across
        (asked(100, 90, 30, 20), 0.0),  # nothing lost
    ],
)
def test_shares_at_the_ends(merged: list[RowRecord], break_even: float) -> None:
    assert gain(asked(100, 90, 20, 20), merged).break_even == break_even


def test_where_documents_languages_are_unknown_the_whole_is_told() -> None:
    score, merged = rows(("en", "", 40, 10), ("ko", "", 40, 10)), rows(("en", "", 40, 30), ("ko", "", 40, 0))
    found = gain(score, merged)
    assert (found.crossing, found.break_even) == (None, None)
    assert [*found.parts] == ["all", "in en", "in ko"]
    assert found.losing == ["ko"]
    assert "breaks even" not in str(verdict(found, 0.7, told(0.0, 0.4)))


@pytest.mark.parametrize("right", [(100, 90, 20, 20), (99, 90, 22, 20), (90, 80, 20, 20)])
def test_no_merge_is_recommended_whose_interval_touches_zero(right: tuple[int, ...]) -> None:
    found = gain(asked(100, 90, 20, 20), asked(*right))
    low = found.parts["all"].low
    assert low is None or low <= 0
    assert not found.is_shown
    assert (
        verdict(found, 0.69, told(-0.01, 0.4))
        .sentences[2]
        .startswith("merge of all_dense_score: keep score; no gain over it is shown (centered")
    )


def verdict(found: MergeGain, value: float, difference: Difference) -> mrag_eval.Strategies:
    measured = tuple(
        Measured(name, SETTINGS[name], Estimate(one, n=300))
        for name, one in (("all_dense_score", 0.7), ("all_dense_centered", value))
    )
    pair = ("all_dense_score", "all_dense_centered")
    tests = {pair if value < 0.7 else (pair[1], pair[0]): difference}
    return mrag_eval.Strategies("shown@k", measured, tests, {}, (), Path(), Path(), (found,))


def told(difference: float, p: float) -> Difference:
    return Difference(
        *("t", "shown@k", None, 300, 0.7, 0.7 + difference, difference, None, None, p, p, 0.03, "test"),
        better=("a",),
        worse=("b",),
    )


@pytest.mark.parametrize(("value", "difference"), [(0.71, -0.01), (0.69, -0.01)])
def test_of_two_that_are_near_the_one_without_a_merge_goes_on(value: float, difference: float) -> None:
    unshown = gain(asked(100, 90, 20, 20), asked(99, 90, 22, 20))
    found = verdict(unshown, value, told(difference, 0.4))
    assert [one.name for one in found.good_enough] == ["all_dense_score"]
    assert found.sentences[1].startswith("no winner: ")
    assert "all_dense_score" in found.sentences[1]
    assert found.sentences[2].startswith("merge of all_dense_score: keep score")
    shown = gain(asked(100, 90, 20, 20), asked(96, 86, 40, 35))
    assert "all_dense_centered" in [one.name for one in verdict(shown, value, told(difference, 0.4)).good_enough]


@pytest.mark.parametrize(
    ("vary", "fixed", "expected"),
    [
        ({}, {}, ("zscore", "centered", "turns")),
        ({"kind": ["dense"]}, {}, ("zscore", "centered", "turns")),
        ({"kind": ["bm25"]}, {}, ()),
        ({"mode": ["all"]}, {}, ()),
        ({}, {"merge": "score"}, ()),
        ({"merge": ["score", "centered"]}, {"mode": "all", "kind": "dense"}, ("score", "centered")),
    ],
    ids=str,
)
def test_merges_are_tried_unless_others_are_named(
    vary: Mapping[str, Sequence[Any]], fixed: Mapping[str, Any], expected: tuple[str, ...]
) -> None:
    found, _ = strategies_of(vary, answered=False, fixed=fixed)
    assert tuple(one.settings["merge"] for one in found if "merge" in one.settings) == expected


def test_a_hybrid_search_says_why_it_is_not_merged_so(world: Path, tmp_path: Path) -> None:
    found = strategies(
        world / "questions.jsonl",
        world / "corpus.jsonl",
        vary={"mode": ["all"], "kind": ["bm25", "hybrid"], "merge": ["rrf", "centered"]},
        settings={"retrieval": {"embedder": "nowhere/none"}},
        output=tmp_path / "out",
    )
    assert "it fuses rankings by rank, which undoes the merge" in found.refused["all_hybrid_centered"]
    assert "BM25 gives scores, and no vectors" in found.refused["all_bm25_centered"]
    assert found.merges == ()
