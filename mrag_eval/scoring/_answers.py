"""Reading of the answer from a reply, in the form that the prompt asked for."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mrag_eval.core import Marks, ModelReply, split_thinking
from mrag_eval.platform import DataError

_TAG = re.compile(r"<answer>(.*?)(?:</answer>|$)", re.IGNORECASE | re.DOTALL)
# With the emphasis that models put around it.
_LINE = re.compile(r"^[ \t>#*_-]*answer[ \t*_]*[:：][ \t*_]*(\S.*)$", re.IGNORECASE | re.MULTILINE)
# The reply with which a prompt may let a model pass, in the language of the prompt.
_NONE = "none"


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer as read. ``tagged``: whether it was in the tag, None if no tag was asked for.

    ``declined``: whether the tag holds ``None``, the reply by which a model says that it does not know; None if the
    prompt does not offer that.
    """

    text: str
    tagged: bool | None = None
    declined: bool | None = None


def parse_answer(reply: str, form: str, *, may_decline: bool = False, marks: Sequence[Marks] = ()) -> Answer:
    """Return the answer in ``reply``; the whole reply if the form was not kept.

    ``form`` is ``plain`` (all of it), ``tag`` (inside the last ``<answer>``), ``line`` (behind ``Answer:`` on the last
    line that begins so), ``choice`` (all of it: the choice extractor reads that line, and knows the word in more
    languages), or ``citation`` (all of it: option and citations are read from its parts). Thinking is left out
    first, by the marks that are known and ``marks``. ``may_decline``: whether the prompt offered the reply ``None``;
    otherwise it is an answer.
    """
    text = split_thinking(reply, marks).answer.strip()
    if form == "line":
        lines = _LINE.findall(text)
        return Answer(lines[-1].strip(" \t*_[]") if lines else text)
    if form != "tag":
        return Answer(text)
    found = _TAG.findall(text)
    if not found:
        return Answer(text, tagged=False, declined=False if may_decline else None)
    inside = found[-1].strip()
    none = inside.strip("'\"`.").casefold() == _NONE
    return Answer(inside, tagged=True, declined=none if may_decline else None)


def outcome_of(reply: str, answer: Answer, marks: Sequence[Marks] = ()) -> str | None:
    """Return how a model gave no answer to read, one of :data:`~mrag_eval.core.OUTCOMES`; None if it gave one.

    It is what the provider says; without that, what the reply shows.
    """
    if isinstance(reply, ModelReply) and reply.outcome is not None:
        return reply.outcome
    if answer.text.strip():
        return None
    return "thinking cut" if split_thinking(reply, marks).cut else "empty"


def reference_of(row: Mapping[str, Any]) -> str:
    """Return the reference that samples show as a row's target: the right letter, else its first answer, if any."""
    if row.get("gold_choice") is not None:
        return chr(65 + int(row["gold_choice"]))
    return str(row["answers"][0]) if row.get("answers") else ""


def option_texts(row: Mapping[str, Any]) -> list[str]:
    """Return the options as shown and scored: ``A) name``. Raise DataError without options."""
    if not row.get("choices"):
        raise DataError(
            f"row '{row['id']}' has no choices, whose likelihoods output_type multiple_choice compares",
            "use output_type generate_until",
        )
    return [f"{chr(65 + i)}) {choice}" for i, choice in enumerate(row["choices"])]
