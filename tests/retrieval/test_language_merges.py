"""The merges ``centered`` and ``turns``: what they subtract, what they leave as it is, and what they refuse."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mrag_eval
from mrag_eval.config import Retrieval, validated
from mrag_eval.core import Passage, Searched
from mrag_eval.platform import ConfigError, CorpusError, MragError
from mrag_eval.retrieval import index_record
from mrag_eval.retrieval._plan import RowPlan
from mrag_eval.retrieval._search import search_plans
from mrag_eval.retrievers import (
    Index,
    MilvusPlace,
    build_index,
    center_index,
    import_vectors,
    load_index,
    load_into_milvus,
)
from tests.worlds.embedding_server import serving
from tests.worlds.small import BASE, write_task, write_world
from tests.worlds.vectors import write_table

DIM = 16
LANGS = ("de", "en", "ko")
COUNTS = {"de": 60, "en": 140, "ko": 3}


class Leaning:
    """A vector of the topic of a text, and one of its language, which questions in that language are near."""

    name, revision, dim = "leaning", "1", DIM

    def embed_queries(self, texts: Sequence[str]) -> np.ndarray:
        out = []
        for text in texts:
            lang, _, topic = text.partition(" ")
            own, of_lang = (np.random.default_rng([*seed.encode()]).standard_normal(DIM) for seed in (topic, lang))
            vector = own / np.linalg.norm(own) + of_lang / np.linalg.norm(of_lang)
            out.append(vector / np.linalg.norm(vector))
        return np.stack(out).astype(np.float32)

    embed_passages = embed_queries


CORPUS = [Passage(f"{lang}-{n}", lang, f"{lang} topic {n}") for lang, count in COUNTS.items() for n in range(count)]
PLANS = [RowPlan(f"{lang} topic {n}", langs=(lang,)) for n in range(0, 140, 7) for lang in LANGS]


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MRAG_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def index(tmp_path: Path) -> Index:
    return build_index(CORPUS, tmp_path / "index", embedder=Leaning(), progress=False)


def found(index: Index, plans: Sequence[RowPlan] = PLANS, *, use_cache: bool = False, **block: Any) -> list[Searched]:
    retrieval = validated(Retrieval, {"mode": "all", "k": 5, "depth": 20, **block}, "retrieval")
    return search_plans(index, plans, retrieval, use_cache=use_cache)


def ranked(searched: Searched) -> list[str]:
    return [place.id for place in searched.ranking]


def test_the_score_is_less_that_of_the_mean_of_the_language(index: Index) -> None:
    by_score, centered = found(index, depth=203), found(index, merge="centered", depth=203)
    queries = Leaning().embed_queries([plan.text for plan in PLANS])
    moved = 0
    for query, one, other in zip(queries, by_score, centered, strict=True):
        scores = {place.id: place.score for place in one.ranking}
        for place in other.ranking:
            expected = scores[place.id] - float(query.astype(float) @ index.means.mean(place.lang))
            assert place.score == pytest.approx(expected, abs=1e-6)
        moved += ranked(one) != ranked(other)
    assert moved == len(PLANS)


@pytest.mark.parametrize("merge", ["centered", "zscore"])
def test_the_order_within_a_language_stays(index: Index, merge: str) -> None:
    for one, other in zip(found(index, depth=203), found(index, merge=merge, depth=203), strict=True):
        for lang in LANGS:
            own = [place.id for place in one.ranking if place.lang == lang]
            assert [place.id for place in other.ranking if place.lang == lang] == own
            assert len(own) == COUNTS[lang]


@pytest.mark.parametrize("merge", ["centered", "turns", "zscore"])
def test_more_of_the_questions_find_their_topic_in_another_language(index: Index, merge: str) -> None:
    crossing = [plan for plan in PLANS if plan.langs == ("ko",)]

    def hit(searched: list[Searched]) -> int:
        topics = [plan.text.partition(" ")[2].rpartition(" ")[2] for plan in crossing]
        return sum(
            any(kept.id == f"en-{topic}" for kept in one.kept) for topic, one in zip(topics, searched, strict=True)
        )

    assert hit(found(index, crossing, merge=merge)) > hit(found(index, crossing))


@pytest.mark.parametrize("merge", ["centered", "turns", "zscore"])
def test_a_question_alone_is_ranked_as_in_a_batch(index: Index, merge: str) -> None:
    whole = found(index, merge=merge)
    assert [found(index, [plan], merge=merge)[0] for plan in PLANS] == whole
    assert found(index, PLANS[::-1], merge=merge)[::-1] == whole
    # and from the cache
    assert found(index, PLANS[:7], merge=merge, use_cache=True) == whole[:7]
    assert found(index, merge=merge, use_cache=True) == whole


@pytest.mark.parametrize("merge", ["centered", "turns"])
@pytest.mark.parametrize(
    "settings", [{"store": "float16"}, {"store": "int8"}, {"factory": "HNSW16"}, {"factory": "IVF2,Flat"}], ids=str
)
def test_coded_and_approximate_shards_are_merged_alike(
    settings: dict[str, Any], merge: str, index: Index, tmp_path: Path
) -> None:
    other = build_index(CORPUS, tmp_path / "other", embedder=Leaning(), progress=False, **settings)
    same = [
        len({*ranked(one)[:5]} & {*ranked(there)[:5]})
        for one, there in zip(found(index, merge=merge), found(other, merge=merge), strict=True)
    ]
    assert np.mean(same) > 4.5
    order = found(other, merge=merge, depth=20)
    assert [found(other, [plan], merge=merge)[0] for plan in PLANS] == order


def _imported(folder: Path, url: str) -> Index:
    vectors = Leaning().embed_passages([passage.text for passage in CORPUS])
    columns = {key: [getattr(passage, key) for passage in CORPUS] for key in ("id", "lang", "text")}
    table = write_table(folder / "table.parquet", columns | {"embedding": [*vectors]})
    return import_vectors(str(table), folder / "imported", embedder=Leaning(), progress=False)


def _centered_later(folder: Path, url: str) -> Index:
    path = Path(_imported(folder, url).path)
    (path / "means.json").unlink()
    center_index(path)
    return load_index(path, embedder=Leaning())


def _endpoint(folder: Path, url: str) -> Index:
    spec = {"kind": "openai", "model": "leaning", "base_url": url}
    return build_index(CORPUS, folder / "endpoint", embedder=spec, progress=False)


@pytest.fixture
def url() -> Iterator[str]:
    def embeddings(payload: dict[str, Any]) -> Any:
        vectors = Leaning().embed_queries(payload["input"])
        return {"data": [{"index": n, "embedding": row.tolist()} for n, row in enumerate(vectors)], "model": "leaning"}

    with serving() as endpoint:
        endpoint.embeddings = embeddings  # type: ignore[method-assign]
        yield endpoint.url


@pytest.mark.parametrize("merge", ["centered", "turns", "zscore"])
@pytest.mark.parametrize("made", [_imported, _centered_later, _endpoint])
def test_vectors_from_elsewhere_are_merged_alike(made: Any, merge: str, index: Index, url: str, tmp_path: Path) -> None:
    other = made(tmp_path, url)
    assert other.means.counts == COUNTS
    for one, there in zip(found(index, merge=merge), found(other, merge=merge), strict=True):
        assert ranked(one) == ranked(there)
        assert [kept.id for kept in one.kept] == [kept.id for kept in there.kept]


@pytest.mark.parametrize("merge", ["centered", "turns", "zscore"])
def test_saved_lists_are_those_of_the_merge_and_of_no_other(merge: str, tmp_path: Path) -> None:
    world = write_world(tmp_path)
    data = {"benchmark": "jsonl", "path": str(world / "questions.jsonl"), "corpus": str(world / "corpus.jsonl")}
    write_task(world, "small", **BASE, data=data, retrieval={"mode": "all", "k": 2})
    block = {"kind": "dense", "merge": merge}
    there = str(mrag_eval.retrieve("small", include=world, retrieval=block, output=tmp_path / "rows").path)

    def scores(**more: str) -> Any:
        found = mrag_eval.evaluate("oracle_answer", "small", include=world, retrieval={**block, **more})
        return found.samples.set_index("id")[["hit@2", "mrr@2"] if merge != "turns" else ["hit@2"]].to_dict()

    assert scores(run_folder=there) == scores()
    with pytest.raises(MragError, match="merge"):
        scores(run_folder=there, merge="score")


def test_turns_are_the_first_by_score_and_others_in_turn(index: Index) -> None:
    lists = {merge: found(index, merge=merge, k=20) for merge in ("score", "centered", "zscore")}
    for number, shown in enumerate(found(index, merge="turns", k=5)):
        waiting = {merge: ranked(one[number]) for merge, one in lists.items()}
        expected = [waiting["score"][0]]
        for merge in ("centered", "zscore", "centered", "zscore"):
            expected.append(next(name for name in waiting[merge] if name not in expected))
        assert {kept.id for kept in shown.kept} == set(expected)
        # in the order of their scores, which are those of the search
        scores = {place.id: place.score for place in lists["score"][number].ranking}
        assert all(kept.score == scores[kept.id] for kept in shown.kept if kept.id in scores)


def test_a_set_has_no_single_ranking() -> None:
    assert not Retrieval(mode="all", merge="turns").has_single_ranking
    assert Retrieval(mode="all", merge="centered").has_single_ranking


@pytest.mark.parametrize("merge", ["centered", "turns"])
def test_a_corpus_of_one_language_is_unchanged(merge: str, tmp_path: Path) -> None:
    corpus = [passage for passage in CORPUS if passage.lang == "en"]
    index = build_index(corpus, tmp_path / "english", embedder=Leaning(), progress=False)
    (tmp_path / "english" / "means.json").unlink()
    assert found(index, merge=merge) == found(index)


@pytest.mark.parametrize("merge", ["centered", "turns"])
def test_one_language_of_several_keeps_its_order(merge: str, index: Index) -> None:
    plans = [RowPlan(plan.text, (plan.langs[0],), langs=plan.langs) for plan in PLANS]
    there = found(index, plans, merge=merge)
    for one, other in zip(found(index, plans), there, strict=True):
        assert ranked(one) == ranked(other)


def test_versions_of_a_question_are_centered_each_by_its_own_vector(index: Index) -> None:
    versions = ("en topic 3", "de topic 3")
    (both,) = found(index, [RowPlan("ko topic 3", versions=versions, langs=LANGS)], merge="centered", depth=203)
    alone = [found(index, [RowPlan(text)], merge="centered", depth=203)[0] for text in ("ko topic 3", *versions)]
    best: dict[str, float] = {}
    for one in alone:
        for place in one.ranking:
            best[place.id] = max(place.score, best.get(place.id, -9.0))
    assert {place.id: place.score for place in both.ranking} == pytest.approx(best, abs=1e-9)


@pytest.mark.parametrize("merge", ["centered", "turns"])
def test_what_has_no_means_is_refused_in_one_line(merge: str, tmp_path: Path) -> None:
    built = {
        kind: build_index(
            CORPUS, tmp_path / kind, kind=kind, progress=False, **({} if kind == "bm25" else {"embedder": Leaning()})
        )  # type: ignore[arg-type]
        for kind in ("bm25", "hybrid")
    }
    single = [Passage(lang, lang, f"{lang} topic 1") for lang in LANGS]
    built["single"] = build_index(single, tmp_path / "single", embedder=Leaning(), progress=False)
    reasons = {
        "bm25": "is of kind 'bm25': BM25 gives scores, and no vectors",
        "hybrid": "is of kind 'hybrid': it fuses rankings by rank, which undoes the merge",
        "single": "has one passage a language, whose mean says nothing",
    }
    for name, reason in reasons.items():
        with pytest.raises(ConfigError, match=reason) as caught:
            found(built[name], merge=merge)
        assert str(tmp_path / name) in caught.value.message
        assert caught.value.next_step
        assert "\n" not in caught.value.message


@pytest.mark.parametrize("merge", ["centered", "turns"])
@pytest.mark.parametrize(
    "more",
    [{"kind": "bm25"}, {"kind": "hybrid"}, {"kind": "sparse"}, {"retriever": "mine:search", "pool": ["en", "ko"]},
     {"kind": "precomputed", "run": "run.trec"}],
    ids=str,
)  # fmt: skip
def test_a_source_of_scores_alone_is_refused_by_name(merge: str, more: dict[str, Any]) -> None:
    with pytest.raises(MragError, match="cannot be combined with") as caught:
        validated(Retrieval, {"mode": "all", "merge": merge, **more}, "retrieval")
    assert "\n" not in caught.value.message


def test_the_means_are_part_of_the_record_under_this_merge_alone(index: Index, tmp_path: Path) -> None:
    def record(**block: Any) -> dict[str, Any]:
        return index_record(Retrieval(mode="all", **{"corpus": str(index.path), **block}))

    plain = record()
    assert "means" not in plain
    assert record(merge="centered") == plain | {"means": index.means.fingerprint}
    assert record(merge="turns") == record(merge="centered")
    without = shutil.copytree(index.path, tmp_path / "without", ignore=shutil.ignore_patterns("means.json"))
    # nothing that was retrieved by another merge grows stale
    assert record(corpus=str(without)) == plain
    with pytest.raises(CorpusError, match="has no means of its languages' vectors"):
        record(corpus=str(without), merge="centered")


@pytest.mark.slow
@pytest.mark.skipif(not all(map(find_spec, ("pymilvus", "milvus_lite"))), reason="the extra 'milvus' is not installed")
@pytest.mark.parametrize("late", [False, True])
def test_an_index_in_milvus_has_the_means_of_its_folder(late: bool, index: Index, tmp_path: Path) -> None:
    place = MilvusPlace(str(tmp_path / "passages.db"), "leaning")
    means = index.means.fingerprint
    file = Path(index.path) / "means.json"
    text = file.read_text()
    if late:
        file.unlink()
        without = load_into_milvus(index, place)
        with pytest.raises(CorpusError, match="has no means of its languages' vectors"):
            found(without, merge="centered")
        file.write_text(text)
    there = load_into_milvus(index, place)
    assert there.means.fingerprint == means
    for merge in ("centered", "turns"):
        for one, other in zip(found(index, merge=merge), found(there, merge=merge), strict=True):
            assert ranked(one) == ranked(other)
