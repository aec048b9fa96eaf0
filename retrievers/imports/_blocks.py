"""Consecutive rows of a source of vectors, and their checks."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from mrag_eval.core import check_id
from mrag_eval.platform import DataError
from mrag_eval.retrievers.build._dense_files import norms_of
from mrag_eval.retrievers.corpora._reading import Reading
from mrag_eval.retrievers.embedding._embedders import Vectors
from mrag_eval.retrievers.index._hashing import SeenIds
from mrag_eval.retrievers.index._passage_columns import PassageColumns

T = TypeVar("T")

# Rows read and written at a time.
BLOCK = 4_096
# Blocks made before they are asked for: the last one of a row group is small.
_AHEAD = 2
# Norms this close to 1 differ from it by the rounding of float16.
_ROUNDING = 1e-3


@dataclass(frozen=True)
class PassageBlock:
    """Consecutive passages of one file, with their vectors as they are there (rows × dimensions, any number type).

    ``vectors`` is None where an earlier attempt has written the rows. ``file`` and ``rows`` (their numbers in it, from
    1) are for messages.
    """

    passages: PassageColumns
    vectors: NDArray[Any] | None
    file: str
    rows: Sequence[int]

    def __len__(self) -> int:
        return len(self.passages)

    def where(self, row: int) -> str:
        """Return the place of a row of the block, for messages."""
        return f"{self.file}, row {self.rows[row]:,}"

    def of(self, rows: Sequence[int]) -> PassageBlock:
        """Return the block with some of its rows."""
        if len(rows) == len(self):
            return self
        vectors = None if self.vectors is None else self.vectors[list(rows)]
        return PassageBlock(self.passages.take(rows), vectors, self.file, [self.rows[row] for row in rows])


class VectorSource(Protocol):
    """A source of passages with vectors; ``name`` and ``revision`` (a commit of the hub) go into the manifest."""

    name: str
    revision: str | None

    def blocks(self, done: int, reading: Reading) -> Iterator[PassageBlock]:
        """Yield all blocks in order, those within the first ``done`` rows without vectors; update ``reading``."""
        ...


def read_ahead(items: Iterator[T]) -> Iterator[T]:
    """Yield items while a thread makes the next two."""
    thread = ThreadPoolExecutor(1, "mrag-eval-import")
    try:
        coming = deque(thread.submit(next, items, None) for _ in range(_AHEAD))
        while (item := coming.popleft().result()) is not None:
            coming.append(thread.submit(next, items, None))
            yield item
    finally:
        # no waiting: the thread itself may be the one that collects an iterator nobody uses any more
        thread.shutdown(wait=False, cancel_futures=True)


def without_empty(block: PassageBlock, *, skip: bool) -> PassageBlock:
    """Return a block of passages with text; raise DataError, naming the row, unless ``skip`` leaves the others out."""
    import pyarrow.compute as pc

    texts = block.passages.texts
    blank = pc.or_(pc.utf8_is_space(texts), pc.equal(texts, ""))
    empty = np.flatnonzero(blank.to_numpy(zero_copy_only=False)).tolist()
    if not empty:
        return block
    if not skip:
        raise DataError(f"{block.where(empty[0])}: the text is empty", "leave such rows out: --skip-empty")
    return block.of(np.setdiff1d(np.arange(len(block)), empty).tolist())


def check_ids(block: PassageBlock, seen: SeenIds) -> None:
    """Raise DataError, naming the row, for an id that is empty, holds a control character or was ``seen``."""
    identifiers, documents = block.passages.ids.to_pylist(), block.passages.doc_ids.to_pylist()
    if not all(identifiers):
        raise DataError(f"{block.where(identifiers.index(''))}: the id is empty", "name another column: --key id=NAME")
    if not ("".join(identifiers).isprintable() and "".join(documents).isprintable()):
        for row, (identifier, document) in enumerate(zip(identifiers, documents, strict=True)):
            check_id(identifier, block.where(row))
            check_id(document, f"{block.where(row)}, document id")
    if (twice := seen.add_many(identifiers)) is not None:
        row = len(identifiers) - 1 - identifiers[::-1].index(twice)
        raise DataError(
            f"{block.where(row)}: passage id '{twice}' appears a second time",
            "name a column of unique ids (--key id=NAME), or let ids be made: --key id=",
        )


def checked_vectors(block: PassageBlock, dimension: int, *, unit: bool) -> tuple[Vectors, Vectors, bool]:
    """Return the vectors of a block as float32, their lengths, and whether any was scaled.

    With ``unit``, vectors whose length is not 1 are scaled to it. Raises DataError, naming the row, for a vector of
    another dimension, with a value that is not finite, or without a direction.
    """
    assert block.vectors is not None
    if block.vectors.shape[1] != dimension:
        raise DataError(
            f"{block.where(0)}: the vector has {block.vectors.shape[1]:,} dimensions, expected {dimension:,}",
            "name the column of the vectors, and the embedder that made them: --vectors, --embedder",
        )
    vectors: Vectors = block.vectors.astype(np.float32, copy=False)
    norms = norms_of(vectors)
    if not np.isfinite(norms).all():
        row = int(np.flatnonzero(~np.isfinite(norms))[0])
        raise DataError(f"{block.where(row)}: the vector holds a value that is not finite", "the file may be damaged")
    if not norms.all():
        row = int(np.flatnonzero(norms == 0)[0])
        raise DataError(f"{block.where(row)}: the vector is zero", "the file may be damaged, or cut off")
    off = np.abs(norms - 1) > _ROUNDING
    if not unit or not off.any():
        return vectors, norms, False
    scaled = np.array(vectors)
    scaled[off] /= norms[off, None]
    return scaled, norms_of(scaled), True
