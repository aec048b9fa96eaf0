"""Splitting of a text into pieces that a backend accepts, and joining of their translations."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from itertools import accumulate

from mrag_eval.core import base_language
from mrag_eval.models.translate._backend import Translated
from mrag_eval.text import BETWEEN_CLAUSES, BETWEEN_WORDS, fitting_spans, sentence_spans

# Of the rules by which texts are cut and joined. Before the third, a text could lack a piece; before the fourth, dots
# of abbreviations ended sentences.
PIECES_VERSION = 4

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


def packed(
    text: str, lang: str, limit: int, size: Callable[[str], int] = len, *, alone: int | None = None
) -> list[str]:
    """Return pieces of whole sentences, of at most the ``size`` ``limit`` each (in code points unless told otherwise).

    A sentence over ``alone`` (by default the limit) is cut to the limit; one between the two is a piece by itself.
    """
    pieces: list[str] = []
    used = 0
    for sentence in sentences(text, lang, lambda piece: True):
        fits = size(sentence.rstrip()) <= (alone or limit)
        for part in [sentence] if fits else sentences(sentence, lang, lambda piece: size(piece) <= limit):
            if pieces and used + size(part.rstrip()) <= limit:
                pieces[-1] += part
                used += size(part)
            else:
                pieces.append(part)
                used = size(part)
    return pieces


def halves(text: str, lang: str) -> list[str]:
    """Return a text in two, cut between the sentences nearest its middle.

    Without such an end in the middle half of the text, a sentence is cut. What cannot be cut stays one.
    """
    for longest in (len(text), len(text) // 3):
        ends = accumulate(map(len, sentences(text, lang, partial(_is_within, longest))))
        inner = [end for end in ends if len(text) <= 4 * end <= 3 * len(text) and text[:end].strip()]
        if inner:
            middle = min(inner, key=lambda end: abs(2 * end - len(text)))
            return [text[:middle], text[middle:]]
    return [text]


def _is_within(limit: int, piece: str) -> bool:
    return len(piece) <= limit


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


def whole(pieces: Sequence[str], outcomes: Sequence[Translated], target: str) -> Translated:
    """Return the outcome of a text from those of its pieces: joined, or none if one piece has none.

    A piece without a translation (signs between paragraphs apart) leaves the text without one, for the same reason.
    """
    texts: list[str] = []
    for piece, outcome in zip(pieces, outcomes, strict=True):
        if outcome.text is None or (not outcome.text.strip() and any(map(str.isalnum, piece))):
            return outcome
        texts.append(outcome.text if outcome.text.strip() else piece)
    return Translated(joined(pieces, texts, target), kept=all(outcome.kept for outcome in outcomes))
