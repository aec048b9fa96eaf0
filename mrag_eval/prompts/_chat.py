"""Conversion of conversations to prompts, with a model's chat template or as plain text, always with the system
text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

# One message: {"role": "system" | "user" | "assistant", "content": text}.
Message = Mapping[str, str]
Conversation = Sequence[Message]
# Renders messages in the model's format; the harness's ``apply_chat_template``.
Template = Callable[..., Any]

_SENTINEL = "mrag-sentinel-7f3a"


def plain_prompt(conversation: Conversation) -> str:
    """Return the messages separated by blank lines: for models without a chat template."""
    return "\n\n".join(message["content"] for message in conversation)


def folded(conversation: Conversation) -> list[dict[str, str]]:
    """Return the conversation with its system text at the start of the first user message."""
    system = [m["content"] for m in conversation if m["role"] == "system"]
    turns = [dict(m) for m in conversation if m["role"] != "system"]
    if system and turns:
        turns[0]["content"] = "\n\n".join([*system, turns[0]["content"]])
    return turns


def knows_system_role(template: Template) -> bool:
    """Return whether a system message reaches the prompt: some templates refuse the role, others silently drop it."""
    turns = [{"role": "system", "content": _SENTINEL}, {"role": "user", "content": "?"}]
    try:
        return _SENTINEL in str(template(turns, add_generation_prompt=True))
    except Exception:  # a template may refuse the role with an exception of any library
        return False


def renderer(template: Template) -> Callable[[Conversation], str]:
    """Return the function that turns a local model's conversations into prompts.

    If ``template`` does not support the system role, the system text is folded into the user's message. If there is no
    template, which a probe shows, the prompt is plain.
    """
    try:
        template([{"role": "user", "content": "?"}], add_generation_prompt=True)
    except Exception:  # no template, reported in whatever way the model's library chooses
        return plain_prompt
    fold = not knows_system_role(template)

    def rendered(conversation: Conversation) -> str:
        turns = folded(conversation) if fold else [dict(message) for message in conversation]
        return str(template(turns, add_generation_prompt=True))

    return rendered
