"""Words of a reply's language and of English, and where a text has them."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from itertools import chain
from typing import Final

from mrag_eval.core import base_language
from mrag_eval.languages import Files, Words, files_of_languages, language
from mrag_eval.metrics._word_edges import PREFIXES, within
from mrag_eval.text import NO_SPACE_SCRIPTS, script

Span = tuple[int, int]
# Fields whose words are sought all over a reply.
_SOUGHT: Final = (
    "answer", "concludes", "tentative", "option", "option_after", "wrong", "rejects", "joins", "turns", "refuses",
    "corrects",
)  # fmt: skip
# Fields whose words say nothing else, whatever they are made of: "no obstante", "or maybe".
_HIDING: Final = ("turns", "joins")
_LONGEST_PREFIX = 4
# The commonest edges of a word, known without a look at its script.
_BETWEEN: Final = frozenset(" \n.,:")


class Spans(dict[str, list[Span]]):
    """The words that a text has, by field; nothing for a field without any."""

    def __missing__(self, field: str) -> list[Span]:
        return []


_NO_WORDS: Final = Spans()


@dataclass(frozen=True, slots=True, eq=False)
class Lexicon:
    """The words and labels that a reply is read with.

    Attributes:
        words: words of a language and of English, folded, by field.
        labels: labels other than Latin letters -> index.
        letters: labels that are words at the start of a sentence.
        known: whether the language has words for answers and for what rules them out.
        pattern: finds the longest stem behind each character that a word may follow, its group.
        stems: a stem -> the length of each stem that it begins with, whether that takes endings, its field.
    """

    words: Mapping[str, tuple[str, ...]]
    labels: Mapping[str, int]
    letters: frozenset[str]
    known: bool
    pattern: re.Pattern[str]
    stems: Mapping[str, tuple[tuple[int, bool, str], ...]]

    def spans(self, folded: str, start: int = 0, end: int | None = None) -> Spans:
        """Return where a part of a folded text has words, by field and in their order.

        A longer word hides those of its field inside it, and one that connects or turns those of any field.
        """
        found = Spans()
        # every word has a character before it and one behind it
        part, before = f"\n{folded[start:end]}\n", start - 1
        for match in self.pattern.finditer(part):
            at = match.end()
            if part[at - 1] in _BETWEEN or starts_word(part, at):
                for length, endings, field in self.stems[match[1]]:
                    last = at + length
                    while endings and part[last] not in _BETWEEN and within(part, last):
                        last += 1
                    if part[last] not in _BETWEEN and within(part, last) and script(part[last - 1]) != "Hang":
                        continue
                    spans = found.setdefault(field, [])
                    if not spans or at + before >= spans[-1][1]:
                        spans.append((at + before, last + before))
                    elif last - at > spans[-1][1] - spans[-1][0]:
                        spans[-1] = (at + before, last + before)
        if found.get("turns") and found["rejects"]:
            # "anything but"
            found["turns"] = [span for span in found["turns"] if not _covered(found["rejects"], span)]
        for field in _HIDING:
            if hiding := found.get(field):
                for other in [each for each in found if each != field]:
                    found[other] = [span for span in found[other] if not _covered(hiding, span)]
        return found or _NO_WORDS


def _longest_of(stems: Collection[str]) -> str:
    """Return a pattern of the longest stem that a text has at a place, with common beginnings written once."""
    by_first: dict[str, set[str]] = defaultdict(set)
    for stem in filter(None, stems):
        by_first[stem[0]].add(stem[1:])
    tails = "|".join(re.escape(first) + _longest_of(rest) for first, rest in by_first.items())
    return f"(?:{tails})?" if tails and "" in stems else f"(?:{tails})" if tails else ""


def fold(text: str) -> str:
    """Return a text in lower case, of the same length."""
    return text.replace("İ", "I").lower()


def lexicon(lang: str | None) -> Lexicon:
    """Return the words of a language and of English; those of English alone for None or a language without a file."""
    return _lexicon(lang or "en", files_of_languages())


@lru_cache(maxsize=64)
def _lexicon(lang: str, _files: Files) -> Lexicon:
    known = [each for code in dict.fromkeys((lang, "en")) if (each := language(code)) is not None]
    words = {
        each.name: tuple(dict.fromkeys(normal(word) for own in known for word in getattr(own.words, each.name)))
        for each in fields(Words)
    }
    labels: dict[str, int] = {}
    for row in chain.from_iterable(each.labels for each in known):
        for order, label in enumerate(unicodedata.normalize("NFKC", row).split()):
            if label != "-":
                labels |= {label: order, label.lower(): order}
    fields_of: dict[str, list[tuple[int, bool, str]]] = defaultdict(list)
    for field in _SOUGHT:
        for word in words[field]:
            stem = word.rstrip("~")
            fields_of[stem].append((len(stem), stem != word, field))
    stems = {
        stem: tuple(each for end in range(len(stem)) for each in fields_of.get(stem[: end + 1], ()))
        for stem in tuple(fields_of)
    }
    own = known[0].words
    told = bool(own.answer and own.wrong) and base_language(known[0].code) == base_language(lang)
    return Lexicon(words, labels, frozenset(own.letters), told, _pattern(stems), stems)


def _pattern(stems: Collection[str]) -> re.Pattern[str]:
    """Return a pattern of the longest stem behind a character, its group; that character is no letter of its script.

    The search leaps over letters, except where a word may start behind any of them.
    """
    if not stems:
        return re.compile("(?!)")
    letters = {letter: script(letter) for letter in "".join(stems)}
    # Latin labels stand before words of other scripts: "B번"
    anywhere = {None, *NO_SPACE_SCRIPTS, *({"Latn"} if {*letters.values()} - {None, "Latn"} else ())}
    within = (
        a for a, own in letters.items() if own not in anywhere and not (own in PREFIXES and a in PREFIXES[own].pattern)
    )
    firsts = "".join(sorted({re.escape(stem[0]) for stem in stems}))
    return re.compile(rf"[^{''.join(sorted(within))}\0](?=[{firsts}])(?=({_longest_of(stems)}))", re.DOTALL)


def normal(text: str) -> str:
    """Return a word as replies are compared: in NFKC, folded, with straight apostrophes."""
    return fold(unicodedata.normalize("NFKC", text).replace("’", "'"))


def starts_word(text: str, at: int) -> bool:
    """Return whether a word starts at a position, the letters aside that a script joins to it."""
    if not within(text, at):
        return True
    joined = PREFIXES.get(script(text[at]) or "")
    start = at
    while joined and within(text, start) and at - start <= _LONGEST_PREFIX:
        start -= 1
    return joined is not None and joined.fullmatch(text[start:at]) is not None


def inside(spans: Sequence[Span], at: int) -> bool:
    """Return whether a position is inside one of some spans, which are in their order."""
    before = bisect_right(spans, at, key=lambda span: span[0]) - 1
    return before >= 0 and at < spans[before][1]


def _covered(spans: Sequence[Span], span: Span) -> bool:
    """Return whether a span is a part of one of some longer spans."""
    return any(start <= span[0] and span[1] <= end and span != (start, end) for start, end in spans)
