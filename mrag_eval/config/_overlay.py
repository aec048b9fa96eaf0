"""Blocks of settings laid over a task's: key by key, but for the block of a model that names another one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from mrag_eval.config._modes import mode_named
from mrag_eval.config._rerank import DEFAULT_RERANKERS
from mrag_eval.config._translator import DEFAULT_TRANSLATORS
from mrag_eval.config._validation import deep_merge


class _Models(NamedTuple):
    """How the block of a model names it.

    Attributes:
        tag: the key of its kind.
        unsaid: the kind that needs no name.
        weights: kinds whose weights are loaded here, with the model that needs no name; their settings are the model's.
    """

    tag: str
    unsaid: str | None
    weights: Mapping[str, str]


_BLOCKS = {
    "rerank": _Models("kind", "cross-encoder", DEFAULT_RERANKERS),
    "translator": _Models("backend", None, DEFAULT_TRANSLATORS),
}


def overlaid(*blocks: Mapping[str, Any]) -> dict[str, Any]:
    """Merge blocks as :func:`deep_merge` does, the task's first.

    A ``rerank`` or ``translator`` block replaces the one below it if it names another kind, or other weights: a length
    or a revision belongs to the model that it was set for. A ``retrieval`` block whose mode leaves it to a system
    replaces the task's.
    """
    return deep_merge(*blocks, kept=_kept)


def _kept(key: str, below: Mapping[str, Any], above: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what stays of the block ``below``."""
    known = _BLOCKS.get(key)
    if known is None:
        return {} if key == "retrieval" and mode_named(above.get("mode")).asks_system else below
    kind = below.get(known.tag) or known.unsaid
    if above.get(known.tag, kind) != kind:
        return {}
    unsaid = known.weights.get(str(kind))
    model = below.get("model") or unsaid
    return below if unsaid is None or above.get("model", model) == model else {known.tag: kind}
