"""Tokens: one golden case per script, and pairs that must match."""

from __future__ import annotations

import pytest

from mrag_eval.core import CorpusError
from mrag_eval.retrievers.shards._tokenize import TOKENIZER_NAME, TOKENIZER_VERSION, tokenize, tokenizer

GOLDEN = {
    "Latin": ("Der Straßenname: ÉCOLE, 3.5 km!", ["der", "strassenname", "école", "3", "5", "km"]),
    "Cyrillic": ("Ёлка и МЁД", ["ёлка", "и", "мёд"]),
    "Greek": ("Ο ΔΡΟΜΟΣ, ο δρόμος", ["ο", "δρομοσ", "ο", "δρόμοσ"]),
    "Arabic": ("كِتَابٌ جـــديد، ١٩٤٥", ["كتاب", "جديد", "1945"]),
    "Hebrew": ("שָׁלוֹם, עולם", ["שלום", "עולם"]),
    "Devanagari": ("नदी के किनारे।", ["नदी", "के", "किनारे"]),
    "Han": ("大学生活。书", ["大学", "学生", "生活", "书"]),
    "Kana": ("食べる、テスト", ["食べ", "べる", "テス", "スト"]),
    "Hangul": ("서울의 강", ["서울의", "서울", "울의", "강"]),
    "Thai": ("ที่นี่ ๑๐", ["ที่นี่", "10"]),
    "Ethiopic": ("አዲስ አበባ።", ["አዲስ", "አበባ"]),
    "Khmer": ("ខ្មែរ", ["ខ្មែ", "មែរ"]),
    "Tibetan": ("བོད་ཡིག", ["བོད", "ཡིག"]),
}


@pytest.mark.parametrize("script", GOLDEN)
def test_golden(script: str) -> None:
    text, expected = GOLDEN[script]
    assert tokenize(text) == expected


def test_letters_keep_their_marks() -> None:
    # letters with their marks: ก้ า น้ มั; pairs never split a letter from its mark
    assert tokenize("ก้าน้มั") == ["ก้า", "าน้", "น้มั"]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("ﾃｽﾄ", "テスト"),  # halfwidth
        ("Ｔｏｋｙｏ", "tokyo"),  # fullwidth
        ("İstanbul", "istanbul"),  # the dot that case folding leaves
        ("e\u0301cole", "école"),  # decomposed
        ("مَدْرَسَة", "مدرسة"),  # vowel points
        ("می\u200cخواهم", "می خواهم"),  # non-joiner between words
        ("क्\u200dष", "क्ष"),  # joiner within a word
        ("co\u00adoperate", "cooperate"),  # soft hyphen
        ("\ufeffword", "word"),
        ("२०२४", "2024"),
    ],
)
def test_same_tokens(one: str, other: str) -> None:
    assert tokenize(one) == tokenize(other)


@pytest.mark.parametrize("text", ["", "   ", "… —「」", "\u200b", "🙂"])
def test_nothing_to_find(text: str) -> None:
    assert tokenize(text) == []


def test_mixed_scripts_are_separated() -> None:
    assert tokenize("iPhone手机2024년") == ["iphone", "手机", "2024", "년"]


def test_repetitions_stay() -> None:
    assert tokenize("to be or not to be").count("be") == 2


def test_another_version_is_refused() -> None:
    assert tokenizer(TOKENIZER_NAME, TOKENIZER_VERSION)("ab cd") == ["ab", "cd"]
    with pytest.raises(CorpusError, match="version 99"):
        tokenizer(TOKENIZER_NAME, 99)
