"""Auxiliary models: what judges, plans and translates beside the evaluated model."""

from mrag_eval.chat import Conversation, Message
from mrag_eval.lm._reply import Reply
from mrag_eval.lm.asking import Answered, at_once, generate_all, generate_all_parsed, generate_parsed
from mrag_eval.lm.ledger import Ledger, total
from mrag_eval.lm.model import AuxModel
from mrag_eval.lm.redaction import install_redaction, redact
from mrag_eval.lm.replies import (
    Parsed,
    Parser,
    Verdict,
    as_verdict,
    parse_fields,
    parse_json,
    parse_list,
    parse_order,
    parse_tag,
    parse_verdict_json,
    parse_verdict_tag,
)
from mrag_eval.lm.spec import behind_api, key_variable, named_spec, portable_identity
from mrag_eval.model_spec import Generation, ModelBudget, ModelSpec

__all__ = [
    "Answered",
    "AuxModel",
    "Conversation",
    "Generation",
    "Ledger",
    "Message",
    "ModelBudget",
    "ModelSpec",
    "Parsed",
    "Parser",
    "Reply",
    "Verdict",
    "as_verdict",
    "at_once",
    "behind_api",
    "generate_all",
    "generate_all_parsed",
    "generate_parsed",
    "install_redaction",
    "key_variable",
    "named_spec",
    "parse_fields",
    "parse_json",
    "parse_list",
    "parse_order",
    "parse_tag",
    "parse_verdict_json",
    "parse_verdict_tag",
    "portable_identity",
    "redact",
    "total",
]
