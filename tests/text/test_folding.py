"""Folding: pairs of spellings in every script, and its properties on any text."""

from __future__ import annotations

import re
import time
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mrag_eval.platform import MissingExtraError
from mrag_eval.text import fold

_PAIRS = Path(__file__).with_name("pairs.txt")


class Pair(NamedTuple):
    """Two spellings, and how they compare: ``=``, ``≈`` or ``≠``."""

    script: str
    lang: str
    sign: str
    one: str
    other: str


def pairs() -> Iterator[Pair]:
    script = lang = ""
    for line in _PAIRS.read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            script, lang = line.strip("[]").split()
        elif line and not line.startswith("#"):
            text = re.sub(r"\\u([0-9a-f]{4})|\\U([0-9a-f]{8})", lambda m: chr(int(m[1] or m[2], 16)), line[2:])
            for pair in text.split(" / "):
                one, other = pair.split(" ~ ")
                yield Pair(script, lang, line[0], one, other)


ALL = list(pairs())


def wrongly_folded(pair: Pair) -> str | None:
    """Return the purpose for which a pair is folded as it should not be: search, without a language, or answers."""
    searched = fold(pair.one, search=True) == fold(pair.other, search=True)
    answered = fold(pair.one, pair.lang) == fold(pair.other, pair.lang)
    # search has no language, and so takes as one what a few languages keep apart
    if searched != (pair.sign != "≠") and pair.lang not in ("yi", "ti"):
        return "search"
    return "answers" if answered != (pair.sign == "=") else None


@pytest.mark.parametrize("lang", dict.fromkeys(pair.lang for pair in ALL))
def test_pairs(lang: str) -> None:
    assert [(pair, wrong) for pair in ALL if pair.lang == lang and (wrong := wrongly_folded(pair))] == []


def test_each_script_has_twenty_equal_pairs_and_five_different_ones() -> None:
    kinds = {(pair.script, pair.lang if pair.script == "Arabic" else "") for pair in ALL}
    assert len(kinds) == 27
    for script, lang in kinds:
        signs = [pair.sign for pair in ALL if pair.script == script and lang in ("", pair.lang)]
        assert signs.count("=") >= 20, (script, lang)
        assert signs.count("≠") >= 5, (script, lang)
    assert all(pair.one != pair.other for pair in ALL)


_BLOCKS = [(0x20, 0x24F), (0x300, 0x52F), (0x530, 0x6FF), (0x900, 0xDFF), (0xE00, 0xEFF), (0xF00, 0x10FF),
           (0x1100, 0x137F), (0x1780, 0x17FF), (0x1E00, 0x206F), (0x3000, 0x30FF), (0x4E00, 0x4E20)]  # fmt: skip
TEXTS = st.one_of(
    st.text(max_size=20),
    *(st.text(st.characters(min_codepoint=low, max_codepoint=high), max_size=15) for low, high in _BLOCKS),
    st.lists(st.sampled_from([text for pair in ALL for text in pair[3:]] + [" ", "\u0301", "\u200d"]), max_size=6).map(
        "".join
    ),
)


@settings(max_examples=150)
@given(TEXTS, st.sampled_from([None, "en", "fr", "tr", "yi", "ks", "ti", "be"]), st.booleans())
def test_folding_twice_and_canonical_forms(text: str, language: str | None, search: bool) -> None:
    folded = fold(text, language, search=search)
    assert fold(folded, language, search=search) == folded
    for form in ("NFC", "NFD"):
        assert fold(unicodedata.normalize(form, text), language, search=search) == folded


_UNITS = [
    "a",
    "é",
    "ー",
    "ーア",
    "々",
    "ゞ",
    "一",
    "〇",
    "l·",
    "д'",
    "ل",
    "്",
    "ൻ",
    "ങ്",
    "\u17d2រ",
    "่",
    "่ิ",
    "၀",
    " ",
    "ệ",
    "x ",
]


@pytest.mark.parametrize("unit", [*_UNITS[:3], *(pytest.param(unit, marks=pytest.mark.slow) for unit in _UNITS[3:])])
def test_time_is_linear(unit: str) -> None:
    # a tenth of a second for 100,000 characters; a quadratic rule would take minutes
    for end in ("", "ア", "ๆ", "é"):
        text = unit * (100_000 // len(unit)) + end
        start = time.perf_counter()
        fold(text, search=True)
        assert time.perf_counter() - start < 10


def test_simplified_and_traditional() -> None:
    pytest.importorskip("opencc")
    for traditional, simplified in (
        ("歷史", "历史"),
        ("臺灣", "台湾"),
        ("漢語", "汉语"),
        ("國家", "国家"),
        ("頭髮", "头发"),
    ):
        assert fold(traditional) != fold(simplified)
        assert fold(traditional, simplified=True) == fold(simplified, simplified=True) == simplified


def test_the_converter_is_an_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    from mrag_eval.text.folding import _alphabets

    _alphabets._converter.cache_clear()
    monkeypatch.setitem(__import__("sys").modules, "opencc", None)
    with pytest.raises(MissingExtraError, match="extra 'chinese'"):
        fold("歷史", simplified=True)
