"""Conversations as one prompt, for models that take text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mrag_eval.lm._reply import Conversation

_SENTINEL = "mrag-sentinel-7f3a"


def plain_prompt(conversation: Conversation) -> str:
    """The messages one after another, a blank line between them: for models without a chat template."""
    return "\n\n".join(message["content"] for message in conversation)


def folded(conversation: Conversation) -> list[dict[str, str]]:
    """The conversation with its system text at the head of the first user message."""
    system = [m["content"] for m in conversation if m["role"] == "system"]
    turns = [dict(m) for m in conversation if m["role"] != "system"]
    if system and turns:
        turns[0]["content"] = "\n\n".join([*system, turns[0]["content"]])
    return turns


def renderer(template: Callable[..., Any]) -> Callable[[Conversation], str]:
    """How a local model's conversations become prompts.

    ``template`` is the harness's ``apply_chat_template``. Where it knows no system role, which shows on a probe, the
    system text is folded into the user's message (the harness would drop it); where there is none, the prompt is plain.
    """

    def shown(turns: Sequence[dict[str, str]]) -> str | None:
        try:
            return str(template(list(turns), add_generation_prompt=True))
        except Exception:  # no template, or one that refuses a role, in whatever way the model's library says so
            return None

    user = {"role": "user", "content": "?"}
    if shown([user]) is None:
        return plain_prompt
    with_system = shown([{"role": "system", "content": _SENTINEL}, user])
    fold = with_system is None or _SENTINEL not in with_system

    def rendered(conversation: Conversation) -> str:
        turns = folded(conversation) if fold else [dict(message) for message in conversation]
        return str(template(turns, add_generation_prompt=True))

    return rendered
