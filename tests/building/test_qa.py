"""The parts of ``build qa`` that need no model: settings, draws, and parsing of replies."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mrag_eval.building import read_qa_config
from mrag_eval.building.qa._qa import CHECKS, Pair, balanced, drawn_categories, drawn_languages, read_checks, read_pair
from mrag_eval.building.qa._qa_config import Choice, QaConfig
from mrag_eval.platform import ConfigError
from tests.building.qa_world import pair, verdict


def config(tmp_path: Path, text: str) -> QaConfig:
    path = tmp_path / "qa.yaml"
    path.write_text(text, encoding="utf-8")
    return read_qa_config(path)


# ------------------------------------------------------------ the file


def test_the_papers_categories_are_the_default(tmp_path: Path) -> None:
    plain = read_qa_config(None).categories
    assert {k: {label: c.share for label, c in v.items()} for k, v in plain.items()} == {
        "formulation": {"concise": 40, "verbose": 20, "short_query": 25, "long_query": 15},
        "similarity": {"similar": 50, "distant": 50},
        "question_type": {"factoid": 50, "open": 50},
    }
    text = """
categories:
  language: {ARABIC: 50, en: 0.5e2}
  formulation: {concise: 0.75, verbose: {share: 0.25, ask: At length.}}
  similarity:
  need:
    advice: {share: 30, ask: The asker needs advice.}
    curious: {share: 70, ask: The asker is curious.}
"""
    own = config(tmp_path, text).categories
    assert list(own["language"]) == ["ar", "en"]
    assert own["formulation"]["verbose"] == Choice(share=0.25, ask="At length.")
    assert own["formulation"]["concise"].ask == plain["formulation"]["concise"].ask
    assert "similarity" not in own
    assert own["need"]["curious"] == Choice(share=70, ask="The asker is curious.")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("categories: {formulation: {concise: 40, verbose: 40}}", "formulation: the shares add up to 80, not to 100"),
        ("categories: {language: {xx: 100}}", "language: unknown language 'xx'"),
        ("categories: {language: {he: 50, iw: 50}}", "language: 'he' is given twice"),
        ("categories: {need: {advice: 100}}", "need.advice: 'ask', the instruction to the model, is missing"),
        ("categories: {formulation: [concise]}", "formulation: expected values with their shares, got list"),
        ("categories: {formulation: {concise: -5, verbose: 105}}", "greater than 0"),
        ("per_documents: 3", "unknown key 'per_documents'; did you mean 'per_document'"),
        ("balance: languages", "balance"),
        ("[", "not readable as YAML"),
    ],
)
def test_wrong_files_are_named_with_their_key(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        config(tmp_path, text)
    assert message in caught.value.message
    assert "qa.yaml" in caught.value.message
    assert "\n" not in caught.value.message


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        read_qa_config(tmp_path / "none.yaml")


# ------------------------------------------------------------ the draws


def test_a_document_keeps_one_of_its_languages_each_as_likely() -> None:
    versions = {f"d{i}": ["en", "ar"] for i in range(2000)} | {"only": ["de"]}
    drawn = drawn_languages(versions, np.random.default_rng(0))
    assert drawn["only"] == "de"
    counts = Counter(drawn.values())
    # 2,000 tosses: 1,000 ± 3 standard deviations of 22.4
    assert abs(counts["ar"] - 1000) < 68
    again = drawn_languages({name: list(reversed(langs)) for name, langs in versions.items()}, np.random.default_rng(0))
    assert again == drawn


def test_categories_follow_their_shares_and_not_one_another() -> None:
    categories = {
        "a": {"x": Choice(share=80), "y": Choice(share=20)},
        "b": {"u": Choice(share=0.5), "v": Choice(share=0.5)},
    }
    drawn = drawn_categories(categories, 10_000, np.random.default_rng(1))
    counts = Counter((d["a"], d["b"]) for d in drawn)
    # 0.8 * 0.5 and 0.2 * 0.5 of 10,000, ± 3 standard deviations (49 and 30)
    assert abs(counts["x", "u"] - 4000) < 147
    assert abs(counts["x", "v"] - 4000) < 147
    assert abs(counts["y", "u"] - 1000) < 90
    assert drawn == drawn_categories(categories, 10_000, np.random.default_rng(1))


def test_balancing_keeps_as_many_as_the_smallest_cell_has() -> None:
    cells = {f"q{i}": cell for i, cell in enumerate("aaaaabbbcc")}
    kept, smallest = balanced(cells, np.random.default_rng(0))
    assert smallest == 2
    assert Counter(cells[name] for name in kept) == {"a": 2, "b": 2, "c": 2}
    assert balanced({}, np.random.default_rng(0)) == (set(), 0)


# ------------------------------------------------------------ the replies

AR = "ما هو رقم الشرطة في سوند؟"
EN = "What is the number of the police in Sund?"


@pytest.mark.parametrize(
    ("reply", "lang", "expected"),
    [
        (pair(EN, "7731"), "en", Pair(EN, "7731")),
        ("Sure.\n" + pair(f"  {AR} \n", "7731"), "ar", Pair(AR, "7731")),
        (pair(EN, "7731"), "ar", "question in another language"),
        (pair(AR, "The number is 7731, and it is answered day and night."), "ar", "answer in another language"),
        (pair(EN, EN.upper()), "en", "answer repeats the question"),
        (f"<question>{EN}</question>", "en", "there is no <answer>"),
        (pair("", "7731"), "en", "<question> is empty"),
        ("", "en", "there is no <question>"),
    ],
)
def test_a_pair_is_read_in_the_language_asked_for(reply: str, lang: str, expected: Any) -> None:
    parsed = read_pair(reply, lang, ("ar", "en"))
    if isinstance(expected, Pair):
        assert (parsed.value, parsed.error) == (expected, None)
    else:
        assert parsed.value is None
        assert expected in (parsed.error or "")


def test_languages_of_one_script_are_distinguished_in_long_texts() -> None:
    german = pair("Wie lautet die Nummer der Polizei in Sund?", "7731")
    assert "is in German, not in English" in (read_pair(german, "en", ("de", "en")).error or "")
    assert read_pair(pair("Polizei Sund", "7731"), "en", ("de", "en")).error is None


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (verdict(), dict.fromkeys(CHECKS, True)),
        (verdict(fits="No."), dict.fromkeys(CHECKS, True) | {"fits": False}),
        (verdict(natural="perhaps"), "'natural' is 'perhaps', neither 'yes' nor 'no'"),
        ('<verdict>{"answerable": "yes"}</verdict>', "lacks 'faithful'"),
        ('{"answerable": "yes"}', "there is no <verdict>"),
        ("", "there is no <verdict>"),
    ],
)
def test_verdicts_are_read_whole_or_not_at_all(reply: str, expected: Any) -> None:
    parsed = read_checks(reply)
    if isinstance(expected, dict):
        assert parsed.value == expected
    else:
        assert expected in (parsed.error or "")
