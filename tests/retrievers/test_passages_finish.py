"""Files derived from the passages at the end of a build."""

from __future__ import annotations

import numpy as np
import pytest

from mrag_eval.retrievers.build import _passages_finish
from mrag_eval.retrievers.build._passages_finish import _Distinct


def test_distinct_hashes_are_counted_whenever_they_come_again() -> None:
    draw = np.random.default_rng(3)
    batches = [draw.integers(0, 50_000, size, dtype=np.uint64) for size in (0, 1, 4_096, 4_096, 0, 70_000, 4_096)]
    distinct = _Distinct()
    distinct._limit = 5_000
    assert distinct.count() == 0
    for number, batch in enumerate(batches):
        distinct.add(batch)
        if number % 3 == 2:
            assert distinct.count() == len(np.unique(np.concatenate(batches[: number + 1])))
    assert distinct.count() == len(np.unique(np.concatenate(batches)))


@pytest.mark.parametrize("kinds", [100, 10**9], ids=["the same ones again", "all different"])
def test_sorting_them_grows_with_their_number_and_not_its_square(kinds: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A million hashes in batches of a thousand: in total only a few times as many values are sorted."""
    sorted_in_all = 0
    unique = np.unique

    def counted(values: np.ndarray) -> np.ndarray:
        nonlocal sorted_in_all
        sorted_in_all += len(values)
        return unique(values)

    monkeypatch.setattr(_passages_finish.np, "unique", counted)
    distinct = _Distinct()
    distinct._limit = 10_000
    draw = np.random.default_rng(3)
    for _ in range(1_000):
        distinct.add(draw.integers(0, kinds, 1_000, dtype=np.uint64))
    distinct.count()
    assert 10**6 <= sorted_in_all < 5 * 10**6
