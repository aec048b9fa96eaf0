"""One form for the spellings of a word that its readers take as the same, in every script."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

from mrag_eval.text._letters import character_class
from mrag_eval.text.folding._alphabets import (
    compose_chillus,
    fold_burmese,
    fold_east_asian,
    fold_indic,
    fold_khmer,
    fold_marks,
    fold_signs,
    fold_thai_and_lao,
    join_hamza,
    letters_for_digits,
)
from mrag_eval.text.folding._alphabets import simplified as _simplified
from mrag_eval.text.folding._letters import FoldingRules, digits_beyond, fold_letters, rules

_ZWJ = "\u200d"
# Default_Ignorable_Code_Point (Unicode, DerivedCoreProperties): soft hyphen, joiners, marks of direction, variation
# selectors, fillers
_INVISIBLE = (
    *(0xAD, 0x34F, 0x61C, 0x115F, 0x1160, 0x17B4, 0x17B5, *range(0x180B, 0x1810), *range(0x200B, 0x2010)),
    *(*range(0x202A, 0x202F), *range(0x2060, 0x2070), 0x3164, *range(0xFE00, 0xFE10), 0xFEFF, 0xFFA0),
    *(*range(0xE0000, 0xE0080), *range(0xE0100, 0xE01F0)),
)
# Their compatibility forms are others: an accent after a space, a vowel of old Korean
_BEFORE_NORMALISING: dict[int, str | None] = {
    **dict.fromkeys(_INVISIBLE),
    **dict.fromkeys((0xB4, 0x1FBD, 0x1FFD), "'"),  # acute accents, the elision of Greek
    0x309B: "\u3099",  # voiced sound mark of kana
    0x309C: "\u309a",
    0x318D: "\u00b7",  # middle dot of Korean
}
_EARLY = re.compile(f"[{character_class(c for c in sorted(_BEFORE_NORMALISING) if c < 0x10000)}\U000e0000-\U000e01ef]")

# Letters that only Vietnamese uses (and dotted ones of Yoruba and Igbo). Without its tones and vowels, BM25 found 4 of
# 100 passages of XQuAD less.
_VIETNAMESE = re.compile("[\u01a1\u01b0\u1ea0-\u1ef9]")
_WORD = re.compile("([\\w\u0300-\u036f]+)")

# Combining accents, the hamza, and scripts that need more than a look at each letter
_FURTHER = re.compile("[\u0300-\u036f\u0654\u0900-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u30ff\u4e00-\u9fff]")
_BY_SCRIPT = tuple(
    (re.compile(f"[{characters}]"), fold_script)
    for characters, fold_script in (
        ("\u0900-\u0dff", fold_indic),
        ("\u0e00-\u0eff", fold_thai_and_lao),
        ("\u1000-\u109f", fold_burmese),
        ("\u1780-\u17ff", fold_khmer),
        ("\u3005-\u30ff\u4e00-\u9fff", fold_east_asian),
    )
)


def fold(text: str, language: str | None = None, *, search: bool = False, simplified: bool = False) -> str:
    """Return the text in the form in which spellings of the same word are equal.

    Width, compatibility forms, case, digits, invisible characters, apostrophes, vowel points, stress marks, variants
    of letters and the order of marks make no difference; the rules of each script are in docs/languages.md. Folding
    twice changes nothing, and canonically equivalent texts (NFC, NFD) are folded to the same.

    Args:
        language: a BCP 47 code, for what depends on it: Yiddish and Kashmiri keep their vowel points, Tigrinya its
            gutturals, Belarusian and Mongolian their ё. Without it, the script decides.
        search: fold the diacritics of Latin letters (``Beyoncé``, ``Łódź``) in every language, except in words with
            letters of Vietnamese alone. In an answer they are folded only if the alphabet of ``language`` lacks them,
            as in English or Arabic text.
        simplified: convert traditional Chinese characters to simplified ones.

    Raises:
        MissingExtraError: ``simplified`` without the extra ``chinese``.
    """
    if text.isascii():
        return text.lower()
    if _ZWJ in text:
        text = compose_chillus(text)
    if _EARLY.search(text):
        text = text.translate(_BEFORE_NORMALISING)
    text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    if simplified:
        text = _simplified(text)
    chosen = rules(language, search)
    folded = _folded(text, chosen)
    # a letter may meet another mark than before
    while not unicodedata.is_normalized("NFKC", folded):
        folded = _folded(unicodedata.normalize("NFKC", folded), chosen)
    return folded


def _folded(text: str, chosen: FoldingRules) -> str:
    text = digits_beyond(text)
    further = _FURTHER.search(text)
    if further:
        text = letters_for_digits(join_hamza(text))
    if chosen.diacritics and not chosen.vietnamese and _VIETNAMESE.search(text):
        parts = _WORD.split(text)
        parts[1::2] = map(_word_folder(chosen), parts[1::2])
        text = "".join(parts)
        chosen = replace(chosen, diacritics=False)
    text = fold_letters(text, chosen)
    if further:
        text = fold_marks(text, chosen)
        for characters, fold_script in _BY_SCRIPT:
            if characters.search(text):
                text = fold_script(text)
    return fold_signs(text)


@lru_cache
def _word_folder(chosen: FoldingRules) -> Callable[[str], str]:
    """Return a function that folds the letters of a word, unless it is Vietnamese."""

    @lru_cache(maxsize=1 << 16)
    def folded(word: str) -> str:
        return word if _VIETNAMESE.search(word) else fold_marks(fold_letters(word, chosen), chosen)

    return folded
