"""The vectors of questions that a block names, in place of the index's embedder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mrag_eval.config import Retrieval
from mrag_eval.platform import ConfigError
from mrag_eval.retrieval._plan import RowPlan

if TYPE_CHECKING:
    from mrag_eval.retrievers import Index, QueryVectors


def vectors_identity(retrieval: Retrieval) -> dict[str, Any]:
    """Return what decides the vectors of the questions, for results and cache keys; empty if they are computed."""
    return {} if retrieval.query_vectors is None else {"query_vectors": _named(retrieval).identity()}


def given_vectors(index: Index, plans: Sequence[RowPlan], retrieval: Retrieval) -> NDArray[np.float32]:
    """Return the vectors of the plans' questions, aligned with them.

    Raises DataError for a row without one, ConfigError for an index without vectors.
    """
    from mrag_eval.retrievers import AskedQuery

    record = index.manifest.embedder
    if record is None or index.kind == "sparse":
        raise ConfigError(
            f"retrieval.query_vectors: index {index.path} is of kind '{index.kind}', it has no vectors",
            "leave query_vectors out, or name a dense index",
        )
    return _named(retrieval).of([AskedQuery(plan.row, plan.row_lang, plan.text) for plan in plans], record.dim)


def _named(retrieval: Retrieval) -> QueryVectors:
    from mrag_eval.retrievers import QueryVectors

    block = retrieval.query_vectors
    assert block is not None
    columns = block.model_dump(exclude={"source"}, exclude_none=True)
    return QueryVectors(block.source, tuple(sorted(columns.items())))
