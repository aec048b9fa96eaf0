"""Marks of citations in a reply: those that are read, and all that are taken out."""

from __future__ import annotations

import re

# Digits of any script between brackets of any width count passages from 1; ``<doc0>`` counts from 0.
_SEPARATOR = "[,;،؛、，；]"
READ = re.compile(
    rf"[\[［【] ?\d{{1,4}}(?: ?{_SEPARATOR} ?\d{{1,4}})* ?[\]］】]|<doc[0-9]+(?:,[0-9]+)*>"
)  # fmt: skip
# The forms that replies have beside these: ranges, footnotes, and names of passages. No metric counts them, since what
# they count from is not known.
_CITED = r"(?:\^|(?:doc(?:ument)?|passage|source|context|ref(?:erence)?)s?[ _#-]?)?\d{1,4}"
_LIST = rf"{_CITED}(?: ?(?:{_SEPARATOR}|[–—~-]) ?{_CITED})*"
_ANY = re.compile(
    rf"{READ.pattern}|[\[［【] ?{_LIST} ?[\]］】]|< ?doc ?{_LIST} ?>|【[\d:]{{1,9}}†[^】\n]{{0,80}}】", re.IGNORECASE
)
_OPENING = "[［【<"


def without_citations(reply: str) -> str:
    """Return a reply with spaces in place of its citations of any form, so that the places in it stay the same."""
    if not any(mark in reply for mark in _OPENING):
        return reply
    return _ANY.sub(lambda mark: " " * len(mark[0]), reply)


def cites_unread(reply: str) -> bool:
    """Return whether a reply has a citation in a form that is not read."""
    return any(READ.fullmatch(mark[0]) is None for mark in _ANY.finditer(reply))
