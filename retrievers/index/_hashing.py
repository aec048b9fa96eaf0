"""Stable ids and content hashes of passages."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mrag_eval.core import Passage

_MODULUS = 1 << 256
_MASK = (1 << 64) - 1
_LENGTH = struct.Struct("<Q").pack
_LENGTH_SIZE = 8


def _packed(fields: Iterable[str]) -> bytes:
    """Join fields, each preceded by its length, so that different tuples give different bytes."""
    parts: list[bytes] = []
    for field in fields:
        raw = field.encode("utf-8")
        parts.append(_LENGTH(len(raw)))
        parts.append(raw)
    return b"".join(parts)


def passage_id(doc_id: str, lang: str, position: int, text: str) -> str:
    """Return 16 hex digits that depend only on document, language, position and text, so they are stable over rebuilds.

    The language is included because parallel corpora give translations of a document the same id.
    """
    return hashlib.blake2b(_packed((doc_id, lang, str(position), text)), digest_size=8).hexdigest()


def hash64(text: str) -> int:
    """Return a 64-bit hash that is the same in every process (unlike :func:`hash`)."""
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8"), digest_size=8).digest(), "little")


def hashes64(names: Iterable[bytes]) -> NDArray[np.uint64]:
    """Return :func:`hash64` of many texts in UTF-8."""
    digests = [hashlib.blake2b(name, digest_size=8).digest() for name in names]
    return np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64, copy=False)


def joined_rows(columns: Sequence[Any]) -> tuple[memoryview, list[int]]:
    """Return the rows of Arrow arrays of bytes, one after the other, and where they begin and the last one ends.

    A column may be one value for all rows.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = pa.large_binary()
    arrays = [pa.scalar(column, kind) if isinstance(column, bytes) else column for column in columns]
    rows = pc.binary_join_element_wise(*arrays, pa.scalar(b"", kind))
    _, ends, content = rows.buffers()
    bounds: list[int] = np.frombuffer(ends, dtype="<i8", count=len(rows) + 1).tolist()
    return memoryview(content)[: bounds[-1]], bounds


def _lengths(field: Any) -> Any:
    """Return the lengths of an Arrow array of bytes as :func:`_packed` writes them."""
    import pyarrow as pa
    import pyarrow.compute as pc

    lengths = pc.binary_length(field).to_numpy().astype("<u8")
    fixed = pa.Array.from_buffers(pa.binary(_LENGTH_SIZE), len(lengths), [None, pa.py_buffer(lengths)])
    return fixed.cast(pa.large_binary())


class ContentHash:
    """Hash of a multiset of passages, independent of their order and resumable from its hex form.

    It is the sum of the passages' SHA-256 values modulo 2**256, so that a parallel or resumed build arrives at
    the same value. It protects against mistakes, not against an adversary.
    """

    def __init__(self, hexdigest: str = "0") -> None:
        self._sum = int(hexdigest, 16)

    def add(self, passage: Passage) -> None:
        record = _packed((passage.id, passage.doc_id, passage.lang, passage.title, passage.text))
        self._sum = (self._sum + int.from_bytes(hashlib.sha256(record).digest(), "little")) % _MODULUS

    def add_encoded(self, lang: str, fields: Sequence[Any]) -> None:
        """Add passages of one language: ids, document ids, titles and texts, as Arrow arrays of bytes in UTF-8."""
        code = lang.encode()
        one, doc, title, text = ((_lengths(field), field) for field in fields)
        records, bounds = joined_rows([*one, *doc, _LENGTH(len(code)) + code, *title, *text])
        digests = [hashlib.sha256(records[start:end]).digest() for start, end in pairwise(bounds)]
        # 256-bit numbers as eight columns of 32 bits, whose sums fit 64
        words = np.frombuffer(b"".join(digests), "<u4").reshape(-1, 8).sum(axis=0, dtype=np.uint64)
        total = sum(word << 32 * place for place, word in enumerate(words.tolist()))
        self._sum = (self._sum + total) % _MODULUS

    def add_all(self, hexdigest: str) -> None:
        """Add another multiset by its hash."""
        self._sum = (self._sum + int(hexdigest, 16)) % _MODULUS

    @property
    def hexdigest(self) -> str:
        return f"{self._sum:064x}"


class SeenIds:
    """Set of seen ids in about 8 bytes each: sorted runs of Python's 64-bit hashes, merged as they grow.

    Two ids with the same hash count as a repetition: a chance of one in 90,000 at 20 million ids, and in another
    process two others would.
    """

    _RECENT = 65_536

    def __init__(self) -> None:
        self._recent: set[int] = set()
        self._runs: list[NDArray[np.uint64]] = []

    def add(self, identifier: str) -> bool:
        """Remember ``identifier``; return False if it is known already."""
        value = hash(identifier) & _MASK
        if value in self._recent or any(self._holds(run, value) for run in self._runs):
            return False
        self._recent.add(value)
        if len(self._recent) >= self._RECENT:
            self._fold()
        return True

    def add_many(self, identifiers: Sequence[str]) -> str | None:
        """Remember ``identifiers``; return the first that is known already, or None. Then some may be remembered."""
        hashes = np.fromiter(map(hash, identifiers), dtype=np.int64, count=len(identifiers)).view(np.uint64)
        values = hashes.tolist()
        distinct = set(values)
        is_new = len(distinct) == len(values) and distinct.isdisjoint(self._recent)
        if not is_new or any(_common(run, hashes) for run in self._runs):
            return next((identifier for identifier in identifiers if not self.add(identifier)), None)
        self._recent |= distinct
        if len(self._recent) >= self._RECENT:
            self._fold()
        return None

    @staticmethod
    def _holds(run: NDArray[np.uint64], value: int) -> bool:
        at = int(np.searchsorted(run, np.uint64(value)))
        return at < len(run) and int(run[at]) == value

    def _fold(self) -> None:
        run = np.sort(np.fromiter(self._recent, dtype=np.uint64, count=len(self._recent)))
        self._recent = set()
        # merging runs of similar size keeps their number logarithmic and moves each id few times
        while self._runs and len(self._runs[-1]) <= 2 * len(run):
            run = np.sort(np.concatenate([self._runs.pop(), run]))
        self._runs.append(run)


def _common(run: NDArray[np.uint64], values: NDArray[np.uint64]) -> bool:
    """Return whether a sorted array holds one of the values."""
    # ascending, so that each is looked for near the one before, and not all over the memory
    values = np.sort(values)
    places = np.searchsorted(run, values)
    return bool((run[np.minimum(places, len(run) - 1)] == values).any())
