"""Splitting of a text into pieces that a backend accepts, and joining of their translations."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from mrag_eval.core import base_language
from mrag_eval.text import BETWEEN_CLAUSES, BETWEEN_WORDS, fitting_spans, sentence_spans

# Of the rules by which texts are cut and joined.
PIECES_VERSION = 2

# Written without a space between sentences. Thai, Lao, Khmer, Burmese and Tibetan have no space between words, but one
# between sentences.
_NO_JOINT = frozenset({"zh", "yue", "wuu", "gan", "hak", "hsn", "nan", "lzh", "ja"})
_LINE_BREAK = re.compile("[\n\r\x85\u2028\u2029]")


def sentences(text: str, lang: str, fits: Callable[[str], bool]) -> list[str]:
    """Return the sentences of ``text`` with the white space after them.

    One that does not fit is cut into pieces as long as fit, between clauses, else words, else letters.
    """
    breaks = (BETWEEN_CLAUSES, BETWEEN_WORDS)
    return [
        text[low:high]
        for start, end in sentence_spans(text, lang)
        for low, high in fitting_spans(text, start, end, fits, breaks)
    ]


def packed(text: str, lang: str, limit: int) -> list[str]:
    """Return pieces of whole sentences, at most ``limit`` code points each; a longer sentence is cut."""
    pieces: list[str] = []
    for sentence in sentences(text, lang, lambda piece: len(piece) <= limit):
        if pieces and len(pieces[-1]) + len(sentence.rstrip()) <= limit:
            pieces[-1] += sentence
        else:
            pieces.append(sentence)
    return pieces


def joined(pieces: Sequence[str], translated: Sequence[str], target: str) -> str:
    """Return the joined translations of the pieces, with the original line breaks between them.

    Elsewhere there is a space between two translations, or nothing in Chinese and Japanese.
    """
    gap = "" if base_language(target) in _NO_JOINT else " "
    out = ""
    for piece, text in zip(pieces, translated, strict=True):
        after = piece[len(piece.rstrip()) :]
        out += text.strip() + (after if _LINE_BREAK.search(after) else gap)
    return out.strip()
