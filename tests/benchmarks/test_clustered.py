"""The vectors that approximate search is measured on have the figures that are said of them."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks._clustered import ClusteredVectors, figures


def test_figures_are_near_those_of_embeddings() -> None:
    found = [figures(ClusteredVectors(seed=seed).embed_passages([""] * 240)) for seed in range(4)]
    mean = {name: np.mean([one[name] for one in found]) for name in found[0]}
    # what multilingual-e5-small has on XQuAD's paragraphs, by the table in the module
    near = {
        "variance off the mean": (0.22, 0.06), "cosine within an article": (0.27, 0.05),
        "deviation between articles": (0.08, 0.02), "first 10": (0.25, 0.05), "first 50": (0.63, 0.08),
        "participation ratio": (84, 16), "intrinsic dimension": (24, 5),
    }  # fmt: skip
    assert mean == {name: pytest.approx(value, abs=within) for name, (value, within) in near.items()}


def test_vectors_come_from_the_seed_alone() -> None:
    one, other = ClusteredVectors(32, seed=3), ClusteredVectors(32, seed=3)
    for vectors in (one, other):
        vectors.embed_queries(["q"])
    first = one.embed_passages([""] * 7)
    assert np.array_equal(first, other.embed_passages([""] * 7))
    assert not np.array_equal(first, one.embed_passages([""] * 7))
    assert np.linalg.norm(first, axis=1) == pytest.approx(np.ones(7), abs=1e-5)
