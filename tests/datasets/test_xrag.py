"""XRAG: settings by the articles' languages, the order of the articles, the English originals."""

from __future__ import annotations

import copy
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from mrag_eval.datasets import Benchmark, load_benchmark
from mrag_eval.datasets._xrag import HUB, XragBlock, load
from mrag_eval.platform import DataError
from tests.worlds.xrag import LANGS, Q_TYPES, row, rows, write


def read(folder: Path, setting: str = "mono", language: str = "de", **block: object) -> Benchmark:
    return load_benchmark({"benchmark": "xrag", "path": str(folder), "setting": setting, "language": language, **block})


@pytest.mark.parametrize("language", LANGS)
@pytest.mark.parametrize("setting", ["mono", "multi"])
def test_each_setting_and_language(setting: str, language: str, tmp_path: Path) -> None:
    loaded = read(write(tmp_path), setting, language)
    prefix = "mono" if setting == "mono" else f"multi-{language}"
    assert [doc.id for doc in loaded.docs] == [f"{prefix}-{n}" for n in range(12)]
    assert {doc.query_lang for doc in loaded.docs} == {language}
    assert {doc.extra["q_type"] for doc in loaded.docs} == set(Q_TYPES)
    for doc in loaded.docs:
        langs = Counter(passage.lang for passage in doc.given_passages)
        gold = [passage for passage in doc.given_passages if passage.is_gold]
        assert langs == ({"en": 8} if setting == "mono" else {"en": 4, language: 4})
        assert {passage.lang for passage in gold} == ({"en"} if setting == "mono" else {"en", language})
        assert doc.relevant_ids == tuple(passage.id for passage in gold)
        assert len({passage.id for passage in doc.given_passages}) == 8


def test_one_row_in_full(tmp_path: Path) -> None:
    doc = read(write(tmp_path), "multi", "es").docs[1]
    source = row("es", "multi", 1)
    assert (doc.query, doc.answers) == (source["question"], (source["answer"],))
    assert doc.extra == {
        "en_question": source["en_question"],
        "en_answer": source["en_answer"],
        "q_type": "aggregation",
        "a_type": "original",
        "crossdoc_type": 1,
    }
    # the order given by article_order: stored article 5 first
    order = source["article_order"]
    assert [passage.text for passage in doc.given_passages] == [source["articles"][i] for i in order]
    assert [passage.date for passage in doc.given_passages] == [source["dates"][i] for i in order]
    assert [passage.is_gold for passage in doc.given_passages] == [i < 2 for i in order]
    assert doc.given_passages[0].id == "multi-es-1-a5"


def test_the_english_originals_come_once(tmp_path: Path) -> None:
    loaded = read(write(tmp_path), "mono", "en")
    assert len(loaded.docs) == 12
    assert {doc.query_lang for doc in loaded.docs} == {"en"}
    assert [doc.query for doc in loaded.docs] == [row("de", "mono", n)["en_question"] for n in range(12)]
    assert all(doc.answers == (doc.extra["en_answer"],) for doc in loaded.docs)
    assert all({p.lang for p in doc.given_passages} == {"en"} for doc in loaded.docs)


def test_a_row_of_the_other_setting_does_not_replace_an_english_original(tmp_path: Path) -> None:
    twin = copy.deepcopy(row("de", "multi", 0))
    mono = row("de", "mono", 0)
    twin["en_question"], twin["en_answer"] = mono["en_question"], mono["en_answer"]
    folder = write(tmp_path / "twins", [twin, mono, row("es", "mono", 0), row("de", "mono", 1)])
    found = read(folder, "mono", "en").docs
    assert [doc.extra["en_question"] for doc in found] == [mono["en_question"], row("de", "mono", 1)["en_question"]]
    assert all(passage.lang == "en" for doc in found for passage in doc.given_passages)


def test_translations_of_a_question_share_a_group(tmp_path: Path) -> None:
    write(tmp_path)
    groups = [[doc.group_id for doc in read(tmp_path, "mono", code).docs] for code in (*LANGS, "en")]
    assert all(group == groups[0] for group in groups)
    assert len(set(groups[0])) == 12


def _orders(folder: Path, article_order: object, **block: object) -> list[tuple[int, ...]]:
    made = [row("de", "mono", n) for n in range(12)]
    for item in made:
        if article_order is None:
            del item["article_order"]
        else:
            item["article_order"] = article_order
    docs = read(write(folder, made), **block).docs
    return [tuple(int(passage.id.rpartition("-a")[2]) for passage in doc.given_passages) for doc in docs]


def test_an_order_counted_from_one_or_in_digits(tmp_path: Path) -> None:
    assert set(_orders(tmp_path / "a", [8, 7, 6, 5, 4, 3, 2, 1])) == {(7, 6, 5, 4, 3, 2, 1, 0)}
    assert set(_orders(tmp_path / "b", [str(i) for i in (3, 1, 0, 2, 4, 5, 6, 7)])) == {(3, 1, 0, 2, 4, 5, 6, 7)}


@pytest.mark.parametrize("order", [None, [0, 1, 2], [0] * 8, "rank", ["a"] * 8, list(range(8))])
def test_without_an_order_articles_are_shuffled_by_seed_and_row(order: object, tmp_path: Path) -> None:
    first = _orders(tmp_path / "a", order)
    assert all(sorted(found) == list(range(8)) for found in first)
    # rows differ, and the displayed order is not the stored one (supporting articles first)
    assert len(set(first)) > 6
    assert tuple(range(8)) not in first
    assert _orders(tmp_path / "b", order) == first
    assert _orders(tmp_path / "c", order, seed=1) != first


def test_an_identity_order_is_kept_if_supporting_articles_are_not_first(tmp_path: Path) -> None:
    made = [row("de", "mono", 0)]
    made[0] |= {"is_support": [0, 0, 0, 1, 0, 1, 0, 0], "article_order": list(range(8))}
    docs = read(write(tmp_path, made)).docs
    assert [passage.is_gold for passage in docs[0].given_passages] == [bool(i) for i in made[0]["is_support"]]


def test_one_misread_article_does_not_change_the_setting(tmp_path: Path) -> None:
    class OneSlip:
        def detect(self, texts: Sequence[str]) -> list[str]:
            return ["de", *["en"] * (len(texts) - 1)]

    write(tmp_path, [row("de", "mono", n) for n in range(12)])
    block = XragBlock(benchmark="xrag", path=tmp_path, setting="mono", language="de")
    loaded = load(block, detector=OneSlip())
    assert len(loaded.docs) == 12
    assert {p.lang for doc in loaded.docs for p in doc.given_passages} == {"en"}


def test_the_notes_say_how_settings_were_inferred_and_what_is_missing(tmp_path: Path) -> None:
    notes = " | ".join(read(write(tmp_path), "multi", "ar").notes)
    assert "detected languages of the articles" in notes
    assert "12 of 300" in notes
    assert "article_order in 12 rows" in notes


def test_the_development_file(tmp_path: Path) -> None:
    write(tmp_path, split="dev")
    assert "12 of 584" in " ".join(read(tmp_path, split="dev").notes)
    with pytest.raises(DataError, match=r"has no file xrag\.test\.jsonl"):
        read(tmp_path)


def test_the_hub_file_at_its_revision(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub

    asked: list[tuple[str, str, str]] = []

    def download(repo: str, name: str, *, repo_type: str, revision: str) -> str:
        asked.append((repo, name, revision))
        return str(tmp_path / name)

    write(tmp_path)
    monkeypatch.setattr(huggingface_hub, "hf_hub_download", download)
    loaded = load_benchmark({"benchmark": "xrag", "setting": "mono", "language": "zh", "seed": 4})
    assert asked == [("AmazonScience/XRAG", "xrag.test.jsonl", HUB.revision)]
    assert loaded.docs == read(tmp_path, "mono", "zh", seed=4).docs


def test_repeated_ids_stay_apart(tmp_path: Path) -> None:
    made = [row("de", "mono", 0), {**row("de", "mono", 1), "id": "mono-0"}]
    loaded = read(write(tmp_path, made))
    assert [doc.id for doc in loaded.docs] == ["mono-0", "mono-0~2"]
    assert any("1 repeated" in note for note in loaded.notes)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"question": " "}, "'question' is empty"),
        ({"en_answer": None}, "'en_answer' must be text"),
        ({"language": "xx"}, "unknown language 'xx'"),
        ({"articles": []}, "'articles' must be a list of texts"),
        ({"dates": ["2024-07-01"]}, "'dates' must be a list as long as 'articles' (8)"),
        ({"is_support": [2] + [0] * 7}, "is_support[0] = 2 is neither 0 nor 1"),
        ({"crossdoc_type": "many"}, "'crossdoc_type' must be a whole number"),
    ],
)
def test_a_damaged_row_is_named(tmp_path: Path, change: dict[str, Any], expected: str) -> None:
    made = [row("de", "mono", 0), {**row("de", "mono", 1), **change}]
    with pytest.raises(DataError, match=rf"xrag\.test\.jsonl, line 2: .*{re.escape(expected)}"):
        read(write(tmp_path, made))


def test_a_missing_key_is_named(tmp_path: Path) -> None:
    made = copy.deepcopy(rows())
    del made[3]["is_support"]
    with pytest.raises(DataError, match="line 4: key 'is_support' is missing"):
        read(write(tmp_path, made))


def test_an_empty_selection_says_so(tmp_path: Path) -> None:
    write(tmp_path, [row("de", "mono", 0)])
    with pytest.raises(DataError, match="no question in 'es'"):
        read(tmp_path, "mono", "es")
    with pytest.raises(DataError, match="no row of setting 'multi' in 'de'"):
        read(tmp_path, "multi", "de")
