"""Texts of options inside a reply: their spelling and their edges."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache

from mrag_eval.metrics._choice_words import fold, starts_word
from mrag_eval.metrics._word_edges import within
from mrag_eval.text import NO_SPACE_SCRIPTS, marks, script

# The fewest letters of an option that is also found with an ending, and the most letters of an ending.
_INFLECTED, _LONGEST_ENDING = 4, 4


@lru_cache(maxsize=1)
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return the patterns of a word and of what stands between two words."""
    return re.compile(rf"(?:[^\W_]|[{marks()}])+"), re.compile(rf"(?:_|[^\w{marks()}])+")


@lru_cache(maxsize=4096)
def plain_text(text: str) -> str:
    """Return the text in NFKC, case folded, with every run of punctuation, symbols and spaces as one space."""
    return " ".join(_patterns()[0].findall(fold(unicodedata.normalize("NFKC", text))))


def occurrences(folded: str, start: int, end: int, options: tuple[str, ...]) -> list[tuple[int, int, int]]:
    """Return each option that begins in a part of a text, with its start and end, in the order of the text.

    A longer one goes before those that start with it. ``options`` as :func:`plain_text` gives them; the text in NFKC,
    folded. Not sought are options of one letter or digit, which many texts hold by chance, and those that are there
    twice.
    """
    found = []
    for index, words, longest in _sought(options):
        at = folded.find(words[0], start, end)
        while at >= 0:
            last = _end(folded, at, words, longest)
            if last is not None and starts_word(folded, at):
                found.append((index, at, last))
            at = folded.find(words[0], at + len(words[0]), end)
    return sorted(found, key=lambda each: (each[1], -each[2])) if len(found) > 1 else found


@lru_cache(maxsize=1024)
def _sought(options: tuple[str, ...]) -> list[tuple[int, list[str], int]]:
    """Return the options that are sought, the longest first: index, words, and the most letters of an ending.

    The last letter is left out where declension may change it.
    """
    found = []
    for index, option in sorted(enumerate(options), key=lambda each: -len(each[1])):
        unspaced = option and script(option[-1]) in {"Hang", *NO_SPACE_SCRIPTS}
        if (len(option) < 2 and not unspaced) or options.count(option) > 1:
            continue
        inflects = len(option) >= _INFLECTED and not unspaced and script(option[-1]) is not None
        changes = inflects and len(option) > _INFLECTED + 1 and option[-2] != " "
        found.append((index, option[: len(option) - changes].split(" "), _LONGEST_ENDING * inflects))
    return found


def _end(folded: str, at: int, words: Sequence[str], longest: int) -> int | None:
    """Return where words end of which the first is at a position, with an ending; None if they do not stand there."""
    end = at + len(words[0])
    for word in words[1:]:
        gap = _patterns()[1].match(folded, end)
        if gap is None or not folded.startswith(word, gap.end()):
            return None
        end = gap.end() + len(word)
    if script(folded[end - 1]) == "Hang":
        # Korean attaches particles to the noun
        return end
    last = end
    while last - end <= longest and within(folded, last):
        last += 1
    return last if last - end <= longest else None
