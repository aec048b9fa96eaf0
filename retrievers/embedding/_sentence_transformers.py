"""Embedders from sentence-transformers models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mrag_eval.platform import ConfigError, loading_device, missing_extra, placed
from mrag_eval.retrievers.embedding._embedder_spec import EmbedderSpec
from mrag_eval.retrievers.embedding._feeding import Feeding, feeding
from mrag_eval.retrievers.embedding._loading import (
    check_length,
    check_modules,
    commit_of,
    files_hash,
    loading,
    offline,
    with_settings,
)


class SentenceTransformersEmbedder:
    """Embedder from the hub or a folder, with the prompts, adapters, pooling and normalisation of its family.

    The spec's settings come first, then the recipe's, then the model's own configuration (:mod:`._feeding`).
    ``revision`` is the commit (or, for a folder, a hash of its files) with a hash of these settings.
    """

    def __init__(self, spec: EmbedderSpec, device: str = "cpu") -> None:
        try:
            from sentence_transformers import SentenceTransformer
        except ImportError:
            raise missing_extra("hf", "sentence-transformers") from None
        self.name = spec.name
        self._batch_size = spec.batch_size
        options: dict[str, Any] = {
            "device": loading_device(device),
            "revision": spec.revision,
            "truncate_dim": spec.dimensions,
        }
        with loading(f"embedder {spec.model}"):
            self._model: Any = SentenceTransformer(
                spec.model, trust_remote_code=spec.trust_remote_code, local_files_only=offline(), **options
            )
        check_modules(self._model, f"embedder {spec.model}", spec.revision)
        placed(self._model, device, f"embedder {spec.model}")
        fed = feeding(spec, getattr(self._model, "prompts", None) or {}, _similarity(self._model))
        self._tasks = _tasks(self._model, fed, spec.name)
        self.query_prefix, self.passage_prefix, self.normalize = fed.query_prefix, fed.passage_prefix, fed.normalize
        config = getattr(getattr(self._model[0], "auto_model", None), "config", None)
        if spec.max_tokens is not None:
            check_length(f"embedder {spec.model}", spec.max_tokens, config.to_dict() if config else {})
            self._model.max_seq_length = spec.max_tokens
        self.pooling = _set_pooling(self._model, fed.pooling)
        self.commit = commit_of(config) or spec.revision or ""
        settings = [self.query_prefix, self.passage_prefix, self.pooling, self.normalize]
        settings += [self._model.max_seq_length, spec.dimensions, *fed.identity()]
        self.revision = with_settings(self.commit or files_hash(Path(spec.model)), settings)
        own = getattr(self._model, "get_embedding_dimension", None) or self._model.get_sentence_embedding_dimension
        self.dim = int(spec.dimensions or own())

    def embed_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return self._embed(texts, self.query_prefix, self._tasks[0])

    def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return self._embed(texts, self.passage_prefix, self._tasks[1])

    def _embed(self, texts: Sequence[str], prefix: str, task: Mapping[str, str]) -> NDArray[np.float32]:
        if not texts:
            return np.empty((0, self.dim), dtype=np.float32)
        vectors = self._model.encode(
            list(texts),
            # an empty prompt also disables the model's own default prompt
            prompt=prefix,
            batch_size=self._batch_size,
            normalize_embeddings=self.normalize,
            show_progress_bar=False,
            convert_to_numpy=True,
            **task,
        )
        return np.asarray(vectors, dtype=np.float32)


def _similarity(model: Any) -> str | None:
    """Return the similarity that a model's configuration or its last layer names, None if there is none."""
    if any(type(module).__name__ == "Normalize" for module in model):
        return "cosine"
    # the property would answer cosine for every model that names none
    named = getattr(model, "_similarity_fn_name", None)
    return None if named is None else str(getattr(named, "value", named))


def _tasks(model: Any, fed: Feeding, name: str) -> tuple[dict[str, str], dict[str, str]]:
    """Return the arguments that choose the adapter for queries and for passages.

    Raises ConfigError if the model, as it was loaded, does not take the argument; the library would ignore it.
    """
    chosen = tuple({} if task is None else {"task": task} for task in (fed.query_task, fed.passage_task))
    if any(chosen) and "task" not in _arguments(model):
        raise ConfigError(
            f"embedder {name}: the model has adapters for queries and passages, and was loaded without them",
            "add trust_remote_code: true if you trust the code of its repository",
        )
    return chosen  # type: ignore[return-value]


def _arguments(model: Any) -> set[str]:
    """Return the arguments that the layers of a model take besides texts."""
    asked = getattr(model, "get_model_kwargs", None)  # the library has it since release 5
    if asked is not None:
        return set(asked())
    return {name for names in (getattr(model, "module_kwargs", None) or {}).values() for name in names}


def _set_pooling(model: Any, wanted: str | None) -> str:
    """Set the pooling mode of the model, if ``wanted``, and return the mode in use."""
    for position, module in enumerate(model):
        if type(module).__name__ != "Pooling":
            continue
        current = getattr(module, "pooling_mode", None) or module.get_pooling_mode_str()
        if wanted is None or current == wanted:
            return str(current)
        size = getattr(module, "embedding_dimension", None) or module.word_embedding_dimension
        model[position] = type(module)(size, pooling_mode=wanted)
        return wanted
    return "own"
