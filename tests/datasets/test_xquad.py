"""XQuAD under the protocol of The Cross-Lingual Cost: the draw, exact relevance, parallel copies."""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mrag_eval.datasets import Benchmark, load_benchmark
from mrag_eval.datasets._xquad import LANGUAGES
from mrag_eval.platform import ConfigError, DataError

WORDS = {"en": "river", "de": "Fluss", "ar": "نهر", "zh": "河流"}


def article(code: str, paragraphs: int = 6, questions: int = 3) -> dict[str, Any]:
    word = WORDS[code]
    return {
        "version": "1.1",
        "data": [
            {
                "title": f"{word} {half}",
                "paragraphs": [
                    {
                        "context": f"{word} number {p}.",
                        "qas": [
                            {
                                "id": f"q{p}-{q}",
                                "question": f"{word} {p} {q}?",
                                "answers": [{"text": f"{word} {p}", "answer_start": 0}],
                            }
                            for q in range(questions)
                        ],
                    }
                    for p in range(half * paragraphs // 2, (half + 1) * paragraphs // 2)
                ],
            }
            for half in range(2)
        ],
    }


def write(folder: Path, changed: dict[str, dict[str, Any]] | None = None) -> Path:
    for code in WORDS:
        value = (changed or {}).get(code, article(code))
        (folder / f"xquad.{code}.json").write_text(json.dumps(value), encoding="utf-8")
    return folder


def load(folder: Path, **block: object) -> Benchmark:
    return load_benchmark({"benchmark": "xquad", "path": str(folder), "languages": list(WORDS), **block})


def test_the_draw_is_the_documented_one(tmp_path: Path) -> None:
    loaded = load(write(tmp_path), seed=3)
    rng = np.random.default_rng(3)
    codes = sorted(WORDS)
    paragraphs = [codes[i] for i in rng.integers(0, 4, 6)]
    questions = [codes[i] for i in rng.integers(0, 4, 18)]
    assert loaded.corpus is not None
    assert [passage.lang for passage in loaded.corpus] == paragraphs
    assert [doc.query_lang for doc in loaded.docs] == questions


def test_the_order_of_the_languages_does_not_matter(tmp_path: Path) -> None:
    write(tmp_path)
    assert load(tmp_path, languages=["zh", "de"]).docs == load(tmp_path, languages=["de", "zh"]).docs


def test_each_text_is_in_the_language_it_was_given(tmp_path: Path) -> None:
    loaded = load(write(tmp_path), seed=1)
    assert loaded.corpus is not None
    for index, passage in enumerate(loaded.corpus):
        assert passage.id == passage.doc_id == f"xquad-p{index:03d}"
        assert passage.text == f"{WORDS[passage.lang]} number {index}."
        assert passage.title == ""
    by_id = {passage.id: passage for passage in loaded.corpus}
    for doc in loaded.docs:
        paragraph = int(doc.id[1])
        assert doc.query.startswith(WORDS[doc.query_lang])
        assert doc.answers == (f"{WORDS[doc.query_lang]} {paragraph}",)
        assert doc.relevant_ids == (f"xquad-p{paragraph:03d}",)
        assert doc.group_id == doc.relevant_ids[0]
        assert doc.gold_doc_lang == by_id[doc.relevant_ids[0]].lang
        assert doc.extra["paragraph_answers"] == [f"{WORDS[str(doc.gold_doc_lang)]} {paragraph}"]


def test_leaves_by_question_language_partition_the_pooled_set(tmp_path: Path) -> None:
    write(tmp_path)
    pooled = load(tmp_path)
    leaves = [load(tmp_path, question_language=code) for code in WORDS]
    assert sorted(doc.id for leaf in leaves for doc in leaf.docs) == sorted(doc.id for doc in pooled.docs)
    for leaf in leaves:
        assert leaf.corpus == pooled.corpus
        assert len({doc.query_lang for doc in leaf.docs}) <= 1
        assert all(doc in pooled.docs for doc in leaf.docs)


def test_another_seed_is_another_draw(tmp_path: Path) -> None:
    write(tmp_path)
    assert load(tmp_path, seed=0).corpus != load(tmp_path, seed=1).corpus


def test_an_assignment_fixes_the_draw(tmp_path: Path) -> None:
    write(tmp_path)
    fixed = {"languages": ["en", "ar"], "paragraph_language": ["en", "ar"] * 3, "question_language": ["ar"] * 18}
    path = tmp_path / "fixed.json"
    path.write_text(json.dumps(fixed), encoding="utf-8")
    loaded = load_benchmark({"benchmark": "xquad", "path": str(tmp_path), "assignment": str(path)})
    assert loaded.corpus is not None
    assert [passage.lang for passage in loaded.corpus] == ["en", "ar"] * 3
    assert {doc.query_lang for doc in loaded.docs} == {"ar"}
    assert loaded.source["seed"] is None
    with pytest.raises(ConfigError, match="no question is asked in question_language 'de'"):
        load_benchmark(
            {"benchmark": "xquad", "path": str(tmp_path), "assignment": str(path), "question_language": "de"}
        )
    with pytest.raises(ConfigError, match=r"leave out data\.languages"):
        load(tmp_path, assignment=str(path))


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"question_language": None}, "'question_language' must be a list"),
        ({"paragraph_language": ["en", "de"] * 3}, r"paragraph_language\[1\] is 'de', which is not among 'languages'"),
        ({"paragraph_language": ["en"]}, "1 paragraph and 18 question languages"),
        ({"languages": ["en", "fr"]}, "XQuAD has no language 'fr'"),
    ],
)
def test_a_wrong_assignment_is_named(tmp_path: Path, change: dict[str, object], expected: str) -> None:
    write(tmp_path)
    fixed = {"languages": ["en", "ar"], "paragraph_language": ["en"] * 6, "question_language": ["en"] * 18, **change}
    path = tmp_path / "fixed.json"
    path.write_text(json.dumps(fixed), encoding="utf-8")
    with pytest.raises(DataError, match=expected):
        load_benchmark({"benchmark": "xquad", "path": str(tmp_path), "assignment": str(path)})


def _without_answers() -> dict[str, Any]:
    value = article("de")
    value["data"][0]["paragraphs"][0]["qas"][1]["answers"] = []
    return value


def _repeated_id() -> dict[str, Any]:
    value = article("de")
    value["data"][0]["paragraphs"][0]["qas"][1]["id"] = "q0-0"
    return value


def _empty_question() -> dict[str, Any]:
    value = article("de")
    value["data"][0]["paragraphs"][0]["qas"][1]["question"] = "  "
    return value


@pytest.mark.parametrize(
    ("german", "expected"),
    [
        (article("de", paragraphs=4), "differ in their paragraphs"),
        (_without_answers(), "question q0-1 has no answer"),
        (_repeated_id(), "question id 'q0-0' occurs twice"),
        (_empty_question(), "question q0-1: 'question' is empty"),
        ({"rows": []}, "not SQuAD v1.1 JSON"),
        ({"data": []}, "holds no question"),
    ],
)
def test_a_damaged_file_is_named(tmp_path: Path, german: dict[str, Any], expected: str) -> None:
    with pytest.raises(DataError, match=re.escape(expected)):
        load(write(tmp_path, {"de": german}))


def test_unreadable_files_are_named(tmp_path: Path) -> None:
    write(tmp_path)
    german = tmp_path / "xquad.de.json"
    german.write_bytes(b'{"data": "\xff\xfe"}')
    with pytest.raises(DataError, match=r"xquad\.de\.json: not valid UTF-8 \(line 1, byte 10\)"):
        load(tmp_path)
    german.write_text('{"data": [', encoding="utf-8")
    with pytest.raises(DataError, match=r"xquad\.de\.json: not valid JSON"):
        load(tmp_path)
    german.unlink()
    with pytest.raises(DataError, match=r"has no file xquad\.de\.json\(\.gz\)"):
        load(tmp_path)
    (tmp_path / "xquad.de.json.gz").write_bytes(gzip.compress(json.dumps(article("de")).encode())[:-20])
    with pytest.raises(DataError, match="cannot be read"):
        load(tmp_path)


def test_the_hub_copy_gives_the_same_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import datasets

    asked = []

    def from_hub(repo: str, config: str, *, split: str, revision: str | None) -> datasets.Dataset:
        asked.append((repo, config, split, revision))
        return datasets.Dataset.from_list(
            [
                {
                    "id": qa["id"],
                    "context": paragraph["context"],
                    "question": qa["question"],
                    "answers": {"text": [a["text"] for a in qa["answers"]], "answer_start": [0]},
                }
                for half in article(config.removeprefix("xquad."))["data"]
                for paragraph in half["paragraphs"]
                for qa in paragraph["qas"]
            ]
        )

    monkeypatch.setattr(datasets, "load_dataset", from_hub)
    hub = load_benchmark({"benchmark": "xquad", "languages": list(WORDS), "revision": "abc", "seed": 5})
    local = load(write(tmp_path), seed=5)
    assert hub.docs == local.docs
    assert hub.corpus == local.corpus
    assert ("google/xquad", "xquad.de", "validation", "abc") in asked
    assert hub.source["place"]["hub"] == "google/xquad"


def test_a_hub_copy_without_a_column_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    import datasets

    rows = datasets.Dataset.from_list([{"id": "1", "context": "x", "question": "y"}])
    monkeypatch.setattr(datasets, "load_dataset", lambda *_, **__: rows)
    with pytest.raises(DataError, match="column 'answers' is missing; found: id, context, question"):
        load_benchmark({"benchmark": "xquad", "languages": ["en", "de"], "seed": 77})


# --- the real files


def test_the_published_set(test_data: Path) -> None:
    loaded = load_benchmark({"benchmark": "xquad", "path": str(test_data / "xquad")})
    assert loaded.corpus is not None
    assert (len(loaded.corpus), len(loaded.docs)) == (240, 1190)
    assert len(loaded.notes) == 1
    assert {passage.lang for passage in loaded.corpus} == set(LANGUAGES)
    # each language gets about 119 questions, within five standard deviations (10.3)
    asked = Counter(doc.query_lang for doc in loaded.docs)
    assert all(abs(asked[code] - 119) < 52 for code in LANGUAGES)
    # the draw of seed 0 does not change from version to version
    assert [passage.lang for passage in loaded.corpus[:6]] == ["vi", "ru", "hi", "el", "en", "ar"]
    texts = {passage.id: passage.text for passage in loaded.corpus}
    same = [doc for doc in loaded.docs if doc.query_lang == doc.gold_doc_lang]
    # an answer is a span of its paragraph (a handful of translations differ in spelling)
    spans = [doc.answers[0] in texts[doc.relevant_ids[0]] for doc in same]
    assert len(same) > 60
    assert sum(spans) / len(spans) > 0.97


def test_the_reference_assignment(test_data: Path, reference: Path) -> None:
    path = reference / "xquad_en_ar.json"
    fixed = json.loads(path.read_text(encoding="utf-8"))
    loaded = load_benchmark({"benchmark": "xquad", "path": str(test_data / "xquad"), "assignment": str(path)})
    assert loaded.corpus is not None
    assert [passage.lang for passage in loaded.corpus] == fixed["paragraph_language"]
    assert [doc.query_lang for doc in loaded.docs] == fixed["question_language"]
    arabic = load_benchmark(
        {"benchmark": "xquad", "path": str(test_data / "xquad"), "assignment": str(path), "question_language": "ar"}
    )
    assert len(arabic.docs) == fixed["question_language"].count("ar")
