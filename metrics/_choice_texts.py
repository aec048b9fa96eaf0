"""Texts of options inside a response: their spelling and their edges."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache

from mrag_eval.text import NO_SPACE_SCRIPTS, script


def plain_text(text: str) -> str:
    """Return the text in NFKC, case folded, with every run of punctuation, symbols and spaces as one space."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    kept = (char if unicodedata.category(char)[0] in "LMN" else " " for char in folded)
    return " ".join("".join(kept).split())


# Words that are joined to the next one: prepositions, conjunctions and articles.
_PROCLITICS = {
    "Arab": re.compile("[وف]?(?:[بك]?(?:ال)?|لل?)"),
    "Hebr": re.compile("[ובלמהשכ]{0,2}"),
    "Ethi": re.compile("[የበለከ]{0,2}"),
}
_LONGEST_PROCLITIC = 4
# The Turkic copula, written together with the noun: "çörəkdir".
_COPULA = re.compile(r"[dt][ıiuü]r(?!\w)")


def starts_with(text: str, option: str) -> bool:
    return text.startswith(option) and _right_edge(text, len(option))


def occurrences(text: str, texts: Sequence[str]) -> list[tuple[int, int, int]]:
    """Return each option found in a text, with its start and end; a longer option hides shorter ones inside it.

    ``texts`` are options as :func:`plain_text` gives them, found in the text's own plain form.
    """
    plain, origin = _plain_positions(text) if any(texts) else ("", [])
    found: list[tuple[int, int, int]] = []
    # of options of one length the first comes first: the order of a set changes from process to process
    for option in sorted(dict.fromkeys(filter(None, texts)), key=len, reverse=True):
        indices = [i for i, other in enumerate(texts) if other == option]
        # an option found hides what it covers: from the edges of the next ones and from shorter options
        chars = list(plain)
        position = plain.find(option)
        while position >= 0:
            end = position + len(option)
            start = _word_start(chars, position)
            if start is not None and _right_edge(plain, end):
                found.extend((i, origin[start], origin[end - 1] + 1) for i in indices)
                chars[position:end] = "\n" * len(option)
                position = plain.find(option, end)
            else:
                position = plain.find(option, position + 1)
        plain = "".join(chars)
    return found


def _plain_positions(text: str) -> tuple[str, list[int]]:
    """Return the plain text, character by character, and the position in the text that each character comes from."""
    chars: list[str] = []
    origin: list[int] = []
    for at, char in enumerate(text):
        for each in _folded(char):
            if each != " " or (chars and chars[-1] != " "):
                chars.append(each)
                origin.append(at)
    return "".join(chars), origin


@lru_cache(maxsize=4096)
def _folded(char: str) -> str:
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", char).casefold())
    return "".join(each if unicodedata.category(each)[0] in "LMN" else " " for each in folded)


def _word_start(text: Sequence[str], position: int) -> int | None:
    """Return where the word begins that starts there, joined words included; None inside a word."""
    own = script(text[position])
    if position == 0 or own in NO_SPACE_SCRIPTS:
        return position
    start = position
    while start and position - start <= _LONGEST_PROCLITIC and unicodedata.category(text[start - 1])[0] in "LMN":
        start -= 1
    joined = _PROCLITICS.get(own or "")
    if start == position or (joined is not None and joined.fullmatch("".join(text[start:position])) is not None):
        return start
    return None


def _right_edge(text: str, end: int) -> bool:
    # Korean attaches particles to the noun; scripts without spaces have no word boundaries
    if end >= len(text) or unicodedata.category(text[end])[0] not in "LMN":
        return True
    if _COPULA.match(text, end):
        return True
    own = script(text[end - 1])
    follower = script(text[end])
    return own in NO_SPACE_SCRIPTS or own == "Hang" or (follower is not None and own is not None and follower != own)
