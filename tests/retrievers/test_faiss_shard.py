"""One dense shard: exact, ties by id, independent of batches, really memory-mapped."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mrag_eval.platform import CorpusError
from mrag_eval.retrievers.shards._codes import FLOAT16, FLOAT32, INT8, STORES, Codes, ranges_of
from mrag_eval.retrievers.shards._faiss_shard import FaissShard

IdsOf = Callable[[np.ndarray], list[str]]


def coding(store: str, vectors: np.ndarray) -> Codes:
    ranges = ranges_of(vectors.min(axis=0), vectors.max(axis=0)) if store == INT8 else None
    return Codes(store, vectors.shape[1], ranges)


def write(path: Path, vectors: np.ndarray, store: str = FLOAT32) -> Path:
    codes = coding(store, vectors)
    path.write_bytes(codes.header(len(vectors)) + codes.encode(vectors))
    return path


def stored(path: Path, vectors: np.ndarray, store: str, **options: Any) -> tuple[FaissShard, np.ndarray]:
    """Return a shard of vectors, and the vectors that it stores."""
    shard = FaissShard(write(path, vectors, store), *vectors.shape, store=store, **options)
    return shard, shard.vectors(np.arange(len(vectors)))


def unit(count: int, dim: int, seed: int = 0) -> np.ndarray:
    vectors = np.random.default_rng(seed).standard_normal((count, dim))
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def reversed_ids(rows: np.ndarray) -> list[str]:
    """Return ids that descend as rows ascend, so that row order cannot pass for id order."""
    return [f"{99_999 - row:05d}" for row in rows.tolist()]


def expected(queries: np.ndarray, vectors: np.ndarray, k: int, ids_of: IdsOf) -> list[list[int]]:
    """Search by brute force in float64, round to float32, and order by (score, id) in plain Python."""
    ids = ids_of(np.arange(len(vectors)))
    out = []
    for query in queries.astype(np.float64):
        scores = (vectors.astype(np.float64) @ query).astype(np.float32).tolist()
        out.append(sorted(range(len(vectors)), key=lambda row: (-scores[row], ids[row]))[:k])
    return out


@pytest.mark.parametrize("store", STORES)
def test_layout_is_the_one_faiss_writes(store: str) -> None:
    assert all(coding(store, unit(3, dim)).layout_is_known() for dim in (384, 5))


@pytest.mark.parametrize("store", STORES)
def test_search_is_exact(tmp_path: Path, store: str) -> None:
    queries = unit(70, 48, seed=1)
    shard, vectors = stored(tmp_path / "en.faiss", unit(3_000, 48), store, first_row=1_000)
    scores, rows = shard.search(queries, 10, reversed_ids)
    assert (rows - 1_000).tolist() == expected(queries, vectors, 10, reversed_ids)
    np.testing.assert_allclose(scores, np.sort(queries @ vectors.T, axis=1)[:, :-11:-1], atol=1e-6)


def test_codes_are_as_close_as_they_can_be(tmp_path: Path) -> None:
    vectors = unit(300, 24) * np.linspace(0.1, 20, 24, dtype=np.float32) + 3
    vectors[:, 7] = 0.25
    _, half = stored(tmp_path / "half", vectors, FLOAT16)
    assert half.tolist() == vectors.astype(np.float16).astype(np.float32).tolist()
    shard, coded = stored(tmp_path / "int8", vectors, INT8)
    low, high = vectors.min(axis=0), vectors.max(axis=0)
    # 256 places from the lowest to the highest value: at most half a step away
    assert (np.abs(coded - vectors) <= (high - low) / 510 * 1.001 + 1e-6).all()
    np.testing.assert_allclose([coded.min(axis=0), coded.max(axis=0)], [low, high], rtol=1e-6)
    # coding what is coded changes nothing
    again = coding(INT8, coded)
    assert again.encode(coded) == shard.codes.encode(vectors)
    # FAISS decodes the same values
    np.testing.assert_allclose(shard.index.reconstruct_n(0, 300), coded, rtol=1e-5, atol=1e-5)
    # a vector outside the range is put on its edge
    assert np.frombuffer(shard.codes.encode(np.full((1, 24), 1e9, np.float32)), np.uint8).tolist() == [255] * 24


@pytest.mark.parametrize("store", STORES)
def test_a_query_gets_the_same_hits_alone_and_in_a_batch(tmp_path: Path, store: str) -> None:
    queries = unit(64, 64, seed=1)
    shard, _ = stored(tmp_path / "en.faiss", unit(2_000, 64), store)
    scores, rows = shard.search(queries, 7, reversed_ids)
    for position in (0, 31, 63):
        alone = shard.search(queries[position : position + 1], 7, reversed_ids)
        assert alone[0].tolist() == scores[position : position + 1].tolist()
        assert alone[1].tolist() == rows[position : position + 1].tolist()


@settings(max_examples=25)
@given(st.integers(1, 60), st.integers(1, 70), st.integers(0, 1_000), st.sampled_from(STORES))
def test_ties_across_the_last_place_go_by_id(
    tmp_path_factory: pytest.TempPathFactory, k: int, n: int, seed: int, store: str
) -> None:
    generator = np.random.default_rng(seed)
    # few distinct vectors, many copies: nearly every last place is part of a tie
    vectors = unit(4, 16, seed)[generator.integers(0, 4, n)]
    shard, vectors = stored(tmp_path_factory.mktemp("shard") / "en.faiss", vectors, store)
    queries = unit(25, 16, seed + 1)
    scores, rows = shard.search(queries, k, reversed_ids)
    width = min(k, n)
    assert rows[:, width:].tolist() == [[-1] * (k - width)] * 25
    assert np.all(scores[:, width:] == -np.inf)
    assert rows[:, :width].tolist() == expected(queries, vectors, width, reversed_ids)


def test_a_constant_scorer_ranks_by_id(tmp_path: Path) -> None:
    vectors = np.repeat(unit(1, 24), 5_000, axis=0)
    shard = FaissShard(write(tmp_path / "en.faiss", vectors), 5_000, 24)
    _, rows = shard.search(unit(30, 24, seed=3), 4, reversed_ids)
    assert rows.tolist() == [[4_999, 4_998, 4_997, 4_996]] * 30


def test_candidates_are_exact_and_score_as_without(tmp_path: Path) -> None:
    vectors, queries = unit(500, 32), unit(3, 32, seed=1)
    shard = FaissShard(write(tmp_path / "en.faiss", vectors), 500, 32, first_row=100)
    everything = shard.search(queries, 500, reversed_ids)
    wanted = [np.asarray([599, 100, 101, 7, 5_000, 100]), None, np.empty(0, dtype=np.int64)]
    scores, rows = shard.search(queries, 5, reversed_ids, wanted)
    kept = [row for row in everything[1][0].tolist() if row in (599, 100, 101)]
    assert rows[0].tolist() == [*kept, -1, -1]
    at = [everything[1][0].tolist().index(row) for row in kept]
    assert scores[0, :3].tolist() == everything[0][0][at].tolist()
    assert rows[1].tolist() == everything[1][1][:5].tolist()
    assert rows[2].tolist() == [-1] * 5


@pytest.mark.parametrize("store", STORES)
def test_vectors_of_any_length_separate_ties_from_near_ties(tmp_path: Path, store: str) -> None:
    # norms of 1,000: rounding errors are large, so the slack must be too
    vectors, queries = 1_000 * unit(400, 256), 1_000 * unit(40, 256, seed=1)
    vectors[200:] = vectors[:200]
    shard, _ = stored(tmp_path / "en.faiss", vectors, store, max_norm=1_000.0)
    _, rows = shard.search(queries, 3, reversed_ids)
    # of every equal pair (row, row + 200) the later row has the smaller id and comes first
    assert all(first - second == 200 for first, second in rows[:, :2].tolist())


# The files that this process has mapped: unlike its memory, they do not depend on its history.
MAPS = Path("/proc/self/maps")


@pytest.mark.parametrize("store", STORES)
def test_the_file_is_mapped_not_read(tmp_path: Path, store: str) -> None:
    path = write(tmp_path / "en.faiss", unit(50_000, 256), store)
    if not hasattr(__import__("faiss"), "IO_FLAG_MMAP_IFC"):
        pytest.skip("this FAISS cannot map flat indexes")
    if not MAPS.is_file():
        pytest.skip("no /proc/self/maps on this system")
    before = MAPS.read_text().count(str(path))
    read = FaissShard(path, 50_000, 256, store=store, mmap=False)
    found = read.search(unit(2, 256), 3, reversed_ids)[1].tolist()
    by_reading = MAPS.read_text().count(str(path)) - before
    mapped = FaissShard(path, 50_000, 256, store=store)
    assert mapped.search(unit(2, 256), 3, reversed_ids)[1].tolist() == found
    # both look single vectors up in their own mapping; only here FAISS itself has another
    assert MAPS.read_text().count(str(path)) - before - by_reading > by_reading


@pytest.mark.parametrize("store", STORES)
def test_an_unknown_layout_is_written_by_faiss_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: str
) -> None:
    vectors = unit(300, 12)
    codes, reserved = coding(store, vectors), tmp_path / "en.faiss"
    reserved.write_bytes(bytes(codes.header_size) + codes.encode(vectors))
    monkeypatch.setattr(Codes, "layout_is_known", lambda self: False)
    codes.finish(reserved, 300)
    assert reserved.read_bytes() == codes.header(300) + codes.encode(vectors)


def test_a_shard_of_another_size_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "en.faiss", unit(10, 8))
    with pytest.raises(CorpusError, match="holds 10 vectors of 8 dimensions, the manifest says 11 of 8"):
        FaissShard(path, 11, 8).search(unit(1, 8), 1, reversed_ids)
    path.write_bytes(b"no index")
    with pytest.raises(CorpusError, match="cannot be read by FAISS"):
        FaissShard(path, 10, 8).search(unit(1, 8), 1, reversed_ids)


@pytest.mark.parametrize(("held", "said"), [(FLOAT16, INT8), (FLOAT32, FLOAT16), (INT8, FLOAT32)])
def test_a_shard_of_another_store_is_refused(tmp_path: Path, held: str, said: str) -> None:
    path = write(tmp_path / "en.faiss", unit(10, 8), held)
    with pytest.raises(CorpusError, match=f"holds {held} vectors, the manifest says {said}"):
        FaissShard(path, 10, 8, store=said).search(unit(1, 8), 1, reversed_ids)


def test_a_faiss_index_of_another_kind_is_refused(tmp_path: Path) -> None:
    import faiss

    index = faiss.index_factory(8, "SQ6", faiss.METRIC_INNER_PRODUCT)
    index.train(unit(10, 8))
    index.add(unit(10, 8))
    faiss.write_index(index, str(tmp_path / "en.faiss"))
    with pytest.raises(CorpusError, match="holds an unknown kind of vectors, the manifest says int8"):
        FaissShard(tmp_path / "en.faiss", 10, 8, store=INT8).search(unit(1, 8), 1, reversed_ids)
