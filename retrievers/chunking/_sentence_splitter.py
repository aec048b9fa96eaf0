"""Passages as LlamaIndex's ``SentenceSplitter`` cuts them, without overlap."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any

Cut = Callable[[str], list[str]]

_PARAGRAPH_END = "\n\n\n"
# A stretch without these marks and the mark that ends it, or a mark by itself.
_PHRASE = re.compile("[^,.;。？！]+[,.;。？！]?|[,.;。？！]")


@lru_cache(maxsize=1)
def _punkt() -> Any:
    # untrained, as LlamaIndex has it: no list of abbreviations, the same for every language, nothing to download
    from nltk.tokenize import PunktSentenceTokenizer

    return PunktSentenceTokenizer()


def _sentences(text: str) -> list[str]:
    """Punkt's sentences, each with the white space up to the next; white space in front of the first one is lost."""
    starts = [start for start, _ in _punkt().span_tokenize(text)]
    return [text[low:high] for low, high in zip(starts, [*starts[1:], len(text)][: len(starts)], strict=True)]


def _before(separator: str) -> Cut:
    """Cuts in front of every ``separator``, which stays with what follows it."""

    def cut(text: str) -> list[str]:
        first, *others = text.split(separator)
        return [piece for piece in (first, *(separator + other for other in others)) if piece]

    return cut


# From the coarsest to the finest: what is too long for one is cut by the next.
_CUTS: tuple[Cut, ...] = (_before(_PARAGRAPH_END), _sentences, _PHRASE.findall, _before(" "), list)


def split_sentences(text: str, size: int, count: Callable[[str], int]) -> list[str]:
    """The passages of ``text``, up to ``size`` tokens each, ``count`` counting them.

    A text that is too long is cut into paragraphs (three new lines), sentences (Punkt, untrained), phrases (up to a
    comma or full stop), words or characters, whichever is the first to cut it at all, and the pieces again where they
    are too long. Neighbouring pieces are then joined as long as the sum of their tokens allows. White space around a
    passage is removed. Equal, passage by passage, to ``SentenceSplitter(chunk_size=size, chunk_overlap=0)`` of
    LlamaIndex 0.14; but a single character of more than ``size`` tokens, an error there, is a passage here.
    """
    passages = ("".join(pieces).strip() for pieces in _joined(list(_cut(text, size, count)), size))
    return [passage for passage in passages if passage]


def _cut(text: str, size: int, count: Callable[[str], int]) -> Iterator[tuple[str, int]]:
    """Pieces with their number of tokens."""
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
