"""Local rerankers by name: one with the recipe of its family, or a plain cross-encoder."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from mrag_eval.platform import ConfigError, placed
from mrag_eval.retrievers.embedding._loading import (
    commit_of,
    folder_identity,
    offline,
    transformers,
    with_settings,
    with_weights,
)
from mrag_eval.retrievers.recipes._recipe import recipe_of
from mrag_eval.retrievers.rerank._cross_encoder import CrossEncoderReranker
from mrag_eval.retrievers.rerank._prompted import PromptedReranker
from mrag_eval.retrievers.rerank._rerank import Reranker, Scores


@lru_cache(maxsize=2)
def load_cross_encoder(
    model: str,
    *,
    instruction: str | None = None,
    revision: str | None = None,
    max_length: int = 512,
    batch_size: int = 32,
    device: str = "cpu",
    trust_remote_code: bool = False,
) -> Reranker:
    """Load a reranker that reads query and passage together, once per process.

    ``instruction`` takes the place of the one in the recipe of the model's family. Raises
    ConfigError if the family takes none, and as the rerankers do.
    """
    recipe = recipe_of("rerankers", model)
    if instruction is not None and (recipe is None or not recipe.instructable):
        raise ConfigError(f"reranker {model} takes no instruction", "leave 'instruction' out")
    settings: dict[str, Any] = {
        "revision": revision,
        "max_length": max_length,
        "device": device,
        "trust_remote_code": trust_remote_code,
    }
    if recipe is not None and recipe.lists:
        return ListReranker(model, **settings)
    if recipe is not None:
        return PromptedReranker(model, recipe, instruction=instruction, batch_size=batch_size, **settings)
    return CrossEncoderReranker(model, batch_size=batch_size, **settings)


class ListReranker:
    """Reranker whose model has a method ``rerank(query, documents)``; a score depends on the other passages.

    Passages are given in the order of the search. ``max_length`` bounds each passage, if the method takes
    ``max_doc_length``. ``revision`` is the commit (or, for a folder, a hash of its files) with a hash of the settings.

    Raises ConfigError for a model that cannot be loaded or has no such method.
    """

    reads_lists = True

    def __init__(
        self,
        model: str,
        *,
        revision: str | None = None,
        max_length: int = 512,
        device: str = "cpu",
        trust_remote_code: bool = False,
    ) -> None:
        library = transformers()
        if not trust_remote_code:
            raise ConfigError(
                f"reranker {model} runs only with the code of its repository",
                "if you trust that code: rerank: {model: " + model + ", trust_remote_code: true}",
            )
        options: dict[str, Any] = {"revision": revision, "local_files_only": offline(), "trust_remote_code": True}
        self._model: Any = with_weights(library.AutoModel, model, f"reranker {model}", **options)
        if not callable(getattr(self._model, "rerank", None)):
            raise ConfigError(
                f"reranker {model} has no method 'rerank'", "name a model such as jinaai/jina-reranker-v3"
            )
        placed(self._model, device, f"reranker {model}")
        self.name = model
        limited = "max_doc_length" in inspect.signature(self._model.rerank).parameters
        self._limit = {"max_doc_length": max_length} if limited else {}
        identity = commit_of(self._model.config) or revision or folder_identity(Path(model))
        self.revision = with_settings(identity, ["lists", self._limit])

    def scores(self, queries: Sequence[str], passages: Sequence[Sequence[str]]) -> list[Scores]:
        out = []
        for query, texts in zip(queries, passages, strict=True):
            row = np.full(len(texts), np.nan)
            for found in self._model.rerank(query, list(texts), **self._limit) if texts else ():
                row[int(found["index"])] = float(found["relevance_score"])
            out.append(row)
        return out
