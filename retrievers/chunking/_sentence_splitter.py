"""The passages of LlamaIndex's ``SentenceSplitter``, without overlap."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any

Cut = Callable[[str], list[str]]

_PARAGRAPH_END = "\n\n\n"
# Text up to and including one of these marks, or a mark alone.
_PHRASE = re.compile("[^,.;。？！]+[,.;。？！]?|[,.;。？！]")


@lru_cache(maxsize=1)
def _punkt() -> Any:
    # untrained, as LlamaIndex has it: no list of abbreviations, the same for every language, nothing to download
    from nltk.tokenize import PunktSentenceTokenizer

    return PunktSentenceTokenizer()


def _sentences(text: str) -> list[str]:
    """Return Punkt's sentences with trailing white space; leading white space of the text is dropped."""
    starts = [start for start, _ in _punkt().span_tokenize(text)]
    return [text[low:high] for low, high in zip(starts, [*starts[1:], len(text)][: len(starts)], strict=True)]


def _before(separator: str) -> Cut:
    """Return a cut before every ``separator``; the separator stays with the text after it."""

    def cut(text: str) -> list[str]:
        first, *others = text.split(separator)
        return [piece for piece in (first, *(separator + other for other in others)) if piece]

    return cut


# From coarse to fine: pieces that are still too long are cut by the next.
_CUTS: tuple[Cut, ...] = (_before(_PARAGRAPH_END), _sentences, _PHRASE.findall, _before(" "), list)


def split_sentences(text: str, size: int, count: Callable[[str], int]) -> list[str]:
    """Return the passages of ``text``, each of up to ``size`` tokens as counted by ``count``.

    A text that is too long is cut into paragraphs (three newlines), sentences (Punkt, untrained), phrases (up to a
    comma or full stop), words or characters: the first of these that cuts it. Pieces that are too long are cut again.
    Neighbouring pieces are joined while the sum of their tokens allows, and stripped. The result equals
    ``SentenceSplitter(chunk_size=size, chunk_overlap=0)`` of LlamaIndex 0.14, except that a single character of more
    than ``size`` tokens is a passage here and an error there.
    """
    passages = ("".join(pieces).strip() for pieces in _joined(list(_cut(text, size, count)), size))
    return [passage for passage in passages if passage]


def _cut(text: str, size: int, count: Callable[[str], int]) -> Iterator[tuple[str, int]]:
    """Yield pieces with their number of tokens."""
    tokens = count(text)
    if tokens <= size:
        yield text, tokens
        return
    pieces = next((pieces for cut in _CUTS if len(pieces := cut(text)) > 1), [text])
    if len(pieces) == 1:
        yield text, tokens
        return
    for piece in pieces:
        yield from _cut(piece, size, count)


def _joined(pieces: Sequence[tuple[str, int]], size: int) -> Iterator[list[str]]:
    held: list[str] = []
    used = 0
    for piece, tokens in pieces:
        if held and used + tokens > size:
            yield held
            held, used = [], 0
        held.append(piece)
        used += tokens
    if held:
        yield held
