"""BGE-M3 as a reranker: its dense, sparse and multi-vector scores of a pair, combined.

From Chen et al. 2024, M3-Embedding: all three from one pass over a text. The dense vector is that of the first token,
of unit length. A token's sparse weight is ReLU(w · h); a term has the largest weight of its tokens, and the score sums
the products over shared terms. The multi-vector score is the mean over the query's tokens of the best match among the
passage's, all but the first token, of unit length after a linear layer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mrag_eval.platform import placed
from mrag_eval.retrievers.embedding._loading import (
    commit_of,
    folder_identity,
    loading,
    offline,
    transformers,
    with_settings,
    with_weights,
)
from mrag_eval.retrievers.rerank._rerank import Scores

_HEADS = ("sparse_linear.pt", "colbert_linear.pt")


class _Encoded(NamedTuple):
    dense: NDArray[np.float32]
    terms: Mapping[int, float]
    tokens: NDArray[np.float32]


class BgeM3Reranker:
    """``(w1 · dense + w2 · sparse + w3 · multi-vector) / (w1 + w2 + w3)``; the paper's weights are 1, 0.3 and 1.

    Texts are truncated to ``max_length`` tokens. ``revision`` is the commit (or, for a folder, a hash of its files)
    with a hash of these settings. Raises ConfigError for a model without the two heads.
    """

    def __init__(
        self,
        model: str,
        *,
        weights: tuple[float, float, float] = (1.0, 0.3, 1.0),
        revision: str | None = None,
        max_length: int = 512,
        batch_size: int = 32,
        device: str = "cpu",
    ) -> None:
        library = transformers()
        import torch

        options: dict[str, Any] = {"revision": revision, "local_files_only": offline()}
        with loading(f"reranker {model}", f"name BAAI/bge-m3 or a model with its files ({', '.join(_HEADS)})"):
            self._tokenizer: Any = library.AutoTokenizer.from_pretrained(model, **options)
            self._model: Any = with_weights(library.AutoModel, model, f"reranker {model}", **options)
            device = placed(self._model, device, f"reranker {model}")
            self._sparse, self._multi = (
                {name: value.float().to(device) for name, value in torch.load(path, weights_only=True).items()}
                for path in (_head(model, file, options) for file in _HEADS)
            )
        self.name, self._weights, self._batch_size, self._device = model, weights, batch_size, device
        self.max_length = min(max_length, int(self._tokenizer.model_max_length))
        identity = commit_of(self._model.config) or revision or folder_identity(Path(model))
        self.revision = with_settings(identity, ["bge-m3", self.max_length, list(weights)])

    def scores(self, queries: Sequence[str], passages: Sequence[Sequence[str]]) -> list[Scores]:
        out = [np.empty(len(texts)) for texts in passages]
        wanted: dict[str, list[tuple[int, int]]] = {}
        for row, texts in enumerate(passages):
            for place, text in enumerate(texts):
                wanted.setdefault(text, []).append((row, place))
        asked = list(dict.fromkeys(query for query, texts in zip(queries, passages, strict=True) if texts))
        known: dict[str, _Encoded] = {}
        for start in range(0, len(asked), self._batch_size):
            batch = asked[start : start + self._batch_size]
            known |= dict(zip(batch, self._encode(batch), strict=True))
        # a passage has one vector per token, so only one batch is held
        longest_first = sorted(wanted, key=len, reverse=True)
        for start in range(0, len(longest_first), self._batch_size):
            batch = longest_first[start : start + self._batch_size]
            for text, passage in zip(batch, self._encode(batch), strict=True):
                for row, place in wanted[text]:
                    out[row][place] = self._score(known[queries[row]], passage)
        return out

    def _score(self, query: _Encoded, passage: _Encoded) -> float:
        dense = float(query.dense @ passage.dense)
        sparse = sum(weight * passage.terms.get(term, 0.0) for term, weight in query.terms.items())
        multi = float((query.tokens @ passage.tokens.T).max(axis=1).mean())
        one, two, three = self._weights
        return (one * dense + two * sparse + three * multi) / (one + two + three)

    def _encode(self, texts: Sequence[str]) -> list[_Encoded]:
        import torch
        from torch.nn.functional import linear, normalize, relu

        batch = self._tokenizer(
            list(texts), padding=True, truncation=True, max_length=self.max_length, return_tensors="pt"
        ).to(self._device)
        with torch.inference_mode():
            hidden = self._model(**batch).last_hidden_state.float()
            dense = normalize(hidden[:, 0], dim=-1).cpu().numpy()
            weights = relu(linear(hidden, self._sparse["weight"], self._sparse["bias"])).squeeze(-1).cpu().numpy()
            tokens = normalize(linear(hidden, self._multi["weight"], self._multi["bias"]), dim=-1).cpu().numpy()
        ids, held = batch["input_ids"].cpu().numpy(), batch["attention_mask"].cpu().numpy().astype(bool)
        special = set(self._tokenizer.all_special_ids)
        out = []
        for row in range(len(texts)):
            terms: dict[int, float] = {}
            for term, weight in zip(ids[row][held[row]].tolist(), weights[row][held[row]].tolist(), strict=True):
                if term not in special and weight > terms.get(term, 0.0):
                    terms[term] = weight
            out.append(_Encoded(dense[row], terms, tokens[row][held[row]][1:]))
        return out


# Each model is loaded once per process.
load_bge_m3 = lru_cache(maxsize=2)(BgeM3Reranker)


def _head(model: str, file: str, options: Mapping[str, Any]) -> Path:
    local = Path(model) / file
    if Path(model).is_dir():
        return local
    from huggingface_hub import hf_hub_download

    return Path(hf_hub_download(model, file, **options))
