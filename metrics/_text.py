"""Answer normalisation, tokens, and the word-level measures: match, exact match, recall, precision, F1.

There are two normalisers. ``"paper"`` (default) is the SQuAD one that the multilingual RAG literature reports, faults
included: it deletes ASCII punctuation and drops ``a an the`` in every language. ``"unicode"`` corrects its effects on
other scripts; figures computed with it are not comparable to published ones and should be labelled.

Conventions of every measure here: a prediction is scored against several answers, and the best answer counts, for each
measure separately. Scores are in 0..1.
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Literal, NamedTuple

from mrag_eval.core import MetricError, base_language, did_you_mean
from mrag_eval.metrics._scripts import NO_SPACE_SCRIPTS, script

Normalizer = Literal["paper", "unicode"]

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_ASCII_PUNCTUATION = str.maketrans("", "", string.punctuation)


class OverlapScores(NamedTuple):
    """Recall, precision and F1 of a multiset overlap, each in 0..1."""

    recall: float
    precision: float
    f1: float


class _UnicodePunctuation(dict[int, int | str]):
    """Translation table filled as characters occur: punctuation, symbols and format characters are removed.

    Dashes, slashes and marks between words become spaces; the rest is deleted, as the SQuAD normaliser does with ASCII
    punctuation (``O'Connor`` stays one word). The Arabic tatweel, which only stretches a word, is deleted, too, and
    decimal digits of every script become 0 to 9.
    """

    def __missing__(self, code: int) -> int | str:
        char = chr(code)
        category = unicodedata.category(char)
        value: int | str = code
        if category == "Pd" or char in "/\\_་།፡":
            value = " "
        elif category[0] in "PS" or category == "Cf" or char == "\N{ARABIC TATWEEL}":
            value = ""
        elif category == "Nd":
            value = str(unicodedata.decimal(char))
        self[code] = value
        return value


_UNICODE_PUNCTUATION = _UnicodePunctuation()
# Vowel points and reading marks of Hebrew and Arabic script, which most texts leave out.
_POINTS = re.compile(
    "[\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7"
    "\u0610-\u061a\u064b-\u0652\u0656-\u065f\u0670\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed]"
)
# Languages that write vowels with them: Yiddish and Kashmiri.
_POINTED = ("yi", "ks")
# Languages in which an apostrophe ends an article or preposition: l'Afrique, dell'arte.
_ELIDED = ("fr", "it", "ca", "oc")
_APOSTROPHES = re.compile("['\u2019\u02bc]")
# the capital dotted I, lower-cased
_DOTTED_I = "i\N{COMBINING DOT ABOVE}"


def normalize_answer(text: str, *, normalize: Normalizer = "paper", lang: str | None = None) -> str:
    """Return the text in the form used for comparison: words separated by single spaces.

    ``"paper"``: lower case, delete the 32 ASCII punctuation characters, replace the words a/an/the by a space, collapse
    whitespace (BERGEN's normaliser, section 3 of "Retrieval-augmented generation in multilingual settings").
    ``"unicode"``: NFKC, case folding, digits of every script as 0 to 9, delete Unicode punctuation, symbols, format
    characters and the tatweel (dashes and slashes become spaces), and the vowel points of Hebrew and Arabic unless
    ``lang`` writes its vowels with them (Yiddish, Kashmiri); drop articles only if ``lang`` is English, separate at
    apostrophes if it is French, Italian, Catalan or Occitan; collapse whitespace.

    Raises:
        MetricError: the text is not a string, or the normaliser is unknown.
    """
    if not isinstance(text, str):
        raise MetricError(f"expected a string to normalise, got {type(text).__name__}")
    if normalize == "paper":
        text = _ARTICLES.sub(" ", text.lower().translate(_ASCII_PUNCTUATION))
    elif normalize == "unicode":
        base = None if lang is None else base_language(lang)
        text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold()).replace(_DOTTED_I, "i")
        if base in _ELIDED:
            text = _APOSTROPHES.sub(" ", text)
        if base not in _POINTED:
            text = _POINTS.sub("", text)
        text = text.translate(_UNICODE_PUNCTUATION)
        if base == "en":
            text = _ARTICLES.sub(" ", text)
    else:
        raise MetricError(f"unknown normaliser '{normalize}'" + did_you_mean(str(normalize), ("paper", "unicode")))
    return " ".join(text.split())


def word_tokens(text: str, *, normalize: Normalizer = "paper", lang: str | None = None) -> list[str]:
    """Return the words of a text after normalisation.

    ``"paper"`` splits at whitespace. ``"unicode"`` also takes every grapheme of a script written without spaces (Han,
    kana, Thai, Lao, Khmer, Burmese) as a word, the convention of ml-mkqa's mixed segmentation; Korean, Amharic, Hindi,
    Arabic, Hebrew and the alphabets of Europe are split at whitespace.
    """
    normalized = normalize_answer(text, normalize=normalize, lang=lang)
    if normalize == "paper":
        return normalized.split()
    return _isolate(normalized, NO_SPACE_SCRIPTS).split()


def gram_tokens(text: str, *, normalize: Normalizer = "paper", lang: str | None = None) -> list[str]:
    """Return the tokens that character n-grams are taken from.

    ``"paper"`` splits at whitespace. ``"unicode"`` also takes every Han character as a separate token, so that a
    two-character name is found inside a longer sentence; kana and the other scripts without spaces remain in runs,
    where n-grams cross word boundaries.
    """
    normalized = normalize_answer(text, normalize=normalize, lang=lang)
    if normalize == "paper":
        return normalized.split()
    return _isolate(normalized, _HAN).split()


_HAN = frozenset({"Hani"})


def _isolate(text: str, scripts: frozenset[str]) -> str:
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
    words = word_tokens(prediction, normalize=normalize, lang=lang)
    return best_of(multiset_overlap(words, word_tokens(answer, normalize=normalize, lang=lang)) for answer in answers)


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
    """Return 1.0 if any normalised answer is a substring of the normalised prediction, else 0.0.

    An answer that normalises to an empty string is a substring of everything and therefore counts as a match, as in the
    original implementation.

    Raises:
        MetricError: ``answers`` is empty or a bare string, or anything in it (or the prediction) is not a string.
    """
    return _any(lambda predicted, answer: answer in predicted, prediction, answers, normalize, lang)


def exact_match(
    prediction: str, answers: Sequence[str], *, normalize: Normalizer = "paper", lang: str | None = None
) -> float:
    """Return 1.0 if the normalised prediction equals any normalised answer, else 0.0. Raises MetricError as
    :func:`match`.
    """
    return _any(lambda predicted, answer: answer == predicted, prediction, answers, normalize, lang)


def _any(
    test: Callable[[str, str], bool], prediction: str, answers: Sequence[str], normalize: Normalizer, lang: str | None
) -> float:
    check_answers(prediction, answers)
    predicted = normalize_answer(prediction, normalize=normalize, lang=lang)
    golds = (normalize_answer(answer, normalize=normalize, lang=lang) for answer in answers)
    return float(any(test(predicted, gold) for gold in golds))
