"""Reading the answer off a reply, in the form the prompt asked for."""

from __future__ import annotations

import re
from dataclasses import dataclass

_TAG = re.compile(r"<answer>(.*?)(?:</answer>|$)", re.IGNORECASE | re.DOTALL)
# With the emphasis that models put around it.
_LINE = re.compile(r"^[ \t>#*_-]*answer[ \t*_]*[:：][ \t*_]*(\S.*)$", re.IGNORECASE | re.MULTILINE)
# Closed, or cut off by the limit of tokens: what was never finished holds no answer.
_THINKING = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|$)", re.IGNORECASE | re.DOTALL)
# The reply by which a prompt without passages lets a model pass, in the language of the prompt.
_NONE = "none"


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer as read. ``tagged`` says whether it stood in the tag, None where none was asked for.

    ``declined``: the tag holds ``None``, the reply by which a model says that it does not know.
    """

    text: str
    tagged: bool | None = None
    declined: bool = False


def parse_answer(reply: str, form: str) -> Answer:
    """The answer in ``reply``; the whole reply where the form was not kept.

    ``form`` is ``plain`` (all of it), ``tag`` (inside the last ``<answer>``), ``line`` (behind ``Answer:`` on the last
    line that begins so), ``choice`` (all of it: the choice extractor reads that line, and knows the word in more
    languages), or ``citation`` (all of it: option and citations are read from its parts). A reasoning model's thinking
    is left out first.
    """
    text = _THINKING.sub("", reply)
    if "</think>" in text:
        text = text.rpartition("</think>")[2]
    text = text.strip()
    if form == "line":
        lines = _LINE.findall(text)
        return Answer(lines[-1].strip(" \t*_[]") if lines else text)
    if form != "tag":
        return Answer(text)
    found = _TAG.findall(text)
    if not found:
        return Answer(text, tagged=False)
    inside = found[-1].strip()
    return Answer(inside, tagged=True, declined=inside.strip("'\"`.").casefold() == _NONE)
