"""The choice of a task's source, made once."""

from __future__ import annotations

from importlib import import_module

from mrag_eval.config import PUBLISHED, Agent, Retrieval
from mrag_eval.datasets import Benchmark
from mrag_eval.retrieval.sources._source import Setup, Source


def source_for(
    retrieval: Retrieval, benchmark: Benchmark, agent: Agent | None = None, *, use_cache: bool = True
) -> Source:
    """Return the source of a block's passages.

    The mode names its module (:attr:`mrag_eval.config.Mode.source`). If the mode searches, lists that were made
    beforehand may take the place of the search: those published with the benchmark, or the run of another system. So
    may a retriever of the user's.
    """
    name = retrieval.preset.source
    if retrieval.searches and retrieval.corpus == PUBLISHED:
        name = "published"
    elif retrieval.searches and retrieval.kind == "precomputed":
        name = "ctxs_run" if retrieval.run_holds_texts else "trec_run"
    elif retrieval.searches and retrieval.kind == "own":
        name = "own"
    module = import_module(f"mrag_eval.retrieval.sources._{name}")
    source: Source = module.open_source(Setup(retrieval, benchmark, agent or Agent(), use_cache))
    return source
