"""Words of a reply's language and of English, and where a text has them."""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache, lru_cache
from itertools import chain
from typing import Final

from mrag_eval.languages import Words, language
from mrag_eval.text import NO_SPACE_SCRIPTS, script

Span = tuple[int, int]
# Fields whose words are sought all over a reply.
_SOUGHT: Final = (
    "answer", "concludes", "tentative", "option", "option_after", "wrong", "rejects", "joins", "refuses"
)  # fmt: skip
# Prepositions, conjunctions and articles that a script writes together with the next word.
_PROCLITICS = {
    "Arab": re.compile("[وف]?(?:[بك]?(?:ال)?|لل?)"),
    "Hebr": re.compile("[ובלמהשכ]{1,2}"),
    "Ethi": re.compile("[የበለከ]{1,2}"),
}
_LONGEST_PROCLITIC = 4
_RUN: Final = re.compile(r"[^\W\d_]+")


@dataclass(frozen=True, slots=True, eq=False)
class Lexicon:
    """The words and labels that a reply is read with.

    Attributes:
        words: words of a language and of English, folded, by field.
        labels: labels other than Latin letters -> index.
        letters: labels that are words at the start of a sentence.
        index: first three characters of a word, or all of a shorter one -> stems, whether they take endings, fields.
    """

    words: Mapping[str, tuple[str, ...]]
    labels: Mapping[str, int]
    letters: frozenset[str]
    index: Mapping[str, tuple[tuple[str, bool, str], ...]]

    def spans(self, folded: str) -> dict[str, list[Span]]:
        """Return where a folded text has words, by field and in their order; a longer word hides those inside it."""
        found: dict[str, list[Span]] = {field: [] for field in _SOUGHT}
        index = self.index
        for at in _starts(folded):
            first = folded[at : at + 3]
            known = first in index or first[:2] in index or first[0] in index
            if known and starts_word(folded, at):
                for key in dict.fromkeys((first, first[:2], first[0])):
                    for stem, endings, field in index.get(key, ()):
                        if folded.startswith(stem, at):
                            _add(found[field], at, _end(folded, at + len(stem), endings))
        return found


def _starts(folded: str) -> list[int]:
    """Return where words may start: with a run of letters, and inside where a script joins words or has no spaces."""
    found = []
    for match in _RUN.finditer(folded):
        start, end = match.span()
        found.append(start)
        if end > start + 1 and not match[0].isascii():
            own = _kind(folded[start])
            if own in _PROCLITICS:
                found += range(start + 1, min(end, start + _LONGEST_PROCLITIC + 1))
            elif own in NO_SPACE_SCRIPTS or folded[start].isascii():
                found += range(start + 1, end)
    return found


def _end(folded: str, end: int, endings: bool) -> int:
    """Return the end of a word found in a text; 0 inside a longer word, unless it takes endings."""
    if endings:
        while continues(folded, end):
            end += 1
        return end
    return 0 if continues(folded, end) and script(folded[end - 1]) != "Hang" else end


def _add(spans: list[Span], start: int, end: int) -> None:
    if not end:
        return
    if spans and start < spans[-1][1]:
        if end - start > spans[-1][1] - spans[-1][0]:
            spans[-1] = (start, end)
    else:
        spans.append((start, end))


def fold(text: str) -> str:
    """Return a text in lower case, of the same length."""
    return text.replace("İ", "I").lower()


def lexicon(lang: str | None) -> Lexicon:
    """Return the words of a language and of English; those of English alone for None or a language without a file."""
    known = [each for code in dict.fromkeys((lang or "en", "en")) if (each := language(code)) is not None]
    return _lexicon(tuple(each.words for each in known), tuple(each.labels for each in known))


@lru_cache(maxsize=64)
def _lexicon(known: tuple[Words, ...], rows: tuple[tuple[str, ...], ...]) -> Lexicon:
    words = {
        each.name: tuple(dict.fromkeys(normal(word) for own in known for word in getattr(own, each.name)))
        for each in fields(Words)
    }
    labels: dict[str, int] = {}
    for row in chain.from_iterable(rows):
        for order, label in enumerate(unicodedata.normalize("NFKC", row).split()):
            if label != "-":
                labels |= {label: order, label.lower(): order}
    index: dict[str, list[tuple[str, bool, str]]] = defaultdict(list)
    for field in _SOUGHT:
        for word in words[field]:
            stem = word.rstrip("~")
            index[stem[:3]].append((stem, stem != word, field))
    return Lexicon(words, labels, frozenset(known[0].letters), {key: tuple(each) for key, each in index.items()})


def normal(text: str) -> str:
    """Return a word as replies are compared: in NFKC, folded, with straight apostrophes."""
    return fold(unicodedata.normalize("NFKC", text).replace("’", "'"))


def continues(text: str, at: int) -> bool:
    """Return whether a word continues at a position. A letter of another script does not continue it."""
    if not 0 < at < len(text):
        return False
    before, kind = _kind(text[at - 1]), _kind(text[at])
    if kind == "mark":
        return True
    if "digit" in (before, kind):
        return before in ("digit", "Latn") and kind in ("digit", "Latn")
    return before == kind != "" and kind not in NO_SPACE_SCRIPTS


@cache
def _kind(char: str) -> str:
    if unicodedata.category(char)[0] == "M":
        return "mark"
    return "digit" if char.isdecimal() else script(char) or ""


def starts_word(text: str, at: int) -> bool:
    """Return whether a word starts at a position, the letters aside that a script joins to it."""
    if not continues(text, at):
        return True
    joined = _PROCLITICS.get(script(text[at]) or "")
    start = at
    while joined and continues(text, start) and at - start <= _LONGEST_PROCLITIC:
        start -= 1
    return joined is not None and joined.fullmatch(text[start:at]) is not None
