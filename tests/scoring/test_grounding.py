"""Metrics of support: their values, what leaves a row without one, the languages of a row, the cache, and failures."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from mrag_eval.config import GROUNDED, Measurement
from mrag_eval.core import Failure, Hit, RagDoc, Retrieved, RowScores, Scored
from mrag_eval.scoring import (
    DECLINED,
    EMPTY,
    EVIDENCE,
    METRICS,
    NO_CORRECT,
    RowRecord,
    better_side,
    row_record,
    score_rows,
    support_by,
)
from mrag_eval.scoring import with_grounding as checked
from tests.worlds.classifiers import Holds

TOWER = Hit("tower", "de", "Der Turm von Varn wurde 1841 gebaut.", 1.0, 1)
BREAD = Hit("bread", "en", "Olm sells rye bread.", 0.5, 2)


def row(answer: str, *passages: Hit, lang: str = "de", name: str = "r", **more: Any) -> Scored:
    doc = RagDoc(name, "Was?", lang, answers=("1841",))
    return Scored(doc, answer, **{"passages": passages or (TOWER, BREAD), **more})


def values(one: Scored, *metrics: str, by: Holds | None = None) -> dict[str, Any]:
    (scores,) = score_rows(checked([one], by or Holds(), use_cache=False), metrics, searched=False)
    return {**scores.values, **scores.unscored}


def test_the_share_of_supported_claims() -> None:
    answer = "Der Turm von Varn wurde 1841 gebaut. Olm sells rye bread. Er ist rot."
    assert values(row(answer), "grounded") == {"grounded": pytest.approx(2 / 3)}
    (one,) = checked([row(answer)], Holds(), use_cache=False)
    assert one.grounding is not None
    told = [(claim.verdict, claim.passage, claim.id, claim.lang) for claim in one.grounding.claims]
    # a passage in another language supports as well
    assert told == [("supported", 1, "tower", "de"), ("supported", 2, "bread", "en"), ("not_found", None, "", "")]
    assert [answer[span.start : span.end] for span in one.grounding.claims[2].unsupported] == ["Er ist rot."]


def test_citations_are_not_read_and_spans_stay_in_place() -> None:
    answer = "[1] Er ist rot [2]. Olm sells rye bread [2]."
    (one,) = checked([row(answer)], Holds(), use_cache=False)
    assert one.grounding is not None
    assert [claim.verdict for claim in one.grounding.claims] == ["not_found", "supported"]
    assert [answer[span.start : span.end] for span in one.grounding.claims[0].unsupported] == ["Er ist rot [2]."]


@pytest.mark.parametrize("mark", ["[١]", "【2】", "［1］", "[1-3]", "[1, 2]", "[doc1]", "[^1]"])
def test_a_citation_in_any_form_is_no_part_of_a_claim(mark: str) -> None:
    for answer in (f"Olm sells rye bread {mark}.", f"{mark} Olm sells rye bread."):
        assert values(row(answer), "grounded") == {"grounded": 1.0}, answer
    assert values(row(mark), "grounded") == {"grounded": EMPTY}


def test_a_title_is_shown_and_supports() -> None:
    hit = Hit("p", "de", "Er ist alt.", 1.0, 1, title="Der Turm von Varn")
    assert values(row("Der Turm von Varn", hit), "grounded") == {"grounded": 1.0}


@pytest.mark.parametrize("text", ["", " \n", "..."])
def test_a_title_without_a_text_is_not_read(text: str) -> None:
    empty = Hit("p", "en", text, 1.0, 1, title="Er ist rot")
    (one,) = checked([row("Er ist rot. Olm sells rye bread.", empty, BREAD)], Holds(), use_cache=False)
    assert one.grounding is not None
    told = [(claim.verdict, claim.passage, claim.id) for claim in one.grounding.claims]
    assert told == [("not_found", None, ""), ("supported", 2, "bread")]


@pytest.mark.parametrize("lang", ["en", "ar", "hi", "zh", "th", "am"])
def test_claims_are_sentences_without_white_space_that_hold_a_letter_or_a_digit(lang: str) -> None:
    text = "  Ein Satz. \n\n ... \n 1841!  🙂 \n"
    (one,) = checked([row(text, lang=lang)], Holds(), use_cache=False)
    assert one.grounding is not None
    assert [text[claim.start : claim.end] for claim in one.grounding.claims] == ["Ein Satz.", "1841!"]


@pytest.mark.parametrize(
    ("one", "reason"),
    [
        (row("1841", Hit("p", "de", "", 1.0, 1)), "no passage was shown"),
        (row("1841", Hit("p", "de", " ...", 1.0, 1, title="1841")), "no passage was shown"),
        (row("1841", passages=()), "no passage was shown"),
        (row("None", declined=True), DECLINED),
        (row("Das weiß ich nicht."), DECLINED),
        (row(""), EMPTY),
        (row(" [1] "), EMPTY),
    ],
)
def test_a_row_without_a_claim_has_a_reason(one: Scored, reason: str) -> None:
    assert values(one, "match", *GROUNDED) == {**values(one, "match"), **dict.fromkeys(GROUNDED, reason)}


def test_without_a_classifier_or_a_verdict_there_is_a_reason() -> None:
    assert METRICS["grounded"].score([row("1841")]) == ["no classifier checked the answer"]
    assert values(row("1841"), "right_supported") == {"right_supported": NO_CORRECT}


@pytest.mark.parametrize(("right", "supported"), [*itertools.product((True, False), repeat=2)])
def test_a_row_has_one_of_four_shares(right: bool, supported: bool) -> None:
    answer = {
        (True, True): "Der Turm von Varn wurde 1841 gebaut.",
        # one claim that nothing supports is enough
        (True, False): "Der Turm von Varn wurde 1841 gebaut. Er ist rot.",
        (False, True): "Olm sells rye bread.",
        (False, False): "Er ist rot.",
    }[right, supported]
    found = values(row(answer), "match", *GROUNDED[1:])
    own = f"{'right' if right else 'wrong'}_{'supported' if supported else 'unsupported'}"
    assert {name for name in GROUNDED[1:] if found[name] == 1.0} == {own}
    assert sum(found[name] for name in GROUNDED[1:]) == 1.0


def test_rows_are_right_by_one_metric_of_the_task() -> None:
    """A row that it leaves without a verdict has none, whatever other metrics say."""
    rows = [row("1841", TOWER)]
    (scores,) = score_rows(checked(rows, Holds(), use_cache=False), ["exact_match", "acc", *GROUNDED], searched=False)
    assert scores.unscored["right_supported"] == scores.unscored["acc"]
    classifier = {"revision": "a"}
    assert support_by(["exact_match", "match", "grounded", "wrong_supported"], classifier) == {
        "revision": "a",
        "right": {"match": ["wrong_supported"]},
    }
    record = Measurement("t").with_support(support_by(["match", "grounded", "wrong_supported"], classifier))
    assert record.instruments == {
        "metric:grounded": {"revision": "a"},
        "metric:wrong_supported": {"revision": "a", "right": "match"},
    }


def test_directions() -> None:
    assert [better_side(name) for name in GROUNDED] == ["higher", "higher", "neither", "lower", "lower"]


@pytest.mark.parametrize(
    ("answer", "passages", "pair"),
    [
        ("1841", (TOWER,), "de->de"),
        ("The tower of Varn was built by the people of the harbour.", (TOWER,), "en->de"),
        ("Der Turm von Varn wurde von den Leuten des Hafens gebaut.", (TOWER, BREAD), "de->several"),
        ("1841", (Hit("p", "", "1841", 1.0, 1),), "de->unknown"),
    ],
)
def test_a_row_stands_in_the_languages_of_its_answer_and_of_what_was_shown(
    answer: str, passages: tuple[Hit, ...], pair: str
) -> None:
    (one,) = checked([row(answer, *passages)], Holds(), use_cache=False)
    record = row_record(one.doc, RowScores(), Retrieved(one.passages), grounding=one.grounding)
    assert record.cell[EVIDENCE] == pair
    assert RowRecord.from_dict(record.to_dict()) == record
    assert EVIDENCE not in row_record(one.doc, RowScores(), Retrieved(one.passages)).cell


# ------------------------------------------------------------------ the classifier


def test_findings_are_kept_by_the_classifier_and_all_that_it_reads() -> None:
    rows = [row("Er ist rot."), row("Er ist rot.", name="again"), row("Olm sells rye bread.")]
    first = Holds()
    before = checked(rows, first)
    # equal rows are read once
    assert first.asked == 2
    again = Holds()
    assert [one.grounding for one in checked(rows, again)] == [one.grounding for one in before]
    assert again.asked == 0
    other = Holds("another")
    checked(rows, other)
    assert other.asked == 2
    more = Holds()
    checked([row("Er ist rot.", BREAD, TOWER), row("Er ist rot.", TOWER)], more)
    assert more.asked == 2


def test_a_failure_is_the_row_s_and_is_not_kept() -> None:
    failing = Holds("failing", faults={"Er ist rot.": "RuntimeError: out of memory"})
    one, other = checked([row("Er ist rot."), row("Olm sells rye bread.")], failing)
    assert one.failures == (Failure("grounding", "holds", "RuntimeError", "out of memory"),)
    assert (one.grounding, other.failures) == (None, ())
    (scores,) = score_rows([one], ["match", *GROUNDED], searched=False)
    assert scores.unscored == dict.fromkeys(GROUNDED, "grounding failed (RuntimeError)")
    assert scores.values == {"match": 0.0}
    (healed,) = checked([row("Er ist rot.")], Holds("failing"))
    assert healed.grounding is not None


def test_a_row_that_failed_before_is_not_read() -> None:
    failures = (Failure("answer", "m", "server"),)
    checker = Holds()
    (one,) = checked([row("", failures=failures)], checker, use_cache=False)
    (other,) = checked([row("1841", failures=failures)], checker, use_cache=False)
    assert (checker.asked, one.grounding, other.grounding) == (0, None, None)
