"""Conversations as one prompt: with a model's chat template, or as plain text; a system text is never lost."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

# One message: {"role": "system" | "user" | "assistant", "content": text}.
Message = Mapping[str, str]
Conversation = Sequence[Message]
# Renders messages as the model wants them; the harness's ``apply_chat_template``.
Template = Callable[..., Any]

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


def knows_system_role(template: Template) -> bool:
    """Whether a system message reaches the prompt: some templates refuse the role, others drop it in silence."""
    turns = [{"role": "system", "content": _SENTINEL}, {"role": "user", "content": "?"}]
    try:
        return _SENTINEL in str(template(turns, add_generation_prompt=True))
    except Exception:  # a template may refuse the role with an exception of any library
        return False


def renderer(template: Template) -> Callable[[Conversation], str]:
    """How a local model's conversations become prompts.

    Where ``template`` knows no system role the system text is folded into the user's message; where there is no
    template, which shows on a probe, the prompt is plain.
    """
    try:
        template([{"role": "user", "content": "?"}], add_generation_prompt=True)
    except Exception:  # no template, in whatever way the model's library says so
        return plain_prompt
    fold = not knows_system_role(template)

    def rendered(conversation: Conversation) -> str:
        turns = folded(conversation) if fold else [dict(message) for message in conversation]
        return str(template(turns, add_generation_prompt=True))

    return rendered
