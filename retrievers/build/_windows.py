"""Embedding passages sorted by length within a window, so that batches need little padding."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mrag_eval.core import Passage
from mrag_eval.retrievers.build._intake import batches
from mrag_eval.retrievers.embedding._embedders import Embedder, Vectors, checked
from mrag_eval.retrievers.embedding._sparse_encoders import SparseEncoder, SparseVector, checked_sparse
from mrag_eval.retrievers.shards import _sparse_shard as sparse_shard

# default number of batches in a window
WINDOW = 8

Part = Vectors | Sequence[SparseVector]


@dataclass(frozen=True)
class Made:
    """Passages with their vectors, in corpus order; both kinds are None in a lexical index."""

    passages: list[Passage]
    vectors: Vectors | None = None
    sparse: Sequence[SparseVector] | None = None


class Ahead:
    """File with the vectors of a window's finished batches, kept until the window is written.

    A build killed within a window therefore loses only one batch. The file starts with a hash of the window's texts and
    batch size.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def begin(self, texts: Sequence[str], batch_size: int) -> list[bytes]:
        """Start a window; return its batches from an earlier attempt."""
        digest = hashlib.sha256(str(batch_size).encode())
        for text in texts:
            raw = text.encode()
            digest.update(len(raw).to_bytes(8, "little") + raw)
        key = digest.digest()
        kept: list[bytes] = []
        if self._path.exists():
            content = self._path.read_bytes()
            at = len(key) if content.startswith(key) else len(content)
            while at + 8 <= len(content):
                end = at + 8 + int.from_bytes(content[at : at + 8], "little")
                if end > len(content):
                    break
                kept.append(content[at + 8 : end])
                at = end
        if kept:
            with self._path.open("r+b") as file:
                file.truncate(len(key) + sum(8 + len(part) for part in kept))
        else:
            self._path.write_bytes(key)
        return kept

    def keep(self, part: bytes) -> None:
        """Append one batch."""
        with self._path.open("ab") as file:
            file.write(len(part).to_bytes(8, "little") + part)

    def end(self) -> None:
        """Delete the file once the window is written."""
        self._path.unlink(missing_ok=True)


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
        yield made(held, model, batch_size, ahead if len(held) > batch_size else None, on_batch)
        ahead.end()


def made(
    passages: list[Passage],
    model: Embedder | SparseEncoder,
    batch_size: int,
    ahead: Ahead | None = None,
    on_batch: Callable[[int], None] = lambda _: None,
) -> Made:
    """Embed one window in batches of similar length."""
    texts = [passage.text for passage in passages]
    order = sorted(range(len(texts)), key=lambda position: len(texts[position]))
    kept = ahead.begin(texts, batch_size) if ahead is not None else []
    vectors = None if isinstance(model, SparseEncoder) else np.empty((len(texts), model.dim), dtype=np.float32)
    sparse: dict[int, SparseVector] = {}
    for number, start in enumerate(range(0, len(order), batch_size)):
        positions = order[start : start + batch_size]
        own = [texts[position] for position in positions]
        if isinstance(model, SparseEncoder):
            if number < len(kept):
                found: Sequence[SparseVector] = sparse_shard.decode(kept[number], len(own))
            else:
                found = checked_sparse(model, model.encode_passages(own), len(own))
                if ahead is not None:
                    ahead.keep(b"".join(sparse_shard.encode(found)))
            sparse.update(zip(positions, found, strict=True))
        else:
            assert vectors is not None
            if number < len(kept):
                vectors[positions] = np.frombuffer(kept[number], "<f4").reshape(len(own), model.dim)
            else:
                fresh = checked(model, model.embed_passages(own), len(own))
                vectors[positions] = fresh
                if ahead is not None:
                    ahead.keep(fresh.astype("<f4", copy=False).tobytes())
        on_batch(len(own))
    return Made(passages, vectors, [sparse[position] for position in range(len(texts))] if sparse else None)
