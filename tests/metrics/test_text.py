"""Normalisation and word measures: reference cases, one golden case per script, properties, bad input."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrag_eval.metrics import (
    exact_match,
    match,
    normalize_answer,
    word_f1,
    word_precision,
    word_recall,
    word_scores,
    word_tokens,
)
from mrag_eval.metrics._text import gram_tokens
from mrag_eval.platform import MetricError

MEASURES = [exact_match, match, word_recall, word_precision, word_f1]
TEXTS = st.text(st.sampled_from("abthen AZ.,-'«»。Ωσς東京은Ж\t\n١"), max_size=25)


def test_reference_cases(reference: Path) -> None:
    cases: list[dict[str, Any]] = json.loads((reference / "char3gram.json").read_text(encoding="utf-8"))["cases"]
    assert len(cases) == 95
    for case in cases:
        for name, measure in (("match", match), ("exact_match", exact_match), ("word_recall", word_recall)):
            assert measure(case["prediction"], case["golds"]) == pytest.approx(case[name], abs=1e-12), case["id"]


# text, its paper form, its unicode form, its words under unicode; one line per script
GOLDEN = [
    ("Latin", "¿Quién dijo «Él»?", "¿quién dijo «él»", "quién dijo él", ["quién", "dijo", "él"]),
    ("Latin", "The Straße, a-b", "straße ab", "the strasse a b", ["the", "strasse", "a", "b"]),
    ("Cyrillic", "«Зенит» — ЧЕМПИОН!", "«зенит» — чемпион", "зенит чемпион", ["зенит", "чемпион"]),
    ("Greek", "ΟΔΟΣ· Αθήνα;", "οδος· αθήνα", "οδοσ αθηνα", ["οδοσ", "αθηνα"]),
    ("Arabic", "القاهرة، مصر؟", "القاهرة، مصر؟", "القاهره مصر", ["القاهره", "مصر"]),
    ("Hebrew", "ירושלים־תל אביב!", "ירושלים־תל אביב", "ירושלים תל אביב", ["ירושלים", "תל", "אביב"]),
    ("Devanagari", "नई दिल्ली।", "नई दिल्ली।", "नई दिल्ली", ["नई", "दिल्ली"]),
    ("Han", "「北京」，中国。", "「北京」，中国。", "北京中国", ["北", "京", "中", "国"]),
    ("Kana", "カタカナ、ｶﾅ", "カタカナ、ｶﾅ", "カタカナカナ", ["カ", "タ", "カ", "ナ", "カ", "ナ"]),
    ("Hangul", "서울은 『수도』", "서울은 『수도』", "서울은 수도", ["서울은", "수도"]),
    ("Thai", "กำ ไทย!", "กำ ไทย", "กํา ไทย", ["กํ", "า", "ไ", "ท", "ย"]),
    ("Ethiopic", "አዲስ አበባ፣ ኢትዮጵያ።", "አዲስ አበባ፣ ኢትዮጵያ።", "አዲስ አበባ ኢትዮጵያ", ["አዲስ", "አበባ", "ኢትዮጵያ"]),
]


@pytest.mark.parametrize(("script", "text", "paper", "unicode", "words"), GOLDEN)
def test_each_script(script: str, text: str, paper: str, unicode: str, words: list[str]) -> None:
    assert normalize_answer(text) == paper
    assert normalize_answer(text, normalize="unicode") == unicode
    assert word_tokens(text) == paper.split()
    assert word_tokens(text, normalize="unicode") == words
    for measure in MEASURES:
        for normalizer in ("paper", "unicode"):
            assert measure(text, [text], normalize=normalizer) == 1.0, measure.__name__


def test_articles_fall_in_english_only() -> None:
    assert normalize_answer("the a Beatles", normalize="unicode", lang="en") == "beatles"
    assert normalize_answer("Il a gagné", normalize="unicode", lang="fr") == "il a gagné"
    assert normalize_answer("Il a gagné", normalize="unicode") == "il a gagné"
    assert normalize_answer("Il a gagné") == "il gagné"


@pytest.mark.parametrize(
    ("reply", "answer", "lang"),
    [
        ("٢٠٢٠", "2020", "ar"), ("۱۳۵۷", "1357", "fa"), ("१९४७ में", "1947 में", "hi"), ("১৯৭১", "1971", "bn"),
        ("محـــمد", "محمد", "ar"), ("مُحَمَّد", "محمد", "ar"), ("هٰذا", "هذا", "ar"), ("יְרוּשָׁלַיִם", "ירושלים", "he"),
        ("İstanbul", "istanbul", "tr"), ("አዲስ፡አበባ", "አዲስ አበባ", "am"), ("l'Afrique", "l’Afrique", "fr"),
    ],
)  # fmt: skip
def test_spellings_of_one_word_meet(reply: str, answer: str, lang: str) -> None:
    assert exact_match(reply, [answer], normalize="unicode", lang=lang) == 1.0


def test_points_and_apostrophes_count_where_a_language_writes_words_with_them() -> None:
    assert normalize_answer("אַ", normalize="unicode", lang="yi") == "אַ"
    assert word_f1("l'Afrique", ["Afrique"], normalize="unicode", lang="fr") == pytest.approx(2 / 3)
    assert word_f1("O'Connor", ["Connor"], normalize="unicode", lang="en") == 0.0
    # letters that are no points remain: the hamza of an alef, the nukta of Devanagari
    assert normalize_answer("أحمد ज़", normalize="unicode") == normalize_answer("أحمد ज़", normalize="unicode", lang="yi")


def test_unicode_forms_meet() -> None:
    assert exact_match("１９４９", ["1949"], normalize="unicode") == 1.0
    assert exact_match("한국어", ["한국어"], normalize="unicode") == 1.0
    assert exact_match("می‌خواهم", ["میخواهم"], normalize="unicode") == 1.0


# faults of other tools, each with an input that shows it
def test_chinese_is_not_scored_by_whitespace() -> None:
    gold, response = ["北京"], "中国的首都是北京。"
    assert word_f1(response, gold) == 0.0  # the published normaliser, unchanged
    # 2 of 8 characters: precision 1/4, recall 1, F1 2/5
    assert word_f1(response, gold, normalize="unicode") == pytest.approx(0.4, abs=1e-12)
    assert word_recall(response, gold, normalize="unicode") == 1.0


def test_brackets_and_question_marks_of_other_scripts_go() -> None:
    for decorated, plain in (("「東京」", "東京"), ("¿Quién?", "Quién"), ("『서울』", "서울"), ("مصر؟", "مصر")):
        assert exact_match(decorated, [plain]) == 0.0
        assert exact_match(decorated, [plain], normalize="unicode") == 1.0


def test_repeated_words_need_repeated_evidence() -> None:
    assert word_recall("new york", ["new york new york"]) == 0.5
    assert word_precision("york york york york", ["york"]) == 0.25
    # overlap 1, recall 1, precision 1/4
    assert word_f1("york york york york", ["york"]) == pytest.approx(0.4, abs=1e-12)


def test_gram_tokens_isolate_han_only() -> None:
    assert gram_tokens("東京タワーは", normalize="unicode") == ["東", "京", "タワーは"]
    assert gram_tokens("東京タワーは") == ["東京タワーは"]


@given(TEXTS, st.lists(TEXTS, min_size=1, max_size=4), st.sampled_from(["paper", "unicode"]))
def test_bounds_order_and_more_answers(prediction: str, answers: list[str], normalize: Any) -> None:
    for measure in MEASURES:
        score = measure(prediction, answers, normalize=normalize)
        assert 0.0 <= score <= 1.0
        assert measure(prediction, answers[::-1], normalize=normalize) == score
        assert measure(prediction, [*answers, prediction], normalize=normalize) >= score
    scores = word_scores(prediction, answers, normalize=normalize)
    assert scores.f1 <= max(scores.recall, scores.precision) + 1e-12


@given(TEXTS, st.sampled_from(["paper", "unicode"]))
def test_normalising_leaves_single_spaces(text: str, normalize: Any) -> None:
    found = normalize_answer(text, normalize=normalize)
    assert found == " ".join(found.split())


def test_an_answer_that_normalises_to_nothing() -> None:
    assert match("Paris", ["..."]) == 1.0  # a substring of everything, as in the original
    assert exact_match("", ["the"]) == 1.0
    assert word_f1("", [""]) == 0.0
    assert word_recall("A", ["A"]) == 0.0


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize(
    ("prediction", "answers", "says"),
    [
        ("x", [], "no answers"),
        ("x", None, "no answers"),
        ("x", "x", "list of strings"),
        (None, ["x"], "prediction must be a string"),
        ("x", ["x", None], r"answers\[1\]"),
        (float("nan"), ["x"], "got float"),
    ],
)
def test_bad_input(measure: Any, prediction: Any, answers: Any, says: str) -> None:
    with pytest.raises(MetricError, match=says):
        measure(prediction, answers)


def test_unknown_normaliser() -> None:
    with pytest.raises(MetricError, match="did you mean 'unicode'"):
        normalize_answer("x", normalize="unicod")  # type: ignore[arg-type]
    with pytest.raises(MetricError, match="got NoneType"):
        normalize_answer(None)  # type: ignore[arg-type]


# derived by hand from the rules of MKQA's mkqa_eval_util.py
@pytest.mark.parametrize(
    ("text", "lang", "normalized"),
    [
        ("The Beatles", "en", "beatles"), ("Die Beatles!", "de", "beatles"), ("The Beatles", "de", "the beatles"),
        ("L'été de l'amour", "fr", "lété mour"), ("les Alpes", "fr", "s alpes"), ("Italia", "it", "talia"),
        ("القاهرة والإسكندرية", "ar", "قاهرة و إسكندرية"), ("東京 タワー", "ja", "東 京 タ ワ ー"),
        ("en bil", "nb", "bil"), ("北京", "zh-Hant", "北 京"), ("서울", "ko", "서울"),
        ("The Beatles", None, "the beatles"),
    ],
)  # fmt: skip
def test_mkqas_own_normaliser(text: str, lang: str | None, normalized: str) -> None:
    assert normalize_answer(text, normalize="mkqa", lang=lang) == normalized
    assert word_tokens(text, normalize="mkqa", lang=lang) == normalized.split()
