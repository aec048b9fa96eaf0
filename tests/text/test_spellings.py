"""Spellings that an orthography leaves open, as answers are compared: pairs by kind, and pairs that stay apart."""

from __future__ import annotations

import unicodedata
from importlib import import_module
from pkgutil import iter_modules

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mrag_eval.languages import known_languages
from mrag_eval.metrics import exact_match, match, normalize_answer, word_f1
from mrag_eval.text import fold, folding, one_spelling

# kind -> language, pairs of one word
OPEN = {
    "glide of Hindi": (
        "hi",
        "गयी ~ गई / नयी ~ नई / गये ~ गए / चाहिये ~ चाहिए / लिये ~ लिए / हुयी ~ हुई / आयी ~ आई / दिये ~ दिए / "
        "कीजिये ~ कीजिए / रुपये ~ रुपए / गयीं ~ गईं / नयी दिल्ली ~ नई दिल्ली",
    ),
    "hamza before u in Arabic": (
        "ar",
        "مسؤول ~ مسئول / شؤون ~ شئون / رؤوس ~ رءوس / مسؤولية ~ مسئولية / رؤوف ~ رءوف / فؤوس ~ فئوس / "
        "كؤوس ~ كئوس / شؤون عامة ~ شئون عامة / المسؤولون ~ المسئولون / مرؤوس ~ مرءوس / بؤونة ~ بئونة",
    ),
    "hundred in Arabic": (
        "ar",
        "مائة ~ مئة / مائتان ~ مئتان / مائتين ~ مئتين / ثلاثمائة ~ ثلاثمئة / خمسمائة ~ خمسمئة / "
        "ستمائة ~ ستمئة / تسعمائة ~ تسعمئة / بالمائة ~ بالمئة / المائة ~ المئة / في المائة ~ في المئة",
    ),
    "hamza before i in Persian": (
        "fa",
        "جزئیات ~ جزییات / پائین ~ پایین / آئین ~ آیین / رئیس ~ رییس / آئینه ~ آیینه / مسئول ~ مسؤول / "
        "روئیدن ~ روییدن / گوئی ~ گویی / زیبائی ~ زیبایی / دانائی ~ دانایی / آمریکائی ~ آمریکایی / "
        "تنهائی ~ تنهایی",
    ),
    "half space in Persian": (
        "fa",
        "می\u200cخواهم ~ می خواهم / می\u200cخواهم ~ میخواهم / می خواهم ~ میخواهم / "
        "نمی\u200cدانم ~ نمی دانم / کتاب\u200cها ~ کتاب ها / کتاب\u200cها ~ کتابها / کتاب ها ~ کتابها / "
        "بزرگ\u200cتر ~ بزرگ تر / بزرگ\u200cترین ~ بزرگ ترین / آتش\u200cسوزی ~ آتش سوزی / "
        "آتش\u200cسوزی ~ آتشسوزی / خانه\u200cهای ~ خانه های / پیش\u200cبینی ~ پیش بینی",
    ),
    "spacing of Korean": (
        "ko",
        "대한 민국 ~ 대한민국 / 김치 찌개 ~ 김치찌개 / 한 가위 ~ 한가위 / 세종 대왕 ~ 세종대왕 / "
        "이순신 장군 ~ 이순신장군 / 조선 시대 ~ 조선시대 / 서울 특별시 ~ 서울특별시 / 한 번 ~ 한번 / "
        "고등 학교 ~ 고등학교 / 제 2차 세계 대전 ~ 제2차 세계대전 / 남 대문 시장 ~ 남대문시장",
    ),
    "tone of Vietnamese": (
        "vi",
        "òa ~ oà / hòa ~ hoà / hóa ~ hoá / Thụy Sĩ ~ Thuỵ Sĩ / thủy ~ thuỷ / tòa ~ toà / khỏe ~ khoẻ / "
        "Hòa Bình ~ Hoà Bình / lũy ~ luỹ / Khánh Hòa ~ Khánh Hoà / úy ~ uý / xòe ~ xoè / QÚY ~ QUÝ",
    ),
}  # fmt: skip
APART = {
    "hi": "गया ~ गई / नया ~ नई / यी ~ ई / ये ~ ए / समय ~ समए / लिया ~ लिए",
    "ar": "سئل ~ سؤل / مائية ~ مئية / ماء ~ مئة / رأس ~ رؤوس / سؤال ~ سوال / مائدة ~ مئدة / بئر ~ بؤر",
    "fa": "ما در ~ مادر / هم سر ~ همسر / با ران ~ باران / جزئی ~ جزی / تر ~ ها / می ~ ما / مسئله ~ مسله",
    "ko": "한 국 ~ 한 군 / 서울 ~ 서 / 남대문 ~ 동대문 / 이라 ~ 이라크",
    "vi": "hòa ~ hóa / thủy ~ thúy / của ~ cuả / quả ~ qủa b / mùa ~ muà / loan ~ lòan g / hoàn ~ hoán / lùi ~ lũi",
}


def pairs(text: str) -> list[list[str]]:
    return [pair.split(" ~ ") for pair in text.split(" / ")]


def same(one: str, other: str, lang: str) -> bool:
    return exact_match(one, [other], normalize="unicode", lang=lang) == 1.0


@pytest.mark.parametrize("kind", OPEN)
def test_spellings_that_an_orthography_leaves_open_are_one(kind: str) -> None:
    lang, text = OPEN[kind]
    assert len(pairs(text)) >= 10
    for one, other in pairs(text):
        assert same(one, other, lang), (one, other)
        assert same(other, one, lang), (one, other)
        assert match(f"— {one}.", [other], normalize="unicode", lang=lang) == 1.0, (one, other)
        # the papers' rule, and the folding that indexes have been built with, still tell them apart
        assert exact_match(one, [other]) == 0.0
        # spacing is no matter of words, and half spaces are one of two ways to take a word
        if "space" not in kind and "spacing" not in kind:
            assert fold(one, lang) != fold(other, lang)
            assert word_f1(one, [other], normalize="unicode", lang=lang) == 1.0


@pytest.mark.parametrize("lang", APART)
def test_pairs_of_two_words_stay_apart(lang: str) -> None:
    for one, other in pairs(APART[lang]):
        assert not same(one, other, lang), (one, other)
        assert not same(other, one, lang), (one, other)


def test_a_rule_is_its_language_s() -> None:
    for lang, text in OPEN.values():
        for one, _ in pairs(text):
            for other in ("en", "mr", "ur", None):
                assert one_spelling(fold(one), other) == fold(one), lang


LETTERS = st.text(st.sampled_from("गयीएेंईा مسؤئءولهةاتیيک\u200cکهامنر 대한이라hoàuýqỷ́̀a0."), max_size=16)


@given(LETTERS, st.sampled_from([*known_languages(), None]))
@example("ए.े", "am")
@example("ए!ै", "hi")
@example("अ-ो", "mr")
@example("ㅏ.́", None)
def test_normalising_twice_changes_nothing(text: str, lang: str | None) -> None:
    once = normalize_answer(text, normalize="unicode", lang=lang)
    assert normalize_answer(once, normalize="unicode", lang=lang) == once


def in_parts() -> list[str]:
    """Return what is written in several characters and folded to one: of our tables, and of Unicode's."""
    modules = [import_module(f"{folding.__name__}.{found.name}") for found in iter_modules(folding.__path__)]
    tables = [table for module in modules for table in vars(module).values() if isinstance(table, dict)]
    written = [text for table in tables for text in (*table, *table.values()) if isinstance(text, str)]
    written += [unicodedata.normalize("NFKD", chr(code)) for code in range(0xC0, 0x3000)]
    return sorted({text for text in written if 1 < len(text) < 6})


@pytest.mark.parametrize("lang", [None, "hi", "ar", "fa", "ko", "vi", "hy", "km", "tr"])
def test_parts_of_a_letter_that_punctuation_keeps_apart_meet_at_once(lang: str | None) -> None:
    parts = in_parts()
    assert {"एे", "եւ"} <= {*parts}
    for text in parts:
        for at in range(1, len(text)):
            once = normalize_answer(f"{text[:at]}.{text[at:]}", normalize="unicode", lang=lang)
            assert normalize_answer(once, normalize="unicode", lang=lang) == once, (text, at)


@given(LETTERS, LETTERS, st.sampled_from([*known_languages(), None]))
def test_equality_is_symmetric(one: str, other: str, lang: str | None) -> None:
    a, b = (exact_match(x, [y], normalize="unicode", lang=lang) for x, y in ((one, other), (other, one)))
    assert a == b
    assert exact_match(one, [one], normalize="unicode", lang=lang) == 1.0
