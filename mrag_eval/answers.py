"""Reading the answer off a reply, in the form the prompt asked for."""

from __future__ import annotations

import re

_TAG = re.compile(r"<answer>(.*?)(?:</answer>|$)", re.IGNORECASE | re.DOTALL)
_THINKING = re.compile(r"<think(?:ing)?>.*?</think(?:ing)?>", re.IGNORECASE | re.DOTALL)


def read_answer(reply: str, form: str) -> str:
    """The answer in ``reply``; the whole reply where the form was not kept.

    ``form`` is ``plain`` (all of it), ``tag`` (inside the last ``<answer>``), or ``line`` (all of it: the choice
    extractor reads the last ``Answer:`` line, and knows that word in more languages). A reasoning model's thinking is
    left out first.
    """
    text = _THINKING.sub("", reply)
    if "</think>" in text:
        text = text.rpartition("</think>")[2]
    text = text.strip()
    if form == "tag":
        found = _TAG.findall(text)
        return found[-1].strip() if found else text
    return text
