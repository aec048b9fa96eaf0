"""Checks of a question: models without documents, and each of its articles alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from mrag_eval.building.review._review import Holds
from mrag_eval.building.review._review_outcome import crossdoc_type
from mrag_eval.building.steps._asking import Ask, ask_each, ask_items, failure
from mrag_eval.building.steps._records import Outcome, Settle, dropped, kept
from mrag_eval.building.steps._replies import one_of_words
from mrag_eval.building.steps._templates import Prompts
from mrag_eval.building.xrag._articles import Library
from mrag_eval.building.xrag._linked_questions import is_none
from mrag_eval.building.xrag._xrag_records import Article, LinkedQuestion
from mrag_eval.judging import Case, verdict_rubric
from mrag_eval.models import Answered, AuxModel, generate_parsed, parse_tag
from mrag_eval.platform import at_once

HOLDS: tuple[Holds, ...] = ("sufficient", "some", "none")
KNOWN = "answered without documents"


def closed_book(
    models: Mapping[str, AuxModel], judge: AuxModel, prompts: Prompts, items: Sequence[LinkedQuestion], settle: Settle
) -> None:
    """Drop every question that any of the models answers without documents, according to the judge.

    All models are asked concurrently. A failed call leaves its question out for this run; a reply that cannot be parsed
    is not an answer.
    """
    conversations = [prompts.conversation("closed_book", {"question": item.question}) for item in items]

    def ask(name: str) -> Callable[[], list[Answered[str]]]:
        seat = models[name].seat("build closed_book")
        return lambda: generate_parsed(seat, conversations, lambda reply: parse_tag(reply, "answer"))

    said = at_once({name: ask(name) for name in models}) if items else {}
    rubric = verdict_rubric()
    cases: dict[str, list[tuple[str, Case]]] = defaultdict(list)
    lost: dict[str, Any] = {}
    for name, given in said.items():
        for item, answer in zip(items, given, strict=True):
            if answer.value is not None and not is_none(answer.value):
                cases[item.id].append((name, Case(item.id, item.question, "en", (item.answer,), answer.value)))
            elif answer.reason not in (None, "unreadable"):
                lost.setdefault(item.id, failure([answer]))

    def asks(item: LinkedQuestion) -> list[Ask[Any]]:
        return [Ask(*rubric.request(case)) for _, case in cases[item.id]]

    def make(item: LinkedQuestion, verdicts: list[Answered[Any]]) -> Outcome:
        right = [name for (name, _), v in zip(cases[item.id], verdicts, strict=True) if v.value and v.value.verdict]
        if right:
            return dropped(KNOWN, ", ".join(right))
        missing = lost.get(item.id) or failure(verdicts)
        if missing is not None:
            return Outcome(drops=(missing,))
        return kept(replace(item, unknown_to=tuple(models)))

    ask_each(judge, items, asks, make, settle, seat="build judge")


def holds_ask(prompts: Prompts, item: LinkedQuestion, article: Article) -> Ask[str]:
    """Return the question how much of an answer an article contains."""
    texts = {"question": item.question, "answer": item.answer, "text": article.text, "date": article.date}
    return Ask(prompts.conversation("holds", texts), lambda reply: one_of_words(reply, "holds", HOLDS))


def what_each_holds(
    model: AuxModel, prompts: Prompts, library: Library, items: Sequence[LinkedQuestion], settle: Settle
) -> None:
    """Label how much of the answer each article contains, and derive XRAG's ``crossdoc_type``.

    0: one article suffices; 1: one does, and the other supports it; 2: each contains part. A question is dropped if one
    article contains nothing and the other does not suffice. Labels of a review then replace the model's.
    """

    def asks(item: LinkedQuestion) -> list[Ask[str]]:
        return [holds_ask(prompts, item, library.article(end)) for end in item.ends]

    def make(item: LinkedQuestion, answers: list[str]) -> Outcome:
        found = [next(word for word in HOLDS if word == answer) for answer in answers]
        outcome = with_labels(item, found)
        return with_people(replace(item, holds=tuple(found))) if outcome.made else outcome

    ask_items(model, items, asks, make, settle, seat="build holds")


def with_labels(item: LinkedQuestion, holds: Sequence[Holds]) -> Outcome:
    """Return the item with how much each of its articles contains, and its ``crossdoc_type``; drop it without one."""
    kind = crossdoc_type(holds)
    if kind is None:
        return dropped("not in the articles", " and ".join(holds))
    return kept(replace(item, holds=tuple(holds), crossdoc_type=kind))


def with_people(item: LinkedQuestion) -> Outcome:
    """Return the item with its reviewers' label of each article; where they gave none, the model's is kept."""
    labels = zip(item.people_holds or (None, None), item.holds, strict=True)
    return with_labels(item, [people or model for people, model in labels])
