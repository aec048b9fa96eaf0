"""Our model types in the harness's registry."""

from __future__ import annotations

# name -> module:class, loaded when a run asks for it
MODEL_TYPES = {
    "hf-greedy-path": "mrag_eval.models.harness._greedy_path:GreedyPathLM",
    "oracle_answer": "mrag_eval.models.harness._oracle_answer:OracleAnswerLM",
    "rag": "mrag_eval.models.harness._rag:RagLM",
}


def register_model_types() -> None:
    """Register our model types for ``--model``; the harness's own command does not know them."""
    from mrag_eval.harness import register_model_type

    for name, place in MODEL_TYPES.items():
        register_model_type(name, place)
