"""Order of hits: score descending, then passage id ascending."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from mrag_eval.platform import content_key

Rows = NDArray[np.int64]
Scores = NDArray[np.float64]
IdsOf = Callable[[Rows], list[str]]

# Reciprocal rank fusion's constant; see mrag_eval.retrievers.index._fusion
RRF_CONSTANT = 60


def top_k(scores: Scores, rows: Rows, k: int, ids_of: IdsOf, first: Rows | None = None) -> tuple[Scores, Rows]:
    """Return the first ``k`` of every line of ``scores`` and ``rows`` (queries × candidates), in the order of hits.

    Candidates that tie are in the order of ``first`` (:func:`language_places`), where it is given, before their ids.
    Places without a candidate have row -1 and score -inf, and come last. Ids are fetched at once, and only for
    candidates that tie near or within the first ``k``.
    """
    order = np.argsort(-scores, axis=1, kind="stable")
    scores, rows = np.take_along_axis(scores, order, axis=1), np.take_along_axis(rows, order, axis=1)
    first = np.zeros_like(rows) if first is None else np.take_along_axis(first, order, axis=1)
    equal = (scores[:, 1:] == scores[:, :-1]) & (rows[:, 1:] >= 0)
    affected = np.nonzero(equal[:, :k].any(axis=1))[0]
    if len(affected):
        held_scores, held_rows, same = scores[affected], rows[affected], equal[affected]
        tied = np.zeros(held_rows.shape, dtype=bool)
        tied[:, 1:] |= same
        tied[:, :-1] |= same
        unique, where = np.unique(held_rows[tied], return_inverse=True)
        ids = ids_of(unique)
        place = np.empty(len(ids), dtype=np.int64)
        place[sorted(range(len(ids)), key=ids.__getitem__)] = np.arange(len(ids))
        key = np.zeros(held_rows.shape, dtype=np.int64)
        key[tied] = place[where.reshape(-1)]
        order = np.lexsort((key, first[affected], -held_scores), axis=1)
        scores[affected] = np.take_along_axis(held_scores, order, axis=1)
        rows[affected] = np.take_along_axis(held_rows, order, axis=1)
    return scores[:, :k], rows[:, :k]


def top_k_line(scores: NDArray[np.floating], rows: Rows, k: int, ids_of: IdsOf) -> tuple[Scores, Rows]:
    """Return :func:`top_k` for one query with many candidates, sorting only those that can be among the first ``k``."""
    if len(scores) > k:
        threshold = np.partition(scores, len(scores) - k)[len(scores) - k]
        keep = np.nonzero(scores >= threshold)[0]
        scores, rows = scores[keep], rows[keep]
    best_scores, best_rows = top_k(scores.astype(np.float64)[None, :], rows[None, :], k, ids_of)
    return best_scores[0], best_rows[0]


def place_among_equals(lang: str, turn: int) -> int:
    """Return the place of a language among those that tie, for a query's turn.

    A hash: whichever languages tie, each is first equally often. A turned order of codes would favour those behind a
    gap.
    """
    return int(content_key(turn, lang)[:15], 16)


def language_places(languages: Rows, turns: Sequence[int], codes: Sequence[str]) -> Rows:
    """Return the place of every candidate's language among equals, for the turn of its line.

    ``languages`` (queries × candidates) holds positions in ``codes``, -1 where there is no candidate.
    """
    places = np.array([[place_among_equals(code, turn) for code in codes] for turn in turns], dtype=np.int64)
    return np.take_along_axis(places, languages, axis=1)


def reciprocal_ranks(rows: Rows) -> Scores:
    """Return ``1 / (60 + rank)`` for every place of ranked lists (queries × k), -inf where there is no hit."""
    ranks = np.arange(1, rows.shape[1] + 1, dtype=np.float64)
    return np.where(rows >= 0, 1.0 / (RRF_CONSTANT + ranks), -np.inf)


def fuse_reciprocal(
    count: int,
    lists: Sequence[tuple[Rows | None, Rows]],
    k: int,
    ids_of: IdsOf,
    places_of: Callable[[Rows], Rows] | None = None,
) -> tuple[Scores, Rows]:
    """Return the reciprocal rank fusion of ranked lists of rows for ``count`` queries.

    Each element of ``lists`` holds positions of queries (None: all) and rows (those queries × depth). ``places_of``
    returns the ``first`` of :func:`top_k`.
    """
    width = sum(found.shape[1] for _, found in lists)
    rows = np.full((count, width), -1, dtype=np.int64)
    scores = np.full((count, width), -np.inf)
    start = 0
    for positions, found in lists:
        columns = slice(start, start + found.shape[1])
        start = columns.stop
        which = np.arange(count) if positions is None else positions
        rows[which, columns], scores[which, columns] = found, reciprocal_ranks(found)
    order = np.argsort(rows, axis=1, kind="stable")
    rows, scores = np.take_along_axis(rows, order, axis=1), np.take_along_axis(scores, order, axis=1)
    # a passage has one language, so it is in at most one dense and one lexical list
    twice = (rows[:, 1:] == rows[:, :-1]) & (rows[:, 1:] >= 0)
    scores[:, :-1] += np.where(twice, scores[:, 1:], 0.0)
    scores[:, 1:][twice] = -np.inf
    rows[:, 1:][twice] = -1
    return top_k(scores, rows, k, ids_of, None if places_of is None else places_of(rows))
