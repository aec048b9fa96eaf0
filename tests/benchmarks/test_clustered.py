"""The synthetic vectors for approximate search have the figures that their module states."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks._clustered import LIKENESSES, ClusteredVectors, figures, share_read

# the embedders' figures from the tables in the module: for 240 vectors, and the share read at 30,000
MEASURED = {
    "minilm": {
        "variance off the mean": (0.93, 0.06), "deviation between articles": (0.086, 0.02), "first 10": (0.23, 0.04),
        "first 50": (0.64, 0.05), "participation ratio": (88, 12), "intrinsic dimension": (28, 9),
    },
    "e5": {
        "variance off the mean": (0.22, 0.06), "cosine within an article": (0.27, 0.05),
        "deviation between articles": (0.08, 0.02), "first 10": (0.25, 0.05), "first 50": (0.63, 0.08),
        "participation ratio": (84, 16), "intrinsic dimension": (24, 5),
    },
}  # fmt: skip
READ = {"minilm": (0.20, 0.13), "e5": (0.39, 0.22)}


@pytest.mark.parametrize("like", LIKENESSES)
def test_figures_are_near_those_of_embeddings(like: str) -> None:
    found = [figures(ClusteredVectors(seed=seed, like=like).embed_passages([""] * 240)) for seed in range(4)]
    near = MEASURED[like]
    mean = {name: np.mean([one[name] for one in found]) for name in near}
    assert mean == {name: pytest.approx(value, abs=within) for name, (value, within) in near.items()}


@pytest.mark.slow
@pytest.mark.parametrize("like", LIKENESSES)
def test_as_much_must_be_read_as_of_embeddings_and_no_less(like: str) -> None:
    embedder = ClusteredVectors(like=like)
    vectors = embedder.embed_passages([""] * 30_000)
    own = np.arange(0, 30_000, 60)
    questions, stored = READ[like]
    assert questions - 0.02 <= share_read(vectors, embedder.embed_queries([""] * 500)) <= questions + 0.06
    assert stored - 0.02 <= share_read(vectors, vectors[own], own) <= stored + 0.12


def test_vectors_depend_only_on_the_seed() -> None:
    one, other = ClusteredVectors(32, seed=3), ClusteredVectors(32, seed=3)
    for vectors in (one, other):
        vectors.embed_queries(["q"])
    first = one.embed_passages([""] * 7)
    assert np.array_equal(first, other.embed_passages([""] * 7))
    assert not np.array_equal(first, one.embed_passages([""] * 7))
    assert np.linalg.norm(first, axis=1) == pytest.approx(np.ones(7), abs=1e-5)
