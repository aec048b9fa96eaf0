"""The mean of a ranking in random order: against every order there is, and numbers worked out by hand."""

from __future__ import annotations

from itertools import permutations

import pytest

from mrag_eval.metrics import random_ranking, ranking_metrics
from mrag_eval.platform import MetricError

MEASURES = ("hit", "recall", "precision", "mrr", "ndcg", "map")


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("k", [1, 2, 4, 7])
@pytest.mark.parametrize(
    ("items", "relevant", "known"), [(1, 1, 1), (4, 1, 1), (5, 2, 2), (5, 5, 5), (5, 2, 4), (4, 0, 2)]
)
def test_it_is_the_mean_over_every_order(measure: str, k: int, items: int, relevant: int, known: int) -> None:
    qrels = {"q": {f"r{i}": 1 for i in range(known)}}
    ranked = [*(f"r{i}" for i in range(relevant)), *(f"n{i}" for i in range(items - relevant))]
    name = f"{measure}@{k}"
    found = [ranking_metrics(qrels, {"q": list(order)}, (name,))["q"][name] for order in permutations(ranked)]
    assert random_ranking(measure, k, items, relevant, known) == pytest.approx(sum(found) / len(found), abs=1e-12)


def test_by_hand() -> None:
    # 1 of 240 passages is relevant: 20 places hold it in 20 of 240 orders, and 1 + 1/2 + ... + 1/20 = 3.59773965714
    assert random_ranking("hit", 20, 240, 1) == pytest.approx(20 / 240, abs=1e-12)
    assert random_ranking("mrr", 20, 240, 1) == pytest.approx(3.59773965714 / 240, abs=1e-12)
    # a corpus of millions is no problem
    assert random_ranking("hit", 5, 25_000_000, 1) == pytest.approx(2e-7, rel=1e-6)


@pytest.mark.parametrize(("measure", "k", "items", "relevant", "known"), [
    ("hits", 1, 1, 1, 1), ("hit", 0, 1, 1, 1), ("hit", 1, 0, 0, 1), ("hit", 1, 3, 4, 4), ("hit", 1, 3, 2, 1),
    ("hit", 1, 3, 0, None),
])  # fmt: skip
def test_no_ranking(measure: str, k: int, items: int, relevant: int, known: int | None) -> None:
    with pytest.raises(MetricError):
        random_ranking(measure, k, items, relevant, known)
