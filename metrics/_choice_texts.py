"""Texts of options inside a response: their spelling, their edges, and the words before them."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import Final

from mrag_eval.metrics._scripts import NO_SPACE_SCRIPTS, script


def plain_text(text: str) -> str:
    """Return the text in NFKC, case folded, with every run of punctuation, symbols and spaces as one space."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    kept = (char if unicodedata.category(char)[0] in "LMN" else " " for char in folded)
    return " ".join("".join(kept).split())


# Words that are joined to the next one: Arabic, Hebrew and Ethiopic prepositions and articles.
_PROCLITICS = {"Arab": "وفبلك", "Hebr": "ובלמהשכ", "Ethi": "የበለከ"}


def starts_with(text: str, option: str) -> bool:
    return text.startswith(option) and _right_edge(text, len(option))


def contained(text: str, texts: Sequence[str]) -> set[int]:
    """Return the indices of the options whose text occurs in the text; a longer option hides shorter ones inside it."""
    return {index for index, _ in occurrences(text, texts)}


def occurrences(text: str, texts: Sequence[str]) -> list[tuple[int, str]]:
    """Return each option found in the text, with the end of the text before it, as :func:`words_before` gives it."""
    found: list[tuple[int, str]] = []
    # of options of one length the first comes first: the order of a set changes from process to process
    for option in sorted(dict.fromkeys(filter(None, texts)), key=len, reverse=True):
        indices = [i for i, other in enumerate(texts) if other == option]
        # an option found hides what it covers: from the edges of the next ones and from shorter options
        chars = list(text)
        words_end = last_end = 0
        position = text.find(option)
        while position >= 0:
            end = position + len(option)
            if _left_edge(chars, position) and _right_edge(text, end):
                for at in range(position, last_end, -1):
                    if chars[at - 1] not in " \n":
                        words_end = at
                        break
                last_end = end
                end_of_text = _ending(chars, words_end, position)
                found.extend((i, end_of_text) for i in indices)
                chars[position:end] = "\n" * len(option)
                position = text.find(option, end)
            else:
                position = text.find(option, position + 1)
        text = "".join(chars)
    return found


# More characters than a negation or a connective has, with the spaces around it.
_REACH: Final = 32


def words_before(text: str, at: int) -> str:
    """Return the end of the text before a position, enough to find a negation or a connective that ends there."""
    start = at
    while start and (text[start - 1] in "([*_" or text[start - 1].isspace()):
        start -= 1
    return _ending(text, start, at)


def _ending(text: Sequence[str], words_end: int, at: int) -> str:
    """Return the end of the text before ``at``, given where its last word ends; long spaces behind that are cut."""
    start, half = max(0, words_end - _REACH), _REACH // 2
    if at - words_end <= _REACH:
        return "".join(text[start:at])
    return "".join((*text[start : words_end + half], *text[at - half : at]))


def _left_edge(text: Sequence[str], position: int) -> bool:
    own = script(text[position])
    if position == 0 or own in NO_SPACE_SCRIPTS:
        return True
    joined = _PROCLITICS.get(own or "", "")
    for length in range(4):
        if position == length or unicodedata.category(text[position - length - 1])[0] not in "LMN":
            return length <= 2
        if text[position - length - 1] not in joined:
            return False
    return False


def _right_edge(text: str, end: int) -> bool:
    # Korean attaches particles to the noun; scripts without spaces have no word boundaries
    if end >= len(text) or unicodedata.category(text[end])[0] not in "LMN":
        return True
    own = script(text[end - 1])
    follower = script(text[end])
    return own in NO_SPACE_SCRIPTS or own == "Hang" or (follower is not None and own is not None and follower != own)
