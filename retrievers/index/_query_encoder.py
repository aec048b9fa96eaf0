"""The model that encodes the queries of an index: loaded on first use, and compared with the manifest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np

from mrag_eval.platform import CorpusError, DataError
from mrag_eval.retrievers.embedding._allowed import Spec, allowed_spec
from mrag_eval.retrievers.embedding._embedders import Embedder, Vectors, load_embedder, query_vectors
from mrag_eval.retrievers.embedding._sparse_encoders import SparseEncoder, load_sparse_encoder
from mrag_eval.retrievers.shards._manifest import EmbedderRecord, Manifest

Model = TypeVar("Model", Embedder, SparseEncoder)


class QueryEncoder:
    """The embedder or the sparse encoder of an index: the object ``given``, or the one that its manifest names.

    ``own`` are the user's specifications, which the manifest needs for some models
    (:func:`~mrag_eval.retrievers.embedding._allowed.allowed_spec`).
    """

    def __init__(
        self,
        path: Path | str,
        manifest: Manifest,
        device: str,
        given: Embedder | SparseEncoder | None,
        own: Sequence[Spec] = (),
    ) -> None:
        self._path, self._kind, self._record, self._device = path, manifest.kind, manifest.embedder, device
        self.given, self._own = given, own
        self._loaded = given

    @property
    def embedder(self) -> Embedder:
        """Return the embedder; raise CorpusError if the index has none, or the installed one differs."""
        if self._record is None:
            raise CorpusError(f"index {self._path} is lexical, it has no embedder", "search with texts: Index.search")
        if self._kind == "sparse":
            raise CorpusError(
                f"index {self._path} is sparse: it has a sparse encoder, not an embedder",
                "search with texts: Index.search",
            )
        if self._loaded is None:
            self._loaded = self._load(load_embedder, self._record)
        return self._loaded  # type: ignore[return-value]

    @property
    def sparse_encoder(self) -> SparseEncoder:
        """Return the sparse encoder, like :attr:`embedder`."""
        if self._record is None or self._kind != "sparse":
            raise CorpusError(
                f"index {self._path} is of kind '{self._kind}', it has no sparse encoder",
                "search with texts: Index.search",
            )
        if self._loaded is None:
            self._loaded = self._load(load_sparse_encoder, self._record)
        return self._loaded  # type: ignore[return-value]

    def check(self) -> None:
        """Raise CorpusError if the model cannot be loaded without a setting of the user's; nothing is loaded."""
        if self._loaded is None and self._record is not None:
            self.spec(self._record)

    def spec(self, record: EmbedderRecord) -> Spec:
        """Return what the manifest's model is loaded by; raise CorpusError if it has no name, or only the user's."""
        if record.spec is None:
            raise CorpusError(
                f"index {self._path} was built with an embedder '{record.name}' that cannot be loaded by name",
                "pass it to load_index(path, embedder=...), or search with embeddings=...",
            )
        return allowed_spec(record.spec, self._own, f"index {self._path}")

    def vectors(self, queries: Sequence[str], embeddings: Vectors | None) -> Vectors | None:
        """Return the vectors of queries, ``embeddings`` if they are given; None if the index has no embedder."""
        if self._record is None or self._kind == "sparse" or not len(queries):
            return None
        if embeddings is None:
            return query_vectors(self.embedder, queries)
        vectors = np.ascontiguousarray(embeddings, dtype=np.float32)
        expected = (len(queries), self._record.dim)
        if vectors.shape != expected:
            raise CorpusError(
                f"index {self._path} has {expected[1]} dimensions and there are {expected[0]} queries, "
                f"the given embeddings have shape {vectors.shape}",
                f"embed the queries with {self._record.name}",
            )
        if not np.isfinite(vectors).all():
            raise DataError(
                "the given embeddings contain a value that is not finite", "check the embedder that made them"
            )
        return vectors

    def _load(self, load: Callable[..., Model], record: EmbedderRecord) -> Model:
        """Return the model of the manifest; raise CorpusError as :meth:`spec` does, and for another revision here."""
        model = load(self.spec(record), device=self._device)
        if model.revision != record.revision:
            files = record.revision.rpartition("/")[0]
            alike = bool(files) and files == model.revision.rpartition("/")[0]
            why = ": the same files, with another recipe (prompts, adapters, pooling, length or unit)" if alike else ""
            raise CorpusError(
                f"index {self._path} was built with {record.name} {record.revision}, the installed one is "
                f"{model.revision}{why}",
                "install the release that built it, or rebuild the index"
                if alike
                else "install or pin that revision, or rebuild the index",
            )
        return model
