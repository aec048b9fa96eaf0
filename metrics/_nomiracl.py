"""NoMIRACL's reading of a reply: an answer is present, it is not, or the reply says neither."""

from __future__ import annotations

import re
from typing import Literal

from mrag_eval.platform import MetricError

Presence = Literal["present", "absent", "invalid"]
_PRESENT, _ABSENT = "yes, answer is present", "i don't know"
# A reply that is hardly more than the number of a passage points at it.
_SHORT = 10
_NUMBER = re.compile(r"\[\d+\]")


def nomiracl_reading(reply: str) -> Presence:
    """Return what a reply to NoMIRACL's prompt says, in the upstream reading, faults included.

    The case of letters does not count. A reply that holds one of the two sentences asked for says that, wherever it
    stands; one that holds both is ``invalid``. Without either, ``answer is present``, ``answer is
    not present``, and a passage number in fewer than ten characters are read. Everything else is ``invalid``, a refusal
    in other words (``I do not know``) or with a typographic apostrophe included.

    Raises:
        MetricError: the reply is not a string.

    Source: NoMIRACL (Thakur et al., 2024) and its authors' code.
    """
    if not isinstance(reply, str):
        raise MetricError(f"reply must be a string, got {type(reply).__name__}")
    text = reply.replace("\n", " ").replace("\t", " ").lower()
    present, absent = _PRESENT in text, _ABSENT in text
    if present or absent:
        return "invalid" if present and absent else "present" if present else "absent"
    if "answer is present" in text:
        return "present"
    if "answer is not present" in text:
        return "absent"
    return "present" if len(text) < _SHORT and _NUMBER.search(text) else "invalid"
