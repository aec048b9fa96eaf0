"""The choice of an edition's pages for a starter corpus, in one pass and bounded memory."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mrag_eval.platform import DataError
from mrag_eval.retrievers.corpora._outlines import Outline
from mrag_eval.retrievers.corpora._topics import NEAR, NO_PLACE, OTHER, PLACE, Topics
from mrag_eval.retrievers.index._hashing import hash64

# Of a number that 64 bits do not hold.
_DIGITS = 19


@dataclass(frozen=True)
class Chosen:
    """The numbers of the pages that were chosen, of ``read`` pages; ``nearness`` counts them by nearness."""

    pages: frozenset[str]
    read: int
    nearness: dict[int, int]


def choose(outlines: Iterable[Outline], topics: Topics, passages: int, size: int) -> Chosen:
    """Choose pages until they fill ``passages`` passages of ``size`` words (or characters), but at least one.

    The nearest pages come first. Among equally near ones each place gives a page in turn, its longest first, so that
    no place crowds out another. The order of the pages does not matter. Memory holds 23 bytes a page, and 16 a link of
    the pages about a place.

    Raises DataError for a page whose id is no number, and for an edition without pages.
    """
    table = _Table(topics, size)
    for outline in outlines:
        table.add(outline)
    return table.chosen(passages)


class _Table:
    """Number, nearness, place and length of every page."""

    def __init__(self, topics: Topics, size: int) -> None:
        self._topics, self._size = topics, size
        self._page, self._title = array("q"), array("Q")
        self._near, self._place, self._passages = array("b"), array("h"), array("i")
        self._linked: set[int] = set()

    def add(self, outline: Outline) -> None:
        if not (outline.page.isascii() and outline.page.isdigit() and len(outline.page) < _DIGITS):
            raise DataError(f"page '{outline.title}': its id '{outline.page}' is no number", "name a copy of Wikipedia")
        near, place = self._topics.near(outline)
        if near >= PLACE and place != NO_PLACE:
            self._linked.update(hash64(title) for title in outline.links())
        self._page.append(int(outline.page))
        self._title.append(hash64(outline.title) if near == OTHER else 0)
        self._near.append(near)
        self._place.append(place)
        self._passages.append(max(1, -(-outline.length // self._size)))

    def chosen(self, passages: int) -> Chosen:
        if not self._page:
            raise DataError("the edition holds no pages", "fetch the dump again")
        page, place = np.frombuffer(self._page, np.int64), np.frombuffer(self._place, np.int16)
        near, length = np.frombuffer(self._near, np.int8).copy(), np.frombuffer(self._passages, np.int32)
        if self._linked:
            linked = np.fromiter(self._linked, np.uint64, len(self._linked))
            near[(near == OTHER) & np.isin(np.frombuffer(self._title, np.uint64), linked)] = NEAR
        order = _in_turn(near, place, length, page)
        within = int(np.count_nonzero(np.cumsum(length[order], dtype=np.int64) <= passages))
        kept = order[: max(1, within)]
        counts = np.bincount(near[kept], minlength=4)
        return Chosen(
            frozenset(map(str, page[kept].tolist())),
            len(page),
            {number: int(count) for number, count in enumerate(counts)},
        )


def _in_turn(
    near: NDArray[np.int8], place: NDArray[np.int16], length: NDArray[np.int32], page: NDArray[np.int64]
) -> NDArray[np.intp]:
    """Return the order of the pages: nearest first, then places in turn, the longest page of each first."""
    by_place = np.lexsort((page, -length, place, -near))
    begins = np.ones(len(page), dtype=bool)
    begins[1:] = (np.diff(near[by_place]) != 0) | (np.diff(place[by_place]) != 0)
    start = np.maximum.accumulate(np.where(begins, np.arange(len(page)), 0))
    turn = np.empty(len(page), dtype=np.int64)
    turn[by_place] = np.arange(len(page)) - start
    return np.lexsort((page, place, turn, -near))
