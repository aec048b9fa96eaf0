"""Stable ids and content hashes of passages."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from mrag_eval.core import Passage

_MODULUS = 1 << 256


def _packed(fields: Iterable[str]) -> bytes:
    """Join fields, each preceded by its length, so that different tuples give different bytes."""
    parts: list[bytes] = []
    for field in fields:
        raw = field.encode("utf-8")
        parts.append(len(raw).to_bytes(8, "little"))
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

    def add_all(self, hexdigest: str) -> None:
        """Add another multiset by its hash."""
        self._sum = (self._sum + int(hexdigest, 16)) % _MODULUS

    @property
    def hexdigest(self) -> str:
        return f"{self._sum:064x}"


class SeenIds:
    """Set of seen ids in about 8 bytes each: sorted runs of 64-bit hashes, merged as they grow.

    Two ids with the same hash count as a repetition: a chance of one in 90,000 at 20 million ids.
    """

    _RECENT = 65_536

    def __init__(self) -> None:
        self._recent: set[int] = set()
        self._runs: list[NDArray[np.uint64]] = []

    def add(self, identifier: str) -> bool:
        """Remember ``identifier``; return False if it is known already."""
        value = hash64(identifier)
        if value in self._recent or any(self._holds(run, value) for run in self._runs):
            return False
        self._recent.add(value)
        if len(self._recent) >= self._RECENT:
            self._fold()
        return True

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
