"""Calls and tokens that one process has spent on a model, checked against the limits of its budget."""

from __future__ import annotations

import threading

from mrag_eval.config import ModelBudget
from mrag_eval.models._reply import Call, Reply
from mrag_eval.text import estimated_tokens


class Spending:
    """Count calls and tokens against one budget, from any thread."""

    def __init__(self, budget: ModelBudget) -> None:
        self._budget = budget
        self._counting = threading.Lock()
        self._calls = 0
        self._tokens = 0

    def refuse(self) -> str | None:
        """Count one call and return None; if a limit is reached, return the error to record instead of the call."""
        most_calls, most_tokens = self._budget.max_calls, self._budget.max_tokens
        with self._counting:
            if most_calls is not None and self._calls >= most_calls:
                return f"budget: not sent, max_calls {most_calls:,} is reached"
            if most_tokens is not None and self._tokens >= most_tokens:
                return f"budget: not sent, max_tokens {most_tokens:,} is reached ({self._tokens:,} spent)"
            self._calls += 1
            return None

    def add(self, call: Call, reply: Reply) -> None:
        """Count the tokens of an answered call, estimated if the model reports none."""
        if reply.error is not None:
            return
        tokens_in, tokens_out = reply.tokens_in, reply.tokens_out
        if tokens_in is None:
            tokens_in = sum(estimated_tokens(message["content"]) for message in call.conversation)
        if tokens_out is None:
            tokens_out = estimated_tokens(reply.text) + estimated_tokens(reply.thinking)
        with self._counting:
            self._tokens += tokens_in + tokens_out
