"""Recall of coded vectors against float32 ones, measured on a sample that is kept as float32 during a build.

Every vector is kept up to :data:`_MOST`, then every second up to twice as many, every fourth up to four times, and so
on. At the end the rows of the last of these distances are compared. So the sample is spread evenly over the language,
and depends neither on batches nor on interruptions.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from mrag_eval.retrievers.build._dense_files import WORK
from mrag_eval.retrievers.shards._codes import Vectors
from mrag_eval.retrievers.shards._faiss_shard import FaissShard
from mrag_eval.retrievers.shards._manifest import StoredRecord
from mrag_eval.retrievers.shards._ordering import Rows
from mrag_eval.retrievers.shards._recall import K, QuerySample

_MOST = 32_768
_QUERIES = 256
_SEED = 0


def sample_name(lang: str) -> str:
    return f"{WORK}/{lang}.sample"


def kept_rows(first: int, last: int) -> Rows:
    """Return the rows from ``first`` to ``last - 1`` that belong to the sample, while a language grows."""
    rows = np.arange(first, last, dtype=np.int64)
    kept: Rows = rows[rows % _distances(rows) == 0]
    return kept


def _distances(rows: Rows) -> Rows:
    """Return the distance between sampled rows where the language ends with each of these: a power of two."""
    doublings = np.ceil(np.log2(np.maximum((rows + 1) / _MOST, 1.0))).astype(np.int64)
    distances: Rows = np.left_shift(np.int64(1), doublings)
    return distances


def stored_recall(folder: Path, lang: str, shard: FaissShard, given: Vectors | None) -> StoredRecord | None:
    """Return the recall@20 of a finished shard among the sampled vectors; None if no sample was kept.

    Args:
        folder: the folder of the unfinished index.
        lang: the language of the shard.
        shard: the shard.
        given: vectors of queries; None draws stored vectors, each of which is excluded from its own hits.
    """
    path = folder / sample_name(lang)
    if not path.exists():
        return None
    import faiss

    kept = kept_rows(0, shard.count)
    places = np.flatnonzero(kept % _distances(np.asarray([shard.count - 1])) == 0)
    exact = np.memmap(path, dtype="<f4", mode="r", shape=(len(kept), shard.dimension))[places]
    coded = shard.vectors(kept[places])
    own = None
    # a single vector has no other to find
    if given is None and len(exact) > 1:
        draw = np.random.default_rng([_SEED, shard.count])
        own = np.sort(draw.choice(len(exact), min(_QUERIES, len(exact)), replace=False)).astype(np.int64)
    queries = given if given is not None else exact if own is None else exact[own]
    sample = QuerySample(queries, len(exact), own)
    sample.show(0, exact)
    depth = min(K + (own is not None), len(exact))
    _, found = faiss.knn(sample.queries, coded, depth, metric=faiss.METRIC_INNER_PRODUCT)
    recalls = sample.recalls(found, np.arange(len(queries)), sample.right())
    return StoredRecord(
        recall=round(float(recalls.mean()), 4), k=K, queries=len(queries), among=len(exact), seed=_SEED,
        queries_from="stored vectors" if given is None else "given",
    )  # fmt: skip
