"""Auxiliary models: judges, planners, critics, rerankers and translators."""

from mrag_eval.models._apart import run_on_loop
from mrag_eval.models._asking import Answered, at_once, generate_parsed
from mrag_eval.models._faults import Fault
from mrag_eval.models._ledger import Ledger, total
from mrag_eval.models._model import AuxModel
from mrag_eval.models._redaction import install_redaction
from mrag_eval.models._replies import (
    Parsed,
    Parser,
    Verdict,
    as_verdict,
    parse_json,
    parse_list,
    parse_order,
    parse_tag,
    parse_verdict_tag,
)
from mrag_eval.models._reply import Reply
from mrag_eval.models._spec import asked_args, behind_api, identity, key_variable, named_spec, portable_identity
from mrag_eval.models._transport import Call, Transport
from mrag_eval.models.harness._registered import register_model_types
from mrag_eval.models.translate._build import build_translator
from mrag_eval.models.translate._translator import Translation, Translator, total_counts

__all__ = [
    "Answered",
    "AuxModel",
    "Call",
    "Fault",
    "Ledger",
    "Parsed",
    "Parser",
    "Reply",
    "Translation",
    "Translator",
    "Transport",
    "Verdict",
    "as_verdict",
    "asked_args",
    "at_once",
    "behind_api",
    "build_translator",
    "generate_parsed",
    "identity",
    "install_redaction",
    "key_variable",
    "named_spec",
    "parse_json",
    "parse_list",
    "parse_order",
    "parse_tag",
    "parse_verdict_tag",
    "portable_identity",
    "register_model_types",
    "run_on_loop",
    "total",
    "total_counts",
]
