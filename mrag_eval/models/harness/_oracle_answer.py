"""Model that replies with the reference answer: the score of a perfect system under the same metrics.

    mrag-eval run --model oracle_answer --tasks mkqa_norag_ko

If its score is below 1, or missing (an answer too short for language detection), no model can do better. Importing this
module registers the model with the harness; ``mrag-eval run`` does so.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from mrag_eval.harness import LM, Instance, register_model
from mrag_eval.platform import ConfigError

# Arguments that the harness passes to every model; this one ignores them.
_HARNESS_ARGUMENTS = ("batch_size", "max_batch_size", "device")


@register_model("oracle_answer")
class OracleAnswerLM(LM):
    """A model that replies to each prompt with the row's first reference answer, in the requested form.

    A row with options gets the line with the right letter; a row without any reference gets an empty reply. Raises
    ConfigError for any model argument, and for tasks that request likelihoods.
    """

    tokenizer_name = "oracle_answer"

    def __init__(self, **arguments: Any) -> None:
        super().__init__()
        for name in arguments:
            if name not in _HARNESS_ARGUMENTS:
                raise ConfigError(f"model oracle_answer takes no argument '{name}'", "leave --model_args out")

    def generate_until(self, requests: list[Instance], disable_tqdm: bool = False) -> list[str]:
        return [oracle_reply(request.doc, str(request.args[0])) for request in requests]

    def chat_template(self, chat_template: bool | str = False) -> str:
        return ""

    def apply_chat_template(self, chat_history: list[dict[str, str]], add_generation_prompt: bool = True) -> str:
        return json.dumps(chat_history, ensure_ascii=False)

    def loglikelihood(self, requests: list[Instance], disable_tqdm: bool = False) -> list[tuple[float, bool]]:
        raise ConfigError("model oracle_answer replies to prompts, it has no likelihoods", "choose a generation task")

    def loglikelihood_rolling(self, requests: list[Instance], disable_tqdm: bool = False) -> list[float]:
        raise ConfigError("model oracle_answer replies to prompts, it has no likelihoods", "choose a generation task")


def oracle_reply(row: Mapping[str, Any], prompt: str) -> str:
    """Return the right reply to a row: its letter, or its first answer, in the tag if the prompt asks for one."""
    if row.get("gold_choice") is not None:
        return f"Answer: {chr(65 + int(row['gold_choice']))}"
    answers: Sequence[str] = row.get("answers") or ()
    if not answers:
        return ""
    return f"<answer>{answers[0]}</answer>" if "<answer>" in prompt else str(answers[0])
