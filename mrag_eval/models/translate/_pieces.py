"""Splitting of a text into pieces that a backend accepts, and joining of their translations."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mrag_eval.core import NO_SPACES, base_language
from mrag_eval.retrievers import sentence_spans


def sentences(text: str, lang: str, fits: Callable[[str], bool]) -> list[str]:
    """Return the sentences of ``text`` with the white space after them.

    One that does not fit is halved repeatedly, at a space if there is one.
    """
    out: list[str] = []
    for start, end in sentence_spans(text, lang):
        out += _halved(text[start:end], fits)
    return out


def packed(text: str, lang: str, limit: int) -> list[str]:
    """Return pieces of whole sentences, at most ``limit`` code points each; a longer sentence is cut."""
    pieces: list[str] = []
    for sentence in sentences(text, lang, lambda piece: len(piece) <= limit):
        if pieces and len(pieces[-1]) + len(sentence) <= limit:
            pieces[-1] += sentence
        else:
            pieces.append(sentence)
    return pieces


def _halved(text: str, fits: Callable[[str], bool]) -> list[str]:
    if fits(text) or len(text) < 2:
        return [text]
    middle = len(text) // 2
    space = text.rfind(" ", 1, middle + 1) + 1
    cut = space if space > middle // 2 else middle
    return [*_halved(text[:cut], fits), *_halved(text[cut:], fits)]


def joined(pieces: Sequence[str], translated: Sequence[str], target: str) -> str:
    """Return the joined translations of the pieces, with the original line breaks and spaces between them.

    If there were none (Chinese) and the target is written with spaces, one is inserted.
    """
    gap = "" if base_language(target) in NO_SPACES else " "
    out = ""
    for piece, text in zip(pieces, translated, strict=True):
        after = piece[len(piece.rstrip()) :]
        if after.strip("\n") == after:  # no line break
            after = gap
        out += text.strip() + after
    return out.strip()
