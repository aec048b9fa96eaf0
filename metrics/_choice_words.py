"""Words of a reply's language and of English, and where a text has them."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, fields
from functools import lru_cache

from mrag_eval.languages import Words, language
from mrag_eval.text import NO_SPACE_SCRIPTS, script

Span = tuple[int, int]
# Prepositions, conjunctions and articles that a script writes together with the next word.
_PROCLITICS = {
    "Arab": re.compile("[وف]?(?:[بك]?(?:ال)?|لل?)"),
    "Hebr": re.compile("[ובלמהשכ]{1,2}"),
    "Ethi": re.compile("[የበለከ]{1,2}"),
}
_LONGEST_PROCLITIC = 4


@dataclass(frozen=True, slots=True)
class Lexicon:
    """What a reply is read by.

    Attributes:
        words: words of a language and of English, folded, by field.
        labels: labels other than Latin letters -> index.
        letters: labels that are words at the start of a sentence.
    """

    words: dict[str, tuple[str, ...]]
    labels: dict[str, int]
    letters: frozenset[str]

    def spans(self, folded: str, *names: str) -> list[Span]:
        """Return where a folded text has words of some fields, in their order; a longer word hides those inside it."""
        found = sorted(span for name in names for word in self.words[name] for span in _spans(folded, word))
        kept: list[Span] = []
        for start, end in found:
            if kept and start < kept[-1][1]:
                if end - start > kept[-1][1] - kept[-1][0]:
                    kept[-1] = (start, end)
            else:
                kept.append((start, end))
        return kept


def fold(text: str) -> str:
    """Return a text in lower case, of the same length."""
    return text.replace("İ", "I").lower()


@lru_cache(maxsize=64)
def lexicon(lang: str | None) -> Lexicon:
    """Return the words of a language and of English; those of English alone for None or a language without a file."""
    known = [each for code in dict.fromkeys((lang or "en", "en")) if (each := language(code)) is not None]
    words = {
        field.name: tuple(dict.fromkeys(normal(word) for each in known for word in getattr(each.words, field.name)))
        for field in fields(Words)
    }
    labels: dict[str, int] = {}
    for each in known:
        for row in each.labels:
            for index, label in enumerate(unicodedata.normalize("NFKC", row).split()):
                if label != "-":
                    labels |= {label: index, label.lower(): index}
    return Lexicon(words, labels, frozenset(known[0].words.letters))


def normal(text: str) -> str:
    """Return a word as replies are compared: in NFKC, folded, with straight apostrophes."""
    return fold(unicodedata.normalize("NFKC", text).replace("’", "'"))


def _spans(folded: str, word: str) -> list[Span]:
    stem = word.rstrip("~")
    found = []
    at = folded.find(stem)
    while at >= 0:
        end = at + len(stem)
        if starts_word(folded, at) and (stem != word or not continues(folded, end) or script(stem[-1]) == "Hang"):
            while stem != word and continues(folded, end):
                end += 1
            found.append((at, end))
        at = folded.find(stem, end)
    return found


def continues(text: str, at: int) -> bool:
    """Return whether the word before a position goes on there; a letter of another script does not continue it."""
    if not 0 < at < len(text):
        return False
    if unicodedata.category(text[at])[0] == "M":
        return True
    own, next_one = (
        "digit" if char.isdecimal() else script(char) for char in (text[at - 1], text[at])
    )
    if "digit" in (own, next_one):
        return {own, next_one} <= {"digit", "Latn"}
    return own is not None and own == next_one and own not in NO_SPACE_SCRIPTS


def starts_word(text: str, at: int) -> bool:
    """Return whether a word starts at a position, the letters aside that a script joins to it."""
    if not continues(text, at):
        return True
    joined = _PROCLITICS.get(script(text[at]) or "")
    start = at
    while joined and continues(text, start) and at - start <= _LONGEST_PROCLITIC:
        start -= 1
    return joined is not None and joined.fullmatch(text[start:at]) is not None
