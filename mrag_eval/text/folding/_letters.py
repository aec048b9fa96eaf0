"""Folded forms of single characters, from their Unicode properties where these tell, else from tables."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache

from mrag_eval.core import base_language
from mrag_eval.text._letters import character_class
from mrag_eval.text._scripts import expected_scripts

# Blocks of letters, signs and digits that are folded: the alphabets of the basic plane
_BLOCKS = ((0x80, 0x2070), (0x2C60, 0x2DE0), (0xA620, 0xAC00), (0xFB1E, 0xFB1F))

_BEYOND = re.compile("[\U00010000-\U0001ffff]")

# Languages that write vowels with the points of their script: Yiddish and Kashmiri
_POINTED = {"yi": "HEBREW", "ks": "ARABIC"}
# ... in whose alphabet ё is another letter than е, never left without its dots
_WITH_YO = ("be", "mn", "tg", "ky", "kk", "tt", "ba", "rue")
# ... that pronounce what Amharic has merged: Tigrinya, Tigre, Ge'ez
_WITH_GUTTURALS = ("ti", "tig", "gez")
# ... of the Latin alphabet without further letters (CLDR, main exemplar characters)
_PLAIN_LATIN = ("en", "id", "ms", "sw", "so", "zu", "xh", "rw", "rn", "sn", "ss", "ny")

_APOSTROPHES = "\u2018\u2019\u201b\u02b9\u02bb\u02bc\u02bd\u2032\u055a\u05f3\ua78c"
_QUOTES = "\u201c\u201d\u201e\u201f\u05f4"

_VARIANTS: dict[str, str] = {
    **dict.fromkeys(_APOSTROPHES, "'"),
    **dict.fromkeys(_QUOTES, '"'),
    # Turkish: capitals are written with and without the dot, so that all four are one letter
    "ı": "i",
    # Romanian with the cedilla of Turkish, from keyboards before 2007
    "ș": "ş", "ț": "ţ",
    # Lucene's ArabicNormalizer (alef, yeh, teh marbuta, tatweel) and PersianNormalizer (yeh, kaf, heh), which
    # keeps the yeh barree and the aspirated heh of Urdu apart only here
    "آ": "ا", "أ": "ا", "إ": "ا", "ٱ": "ا", "ى": "ي", "ی": "ي", "ک": "ك", "ڪ": "ك",
    "ة": "ه", "ۃ": "ه", "ہ": "ه", "ۂ": "ه", "ۀ": "ه", "ـ": "",
    # Emphasis, exclamation, question and abbreviation marks of Armenian, written within a word
    "\u055b": "", "\u055c": "", "\u055e": "", "\u055f": "",
    # Bengali khanda ta is a ta without vowel (Unicode, chapter 12); the Assamese ra
    "ৎ": "ত্", "ৰ": "র",
    # Candrabindu and anusvara: Lucene's HindiNormalizer; likewise Gujarati and Gurmukhi's tippi, which spelling
    # distributes by the vowel before. Obsolete in Telugu. (Another sound in Bengali and Odia.)
    "ँ": "ं", "ઁ": "ં", "ਁ": "ਂ", "ੰ": "ਂ", "ఁ": "",
    # Malayalam: the au sign of the older spelling, the dot reph (Unicode, chapter 12)
    "ൗ": "ൌ", "ൎ": "ർ",
    # Thai lakkhangyao, used for sara aa after ฤ and ฦ
    "ๅ": "า",
    # Khmer: deprecated and discouraged letters (Unicode, chapter 16)
    "ឣ": "អ", "ឤ": "អា", "ឨ": "ឧក", "ឲ": "ឱ",
    # Burmese: tall aa, and letters that are written with two signs as well (Unicode, chapter 16)
    "ါ": "ာ", "ဩ": "သြ", "ဪ": "သြော်",
    # Tibetan fixed-form letters and nasal signs (Unicode, chapter 13)
    "ཪ": "ར", "ྺ": "ྭ", "ྻ": "ྱ", "ྼ": "ྲ", "ྂ": "ཾ", "ྃ": "ཾ",
}  # fmt: skip

# Scripts whose nukta writes sounds of loan words and is mostly omitted; in Bengali and Odia it makes other letters
_UNDOTTED = ("DEVANAGARI", "GUJARATI", "KANNADA")
_NUKTAS = {ord(unicodedata.lookup(f"{script} SIGN NUKTA")): None for script in _UNDOTTED}

# Latin letters without decomposition (Lucene's ASCIIFoldingFilter); those with a stroke or hook are found by name
_PLAIN = {"æ": "ae", "œ": "oe", "ð": "d", "þ": "th", "ŋ": "n", "ı": "i"}

# Amharic homophones: first syllable of a row -> of its homophone (as in Yimam et al., "Introducing various semantic
# models for Amharic", 2021)
_HOMOPHONES = {0x1220: 0x1230, 0x1340: 0x1338}
_GUTTURALS = {0x1210: 0x1200, 0x1280: 0x1200, 0x12D0: 0x12A0}
# ... and the fourth vowel of a guttural, which is the first; rounded syllables written for plain ones
_SYLLABLES = dict(zip("ሃኣቈቊቍኈኊኍኰኲኵጐጒጕ", "ሀአቆቁቁሆሁሁኮኩኩጎጉጉ", strict=True))


@dataclass(frozen=True, slots=True)
class FoldingRules:
    """The choices that depend on the language and the purpose: for each kind of letter, whether it is folded; and the
    script (as in Unicode names) that keeps its points.
    """

    diacritics: bool
    vietnamese: bool
    yo: bool
    gutturals: bool
    pointed: str


@lru_cache(maxsize=1024)
def rules(language: str | None, search: bool) -> FoldingRules:
    """Return the choices for a language; ``search`` folds the diacritics of Latin letters in every language, but not
    in Vietnamese words.
    """
    base = None if language is None else base_language(language)
    scripts = frozenset() if language is None else expected_scripts(language)
    return FoldingRules(
        diacritics=search or base in _PLAIN_LATIN or bool(scripts and "Latn" not in scripts),
        vietnamese=not search,
        yo=base not in _WITH_YO,
        gutturals=base not in _WITH_GUTTURALS,
        pointed=_POINTED.get(base or "", ""),
    )


def fold_letters(text: str, chosen: FoldingRules) -> str:
    """Return normalised, case-folded text with each character in its folded form."""
    pattern, folded = _table(chosen)
    found = set(pattern.findall(text))
    if len(found) > 30:
        return text.translate({ord(char): folded[char] for char in found})
    for char in found:
        text = text.replace(char, folded[char])
    return text


@lru_cache
def _table(chosen: FoldingRules) -> tuple[re.Pattern[str], dict[str, str]]:
    """Return a pattern for the characters that are folded, and their folded forms."""
    folded = {char: _folded(char, chosen) for low, high in _BLOCKS for char in map(chr, range(low, high))}
    folded = {char: value for char, value in folded.items() if value != char}
    return re.compile(f"[{character_class(map(ord, folded))}]"), folded


def digits_beyond(text: str) -> str:
    """Return the text with decimal digits of the supplementary planes (Chakma, Adlam) as 0 to 9.

    A class of characters of all planes would make the pattern of :func:`fold_letters` ten times slower.
    """
    return _BEYOND.sub(lambda match: str(unicodedata.decimal(match.group(), match.group())), text)


def _folded(char: str, chosen: FoldingRules) -> str:
    name = unicodedata.name(char, "")
    script = name.partition(" ")[0]
    if unicodedata.category(char) == "Nd":
        return str(unicodedata.decimal(char))
    if script in ("HEBREW", "ARABIC") and unicodedata.category(char) == "Mn":
        return char if chosen.pointed == script else ""
    if script == "LATIN" and chosen.diacritics:
        return _plain_latin(char)
    if char in "آأإٱ" and chosen.pointed == script:
        return char
    if char in _VARIANTS:
        return _VARIANTS[char]
    if script == "GREEK" or char in "ѐѝ" or (char == "ё" and chosen.yo):
        return _without_marks(char)
    if script in _UNDOTTED:
        return unicodedata.normalize("NFC", unicodedata.normalize("NFD", char).translate(_NUKTAS))
    if name.startswith("GEORGIAN SMALL LETTER "):
        return unicodedata.lookup(name.replace("SMALL ", ""))
    if script == "ETHIOPIC":
        return _plain_syllable(char, chosen)
    return char


def _without_marks(char: str) -> str:
    kept = (part for part in unicodedata.normalize("NFD", char) if unicodedata.category(part) != "Mn")
    return "".join(kept) or char


def _plain_latin(text: str) -> str:
    """Return Latin letters without accents, strokes and hooks."""
    letters = map(_without_stroke, _without_marks(text))
    return "".join(_PLAIN.get(letter, letter) for letter in letters)


def _without_stroke(letter: str) -> str:
    name, _, sign = unicodedata.name(letter, "").partition(" WITH ")
    try:
        return unicodedata.lookup(name) if sign else letter
    except KeyError:
        return letter


def _plain_syllable(char: str, chosen: FoldingRules) -> str:
    start = ord(char) & ~7
    rows = {**_HOMOPHONES, **_GUTTURALS} if chosen.gutturals else _HOMOPHONES
    char = chr(ord(char) - start + rows.get(start, start))
    return _SYLLABLES.get(char, char) if chosen.gutturals else char
