"""The streamed lexical index compared with bm25s itself and with the formula."""

from __future__ import annotations

import math
from pathlib import Path

import bm25s
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mrag_eval.platform import CorpusError
from mrag_eval.retrievers.shards import _bm25_shard as bm25_shard
from mrag_eval.retrievers.shards._bm25_shard import Bm25Parameters, Bm25Shard, Postings, read_vocabulary
from mrag_eval.text import Analyzer

tokenize = Analyzer().tokenizer(None)


def build(folder: Path, batches: list[list[str]], parameters: Bm25Parameters | None = None) -> Bm25Shard:
    postings = Postings(tokenize)
    folder.mkdir(parents=True, exist_ok=True)
    lengths, pairs, words = folder / "lengths", folder / "postings", folder / "vocabulary"
    with lengths.open("wb") as one, pairs.open("wb") as two, words.open("wb") as three:
        for batch in batches:
            for file, content in zip((one, two, three), postings.encode(batch), strict=True):
                file.write(content)
    assert list(read_vocabulary(words)) == list(postings.vocabulary)
    bm25_shard.finish(folder / "bm25", [(lengths, pairs)], list(postings.vocabulary), parameters or Bm25Parameters())
    return Bm25Shard(folder / "bm25", sum(map(len, batches)), tokenize)


def test_by_hand(tmp_path: Path) -> None:
    shard = build(tmp_path, [["red red fish"], ["blue fish"]])
    # N = 2, mean length 2.5; "red": n = 1, idf = ln(1 + 1.5 / 1.5); tf = 2, k1 (1 - b + b * 3 / 2.5) = 1.5 * 1.15
    scores = shard.scores("RED")
    assert scores is not None
    assert scores.tolist() == pytest.approx([math.log(2) * 2 / (2 + 1.725), 0.0], rel=1e-6)
    assert shard.scores("green") is None
    assert shard.scores("?!") is None


_VOCABULARY = ["the", "old", "new", "red", "fish", "bridge", "旧桥", "河流", "강"]
_WORDS = st.lists(st.sampled_from(_VOCABULARY), max_size=12).map(" ".join)


@settings(max_examples=30)
@given(st.lists(_WORDS, min_size=1, max_size=25), _WORDS, st.integers(1, 5))
def test_same_scores_as_bm25s(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], query: str, size: int
) -> None:
    tokens = [tokenize(text) for text in texts]
    batches = [texts[start : start + size] for start in range(0, len(texts), size)]
    shard = build(tmp_path_factory.mktemp("bm25"), batches)
    found = shard.scores(query)
    known = [token for token in tokenize(query) if any(token in one for one in tokens)]
    if not known:
        assert found is None
        return
    reference = bm25s.BM25(k1=1.5, b=0.75, method="lucene")
    reference.index(tokens, show_progress=False)
    np.testing.assert_allclose(found, reference.get_scores(known), rtol=1e-5, atol=1e-7)


def test_blocks_are_joined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [f"word{number % 7} word{number % 3} common" for number in range(50)]
    whole = build(tmp_path / "whole", [texts]).scores("word3 common word2")
    monkeypatch.setattr(bm25_shard, "_BLOCK", 4)
    parts = build(tmp_path / "parts", [texts]).scores("word3 common word2")
    assert whole is not None
    assert parts is not None
    assert whole.tolist() == parts.tolist()


def test_the_matrix_is_mapped(tmp_path: Path) -> None:
    shard = build(tmp_path, [["red fish", "blue fish"]])
    assert isinstance(shard.model.scores["data"], np.memmap)
    in_memory = Bm25Shard(shard.folder, 2, tokenize, mmap=False)
    assert not isinstance(in_memory.model.scores["data"], np.memmap)


def test_passages_without_any_token(tmp_path: Path) -> None:
    shard = build(tmp_path, [["…", "?!"]])
    assert shard.scores("anything") is None


def test_wrong_count_is_refused(tmp_path: Path) -> None:
    shard = build(tmp_path, [["red fish"]])
    with pytest.raises(CorpusError, match="holds 1 passages, the manifest says 2"):
        Bm25Shard(shard.folder, 2, tokenize).scores("red")
