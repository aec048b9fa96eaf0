"""Answers in the JSON objects of a response, or in texts that are meant to be one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from mrag_eval.core import JsonFault, json_value
from mrag_eval.metrics._choice_words import normal

OBJECT = re.compile(r"\{[^{}]*\}", re.DOTALL)
_LOOSE_VALUE = re.compile(r":\s*[\"'“\[]*([^\"'”\]},]*)")
_KEYS = frozenset({"answer_choice", "answer", "choice", "final_answer", "correct_answer", "answer_letter", "option"})


def object_claims(group: str, answers: Sequence[str]) -> Iterator[str]:
    """Yield the answers given in a JSON object, or in a text meant to be one, under a key that is a word for answer."""
    try:
        pairs: dict[Any, Any] = json_value(re.sub(r",\s*\}", "}", group), lax=True)
    except JsonFault:
        pairs = dict(_loose_pairs(group))
    for key, value in pairs.items():
        name = normal(str(key).strip())
        if name in _KEYS or name in answers:
            listed = value if isinstance(value, list) else [value]
            yield " , ".join(str(entry) for entry in listed if entry is not None)


def _loose_pairs(group: str) -> Iterator[tuple[str, str]]:
    """Yield ``key: value`` pairs of a text that is almost JSON; quotation marks around either may be missing.

    A key is words with single or several spaces between them, and reaches back from its colon as far as possible.
    """
    start = 0
    while (colon := group.find(":", start)) >= 0:
        key = _loose_key(group, start, colon)
        start = colon + 1
        if key is not None:
            value = _LOOSE_VALUE.match(group, colon)
            assert value is not None
            start = value.end()
            yield key, value[1]


def _loose_key(group: str, start: int, colon: int) -> str | None:
    """Return the key that ends at a colon and begins no earlier than ``start``; None without one."""
    end = len(group[start:colon].rstrip()) + start
    if end > start and group[end - 1] in "\"'”":
        quoted = _last_words(group, start, end - 1)
        if quoted is not None:
            return quoted
    return _last_words(group, start, colon)


def _last_words(group: str, start: int, end: int) -> str | None:
    """Return the words that end there, spaces aside; one space if there are only spaces, None if there is neither."""
    last = len(group[start:end].rstrip()) + start
    first = last
    while first > start and (group[first - 1] in " _" or group[first - 1].isalnum()):
        first -= 1
    return group[first:last].lstrip(" ") or (" " if " " in group[last:end] else None)
