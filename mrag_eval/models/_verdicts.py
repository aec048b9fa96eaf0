"""Parsers of a judge's verdict, in JSON or in a tag.

A reply with two different verdicts gives no verdict: one of them may be quoted from the text under judgement.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mrag_eval.models._lenient_json import storable
from mrag_eval.models._replies import (
    LONGEST_REPLY,
    Parsed,
    Quoted,
    json_objects,
    key_in,
    no_quotation,
    tag_contents,
    why_no_json,
)

_TRUE_WORDS = frozenset({"true", "yes", "correct"})
_FALSE_WORDS = frozenset({"false", "no", "incorrect"})
_JUSTIFICATION = "justification"


@dataclass(frozen=True)
class Verdict:
    """A judge's verdict and, if one was requested, its justification."""

    holds: bool
    justification: str = ""


def as_verdict(value: Any) -> bool | None:
    """Return True or False for a boolean or a word for one, whatever its case and punctuation; else None."""
    if isinstance(value, bool):
        return value
    if not isinstance(value, str):
        return None
    word = value.strip(" \t\r\n.,;:!*_`'\"“”‘’()[]").casefold()
    return True if word in _TRUE_WORDS else False if word in _FALSE_WORDS else None


def parse_verdict_json(text: str, key: str, words: str) -> Parsed[Verdict]:
    """Return the verdict of the JSON object that has it under ``key``, together with a justification.

    ``words`` are those of a verdict, for the fault. A verdict is refused if a key of it comes again after it, since a
    quotation may have closed the object too early, and if an unreadable object has its keys as well.
    """
    text = text[-LONGEST_REPLY:]
    required = (_JUSTIFICATION, key)
    objects, faults = json_objects(text)
    complete = [found for found in objects if all(name in found.value for name in required)]
    if not complete:
        return Parsed(None, why_no_json(objects, faults, required))
    last = complete[-1]
    holds = as_verdict(last.value[key])
    if holds is None:
        return Parsed(None, f"'{key}' is {storable(last.value[key])!r:.60}, neither {words}")
    again = key_in(text[last.end :], required)
    if again is not None:
        return Parsed(None, f"the key '{again}' comes again after the end of the JSON object")
    unread = any(all(key_in(text[at.start : at.end], (name,)) for name in required) for at in faults)
    if unread or _differ(holds, [found.value[key] for found in complete]):
        return Parsed(None, _TWO)
    reason = storable(last.value[_JUSTIFICATION])
    return Parsed(Verdict(holds, reason if isinstance(reason, str) else ""))


_TWO = "the reply gives two different verdicts"


def parse_verdict_tag(text: str, tag: str, quoted: Quoted = no_quotation) -> Parsed[Verdict]:
    """Return the verdict inside a tag; the text before the tag is the justification."""
    text = text[-LONGEST_REPLY:]
    found, fault = tag_contents(text, tag)
    own = [part for part in found if not quoted(text, part.start, part.end)]
    if not own:
        return Parsed(None, "the only verdict in the reply is quoted" if found else fault)
    said = own[-1].value
    holds = as_verdict(said)
    if holds is None:
        return Parsed(None, f"<{tag}> holds {said!r:.60}, neither 'true' nor 'false'")
    if _differ(holds, [part.value for part in own]):
        return Parsed(None, _TWO)
    return Parsed(Verdict(holds, re.split(rf"(?i)<\s*{re.escape(tag)}\s*>", text)[0].strip()))


def _differ(holds: bool, values: Sequence[Any]) -> bool:
    """Return whether one of the values is the opposite verdict."""
    return any(as_verdict(value) is (not holds) for value in values)
