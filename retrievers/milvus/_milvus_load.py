"""Loading a built index into Milvus: in batches, resumable, and verified at the end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mrag_eval.platform import ConfigError, CorpusError, Wait, did_you_mean, read_array
from mrag_eval.retrievers.index._index import Index
from mrag_eval.retrievers.index._means import MEANS, means_of
from mrag_eval.retrievers.index._passages import PassageStore
from mrag_eval.retrievers.milvus._milvus import (
    MilvusIndex,
    MilvusPlace,
    check_counts,
    forget_opened,
    index_note,
    open_milvus,
)
from mrag_eval.retrievers.milvus._milvus_notes import VARCHAR, Notes
from mrag_eval.retrievers.milvus._milvus_shard import DENSE, SPARSE
from mrag_eval.retrievers.shards._bm25_shard import Bm25Shard
from mrag_eval.retrievers.shards._manifest import Manifest
from mrag_eval.retrievers.shards._sparse_shard import FILES as SPARSE_FILES

# Vector indexes whose scores are exact inner products, with the parameters that Milvus requires.
VECTOR_INDEXES: dict[str, dict[str, int]] = {
    "FLAT": {},
    "IVF_FLAT": {"nlist": 1024},
    "HNSW": {"M": 32, "efConstruction": 360},
}
_SEARCH: dict[str, dict[str, int]] = {"FLAT": {}, "IVF_FLAT": {"nprobe": 64}, "HNSW": {"ef": 256}}

_BATCH = 1_000
# bytes of texts and vectors per call; servers accept 64 MB
_MOST_BYTES = 16 << 20
# a term outside every vocabulary, for passages without terms
_NO_TERM = 2**31 - 2
# number of partitions; Milvus hashes languages into them
_PARTITIONS = 64


def load_into_milvus(
    index: Index,
    place: MilvusPlace,
    *,
    vector_index: str = "FLAT",
    build: Mapping[str, int] | None = None,
    search: Mapping[str, int] | None = None,
    overwrite: bool = False,
    progress: bool = True,
) -> MilvusIndex:
    """Copy the passages and vectors of a built index into a collection, and open it.

    Calling it again continues an interrupted load after its last complete batch, and does nothing for an index that is
    loaded already. At the end the passages of every language are counted; only then can the collection be opened.

    Args:
        index: an index in a folder.
        place: its location in Milvus.
        vector_index: How Milvus indexes dense vectors: FLAT (exact), IVF_FLAT or HNSW.
        build: parameters of that index; they override the defaults.
        search: its search parameters (``ef``, ``nprobe``), stored with the collection.
        overwrite: Replace another index of that name.
        progress: show on a terminal how much is loaded.

    Raises CorpusError if the collection has other content, a text is too long for Milvus, or
    the counts differ; ConfigError for an unknown vector index.
    """
    if vector_index not in VECTOR_INDEXES:
        raise ConfigError(f"unknown vector index '{vector_index}'{did_you_mean(vector_index, VECTOR_INDEXES)}")
    if isinstance(index, MilvusIndex):
        raise ConfigError(f"index {index.path} is in Milvus already", "load the index folder it was made from")
    built = {
        "index": {"type": vector_index, **VECTOR_INDEXES[vector_index], **(build or {})},
        "search": {**_SEARCH[vector_index], **(search or {})},
        "made_of": index.manifest.fingerprint,
    }
    # files and approximate shards belong to the folder, not to the collection
    languages = {
        lang: record.model_copy(update={"approximate": None}) for lang, record in index.manifest.languages.items()
    }
    manifest = index.manifest.model_copy(update={"files": {}, "languages": languages, "approximation": None})
    load = _Load(index, manifest, place, built)
    load.prepare(overwrite=overwrite)
    load.run(progress)
    forget_opened()
    record = index.manifest.embedder
    return open_milvus(place, embedder=index._encoder.given if record is not None and record.spec is None else None)


class _Load:
    """One run of :func:`load_into_milvus`."""

    def __init__(self, index: Index, manifest: Manifest, place: MilvusPlace, built: dict[str, Any]) -> None:
        self.index, self.manifest, self.place, self.built = index, manifest, place, built
        assert isinstance(index._store, PassageStore)
        self.store = index._store
        self.connection = place.connect()
        self.notes = Notes(self.connection, place.collection)
        self.done = 0
        self.whole = False

    def prepare(self, *, overwrite: bool) -> None:
        """Find the progress of an earlier load, or create the collections."""
        name, uri = self.place.collection, self.connection.uri
        there = bool(self.connection.call("has_collection", name))
        if not self.notes.exist():
            if there:
                raise CorpusError(
                    f"Milvus at {uri} has a collection '{name}' that mrag-eval did not create", "choose another name"
                )
        else:
            self.notes.load()
            state = self.notes.read("load") or {}
            if state.get("built") == self.built:
                self.done = int(state["done"]) if there else 0
                self.whole = there and self.notes.read("index") is not None
            elif not overwrite:
                raise CorpusError(
                    f"collection '{name}' in Milvus at {uri} holds another index (or the same one with other settings)",
                    "choose another name, or replace it: --overwrite",
                )
            else:
                self.notes.drop()
                if there:
                    self.connection.call("drop_collection", name)
                there = False
        self._check_lengths()
        if not self.notes.exist():
            self.notes.create()
            self.notes.load()
            self._note_progress()
        if not there:
            self._create()

    def _check_lengths(self) -> None:
        """Raise CorpusError for a text that is too long, before anything is sent."""
        for lang in self.index.languages:
            longest, row = self.store.longest(lang)
            if longest > VARCHAR:
                (identifier,) = self.store.ids(np.asarray([row]))
                raise CorpusError(
                    f"index {self.index.path}: a field of passage '{identifier}' has {longest:,} bytes, "
                    f"Milvus allows {VARCHAR:,}",
                    "build the index with shorter passages: mrag-eval index build --chunker words ...",
                )

    def _create(self) -> None:
        from pymilvus import DataType, MilvusClient

        schema = MilvusClient.create_schema(auto_id=False, enable_dynamic_field=False)
        schema.add_field("row", DataType.INT64, is_primary=True)
        schema.add_field("lang", DataType.VARCHAR, max_length=64, is_partition_key=True)
        for name in ("id", "doc_id", "title", "text"):
            schema.add_field(name, DataType.VARCHAR, max_length=VARCHAR)
        indexes = MilvusClient.prepare_index_params()
        for name in ("id", "doc_id"):
            indexes.add_index(name, index_type="INVERTED")
        if self._dense:
            assert self.manifest.embedder is not None
            schema.add_field(DENSE, DataType.FLOAT_VECTOR, dim=self.manifest.embedder.dim)
            params = {key: value for key, value in self.built["index"].items() if key != "type"}
            indexes.add_index(DENSE, index_type=self.built["index"]["type"], metric_type="IP", params=params)
        if self._sparse:
            schema.add_field(SPARSE, DataType.SPARSE_FLOAT_VECTOR)
            indexes.add_index(SPARSE, index_type="SPARSE_INVERTED_INDEX", metric_type="IP")
        self.connection.create(self.place.collection, schema, indexes, num_partitions=_PARTITIONS)

    @property
    def _dense(self) -> bool:
        return self.manifest.kind in ("dense", "hybrid")

    @property
    def _sparse(self) -> bool:
        return self.manifest.kind != "dense"

    # --- the rows ---------------------------------------------------------------------------------------------------

    def run(self, progress: bool) -> None:
        # an index may have got its means after it was loaded
        means = means_of(Path(self.index.path), self.index.manifest) if self.manifest.kind == "dense" else None
        if means is not None and self.notes.read(MEANS) is None:
            self.notes.write(MEANS, means.to_json())
        if self.whole:
            return
        total = len(self.index)
        with Wait(f"loading {self.place.collection}", total, "passages", done=self.done, shown=progress) as wait:
            for batch in self._batches():
                # a batch that was sent but not noted is sent again; upsert keeps one copy
                self.connection.call("upsert", self.place.collection, batch)
                self.done += len(batch)
                self._note_progress()
                wait.add(len(batch))
        self._write_vocabularies()
        self.connection.call("flush", self.place.collection)
        self.connection.call("load_collection", self.place.collection)
        check_counts(self.connection, self.place, self.index.counts)
        self.notes.write("index", index_note(self.manifest, self.built))

    def _note_progress(self) -> None:
        self.notes.write("load", {"built": self.built, "done": self.done})

    def _batches(self) -> Iterator[list[dict[str, Any]]]:
        for lang in self.index.languages:
            low, high = self.store.span(lang)
            first = max(low, self.done)
            if first >= high:
                continue
            batch: list[dict[str, Any]] = []
            size = 0
            for row in self._rows(lang, first, high):
                size += row.pop("bytes")
                batch.append(row)
                if len(batch) == _BATCH or size >= _MOST_BYTES:
                    yield batch
                    batch, size = [], 0
            if batch:
                yield batch

    def _rows(self, lang: str, first: int, high: int) -> Iterator[dict[str, Any]]:
        low, _ = self.store.span(lang)
        sparse = self._sparse_vectors(lang, first, high) if self._sparse else None
        for start in range(first, high, _BATCH):
            numbers = np.arange(start, min(start + _BATCH, high))
            ((_, _, records),) = self.store.records(numbers)
            vectors = self.index._shards.dense[lang].vectors(numbers - low) if self._dense else None
            terms = list(islice(sparse, len(numbers))) if sparse is not None else None
            for at, (identifier, doc_id, title, text) in enumerate(records):
                row: dict[str, Any] = {
                    "row": int(numbers[at]),
                    "lang": lang,
                    "id": identifier,
                    "doc_id": doc_id,
                    "title": title,
                    "text": text,
                    "bytes": 4 * (len(title) + len(text)),
                }
                if vectors is not None:
                    row[DENSE] = vectors[at]
                    row["bytes"] += vectors[at].nbytes
                if terms is not None:
                    # Milvus does not accept empty vectors
                    row[SPARSE] = terms[at] or {_NO_TERM: 1.0}
                    row["bytes"] += 8 * len(terms[at])
                yield row

    def _sparse_vectors(self, lang: str, first: int, high: int) -> Iterator[dict[int, float]]:
        shard = self.index._shards.lexical[lang]
        files: Any = BM25_FILES if isinstance(shard, Bm25Shard) else SPARSE_FILES
        return passage_vectors(shard.folder, files, first - shard.first_row, high - shard.first_row)

    def _write_vocabularies(self) -> None:
        if self.manifest.kind not in ("bm25", "hybrid"):
            return
        for name in ("joint",) if self.manifest.joint else self.index.languages:
            shard = self.index._shards.lexical[self.index.languages[0] if self.manifest.joint else name]
            assert isinstance(shard, Bm25Shard)
            numbered: dict[str, int] = shard.model.vocab_dict
            tokens = [""] * len(numbered)
            for token, number in numbered.items():
                tokens[number] = token
            self.notes.write(f"vocabulary/{name}", tokens)


# postings read at a time
_BLOCK = 1 << 22

BM25_FILES = ("indptr.csc.index.npy", "indices.csc.index.npy", "data.csc.index.npy")


def passage_vectors(
    folder: Path, files: tuple[str, str, str], first: int, last: int, *, room: int = 1 << 24
) -> Iterator[dict[int, float]]:
    """Yield the weights by term of passages ``first`` to ``last - 1`` of a shard.

    ``files`` are the starts of the terms' postings, the passages and the weights. Memory holds ``room`` postings; all
    postings are read once for each such part.
    """
    starts, passages, weights = (read_array(folder / name) for name in files)
    total = int(starts[-1])
    lengths = np.zeros(last - first, dtype=np.int64)
    for start in range(0, total, _BLOCK):
        block = np.asarray(passages[start : min(start + _BLOCK, total)])
        here = block[(block >= first) & (block < last)]
        lengths += np.bincount(here - first, minlength=last - first)
    held = np.cumsum(lengths)
    low = 0
    while low < last - first:
        before = int(held[low - 1]) if low else 0
        high = max(low + 1, int(np.searchsorted(held, before + room, side="right")))
        yield from _window(starts, passages, weights, first + low, first + high)
        low = high


def _window(
    starts: NDArray[np.int64], passages: NDArray[np.int32], weights: NDArray[np.float32], low: int, high: int
) -> Iterator[dict[int, float]]:
    total = int(starts[-1])
    rows, terms, values = [], [], []
    for start in range(0, total, _BLOCK):
        block = np.asarray(passages[start : min(start + _BLOCK, total)])
        at = np.flatnonzero((block >= low) & (block < high))
        rows.append(block[at] - low)
        terms.append(np.searchsorted(starts, at + start, side="right") - 1)
        values.append(np.asarray(weights[start : start + len(block)])[at])
    if not rows:
        yield from ({} for _ in range(low, high))
        return
    row, term, value = np.concatenate(rows), np.concatenate(terms), np.concatenate(values)
    order = np.argsort(row, kind="stable")
    term, value = term[order], value[order]
    ends = np.cumsum(np.bincount(row, minlength=high - low)).tolist()
    begin = 0
    for end in ends:
        yield dict(zip(term[begin:end].tolist(), value[begin:end].tolist(), strict=True))
        begin = end
