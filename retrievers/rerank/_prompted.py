"""Rerankers that answer a prompt: a language model reads instruction, query and passage, and its next token decides."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mrag_eval.platform import ConfigError, placed
from mrag_eval.retrievers.embedding._loading import (
    commit_of,
    folder_identity,
    loading,
    offline,
    transformers,
    with_settings,
    with_weights,
)
from mrag_eval.retrievers.recipes._recipe import Recipe
from mrag_eval.retrievers.rerank._cross_encoder import cut_queries
from mrag_eval.retrievers.rerank._rerank import Scores


class PromptedReranker:
    """Reranker of a family with a template (:class:`~mrag_eval.retrievers.recipes._recipe.Recipe`).

    The score is the logit of the recipe's first answer minus that of the second, or the one output of a model that was
    converted to a classifier. ``max_length`` bounds the whole input, template included, by cutting the passage. A query
    longer than three quarters of what the template leaves is cut, too, with a warning. Special tokens written in a
    query or a passage are plain text. ``revision`` is the commit (or, for a folder, a hash of its files) with a hash of
    all that shapes the input.

    Raises ConfigError for a model that cannot be loaded, and for a ``max_length`` that the
    template alone exceeds.
    """

    def __init__(
        self,
        model: str,
        recipe: Recipe,
        *,
        instruction: str | None = None,
        revision: str | None = None,
        max_length: int = 512,
        batch_size: int = 32,
        device: str = "cpu",
        trust_remote_code: bool = False,
    ) -> None:
        library = transformers()
        options: dict[str, Any] = {
            "revision": revision,
            "local_files_only": offline(),
            "trust_remote_code": trust_remote_code,
        }
        with loading(f"reranker {model}"):
            self._tokenizer: Any = library.AutoTokenizer.from_pretrained(model, **options)
            config = library.AutoConfig.from_pretrained(model, **options)
            self._classifies = "ForSequenceClassification" in (getattr(config, "architectures", None) or [""])[0]
            kind = "AutoModelForSequenceClassification" if self._classifies else "AutoModelForCausalLM"
        self._model: Any = with_weights(getattr(library, kind), model, f"reranker {model}", **options)
        self._device = placed(self._model, device, f"reranker {model}")
        self.name, self._recipe, self._instruction, self._batch_size = model, recipe, instruction, batch_size
        self._pad = next((n for n in (self._tokenizer.pad_token_id, self._tokenizer.eos_token_id) if n is not None), 0)
        if self._classifies and self._model.config.pad_token_id is None:
            self._model.config.pad_token_id = self._pad
        self._answers = [] if self._classifies else [self._answer(text) for text in recipe.answers]
        self.max_length = min(max_length, int(getattr(config, "max_position_embeddings", max_length)))
        template = sum(map(len, self._pieces("", "")))
        self._room = self.max_length - template
        if self._room < 4:
            raise ConfigError(
                f"reranker {model}: the template alone takes {template} of max_length = {self.max_length} tokens",
                f"set max_length to {template + 128} or more",
            )
        identity = commit_of(config) or revision or folder_identity(Path(model))
        settings = [recipe.pieces, recipe.instruct, instruction or recipe.instruction, recipe.answers, self.max_length]
        self.revision = with_settings(identity, settings)

    def scores(self, queries: Sequence[str], passages: Sequence[Sequence[str]]) -> list[Scores]:
        cut = self._cut([query for query, texts in zip(queries, passages, strict=True) if texts])
        inputs = [
            self.input_ids(cut[query], text) for query, row in zip(queries, passages, strict=True) for text in row
        ]
        flat = np.empty(len(inputs))
        # batches of about equal lengths need the least padding
        order = sorted(range(len(inputs)), key=lambda position: -len(inputs[position]))
        for start in range(0, len(order), self._batch_size):
            batch = order[start : start + self._batch_size]
            flat[batch] = self._scored([inputs[position] for position in batch])
        return np.split(flat, np.cumsum([len(texts) for texts in passages])[:-1]) if len(passages) else []

    def input_ids(self, query: str, passage: str) -> list[int]:
        """Return the tokens that the model reads for a pair."""
        pieces = self._pieces(query, passage)
        place = next(n for n, piece in enumerate(self._recipe.pieces) if "{passage}" in piece)
        room = self.max_length - sum(len(piece) for n, piece in enumerate(pieces) if n != place)
        pieces[place] = pieces[place][: max(room, 0)]
        return [token for piece in pieces for token in piece]

    def _pieces(self, query: str, passage: str) -> list[list[int]]:
        out = []
        for template, text in zip(
            self._recipe.pieces, self._recipe.texts(query, passage, self._instruction), strict=True
        ):
            # only the template may contain special tokens, not a text from elsewhere
            plain = "{" in template
            found = self._tokenizer(text, add_special_tokens=False, split_special_tokens=plain, verbose=False)
            out.append(list(found["input_ids"]))
        return out

    def _answer(self, text: str) -> int:
        """Return the token of an answer; raise ConfigError if the tokenizer has no such token."""
        ids = self._tokenizer(text, add_special_tokens=False)["input_ids"]
        if len(ids) != 1 or ids[0] == self._tokenizer.unk_token_id:
            raise ConfigError(
                f"reranker {self.name}: its tokenizer has no token {text!r}, which the recipe reads as an answer",
                f"name a model of the family {self._recipe.family}",
            )
        return int(ids[0])

    def _cut(self, queries: Sequence[str]) -> dict[str, str]:
        """Return each query, truncated so that room for the passage is left."""
        return cut_queries(self._tokenizer, queries, self._room * 3 // 4, f"reranker {self.name}", self.max_length)

    def _scored(self, inputs: Sequence[list[int]]) -> Any:
        """Return the scores of a batch. Padding is on the left, so that the last token is a real one."""
        import torch

        width = max(map(len, inputs))
        ids = torch.full((len(inputs), width), self._pad)
        mask = torch.zeros((len(inputs), width), dtype=torch.long)
        for row, tokens in enumerate(inputs):
            ids[row, width - len(tokens) :] = torch.tensor(tokens)
            mask[row, width - len(tokens) :] = 1
        # positions count from the first real token, so that a score does not depend on the batch
        positions = (mask.cumsum(dim=1) - 1).clamp(min=0)
        given = {"input_ids": ids, "attention_mask": mask, "position_ids": positions}
        given = {key: value.to(self._device) for key, value in given.items()}
        with torch.inference_mode():
            if self._classifies:
                return self._model(**given).logits[:, 0].double().cpu().numpy()
            # logits of all positions would take gigabytes
            logits = self._model(**given, logits_to_keep=1).logits[:, -1].double()
            first, *second = (logits[:, answer] for answer in self._answers)
            return (first - second[0] if second else first).cpu().numpy()
