"""Spellings of a word that the orthography of a language leaves open, as answers are compared.

Each rule follows from script or position, not from a list of words, and takes folded text
(:func:`mrag_eval.text.fold`). Search does not use them, so that indexes keep their words; a change of a
rule is a new version of the normaliser ``unicode``.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable

from mrag_eval.core import base_language

_NON_JOINER = "\u200c"
_WITHIN_ARABIC = re.compile("(?<=[\u0600-\u06ff\u0750-\u077f])\u200c+(?=[\u0600-\u06ff\u0750-\u077f])")

# The glide ya before the last vowel of a word (Central Hindi Directorate, "Devanagari lipi tatha Hindi vartani ka
# manakikaran", 2016, rule on ye/e and yi/i: the vowel is standard where both are written)
_GLIDE = re.compile("(?<=[\u0905-\u0939\u093e-\u094c])य([ीे])(?=\u0902?(?![\\w\u0900-\u0963]))")
_VOWELS = {"ी": "ई", "े": "ए"}
# The seat of a hamza before the long u: waw (the east), yeh (Egypt), the line (Academy of Cairo, 1960 and 1980)
_HAMZA_BEFORE_U = re.compile("[ئء](?=و)")
# The silent alef of "hundred", alone and in compounds (Academy of Cairo, 1963: may be left out); teh marbuta is folded
_HUNDRED = re.compile("(?<!\\w)([وبلك]?(?:ال)?\\w{0,4}م)ائ(?=ه(?!\\w)|ت(?:ان|ين)(?!\\w))")
# Academy of Persian Language, "Dastur-e khatt-e farsi", 2005: a hamza or a yeh before the long i
_HAMZA_BEFORE_I = re.compile("ئ(?=ي)")
# ... the affixes written apart, joined, or with a half space: mi- and nemi-, -ha, -tar with what follows them
_PREFIX = re.compile("(?<!\\w)(ن?مي) (?=\\w)")
_SUFFIX = re.compile("(?<=\\w) (?=(?:ها(?:ي|يي|يم|يت|يش|يمان|يتان|يشان)?|تر(?:ين)?)(?!\\w))")
# Tone marks of an open syllable in oa, oe, uy: on the first vowel (old style) or the second (Ministry of Education,
# decision 240/QD, 1984)
_TONE = "\u0300\u0301\u0303\u0309\u0323"
_OLD_TONE = re.compile(f"(?:(o)([{_TONE}])([ae])|(u)([{_TONE}])(y))(?![\\w\u0300-\u036f])")


def _hindi(text: str) -> str:
    return _GLIDE.sub(lambda match: _VOWELS[match[1]], text)


def _arabic(text: str) -> str:
    return _HUNDRED.sub(r"\1ئ", _HAMZA_BEFORE_U.sub("ؤ", text))


def _persian(text: str) -> str:
    text = _HAMZA_BEFORE_I.sub("ي", _HAMZA_BEFORE_U.sub("ؤ", text))
    return _SUFFIX.sub("", _PREFIX.sub(r"\1", text))


def _vietnamese(text: str) -> str:
    apart = unicodedata.normalize("NFD", text)
    moved = _OLD_TONE.sub(lambda m: f"{m[1]}{m[3]}{m[2]}" if m[1] else f"{m[4]}{m[6]}{m[5]}", apart)
    return unicodedata.normalize("NFC", moved)


_RULES: dict[str, Callable[[str], str]] = {"hi": _hindi, "ar": _arabic, "fa": _persian, "vi": _vietnamese}


def one_spelling(folded: str, language: str | None) -> str:
    """Return folded text in one of the spellings that the orthography of ``language`` allows.

    Hindi: ``गयी`` as ``गई``. Arabic: ``مسؤول`` as ``مسئول``, ``مائة`` as ``مئة``. Persian: ``جزئیات`` as ``جزییات``,
    the affixes ``می``, ``ها``, ``تر`` joined to their word. Vietnamese: ``òa`` as ``oà``. Other texts are unchanged.
    """
    rule = None if language is None else _RULES.get(base_language(language))
    return folded if rule is None else rule(folded)


def half_spaces_apart(text: str) -> str | None:
    """Return the text with a space for each half space (zero-width non-joiner) between Arabic letters; None if it has
    none.

    Readers take the parts as one word or as two, so that an answer may be compared in both forms.
    """
    if _NON_JOINER not in text:
        return None
    apart = _WITHIN_ARABIC.sub(" ", text)
    return None if apart == text else apart
