"""Parsers of a judge's verdict, in JSON or in a tag.

A reply with two different verdicts gives no verdict: one of them may be quoted from the text under judgement.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mrag_eval.core import YES_NO, VerdictScale, VerdictValue
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

_JUSTIFICATION = "justification"


@dataclass(frozen=True)
class Verdict:
    """A judge's verdict and, if they were requested, its justification and the place of a passage, from 1."""

    verdict: VerdictValue
    justification: str = ""
    passage: int | None = None


def parse_verdict_json(
    text: str, key: str, words: str, scale: VerdictScale = YES_NO, required: Sequence[str] = ()
) -> Parsed[Verdict]:
    """Return the verdict of the JSON object that has it under ``key``, together with a justification.

    ``words`` says in the fault what is no verdict on the ``scale``. A verdict is refused if a key of it comes again
    after it, since a quotation may have closed the object too early, and if an unreadable object has its keys as well.
    ``required`` are its keys if they are others: of a key that no quotation can have, that one alone.
    """
    text = text[-LONGEST_REPLY:]
    required = required or (_JUSTIFICATION, key)
    objects, faults = json_objects(text)
    complete = [found for found in objects if all(name in found.value for name in required)]
    if not complete:
        return Parsed(None, why_no_json(objects, faults, required))
    last = complete[-1]
    verdict = scale.read(last.value[key])
    if verdict is None:
        return Parsed(None, f"'{key}' is {storable(last.value[key])!r:.60}, {words}")
    again = key_in(text[last.end :], required)
    if again is not None:
        return Parsed(None, f"the key '{again}' comes again after the end of the JSON object")
    unread = any(all(key_in(text[at.start : at.end], (name,)) for name in required) for at in faults)
    if unread or _differ(scale, verdict, [found.value[key] for found in complete]):
        return Parsed(None, _TWO)
    reason = storable(last.value.get(_JUSTIFICATION))
    return Parsed(Verdict(verdict, reason if isinstance(reason, str) else ""))


_TWO = "the reply gives two different verdicts"


def parse_verdict_tag(
    text: str,
    tag: str,
    quoted: Quoted = no_quotation,
    words: str = "neither 'true' nor 'false'",
    scale: VerdictScale = YES_NO,
) -> Parsed[Verdict]:
    """Return the verdict on a ``scale`` inside a tag; the text before the tag is the justification."""
    text = text[-LONGEST_REPLY:]
    found, fault = tag_contents(text, tag)
    own = [part for part in found if not quoted(text, part.start, part.end)]
    if not own:
        return Parsed(None, "the only verdict in the reply is quoted" if found else fault)
    said = own[-1].value
    verdict = scale.read(said)
    if verdict is None:
        return Parsed(None, f"<{tag}> holds {said!r:.60}, {words}")
    if _differ(scale, verdict, [part.value for part in own]):
        return Parsed(None, _TWO)
    return Parsed(Verdict(verdict, re.split(rf"(?i)<\s*{re.escape(tag)}\s*>", text)[0].strip()))


def _differ(scale: VerdictScale, verdict: VerdictValue, values: Sequence[Any]) -> bool:
    """Return whether one of the values is another verdict."""
    return any(scale.read(value) not in (None, verdict) for value in values)
