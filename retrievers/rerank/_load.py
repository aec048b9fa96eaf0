"""Local rerankers by name: one with the recipe of its family, or a plain cross-encoder."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from mrag_eval.platform import ConfigError
from mrag_eval.retrievers.recipes._recipe import recipe_of
from mrag_eval.retrievers.rerank._cross_encoder import CrossEncoderReranker
from mrag_eval.retrievers.rerank._lists import ListReranker
from mrag_eval.retrievers.rerank._prompted import PromptedReranker
from mrag_eval.retrievers.rerank._rerank import Reranker


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
