"""MKQA's own answer normaliser, as its evaluation script applies it (Longpre et al., 2021; apple/ml-mkqa)."""

from __future__ import annotations

import re
import string

from mrag_eval.core import base_language

_ASCII_PUNCTUATION = str.maketrans("", "", string.punctuation)
# Every character is a token
_BY_CHARACTER = ("zh", "ja", "th", "km")
# The script's lists, without the forms with an apostrophe: the apostrophe is gone before they are looked for
_WORDS = {
    "en": "a an the",
    "es": "un una unos unas el la los las",
    "vi": "của là cái chiếc những",
    "de": "ein eine einen einem eines einer der die das den dem des",
    "nl": "de het een des der den",
    "sv": "en ett",
    "da": "en et",
    "no": "en et ei",
    "pt": "o a os as um uma uns umas",
    "fi": "se yks yksi",
    "hu": "a az egy",
}
# French and Italian articles need only begin a word (the first in the list counts), the Arabic one may be anywhere
_BEGINNINGS = {
    "fr": "le la les du de des un une",
    "it": "il lo la i gli le del dello della dei degli delle uno una un",
}
_ARTICLES = {
    **{lang: re.compile(rf"\b(?:{words.replace(' ', '|')})\b") for lang, words in _WORDS.items()},
    **{lang: re.compile(rf"\b(?:{words.replace(' ', '|')})") for lang, words in _BEGINNINGS.items()},
    "ar": re.compile("ال"),
}


def normalize_mkqa(text: str, lang: str | None) -> str:
    """Return the text lower-cased, without ASCII punctuation and the language's articles, words separated by single
    spaces; in Chinese, Japanese, Thai and Khmer, characters.
    """
    base = None if lang is None else base_language(lang)
    base = "no" if base in ("nb", "nn") else base
    text = text.lower().translate(_ASCII_PUNCTUATION)
    if base in _ARTICLES:
        text = _ARTICLES[base].sub(" ", text)
    words = (char for char in text if not char.isspace()) if base in _BY_CHARACTER else text.split()
    return " ".join(words)
