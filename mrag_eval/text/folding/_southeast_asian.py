"""Folding beyond single letters in Thai, Lao, Khmer and Burmese: the order of marks, and signs that look alike."""

from __future__ import annotations

import re

# A vowel above has no combining class, so that normalisation leaves a tone before it
_THAI_TONES, _THAI_VOWELS = "\u0e48-\u0e4c", "\u0e31\u0e34-\u0e3a\u0e47\u0e4d\u0e4e"
_LAO_TONES, _LAO_VOWELS = "\u0ec8-\u0ecc", "\u0eb1\u0eb4-\u0ebc\u0ecd"
_MISORDERED = re.compile(
    "|".join(
        f"[{tones}][{vowels}][{tones}{vowels}]*|[{tones}]{{2}}[{tones}{vowels}]*"
        for tones, vowels in ((_THAI_TONES, _THAI_VOWELS), (_LAO_TONES, _LAO_VOWELS))
    )
)
_TONES = frozenset("\u0e48\u0e49\u0e4a\u0e4b\u0e4c\u0ec8\u0ec9\u0eca\u0ecb\u0ecc")
_REPEATED = re.compile(r"(?<!\s)\s+(?=[ๆໆ])")
_SUBSCRIPTS = re.compile("(?:\u17d2.){2,}", re.DOTALL)
_SUBSCRIPT = re.compile("\u17d2.", re.DOTALL)
_KHMER = {"\u17d2ដ": "\u17d2ត", "េា": "ោ", "េី": "ើ", "ំុ": "ុំ", "ំា": "ាំ"}
_KHMER_VARIANT = re.compile("|".join(_KHMER))
_MEDIALS = re.compile("[\u103b-\u103e]{2,}")
_BURMESE_DIGIT = "(?<![0-9၀-၉])"
_LOOKALIKE = re.compile("[၀၄၇]")
# The zero for wa and the seven for ra, the four for the sign of "ditto"
_ZERO_SEVEN = re.compile(f"{_BURMESE_DIGIT}[၀၇](?=[\u102b-\u103e]|[က-အ][\u1039\u103a])")
_FOUR = re.compile(f"{_BURMESE_DIGIT}၄(?=င်း)")


def fold_thai_and_lao(text: str) -> str:
    """Return the text with vowels before tones, the vowel ae as one sign, and repetition marks without a space."""
    text = _MISORDERED.sub(lambda match: "".join(sorted(match.group(), key=_TONES.__contains__)), text)
    text = text.replace("เเ", "แ").replace("ເເ", "ແ")
    return _REPEATED.sub("", text) if "ๆ" in text or "ໆ" in text else text


def fold_khmer(text: str) -> str:
    """Return the text with one order of subscripts and vowels and one form of the subscripts da and ta, which look
    alike (Unicode, chapter 16).
    """
    text = _SUBSCRIPTS.sub(lambda match: "".join(sorted(_SUBSCRIPT.findall(match.group()), key="្រ".__eq__)), text)
    return _KHMER_VARIANT.sub(lambda match: _KHMER[match.group()], text)


def fold_burmese(text: str) -> str:
    """Return the text with medials in the order of their code points, and ``ဉ်`` for the vowel that looks like it."""
    return _MEDIALS.sub(lambda match: "".join(sorted(match.group())), text).replace("ဥ်", "ဉ်")


def letters_for_digits(text: str) -> str:
    """Return the text with Burmese letters for the digits that are typed for them."""
    if not _LOOKALIKE.search(text):
        return text
    text = _ZERO_SEVEN.sub(lambda match: "ဝ" if match.group() == "၀" else "ရ", text)
    return _FOUR.sub("၎", text)
