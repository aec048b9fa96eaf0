"""Sentence boundaries by Unicode punctuation, without a model."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mrag_eval.core import base_language

# Marks that always end a sentence: CJK full stops, danda, Ethiopic, Armenian, Burmese, Khmer, Tibetan, Urdu
_FULL = (
    "。！？｡．\u0964\u0965\u1362\u1367\u1368\u0589\u104b\u17d4\u17d5\u0f0d\u0f0e\u06d4\u061f\u203c-\u203d\u2047-\u2049"
)
# Marks that end a sentence only before white space: a dot may belong to a number or an abbreviation
_OPEN = ".!?…"
_CLOSING = "\"'”’»›」』）】〉》\\])"
_END = re.compile(rf"(?:[{_FULL}]+[{_FULL}{_OPEN}]*[{_CLOSING}]*|[{_OPEN}]+[{_CLOSING}]*(?=\s|$))\s*|\s*\n\s*")
# Thai and Lao write no full stop: a space ends a phrase or a sentence
_END_AT_SPACE = re.compile(rf"{_END.pattern}|\s+")
_SPACE_ENDS = frozenset({"th", "lo"})


def sentence_spans(text: str, lang: str) -> Iterator[tuple[int, int]]:
    """Yield the half-open spans of the sentences of ``text``, which cover it without gaps.

    A sentence ends at a full stop of any script (with closing quotes and brackets), at a newline, or, in Thai and
    Lao, at a space. It includes the white space after it. Known limit: ``Dr. Smith`` is cut after ``Dr.``.
    """
    start = 0
    pattern = _END_AT_SPACE if base_language(lang) in _SPACE_ENDS else _END
    for match in pattern.finditer(text):
        if match.end() > start and text[start : match.end()].strip():
            yield start, match.end()
            start = match.end()
    if text[start:].strip():
        yield start, len(text)
