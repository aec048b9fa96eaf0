"""Character n-gram recall, precision and F1, for one pair at a time or for whole columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from mrag_eval.metrics._text import Normalizer, OverlapScores, best_of, check_answers, gram_tokens, multiset_overlap
from mrag_eval.platform import MetricError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class OverlapColumns(NamedTuple):
    """Recall, precision and F1 of N rows: float64, shape (N,) each, in 0..1."""

    recall: NDArray[np.float64]
    precision: NDArray[np.float64]
    f1: NDArray[np.float64]


def char_ngrams(tokens: Iterable[str], n: int) -> Iterator[str]:
    """Yield the items of a text: each token's overlapping n-code-point substrings; a shorter token is one item."""
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
    """Return character n-gram recall, precision and F1 of a prediction against the best answer.

    With G and P the multisets of n-grams of answer and prediction, recall = |G ∩ P| / |G|, precision = |G ∩ P| / |P|.
    n-grams never cross a token boundary, a token shorter than ``n`` is one whole item, and the best answer is chosen
    for each measure separately. An answer (or prediction) that normalises to an empty string scores 0, even against an
    equal one.

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
    """Return the share of the best answer's character n-grams found in the prediction; see
    :func:`char_ngram_scores`.
    """
    return char_ngram_scores(prediction, answers, n, normalize=normalize, lang=lang).recall


def char_ngram_precision(
    prediction: str,
    answers: Sequence[str],
    n: int = 3,
    *,
    normalize: Normalizer = "paper",
    lang: str | None = None,
) -> float:
    """Return the share of the prediction's character n-grams found in the best answer; see
    :func:`char_ngram_scores`.
    """
    return char_ngram_scores(prediction, answers, n, normalize=normalize, lang=lang).precision


def char_ngram_f1(
    prediction: str,
    answers: Sequence[str],
    n: int = 3,
    *,
    normalize: Normalizer = "paper",
    lang: str | None = None,
) -> float:
    """Return the harmonic mean of character n-gram recall and precision, best answer; see :func:`char_ngram_scores`."""
    return char_ngram_scores(prediction, answers, n, normalize=normalize, lang=lang).f1


def char_ngram_scores_batch(
    predictions: Sequence[str],
    answers: Sequence[Sequence[str]],
    n: int = 3,
    *,
    normalize: Normalizer = "paper",
    lang: str | None = None,
) -> OverlapColumns:
    """Return :func:`char_ngram_scores` for N pairs at once, bit-identical, in bounded memory.

    Args:
        predictions: N model answers.
        answers: for each of them its gold answers, at least one.
        n: n-gram length in code points, 1 or more.
        normalize: as in :func:`char_ngram_scores`.
        lang: as in :func:`char_ngram_scores`; one language for all pairs.

    Returns:
        recall, precision and F1, float64 of shape (N,) each. No pairs give empty arrays.

    Raises:
        MetricError: lengths differ, a row has no answers, or as :func:`char_ngram_scores`; it names the row.
    """
    import numpy as np

    from mrag_eval.metrics._gram_kernel import count_grams

    check_n(n)
    golds, counts = _flatten(predictions, answers)
    if not golds:
        empty = np.empty(0, dtype=np.float64)
        return OverlapColumns(empty, empty.copy(), empty.copy())
    if normalize != "paper":
        predictions = [" ".join(gram_tokens(text, normalize=normalize, lang=lang)) for text in predictions]
        golds = [" ".join(gram_tokens(text, normalize=normalize, lang=lang)) for text in golds]
    per_row = np.array(counts, dtype=np.int64)
    rows = np.repeat(np.arange(len(per_row)), per_row)
    common, gold, predicted = count_grams(predictions, golds, rows, n, normalized=normalize != "paper")
    # an answer without common items scores 0; the 1s only keep the divisions defined
    hit = common > 0
    recall = np.where(hit, common / np.where(hit, gold, 1), 0.0)
    precision = np.where(hit, common / np.where(hit, predicted[rows], 1), 0.0)
    f1 = np.where(hit, 2 * precision * recall / np.where(hit, precision + recall, 1.0), 0.0)
    first = np.cumsum(per_row) - per_row
    return OverlapColumns(*(np.maximum.reduceat(column, first) for column in (recall, precision, f1)))


def char_ngram_recall_batch(
    predictions: Sequence[str],
    answers: Sequence[Sequence[str]],
    n: int = 3,
    *,
    normalize: Normalizer = "paper",
    lang: str | None = None,
) -> NDArray[np.float64]:
    """Return :func:`char_ngram_recall` for N pairs at once: float64, shape (N,); see
    :func:`char_ngram_scores_batch`.
    """
    return char_ngram_scores_batch(predictions, answers, n, normalize=normalize, lang=lang).recall


def check_n(n: int) -> None:
    """Raise MetricError for an n-gram length below 1."""
    if not isinstance(n, int) or isinstance(n, bool) or n < 1:
        raise MetricError(f"n must be a whole number of at least 1, got {n!r}")


def _flatten(predictions: Sequence[str], answers: Sequence[Sequence[str]]) -> tuple[list[str], list[int]]:
    """Return all answers in row order and their number in each row, after the checks of the single function."""
    if isinstance(predictions, str):
        raise MetricError("predictions must be a list of strings, got one string", "pass [prediction]")
    if len(predictions) != len(answers):
        raise MetricError(f"{len(predictions)} predictions but {len(answers)} lists of answers")
    # checked by column, for speed; by row only to name the fault
    if str not in set(map(type, answers)) and None not in answers:
        golds = list(chain.from_iterable(answers))
        counts = list(map(len, answers))
        if {*map(type, predictions), *map(type, golds)} <= {str} and 0 not in counts:
            return golds, counts
    for row, (prediction, own) in enumerate(zip(predictions, answers, strict=True)):
        try:
            check_answers(prediction, own)
        except MetricError as error:
            raise MetricError(f"row {row}: {error.message}", error.next_step) from error
    return list(chain.from_iterable(answers)), list(map(len, answers))
