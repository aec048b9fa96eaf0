"""Auxiliary models: what judges, plans and translates beside the evaluated model."""

from mrag_eval.config import Generation, ModelBudget, ModelSpec
from mrag_eval.lm._reply import Conversation, Message, Reply
from mrag_eval.lm.ledger import Ledger, total
from mrag_eval.lm.model import AuxModel, generate_all
from mrag_eval.lm.redaction import install_redaction, redact
from mrag_eval.lm.spec import named_spec

__all__ = [
    "AuxModel",
    "Conversation",
    "Generation",
    "Ledger",
    "Message",
    "ModelBudget",
    "ModelSpec",
    "Reply",
    "generate_all",
    "install_redaction",
    "named_spec",
    "redact",
    "total",
]
