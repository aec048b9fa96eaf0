"""Quotations: the parts of a judge's reply that repeat the sample, in whatever characters the judge wrote them."""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Collection, Iterable
from functools import cached_property

from mrag_eval.models import LONGEST_REPLY, json_objects
from mrag_eval.text import fold

_BRACES = str.maketrans("｛｝﹛﹜", "{}{}")
# The start of an object in any form: a brace, an escape or an entity.
_BRACE = re.compile(r"[{｛﹛︷\\＼﹨&＆﹠]")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|[nrtbf])")
# Characters without width, which may be anywhere in a word.
_INVISIBLE = re.compile("[\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufe00-\ufe0f\ufeff]")
_EMPTY_LIST = re.compile(r"\[\s*\]")
_WORD = re.compile(r"[^\W_]+")
# A word with the spaces and the markup around it is shorter than this; of a script without spaces, this many
# characters make a word.
_REACH, _ENDING = 200, 3


def _words(text: str) -> list[str]:
    """Return the folded words of a text: escapes, entities and everything but letters and digits make no difference."""
    plain = html.unescape(_ESCAPE.sub(_unescaped, _visible(text)))
    return _WORD.findall(fold(_EMPTY_LIST.sub(" nothing ", _visible(plain)), search=True))


def _visible(text: str) -> str:
    return _INVISIBLE.sub("", unicodedata.normalize("NFKC", text))


def _unescaped(found: re.Match[str]) -> str:
    code = found[1] or found[2]
    return chr(int(code, 16)) if code else " "


class Quotations:
    """The texts of a sample, to recognise them in replies."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._texts = tuple(texts)
        self._around: dict[str, tuple[set[str], set[str]]] = {}

    @cached_property
    def _samples(self) -> list[str]:
        return [f" {' '.join(_words(text))} " for text in self._texts]

    @cached_property
    def _with_objects(self) -> list[str]:
        return ["".join(_words(text)) for text in self._texts if _BRACE.search(text)]

    def without_objects(self, reply: str, keys: Collection[str]) -> str:
        """Return the end of the reply, with blanks for JSON objects that are in the sample.

        Complete ones without any of the keys may stay. Objects in full-width braces, as prompts show them, are
        recognised as well.
        """
        reply = reply[-LONGEST_REPLY:]
        objects, unreadable = json_objects(reply.translate(_BRACES))
        spans = [(found.start, found.end) for found in objects if not found.value.keys().isdisjoint(keys)]
        for start, end in [*spans, *((fault.start, fault.end) for fault in unreadable)] if self._with_objects else ():
            unspaced = "".join(_words(reply[start:end]))
            if any(unspaced in sample for sample in self._with_objects):
                reply = reply[:start] + " " * (end - start) + reply[end:]
        return reply

    def quotes(self, reply: str, start: int, end: int) -> bool:
        """Return whether a part of a reply is in the sample next to the same word as here.

        For parts so short that a judge may write them without quoting; one that is a whole text of the sample is not a
        quotation.
        """
        left = _words(reply[max(0, start - _REACH) : start])
        right = _words(reply[end : end + _REACH])
        if not left and not right:
            return False
        part = " ".join(_words(reply[start:end]))
        if part not in self._around:
            self._around[part] = self._neighbours(part)
        before, after = self._around[part]
        return bool((left and _ending(left[-1]) in before) or (right and _beginning(right[0]) in after))

    def _neighbours(self, part: str) -> tuple[set[str], set[str]]:
        """Return the words before and after a part, wherever it is in the sample."""
        before, after = set(), set()
        for sample in self._samples:
            at = sample.find(f" {part} ")
            while at >= 0:
                end = at + len(part) + 1
                left = sample[sample.rfind(" ", 0, at) + 1 : at]
                right = sample[end + 1 : sample.find(" ", end + 1)] if end + 1 < len(sample) else ""
                before |= {_ending(left)} - {""}
                after |= {_beginning(right)} - {""}
                at = sample.find(f" {part} ", at + 1)
        return before, after


def _ending(word: str) -> str:
    return word if word.isascii() else word[-_ENDING:]


def _beginning(word: str) -> str:
    return word if word.isascii() else word[:_ENDING]
