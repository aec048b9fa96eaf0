"""Answers in the JSON objects of a response, or in texts that are meant to be one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from mrag_eval.core import JsonFault, json_value
from mrag_eval.metrics._choice_words import normal

OBJECT = re.compile(r"\{[^{}]*\}", re.DOTALL)
# A key is read from its colon backwards, so that each letter is looked at once.
_KEY_BACKWARDS = re.compile(r"\s*[\"'”]?\s*([\w ]*)")
_VALUE = re.compile(r"\s*[\"'“\[]*([^\"'”\]},]*)")
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
    """Yield ``key: value`` pairs of a text that is almost JSON; quotation marks around either may be missing."""
    for before, behind in pairwise(group.strip("{}").split(":")):
        key, value = _KEY_BACKWARDS.match(before[::-1]), _VALUE.match(behind)
        if key is not None and value is not None:
            yield key[1][::-1], value[1]
