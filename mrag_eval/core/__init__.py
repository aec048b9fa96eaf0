"""Records, languages, errors and files that every room shares."""

from mrag_eval.core._devices import DEVICES, known_device, loading_device, placed
from mrag_eval.core._disk import mapped_array, room_on_disk, save_array, save_faiss
from mrag_eval.core._errors import (
    ConfigError,
    CorpusError,
    DataError,
    MetricError,
    MissingExtraError,
    MragError,
    did_you_mean,
    missing_extra,
    naming,
    one_of,
    suggesting,
)
from mrag_eval.core._event_loop import run_in_thread, run_on_loop
from mrag_eval.core._files import replaced, write_whole
from mrag_eval.core._http import Endpoint, Response, Transport, bearer
from mrag_eval.core._http_faults import HttpFault
from mrag_eval.core._json_records import OPTIONAL, check_version, from_json, optional_beside, to_json, with_version
from mrag_eval.core._judgements import VOTED, Judgement, Vote
from mrag_eval.core._labels import Labels, LabelSource, labelled_name
from mrag_eval.core._languages import (
    CORAL_POOL,
    NO_SPACES,
    RESOURCE_GROUPS,
    base_language,
    is_language,
    language_name,
    language_scripts,
    language_tier,
    matching_languages,
    normalize_language,
    same_language,
    suggestion,
)
from mrag_eval.core._locking import build_lock
from mrag_eval.core._numbers import decimal, interval_text, p_text, points, score_text
from mrag_eval.core._passages import KEPT_LANGS, GivenPassage, Hit, Passage, RagDoc, titled
from mrag_eval.core._paths import cache_dir, tasks_folder, visible_to_harness
from mrag_eval.core._rankings import (
    Kept,
    Ranked,
    Reranking,
    Retrieved,
    Searched,
    document_of,
    is_relevant,
    ranking_dict,
)
from mrag_eval.core._redaction import install_redaction, redact
from mrag_eval.core._scored import RowScores, Scored, Value
from mrag_eval.core._sheets import SheetRow, read_sheet, write_sheet
from mrag_eval.core._store import Store, close_stores, content_key, shared_store
from mrag_eval.core._table_text import columns, pipe_table
from mrag_eval.core._tokens import estimated_tokens
from mrag_eval.core._traces import CRITERIA, AgentUsage, CriticScores, Trace, TracedHit, TracedQuestion, TracedRound

__all__ = [
    "CORAL_POOL",
    "CRITERIA",
    "DEVICES",
    "KEPT_LANGS",
    "NO_SPACES",
    "OPTIONAL",
    "RESOURCE_GROUPS",
    "VOTED",
    "AgentUsage",
    "ConfigError",
    "CorpusError",
    "CriticScores",
    "DataError",
    "Endpoint",
    "GivenPassage",
    "Hit",
    "HttpFault",
    "Judgement",
    "Kept",
    "LabelSource",
    "Labels",
    "MetricError",
    "MissingExtraError",
    "MragError",
    "Passage",
    "RagDoc",
    "Ranked",
    "Reranking",
    "Response",
    "Retrieved",
    "RowScores",
    "Scored",
    "Searched",
    "SheetRow",
    "Store",
    "Trace",
    "TracedHit",
    "TracedQuestion",
    "TracedRound",
    "Transport",
    "Value",
    "Vote",
    "base_language",
    "bearer",
    "build_lock",
    "cache_dir",
    "check_version",
    "close_stores",
    "columns",
    "content_key",
    "decimal",
    "did_you_mean",
    "document_of",
    "estimated_tokens",
    "from_json",
    "install_redaction",
    "interval_text",
    "is_language",
    "is_relevant",
    "known_device",
    "labelled_name",
    "language_name",
    "language_scripts",
    "language_tier",
    "loading_device",
    "mapped_array",
    "matching_languages",
    "missing_extra",
    "naming",
    "normalize_language",
    "one_of",
    "optional_beside",
    "p_text",
    "pipe_table",
    "placed",
    "points",
    "ranking_dict",
    "read_sheet",
    "redact",
    "replaced",
    "room_on_disk",
    "run_in_thread",
    "run_on_loop",
    "same_language",
    "save_array",
    "save_faiss",
    "score_text",
    "shared_store",
    "suggesting",
    "suggestion",
    "tasks_folder",
    "titled",
    "to_json",
    "visible_to_harness",
    "with_version",
    "write_sheet",
    "write_whole",
]
