"""Whether vectors are those of their passages: a sample is embedded again and compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from mrag_eval.core import NO_SPACES, Passage, base_language
from mrag_eval.retrievers.embedding._embedders import Embedder, batch_size_for, vectors_arriving
from mrag_eval.retrievers.imports._drawn import Drawn

# A passage agrees with its vector from this cosine on: float16 and int8 keep more, another title or text loses more.
AGREES = 0.99
_BATCH = 16
# Lengths of an embedder's vectors this close to 1 are meant to be 1.
_UNIT = 0.01
# Mean cosines of different passages: below this they say nothing of the embedder; half of it is no difference.
_ALIKE = 0.1


def _apart(passage: Passage) -> str:
    """Return a passage behind its title with a blank after every character, in languages without spaces."""
    piece = passage.text.removeprefix(f"{passage.title}. ")
    if base_language(passage.lang) not in NO_SPACES:
        return passage.text
    return f"{passage.title}. {' '.join(piece.replace(' ', ''))}"


# How a passage's text was made ready for the embedder: all are tried.
FORMS: Mapping[str, Callable[[Passage], str]] = MappingProxyType(
    {
        "text alone": lambda passage: passage.text,
        "title in front": lambda passage: f"{passage.title}. {passage.text}",
        "title and a line end in front": lambda passage: f"{passage.title}\n{passage.text}",
        "title and a blank line in front": lambda passage: f"{passage.title}\n\n{passage.text}",
        "title and a colon in front": lambda passage: f"{passage.title}: {passage.text}",
        "title and a space in front": lambda passage: f"{passage.title} {passage.text}",
        "characters apart": _apart,
    }
)
ALONE = "text alone"


@dataclass(frozen=True)
class VectorCheck:
    """The outcome for a sample: how many of ``drawn`` passages agree with their vectors if they are fed as ``form``.

    ``least`` is the smallest cosine. ``why`` is the likely reason if some do not agree.
    """

    agree: int
    drawn: int
    form: str
    least: float
    why: str = ""

    @property
    def holds(self) -> bool:
        return self.agree == self.drawn


def best_form(sample: Sequence[Drawn], embedder: Embedder) -> tuple[VectorCheck, bool]:
    """Return the verdict for the form in which most passages of a small sample agree with their vectors.

    Also return whether the embedder gives vectors of unit length.
    """
    texts = {form: [made(drawn.passage) for drawn in sample] for form, made in FORMS.items()}
    fresh: dict[str, NDArray[np.float32]] = {}
    for form, fed in texts.items():
        # passages without a title read alike in several forms
        if all(fed != texts[known] for known in fresh):
            fresh[form] = _embedded(embedder, fed)
    stored = _stored(sample)
    cosines = {form: _cosines(stored, vectors) for form, vectors in fresh.items()}
    best = max(cosines, key=lambda form: (int((cosines[form] >= AGREES).sum()), float(cosines[form].mean())))
    unit = bool(np.abs(np.linalg.norm(fresh[best], axis=1) - 1).max() < _UNIT)
    return _verdict(sample, stored, fresh[best], best), unit


def verdict_on(sample: Sequence[Drawn], embedder: Embedder, form: str) -> VectorCheck:
    """Embed a sample again and compare it with its vectors."""
    fresh = _embedded(embedder, [FORMS[form](drawn.passage) for drawn in sample])
    return _verdict(sample, _stored(sample), fresh, form)


def _verdict(
    sample: Sequence[Drawn], stored: NDArray[np.float32], fresh: NDArray[np.float32], form: str
) -> VectorCheck:
    cosines = _cosines(stored, fresh)
    agree = int((cosines >= AGREES).sum())
    why = "" if agree == len(sample) else _why(sample, cosines, stored, fresh)
    return VectorCheck(agree, len(sample), form, round(float(cosines.min()), 4), why)


def _why(
    sample: Sequence[Drawn], cosines: NDArray[np.float64], stored: NDArray[np.float32], fresh: NDArray[np.float32]
) -> str:
    # vectors of one embedder have a mean cosine of their own, whatever the order of the rows
    among, between = _mean_cosine(fresh, fresh), _mean_cosine(stored, fresh)
    median = float(np.median(cosines))
    if median >= AGREES:
        first = sample[int(np.flatnonzero(cosines < AGREES)[0])].passage.id
        return f"some rows differ, passage '{first}' for one: other titles or texts, or texts cut at another length"
    if median - between > (1 - between) / 2:
        return "nearly the same texts: other titles, another prefix, or texts cut at another length"
    if among > _ALIKE and abs(among - between) < _ALIKE / 2:
        return "vectors of this embedder, but of other passages: rows in another order, or other texts"
    return "vectors of another embedder, or of other passages"


def _mean_cosine(a: NDArray[np.float32], b: NDArray[np.float32]) -> float:
    """Return the mean cosine of different rows of two matrices."""
    if len(a) < 2:
        return 0.0
    products = _unit(a) @ _unit(b).T
    return float((products.sum() - np.trace(products)) / (len(a) * (len(a) - 1)))


def _embedded(embedder: Embedder, texts: Sequence[str]) -> NDArray[np.float32]:
    size = batch_size_for(embedder, _BATCH)
    batches = [texts[start : start + size] for start in range(0, len(texts), size)]
    found = dict(vectors_arriving(embedder, batches))
    return np.concatenate([found[number] for number in range(len(batches))])


def _stored(sample: Sequence[Drawn]) -> NDArray[np.float32]:
    return np.stack([drawn.vector for drawn in sample])


def _unit(vectors: NDArray[np.float32]) -> NDArray[np.float64]:
    wide = vectors.astype(np.float64)
    norms = np.linalg.norm(wide, axis=1, keepdims=True)
    return wide / np.where(norms > 0, norms, 1.0)


def _cosines(a: NDArray[np.float32], b: NDArray[np.float32]) -> NDArray[np.float64]:
    cosines: NDArray[np.float64] = np.einsum("nd,nd->n", _unit(a), _unit(b))
    return cosines
