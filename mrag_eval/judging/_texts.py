"""The texts of a task's prompts, by hash: a name alone does not say what a model was asked."""

from __future__ import annotations

from typing import Any

from mrag_eval import judging
from mrag_eval.config import SUFFICIENCY, TaskBlocks, mode_named, verdict_metrics
from mrag_eval.prompts import load_template


def prompt_texts(blocks: TaskBlocks) -> dict[str, Any]:
    """Return the SHA-256 of every prompt that the task's blocks ask with, by what it is for; the agents' as a block.

    Whether a model is there to be asked does not matter. Raises ConfigError for a prompt that does not exist.
    """
    prompt, judge, retrieval = blocks.prompt, blocks.judge, blocks.retrieval
    own = load_template(prompt.template, prompt.system, name_language=prompt.name_language)
    out: dict[str, Any] = {"prompt": own.sha256}
    if verdict_metrics(blocks.metrics):
        out["judge"] = judging.verdict_rubric(judge.prompt, judge.reply, judge.scale).template.sha256
    if SUFFICIENCY in blocks.metrics:
        out["sufficiency"] = judging.sufficiency_rubric(judge.sufficiency.prompt).template.sha256
    if retrieval.searches and judge.relevance.labels in ("judge", "auto"):
        out["relevance"] = judging.relevance_rubric(judge.relevance.prompt).template.sha256
    if mode_named(retrieval.mode).source == "agents":
        named = blocks.agent.prompts.model_dump()
        out["agent"] = {role: load_template(name, role="agent").sha256 for role, name in named.items()}
    if retrieval.rerank is not None and retrieval.rerank.kind == "listwise":
        out["rerank"] = load_template(retrieval.rerank.prompt, role="rerank").sha256
    return out
