"""Folding beyond single characters in Chinese and Japanese: iteration marks, long vowels, years in Han digits."""

from __future__ import annotations

import re
import unicodedata

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
