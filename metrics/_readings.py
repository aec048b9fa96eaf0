"""The ways in which readers may take a text, normalised by ``"unicode"``, and the words of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mrag_eval.metrics._numbers import met, spaces_joined, units_apart
from mrag_eval.metrics._text import OverlapScores, best_of, check_answers, isolate, match, multiset_overlap
from mrag_eval.metrics._unicode_normalizer import normalize_unicode
from mrag_eval.platform import kept_for_short_texts
from mrag_eval.text import NO_SPACE_SCRIPTS, half_spaces_apart, in_lemmas, words_apart


@kept_for_short_texts
def words_of_readings(text: str, lang: str | None) -> tuple[tuple[str, ...], ...]:
    """Return the words of each of the readings of a text."""
    return tuple(tuple(unicode_words(reading)) for reading in readings(text, lang))


@kept_for_short_texts
def readings(text: str, lang: str | None) -> tuple[str, ...]:
    """Return the ways in which readers may take a text, normalised by ``"unicode"``."""
    return tuple(normalize_unicode(form, lang) for form in _forms(text, lang))


def _forms(text: str, lang: str | None) -> list[str]:
    """Return the ways in which readers may take a text: half spaces join words or separate them, and so do spaces
    between groups of digits.
    """
    forms = [text, half_spaces_apart(text)]
    forms += [spaces_joined(form, lang) for form in forms if form is not None]
    return [form for form in forms if form is not None]


def unicode_words(normalized: str) -> list[str]:
    """Return the words of a text that ``"unicode"`` has normalised; see :func:`mrag_eval.metrics._text.word_tokens`."""
    return isolate(units_apart(normalized), NO_SPACE_SCRIPTS).split()


def overlap(
    prediction: str, answers: Sequence[str], words_of: Callable[[str], Sequence[Sequence[str]]]
) -> OverlapScores:
    """Return the scores of a prediction against the best answer, in the best of the readings of both (``words_of``)."""
    golds = [gold for answer in answers for gold in words_of(answer)]
    return best_of(multiset_overlap(met(words, gold), gold) for words in words_of(prediction) for gold in golds)


def segmented_f1(prediction: str, answers: Sequence[str], *, lang: str | None = None) -> float:
    """Return word F1 against the best answer, of words as dictionaries cut them, normalised by ``"unicode"``.

    Chinese, Japanese, Thai, Lao, Khmer and Burmese are cut by ICU, Korean by Kiwi, whose words have no particles, so
    that no answer gains from letters that it shares with any text. Words of other scripts are those of
    :func:`word_tokens`.

    Raises:
        MetricError: as :func:`match`.
        MissingExtraError: prediction or answers need a segmenter that is not installed (extra ``segment``).
    """
    check_answers(prediction, answers)

    def cut(text: str) -> list[list[str]]:
        forms = (normalize_unicode(words_apart(form), lang) for form in _forms(text, lang))
        return [units_apart(form).split() for form in forms]

    return overlap(prediction, answers, cut).f1


def lemma_match(prediction: str, answers: Sequence[str], *, lang: str | None = None) -> float:
    """Return 1.0 if :func:`match` finds an answer under ``"unicode"``, or its lemmas among those of the prediction.

    Lemmas are simplemma's, word by word, where it has the language.

    Raises:
        MetricError: as :func:`match`.
        MissingExtraError: simplemma is not installed (extra ``lemmas``).
    """
    lemmas = in_lemmas(prediction, lang), [in_lemmas(answer, lang) for answer in answers]
    return max(match(*both, normalize="unicode", lang=lang) for both in ((prediction, answers), lemmas))
