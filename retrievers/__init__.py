"""Corpora, chunking, embedders, indexes, search and rerankers, without the harness."""

from typing import TYPE_CHECKING

from mrag_eval.platform import lazy_door

if TYPE_CHECKING:
    from mrag_eval.retrievers.build._adding import add_documents
    from mrag_eval.retrievers.build._build import build_index
    from mrag_eval.retrievers.build._cached import cached_index
    from mrag_eval.retrievers.build._centering import center_index
    from mrag_eval.retrievers.build._merging import join_indexes, merge_indexes
    from mrag_eval.retrievers.build._progress import log
    from mrag_eval.retrievers.build._replacing import check_replaceable, discard, finish_removal, recover
    from mrag_eval.retrievers.build._settings import BuildSettings, RayEngine
    from mrag_eval.retrievers.chunking._chunking import ChunkConfig, chunk_documents
    from mrag_eval.retrievers.chunking._token_counters import named_token_counter
    from mrag_eval.retrievers.corpora._corpus import Document, read_corpus, squad_paragraphs
    from mrag_eval.retrievers.corpora._editions import Edition
    from mrag_eval.retrievers.corpora._kilt import kilt_edition, read_kilt
    from mrag_eval.retrievers.corpora._selecting import choose
    from mrag_eval.retrievers.corpora._starters import VERSION as STARTER_VERSION
    from mrag_eval.retrievers.corpora._starters import Starter, starters
    from mrag_eval.retrievers.corpora._wikipedia import EDITION_CODES, NoDumpError, page_document_id, wikipedia_edition
    from mrag_eval.retrievers.embedding._allowed import allowed_spec
    from mrag_eval.retrievers.embedding._api_embeddings import FailedBatch
    from mrag_eval.retrievers.embedding._embedder_spec import parse_spec
    from mrag_eval.retrievers.embedding._embedders import (
        Embedder,
        batch_size_for,
        embedder_as_named,
        load_embedder,
        vectors_arriving,
    )
    from mrag_eval.retrievers.embedding._loading import check_length, commit_of, loading, offline, with_weights
    from mrag_eval.retrievers.embedding._loading import transformers as transformers_library
    from mrag_eval.retrievers.embedding._sparse_encoders import SparseEncoder, load_sparse_encoder
    from mrag_eval.retrievers.imports._import import import_vectors
    from mrag_eval.retrievers.imports._query_vectors import AskedQuery, QueryVectors
    from mrag_eval.retrievers.index._fusion import (
        equal_quotas,
        merge_by_quota,
        merge_by_rank_share,
        merge_by_score,
        merge_by_turns,
        merge_by_zscore,
        query_turn,
        reciprocal_rank_fusion,
        share_quotas,
    )
    from mrag_eval.retrievers.index._hashing import ContentHash
    from mrag_eval.retrievers.index._index import Index
    from mrag_eval.retrievers.index._lengths import median_lengths
    from mrag_eval.retrievers.index._load import check_embedder, index_info, load_index, verify_index
    from mrag_eval.retrievers.index._means import LanguageMeans
    from mrag_eval.retrievers.milvus._milvus import MilvusIndex, MilvusPlace, milvus_info, open_milvus, verify_milvus
    from mrag_eval.retrievers.milvus._milvus_load import load_into_milvus
    from mrag_eval.retrievers.rerank._bge_m3 import load_bge_m3
    from mrag_eval.retrievers.rerank._load import load_cross_encoder
    from mrag_eval.retrievers.rerank._rerank import Reranker, Scores, checked_scores
    from mrag_eval.retrievers.shards._manifest import ImportRecord, Manifest, SelectionRecord
else:
    __getattr__, __dir__ = lazy_door(__name__)
