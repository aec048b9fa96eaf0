"""Character n-grams: reference cases, the batch against the single function, scripts, properties, bad input."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mrag_eval.metrics import (
    _gram_kernel,
    char_ngram_f1,
    char_ngram_precision,
    char_ngram_recall,
    char_ngram_recall_batch,
    char_ngram_scores,
    char_ngram_scores_batch,
)
from mrag_eval.platform import MetricError

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "char_ngram.py"
FIELDS = ("char3gram_recall", "char3gram_precision", "char3gram_f1")
# articles next to every kind of non-word character, case that changes length or depends on its neighbours, marks,
# whitespace of all kinds (including the batch's own end mark), astral planes, lone surrogates
ALPHABET = st.one_of(
    st.sampled_from("aanntthhee  AT.,-_'\t\n\x1e\x1f\x00·。「«ΣσςİIıßé́҃กำ東京서울Ж𝒜Ⅷ²١ǅﬁ\ud800\u200b\u00a0\u3000"),
    st.characters(),
)
TEXTS = st.text(ALPHABET, max_size=40)
ROWS = st.lists(st.tuples(TEXTS, st.lists(TEXTS, min_size=1, max_size=3)), min_size=1, max_size=8)


@pytest.fixture
def cases(reference: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((reference / "char3gram.json").read_text(encoding="utf-8"))["cases"]
    assert len(found) == 95
    return found


def test_reference_cases(cases: list[dict[str, Any]]) -> None:
    for case in cases:
        scores = char_ngram_scores(case["prediction"], case["golds"])
        assert scores == pytest.approx([case[field] for field in FIELDS], abs=1e-12), case["id"]


def test_reference_cases_by_the_column(cases: list[dict[str, Any]]) -> None:
    columns = char_ngram_scores_batch([case["prediction"] for case in cases], [case["golds"] for case in cases])
    for column, field in zip(columns, FIELDS, strict=True):
        np.testing.assert_allclose(column, [case[field] for case in cases], rtol=0, atol=1e-12)
    assert columns.recall.dtype == np.float64


def test_the_benchmark_compares_with_the_same_measure(cases: list[dict[str, Any]]) -> None:
    reference_recall = runpy.run_path(str(BENCHMARK))["reference_recall"]
    for case in cases:
        found = reference_recall(case["prediction"], case["golds"])
        assert found == pytest.approx(case["char3gram_recall"], abs=1e-12), case["id"]


def as_rows(predictions: list[str], answers: list[list[str]], n: int, **options: Any) -> list[tuple[float, ...]]:
    columns = char_ngram_scores_batch(predictions, answers, n, **options)
    return [tuple(row) for row in np.stack(columns, axis=1).tolist()]


@settings(max_examples=300)
@given(ROWS, st.sampled_from([1, 2, 3, 3, 4, 7]), st.sampled_from(["paper", "unicode"]))
def test_the_batch_equals_the_single_function_bit_for_bit(
    rows: list[tuple[str, list[str]]], n: int, normalize: Any
) -> None:
    predictions, answers = [row[0] for row in rows], [row[1] for row in rows]
    expected = [tuple(char_ngram_scores(p, a, n, normalize=normalize)) for p, a in rows]
    assert as_rows(predictions, answers, n, normalize=normalize) == expected


@settings(max_examples=100)
@given(ROWS, st.sampled_from([2, 3]))
def test_collisions_and_chunks_change_nothing(rows: list[tuple[str, list[str]]], n: int) -> None:
    predictions, answers = [row[0] for row in rows], [[*row[1], row[0][:9]] for row in rows]
    with pytest.MonkeyPatch.context() as patch:
        # 16 slots for everything, and one chunk per row
        patch.setattr(_gram_kernel, "_SLOT_BITS", 4)
        patch.setattr(_gram_kernel, "_SHIFT", np.uint32(28))
        patch.setattr(_gram_kernel, "_CHUNK", 1)
        small = as_rows(predictions, answers, n)
    assert small == [tuple(char_ngram_scores(p, a, n)) for p, a in zip(predictions, answers, strict=True)]


def test_every_kind_of_character_in_the_batch() -> None:
    # each character next to articles and upper case: its class decides whether they are separate words
    chars = [chr(code) for code in [*range(0x3100), *range(0x3100, 0x110000, 997)]]
    predictions = [f"x{char}the{char}A{char}b Σ{char}" for char in chars]
    answers = [[f"the{char}A", f"{char}σ"] for char in chars]
    expected = [tuple(char_ngram_scores(p, a)) for p, a in zip(predictions, answers, strict=True)]
    assert as_rows(predictions, answers, 3) == expected


def test_the_characters_that_python_lowers_are_all_there_are() -> None:
    from mrag_eval.metrics import _gram_kernel as _code_points

    special = {chr(code) for code in range(0x110000) if len(chr(code).lower()) != 1}
    # final sigma is the only lower-casing that depends on its neighbours
    assert special | {"Σ"} == set(_code_points._LOWERED_BY_PYTHON)


@pytest.mark.parametrize(
    ("script", "gold", "response", "paper", "unicode"),
    [
        # recall by hand: items of the gold that are in the response / items of the gold
        ("Latin", "¿Quién?", "quién", 3 / 4, 1.0),  # ¿qu qui uié ién
        ("Cyrillic", "«Зенит»", "Зенит", 3 / 5, 1.0),
        ("Greek", "ΑΘΗΝΑ", "αθηνα", 1.0, 1.0),
        ("Arabic", "القاهرة؟", "القاهرة", 5 / 6, 1.0),
        ("Hebrew", "תל־אביב", "תל אביב", 2 / 5, 1.0),  # one token of 7, of which אבי and ביב are found
        ("Devanagari", "दिल्ली।", "दिल्ली", 4 / 5, 1.0),
        ("Han", "北京", "北京是中国的首都", 0.0, 1.0),
        ("Kana", "ﾀﾜｰ", "タワー", 0.0, 1.0),
        ("Hangul", "대한민국", "대한민국의 수도", 1.0, 1.0),
        ("Thai", "ไทย!", "ประเทศไทย", 1.0, 1.0),
        ("Ethiopic", "አበባ።", "አዲስ አበባ", 1 / 2, 1.0),
    ],
)
def test_each_script(script: str, gold: str, response: str, paper: float, unicode: float) -> None:
    assert char_ngram_recall(response, [gold]) == pytest.approx(paper, abs=1e-12)
    assert char_ngram_recall(response, [gold], normalize="unicode") == pytest.approx(unicode, abs=1e-12)
    for normalize in ("paper", "unicode"):
        single = char_ngram_recall(response, [gold], normalize=normalize)
        assert char_ngram_recall_batch([response], [[gold]], normalize=normalize).tolist() == [single]


@given(TEXTS, st.lists(TEXTS, min_size=1, max_size=4), st.integers(1, 6))
def test_bounds_order_and_more_answers(prediction: str, answers: list[str], n: int) -> None:
    for measure in (char_ngram_recall, char_ngram_precision, char_ngram_f1):
        score = measure(prediction, answers, n)
        assert 0.0 <= score <= 1.0
        assert measure(prediction, answers[::-1], n) == score
        assert measure(prediction, [*answers, prediction], n) >= score


@given(st.text("abc ", max_size=20), st.text("abc ", max_size=20), st.lists(st.text("abc", max_size=6), min_size=1))
def test_more_words_never_lower_recall(prediction: str, more: str, answers: list[str]) -> None:
    assert char_ngram_recall(f"{prediction} {more}", answers) >= char_ngram_recall(prediction, answers)


def test_recall_precision_and_f1_may_stem_from_different_answers() -> None:
    # "abcd" is recalled in full (abc, bcd of 6 items); "abcdefgh x" holds all 6 of the prediction's items but one
    recall, precision, f1 = char_ngram_scores("abcdefgh", ["abcd", "abcdefgh xyz"])
    assert (recall, precision) == (1.0, 1.0)
    assert f1 == pytest.approx(2 * 1.0 * (6 / 7) / (1.0 + 6 / 7), abs=1e-12)


def test_an_answer_that_normalises_to_nothing_scores_0() -> None:
    assert char_ngram_recall("A", ["A"]) == 0.0
    assert char_ngram_recall_batch(["A", "", "..."], [["A"], [""], ["...", "the"]]).tolist() == [0.0, 0.0, 0.0]


def test_no_rows_give_an_empty_column() -> None:
    found = char_ngram_recall_batch([], [])
    assert found.shape == (0,)
    assert found.dtype == np.float64


@pytest.mark.parametrize(
    ("predictions", "answers", "says"),
    [
        (["x"], [], "1 predictions but 0 lists"),
        (["x", "y"], [["x"], []], "row 1: no answers"),
        (["x", None], [["x"], ["y"]], "row 1: prediction must be a string"),
        (["x", "y"], [["x"], ["y", None]], r"row 1: answers\[1\]"),
        (["x", "y"], [["x"], None], "row 1: no answers"),
        (["x"], ["x"], "row 0: answers must be a list"),
        ("x", [["x"]], "predictions must be a list"),
        ([float("nan")], [["x"]], "row 0: prediction must be a string"),
    ],
)
def test_bad_columns(predictions: Any, answers: Any, says: str) -> None:
    with pytest.raises(MetricError, match=says):
        char_ngram_recall_batch(predictions, answers)


@pytest.mark.parametrize("n", [0, -1, 2.0, True, None])
def test_bad_n(n: Any) -> None:
    with pytest.raises(MetricError, match="n must be"):
        char_ngram_recall("x", ["x"], n)
    with pytest.raises(MetricError, match="n must be"):
        char_ngram_recall_batch(["x"], [["x"]], n)


@pytest.mark.parametrize("answers", [[], None, "x", [None]])
def test_bad_answers(answers: Any) -> None:
    with pytest.raises(MetricError):
        char_ngram_recall("x", answers)
