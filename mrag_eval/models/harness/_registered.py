"""Model types of ours in the harness's registry."""

from __future__ import annotations

# name -> module:class, loaded when a run asks for it
MODEL_TYPES = {"hf-greedy-path": "mrag_eval.models.harness._greedy_path:GreedyPathLM"}


def register_model_types() -> None:
    """Make our model types known to ``--model``; the harness's own command does not know them."""
    import lm_eval.models  # noqa: F401  (fills the registry, which would not be filled once it holds ours)
    from lm_eval.api.registry import model_registry

    for name, place in MODEL_TYPES.items():
        if name not in model_registry:
            model_registry.register(name, target=place)
