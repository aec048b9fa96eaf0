"""Numbers in answers: separators, digits, signs and units by language, as readers read them."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrag_eval.languages import known_languages
from mrag_eval.metrics import exact_match, match, normalize_answer, word_scores

# language, spellings that are one number each; any of one line differs from any of another
SAME = {
    "en": ["1.5 ~ 1,5 ~ 1.50 ~ 1٫5", "1,500 ~ 1500 ~ 1'500 ~ 1٬500 ~ 1\u202f500", "15", "-5 ~ −5 ~ –5", "5",
           "0.5 ~ .5", "05"],
    "de": ["1,5 ~ 1.5", "15", "1.234,5 ~ 1,234.5 ~ 1234,50", "12.345.678 ~ 12,345,678 ~ 12345678", "5 % ~ 5%", "5"],
    "fr": ["1 500,5 ~ 1500.5 ~ 1 500,5", "1 234 567 ~ 1234567", "50 € ~ 50€ ~ €50 ~ € 50", "50", "50 $", "50 %"],
    "hi": ["१,००,००० ~ 100,000 ~ 100000 ~ 1,00,000", "१.५ ~ 1.5", "१५", "₹500 ~ ₹ ५०० ~ 500₹", "500"],
    "ar": ["٥٠٪ ~ 50% ~ ٥٠ %", "٥٠", "١٬٥٠٠٫٥ ~ 1500.5", "١٫٥ ~ 1.5 ~ 1،5", "−٥ ~ -5", "٥"],
    "fa": ["۱٫۵ ~ 1.5", "۱۵", "۵۰٪ ~ 50%", "۱٬۵۰۰٬۰۰۰ ~ 1500000"],
    "tr": ["%50 ~ 50% ~ % 50", "50", "1.000.000 ~ 1000000"],
    "pt": ["R$ 100,50 ~ R$100.50", "100,50"],
    "zh": ["１，５００ ~ 1500", "－5 ~ -5", "5", "￥5 ~ 5¥", "5℃ ~ 5 °C ~ 5°C", "5C"],
    "th": ["๑๒.๕ ~ 12.5", "๑๒๕ ~ 125"],
}  # fmt: skip


def same(one: str, other: str, lang: str | None) -> bool:
    return exact_match(one, [other], normalize="unicode", lang=lang) == 1.0


@pytest.mark.parametrize("lang", SAME)
def test_spellings_of_one_number_are_equal_and_no_two_numbers_are(lang: str) -> None:
    groups = [line.split(" ~ ") for line in SAME[lang]]
    for one, other in itertools.product(range(len(groups)), repeat=2):
        for a, b in itertools.product(groups[one], groups[other]):
            assert same(a, b, lang) == (one == other), (a, b)


@pytest.mark.parametrize("lang", ["de", "es", "ru", "ar", "id", None])
def test_an_ambiguous_number_is_neither_of_its_readings_for_certain(lang: str | None) -> None:
    for ambiguous in ("1.500", "1,500", "١.٥٠٠"):
        for reading in ("1500", "1,5", "1.5", "1.50", "1 500", "1'500"):
            if lang is None and reading == "1 500":
                continue
            assert same(ambiguous, reading, lang), (ambiguous, reading)
            assert same(reading, ambiguous, lang), (ambiguous, reading)
        for other in ("15", "150", "15000", "-1500", "1500%", "1,51", "500"):
            assert not same(ambiguous, other, lang), (ambiguous, other)
    # each of the readings is itself
    assert not same("1500", "1,5", lang)


def test_english_and_its_kin_read_it_in_one_way() -> None:
    for lang in ("en", "zh", "hi", "ja", "sw"):
        assert same("1,500", "1500", lang)
        assert same("1.500", "1.5", lang)
        assert not same("1.500", "1500", lang)
        # with other than three digits behind it, a comma cannot group
        assert same("1,5", "1.5", lang)
        assert same("0,500", "0.5", lang)


# reply, answer, language: equal once punctuation is deleted
DIFFERENT = [
    ("1.5", "15", "en"), ("-5", "5", "en"), ("C++", "C", "en"), ("C#", "C", "en"), ("C++", "C#", "en"),
    ("A+", "A", "en"), ("50%", "50", "en"), ("$5", "€5", "en"), ("5°", "5", "en"), ("½", "12", "en"),
    ("1½", "11/2", "en"), ("10²", "102", "en"), ("10^2", "102", "en"), ("2×3", "23", "en"), ("2+2", "22", "en"),
    ("12:30", "1230", "en"), ("12.5.2020", "1252020", "de"), ("3*4", "34", "en"), ("1,2,3", "123", "en"),
    ("F#", "F", "de"), ("18+", "18", "fr"), ("007", "7", "en"), ("‰5", "%5", "de"),
]  # fmt: skip
EQUAL = [
    ("10²", "10^2", "en"), ("10⁻³", "10^-3", "en"), ("**C++**", "c++", "en"), ("F♯", "F#", "en"),
    ("#1", "1", "en"), ("12/05/2020", "12.05.2020", "de"), ("1990–2000", "1990-2000", "en"), ("(-5)", "−5", "en"),
    ("-$5", "−5 $", "en"), ("F-16", "F 16", "en"), ("¼", "1/4", "en"), ("H₂O", "H2O", "en"),
    ("## C++", "C++", "en"), ("$-5", "-$5", "en"),
]  # fmt: skip


@pytest.mark.parametrize(("reply", "answer", "lang"), DIFFERENT)
def test_what_carries_meaning_is_kept(reply: str, answer: str, lang: str) -> None:
    assert not same(reply, answer, lang)
    assert not same(answer, reply, lang)


@pytest.mark.parametrize(("reply", "answer", "lang"), EQUAL)
def test_what_does_not_is_not(reply: str, answer: str, lang: str) -> None:
    assert same(reply, answer, lang)
    assert same(answer, reply, lang)


# reply, answer, language, whether the reply contains it
CONTAINED = [
    ("about 1,5 million people", "1.5 million", "en", True), ("rund 1.500 Menschen", "1500", "de", True),
    ("rund 1.500 Menschen", "1,5", "de", True), ("rund 1.500 Menschen", "500", "de", False),
    ("it is -5 today", "5", "en", False), ("it is −5° today", "-5", "en", True), ("it costs $5", "5", "en", True),
    ("it costs 5", "$5", "en", False), ("written in C++.", "C", "en", False),
    ("written in C++.", "C++", "en", True), ("C, not C++", "C", "en", True), ("1990-2000", "2000", "en", True),
    ("12.5 km", "5", "en", False), ("约5%的人", "5%", "zh", True), ("3.14159", "3.14", "en", False),
    ("в 2 000 году", "2000", "ru", True), ("1.234.567", "234", "de", False),
    ("1,500 and 1,600", "1600", "de", True),
]  # fmt: skip


@pytest.mark.parametrize(("reply", "answer", "lang", "found"), CONTAINED)
def test_a_number_is_found_whole(reply: str, answer: str, lang: str, found: bool) -> None:
    assert match(reply, [answer], normalize="unicode", lang=lang) == float(found)


def test_words_of_numbers_meet() -> None:
    def f1(reply: str, answer: str, lang: str = "de") -> float:
        return word_scores(reply, [answer], normalize="unicode", lang=lang).f1

    assert f1("rund 1.500 Menschen", "1500 Menschen") == pytest.approx(2 * 1 * (2 / 3) / (2 / 3 + 1))
    # a unit is a word of its own: 1 of 2 in common
    assert f1("50 Prozent", "50%") == 0.5
    assert f1("-5", "5") == 0.0
    # each number meets one: 1.500 is either of the two, and both are found
    assert f1("1.500 1500", "1.500 1,5") == 1.0
    assert f1("1.500 1,5", "1.500 1500") == 1.0
    # 1 of 2 in common: nothing else is 1500
    assert f1("1.500 1,500", "1500 7") == 0.5


NUMBERS = st.text(st.sampled_from("0123456789١٢ .,'٫٬-−–%$€°+#aC(：/½²^\u202f\""), max_size=14)
CODES = st.sampled_from([*known_languages(), None])


@given(NUMBERS, CODES)
def test_normalising_twice_changes_nothing(text: str, lang: str | None) -> None:
    once = normalize_answer(text, normalize="unicode", lang=lang)
    assert normalize_answer(once, normalize="unicode", lang=lang) == once


@given(NUMBERS, NUMBERS, CODES)
def test_equality_is_symmetric_and_an_equal_text_is_contained(one: str, other: str, lang: str | None) -> None:
    assert same(one, one, lang)
    assert same(one, other, lang) == same(other, one, lang)
    if same(one, other, lang):
        assert match(one, [other], normalize="unicode", lang=lang) == 1.0
    there, back = (word_scores(a, [b], normalize="unicode", lang=lang) for a, b in ((one, other), (other, one)))
    assert (there.recall, there.precision) == (back.precision, back.recall)


@given(NUMBERS, st.lists(NUMBERS, min_size=1, max_size=3), NUMBERS, CODES)
def test_a_further_answer_lowers_nothing(reply: str, answers: list[str], further: str, lang: str | None) -> None:
    for measure in (match, exact_match):
        before = measure(reply, answers, normalize="unicode", lang=lang)
        assert measure(reply, [*answers, further], normalize="unicode", lang=lang) >= before
