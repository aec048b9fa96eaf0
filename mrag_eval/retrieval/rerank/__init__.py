"""The second stage: rerankers and their order of the hits."""

from typing import TYPE_CHECKING

from mrag_eval.platform import lazy_door

if TYPE_CHECKING:
    from mrag_eval.retrieval.rerank._rerank import open_reranker, rerank
else:
    __getattr__, __dir__ = lazy_door(__name__)

__all__ = ["open_reranker", "rerank"]
