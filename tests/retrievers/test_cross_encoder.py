"""Cross-encoders as rerankers, with random weights: tokens, scores, and refusals."""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from mrag_eval.platform import ConfigError, CorpusError, MissingExtraError
from mrag_eval.retrievers import Reranker, checked_scores, load_cross_encoder
from mrag_eval.retrievers.rerank._cross_encoder import CrossEncoderReranker
from tests.worlds.tiny_models import bert_folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("sentence_transformers", minversion="6.0")
    return bert_folder(tmp_path_factory.mktemp("models") / "reranker")


def logit(folder: Path, query: str, passage: str, max_length: int) -> float:
    """Return the model's own output for one pair, of which only the passage may be cut."""
    import torch
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForSequenceClassification.from_pretrained(folder).eval()
    encoded = tokenizer(query, passage, truncation="only_second", max_length=max_length, return_tensors="pt")
    with torch.no_grad():
        return float(model(**encoded).logits[0, 0])


@pytest.mark.model
def test_scores_are_the_models_logits_in_the_order_of_the_passages(folder: Path) -> None:
    reranker = load_cross_encoder(str(folder), batch_size=2)
    assert isinstance(reranker, Reranker)
    queries = ["where does the ferry leaves from", "old bridge", "rice"]
    passages = [["the ferry to sund leaves from pier seven", "tea", "old rice bread from olm"], [], ["rice"]]
    scores = reranker.scores(queries, passages)
    assert [len(row) for row in scores] == [3, 0, 1]
    for query, texts, row in zip(queries, passages, scores, strict=True):
        for text, score in zip(texts, row, strict=True):
            assert score == pytest.approx(logit(folder, query, text, 64), abs=1e-5)
    assert any(score < 0 or score > 1 for row in scores for score in row)  # no sigmoid
    assert reranker.scores([], []) == []


@pytest.mark.model
def test_only_the_passage_is_cut(folder: Path) -> None:
    reranker = load_cross_encoder(str(folder), max_length=16)
    query = "where does the ferry to sund leaves from"  # 8 tokens, [CLS] and two [SEP]: 5 remain for the passage
    long = "old bridge of the river was built in varn"
    (scores,) = reranker.scores([query], [[long, "old bridge of the river", "old bridge of the"]])
    assert scores[0] == pytest.approx(logit(folder, query, long, 16), abs=1e-5)
    assert scores[0] == pytest.approx(scores[1], abs=1e-6)
    assert scores[0] != pytest.approx(scores[2], abs=1e-4)


@pytest.mark.model
def test_a_query_that_fills_the_pair_leaves_room_for_the_passage(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    reranker = load_cross_encoder(str(folder), max_length=16)
    words = "where does the ferry to sund leaves from pier seven of old varn river"
    # three quarters of 16 tokens are 12, the same as 16 minus the three special ones and one for the passage
    cut = " ".join(words.split()[:12])
    with caplog.at_level(logging.WARNING):
        (scores,) = reranker.scores([words], [["tea", "rice"]])
    assert scores[0] == pytest.approx(logit(folder, cut, "tea", 16), abs=1e-5)
    assert scores[0] != pytest.approx(scores[1], abs=1e-6)
    assert "1 query of more than 12 tokens, cut there (max_length = 16)" in caplog.text


@pytest.mark.model
def test_the_revision_distinguishes_settings_and_weights(folder: Path, tmp_path: Path) -> None:
    other = bert_folder(tmp_path / "other", seed=1)
    found = {
        CrossEncoderReranker(str(folder)).revision,
        CrossEncoderReranker(str(folder), max_length=32).revision,
        CrossEncoderReranker(str(other)).revision,
    }
    assert len(found) == 3
    # neither the batch nor a limit above the model's own changes a score
    assert CrossEncoderReranker(str(folder), batch_size=1, max_length=4096).revision in found


@pytest.mark.model
def test_invalid_rerankers_are_refused(tmp_path: Path) -> None:
    several = bert_folder(tmp_path / "several", labels=3)
    with pytest.raises(ConfigError, match=r"returns 3 numbers for a pair"):
        load_cross_encoder(str(several))
    with pytest.raises(ConfigError, match=r"reranker .*nowhere cannot be loaded"):
        load_cross_encoder(str(tmp_path / "nowhere"))


@pytest.mark.parametrize("module", [None, SimpleNamespace(__version__="5.3.0")])
def test_without_the_library_the_extra_is_named(module: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", module)
    with pytest.raises(MissingExtraError, match=r'pip install "mrag-eval\[rerank\]"'):
        CrossEncoderReranker("someone/never-loaded")


class Fixed:
    """A reranker with given scores."""

    name, revision = "fixed", "1"

    def scores(self, queries: Sequence[str], passages: Sequence[Sequence[str]]) -> list[Any]:
        return []


def test_scores_are_checked() -> None:
    assert [row.tolist() for row in checked_scores(Fixed(), [[1, 2], []], [["a", "b"], []])] == [[1.0, 2.0], []]
    with pytest.raises(CorpusError, match="reranker fixed returned a different number of scores"):
        checked_scores(Fixed(), [np.array([1.0])], [["a", "b"]])
    with pytest.raises(CorpusError, match=r"gave the score nan \(query 1, passage 0 of the batch\)"):
        checked_scores(Fixed(), [np.array([1.0]), np.array([np.nan])], [["a"], ["b"]])
