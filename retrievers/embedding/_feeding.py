"""How an embedder is fed: the user's settings, then the recipe of its family, then the model's own configuration."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass

from mrag_eval.platform import ConfigError
from mrag_eval.retrievers.embedding._embedder_spec import EmbedderSpec
from mrag_eval.retrievers.recipes._recipe import Recipe, recipe_of

# Below the harness's logger, so that its command shows our lines as it shows its own.
log = logging.getLogger(f"lm_eval.{__name__}")

# Names that publishers give the prompts of queries and of passages, in the order of preference.
_QUERY_NAMES = ("query", "retrieval.query", "search_query", "s2p_query", "web_search_query", "検索クエリ")
_PASSAGE_NAMES = ("passage", "document", "retrieval.passage", "search_document", "検索文書")


@dataclass(frozen=True)
class Feeding:
    """Texts put before queries and passages, their values of ``task``, the pooling and the length of vectors.

    ``pooling`` None keeps the model's own.
    """

    query_prefix: str
    passage_prefix: str
    query_task: str | None
    passage_task: str | None
    pooling: str | None
    normalize: bool

    def identity(self) -> list[str]:
        """Return the tasks, if there are any: they joined the hash of settings later than the others."""
        return [task for task in (self.query_task, self.passage_task) if task is not None]


def feeding(spec: EmbedderSpec, prompts: Mapping[str, str], similarity: str | None) -> Feeding:
    """Return how the embedder of a specification is fed.

    Args:
        spec: the user's settings.
        prompts: the prompts in the model's own configuration, by name.
        similarity: the similarity in that configuration, None if it names none.

    Logs one line if the model has prompts that are not used, or if nothing says whether its vectors have unit length.
    Raises ConfigError for an instruction that the family does not take.
    """
    recipe = recipe_of("embedders", spec.recipe_name)
    if spec.instruction is not None and (recipe is None or not recipe.instructable):
        family = "its family is not known" if recipe is None else f"models of the family {recipe.family} take none"
        raise ConfigError(
            f"embedder {spec.name}: 'instruction' is not used, {family}",
            "write all that precedes a query into query_prefix",
        )
    own = {name: text for name, text in prompts.items() if text}
    queries = recipe.query_prefix(spec.instruction) if recipe else _named(own, _QUERY_NAMES)
    passages = recipe.passage if recipe else _named(own, _PASSAGE_NAMES)
    query_prefix = queries if spec.query_prefix is None else spec.query_prefix
    passage_prefix = passages if spec.passage_prefix is None else spec.passage_prefix
    _warn_of_prompts(spec, recipe, own, {query_prefix, passage_prefix})
    tasks = recipe.tasks if recipe and recipe.tasks else (None, None)
    return Feeding(
        query_prefix,
        passage_prefix,
        spec.query_task or tasks[0],
        spec.passage_task or tasks[1],
        spec.pooling or (recipe.pooling if recipe else None),
        _normalize(spec, recipe, similarity),
    )


def _named(own: Mapping[str, str], names: tuple[str, ...]) -> str:
    return next((own[name] for name in names if name in own), "")


def _warn_of_prompts(spec: EmbedderSpec, recipe: Recipe | None, own: Mapping[str, str], used: set[str]) -> None:
    """Log the prompts for retrieval in a model's configuration if none of them is used as it is."""
    if spec.query_prefix is not None or spec.passage_prefix is not None or spec.instruction is not None:
        return
    known = {*_QUERY_NAMES, *_PASSAGE_NAMES, *(recipe.prompt_names if recipe else ())}
    if recipe is not None:
        unused = {name: text for name, text in own.items() if name in known and text not in used}
        reason = f"the recipe of the family {recipe.family} is used instead"
    else:
        unused = {} if own.keys() & known else dict(own)
        reason = "none of these names is known to be for queries or passages"
    if unused:
        log.warning(
            "embedder %s: its configuration has prompts that are not used (%s); %s: set query_prefix and "
            "passage_prefix to choose",
            spec.name, ", ".join(f"{name}: {text!r}" for name, text in sorted(unused.items())[:4]), reason,
        )  # fmt: skip


def _normalize(spec: EmbedderSpec, recipe: Recipe | None, similarity: str | None) -> bool:
    if spec.normalize is not None:
        return spec.normalize
    if recipe is not None:
        return recipe.similarity == "cosine"
    if similarity is None:
        log.warning(
            "embedder %s: neither a known family nor its configuration says whether vectors are compared by cosine; "
            "they are left as they are: set normalize",
            spec.name,
        )
    return similarity == "cosine"
