"""Answers in English to questions in other languages, where a benchmark knows them."""

from __future__ import annotations

from mrag_eval.core import same_language
from mrag_eval.datasets._base import Benchmark


def english_answers(benchmark: Benchmark) -> dict[str, str]:
    """Return the first answer in English by row id, for rows whose question is in another language.

    It comes from the row itself (``en_answer``, the English spellings of its votes), from the loader
    (:attr:`Benchmark.english`), or from the row that asks the same question in English.
    """
    asked_in_english = {
        question: doc.answers[0]
        for doc in benchmark.docs
        if (question := doc.extra.get("question_id")) is not None
        and same_language(doc.query_lang, "en")
        and doc.answers
    }
    found = {}
    for doc in benchmark.docs:
        if same_language(doc.query_lang, "en"):
            continue
        voted = (form for entry in doc.extra.get("votes") or () for form in entry.get("en_answers") or ())
        own = str(doc.extra.get("en_answer") or "") or next(map(str, voted), None)
        answer = own or benchmark.english.get(doc.id) or asked_in_english.get(doc.extra.get("question_id"))
        if answer:
            found[doc.id] = answer
    return found
