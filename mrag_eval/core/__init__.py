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
from mrag_eval.core._files import replaced, write_whole
from mrag_eval.core._judgements import Judgement, Vote
from mrag_eval.core._labels import Labels, LabelSource, labelled_name
from mrag_eval.core._languages import (
    CORAL_POOL,
    LANGUAGES,
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
)
from mrag_eval.core._locking import build_lock
from mrag_eval.core._passages import KEPT_LANGS, GivenPassage, Hit, Passage, RagDoc, titled
from mrag_eval.core._paths import cache_dir
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
from mrag_eval.core._scored import RowScores, Scored, Value
from mrag_eval.core._sheets import SheetRow, read_sheet, write_sheet
from mrag_eval.core._store import Store, content_key
from mrag_eval.core._tokens import estimated_tokens

__all__ = [
    "CORAL_POOL",
    "DEVICES",
    "KEPT_LANGS",
    "LANGUAGES",
    "NO_SPACES",
    "RESOURCE_GROUPS",
    "ConfigError",
    "CorpusError",
    "DataError",
    "GivenPassage",
    "Hit",
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
    "Retrieved",
    "RowScores",
    "Scored",
    "Searched",
    "SheetRow",
    "Store",
    "Value",
    "Vote",
    "base_language",
    "build_lock",
    "cache_dir",
    "content_key",
    "did_you_mean",
    "document_of",
    "estimated_tokens",
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
    "placed",
    "ranking_dict",
    "read_sheet",
    "replaced",
    "room_on_disk",
    "same_language",
    "save_array",
    "save_faiss",
    "suggesting",
    "titled",
    "write_sheet",
    "write_whole",
]
