"""Folding beyond single letters in alphabets: accents, the hamza of Arabic, signs within words."""

from __future__ import annotations

import re
import unicodedata

from mrag_eval.text.folding._letters import FoldingRules

_MARK = re.compile("[\u0300-\u036f]")
_MARKED = re.compile(".[\u0300-\u036f]+", re.DOTALL)
_VOWELS = frozenset("аеиоуыэюяєіїёўөүәӧӱӯӣѣѵ")
_STRESS = str.maketrans("", "", "\u0300\u0301")
# Catalan: l·l is one of three spellings of the long l
_CATALAN = re.compile("·(?<=l.)(?=l)")
# Ukrainian and Belarusian п'ять, Hebrew צה"ל: signs within a word
_CYRILLIC_APOSTROPHE = re.compile("'(?<=[\u0400-\u052f]')(?=[\u0400-\u052f])")
_HEBREW_GERESH = re.compile("(?:''(?<=[\u05d0-\u05ea]'')|['\"](?<=[\u05d0-\u05ea].))(?=[\u05d0-\u05ea])")
_HAMZA = "\u0654"


def join_hamza(text: str) -> str:
    """Return the text with the yeh with hamza as one letter, also where it was typed with the yeh of Persian."""
    if _HAMZA not in text:
        return text
    return text.replace(f"ی{_HAMZA}", "ئ").replace(f"ى{_HAMZA}", "ئ")


def fold_marks(text: str, chosen: FoldingRules) -> str:
    """Return the text without the combining accents of Greek, the stress of Cyrillic and, if asked for, the
    diacritics of Latin.
    """

    def folded(match: re.Match[str]) -> str:
        letter, accents = match.group()[0], match.group()[1:]
        script = unicodedata.name(letter, "").partition(" ")[0]
        if script == "GREEK" or (script == "LATIN" and chosen.diacritics):
            return letter
        if letter in _VOWELS:
            accents = accents.translate(_STRESS)
            return letter + (accents.replace("\u0308", "") if letter == "е" and chosen.yo else accents)
        # the dot that case folding leaves of a capital dotted I
        return letter + (accents.replace("\u0307", "") if letter == "i" else accents)

    return _MARKED.sub(folded, text) if _MARK.search(text) else text


def fold_signs(text: str) -> str:
    """Return the text without signs within words that some writers omit, with one spelling of Armenian ``և``."""
    if "·" in text:
        text = _CATALAN.sub("", text)
    if "'" in text or '"' in text:
        text = _HEBREW_GERESH.sub("", _CYRILLIC_APOSTROPHE.sub("", text))
    # case folding takes the ligature apart as Western Armenian does
    return text.replace("եւ", "եվ")
