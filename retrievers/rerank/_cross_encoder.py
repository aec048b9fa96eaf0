"""Cross-encoders of sentence-transformers as rerankers."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mrag_eval.platform import ConfigError, loading_device, number_of, placed
from mrag_eval.retrievers.embedding._loading import (
    check_modules,
    commit_of,
    folder_identity,
    loading,
    model_class,
    offline,
    with_settings,
)
from mrag_eval.retrievers.rerank._rerank import Scores

log = logging.getLogger(f"lm_eval.{__name__}")


class CrossEncoderReranker:
    """Reranker that reads query and passage together and returns one logit.

    No sigmoid is applied: in single precision it would make all good passages equal. Only the passage of a pair is
    truncated to ``max_length`` tokens. A query longer than three quarters of that is truncated, too, with a warning.
    A language model with a template of its own reads one text, whose end is cut before the template's.
    ``revision`` is the commit (or, for a folder, a hash of its files) with a hash of these settings.

    Raises ConfigError for a model that cannot be loaded or returns several numbers, and
    MissingExtraError if sentence-transformers is missing or older than 6.
    """

    def __init__(
        self,
        model: str,
        *,
        revision: str | None = None,
        max_length: int = 512,
        batch_size: int = 32,
        device: str = "cpu",
        trust_remote_code: bool = False,
    ) -> None:
        encoder_class = model_class("CrossEncoder")
        with loading(f"reranker {model}"):
            self._model: Any = encoder_class(
                model,
                revision=revision,
                device=loading_device(device),
                trust_remote_code=trust_remote_code,
                local_files_only=offline(),
            )
        check_modules(self._model, f"reranker {model}", revision)
        if self._model.num_labels != 1:
            raise ConfigError(
                f"reranker {model} returns {self._model.num_labels} numbers for a pair, expected one",
                "name a reranking model such as BAAI/bge-reranker-v2-m3",
            )
        placed(self._model, device, f"reranker {model}")
        self.name = model
        self._batch_size = batch_size
        self.max_length = min(max_length, _longest(self._model, max_length))
        identity = commit_of(getattr(self._model, "config", None)) or revision or folder_identity(Path(model))
        # a language model's template makes one text of the pair, which has no second part to cut
        has_template = any(type(module).__name__ == "LogitScore" for module in self._model)
        self._truncation = "longest_first" if has_template else "only_second"
        self.revision = with_settings(identity, [self.max_length, self._truncation])

    def scores(self, queries: Sequence[str], passages: Sequence[Sequence[str]]) -> list[Scores]:
        from torch import nn

        if not any(passages):
            return [np.empty(0) for _ in queries]
        cut = self._cut(queries)
        pairs = [(query, text) for query, texts in zip(cut, passages, strict=True) for text in texts]
        try:
            flat = self._model.predict(
                pairs,
                batch_size=self._batch_size,
                show_progress_bar=False,
                activation_fn=nn.Identity(),
                processing_kwargs={"text": {"truncation": self._truncation, "max_length": self.max_length}},
            )
        except ValueError as error:
            raise ConfigError(
                f"reranker {self.name} cannot read a pair of texts: {(str(error).splitlines() or ['ValueError'])[0]}",
                "name a model that was published as a reranker, with its template",
            ) from error
        ends = np.cumsum([len(texts) for texts in passages])[:-1]
        return np.split(np.asarray(flat, dtype=np.float64).reshape(-1), ends)

    def _cut(self, queries: Sequence[str]) -> list[str]:
        """Truncate queries so that cutting the passage alone is possible; otherwise the tokenizer refuses the pair."""
        tokenizer = self._model.tokenizer
        limit = min(self.max_length * 3 // 4, self.max_length - tokenizer.num_special_tokens_to_add(pair=True) - 1)
        known = cut_queries(tokenizer, queries, limit, f"reranker {self.name}", self.max_length)
        return [known[query] for query in queries]


def _longest(model: Any, otherwise: int) -> int:
    """Return the model's own maximum length; tokenizers give a huge number if they do not know it."""
    known = (getattr(model, "max_seq_length", None), getattr(model.tokenizer, "model_max_length", None))
    return min((int(n) for n in known if n), default=otherwise)


def beginning(tokenizer: Any, text: str, limit: int) -> str:
    """Return the start of ``text`` covered by its first ``limit`` tokens."""
    if not getattr(tokenizer, "is_fast", False):
        return str(tokenizer.decode(tokenizer(text, add_special_tokens=False)["input_ids"][:limit]))
    places = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)["offset_mapping"]
    return text[: places[limit - 1][1]]


def cut_queries(tokenizer: Any, queries: Sequence[str], limit: int, who: str, max_length: int) -> dict[str, str]:
    """Return each query, cut after ``limit`` tokens; warn of those that are longer."""
    known = {query: query for query in queries}
    encoded = tokenizer(list(known), add_special_tokens=False)["input_ids"] if known else []
    long = [query for query, ids in zip(list(known), encoded, strict=True) if len(ids) > limit]
    for query in long:
        known[query] = beginning(tokenizer, query, limit)
    if long:
        cut = number_of(len(long), "query", "queries")
        log.warning("%s: %s of more than %d tokens, cut there (max_length = %d)", who, cut, limit, max_length)
    return known
