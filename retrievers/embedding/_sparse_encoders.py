"""Encoders of learned sparse retrieval (such as SPLADE): texts become weighted terms of a vocabulary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from mrag_eval.platform import ConfigError, CorpusError, Wait, loading_device, placed
from mrag_eval.retrievers.embedding._embedder_spec import EmbedderSpec, SpecKey, parse_spec
from mrag_eval.retrievers.embedding._loading import (
    check_length,
    check_modules,
    commit_of,
    files_hash,
    loading,
    model_class,
    offline,
    with_settings,
)
from mrag_eval.retrievers.embedding._recent_queries import remembered

_SETTINGS = {"model", "kind", "revision", "max_tokens", "trust_remote_code", "batch_size"}


class SparseVector(NamedTuple):
    """Terms of the vocabulary (int32, each once) and their weights (float32)."""

    terms: NDArray[np.int32]
    weights: NDArray[np.float32]


@runtime_checkable
class SparseEncoder(Protocol):
    """Turns texts into sparse vectors of ``dim`` terms, whose inner product ranks passages for a query.

    ``name`` and ``revision`` identify the model with every setting that changes its vectors, as an embedder's do.
    """

    @property
    def name(self) -> str: ...

    @property
    def revision(self) -> str: ...

    @property
    def dim(self) -> int: ...

    def encode_queries(self, texts: Sequence[str]) -> list[SparseVector]: ...

    def encode_passages(self, texts: Sequence[str]) -> list[SparseVector]: ...


def load_sparse_encoder(spec: str | Mapping[str, Any] | EmbedderSpec, *, device: str = "cpu") -> SparseEncoder:
    """Load a sparse encoder of sentence-transformers from the hub (``naver/splade-v3``) or a folder, once per process.

    ``spec`` is a name or a mapping with ``model``, ``revision``, ``max_tokens``, ``trust_remote_code``, ``batch_size``.
    Raises ConfigError for another kind of model or a setting that sparse encoders lack, and
    MissingExtraError if sentence-transformers is missing or older than 6.
    """
    parsed = parse_spec(spec)
    if parsed.kind != "sentence-transformers":
        raise ConfigError(
            f"embedder {parsed.name} is not a sparse encoder, which an index of kind 'sparse' requires",
            "name one with embedder, such as naver/splade-v3 (English)",
        )
    for key in sorted(parsed.model_fields_set - _SETTINGS):
        if getattr(parsed, key) is not None:
            raise ConfigError(f"embedder {parsed.name}: '{key}' is not allowed for a sparse encoder", "leave it out")
    return _load(SpecKey.of(parsed), device)


@lru_cache(maxsize=2)
def _load(asked: SpecKey, device: str) -> SparseEncoder:
    with Wait(f"loading the sparse encoder {asked.spec.model}"):
        return SentenceTransformersSparse(asked.spec, device)


class SentenceTransformersSparse:
    """A ``SparseEncoder`` of sentence-transformers, with its own prompts for queries and passages."""

    def __init__(self, spec: EmbedderSpec, device: str = "cpu") -> None:
        encoder_class = model_class("SparseEncoder")
        self.name, self._batch_size = spec.name, spec.batch_size
        with loading(f"sparse encoder {spec.model}"):
            self._model: Any = encoder_class(
                spec.model,
                device=loading_device(device),
                revision=spec.revision,
                trust_remote_code=spec.trust_remote_code,
                local_files_only=offline(),
            )
        check_modules(self._model, f"sparse encoder {spec.model}", spec.revision)
        placed(self._model, device, f"sparse encoder {spec.model}")
        config = getattr(getattr(self._model[0], "auto_model", None), "config", None)
        if spec.max_tokens is not None:
            check_length(f"sparse encoder {spec.model}", spec.max_tokens, config.to_dict() if config else {})
            self._model.max_seq_length = spec.max_tokens
        # for some models the library's embedding dimension is that of a layer below the vocabulary
        self.dim = int(self._tensors(self._model.encode_query, ["dimensions"])[0].shape[-1])
        self.commit = commit_of(config) or spec.revision or ""
        settings = [self._model.max_seq_length, getattr(self._model, "prompts", None)]
        self.revision = with_settings(self.commit or files_hash(Path(spec.model)), settings)

    def encode_queries(self, texts: Sequence[str]) -> list[SparseVector]:
        return self._encode(self._model.encode_query, texts)

    def encode_passages(self, texts: Sequence[str]) -> list[SparseVector]:
        return self._encode(self._model.encode_document, texts)

    def _encode(self, encode: Any, texts: Sequence[str]) -> list[SparseVector]:
        if not texts:
            return []
        out = []
        for tensor in self._tensors(encode, texts):
            vector = tensor.coalesce()
            terms, weights = vector.indices()[0].numpy(), vector.values().float().numpy()
            held = weights != 0
            out.append(SparseVector(terms[held].astype(np.int32), weights[held].astype(np.float32)))
        return out

    def _tensors(self, encode: Any, texts: Sequence[str]) -> list[Any]:
        found: list[Any] = encode(
            list(texts),
            batch_size=self._batch_size,
            show_progress_bar=False,
            convert_to_tensor=False,
            convert_to_sparse_tensor=True,
            save_to_cpu=True,
        )
        return found


def sparse_query_vectors(encoder: SparseEncoder, texts: Sequence[str]) -> list[SparseVector]:
    """Encode queries, each distinct text once; recent ones are remembered within the process."""
    return remembered(encoder, texts, lambda new: checked_sparse(encoder, encoder.encode_queries(new), len(new)))


def checked_sparse(encoder: SparseEncoder, vectors: Sequence[SparseVector], count: int) -> Sequence[SparseVector]:
    """Return the vectors; raise CorpusError for a wrong number, terms outside the vocabulary or infinite weights."""
    if len(vectors) != count:
        raise CorpusError(
            f"sparse encoder {encoder.name} returned {len(vectors)} vectors for {count} texts",
            "return one vector per text",
        )
    for number, (terms, weights) in enumerate(vectors):
        if len(terms) and not (terms.min() >= 0 and terms.max() < encoder.dim and np.isfinite(weights).all()):
            raise CorpusError(
                f"sparse encoder {encoder.name} returned a vector with a term outside its {encoder.dim} "
                f"or a weight that is not finite (text {number} of the batch)",
                "return terms below dim and finite weights",
            )
    return vectors
