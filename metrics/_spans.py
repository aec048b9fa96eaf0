"""Overlap of two sets of spans of a text."""

from __future__ import annotations

from collections.abc import Iterable


def span_overlap(first: Iterable[tuple[int, int]], second: Iterable[tuple[int, int]]) -> tuple[float, float]:
    """Return F1 and IoU of half-open spans of one text, by the characters A and B that they hold, both in 0..1.

    F1 is 2 |A & B| / (|A| + |B|), IoU is |A & B| / |A | B|; both are 1 if neither has a character. A character counts
    once, however many spans hold it. So they are computed for each answer in PsiloQA's repository (Rykov et al., 2025).
    """
    left, right = ({place for start, end in spans for place in range(start, end)} for spans in (first, second))
    shared, either = len(left & right), len(left | right)
    return (2 * shared / (len(left) + len(right)), shared / either) if either else (1.0, 1.0)
