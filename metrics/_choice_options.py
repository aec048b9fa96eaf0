"""Options in a reply: their labels and texts, and the words that announce, deny or correct a choice."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from itertools import chain
from typing import Final

from mrag_eval.core import base_language
from mrag_eval.languages import Files, Words, files_of_languages, language
from mrag_eval.metrics._word_edges import PREFIXES, within
from mrag_eval.text import NO_SPACE_SCRIPTS, marks, script

_LINE_START: Final = re.compile(r"[ \t>*_#•(\[-]*(?:[✅✔☑✓❌✗✘✖]\ufe0f?[ *_(]*)?")
_CASED: Final = r"A-Za-z0-9_\u00c0-\u02af\u0370-\u052f\u1e00-\u1fff"
_OPENERS: Final = frozenset("⟦([{*_«\"“„「『【<`'")
# Letters of scripts that stand next to each other without a space, as in Japanese.
_LETTERS: Final = {"Hani": "[\u3400-\u9fff]", "Hira": "[\u3040-\u309f]", "Kana": "[\u30a0-\u30ff]"}
_LABEL_BEHIND: Final = re.compile(r"\s[A-Z](?!\w)")
_DOTS: Final = frozenset(".:、")
# Marks between a label and the word that announces it.
_LEFT: Final = frozenset(" *_(:#\"'“«\n：")
_CLOSERS: Final = frozenset("⟧)]}*_»\"”」』】>`'")
# An option, its start and its end.
Occurrence = tuple[int, int, int]
# The index of an option, its words, and the most letters of an ending.
Sought = tuple[int, list[str], int]
# The most characters of a few words.
_FEW_WORDS: Final = 20
# The fewest letters of an option that is also found with an ending, and the most letters of an ending.
_INFLECTED, _LONGEST_ENDING = 4, 4


@dataclass(slots=True)
class Mention:
    """An option named in a reply.

    Attributes:
        index: the option; past the last one for a label beyond the options.
        start: its first character.
        end: the position behind it.
        label: by its label, not by its text alone.
        joined: to the mention before it, by a word such as "and" or a comma.
        out: ruled out, or only tried.
        doubted: only by a word such as "perhaps".
    """

    index: int
    start: int
    end: int
    label: bool
    joined: bool = False
    out: bool = False
    doubted: bool = False


@lru_cache(maxsize=64)
def candidates(words: Lexicon) -> re.Pattern[str]:
    """Return a pattern of what may be a label, its group."""
    labels = words.labels
    by_neighbours: dict[str, list[str]] = defaultdict(list)
    for label in sorted(labels, key=len, reverse=True):
        letters = _LETTERS.get(script(label[0]) or "", rf"[^\W\d_A-Za-z]|[{marks()}]")
        by_neighbours[letters].append(re.escape(label))
    # a label of its own script's letters is part of a word beside one of them, and before a hyphen
    local = "".join(
        rf"|(?<!{letters})(?:{'|'.join(group)})(?!{letters}|-[^\W\d_])" for letters, group in by_neighbours.items()
    )
    # no label: part of a longer word, a name ("B's"), a number
    goes_on = rf"[{_CASED}&]|'\w{{5}}|'[A-Z]|-\w{{6}}|[.,]\d"
    firsts = "".join(sorted({re.escape(label[0]) for label in labels}))
    # the first letter is consumed, so that the search leaps to it
    return re.compile(rf"[A-Za-z\d{firsts}](?<![{_CASED}'.°&].)(?<=(?=([A-Za-z]|\d{{1,2}}{local})(?!{goes_on})).)")


def found_labels(
    text: str, n: int, words: Lexicon, labels: Iterable[Span], announcements: Sequence[Span], spans: Spans
) -> Iterator[Mention]:
    """Yield the labels of a text: capitals, and with a mark or an announcement small letters and numbers too.

    ``labels``: where :func:`candidates` finds them; ``announcements`` and ``spans``: words around them.
    """
    answers = {end for _, end in announcements}
    options = {end for _, end in spans["option"]}
    behind = {start for start, _ in spans["option_after"]}
    judged = {start for start, _ in (*announcements, *spans["wrong"])}
    leads = sorted([*answers, *(end for _, end in spans["concludes"])])
    for start, end in labels:
        label, before = text[start:end], start
        while before and text[before - 1] in _LEFT:
            before -= 1
        announced = before in answers
        # "option B", "B variantı"
        named = before in options or not behind.isdisjoint((end, end + 1, end + 2))
        if label.isdecimal():
            if text[start - 1 : start] == "⟦" or named or (announced and ":" in text[before:start]):
                yield Mention(int(label) - 1 if int(label) else n, start, end, label=True)
            continue
        # in Hungarian "a B" is B, and "a helyes" announces
        if inside(announcements, start) or (label.islower() and _LABEL_BEHIND.match(text, end)):
            continue
        local = words.labels.get(label)
        index = ord(label.upper()) - 65 if local is None else local
        if not (named or _set_off(text, start, end)):
            syllable = local is not None and script(label[0]) in ("Hang", "Hani", "Kana")
            if (index >= n or syllable) and not announced:
                continue
            if label.islower() and not (_ends(text, end) and _leads(leads, start)):
                continue
            if not announced and _is_word(text, start, end, words) and judged.isdisjoint((end + 1, end + 2)):
                continue
            if _is_initial(text, start, end):
                continue
        yield Mention(index, start, end, label=True)


def _set_off(text: str, start: int, end: int) -> bool:
    """Return whether a label has a mark of its own: "(B)", "**B**", "B.", "B:"."""
    before, behind = text[start - 1 : start], text[end : end + 1]
    if behind == ")" or (behind in _CLOSERS and before in _OPENERS):
        return True
    return behind in _DOTS and opens_line(text, start)


def _leads(ends: Sequence[int], at: int) -> bool:
    """Return whether one of some positions is a few words before another."""
    before = bisect_right(ends, at)
    return before > 0 and at - ends[before - 1] <= _FEW_WORDS


def opens_line(text: str, at: int) -> bool:
    """Return whether nothing but marks stands before a position in its line."""
    _, newline, line = text[max(0, at - 12) : at].rpartition("\n")
    return (bool(newline) or at <= 12) and _LINE_START.fullmatch(line) is not None


def _ends(text: str, end: int) -> bool:
    """Return whether a sentence ends at a position."""
    return re.match(r"[\s.!?*_\"'»”)]*(?:$|\n|[.!?](?:\s|$))", text[end : end + 12]) is not None


def _is_word(text: str, start: int, end: int, words: Lexicon) -> bool:
    """Return whether a letter is a word there: "A good question", and not "- A is wrong" nor "A or B"."""
    behind = re.match(r"\s+([^\s.]\S*)", text[end : end + 16])
    if text[start] not in words.letters or behind is None:
        return False
    if any(f"{join} ".startswith(f"{normal(behind[1])} ") for join in words.words["joins"]):
        return False
    if not text[start].isascii():
        return True
    before = text[max(0, start - 6) : start].rstrip(" *_\"'«“(")[-1:]
    return script(behind[1][0]) == "Latn" and before in ("", ".", "!", "?", "\n", ":", ";")


def _is_initial(text: str, start: int, end: int) -> bool:
    """Return whether a capital is the initial of a name: "Maria C. Tiddeman"."""
    return (
        re.match(r"\. [A-Z]\w", text[end : end + 4]) is not None
        and re.search(r"(?:[A-Z]\w+|[A-Z]\.) $", text[max(0, start - 12) : start]) is not None
    )


@lru_cache(maxsize=1)
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return the patterns of a word and of what stands between two words."""
    return re.compile(rf"(?:[^\W_]|[{marks()}])+"), re.compile(rf"(?:_|[^\w{marks()}])+")


@lru_cache(maxsize=4096)
def plain_text(text: str) -> str:
    """Return the text in NFKC, case folded, with every run of punctuation, symbols and spaces as one space."""
    return " ".join(_patterns()[0].findall(fold(unicodedata.normalize("NFKC", text))))


def occurrences(folded: str, start: int, end: int, sought: Iterable[Sought]) -> tuple[Occurrence, ...]:
    """Return each option that begins in a part of a folded text in NFKC, with its start and end, in their order.

    A longer one goes before those that start with it.
    """
    found = []
    for index, words, longest in sought:
        at = folded.find(words[0], start, end)
        while at >= 0:
            last = _end(folded, at, words, longest)
            if last is not None and starts_word(folded, at):
                found.append((index, at, last))
            at = folded.find(words[0], at + len(words[0]), end)
    return tuple(sorted(found, key=lambda each: (each[1], -each[2])) if len(found) > 1 else found)


@lru_cache(maxsize=1024)
def sought_options(options: tuple[str, ...]) -> tuple[Sought, ...]:
    """Return the options, as :func:`plain_text` gives them, that are sought in a reply, the longest first.

    Not sought are those of one letter or digit, which many texts hold by chance, and those that are there twice. The
    last letter is left out where declension may change it.
    """
    found = []
    for index, option in sorted(enumerate(options), key=lambda each: -len(each[1])):
        unspaced = bool(option) and script(option[-1]) in {"Hang", *NO_SPACE_SCRIPTS}
        if (len(option) < 2 and not unspaced) or options.count(option) > 1:
            continue
        inflects = len(option) >= _INFLECTED and not unspaced and script(option[-1]) is not None
        changes = inflects and len(option) > _INFLECTED + 1 and option[-2] != " "
        found.append((index, option[: len(option) - changes].split(" "), _LONGEST_ENDING * inflects))
    return tuple(found)


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


Span = tuple[int, int]
# Fields whose words are sought all over a reply.
_SOUGHT: Final = (
    "answer", "concludes", "tentative", "hedges", "option", "option_after", "wrong", "rejects", "joins", "turns",
    "refuses", "refuses_if_own", "refuses_if_alone", "own", "although", "passage", "corrects",
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
