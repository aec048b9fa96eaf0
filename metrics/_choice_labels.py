"""Labels of options in a reply: letters and numbers, and what tells them from words and initials."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from mrag_eval.metrics._choice_words import Lexicon, Span, normal
from mrag_eval.text import marks, script

_LINE_START: Final = re.compile(r"[ \t>*_#•(\[-]*(?:[✅✔☑✓❌✗✘✖]\ufe0f?[ *_(]*)?")
_CASED: Final = r"A-Za-z0-9_\u00c0-\u02af\u0370-\u052f\u1e00-\u1fff"
_OPENERS: Final = frozenset("([{*_«\"“„「『【<`'")
_CLOSERS: Final = frozenset(")]}*_»\"”」』】>`'")


@dataclass(slots=True)
class Mention:
    """An option named in a reply.

    Attributes:
        index: the option; past the last one for a label beyond the options.
        start: its first character.
        end: the position behind it.
        label: by its label, not by its text alone.
        joined: to the mention before it, by a word such as "and" or a comma.
        beside: another label, with one short word between them.
        out: ruled out, or only tried.
    """

    index: int
    start: int
    end: int
    label: bool
    joined: bool = False
    beside: bool = False
    out: bool = False


@lru_cache(maxsize=64)
def _candidates(labels: tuple[str, ...]) -> re.Pattern[str]:
    local = "|".join(map(re.escape, sorted(labels, key=len, reverse=True))) or "(?!)"
    letter = rf"[^\W\d_A-Za-z]|[{marks()}]"
    return re.compile(
        rf"⟦(\w+)⟧|(?<![{_CASED}'.°&])([A-Za-z]|\d{{1,2}}|(?<!{letter})(?:{local})(?!{letter}|-[^\W\d_]))"
        # no label: part of a longer word, a name ("B's"), a number, a Greek numeral of kings ("Β΄")
        rf"(?![{_CASED}&]|'\w{{5}}|'[A-Z]|-\w{{6}}|[.,]\d|\s?[\u0301\u0384\u0374])"
    )


def found_labels(text: str, n: int, words: Lexicon, spans: Mapping[str, Sequence[Span]]) -> Iterator[Mention]:
    """Yield the labels of a text: capitals, and with a mark or an announcement small letters and numbers too.

    ``spans``: the words of the text by field, as :meth:`Lexicon.spans` gives them.
    """
    around = _Around(text, words, spans)
    for match in _candidates(tuple(words.labels)).finditer(text):
        label, (start, end) = match[1] or match[2], match.span()
        marked = match[1] is not None or around.marks(start, end)
        announced = around.announces(start)
        if label.isdecimal():
            if match[1] or around.names(start, end) or (announced and ":" in text[around.gap_start(start) : start]):
                yield Mention(int(label) - 1 if int(label) else n, start, end, label=True)
        elif marked or around.stands_alone(label, start, end, n, announced):
            local = words.labels.get(label)
            yield Mention(ord(label.upper()) - 65 if local is None else local, start, end, label=True)


class _Around:
    """The text around candidate labels."""

    def __init__(self, text: str, words: Lexicon, spans: Mapping[str, Sequence[Span]]) -> None:
        self._text, self._words = text, words
        self._options = {end for _, end in spans["option"]}
        self._behind = {start for start, _ in spans["option_after"]}
        self._answers = {end for _, end in spans["answer"]}
        self._leads = sorted(end for name in ("answer", "concludes") for _, end in spans[name])
        self._judged = {start for name in ("answer", "wrong") for start, _ in spans[name]}

    def gap_start(self, start: int) -> int:
        """Return where the marks before a label begin."""
        while start and self._text[start - 1] in " *_(:#\"'“«\n：":
            start -= 1
        return start

    def announces(self, start: int) -> bool:
        """Return whether an announcing word stands directly before a label."""
        return self.gap_start(start) in self._answers

    def names(self, start: int, end: int) -> bool:
        """Return whether a label is called an option: "option B"."""
        gap = end
        while gap < len(self._text) and self._text[gap] in " *_)\"'”»":
            gap += 1
        return self.gap_start(start) in self._options or bool({end, gap} & self._behind)

    def marks(self, start: int, end: int) -> bool:
        """Return whether a label has a mark of its own: "(B)", "**B**", "B.", "option B"."""
        before, behind = self._text[start - 1 : start], self._text[end : end + 1]
        set_off = behind == ")" or (before in _OPENERS and behind in _CLOSERS)
        opens = behind in (".", ":", "、") and behind != "" and opens_line(self._text, start)
        return set_off or opens or self.names(start, end)

    def stands_alone(self, label: str, start: int, end: int, n: int, announced: bool) -> bool:
        """Return whether a letter without a mark is a label, and no word, initial or syllable."""
        text, local = self._text, self._words.labels.get(label)
        if local is not None and script(label[0]) in ("Hang", "Hani", "Kana"):
            if not (announced or _leads(self._leads, start, 2)):
                return False
        else:
            index = ord(label.upper()) - 65 if local is None else local
            if index >= n and not announced:
                return False
            if label.islower() and not (_ends(text, end) and _leads(self._leads, start, 20)):
                return False
        if not announced and _is_word(text, start, end, self._words.letters) and not self._judged & {end + 1, end + 2}:
            return _two(text, end, self._words) and not _is_initial(text, start, end)
        return not _is_initial(text, start, end)


def _leads(ends: Sequence[int], at: int, reach: int) -> bool:
    """Return whether one of some positions is a few words before another."""
    before = bisect_right(ends, at)
    return before > 0 and at - ends[before - 1] <= reach


def opens_line(text: str, at: int) -> bool:
    """Return whether nothing but marks stands before a position in its line."""
    _, newline, line = text[max(0, at - 12) : at].rpartition("\n")
    return (bool(newline) or at <= 12) and _LINE_START.fullmatch(line) is not None


def _ends(text: str, end: int) -> bool:
    """Return whether a sentence ends at a position."""
    return re.match(r"[\s.!?*_\"'»”)]*(?:$|\n|[.!?](?:\s|$))", text[end : end + 12]) is not None


def _is_word(text: str, start: int, end: int, letters: frozenset[str]) -> bool:
    """Return whether a letter is a word there: "A good question", and not "- A is wrong"."""
    if text[start] not in letters:
        return False
    if not text[start].isascii():
        return re.match(r"\s+[^\s.]", text[end : end + 4]) is not None
    if re.match(r"\s+[^\W\d_]", text[end : end + 4]) is None or script(text[end : end + 4].lstrip()[0]) != "Latn":
        return False
    return text[max(0, start - 6) : start].rstrip(" *_\"'«“(")[-1:] in ("", ".", "!", "?", "\n", ":", ";")


def _two(text: str, end: int, words: Lexicon) -> bool:
    """Return whether a join and another label follow a label: "A or B"."""
    behind = re.match(r"\s+(\D{1,12}?)\s+(?=\S(?!\w))", text[end : end + 20])
    return (
        behind is not None
        and normal(behind[1]) in words.words["joins"]
        and _candidates(tuple(words.labels)).match(text, end + behind.end()) is not None
    )


def _is_initial(text: str, start: int, end: int) -> bool:
    """Return whether a capital is the initial of a name: "Maria C. Tiddeman"."""
    if re.match(r"\. [^\W\d_]\w", text[end : end + 4]) is None:
        return False
    return (
        re.search(r"(?:[A-Z]\w+|[A-Z]\.) $", text[max(0, start - 12) : start]) is not None and text[end + 2].isupper()
    )
