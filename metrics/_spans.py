"""Overlap of two sets of spans of a text."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SpanOverlap:
    """How far two sets of spans are the same characters: ``f1`` and ``iou``, both in 0..1."""

    f1: float
    iou: float


def span_overlap(first: Iterable[tuple[int, int]], second: Iterable[tuple[int, int]]) -> SpanOverlap:
    """Return the overlap of half-open spans of one text, by the characters A and B that they hold.

    F1 is 2 |A & B| / (|A| + |B|), IoU is |A & B| / |A | B|; both are 1 if neither has a character. A character counts
    once, however many spans hold it. So they are computed for each answer in PsiloQA's repository (Rykov et al., 2025).
    """
    left, right = ({place for start, end in spans for place in range(start, end)} for spans in (first, second))
    shared, either = len(left & right), len(left | right)
    if not either:
        return SpanOverlap(1.0, 1.0)
    return SpanOverlap(2 * shared / (len(left) + len(right)), shared / either)
