"""Metrics of abstention: replies that decline although a passage shown answers, and that answer although none does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, get_args

from mrag_eval import metrics
from mrag_eval.core import ANSWERABLE, Scored, Value
from mrag_eval.metrics import Presence
from mrag_eval.scoring._ranking import shown
from mrag_eval.scoring._reasons import ANSWER_SHOWN, NO_ANSWER_SHOWN, NO_PASSAGES, NO_RELEVANT
from mrag_eval.scoring._reply_values import Batch, by_row, refusals_unread

Fault = Literal["error", "hallucination"]
# What a reply claims: that an answer is there, that none is, or neither; or why its claim cannot be read.
Reading = Callable[[Scored], Presence | str]
_PRESENCES = get_args(Presence)


def answerable(row: Scored) -> bool | str:
    """Return whether a passage shown answers the row's question, or the reason why that is not known.

    Labels or relevant ids decide; without any, what the row says of its passages.
    """
    if not row.passages:
        return NO_PASSAGES
    (found,) = shown([row])
    if found == NO_RELEVANT:
        stated = row.doc.extra.get(ANSWERABLE)
        return stated if isinstance(stated, bool) else found
    return found if isinstance(found, str) else found == 1.0


def by_words(row: Scored) -> Presence | str:
    """Return whether a reply declines, by its tag or in words; one without any text declines, too.

    In a language whose refusals cannot be read, no reply is: only refusals in English would be known.
    """
    lang = row.doc.query_lang
    if row.declined is None and (why := refusals_unread(lang)) is not None:
        return why
    if row.declined or not row.answer.strip():
        return "absent"
    return "absent" if metrics.declines(row.answer, lang, row.doc.choices or ()) else "present"


def by_nomiracl(row: Scored) -> Presence | str:
    """Return what a reply says in NoMIRACL's own sentences, whatever the language of the question."""
    return metrics.nomiracl_reading(row.answer)


def rate(fault: Fault, reading: Reading) -> Batch:
    """Return a rate as NoMIRACL defines it: ``error`` on the rows with an answer, ``hallucination`` on those without.

    A row has 1 if the reply claims the opposite. A reply that claims neither has 0.
    """

    def value(row: Scored) -> Value:
        there = answerable(row)
        if isinstance(there, str):
            return there
        if there is not (fault == "error"):
            return ANSWER_SHOWN if there else NO_ANSWER_SHOWN
        said = reading(row)
        return float(said == ("absent" if there else "present")) if said in _PRESENCES else said

    return by_row(value)


@by_row
def nomiracl_accuracy(row: Scored) -> Value:
    """Return 1 if the reply says rightly whether an answer is among the passages."""
    there = answerable(row)
    return there if isinstance(there, str) else float(by_nomiracl(row) == ("present" if there else "absent"))


@by_row
def nomiracl_invalid(row: Scored) -> Value:
    """Return 1 for a reply with neither of the two sentences, or with both."""
    there = answerable(row)
    return there if isinstance(there, str) else float(by_nomiracl(row) == "invalid")
