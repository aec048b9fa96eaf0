"""Tasks whose questions a RAG system is asked as it is: which of them can be, and with what."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mrag_eval import models
from mrag_eval.config import RAG, Prompt, TaskBlocks
from mrag_eval.platform import ConfigError
from mrag_eval.prompts import load_template

if TYPE_CHECKING:
    from mrag_eval.task._hook import RagTask

# Forms of answers that a prompt has to show options for.
_OF_OPTIONS = ("choice", "citation")
_WORKS = "name tasks that ask for answers as texts (xquad_rag, mkqa_norag_<language>, blend_saq_norag ...)"


def prompt_for_system(blocks: TaskBlocks, output_type: str | None) -> Prompt:
    """Return the prompt block of a task of which a system is asked the question alone.

    A template that the user named for the run stays. Raises ConfigError for a task that compares likelihoods, and for
    one whose prompt shows options.
    """
    prompt = blocks.prompt
    if output_type == "multiple_choice":
        raise ConfigError(f"--model {RAG}: it compares likelihoods of options, which a system does not tell", _WORKS)
    if "template" in (blocks.overrides.get("prompt") or {}):
        return prompt
    if (prompt.answer or load_template(prompt.template).answer_format) in _OF_OPTIONS:
        raise ConfigError(
            f"--model {RAG}: it asks for a choice, and a system is asked the question without the options",
            f"{_WORKS}, or put the options into the question: --metadata prompt.template=multiple_choice",
        )
    return Prompt(template="question", answer="plain")


def check_asked(asked: Any, tasks: Mapping[str, RagTask]) -> None:
    """Raise ConfigError if a system is asked for a task with its own retrieval, or a model for one without."""
    system = getattr(asked, "system", None)
    is_system = system is not None and isinstance(system, models.RagSystem)
    for name, task in tasks.items():
        mode = task.blocks.retrieval.mode
        if task.blocks.retrieval.preset.asks_system is not is_system:
            what = "the contexts are the system's own" if is_system else f"its contexts come with --model {RAG} alone"
            raise ConfigError(f"task {name}, retrieval.mode={mode}: {what}", "leave retrieval.mode out of --metadata")
