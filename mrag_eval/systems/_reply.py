"""The reply of a system to one question, read from whatever it returns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from mrag_eval.platform import LONGEST_ANSWER, DataError, plain
from mrag_eval.systems._contexts import check_passages
from mrag_eval.systems._parts import PASSAGE, LogReading, reading_of
from mrag_eval.systems._places import path_in, value_at
from mrag_eval.systems._terms import completion_in, in_own_terms

_PATHS = "say where they are: answer=PATH,contexts=PATH in --model_args   (docs/score.md)"


@dataclass(frozen=True)
class SystemReply:
    """What a RAG system replies to one question.

    Attributes:
        answer: its text.
        contexts: what the answer was made from, best first: texts, dictionaries or objects of a framework; None if the
            system shows none.
        usage: counts of tokens by the names of providers (``prompt_tokens``, ``completion_tokens``), if it tells any.
        completion: the chat completion whose text the answer is, which may tell of a refusal instead; None if it is
            none. :func:`reply_of` fills it in.
    """

    answer: str
    contexts: Sequence[Any] | None = None
    usage: Mapping[str, Any] | None = None
    completion: Mapping[str, Any] | None = field(default=None, kw_only=True)


_PLACED = sum(not part.kw_only for part in fields(SystemReply))


def reply_of(value: Any, reading: LogReading | None = None) -> SystemReply:
    """Return a reply with its contexts as dictionaries (``text``, ``id``, ``lang``, ``title``, ``score``, ``doc_id``).

    Args:
        value: a text, a tuple or record of :class:`SystemReply`'s parts, a row as logs have them, or an object that
            has one of these as its dictionary.
        reading: where the parts are, if the user says so; then each path must be there.

    Raises:
        DataError: naming the path, the keys of a reply without an answer, or those under which it has texts where
            nothing keeps contexts, if it has no others.
    """
    if isinstance(value, str):
        return SystemReply(_bounded(value))
    if isinstance(value, tuple) and 0 < len(value) <= _PLACED:
        value = SystemReply(*value)
    if isinstance(value, SystemReply):
        value = {"reply": value.answer, "passages": value.contexts, "usage": value.usage}
    row = plain(value)
    if not isinstance(row, Mapping):
        raise DataError(f"the reply is neither a text nor has keys, found {type(value).__name__}", _PATHS)
    keys = ", ".join(map(str, row))[:200] or "none"
    told = reading is not None
    if reading is None:
        reading = replace(reading_of([row]), own=False)
    completion = completion_in(row, reading)
    if not told:
        if not {"answer", "contexts", "context_ids"} & reading.paths.keys() and completion is None:
            raise DataError(f"the reply has no part that is known; its keys: {keys}", _PATHS)
        texts = [key for key in reading.unread(row) if completion is None and _holds_texts(row[key])]
        if texts and not {"contexts", "context_ids"} & reading.paths.keys():
            raise DataError(f"the reply has texts, but no contexts that are known, under {', '.join(texts)}", _PATHS)
    for part in ("answer", "contexts") if told and completion is None else ():
        if any(not path_in(row, path) for path in reading.paths.get(part, ())):
            raise DataError(f"the reply has nothing at '{reading.paths[part][0]}'; its keys: {keys}", _PATHS)
    found = in_own_terms(row, reading, "the reply")
    if "reply" not in found and completion is None:
        raise DataError(f"the reply has no answer; its keys: {keys}", _PATHS)
    listed = found.get("passages")
    check_passages(listed or (), "the reply, passages")
    _bounded(found.get("reply", ""), *(str(part) for item in listed or () for part in item.values()))
    usage = row.get("usage")
    return SystemReply(
        found.get("reply", ""),
        None if listed is None else [_stored(item) for item in listed],
        usage if isinstance(usage, Mapping) else None,
        completion=completion,
    )


def _bounded(answer: str, *contexts: str) -> str:
    """Return an answer; raise DataError if it is, with its contexts, longer than what a service may send."""
    size = sum(map(len, (answer, *contexts)))
    if size > LONGEST_ANSWER:
        raise DataError(f"the reply has {size:,} characters, more than {LONGEST_ANSWER:,}", "return less text")
    return answer


def _holds_texts(value: Any) -> bool:
    """Return whether a value is, or has at a key, a list of texts, as contexts are."""
    if isinstance(value, Mapping):
        return any(map(_holds_texts, value.values()))
    return bool(value) and isinstance(value, list) and all(map(_text, value))


def _text(item: Any) -> bool:
    return isinstance(item, str) or any(isinstance(value_at(item, path), str) for path in PASSAGE["text"])


def _stored(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return a context as JSON holds it."""
    return {key: float(part) if key == "score" else str(part) for key, part in item.items() if part is not None}
