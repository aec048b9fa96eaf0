"""Token budget of a prompt, and shortening of its passages to fit.

The harness truncates long prompts on the left, where the instructions and the first documents are. Here passages are
shortened evenly from their ends instead; the question and the instructions are never changed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from mrag_eval.platform import ConfigError
from mrag_eval.text import estimated_tokens

log = logging.getLogger(__name__)

# Room for the special tokens that a tokenizer adds around a rendered prompt.
_MARGIN = 8
# Tokens of a reply where nothing says how many, as in the harness.
LONGEST_REPLY = 256


@dataclass(frozen=True)
class Budget:
    """A budget of ``limit`` tokens for the whole prompt (None: unknown), with its token counter and its source."""

    limit: int | None
    count: Callable[[str], int]
    source: str

    def surely_fits(self, prompt: Any) -> bool:
        """Return whether the prompt fits even at one token per byte: saves counting most prompts."""
        prompt = prompt_text(prompt)
        if self.limit is None or len(prompt) * 4 + _MARGIN <= self.limit:
            return True
        return len(prompt.encode("utf-8", "surrogatepass")) + _MARGIN <= self.limit

    def fits(self, prompt: Any) -> bool:
        """Return whether the counted prompt stays within the limit."""
        return self.limit is None or self.surely_fits(prompt) or self.count(prompt_text(prompt)) + _MARGIN <= self.limit


def prompt_text(prompt: Any) -> str:
    """Return the text of a rendered prompt: chat APIs of the harness get their turns as JSON inside a tuple, or as a
    list.
    """
    if isinstance(prompt, str):
        return prompt
    inner = getattr(prompt, "prompt", None)
    return inner if isinstance(inner, str) else str(prompt)


def budget_for(
    max_tokens: int | None,
    model: Any,
    metadata: Mapping[str, Any],
    generation: Mapping[str, Any] | None,
    setting: str = "--gen_kwargs max_gen_toks",
) -> Budget:
    """Return the prompt budget of a task.

    The first known one of: ``prompt.max_tokens``; the evaluated model's context (``model`` is the harness's object, if
    it is known and not behind an API, whose default ``max_length`` is a guess); ``max_length`` or ``max_model_len`` in
    the model arguments; the configuration of the model they name. All but the first are reduced by the tokens to
    generate, whose ``setting`` a ConfigError names if they leave nothing.
    """
    local = model is not None and not any(cls.__name__ == "TemplateAPI" for cls in type(model).__mro__)
    encode = getattr(model, "tok_encode", None) if local else None
    count = (lambda text: len(encode(text))) if callable(encode) else None
    if count is None:
        count = _pretrained_counter(metadata)
    if max_tokens is not None:
        return Budget(max_tokens, count or estimated_tokens, "prompt.max_tokens")
    length, source = None, "unknown"
    if local and isinstance(getattr(model, "max_length", None), int):
        length, source = model.max_length, "the model's context"
    if length is None:
        for key in ("max_length", "max_model_len"):
            if metadata.get(key):
                length, source = int(metadata[key]), f"model argument {key}"
                break
    if length is None and metadata.get("pretrained"):
        length = _pretrained_length(str(metadata["pretrained"]), metadata.get("gguf_file"))
        source = "the configuration of the model"
    if length is None:
        return Budget(None, count or estimated_tokens, "unknown")
    own = getattr(model, "max_gen_toks", None) if local else None
    replies = longest_reply(generation) or (own if isinstance(own, int) else LONGEST_REPLY)
    if replies >= length:
        raise ConfigError(
            f"{setting}={replies} leaves no room for a prompt: the evaluated model's context has {length:,} tokens",
            f"{'' if setting.startswith('--') else '--metadata '}{setting}={max(1, min(2048, length // 4))}",
        )
    return Budget(length - replies, count or estimated_tokens, source)


def longest_reply(generation: Mapping[str, Any] | None) -> int | None:
    """Return the most tokens of a reply by generation arguments, under any name that models give it, or None."""
    keys = ("max_gen_toks", "max_new_tokens", "max_tokens", "max_completion_tokens")
    found = (value for key in keys if isinstance(value := (generation or {}).get(key), int | float) and value)
    return next(map(int, found), None)


def _pretrained_counter(metadata: Mapping[str, Any]) -> Callable[[str], int] | None:
    name = metadata.get("pretrained")
    if not name:
        return None

    def count(text: str) -> int:
        tokenizer = _tokenizer(str(name), metadata.get("gguf_file"))
        return estimated_tokens(text) if tokenizer is None else len(tokenizer(text)["input_ids"])

    return count


@lru_cache(maxsize=4)
def _tokenizer(name: str, gguf_file: str | None) -> Any:
    try:
        from transformers import AutoTokenizer

        extra = {"gguf_file": gguf_file} if gguf_file else {}
        return AutoTokenizer.from_pretrained(name, **extra)
    except (ImportError, OSError, ValueError) as err:
        log.warning("no tokenizer for %s (%s): prompt lengths are estimated from characters", name, _first_line(err))
        return None


@lru_cache(maxsize=4)
def _pretrained_length(name: str, gguf_file: str | None) -> int | None:
    try:
        from transformers import AutoConfig

        extra = {"gguf_file": gguf_file} if gguf_file else {}
        config = AutoConfig.from_pretrained(name, **extra)
    except (ImportError, OSError, ValueError) as err:
        log.debug("no configuration for %s: %s", name, _first_line(err))
        return None
    for key in ("max_position_embeddings", "n_positions", "n_ctx", "max_seq_len"):
        value = getattr(config, key, None)
        if isinstance(value, int) and value > 0:
            return value
    return None


def _first_line(err: Exception) -> str:
    return str(err).strip().split("\n", 1)[0]


def fit(
    passages: Sequence[Mapping[str, Any]],
    build: Callable[[Sequence[Mapping[str, Any]]], Any],
    budget: Budget,
    row: str,
) -> tuple[Any, int]:
    """Return ``(prompt, number of passages shortened)``; ``build`` renders a prompt from passages.

    All passages are cut to one common length in tokens, the largest at which the prompt fits; shorter ones are
    unchanged. Raises ConfigError if the prompt does not fit even with every passage empty.
    """
    prompt = build(passages)
    if budget.fits(prompt):
        return prompt, 0
    lengths = [budget.count(p["text"]) for p in passages]
    low, high, best = 0, max(lengths, default=0), None
    while low <= high:
        cap = (low + high) // 2
        candidate = build([_cut(p, n, cap) for p, n in zip(passages, lengths, strict=True)])
        if budget.fits(candidate):
            low, best, kept = cap + 1, candidate, cap
        else:
            high = cap - 1
    if best is None:
        raise ConfigError(
            f"row '{row}': the question and the instructions alone exceed {budget.limit} tokens ({budget.source})",
            "raise prompt.max_tokens"
            if budget.source == "prompt.max_tokens"
            else "use a model with a longer context, or fewer tokens to generate (--gen_kwargs max_gen_toks=...)",
        )
    return best, sum(n > kept for n in lengths)


def _cut(passage: Mapping[str, Any], tokens: int, cap: int) -> Mapping[str, Any]:
    if tokens <= cap:
        return passage
    text = passage["text"]
    return {**passage, "text": text[: len(text) * cap // tokens].rstrip()}
