"""Embedding passages sorted by length within a window, so that batches need little padding."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mrag_eval.core import Passage
from mrag_eval.retrievers.build._intake import batches
from mrag_eval.retrievers.embedding._embedders import Embedder, Vectors, batch_size_for, vectors_arriving
from mrag_eval.retrievers.embedding._sparse_encoders import SparseEncoder, SparseVector, checked_sparse
from mrag_eval.retrievers.shards import _sparse_shard as sparse_shard

# default number of batches in a window
WINDOW = 8


@dataclass(frozen=True)
class Made:
    """Passages with their vectors, in corpus order; both kinds are None in a lexical index.

    ``norms`` are the lengths of the vectors, where they are known.
    """

    passages: Sequence[Passage]
    vectors: Vectors | None = None
    sparse: Sequence[SparseVector] | None = None
    norms: Vectors | None = None


class Ahead:
    """File with the vectors of a window's finished batches, kept until the window is written.

    A build killed within a window therefore loses only the batches in progress. The file starts with a hash of the
    window's texts and batch size; each batch has its number and length in front.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def begin(self, texts: Sequence[str], batch_size: int) -> dict[int, bytes]:
        """Start a window; return its batches from an earlier attempt, by number."""
        digest = hashlib.sha256(f"{_FORMAT} {batch_size}".encode())
        for text in texts:
            raw = text.encode()
            digest.update(len(raw).to_bytes(8, "little") + raw)
        key = digest.digest()
        kept: dict[int, bytes] = {}
        at = len(key)
        if self._path.exists():
            content = self._path.read_bytes()
            if not content.startswith(key):
                content = b""
            while at + _HEAD <= len(content):
                number, length = (int.from_bytes(content[at + n : at + n + 8], "little") for n in (0, 8))
                if at + _HEAD + length > len(content):
                    break
                kept[number] = content[at + _HEAD : at + _HEAD + length]
                at += _HEAD + length
        if kept:
            with self._path.open("r+b") as file:
                file.truncate(at)
        else:
            self._path.write_bytes(key)
        return kept

    def keep(self, number: int, part: bytes) -> None:
        """Append one batch."""
        with self._path.open("ab") as file:
            file.write(number.to_bytes(8, "little") + len(part).to_bytes(8, "little") + part)

    def end(self) -> None:
        """Delete the file once the window is written."""
        self._path.unlink(missing_ok=True)


_FORMAT = 2
# bytes in front of a batch
_HEAD = 16


def made_in_windows(
    passages: Iterable[Passage],
    model: Embedder | SparseEncoder | None,
    *,
    batch_size: int,
    window: int,
    ahead: Ahead,
    on_batch: Callable[[int], None],
) -> Iterator[Made]:
    """Yield windows of passages with their vectors; call ``on_batch`` after every batch."""
    if model is None:
        for held in batches(passages, batch_size):
            on_batch(len(held))
            yield Made(held)
        return
    for held in batches(passages, window):
        yield made(held, model, batch_size, ahead, on_batch)
        ahead.end()


def made(
    passages: list[Passage],
    model: Embedder | SparseEncoder,
    batch_size: int,
    ahead: Ahead | None = None,
    on_batch: Callable[[int], None] = lambda _: None,
) -> Made:
    """Embed one window in batches of similar length."""
    texts, batch_size = [passage.text for passage in passages], batch_size_for(model, batch_size)
    order = sorted(range(len(texts)), key=lambda position: len(texts[position]))
    places = [order[start : start + batch_size] for start in range(0, len(order), batch_size)]
    ahead = None if len(places) < 2 else ahead
    kept = ahead.begin(texts, batch_size) if ahead is not None else {}
    left = [number for number in range(len(places)) if number not in kept]
    asked = [[texts[position] for position in places[number]] for number in left]
    for number in kept:
        on_batch(len(places[number]))
    if isinstance(model, SparseEncoder):
        sparse: dict[int, SparseVector] = {}
        for number, content in kept.items():
            sparse.update(zip(places[number], sparse_shard.decode(content, len(places[number])), strict=True))
        for number, batch in zip(left, asked, strict=True):
            found = checked_sparse(model, model.encode_passages(batch), len(batch))
            sparse.update(zip(places[number], found, strict=True))
            if ahead is not None:
                ahead.keep(number, b"".join(sparse_shard.encode(found)))
            on_batch(len(batch))
        return Made(passages, None, [sparse[position] for position in range(len(texts))])
    vectors = np.empty((len(texts), model.dim), dtype=np.float32)
    for number, content in kept.items():
        vectors[places[number]] = np.frombuffer(content, "<f4").reshape(-1, model.dim)
    ids = [[passages[position].id for position in places[number]] for number in left]
    with closing(vectors_arriving(model, asked, ids=ids)) as arriving:
        for nth, fresh in arriving:
            vectors[places[left[nth]]] = fresh
            if ahead is not None:
                ahead.keep(left[nth], fresh.astype("<f4", copy=False).tobytes())
            on_batch(len(asked[nth]))
    return Made(passages, vectors)
