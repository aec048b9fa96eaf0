"""Model type ``rag``: a RAG system that is asked as it is, with the row's question, and shows its own contexts."""

from __future__ import annotations

import os
from typing import Any

from mrag_eval.harness import LM, Instance, register_model
from mrag_eval.models._systems import rag_system
from mrag_eval.platform import ConfigError

_ONLY = "leave out the tasks of others; docs/score.md says which of ours ask for answers as texts"


@register_model("rag")
class RagLM(LM):
    """A system as a model of the harness. Its replies are made where those of a model behind an API are
    (:func:`mrag_eval.models.answering`), which keeps the contexts beside each answer.
    """

    tokenizer_name = "rag"

    def __init__(
        self, batch_size: Any = None, max_batch_size: Any = None, device: Any = None, **arguments: Any
    ) -> None:
        super().__init__()
        if (processes := os.environ.get("WORLD_SIZE", "1")) not in ("", "1"):
            # each would ask everything, and write results of its own
            raise ConfigError(
                f"--model rag runs in one process, and WORLD_SIZE={processes} says that this is one of several",
                "leave accelerate launch or torchrun out, and ask in parallel: --model_args num_concurrent=8",
            )
        self.system = rag_system(arguments)

    def generate_until(self, requests: list[Instance], disable_tqdm: bool = False) -> list[str]:
        raise ConfigError("--model rag answers tasks of mrag-eval alone, run by mrag-eval", _ONLY)

    def chat_template(self, chat_template: bool | str = False) -> str:
        return ""

    def apply_chat_template(self, chat_history: list[dict[str, str]], add_generation_prompt: bool = True) -> str:
        return "\n\n".join(turn["content"] for turn in chat_history)

    def loglikelihood(self, requests: list[Instance], disable_tqdm: bool = False) -> list[tuple[float, bool]]:
        raise ConfigError("--model rag replies in texts, it has no likelihoods", _ONLY)

    def loglikelihood_rolling(self, requests: list[Instance], disable_tqdm: bool = False) -> list[float]:
        raise ConfigError("--model rag replies in texts, it has no likelihoods", _ONLY)
