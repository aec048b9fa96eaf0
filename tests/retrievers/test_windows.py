"""Batches of texts of similar length: the same index for every window, less padding, and nothing embedded twice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mrag_eval.core import Passage
from mrag_eval.platform import ConfigError
from mrag_eval.retrievers import Index, build_index
from mrag_eval.retrievers.build._windows import Ahead, made
from mrag_eval.retrievers.embedding._sparse_encoders import SparseVector

MakeIndex = Callable[..., Index]


class Recording:
    """Remembers the lengths of the texts of every batch."""

    name, revision, dim = "recording", "1", 2

    def __init__(self) -> None:
        self.calls: list[list[int]] = []

    def embed_passages(self, texts: Sequence[str]) -> np.ndarray:
        self.calls.append([len(text) for text in texts])
        return np.asarray([[len(text), ord(text[0])] for text in texts], dtype=np.float32)

    embed_queries = embed_passages


class Terms:
    name, revision, dim = "terms", "1", 64

    def encode_passages(self, texts: Sequence[str]) -> list[SparseVector]:
        terms = [np.unique([ord(letter) % 64 for letter in text]).astype(np.int32) for text in texts]
        weights = [np.full(len(own), len(text), np.float32) for own, text in zip(terms, texts, strict=True)]
        return [SparseVector(*pair) for pair in zip(terms, weights, strict=True)]

    encode_queries = encode_passages


def passages(count: int) -> list[Passage]:
    lengths = np.random.default_rng(3).integers(1, 400, count).tolist()
    texts = ["ab가나"[n % 4] * length for n, length in enumerate(lengths)]
    return [Passage(id=f"p{n}", lang=("en", "ko")[n % 2], text=text) for n, text in enumerate(texts)]


def padding(calls: Sequence[Sequence[int]]) -> int:
    """Count the characters that a model computes in vain if it pads a batch to its longest text."""
    return sum(max(call) * len(call) - sum(call) for call in calls)


def test_batches_are_sorted_by_length_within_the_window_and_vectors_keep_their_place() -> None:
    texts = ["cccc", "a", "bb", "dddddd", "ee"]
    model = Recording()
    found = made([Passage(id=text, lang="en", text=text) for text in texts], model, 2)
    # lengths 4 1 2 6 2: ascending, equal ones in the order of the corpus
    assert model.calls == [[1, 2], [2, 4], [6]]
    assert found.vectors is not None
    assert found.vectors[:, 0].tolist() == [4, 1, 2, 6, 2]
    assert [passage.id for passage in found.passages] == texts


@pytest.mark.parametrize("kind", ["dense", "hybrid", "sparse"])
def test_the_index_is_the_same_whatever_the_window(make_index: MakeIndex, kind: str) -> None:
    corpus = passages(150)
    model: Any = Terms() if kind == "sparse" else Recording()
    found = {
        make_index(corpus, kind=kind, embedder=model, batch_size=8, window=window).manifest.fingerprint
        for window in (8, 24, 64, 1_000, None)
    }
    assert len(found) == 1


def test_a_window_saves_padding(make_index: MakeIndex) -> None:
    corpus, paddings = passages(400), []
    for window in (16, None):
        model = Recording()
        make_index(corpus, embedder=model, batch_size=16, window=window)
        paddings.append(padding(model.calls))
        assert sum(map(len, model.calls)) == 400
    # 16 uniform lengths up to 400 leave about 400 · 15/17 / 2 of padding per text; 128 sorted ones an eighth of that
    assert paddings[1] < 0.2 * paddings[0]


def test_a_window_smaller_than_a_batch_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"window is 7, it must be at least batch_size \(8\)"):
        build_index(passages(3), tmp_path / "i", embedder=Recording(), batch_size=8, window=7)


class Stopping(Recording):
    """Stops the process at a batch, as far as a test can simulate it."""

    def __init__(self, at: int) -> None:
        super().__init__()
        self.at = at

    def embed_passages(self, texts: Sequence[str]) -> np.ndarray:
        if len(self.calls) == self.at:
            raise KeyboardInterrupt
        return super().embed_passages(texts)


def test_a_build_that_stops_within_a_window_embeds_no_batch_twice(tmp_path: Path, make_index: MakeIndex) -> None:
    corpus = passages(100)
    whole = Recording()
    expected = make_index(corpus, embedder=whole, batch_size=8, window=80).manifest.fingerprint
    path = tmp_path / "i"
    settings: dict[str, Any] = {"batch_size": 8, "window": 80, "progress": False, "resume": True}
    calls = []
    for _ in range(4):
        model = Stopping(3)
        with pytest.raises(KeyboardInterrupt):
            build_index(corpus, path, embedder=model, **settings)
        calls += model.calls
    rest = Recording()
    index = build_index(corpus, path, embedder=rest, **settings)
    assert index.manifest.fingerprint == expected
    assert calls + rest.calls == whole.calls


def test_kept_batches_belong_to_their_window(tmp_path: Path) -> None:
    ahead = Ahead(tmp_path / "ahead")
    assert ahead.begin(["a", "b"], 1) == {}
    # in any order, as an endpoint answers
    ahead.keep(1, b"one")
    ahead.keep(0, b"two")
    assert Ahead(tmp_path / "ahead").begin(["a", "b"], 1) == {1: b"one", 0: b"two"}
    # a truncated batch is dropped, and the next one takes its place
    content = (tmp_path / "ahead").read_bytes()
    (tmp_path / "ahead").write_bytes(content[:-1])
    again = Ahead(tmp_path / "ahead")
    assert again.begin(["a", "b"], 1) == {1: b"one"}
    again.keep(0, b"2")
    assert Ahead(tmp_path / "ahead").begin(["a", "b"], 1) == {1: b"one", 0: b"2"}
    for texts, size in ((["a", "c"], 1), (["a", "b"], 2), (["ab", ""], 1)):
        assert Ahead(tmp_path / "ahead").begin(texts, size) == {}
        Ahead(tmp_path / "ahead").begin(["a", "b"], 1)


def test_sparse_vectors_are_kept_too(tmp_path: Path, make_index: MakeIndex) -> None:
    class Interrupted(Terms):
        calls = 0

        def encode_passages(self, texts: Sequence[str]) -> list[SparseVector]:
            self.calls += 1
            if self.calls == limit:
                raise KeyboardInterrupt
            return super().encode_passages(texts)

    corpus, limit = passages(60), 3
    expected = make_index(corpus, kind="sparse", embedder=Terms(), batch_size=8).manifest.fingerprint
    settings: dict[str, Any] = {"kind": "sparse", "batch_size": 8, "progress": False}
    with pytest.raises(KeyboardInterrupt):
        build_index(corpus, tmp_path / "i", embedder=Interrupted(), **settings)
    limit, model = -1, Interrupted()
    assert build_index(corpus, tmp_path / "i", embedder=model, resume=True, **settings).manifest.fingerprint == expected
    # 60 passages are eight batches, two of which existed
    assert model.calls == 6
