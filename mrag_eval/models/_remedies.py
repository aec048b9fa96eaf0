"""What to do about a failed call, by its reason."""

from __future__ import annotations

_AGAIN = "run the same command again: answers that arrived are kept, and only the others are asked for"
_FIRST = {
    "auth": "export the key that this server takes",
    "quota": "raise the account's limit",
    "not_found": "correct the model and its address in --model_args",
    "rejected": "correct --model_args or --gen_kwargs as the server says",
    "connection": "start the server, or correct its address in --model_args",
    "timeout": "raise timeout in --model_args, or lower num_concurrent",
    "rate_limit": "lower num_concurrent in --model_args",
    "server": "see the server's own log",
    "broken_off": "see the server's own log",
    "raised": "mend what the system raises",
    "shape": "say where the reply has its parts: answer=PATH,contexts=PATH in --model_args",
    "malformed": "check that base_url in --model_args is the address that --model speaks to",
    "stopped": "mend what the calls before it failed with",
}


# What a model or a provider says to this text, whenever it is asked.
_LASTING = frozenset(
    {"content_filter", "empty", "length", "missing", "refusal", "too_long", "unreadable", "unsupported",
     "wrong_language"}
)  # fmt: skip
LASTING = (
    "the same call fails in the same way: change the model or its settings, or ask again with an empty cache, "
    "export MRAG_CACHE=$(mktemp -d)"
)


def may_pass(reason: str | None) -> bool:
    """Return whether a repetition may have an answer where a call failed for a reason."""
    return reason not in _LASTING


def remedy(reason: str | None) -> str:
    """Return the next step after a call that failed for a reason, in one line."""
    if not may_pass(reason):
        return LASTING
    first = _FIRST.get(reason or "")
    return _AGAIN if first is None else f"{first}, then {_AGAIN}"
