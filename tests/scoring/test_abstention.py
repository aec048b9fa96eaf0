"""Rates of abstention: which rows count for which rate, what a reply claims, and languages that cannot be read."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from mrag_eval.core import ANSWERABLE, Hit, Labels, RagDoc, Scored
from mrag_eval.languages import known_languages, language
from mrag_eval.metrics import reads_refusals
from mrag_eval.scoring import METRICS

HITS = (Hit("p1", "de", "Der Turm ist alt.", 1.0, 1), Hit("p2", "de", "Das Tor ist neu.", 0.5, 2))
RATES = [f"{name}_{fault}" for name in ("abstention", "nomiracl") for fault in ("error", "hallucination")]


def row(answer: str, relevant: tuple[str, ...] = (), lang: str = "de", **more: Any) -> Scored:
    doc = RagDoc("r", "Wie alt?", lang, relevant_ids=relevant, extra=more.pop("extra", {}))
    return Scored(doc, answer, **{"passages": HITS, **more})


def value(one: Scored, metric: str) -> float | str:
    (found,) = METRICS[metric].score([one])
    return found


ABSENT, PRESENT = "I don't know.", "Yes, answer is present."


@pytest.mark.parametrize("metric", RATES)
def test_a_row_counts_for_one_rate_and_is_1_where_the_reply_claims_the_opposite(metric: str) -> None:
    error = metric.endswith("error")
    answered, unanswered = (row("", relevant=(name,)) for name in ("p1", "p9"))
    counted, other = (answered, unanswered) if error else (unanswered, answered)
    wrong, right = (ABSENT, PRESENT) if error else (PRESENT, ABSENT)
    assert value(replace(counted, answer=wrong), metric) == 1.0
    assert value(replace(counted, answer=right), metric) == 0.0
    assert value(replace(other, answer=wrong), metric) == (
        "no passage shown answers the question" if error else "a passage shown answers the question"
    )


@pytest.mark.parametrize("metric", [*RATES, "nomiracl_accuracy", "nomiracl_invalid"])
@pytest.mark.parametrize(
    ("one", "reason"),
    [
        (row(PRESENT), "no relevant document is known"),
        (row(PRESENT, ("p1",), passages=()), "no passage was shown"),
        (row(PRESENT, extra={ANSWERABLE: "no"}), "no relevant document is known"),
        (row(PRESENT, ("p1",), labels=Labels("judge", fault="no majority")), "no majority"),
        (row(PRESENT, ("p1",), labels=Labels("judge", ("p1",))), "the passages shown were not labelled"),
    ],
)
def test_without_relevance_there_is_a_reason(one: Scored, reason: str, metric: str) -> None:
    assert value(one, metric) == reason


def test_a_corpus_without_the_relevant_passage_is_no_error_of_the_model() -> None:
    one = row(ABSENT, ("p9",))
    held = replace(one, doc=replace(one.doc, absent_ids=("p9",)))
    assert value(held, "abstention_error") == "the corpus holds no relevant document"


def test_labels_decide_before_ids_and_ids_before_what_the_row_says() -> None:
    says_no = {ANSWERABLE: False}
    assert value(row(PRESENT, extra=says_no), "abstention_hallucination") == 1.0
    assert value(row(PRESENT, extra={ANSWERABLE: True}), "abstention_error") == 0.0
    assert value(row(PRESENT, ("p1",), extra=says_no), "abstention_error") == 0.0
    labels = Labels("judge", ("p1", "p2"), frozenset())
    assert value(row(PRESENT, ("p1",), labels=labels), "abstention_hallucination") == 1.0


def test_nomiracl_counts_what_says_neither_apart() -> None:
    there, none = row("Siehe oben.", ("p1",)), row("Siehe oben.", extra={ANSWERABLE: False})
    assert [value(there, name) for name in ("nomiracl_error", "nomiracl_accuracy", "nomiracl_invalid")] == [0, 0, 1]
    assert [value(none, name) for name in ("nomiracl_hallucination", "nomiracl_accuracy")] == [0, 0]
    said = [replace(there, answer=PRESENT), replace(none, answer=ABSENT)]
    assert [value(one, "nomiracl_accuracy") for one in said] == [1.0, 1.0]


def test_a_tag_and_an_empty_reply_decline() -> None:
    assert value(row("", ("p1",)), "abstention_error") == 1.0
    assert value(row("None", ("p1",), declined=True), "abstention_error") == 1.0
    assert value(row("1841", ("p1",), declined=False), "abstention_error") == 0.0
    # where the prompt offers the tag, words still count, in any language
    assert value(row("I don't know", ("p1",), lang="yo", declined=False), "abstention_error") == 1.0


@pytest.mark.parametrize("lang", ["ml", "ig", "is"])
@pytest.mark.parametrize("answer", ["1841", ABSENT, ""])
def test_a_language_whose_refusals_cannot_be_read_is_unscored_whatever_the_reply(lang: str, answer: str) -> None:
    assert not reads_refusals(lang)
    found = value(row(answer, ("p1",), lang), "abstention_error")
    assert isinstance(found, str)
    assert found.endswith("cannot be read")
    # NoMIRACL's sentences are in English
    assert value(row(ABSENT, ("p1",), lang), "nomiracl_error") == 1.0


@pytest.mark.parametrize("lang", known_languages())
def test_every_language_with_words_of_refusal_is_read(lang: str) -> None:
    known = language(lang)
    assert known is not None
    words = [word.rstrip("~") for word in known.words.refuses]
    assert reads_refusals(lang) is bool(words)
    for word in words[:1]:
        assert value(row(f"{word}.", ("p1",), lang), "abstention_error") == 1.0
        assert value(row(f"{word}.", ("p9",), lang), "abstention_hallucination") == 0.0
