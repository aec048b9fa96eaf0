"""Folding beyond single letters, by script: alphabets, Chinese, Japanese and Korean, Indic and Southeast Asian."""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from typing import Any

from mrag_eval.platform import missing_extra
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


def simplified(text: str) -> str:
    """Return the text in simplified characters.

    Raises:
        MissingExtraError: the extra ``chinese`` is not installed.
    """
    converted: str = _converter().convert(text)
    return converted


@cache
def _converter() -> Any:
    try:
        import opencc
    except ImportError as error:
        raise missing_extra("chinese", "opencc") from error
    return opencc.OpenCC("t2s")


_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U0003fffd]+")
_HAN_ITERATION = re.compile("[々〻]+")
_KANA_ITERATION = re.compile("([\u3041-\u3096\u30a1-\u30fa])([ゝヽ]+|[ゞヾ]+)")
# As Lucene's JapaneseKatakanaStemFilter: words of four characters and more
_LONG_KATAKANA = re.compile("[ァ-ヺー]{4,}")
_DIGITS = "〇一二三四五六七八九"
_HAN_NUMBER = re.compile(f"[{_DIGITS}]{{2,}}")
_TO_DIGITS = str.maketrans(_DIGITS, "0123456789")


def _repeated_han(match: re.Match[str]) -> str:
    start, length = match.start(), len(match.group())
    before = match.string[max(0, start - length) : start]
    return before if len(before) == length and _HAN.fullmatch(before) else match.group()


def _repeated_kana(match: re.Match[str]) -> str:
    letter, iteration = match[1], match[2]
    plain = unicodedata.normalize("NFD", letter)[0]
    again = unicodedata.normalize("NFC", plain + "\u3099") if iteration[0] in "ゞヾ" else plain
    return letter + again * len(iteration)


def _number(match: re.Match[str]) -> str:
    run = match.group()
    return run.translate(_TO_DIGITS) if "〇" in run or len(run) > 3 else run


def fold_east_asian(text: str) -> str:
    """Return the text with iteration marks written out (as Lucene's JapaneseIterationMarkCharFilter), without the last
    long vowel of longer katakana words, and with numbers written digit by digit in Han (``二〇二〇``) as 0 to 9.
    """
    text = _HAN_ITERATION.sub(_repeated_han, text)
    if any(mark in text for mark in "ゝゞヽヾ"):
        text = _KANA_ITERATION.sub(_repeated_kana, text)
    if "ー" in text:
        text = _LONG_KATAKANA.sub(lambda match: match.group().rstrip("ー"), text)
    return _HAN_NUMBER.sub(_number, text)


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
_GURMUKHI_VOWELS = {
    "अा": "आ", "अॉ": "ऑ", "अो": "ओ", "अौ": "औ", "अॅ": "ॲ", "आे": "ओ", "आै": "औ", "आॅ": "ऑ", "एे": "ऐ", "एॅ": "ऍ", "उु": "ऊ",
    "অা": "আ", "ਅਾ": "ਆ", "ਅੈ": "ਐ", "ਅੌ": "ਔ", "ੲਿ": "ਇ", "ੲੀ": "ਈ", "ੲੇ": "ਏ", "ੳੁ": "ਉ", "ੳੂ": "ਊ", "ੳੋ": "ਓ",
    "અા": "આ", "અૅ": "ઍ", "અે": "એ", "અૈ": "ઐ", "અૉ": "ઑ", "અો": "ઓ", "અૌ": "ઔ", "ଅା": "ଆ", "ଏୗ": "ଐ", "ଓୗ": "ଔ",
    "அா": "ஆ", "ఒౕ": "ఓ", "ఒౌ": "ఔ", "ಉಾ": "ಊ", "ಒೌ": "ಔ", "ഇൌ": "ഈ", "ഉൌ": "ഊ", "എെ": "ഐ", "ഒാ": "ഓ", "ഒൌ": "ഔ",
    "අා": "ආ", "අැ": "ඇ", "අෑ": "ඈ", "උෟ": "ඌ", "එ්": "ඒ", "එෙ": "ඓ", "ඔ්": "ඕ", "ඔෟ": "ඖ",
}  # fmt: skip
_SPLIT_VOWEL = re.compile("|".join(_GURMUKHI_VOWELS))
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
    text = _SPLIT_VOWEL.sub(lambda match: _GURMUKHI_VOWELS[match.group()], _GURMUKHI_NUKTA.sub("", text))
    text = _NASAL.sub(lambda match: _ANUSVARAS[match.group()[0]], text)
    return _NTA.sub("ന്റ", text.replace(_HALF_U, "\u0d4d")).replace(*_SHRI)


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
