"""Folding beyond single letters in the scripts of South Asia.

The blocks of these scripts are parallel, so that a sign has the same name in each ("KANNADA SIGN ANUSVARA").
"""

from __future__ import annotations

import re
import unicodedata

_SCRIPTS = ("DEVANAGARI", "BENGALI", "GURMUKHI", "GUJARATI", "ORIYA", "TELUGU", "KANNADA", "MALAYALAM")
# The nasal of each class of stops, and the stops
_CLASSES = (
    ("NGA", ("KA", "KHA", "GA", "GHA")),
    ("NYA", ("CA", "CHA", "JA", "JHA")),
    ("NNA", ("TTA", "TTHA", "DDA", "DDHA")),
    ("NA", ("TA", "THA", "DA", "DHA")),
    ("MA", ("PA", "PHA", "BA", "BHA")),
)


def _nasals() -> tuple[re.Pattern[str], dict[str, str]]:
    """Return a pattern for nasals joined to a stop of their class, and the anusvara that is written for them as well,
    by the nasal.
    """
    find = unicodedata.lookup
    parts = ["ඞ්(?=[ක-ඝ])"]
    anusvaras = {"ඞ": "ං"}
    for script in _SCRIPTS:
        anusvara = find(f"{script} SIGN {'BINDI' if script == 'GURMUKHI' else 'ANUSVARA'}")
        for name, stops in _CLASSES:
            nasal = find(f"{script} LETTER {name}")
            letters = "".join(find(f"{script} LETTER {stop}") for stop in stops)
            parts.append(f"{nasal}{find(f'{script} SIGN VIRAMA')}(?=[{letters}])")
            anusvaras[nasal] = anusvara
    return re.compile("|".join(parts)), anusvaras


_NASAL, _ANUSVARAS = _nasals()
# The dot of loan sounds, which most writers omit; that of sha makes another letter
_GURMUKHI_NUKTA = re.compile("(?<!ਸ)\u0a3c")
# Independent vowels typed as two signs (the tables "do not use" of Unicode, chapter 12, and UCD DoNotEmit.txt)
_VOWELS = {
    "अा": "आ", "अॉ": "ऑ", "अो": "ओ", "अौ": "औ", "अॅ": "ॲ", "आे": "ओ", "आै": "औ", "आॅ": "ऑ", "एे": "ऐ", "एॅ": "ऍ", "उु": "ऊ",
    "অা": "আ", "ਅਾ": "ਆ", "ਅੈ": "ਐ", "ਅੌ": "ਔ", "ੲਿ": "ਇ", "ੲੀ": "ਈ", "ੲੇ": "ਏ", "ੳੁ": "ਉ", "ੳੂ": "ਊ", "ੳੋ": "ਓ",
    "અા": "આ", "અૅ": "ઍ", "અે": "એ", "અૈ": "ઐ", "અૉ": "ઑ", "અો": "ઓ", "અૌ": "ઔ", "ଅା": "ଆ", "ଏୗ": "ଐ", "ଓୗ": "ଔ",
    "அா": "ஆ", "ఒౕ": "ఓ", "ఒౌ": "ఔ", "ಉಾ": "ಊ", "ಒೌ": "ಔ", "ഇൌ": "ഈ", "ഉൌ": "ഊ", "എെ": "ഐ", "ഒാ": "ഓ", "ഒൌ": "ഔ",
    "අා": "ආ", "අැ": "ඇ", "අෑ": "ඈ", "උෟ": "ඌ", "එ්": "ඒ", "එෙ": "ඓ", "ඔ්": "ඕ", "ඔෟ": "ඖ",
}  # fmt: skip
_SPLIT_VOWEL = re.compile("|".join(_VOWELS))
# Malayalam: final consonants, the cluster nta, the half u of the older spelling (Unicode, chapter 12)
_CHILLUS = dict(zip("ണനരറലളകമയഴ", "ൺൻർർൽൾൿൔൕൖ", strict=True))
_JOINED_CHILLU = re.compile(f"([{''.join(_CHILLUS)}])\u0d4d\u200d")
_NTA = re.compile("ൻ\u0d4d?റ")
_HALF_U = "\u0d41\u0d4d"
# Tamil shri, with the letter sha as well (Unicode, chapter 12)
_SHRI = ("ஶ்ரீ", "ஸ்ரீ")


def compose_chillus(text: str) -> str:
    """Return the text with the chillus of Malayalam that are written with a joiner (before Unicode 5.1) as letters."""
    return _JOINED_CHILLU.sub(lambda match: _CHILLUS[match[1]], text)


def fold_indic(text: str) -> str:
    """Return the text with whole vowels, without optional dots, with anusvara for nasals before stops of their class,
    and with one spelling of each cluster.
    """
    text = _SPLIT_VOWEL.sub(lambda match: _VOWELS[match.group()], _GURMUKHI_NUKTA.sub("", text))
    text = _NASAL.sub(lambda match: _ANUSVARAS[match.group()[0]], text)
    return _NTA.sub("ന്റ", text.replace(_HALF_U, "\u0d4d")).replace(*_SHRI)
