"""Lexical search: BM25 (Lucene's variant) in the file format of bm25s, built in constant memory.

During a build, the length and the (token, count) pairs of each passage are appended to two files. :func:`finish` turns
them into the sparse score matrix that bm25s maps into memory.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mrag_eval.platform import CorpusError, mapped_array, save_array
from mrag_eval.text import Tokenizer

_BLOCK = 32_768

FILES = (
    "data.csc.index.npy",
    "indices.csc.index.npy",
    "indptr.csc.index.npy",
    "vocab.index.json",
    "params.index.json",
)


@dataclass(frozen=True, slots=True)
class Bm25Parameters:
    """``score = Σ idf(t) · tf / (tf + k1 · (1 − b + b · length / mean length))``, idf = ln(1 + (N − n + ½) / (n + ½)).

    Source: Robertson and Zaragoza, The Probabilistic Relevance Framework (2009); idf as in Lucene.
    """

    k1: float = 1.5
    b: float = 0.75


class Postings:
    """Number the tokens of a shard in order of appearance and encode passages for the two files."""

    def __init__(self, tokenizer: Tokenizer, vocabulary: Iterable[str] = ()) -> None:
        self._tokenizer = tokenizer
        self.vocabulary: dict[str, int] = {token: number for number, token in enumerate(vocabulary)}

    def encode(self, texts: Sequence[str]) -> tuple[bytes, bytes, bytes]:
        """Return the bytes to append to the files of lengths, postings and vocabulary.

        Lengths are int32 pairs (tokens, distinct tokens) per passage, postings int32 pairs (token, count).
        """
        vocabulary = self.vocabulary
        lengths: list[int] = []
        postings: list[int] = []
        added: list[str] = []
        for text in texts:
            counts = Counter(self._tokenizer(text))
            lengths += (sum(counts.values()), len(counts))
            for token, count in counts.items():
                number = vocabulary.get(token)
                if number is None:
                    number = vocabulary[token] = len(vocabulary)
                    added.append(json.dumps(token) + "\n")
                postings += (number, count)
        return np.asarray(lengths, "<i4").tobytes(), np.asarray(postings, "<i4").tobytes(), "".join(added).encode()


def chosen(lengths: bytes, postings: bytes, positions: Sequence[int]) -> tuple[bytes, bytes]:
    """Return lengths and postings of some passages of an encoded batch."""
    counts = np.frombuffer(lengths, "<i4").reshape(-1, 2)
    own = np.split(np.frombuffer(postings, "<i4").reshape(-1, 2), np.cumsum(counts[:-1, 1]))
    return counts[positions].tobytes(), np.concatenate([own[position] for position in positions]).tobytes()


def read_vocabulary(path: Path) -> Iterator[str]:
    """Yield the tokens of a vocabulary file, in order of their numbers."""
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def _blocks(lengths_path: Path, postings_path: Path) -> Iterator[tuple[NDArray[np.int32], NDArray[np.int32]]]:
    """Yield blocks of passages: their (tokens, distinct tokens) and (token, count) pairs."""
    with lengths_path.open("rb") as lengths_file, postings_path.open("rb") as postings_file:
        while raw := lengths_file.read(8 * _BLOCK):
            lengths = np.frombuffer(raw, "<i4").reshape(-1, 2)
            pairs = np.frombuffer(postings_file.read(8 * int(lengths[:, 1].sum())), "<i4").reshape(-1, 2)
            yield lengths, pairs


def finish(
    folder: Path, sources: Sequence[tuple[Path, Path]], vocabulary: Sequence[str], parameters: Bm25Parameters
) -> None:
    """Write a bm25s index from files of lengths and postings, in the order given.

    Two passes over the files; memory grows with the vocabulary and one block of passages, not with the corpus.
    """
    import bm25s

    folder.mkdir(parents=True, exist_ok=True)
    size = len(vocabulary)
    frequencies = np.zeros(size, dtype=np.int64)
    passages = tokens = 0
    for source in sources:
        for lengths, pairs in _blocks(*source):
            frequencies += np.bincount(pairs[:, 0], minlength=size)
            passages += len(lengths)
            tokens += int(lengths[:, 0].sum())
    starts = np.zeros(size + 1, dtype=np.int64)
    np.cumsum(frequencies, out=starts[1:])
    save_array(folder / "indptr.csc.index.npy", starts)
    total = int(starts[-1])
    # an empty file cannot be mapped, so a shard without tokens keeps one unused entry
    shape = (max(total, 1),)
    data = mapped_array(folder / "data.csc.index.npy", np.float32, shape)
    indices = mapped_array(folder / "indices.csc.index.npy", np.int32, shape)
    idf = np.log(1.0 + (passages - frequencies + 0.5) / (frequencies + 0.5))
    mean_length = tokens / passages if tokens else 1.0
    cursor = starts[:-1].copy()
    first = 0
    for source in sources:
        for lengths, pairs in _blocks(*source):
            token, count = pairs[:, 0], pairs[:, 1].astype(np.float64)
            passage = np.repeat(np.arange(len(lengths)), lengths[:, 1])
            saturation = parameters.k1 * (1 - parameters.b + parameters.b * lengths[:, 0] / mean_length)
            score = idf[token] * count / (count + saturation[passage])
            order = np.argsort(token, kind="stable")
            distinct, at, times = np.unique(token[order], return_index=True, return_counts=True)
            place = np.repeat(cursor[distinct] - at, times) + np.arange(len(order))
            data[place] = score[order]
            indices[place] = passage[order] + first
            cursor[distinct] += times
            first += len(lengths)
    data.flush()
    indices.flush()
    numbered = {word: number for number, word in enumerate(vocabulary)}
    (folder / "vocab.index.json").write_text(json.dumps(numbered, ensure_ascii=False), encoding="utf-8")
    params = asdict(parameters) | {
        "delta": 0.5,
        "method": "lucene",
        "idf_method": "lucene",
        "dtype": "float32",
        "int_dtype": "int32",
        "num_docs": passages,
        "version": bm25s.__version__,
        "backend": "numpy",
    }
    (folder / "params.index.json").write_text(json.dumps(params, indent=4), encoding="utf-8")


class Bm25Shard:
    """A bm25s index that tokenises queries like its passages.

    Args:
        folder: the files of bm25s.
        count: expected number of passages.
        tokenizer: the one named in the manifest.
        first_row: the row of the first passage in the index.
        mmap: map the score matrix instead of reading it.
    """

    def __init__(
        self, folder: Path, count: int, tokenizer: Tokenizer, *, first_row: int = 0, mmap: bool = True
    ) -> None:
        self.folder, self.count, self.tokenizer, self.first_row, self.mmap = folder, count, tokenizer, first_row, mmap
        self._model: Any = None

    @property
    def model(self) -> Any:
        """Return the bm25s retriever, opened on first use."""
        if self._model is None:
            import bm25s

            try:
                model = bm25s.BM25.load(str(self.folder), mmap=self.mmap, show_progress=False)
            except (OSError, ValueError, KeyError) as error:
                raise CorpusError(f"shard {self.folder} cannot be read: {error}", "rebuild the index") from error
            if model.scores["num_docs"] != self.count:
                raise CorpusError(
                    f"shard {self.folder} holds {model.scores['num_docs']} passages, the manifest says {self.count}",
                    "rebuild the index",
                )
            self._model = model
        return self._model

    def scores(self, query: str) -> NDArray[np.float32] | None:
        """Return the BM25 score of every passage, or None if no passage shares a token with the query."""
        numbers = self.model.get_tokens_ids(self.tokenizer(query))
        if not numbers:
            return None
        scores: NDArray[np.float32] = self.model.get_scores_from_ids(numbers)
        return scores
