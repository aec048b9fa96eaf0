"""Settings that users write, validated."""

from mrag_eval.config._agent import EVALUATED, TOP_SCORE, Agent
from mrag_eval.config._block import AbsolutePath, Block, Languages, Names
from mrag_eval.config._file import config_path, load_config
from mrag_eval.config._includes import BLOCKS
from mrag_eval.config._judge import CorrectLanguage, Judge
from mrag_eval.config._measurement import (
    ALL_BUT_THE_MODEL,
    DECIDING,
    EVERYTHING,
    HARMLESS,
    ROLES,
    UNKNOWN,
    Differs,
    Measurement,
    Role,
    differences,
    harmless,
    is_named,
    names_in,
    portable,
    setting_of,
    shown,
)
from mrag_eval.config._measures import (
    CORRECT,
    HOLDS_ANSWER,
    JUDGED,
    RANKING_MEASURE,
    RERANKED,
    SHOWN,
    SUFFICIENCY,
    TRANSLATED,
    VERDICTS,
    check_metrics,
    ranking_measures,
    relevance_measures,
    rerank_measures,
    unmeasured,
)
from mrag_eval.config._milvus import MilvusCorpus
from mrag_eval.config._model import Generation, ModelBudget, ModelSpec, Price, secret_in
from mrag_eval.config._modes import MODES, Mode, Shown, mode_named, passages_shown, upper_bound
from mrag_eval.config._overlay import overlaid
from mrag_eval.config._overrides import TaskNames, names_of
from mrag_eval.config._prompt import Prompt
from mrag_eval.config._provenance import package_versions, provenance
from mrag_eval.config._rerank import ApiRerank, ListwiseRerank, Rerank, reranker_name
from mrag_eval.config._retrieval import PUBLISHED, QUOTAS, Given, Retrieval
from mrag_eval.config._task import TaskBlocks, split_config
from mrag_eval.config._task_yaml import read_task_yaml
from mrag_eval.config._translator import DEFAULT_NLLB, LmSpec, NllbSpec, TableSpec, TranslatorSpec
from mrag_eval.config._validation import check_keys, deep_merge, dotted, read_yaml, undotted, validated

__all__ = [
    "ALL_BUT_THE_MODEL",
    "BLOCKS",
    "CORRECT",
    "DECIDING",
    "DEFAULT_NLLB",
    "EVALUATED",
    "EVERYTHING",
    "HARMLESS",
    "HOLDS_ANSWER",
    "JUDGED",
    "MODES",
    "PUBLISHED",
    "QUOTAS",
    "RANKING_MEASURE",
    "RERANKED",
    "ROLES",
    "SHOWN",
    "SUFFICIENCY",
    "TOP_SCORE",
    "TRANSLATED",
    "UNKNOWN",
    "VERDICTS",
    "AbsolutePath",
    "Agent",
    "ApiRerank",
    "Block",
    "CorrectLanguage",
    "Differs",
    "Generation",
    "Given",
    "Judge",
    "Languages",
    "ListwiseRerank",
    "LmSpec",
    "Measurement",
    "MilvusCorpus",
    "Mode",
    "ModelBudget",
    "ModelSpec",
    "Names",
    "NllbSpec",
    "Price",
    "Prompt",
    "Rerank",
    "Retrieval",
    "Role",
    "Shown",
    "TableSpec",
    "TaskBlocks",
    "TaskNames",
    "TranslatorSpec",
    "check_keys",
    "check_metrics",
    "config_path",
    "deep_merge",
    "differences",
    "dotted",
    "harmless",
    "is_named",
    "load_config",
    "mode_named",
    "names_in",
    "names_of",
    "overlaid",
    "package_versions",
    "passages_shown",
    "portable",
    "provenance",
    "ranking_measures",
    "read_task_yaml",
    "read_yaml",
    "relevance_measures",
    "rerank_measures",
    "reranker_name",
    "secret_in",
    "setting_of",
    "shown",
    "split_config",
    "undotted",
    "unmeasured",
    "upper_bound",
    "validated",
]
