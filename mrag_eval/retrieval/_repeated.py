"""What a task's rows were shown, found again from the benchmark alone: no index is searched and no model is asked."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from mrag_eval.config import PUBLISHED, Agent, Retrieval
from mrag_eval.core import Passage, Retrieved
from mrag_eval.datasets import Benchmark
from mrag_eval.platform import MragError
from mrag_eval.retrieval._corpora import milvus_place, open_index
from mrag_eval.retrieval._pipeline import as_shown, translates_given
from mrag_eval.retrieval._plan import Selection
from mrag_eval.retrieval.sources import Relevant, source_for


@dataclass(frozen=True)
class Repeated:
    """The rows of a task, and their passages where these can be found again.

    Attributes:
        selection: the rows that the mode serves, and those that it skips.
        found: what each row is shown, by id; None if that needs an index or a model.
        passages: passages by id that the rows may be shown; None if they are not at hand.
        relevant: those that answer the rows' questions, of the benchmark's own; None otherwise.
    """

    selection: Selection
    found: Mapping[str, Retrieved] | None = None
    passages: Mapping[str, Passage] | None = field(default=None, repr=False)
    relevant: Relevant | None = field(default=None, repr=False)


def repeated(benchmark: Benchmark, retrieval: Retrieval, agent: Agent) -> Repeated:
    """Return the rows of a task under these blocks.

    Raises MragError for a file or a list that the block names and that is not on this machine.
    """
    source = source_for(retrieval, benchmark, agent)
    selection = source.select(benchmark.docs)
    docs = selection.docs
    by_model = retrieval.translates or translates_given(docs)
    found = None
    if source.repeatable(docs) and not by_model:
        shown = as_shown(source.retrieve(docs), docs, retrieval, None, source)
        found = {doc.id: row for doc, row in zip(docs, shown, strict=True)}
    own = benchmark.corpus if retrieval.corpus == "benchmark" else None
    if own is None:
        return Repeated(selection, found)
    return Repeated(selection, found, {passage.id: passage for passage in own}, Relevant.among(own, docs))


def indexed_passages(retrieval: Retrieval, content_hash: str, ids: Collection[str]) -> Mapping[str, Passage] | None:
    """Return those of the passages that an index on this machine holds, by id; None without one of this content."""
    if not content_hash or retrieval.corpus in ("benchmark", PUBLISHED):
        return None
    try:
        if milvus_place(retrieval) is not None:
            return None
        index = open_index(retrieval)
        if index.manifest.content_hash != content_hash:
            return None
        found = index.passages_named(ids)
    except MragError:
        return None
    return {passage.id: passage for passages in found.values() for passage in passages}
