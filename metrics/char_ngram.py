"""Character n-gram recall, precision and F1, one pair at a time or for whole columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from mrag_eval.errors import MetricError
from mrag_eval.metrics.text import (
    Normalizer,
    OverlapScores,
    best_of,
    check_answers,
    gram_tokens,
    multiset_overlap,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def char_ngrams(tokens: Iterable[str], n: int) -> Iterator[str]:
    """The items of a text: each token's overlapping n-code-point substrings, a shorter token as one whole item."""
    for token in tokens:
        if len(token) <= n:
            yield token
        else:
            yield from (token[start : start + n] for start in range(len(token) - n + 1))


def char_ngram_scores(
    prediction: str,
    answers: Sequence[str],
    n: int = 3,
    *,
    normalize: Normalizer = "paper",
    lang: str | None = None,
) -> OverlapScores:
    """Character n-gram recall, precision and F1 of a prediction against the best answer.

    With G and P the multisets of n-grams of answer and prediction, recall = |G ∩ P| / |G|, precision = |G ∩ P| / |P|.
    n-grams never cross a token boundary, a token shorter than ``n`` is one whole item, and the best answer counts for
    each measure by itself. An answer (or prediction) that normalises to nothing scores 0, even against its like.

    Args:
        prediction: the model's answer.
        answers: the gold answers, at least one.
        n: n-gram length in code points, 1 or more.
        normalize: ``"paper"`` (published figures) or ``"unicode"`` (other scripts treated fairly).
        lang: the language of the answers; only the ``"unicode"`` normaliser uses it (English articles).

    Raises:
        MetricError: ``n`` below 1, no answers, a bare string as answers, or anything that is not a string.

    Source: "Retrieval-augmented generation in multilingual settings" (Chirkova et al., 2024), section 3.
    """
    check_n(n)
    check_answers(prediction, answers)
    predicted = list(char_ngrams(gram_tokens(prediction, normalize=normalize, lang=lang), n))
    return best_of(
        multiset_overlap(predicted, char_ngrams(gram_tokens(answer, normalize=normalize, lang=lang), n))
        for answer in answers
    )


def char_ngram_recall(
    prediction: str,
    answers: Sequence[str],
    n: int = 3,
    *,
    normalize: Normalizer = "paper",
    lang: str | None = None,
) -> float:
    """Share of the best answer's character n-grams found in the prediction; see :func:`char_ngram_scores`."""
    return char_ngram_scores(prediction, answers, n, normalize=normalize, lang=lang).recall


def char_ngram_precision(
    prediction: str,
    answers: Sequence[str],
    n: int = 3,
    *,
    normalize: Normalizer = "paper",
    lang: str | None = None,
) -> float:
    """Share of the prediction's character n-grams found in the best answer; see :func:`char_ngram_scores`."""
    return char_ngram_scores(prediction, answers, n, normalize=normalize, lang=lang).precision


def char_ngram_f1(
    prediction: str,
    answers: Sequence[str],
    n: int = 3,
    *,
    normalize: Normalizer = "paper",
    lang: str | None = None,
) -> float:
    """Harmonic mean of character n-gram recall and precision, best answer; see :func:`char_ngram_scores`."""
    return char_ngram_scores(prediction, answers, n, normalize=normalize, lang=lang).f1


def char_ngram_recall_batch(
    predictions: Sequence[str],
    answers: Sequence[Sequence[str]],
    n: int = 3,
    *,
    normalize: Normalizer = "paper",
    lang: str | None = None,
) -> NDArray[np.float64]:
    """:func:`char_ngram_recall` for N pairs at once: float64, shape (N,)."""
    import numpy as np

    if len(predictions) != len(answers):
        raise MetricError(f"{len(predictions)} predictions but {len(answers)} lists of answers")
    return np.array(
        [char_ngram_recall(p, a, n, normalize=normalize, lang=lang) for p, a in zip(predictions, answers, strict=True)],
        dtype=np.float64,
    )


def check_n(n: int) -> None:
    """Refuse an n-gram length below 1."""
    if not isinstance(n, int) or isinstance(n, bool) or n < 1:
        raise MetricError(f"n must be a whole number of at least 1, got {n!r}")
