"""Indexes whose vectors are stored as float16 or int8: half and a quarter of the size, at a loss that is measured."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from mrag_eval.cli import Session, app
from mrag_eval.config import Retrieval
from mrag_eval.core import Passage
from mrag_eval.platform import ConfigError, CorpusError, DataError
from mrag_eval.retrieval import index_record
from mrag_eval.retrieval._plan import RowPlan
from mrag_eval.retrieval._search import search_plans
from mrag_eval.retrievers import Index, add_documents, build_index, index_info, load_index, merge_indexes, verify_index
from mrag_eval.retrievers.build import _stored_recall
from mrag_eval.retrievers.build._stored_recall import kept_rows
from tests.retrievers.test_approximate import DIM, QUERIES, Clustered, corpus, recall

CODED = ("float16", "int8")


def build(path: Path, store: str, passages: Any = None, **options: Any) -> Index:
    given = corpus(900, 40) if passages is None else passages
    options = {"batch_size": 100, **options}
    return build_index(given, path, store=store, embedder=Clustered(), progress=False, **options)


@pytest.fixture(scope="module")
def indexes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Index]:
    folder = tmp_path_factory.mktemp("stores")
    return {store: build(folder / store, store) for store in ("float32", *CODED)}


@pytest.mark.parametrize("store", CODED)
def test_search_is_exact_on_the_stored_vectors(indexes: dict[str, Index], store: str) -> None:
    index = indexes[store]
    queries = Clustered().embed_queries(QUERIES)
    vectors = np.concatenate([index.shard(lang).vectors(np.arange(count)) for lang, count in index.counts.items()])
    scores = (vectors.astype(np.float64) @ queries.T.astype(np.float64)).astype(np.float32)
    ids = index._store.ids(np.arange(len(vectors)))
    for number, hits in enumerate(index.search(QUERIES, 9)):
        best = sorted(range(len(ids)), key=lambda row, n=number: (-scores[row, n], ids[row]))[:9]  # type: ignore[misc]
        assert [hit.id for hit in hits] == [ids[row] for row in best]
        assert [hit.score for hit in hits] == pytest.approx([scores[row, number] for row in best], abs=1e-6)
    assert recall(index, indexes["float32"]) > 0.97


def test_the_manifest_says_how_and_how_well(indexes: dict[str, Index]) -> None:
    plain = indexes["float32"].manifest
    assert (plain.format, plain.store, plain.languages["en"].stored) == (1, "float32", None)
    for store, size in (("float16", 2), ("int8", 1)):
        manifest = indexes[store].manifest
        assert (manifest.format, manifest.store) == (2, store)
        assert manifest.content_hash == plain.content_hash
        assert 0 <= manifest.files["dense/en.faiss"].bytes - 900 * DIM * size < 400
        record = manifest.languages["en"].stored
        assert record is not None
        assert (record.k, record.queries, record.queries_from, record.among) == (20, 256, "stored vectors", 900)
        assert verify_index(indexes[store].path) == len(manifest.files)
    assert len({index.manifest.fingerprint for index in indexes.values()}) == 3


def test_the_recall_is_that_of_a_search_in_both(indexes: dict[str, Index]) -> None:
    record = indexes["int8"].manifest.languages["en"].stored
    assert record is not None
    draw = np.random.default_rng([0, 900])
    own = np.sort(draw.choice(900, 256, replace=False))
    found = []
    for store in ("float32", "int8"):
        vectors = indexes[store].shard("en").vectors(np.arange(900))
        queries = indexes["float32"].shard("en").vectors(own)
        best = np.argsort(-(queries @ vectors.T), axis=1, kind="stable")[:, :21]
        found.append([set(line) - {row} for line, row in zip(best.tolist(), own.tolist(), strict=True)])
    shares = [len(one & other) / 20 for one, other in zip(*found, strict=True)]
    assert record.recall == pytest.approx(np.mean(shares), abs=1e-3)
    assert record.recall < 1


def test_the_sample_is_spread_evenly_whatever_the_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_stored_recall, "_MOST", 8)
    # all of 8 rows, then every second of 16, every fourth of 32
    assert kept_rows(0, 32).tolist() == [*range(8), 8, 10, 12, 14, 16, 20, 24, 28]
    assert np.concatenate([kept_rows(first, first + 3) for first in range(0, 33, 3)]).tolist() == [
        *kept_rows(0, 32).tolist(), 32
    ]  # fmt: skip


def test_a_part_of_a_large_language_is_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_stored_recall, "_MOST", 100)
    given = build(tmp_path / "i", "int8", recall_queries=QUERIES).manifest.languages["en"].stored
    assert given is not None
    # 900 vectors: every sixteenth of them, as every eighth would be more than 100
    assert (given.among, given.queries, given.queries_from) == (57, len(QUERIES), "given")
    assert 0.9 < given.recall <= 1


@pytest.mark.parametrize("queries", [(), QUERIES])
def test_a_language_of_one_passage_loses_nothing(tmp_path: Path, queries: Sequence[str]) -> None:
    index = build(tmp_path / "i", "int8", words(0, 1), recall_queries=queries)
    record = index.manifest.languages["en"].stored
    assert record is not None
    assert (record.recall, record.among, record.queries) == (1.0, 1, len(queries) or 1)
    assert [hit.id for hit in index.search(QUERIES[:1], 5)[0]] == ["0000"]


@pytest.mark.parametrize("store", CODED)
def test_batches_and_interruptions_change_nothing(tmp_path: Path, indexes: dict[str, Index], store: str) -> None:
    whole = indexes[store]
    other = build(tmp_path / "other", store, batch_size=333, window=400)
    assert other.manifest.languages == whole.manifest.languages

    def broken() -> Any:
        for number, passage in enumerate(corpus(900, 40)):
            if number == 650:
                raise KeyboardInterrupt
            yield passage

    with pytest.raises(KeyboardInterrupt):
        build(tmp_path / "i", store, broken())
    with pytest.raises(CorpusError, match=f"has store = '{store}', this one 'float32'"):
        build(tmp_path / "i", "float32", resume=True)
    resumed = build(tmp_path / "i", store, resume=True)
    assert resumed.manifest.fingerprint == other.manifest.fingerprint == whole.manifest.fingerprint
    assert resumed.manifest.languages == whole.manifest.languages


def test_an_older_manifest_means_float32(indexes: dict[str, Index], tmp_path: Path) -> None:
    path = merge_indexes([indexes["float32"].path], tmp_path / "copy").path
    assert isinstance(path, Path)
    file = path / "manifest.json"
    content = json.loads(file.read_text("utf-8"))
    del content["store"]
    file.write_text(json.dumps(content), "utf-8")
    older = load_index(path, embedder=Clustered())
    assert older.manifest.store == "float32"
    assert older.manifest.fingerprint == indexes["float32"].manifest.fingerprint


@pytest.mark.parametrize("store", CODED)
@pytest.mark.parametrize("factory", ["IVF8,SQ8", pytest.param("HNSW16,Flat", marks=pytest.mark.slow)])
def test_approximate_shards_score_by_the_stored_vectors(
    tmp_path: Path, indexes: dict[str, Index], store: str, factory: str
) -> None:
    index = build(tmp_path / "i", store, factory=factory)
    record = index.manifest.languages["en"]
    assert record.approximate is not None
    assert record.approximate.recall >= 0.95
    assert record.stored == indexes[store].manifest.languages["en"].stored
    exact = [{hit.id: hit.score for hit in hits} for hits in indexes[store].search(QUERIES, 200)]
    for scores, hits in zip(exact, index.search(QUERIES, 20), strict=True):
        assert all(scores[hit.id] == hit.score for hit in hits)


def words(first: int, last: int, langs: Sequence[str] = ("en", "ko")) -> list[Passage]:
    return [Passage(f"{n:04d}", langs[n % len(langs)], f"{n % 60} {n}", doc_id=f"d{n}") for n in range(first, last)]


def test_merging_float16_equals_building_at_once(tmp_path: Path) -> None:
    whole = build(tmp_path / "whole", "float16", [*words(0, 90), *words(90, 150)])
    parts = [build(tmp_path / "a", "float16", words(0, 90)).path, build(tmp_path / "b", "float16", words(90, 150)).path]
    merged = merge_indexes(parts, tmp_path / "merged")
    assert merged.manifest.fingerprint == whole.manifest.fingerprint
    # the float32 vectors are gone, so there is nothing to measure against
    assert merged.manifest.languages["en"].stored is None
    lines = CliRunner().invoke(app, ["index", "info", str(tmp_path / "merged")], obj=Session()).output
    assert "en: float16 · recall against float32 not measured" in lines


def test_int8_is_coded_again_where_a_language_grows(tmp_path: Path) -> None:
    one = build(tmp_path / "one", "int8", words(0, 90))
    before = one.shard("en").vectors(np.arange(45))
    grown = add_documents(tmp_path / "one", words(90, 150, ("en", "th")), embedder=Clustered())
    assert grown.manifest.store == "int8"
    after = grown.shard("en").vectors(np.arange(45))
    steps = grown.shard("en").codes.ranges
    assert steps is not None
    # half a step, and the rounding of float16
    assert (np.abs(after - before) <= steps[1] / 510 + np.abs(before) / 2_048).all()
    # languages of one part keep their files, and with them what was measured
    assert grown.manifest.languages["ko"] == one.manifest.languages["ko"]
    assert grown.manifest.languages["th"].stored is not None
    assert verify_index(tmp_path / "one")


def test_parts_of_different_stores_are_not_merged(tmp_path: Path, indexes: dict[str, Index]) -> None:
    other = build(tmp_path / "b", "int8", words(2_000, 2_010))
    with pytest.raises(ConfigError, match="has store = 'int8'"):
        merge_indexes([indexes["float32"].path, other.path], tmp_path / "merged")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"store": "int4"}, "store: unknown value 'int4'"),
        ({"store": "float16", "kind": "bm25"}, "store 'float16' cannot be combined with kind 'bm25'"),
        ({"store": "int8", "kind": "sparse"}, "store 'int8' cannot be combined with kind 'sparse'"),
    ],
)
def test_settings_that_cannot_be(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        build_index(corpus(), tmp_path / "i", progress=False, **options)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("store", CODED)
@pytest.mark.parametrize("value", [65_520.0, -1e30])
def test_a_value_out_of_range_names_its_passage(tmp_path: Path, store: str, value: float) -> None:
    class Large(Clustered):
        def embed_passages(self, texts: Sequence[str]) -> np.ndarray:
            vectors = self.embed_queries(texts)
            vectors[[text.endswith(" 31") for text in texts], 3] = value
            return vectors

    with pytest.raises(DataError, match=r"vector of passage '0031' has the value .*; float16 holds at most 65,504"):
        build_index(words(0, 60), tmp_path / "i", store=store, embedder=Large(), progress=False)
    assert not (tmp_path / "i").exists()
    plain = build_index(words(0, 60), tmp_path / "i", embedder=Large(), progress=False)
    assert plain.manifest.languages["ko"].max_norm == pytest.approx(abs(value), rel=1e-4)


def test_a_manifest_of_another_store_is_refused(tmp_path: Path) -> None:
    path = build(tmp_path / "i", "float16", words(0, 60)).path
    assert isinstance(path, Path)
    file = path / "manifest.json"
    content = json.loads(file.read_text("utf-8"))
    file.write_text(json.dumps({**content, "store": "int8"}), "utf-8")
    with pytest.raises(CorpusError, match=r"en\.faiss holds float16 vectors, the manifest says int8"):
        load_index(path, embedder=Clustered()).search(QUERIES[:1], 1)
    for wrong in ({"store": "int4"}, {"format": 1}, {"kind": "sparse"}):
        file.write_text(json.dumps({**content, **wrong}), "utf-8")
        with pytest.raises(CorpusError, match=r"manifest\.json is damaged"):
            load_index(path)
    file.write_text(json.dumps(content), "utf-8")
    shard = path / "dense" / "en.faiss"
    shard.write_bytes(shard.read_bytes()[:-5])
    with pytest.raises(CorpusError, match=r"dense/en\.faiss is truncated"):
        load_index(path)


def test_results_and_caches_tell_the_stores_apart(
    indexes: dict[str, Index], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MRAG_CACHE", str(tmp_path))
    found = {}
    for store, index in indexes.items():
        monkeypatch.setattr("mrag_eval.retrieval._corpora.open_index", lambda retrieval, index=index: index)
        found[store] = index_record(Retrieval(mode="all", corpus=str(index.path))).get("store")
    assert found == {"float32": None, "float16": "float16", "int8": "int8"}
    asked: list[Index] = []
    search = Index.search

    def counted(self: Index, *args: Any, **keys: Any) -> Any:
        asked.append(self)
        return search(self, *args, **keys)

    monkeypatch.setattr(Index, "search", counted)
    for index in (*indexes.values(), *indexes.values()):
        search_plans(index, [RowPlan(text=QUERIES[0], languages=None)], Retrieval(mode="all", k=5, kind="dense"))
    assert asked == list(indexes.values())


def test_the_command_builds_and_shows_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    lines = [{"id": str(n), "lang": "en", "text": f"{n} is a number of {n + 1} parts"} for n in range(30)]
    Path("texts.jsonl").write_text("\n".join(map(json.dumps, lines)), "utf-8")
    built = CliRunner().invoke(app, ["index", "build", "texts.jsonl", "I", "--store", "int8"], obj=Session())
    assert built.exit_code == 0, built.output
    shown = CliRunner().invoke(app, ["index", "info", "I"], obj=Session()).output
    assert "stored      en: int8 · recall@20" in shown
    assert "against float32 (30 queries, stored vectors; among 30 vectors)" in shown
    assert index_info("I")["store"] == "int8"
