"""Scripts of replies: whether the demanded one is used, and languages written in Latin letters that are not theirs."""

from __future__ import annotations

from functools import cache

from mrag_eval.core import base_language
from mrag_eval.metrics._language_detection import UNDETERMINED, FastTextDetector
from mrag_eval.text import expected_scripts, han_variant, letter_scripts

# Of text in Latin letters, lid.176 is less sure than this of any language if it is romanised (58 of 60 sentences in 13
# languages), and surer of English, German and Spanish questions from 20 characters on (98 to 99 of 100).
_SURE = 0.6
# Shorter texts are names as often as sentences.
_LEAST_LETTERS = 20
_VARIANTS = ("Hans", "Hant")


def other_script(text: str, code: str) -> str | None:
    """Return the ISO 15924 code of the script of a text if that is not the one that ``code`` demands; else None.

    ``code`` (BCP 47) demands one by naming it: ``hi-Latn``, ``sr-Latn``, ``zh-Hant``. The script of a text is that of
    most of its letters, of Chinese the variant of most characters that only one has. A text that shows none is in the
    demanded one.
    """
    demanded = code.partition("-")[2]
    if not demanded:
        return None
    counts = letter_scripts(text)
    if not counts:
        return None
    used, letters = counts.most_common(1)[0]
    if used in expected_scripts(code):
        variant = han_variant(text) if demanded in _VARIANTS else None
        return variant if variant not in (None, demanded) else None
    return used if 2 * letters > counts.total() else None


def is_romanised(text: str, code: str) -> bool:
    """Return whether a text counts as the language ``code`` written in Latin letters, which are not its own.

    The language is not written with them, and :func:`is_unsure` of it.
    """
    own = expected_scripts(base_language(code))
    return bool(own) and "Latn" not in own and is_unsure(text)


def is_unsure(text: str) -> bool:
    """Return whether most of at least 20 letters are Latin, and lid.176 is not sure of any language.

    It has no label for romanised text, and calls Hindi Italian, and Arabic Spanish.
    """
    counts = letter_scripts(text)
    if counts.total() < _LEAST_LETTERS or 2 * counts["Latn"] <= counts.total():
        return False
    return _sure_of().detect([text.replace("\n", " ")]) == [UNDETERMINED]


@cache
def _sure_of() -> FastTextDetector:
    return FastTextDetector(None, _SURE)
