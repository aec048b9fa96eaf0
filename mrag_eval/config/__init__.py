"""Settings that users write, validated."""

from typing import TYPE_CHECKING

from mrag_eval.platform import lazy_door

if TYPE_CHECKING:
    from mrag_eval.config._agent import AGENT_DECODING, EVALUATED, TOP_SCORE, Agent
    from mrag_eval.config._block import AbsolutePath, Block, Languages, Names
    from mrag_eval.config._file import MilvusCorpus, load_config
    from mrag_eval.config._grounded import Grounded, GroundedByPanel
    from mrag_eval.config._includes import BLOCKS
    from mrag_eval.config._judge import DETECTORS, CorrectLanguage, Judge
    from mrag_eval.config._measurement import (
        ALL_BUT_THE_MODEL,
        DECIDING,
        EVERYTHING,
        JUDGES,
        OWN,
        ROLES,
        SOURCES,
        SUPPORT,
        UNKNOWN,
        Differs,
        Harmless,
        Measurement,
        Role,
        asked_of,
        by_block,
        by_content,
        differences,
        harmless,
        harmless_keys,
        is_named,
        judges_of,
        names_in,
        setting_of,
        shown,
    )
    from mrag_eval.config._measures import (
        CORRECT,
        ELSEWHERE,
        GROUNDED,
        HOLDS_ANSWER,
        RANKING_MEASURE,
        RERANKED,
        RIGHT_LANGUAGE,
        SHOWN,
        SUFFICIENCY,
        TRANSLATED,
        called_here,
        check_grounded,
        check_metrics,
        judged_metrics,
        ranking_measures,
        relevance_measures,
        rerank_measures,
        unmeasured,
        verdict_metrics,
    )
    from mrag_eval.config._model import Generation, ModelBudget, ModelSpec, Price, secret_in
    from mrag_eval.config._modes import (
        CONTEXT_PAIR,
        MODES,
        Condition,
        Mode,
        Shown,
        mode_named,
        passages_shown,
        unlisted,
        upper_bound,
    )
    from mrag_eval.config._overlay import overlaid
    from mrag_eval.config._overrides import CONTEXT_METADATA, NAMING_METADATA, unread
    from mrag_eval.config._prompt import Prompt
    from mrag_eval.config._provenance import RELEASED, package_versions, provenance
    from mrag_eval.config._rerank import ApiRerank, ListwiseRerank, Rerank, reranker_name
    from mrag_eval.config._retrieval import CENTERED, NO_MEANS, PUBLISHED, GivenChoice, Retrieval
    from mrag_eval.config._retriever import Retriever
    from mrag_eval.config._system import RAG, SystemSpec, system_spec
    from mrag_eval.config._task import TaskBlocks, split_config
    from mrag_eval.config._task_yaml import read_task_yaml
    from mrag_eval.config._tasks import (
        Listed,
        RunTasks,
        closest_task,
        listed_by,
        listed_in,
        tasks_being_loaded,
        unknown_name,
    )
    from mrag_eval.config._translator import DEFAULT_NLLB, LmSpec, NllbSpec, TableSpec, TranslatorSpec
    from mrag_eval.config._validation import check_keys, deep_merge, dotted, undotted, validated
else:
    __getattr__, __dir__ = lazy_door(__name__)

__all__ = ["differences"]
