"""Translation of question and answer into the target language, and its review by people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mrag_eval.building.review._review import ReviewDocument, ReviewItem
from mrag_eval.building.review._review_outcome import Review
from mrag_eval.building.steps._asking import Ask, ask_items, fault
from mrag_eval.building.steps._records import Outcome, Settle, dropped, kept
from mrag_eval.building.steps._replies import tagged_pairs
from mrag_eval.building.steps._templates import Prompts
from mrag_eval.building.xrag._linked_questions import is_none
from mrag_eval.building.xrag._xrag_records import LinkedQuestion
from mrag_eval.core import language_name
from mrag_eval.models import AuxModel, Parsed

# A language detector is trusted on questions longer than this, or if hardly a letter is in a script of the target
# language.
_JUDGED_FROM, _OFF_SCRIPT = 40, 0.95


def translate(model: AuxModel, prompts: Prompts, items: Sequence[LinkedQuestion], settle: Settle) -> None:
    """Translate question and answer of every item into its ``language``; another language is a fault."""

    def asks(item: LinkedQuestion) -> list[Ask[tuple[str, str]]]:
        texts, lang = {"question": item.question, "answer": item.answer}, item.language

        def read(reply: str) -> Parsed[tuple[str, str]]:
            found = tagged_pairs(reply, "question", "answer")
            if not found or is_none(found[-1][0]):
                return Parsed(None, "there is no <question> followed by its <answer> in the reply")
            if not in_language(found[-1][0], lang):
                return fault("translated into another language", f"the question is not in {language_name(lang)}")
            return Parsed(found[-1])

        return [Ask(prompts.conversation("translation", texts, lang=lang), read)]

    def make(item: LinkedQuestion, answers: list[tuple[str, str]]) -> Outcome:
        question, answer = answers[0]
        return kept(replace(item, translated_question=question, translated_answer=answer))

    ask_items(model, items, asks, make, settle, seat="build translation")


def translation_item(record: LinkedQuestion) -> ReviewItem:
    """Return a translation as an item of a review sheet, with the English question and answer as its document.

    On this sheet, ``natural`` and ``answerable`` are of the translated question: whether it reads well, and whether it
    asks for the English answer. ``correct`` is whether the answers are the same.
    """
    english = ReviewDocument(f"{record.question}\n\n{record.answer}", "en")
    question, answer = record.translated_question, record.translated_answer
    return ReviewItem(record.id, question, answer, record.language, (english,), "translation")


def settle_translations(found: Review, items: Sequence[LinkedQuestion], settle: Settle) -> None:
    """Settle the items whose translation passed, with corrected answers; drop the others with the reason."""
    for item in items:
        decision = found.decisions[item.id]
        if decision.answer is None:
            settle(item.id, dropped(f"review of translations: {decision.reason}"))
        else:
            settle(item.id, kept(replace(item, translated_answer=decision.answer)))


def in_language(text: str, lang: str) -> bool:
    """Return whether a text may be in the language, as far as a detector can judge short texts."""
    from mrag_eval.metrics import code_switch_share, correct_language_rate

    correct = correct_language_rate([text], [lang], min_chars=1).correct[0]
    if correct is not False:
        return True
    off_script = code_switch_share(text, lang).share or 0.0
    return len(text) <= _JUDGED_FROM and off_script < _OFF_SCRIPT
