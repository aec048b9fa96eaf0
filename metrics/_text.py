"""Answer normalisation, tokens, and the word-level measures: match, exact match, recall, precision, F1.

There are three normalisers. ``"paper"`` (default) is the SQuAD one that the multilingual RAG literature reports, faults
included: it deletes ASCII punctuation and drops ``a an the`` in every language. ``"mkqa"`` is that of MKQA's script,
with articles by language. ``"unicode"`` corrects their effects on other scripts; figures computed with it are not
comparable to published ones and should be labelled.

Conventions of every measure here: a prediction is scored against several answers, and the best answer counts, for each
measure separately. Scores are in 0..1.
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Literal, NamedTuple, get_args

from mrag_eval.metrics._punctuation import Punctuation
from mrag_eval.platform import MetricError, did_you_mean
from mrag_eval.text import NO_SPACE_SCRIPTS, script

Normalizer = Literal["paper", "mkqa", "unicode"]

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_ASCII_PUNCTUATION = str.maketrans("", "", string.punctuation)


class OverlapScores(NamedTuple):
    """Recall, precision and F1 of a multiset overlap, each in 0..1."""

    recall: float
    precision: float
    f1: float


_PUNCTUATION = Punctuation()


def normalize_answer(text: str, *, normalize: Normalizer = "paper", lang: str | None = None) -> str:
    """Return the text in the form used for comparison: words separated by single spaces.

    ``"paper"``: lower case, delete the 32 ASCII punctuation characters, replace the words a/an/the by a space, collapse
    whitespace (BERGEN's normaliser, section 3 of "Retrieval-augmented generation in multilingual settings").
    ``"mkqa"``: lower case, delete ASCII punctuation, drop the articles of ``lang`` (of 14 languages), separate the
    characters of Chinese, Japanese, Thai and Khmer, collapse whitespace.
    ``"unicode"``: fold the spellings of a word (:func:`mrag_eval.text.fold`, for ``lang``), and those that the
    orthography of Arabic, Hindi, Persian and Vietnamese leaves open; write numbers in one form with sign and unit
    (``-5``, ``50%``; docs/languages.md); delete Unicode punctuation, other symbols and format characters (dashes,
    slashes and mathematical signs become spaces), but not ``+`` and ``#`` behind a letter or number (``C++``); drop
    articles only if ``lang`` is English, separate at apostrophes if it is French, Italian, Catalan, Occitan, Turkish or
    Azerbaijani; collapse whitespace. Normalising twice changes nothing.

    Raises:
        MetricError: the text is not a string, or the normaliser is unknown.
    """
    if not isinstance(text, str):
        raise MetricError(f"expected a string to normalise, got {type(text).__name__}")
    if normalize == "paper":
        text = _ARTICLES.sub(" ", text.lower().translate(_ASCII_PUNCTUATION))
    elif normalize == "mkqa":
        from mrag_eval.metrics._mkqa_normalizer import normalize_mkqa

        return normalize_mkqa(text, lang)
    elif normalize == "unicode":
        # its rules for every script are loaded by those who ask for them
        from mrag_eval.metrics._unicode_normalizer import normalize_unicode

        return normalize_unicode(text, lang)
    else:
        raise MetricError(f"unknown normaliser '{normalize}'" + did_you_mean(str(normalize), get_args(Normalizer)))
    return " ".join(text.split())


def word_tokens(text: str, *, normalize: Normalizer = "paper", lang: str | None = None) -> list[str]:
    """Return the words of a text after normalisation.

    ``"paper"`` and ``"mkqa"`` split at whitespace. ``"unicode"`` also takes every grapheme of a script written without
    spaces (Han, kana, Thai, Lao, Khmer, Burmese) as a word, the convention of ml-mkqa's mixed segmentation; Korean,
    Amharic, Hindi, Arabic, Hebrew and the alphabets of Europe are split at whitespace.
    """
    normalized = normalize_answer(text, normalize=normalize, lang=lang)
    if normalize != "unicode":
        return normalized.split()
    from mrag_eval.metrics._readings import unicode_words

    return unicode_words(normalized)


def graphemes(text: str) -> list[str]:
    """Return the words of a text, or its graphemes in scripts without spaces, lower-cased but otherwise as written."""
    plain = unicodedata.normalize("NFKC", text).casefold().translate(_PUNCTUATION)
    return isolate(plain, NO_SPACE_SCRIPTS).split()


def gram_tokens(text: str, *, normalize: Normalizer = "paper", lang: str | None = None) -> list[str]:
    """Return the tokens that character n-grams are taken from.

    ``"paper"`` and ``"mkqa"`` split at whitespace. ``"unicode"`` also takes every Han character as a separate token, so
    that a two-character name is found inside a longer sentence; kana and the other scripts without spaces remain in
    runs, where n-grams cross word boundaries.
    """
    normalized = normalize_answer(text, normalize=normalize, lang=lang)
    if normalize != "unicode":
        return normalized.split()
    return isolate(normalized, _HAN).split()


_HAN = frozenset({"Hani"})


def isolate(text: str, scripts: frozenset[str]) -> str:
    """Return the text with spaces around each grapheme (letter with its marks) of the given scripts."""
    parts: list[str] = []
    in_grapheme = False
    for char in text:
        if char.isspace():
            parts.append(char)
            in_grapheme = False
        elif unicodedata.category(char)[0] == "M":
            parts.append(char)
        elif script(char) in scripts:
            parts.append(f" {char}")
            in_grapheme = True
        else:
            parts.append(f" {char}" if in_grapheme else char)
            in_grapheme = False
    return "".join(parts)


def check_answers(prediction: str, answers: Sequence[str]) -> None:
    """Raise MetricError for a prediction or answer that is not a string, and for a bare string or nothing as
    answers.
    """
    if not isinstance(prediction, str):
        raise MetricError(f"prediction must be a string, got {type(prediction).__name__}")
    if isinstance(answers, str):
        raise MetricError("answers must be a list of strings, got one string", "pass [answer]")
    if answers is None or len(answers) == 0:
        raise MetricError("no answers to score against", "leave rows without a gold answer out before scoring")
    for index, answer in enumerate(answers):
        if not isinstance(answer, str):
            raise MetricError(f"answers[{index}] must be a string, got {type(answer).__name__}")


def multiset_overlap(predicted: Iterable[Hashable], gold: Iterable[Hashable]) -> OverlapScores:
    """Return recall, precision and F1 of two multisets; all 0 if they share nothing (also if either is empty)."""
    predicted_counts, gold_counts = Counter(predicted), Counter(gold)
    common = sum((predicted_counts & gold_counts).values())
    if common == 0:
        return OverlapScores(0.0, 0.0, 0.0)
    recall = common / sum(gold_counts.values())
    precision = common / sum(predicted_counts.values())
    return OverlapScores(recall, precision, 2 * precision * recall / (precision + recall))


def best_of(scores: Iterable[OverlapScores]) -> OverlapScores:
    """Return the maximum over answers, for each measure separately (the three may come from different answers)."""
    recalls, precisions, f1s = zip(*scores, strict=True)
    return OverlapScores(max(recalls), max(precisions), max(f1s))


def word_scores(
    prediction: str, answers: Sequence[str], *, normalize: Normalizer = "paper", lang: str | None = None
) -> OverlapScores:
    """Return word recall, precision and F1 of a prediction against the best answer.

    Recall is the multiset overlap divided by the answer's words, precision by the prediction's, so a repeated word
    requires repeated evidence. An answer that normalises to an empty string scores 0. Raises MetricError as
    :func:`match` does. Source: SQuAD (Rajpurkar et al., 2016) as used in "Retrieval-augmented generation in
    multilingual settings".
    """
    check_answers(prediction, answers)
    if normalize != "unicode":
        words = word_tokens(prediction, normalize=normalize, lang=lang)
        golds = (word_tokens(answer, normalize=normalize, lang=lang) for answer in answers)
        return best_of(multiset_overlap(words, gold) for gold in golds)
    from mrag_eval.metrics._readings import overlap, words_of_readings

    return overlap(prediction, answers, lambda text: words_of_readings(text, lang))


def word_recall(
    prediction: str, answers: Sequence[str], *, normalize: Normalizer = "paper", lang: str | None = None
) -> float:
    """Return the share of the best answer's words found in the prediction; see :func:`word_scores`."""
    return word_scores(prediction, answers, normalize=normalize, lang=lang).recall


def word_precision(
    prediction: str, answers: Sequence[str], *, normalize: Normalizer = "paper", lang: str | None = None
) -> float:
    """Return the share of the prediction's words found in the best answer; see :func:`word_scores`."""
    return word_scores(prediction, answers, normalize=normalize, lang=lang).precision


def word_f1(
    prediction: str, answers: Sequence[str], *, normalize: Normalizer = "paper", lang: str | None = None
) -> float:
    """Return the harmonic mean of word recall and precision, best answer; see :func:`word_scores`."""
    return word_scores(prediction, answers, normalize=normalize, lang=lang).f1


def match(
    prediction: str, answers: Sequence[str], *, normalize: Normalizer = "paper", lang: str | None = None
) -> float:
    """Return 1.0 if any normalised answer is contained in the normalised prediction, else 0.0.

    ``"paper"`` and ``"mkqa"`` take any substring. Under ``"unicode"`` an answer is not found within a word of a script
    with spaces (``ei`` in ``Eiffel``), except next to the particles, articles and endings that a language attaches to
    words (``서울은``, ``بالقاهرة``, ``Londonissa``; see ``_word_edges``). An answer that normalises to an empty string
    is a substring of everything and therefore counts as a match, as in the original implementation.

    Raises:
        MetricError: ``answers`` is empty or a bare string, or anything in it (or the prediction) is not a string.
    """
    if normalize != "unicode":
        return _any(lambda predicted, answer: answer in predicted, prediction, answers, normalize, lang)
    from mrag_eval.metrics._word_edges import contains

    return _any(lambda predicted, answer: contains(predicted, answer, lang), prediction, answers, normalize, lang)


def exact_match(
    prediction: str, answers: Sequence[str], *, normalize: Normalizer = "paper", lang: str | None = None
) -> float:
    """Return 1.0 if the normalised prediction equals any normalised answer, else 0.0. Raises MetricError as
    :func:`match`.

    Under ``"unicode"`` numbers are equal if any reading of both is the same, and spaces between Hangul, and the half
    spaces of Persian, do not count.
    """
    if normalize != "unicode":
        return _any(str.__eq__, prediction, answers, normalize, lang)
    from mrag_eval.metrics._word_edges import equal

    return _any(equal, prediction, answers, normalize, lang)


def _any(
    test: Callable[[str, str], bool], prediction: str, answers: Sequence[str], normalize: Normalizer, lang: str | None
) -> float:
    check_answers(prediction, answers)

    def forms(text: str) -> Sequence[str]:
        if normalize != "unicode":
            return [normalize_answer(text, normalize=normalize, lang=lang)]
        from mrag_eval.metrics._readings import readings

        return readings(text, lang)

    replies = forms(prediction)
    return float(any(test(reply, gold) for answer in answers for gold in forms(answer) for reply in replies))
