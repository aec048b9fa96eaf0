"""Work of Ray's workers: cut and embed tables, and carry errors back in them."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import mrag_eval
from mrag_eval.core import Passage
from mrag_eval.platform import CorpusError, MragError
from mrag_eval.retrievers.build._chunk_workers import Item, cut
from mrag_eval.retrievers.build._windows import Made, made
from mrag_eval.retrievers.chunking._chunking import ChunkConfig, TokenCounter
from mrag_eval.retrievers.corpora._corpus import Document
from mrag_eval.retrievers.embedding._embedder_spec import EmbedderSpec
from mrag_eval.retrievers.embedding._embedders import Embedder, load_embedder
from mrag_eval.retrievers.embedding._sparse_encoders import SparseEncoder, load_sparse_encoder
from mrag_eval.retrievers.shards import _sparse_shard as sparse_shard

RESUME = "give the same command again with --resume"
COLUMNS = ("id", "doc_id", "lang", "title", "text")


@dataclass(frozen=True)
class Loading:
    """A model for an actor: a specification to load on its device, or the object itself."""

    model: EmbedderSpec | Embedder | SparseEncoder
    sparse: bool

    def load(self, device: str) -> Embedder | SparseEncoder:
        if not isinstance(self.model, EmbedderSpec):
            return self.model
        load: Callable[..., Embedder | SparseEncoder] = load_sparse_encoder if self.sparse else load_embedder
        return load(self.model, device=device)


def described(loading: Loading, device: str) -> tuple[str, str, str, int, str | None]:
    model = loading.load(device)
    return mrag_eval.__version__, model.name, model.revision, model.dim, getattr(model, "commit", None)


def _or_error(work: Callable[[Any], Any], table: Any) -> Any:
    """Return ``work(table)``, or a one-row table with the pickled error, as Ray would pass on only its text."""
    import pyarrow as pa

    try:
        return work(table)
    except Exception as error:  # any error of an embedder is raised again by the build
        number = table["batch"][0].as_py() if len(table) else 0
        said = (str(error).splitlines() or ["no reason given"])[0]
        other = CorpusError(f"on Ray: {type(error).__name__}: {said}", RESUME)
        told = error if isinstance(error, MragError) else other
        return pa.table(
            {
                "batch": pa.array([number], pa.int64()),
                **{name: pa.array([""], pa.string()) for name in COLUMNS},
                "vector": pa.array([b""], pa.binary()),
                "error": pa.array([pickle.dumps(told)], pa.binary()),
            }
        )


def raise_carried(table: Any) -> None:
    for carried in table["error"].drop_null().to_pylist():
        raise pickle.loads(carried)


class Cutter:
    """Cut a table of documents into a table of passages."""

    def __init__(self, chunking: ChunkConfig, count: TokenCounter) -> None:
        self._chunking, self._count = chunking, count

    def __call__(self, table: Any) -> Any:
        return _or_error(self.cut, table)

    def cut(self, table: Any) -> Any:
        """Return the passages; the columns for vectors and errors are empty."""
        import pyarrow as pa

        numbers: list[int] = []
        passages: list[Passage] = []
        for row in table.to_pylist():
            lang, title, text = row["lang"], row["title"], row["text"]
            item: Item = Passage(id=row["id"], lang=lang, text=text, title=title, doc_id=row["doc_id"])
            if row["is_document"]:
                item = Document(id=row["id"], lang=lang, text=text, title=title)
            own = cut([item], self._chunking, self._count)
            passages += own
            numbers += [row["batch"]] * len(own)
        columns = {name: pa.array([getattr(p, name) for p in passages], pa.string()) for name in COLUMNS}
        empty = {name: pa.nulls(len(passages), pa.binary()) for name in ("vector", "error")}
        return pa.table({"batch": pa.array(numbers, pa.int64()), **columns, **empty})


class Embedding:
    """Actor that adds vectors to a table of passages; with a cutter it takes documents."""

    def __init__(self, loading: Loading, device: str, batch_size: int, cutter: Cutter | None) -> None:
        self._model, self._batch_size, self._cutter = loading.load(device), batch_size, cutter

    def __call__(self, table: Any) -> Any:
        if "error" in table.column_names and table["error"].null_count < len(table):
            return table
        return _or_error(self._embed, table)

    def _embed(self, table: Any) -> Any:
        import pyarrow as pa

        if self._cutter is not None:
            table = self._cutter.cut(table)
        passages = _passages(table)
        vectors: list[bytes] = []
        if passages:
            found = made(passages, self._model, self._batch_size)
            if found.vectors is not None:
                vectors = [vector.tobytes() for vector in found.vectors.astype("<f4", copy=False)]
            else:
                vectors = [b"".join(sparse_shard.encode([vector])) for vector in found.sparse or ()]
        return table.set_column(table.column_names.index("vector"), "vector", pa.array(vectors, pa.binary()))


def _passages(table: Any) -> list[Passage]:
    columns: Mapping[str, list[str]] = {name: table[name].to_pylist() for name in COLUMNS}
    return [Passage(**dict(zip(COLUMNS, fields, strict=True))) for fields in zip(*columns.values(), strict=True)]


def from_table(table: Any, loading: Loading | None) -> Made:
    passages = _passages(table)
    if loading is None:
        return Made(passages)
    raw = table["vector"].to_pylist()
    if loading.sparse:
        return Made(passages, sparse=[sparse_shard.decode(one, 1)[0] for one in raw])
    return Made(passages, np.frombuffer(b"".join(raw), "<f4").reshape(len(passages), -1))
