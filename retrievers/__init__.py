"""Corpora, chunking, embedders, indexes and search; nothing of the evaluation harness.

Names are loaded on first use, so that importing the package stays light.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mrag_eval.retrievers._bge_m3 import load_bge_m3
    from mrag_eval.retrievers._cross_encoder import load_cross_encoder
    from mrag_eval.retrievers.build import build_index
    from mrag_eval.retrievers.cached import cached_index
    from mrag_eval.retrievers.chunking import ChunkConfig, chunk_documents
    from mrag_eval.retrievers.corpus import Document, read_corpus, read_folder, read_hub, read_jsonl, read_parquet
    from mrag_eval.retrievers.editions import Edition
    from mrag_eval.retrievers.embedders import Embedder, embedder_as_named, load_embedder
    from mrag_eval.retrievers.fusion import (
        equal_quotas,
        merge_by_quota,
        merge_by_rank_share,
        merge_by_score,
        merge_by_zscore,
        reciprocal_rank_fusion,
        share_quotas,
    )
    from mrag_eval.retrievers.index import Index
    from mrag_eval.retrievers.joining import join_indexes
    from mrag_eval.retrievers.kilt import kilt_edition, read_kilt
    from mrag_eval.retrievers.load import check_embedder, index_info, load_index, verify_index
    from mrag_eval.retrievers.merging import add_documents, merge_indexes
    from mrag_eval.retrievers.milvus import MilvusIndex, MilvusPlace, milvus_info, open_milvus, verify_milvus
    from mrag_eval.retrievers.milvus_load import load_into_milvus
    from mrag_eval.retrievers.rerank import Reranker
    from mrag_eval.retrievers.searchable import Searchable
    from mrag_eval.retrievers.sparse_encoders import SparseEncoder, load_sparse_encoder
    from mrag_eval.retrievers.wikipedia import wikipedia_edition

_HOMES = {
    "ChunkConfig": "chunking",
    "Document": "corpus",
    "Edition": "editions",
    "Embedder": "embedders",
    "Index": "index",
    "MilvusIndex": "milvus",
    "MilvusPlace": "milvus",
    "Reranker": "rerank",
    "Searchable": "searchable",
    "SparseEncoder": "sparse_encoders",
    "add_documents": "merging",
    "build_index": "build",
    "cached_index": "cached",
    "check_embedder": "load",
    "chunk_documents": "chunking",
    "embedder_as_named": "embedders",
    "equal_quotas": "fusion",
    "index_info": "load",
    "join_indexes": "joining",
    "kilt_edition": "kilt",
    "load_bge_m3": "_bge_m3",
    "load_cross_encoder": "_cross_encoder",
    "load_embedder": "embedders",
    "load_index": "load",
    "load_into_milvus": "milvus_load",
    "load_sparse_encoder": "sparse_encoders",
    "merge_by_quota": "fusion",
    "merge_by_rank_share": "fusion",
    "merge_by_score": "fusion",
    "merge_by_zscore": "fusion",
    "merge_indexes": "merging",
    "milvus_info": "milvus",
    "open_milvus": "milvus",
    "read_corpus": "corpus",
    "read_folder": "corpus",
    "read_hub": "corpus",
    "read_jsonl": "corpus",
    "read_kilt": "kilt",
    "read_parquet": "corpus",
    "reciprocal_rank_fusion": "fusion",
    "share_quotas": "fusion",
    "verify_index": "load",
    "verify_milvus": "milvus",
    "wikipedia_edition": "wikipedia",
}

__all__ = [
    "ChunkConfig",
    "Document",
    "Edition",
    "Embedder",
    "Index",
    "MilvusIndex",
    "MilvusPlace",
    "Reranker",
    "Searchable",
    "SparseEncoder",
    "add_documents",
    "build_index",
    "cached_index",
    "check_embedder",
    "chunk_documents",
    "embedder_as_named",
    "equal_quotas",
    "index_info",
    "join_indexes",
    "kilt_edition",
    "load_bge_m3",
    "load_cross_encoder",
    "load_embedder",
    "load_index",
    "load_into_milvus",
    "load_sparse_encoder",
    "merge_by_quota",
    "merge_by_rank_share",
    "merge_by_score",
    "merge_by_zscore",
    "merge_indexes",
    "milvus_info",
    "open_milvus",
    "read_corpus",
    "read_folder",
    "read_hub",
    "read_jsonl",
    "read_kilt",
    "read_parquet",
    "reciprocal_rank_fusion",
    "share_quotas",
    "verify_index",
    "verify_milvus",
    "wikipedia_edition",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
