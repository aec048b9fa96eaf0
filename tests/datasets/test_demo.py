"""The demo's passages and questions are consistent: languages, scripts, lengths, relevance, answers."""

from __future__ import annotations

import unicodedata
from collections import Counter

import pytest

from mrag_eval.core import NO_SPACES, language_scripts
from mrag_eval.datasets import Benchmark, load_benchmark

# The beginning of a letter's Unicode name, by script.
SCRIPT_NAMES = {
    "Latn": "LATIN",
    "Cyrl": "CYRILLIC",
    "Arab": "ARABIC",
    "Deva": "DEVANAGARI",
    "Hang": "HANGUL",
    "Hans": "CJK",
}


@pytest.fixture(scope="module")
def demo() -> Benchmark:
    return load_benchmark({"benchmark": "demo"})


def share_of_script(text: str, lang: str) -> float:
    """Return the share of the letters (marks of Indic scripts do not count) in the language's script."""
    names = [unicodedata.name(c, "") for c in text if c.isalpha()]
    wanted = tuple(SCRIPT_NAMES[s] for s in language_scripts(lang) if s in SCRIPT_NAMES)
    return sum(name.startswith(wanted) for name in names) / max(len(names), 1)


def test_passages_are_many_short_and_in_many_scripts(demo: Benchmark) -> None:
    corpus = demo.corpus or []
    assert len(corpus) >= 60
    languages = Counter(p.lang for p in corpus)
    assert len(languages) >= 6
    assert len(set(languages.values())) == 1, "every language has as many passages"
    assert len({language_scripts(lang)[0] for lang in languages}) >= 4
    for p in corpus:
        assert (len(p.text) <= 80) if p.lang in NO_SPACES else (len(p.text.split()) <= 50), p.id
        assert p.id.startswith(f"{p.lang}-"), p.id
        assert share_of_script(p.text, p.lang) > 0.95, p.id
        assert unicodedata.is_normalized("NFC", p.text) or p.lang == "hi", p.id


def test_no_two_passages_are_equal(demo: Benchmark) -> None:
    corpus = demo.corpus or []
    assert len({p.text for p in corpus}) == len({p.title for p in corpus}) == len(corpus)


def test_questions_are_balanced_and_some_need_another_language(demo: Benchmark) -> None:
    assert len(demo.docs) >= 40
    asked = Counter(d.query_lang for d in demo.docs)
    across = Counter(d.query_lang for d in demo.docs if d.query_lang != d.gold_doc_lang)
    assert len(set(asked.values())) == 1
    assert len(set(across.values())) == 1
    assert set(across) == set(asked)
    assert sum(across.values()) >= 16
    assert len({d.query for d in demo.docs}) == len(demo.docs)


def test_relevance_is_exact_and_named_in_the_ids(demo: Benchmark) -> None:
    by_id = {p.id: p for p in demo.corpus or []}
    for doc in demo.docs:
        (relevant,) = doc.relevant_ids
        assert by_id[relevant].lang == doc.gold_doc_lang
        assert doc.group_id == relevant
        assert doc.id == f"{relevant}--{doc.query_lang}"


def test_answers_are_short_in_the_question_s_language_and_in_the_passage(demo: Benchmark) -> None:
    by_id = {p.id: p for p in demo.corpus or []}
    for doc in demo.docs:
        assert doc.answers, doc.id
        for answer in doc.answers:
            assert len(answer.split()) <= 4, (doc.id, answer)
            letters = [c for c in answer if c.isalpha()]
            if letters and answer[-1:] != "m":  # Korean also writes "m" for metres
                assert share_of_script(answer, doc.query_lang) == 1.0, (doc.id, answer)
        if doc.query_lang == doc.gold_doc_lang:
            text = by_id[doc.relevant_ids[0]].text
            assert any(answer in text for answer in doc.answers), doc.id


def test_versions_of_one_question_share_a_group(demo: Benchmark) -> None:
    groups = Counter(d.group_id for d in demo.docs)
    assert Counter(groups.values()) == {2: 16, 1: 8}
