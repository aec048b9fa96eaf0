"""BGE-M3's three scores with random weights, compared with the paper's formulas written out for one pair."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mrag_eval.config import Retrieval, validated
from mrag_eval.platform import ConfigError
from mrag_eval.retrieval.rerank._rerank import open_reranker
from mrag_eval.retrievers import Reranker, load_bge_m3
from mrag_eval.retrievers.rerank._bge_m3 import BgeM3Reranker
from tests.worlds.tiny_models import bert_folder

QUERIES = ["where is the old bridge", "tea tea"]
PASSAGES = [["the old bridge of olm", "rice and tea", "old"], ["tea and more tea from the river bread", "rice"]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch = pytest.importorskip("torch")
    pytest.importorskip("transformers")
    path = bert_folder(tmp_path_factory.mktemp("models") / "m3", "BertModel")
    torch.manual_seed(1)
    for file, size in (("sparse_linear.pt", 1), ("colbert_linear.pt", 16)):
        torch.save(torch.nn.Linear(16, size).state_dict(), path / file)
    return path


def parts(folder: Path, query: str, passage: str) -> tuple[float, float, float]:
    """Return the three scores of one pair, from the model's hidden states, without batches or padding."""
    import torch
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModel.from_pretrained(folder).eval()
    sparse, multi = (torch.load(folder / file) for file in ("sparse_linear.pt", "colbert_linear.pt"))

    def read(text: str) -> tuple[Any, dict[str, float], Any]:
        encoded = tokenizer(text, return_tensors="pt")
        with torch.no_grad():
            hidden = model(**encoded).last_hidden_state[0].numpy().astype(float)
        weights = hidden @ sparse["weight"].numpy()[0] + float(sparse["bias"])
        words = tokenizer.convert_ids_to_tokens(encoded["input_ids"][0])
        terms: dict[str, float] = {}
        for word, weight in zip(words, weights, strict=True):
            if word not in ("[CLS]", "[SEP]", "[UNK]"):
                terms[word] = max(terms.get(word, 0.0), weight, 0.0)
        tokens = hidden[1:] @ multi["weight"].numpy().T + multi["bias"].numpy()
        return hidden[0] / np.linalg.norm(hidden[0]), terms, tokens / np.linalg.norm(tokens, axis=1, keepdims=True)

    (q_dense, q_terms, q_tokens), (p_dense, p_terms, p_tokens) = read(query), read(passage)
    return (
        float(q_dense @ p_dense),
        sum(weight * p_terms.get(word, 0.0) for word, weight in q_terms.items()),
        float(np.mean([max(float(q @ p) for p in p_tokens) for q in q_tokens])),
    )


@pytest.mark.model
@pytest.mark.parametrize("weights", [(1.0, 0.3, 1.0), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 2.0)])
def test_the_three_scores_and_their_sum(weights: tuple[float, float, float], folder: Path) -> None:
    reranker = load_bge_m3(str(folder), weights=weights, batch_size=2)
    assert isinstance(reranker, Reranker)
    found = reranker.scores([*QUERIES, "nothing to score"], [*PASSAGES, []])
    assert [len(row) for row in found] == [3, 2, 0]
    for query, texts, row in zip(QUERIES, PASSAGES, found, strict=False):
        for text, score in zip(texts, row, strict=True):
            expected = np.dot(weights, parts(folder, query, text)) / sum(weights)
            assert score == pytest.approx(float(expected), abs=1e-5)
    # the sparse part is 0 if no token is shared
    assert parts(folder, "where is the old bridge", "rice and tea")[1] == 0.0
    assert parts(folder, "tea tea", "rice")[1] == 0.0


@pytest.mark.model
def test_settings_belong_to_the_revision(folder: Path) -> None:
    revisions = {
        BgeM3Reranker(str(folder)).revision,
        BgeM3Reranker(str(folder), weights=(1.0, 1.0, 1.0)).revision,
        BgeM3Reranker(str(folder), max_length=8).revision,
    }
    assert len(revisions) == 3


@pytest.mark.model
def test_by_a_tasks_block(folder: Path, tmp_path: Path) -> None:
    block = {"mode": "all", "k": 1, "rerank": {"kind": "bge-m3", "model": str(folder)}}
    reranker = open_reranker(validated(Retrieval, block, "test"))
    assert isinstance(reranker, BgeM3Reranker)
    without = bert_folder(tmp_path / "without", "BertModel")
    block["rerank"] = {"kind": "bge-m3", "model": str(without)}
    with pytest.raises(ConfigError, match=r"without cannot be loaded: .*sparse_linear\.pt"):
        open_reranker(validated(Retrieval, block, "test"))


@pytest.mark.parametrize("weights", [[0, 0, 0], [1, -1, 1]])
def test_weights_must_make_sense(weights: list[float]) -> None:
    with pytest.raises(ConfigError, match="no weight may be negative, and one must be more than 0"):
        validated(Retrieval, {"mode": "all", "rerank": {"kind": "bge-m3", "weights": weights}}, "test")
