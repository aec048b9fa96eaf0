"""Call to a model, and its reply."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mrag_eval.config import Generation
from mrag_eval.prompts import Conversation

# Ends of a reply at its limit, as providers name them, in lower case.
CUT = frozenset(
    {"length", "max_length", "max_output_tokens", "max_tokens", "model_context_window_exceeded", "model_length",
     "token_limit"}
)  # fmt: skip
# Fields that are stored where they say something.
_LATER = ("outcome", "answered_by", "likelihood", "contexts")


@dataclass(frozen=True)
class Call:
    """One conversation to send, with its cache ``key``."""

    key: str
    conversation: Conversation
    settings: Generation


@dataclass(frozen=True)
class Reply:
    """The answer to one conversation, or the reason for its absence.

    ``text`` is the answer without the model's thinking, which is in ``thinking``. ``error`` is None, or ``"reason:
    detail"``: the call failed and its seat abstains. ``attempts`` counts the requests of this call (0 from the cache),
    ``seconds`` their total time; token counts are None if the model reported none. ``outcome`` is what the model did
    instead of answering, if the reply was asked of the evaluated model; ``answered_by`` the model that the response
    names. ``likelihood`` is the log-likelihood of a given continuation, and whether it is the likeliest, where that was
    asked for instead of a text. ``contexts`` are those of a RAG system, best first.
    """

    text: str
    finish_reason: str | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None
    cached: bool = False
    attempts: int = 1
    seconds: float = 0.0
    error: str | None = None
    thinking: str = ""
    outcome: str | None = None
    answered_by: str | None = None
    likelihood: tuple[float, bool] | None = None
    contexts: Sequence[Mapping[str, Any]] | None = None

    @property
    def reason(self) -> str | None:
        """Return the reason of a failure (``timeout``, ``rate_limit``, ``budget``, ...); failures are counted by it."""
        return None if self.error is None else self.error.split(":", 1)[0]

    @property
    def cut_off(self) -> bool:
        """Return whether the reply ended because it reached ``max_tokens``."""
        return (self.finish_reason or "").lower() in CUT

    def stored(self) -> dict[str, Any]:
        """Return the value to cache."""
        return {
            "text": self.text,
            "thinking": self.thinking,
            "finish_reason": self.finish_reason,
            "tokens_in": self.tokens_in,
            "tokens_out": self.tokens_out,
            **{key: getattr(self, key) for key in _LATER if getattr(self, key) is not None},
        }

    @staticmethod
    def is_stored(value: Any) -> bool:
        """Return whether a value from a cache has the form of :meth:`stored`."""
        if not isinstance(value, dict) or not isinstance(value.get("text"), str):
            return False
        kinds: dict[str, type] = {"tokens_in": int, "tokens_out": int}
        kinds |= dict.fromkeys(("text", "thinking", "finish_reason", "outcome", "answered_by"), str)
        kinds |= {"likelihood": list, "contexts": list}
        optional = ("finish_reason", "tokens_in", "tokens_out")
        return all(
            key in kinds and (isinstance(part, kinds[key]) or (part is None and key in optional))
            for key, part in value.items()
        )

    @classmethod
    def from_store(cls, value: Mapping[str, Any]) -> Reply:
        """Return the reply for a value of :meth:`stored`."""
        return cls(**value, cached=True, attempts=0)
