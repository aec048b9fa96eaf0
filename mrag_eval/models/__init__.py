"""Auxiliary models: judges, planners, critics, rerankers, translators and classifiers."""

from typing import TYPE_CHECKING

from mrag_eval.platform import lazy_door

if TYPE_CHECKING:
    from mrag_eval.models._answering import LOCAL as LOCAL_TRANSPORT
    from mrag_eval.models._answering import OURS as ANSWERED_BY_US
    from mrag_eval.models._answering import UNKNOWN_MODEL, Answering, answered_by_others, answering, asked_with
    from mrag_eval.models._asking import Answered, generate_parsed
    from mrag_eval.models._evaluated import EvaluatedModel, evaluated_model
    from mrag_eval.models._ledger import CallCounts, Ledger, came_back_line, summed, total, total_counts, totals
    from mrag_eval.models._lenient_json import storable
    from mrag_eval.models._model import AuxModel
    from mrag_eval.models._outputs import completion_reply
    from mrag_eval.models._remedies import LASTING, may_pass, remedy
    from mrag_eval.models._replies import (
        LONGEST_REPLY,
        Parsed,
        Parser,
        json_objects,
        parse_json,
        parse_list,
        parse_order,
        parse_tag,
    )
    from mrag_eval.models._reply import CUT, Reply
    from mrag_eval.models._run_model import ASKED, evaluating, forget_asked, own_replies, replies_file
    from mrag_eval.models._seat import Seat
    from mrag_eval.models._shared import NOT_KEPT, KeptReplies, get
    from mrag_eval.models._spec import asked_args, behind_api, key_variable, name_of, named_spec, type_fault
    from mrag_eval.models._systems import RagSystem, rag_system, system_arguments, task_settings
    from mrag_eval.models._verdicts import Verdict, parse_verdict_json, parse_verdict_tag
    from mrag_eval.models.grounding._checker import Asked, Checker
    from mrag_eval.models.grounding._load import load_checker
    from mrag_eval.models.harness._registered import register_model_types
    from mrag_eval.models.translate._build import build_translator
    from mrag_eval.models.translate._reply_size import longest_piece
    from mrag_eval.models.translate._table import write_table
    from mrag_eval.models.translate._translator import Translation, Translator
else:
    __getattr__, __dir__ = lazy_door(__name__)

__all__ = ["write_table"]
