"""Dense shards under construction: vectors appended batch by batch, and finished into FAISS files.

``float32`` and ``float16`` vectors are appended to the shard itself. The codes of ``int8`` divide the range of each
dimension, which is known only at the end. So its vectors are appended to a working file as float16, and finishing reads
that twice: for the lowest and highest value of every dimension, then to code them. No value is clipped, and the codes
depend neither on batches nor on interruptions. The working file takes two bytes a dimension until the index is whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from mrag_eval.core import Passage
from mrag_eval.platform import DataError
from mrag_eval.retrievers.shards._codes import FLOAT16, FLOAT16_MAX, INT8, Codes, Vectors, ranges_of

WORK = "work"
# bytes of float32 vectors handled at a time
_BLOCK = 16 << 20


def vectors_name(lang: str) -> str:
    return f"dense/{lang}.faiss"


def uncoded_name(lang: str) -> str:
    return f"{WORK}/{lang}.float16"


def encoded(lang: str, store: str, vectors: Vectors, *, is_first: bool) -> Iterator[tuple[str, bytes | memoryview]]:
    """Yield the name of a file and the bytes to append to it, for vectors of one batch within the range."""
    if store == INT8:
        yield uncoded_name(lang), Codes(FLOAT16, vectors.shape[1]).encode(vectors)
        return
    codes = Codes(store, vectors.shape[1])
    if is_first:
        yield vectors_name(lang), bytes(codes.header_size)
    yield vectors_name(lang), codes.encode(vectors)


def finish_dense(folder: Path, store: str, lang: str, count: int, dimension: int) -> None:
    """Write the FAISS file of a language from what was appended."""
    path = folder / vectors_name(lang)
    if store != INT8:
        Codes(store, dimension).finish(path, count)
        return
    source = folder / uncoded_name(lang)
    low = np.full(dimension, np.inf, dtype=np.float32)
    high = -low
    for vectors in _blocks(source, dimension):
        np.minimum(low, vectors.min(axis=0), out=low)
        np.maximum(high, vectors.max(axis=0), out=high)
    codes = Codes(INT8, dimension, ranges_of(low, high))
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.write(bytes(codes.header_size))
        for vectors in _blocks(source, dimension):
            file.write(codes.encode(vectors))
    codes.finish(path, count)


def _blocks(path: Path, dimension: int) -> Iterator[Vectors]:
    """Yield the vectors of a working file, block by block."""
    codes = Codes(FLOAT16, dimension)
    size = codes.width * max(1, _BLOCK // (4 * dimension))
    with path.open("rb") as file:
        while raw := file.read(size):
            yield codes.decode(np.frombuffer(raw, dtype=np.uint8).reshape(-1, codes.width))


def norms_of(vectors: Vectors) -> Vectors:
    """Return the length of every vector."""
    norms: Vectors = np.sqrt(np.einsum("nd,nd->n", vectors, vectors))
    return norms


def check_range(passages: Sequence[Passage], vectors: Vectors) -> None:
    """Raise DataError for a value that float16 cannot hold, naming the passage."""
    largest = np.abs(vectors).max(axis=1)
    # `not` also finds values that are no numbers
    wrong = np.flatnonzero(~(largest <= FLOAT16_MAX))
    if len(wrong):
        raise DataError(
            f"the vector of passage '{passages[wrong[0]].id}' has the value {largest[wrong[0]]:g}; "
            f"float16 holds at most {FLOAT16_MAX:,.0f}",
            "store the vectors as they are: --store float32",
        )
