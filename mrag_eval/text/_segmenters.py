"""Words of scripts without spaces, and of Korean, cut by dictionaries of optional libraries; stems, lemmas, forms."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache, lru_cache
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any

from mrag_eval.core import base_language, is_language, language_name, normalize_language
from mrag_eval.platform import content_key, missing_extra
from mrag_eval.text._letters import marks
from mrag_eval.text._tokenize import run_pattern

# Parts of speech of Kiwi (the Sejong tag set) that questions and passages have in common: nouns, verbs, adjectives,
# adverbs, roots, numbers, foreign words, hanja. Particles and endings are attached to them and dropped.
_KOREAN_WORDS = ("NN", "NP", "NR", "VV", "VA", "MA", "XR", "SN", "SL", "SH")


_logger = logging.getLogger(__name__)

# Languages whose words dictionaries cut, but for Chinese, where pairs of letters find as much (XQuAD's questions,
# benchmarks/lexical_languages.py). The others were not measured.
SEGMENTED = ("ja", "km", "ko", "lo", "my", "th")
_LIBRARIES = ("icu4py", "kiwipiepy")


def libraries() -> dict[str, str]:
    """Return the libraries that segment, with their versions. Raise MissingExtraError if one is not installed."""
    for name in _LIBRARIES:
        if find_spec(name) is None:
            raise missing_extra("segment", name)
    return {name: version(name) for name in _LIBRARIES}


def segmenters(names: Iterable[str] = _LIBRARIES) -> dict[str, str | None]:
    """Return the versions of the libraries that segment, or of others, None of one that is not installed."""
    return {name: version(name) if find_spec(name) else None for name in names}


def warn_without_segmenters(languages: Iterable[str]) -> None:
    """Log one warning for languages of an index that are cut into pairs of letters for want of a library."""
    lacking = [name for name, found in segmenters().items() if found is None]
    cut = sorted({base_language(lang) for lang in languages} & {*SEGMENTED})
    if lacking and cut:
        _logger.warning(
            'BM25 cuts %s into pairs of letters, without %s: pip install "mrag-eval[segment]"',
            ", ".join(map(language_name, cut)), " and ".join(lacking),
        )  # fmt: skip


def words_apart(text: str) -> str:
    """Return the text with spaces between the words of scripts written without them.

    Chinese, Japanese, Thai, Lao, Khmer and Burmese are cut by the dictionaries of ICU, Korean by Kiwi, without
    particles and endings. Text of other scripts is unchanged. Raise MissingExtraError for a library that a letter of
    the text needs and that is not installed.
    """

    def cut(match: re.Match[str]) -> str:
        run = match.group()
        if match.lastgroup == "word":
            return run
        return f" {' '.join(korean_words(run) if match.lastgroup == 'hangul' else by_dictionary(run))} "

    return run_pattern().sub(cut, text)


def by_dictionary(run: str) -> list[str]:
    """Return the words of a run of Chinese, Japanese, Thai, Lao, Khmer or Burmese, by the dictionaries of ICU.

    ICU chooses the dictionary by script. Raise MissingExtraError if icu4py is not installed.
    """
    return [word for piece in _icu_breaker()(run, "und") if (word := piece.strip())]


@lru_cache(maxsize=1 << 17)
def korean_words(run: str) -> tuple[str, ...]:
    """Return the words of a run of Hangul without particles and endings, by the analyser Kiwi.

    A run of particles alone is a word. Raise MissingExtraError if kiwipiepy is not installed.
    """
    return tuple(token.form for token in _kiwi().tokenize(run) if token.tag.startswith(_KOREAN_WORDS)) or (run,)


@lru_cache(maxsize=1)
def _icu_breaker() -> Any:
    try:
        from icu4py.breakers import WordBreaker
    except ImportError as error:
        raise missing_extra("segment", "icu4py") from error
    return WordBreaker


@lru_cache(maxsize=1)
def _kiwi() -> Any:
    try:
        from kiwipiepy import Kiwi
    except ImportError as error:
        raise missing_extra("segment", "kiwipiepy") from error
    return Kiwi(num_workers=1)


# Languages in which stems find the paragraphs of XQuAD's questions at higher places: the interval of the difference in
# MRR is above 0 (benchmarks/lexical_languages.py). Others that Snowball knows were not measured.
# Each with the name of its algorithm.
_MEASURED = {
    "ar": "arabic",
    "de": "german",
    "el": "greek",
    "en": "english",
    "es": "spanish",
    "hi": "hindi",
    "ru": "russian",
    "tr": "turkish",
}
STEMMED = tuple(_MEASURED)

Stem = Callable[[str], str]


def stemmer(lang: str) -> Stem | None:
    """Return the function that reduces a lower-case word to its stem; None if Snowball lacks the language."""
    base = base_language(lang)
    return _stemmer(_MEASURED.get(base) or _algorithms().get(base))


@cache
def _algorithms() -> dict[str, str]:
    import snowballstemmer

    # the others are older algorithms, such as Porter's
    found = {normalize_language(name): name for name in snowballstemmer.algorithms() if is_language(name)}
    return found | ({"nn": found["nb"]} if "nb" in found else {})


@cache
def _stemmer(algorithm: str | None) -> Stem | None:
    if algorithm is None:
        return None
    import snowballstemmer

    word: Stem = snowballstemmer.stemmer(algorithm).stemWord
    return word


# Codes of simplemma's tables that are not ours, and languages whose words have one form
_TABLES = {"bs": "hbs", "fil": "tl", "hr": "hbs", "no": "nb", "sh": "hbs", "sr": "hbs"}
_ONE_FORM = frozenset(["ja", "km", "lo", "my", "th", "vi", "yo", "zh"])


@cache
def _forms(lang: str) -> tuple[str, Mapping[str, str], re.Pattern[str]]:
    """Return simplemma's code of a language, form -> lemma, empty where it lacks the language, and what finds words of
    three letters or more: shorter ones are particles, units and initials.
    """
    try:
        from simplemma.strategies.dictionaries import dictionary_factory as known
    except ImportError as error:
        raise missing_extra("lemmas", "simplemma") from error
    code = _TABLES.get(base_language(lang), base_language(lang))
    table = known.DEFAULT_DICTIONARY_FACTORY.get_dictionary(code) if code in known.SUPPORTED_LANGUAGES else {}
    return code, table, re.compile(rf"((?:(?![\d_])\w[{marks()}]*){{3,}})")


def in_lemmas(text: str, lang: str | None) -> str:
    """Return a text with words as lemmas where simplemma has the language. Raise MissingExtraError without it."""
    code, table, word = _forms(lang or "und")
    if not table:
        return text
    from simplemma import lemmatize

    return word.sub(lambda found: lemmatize(found[0], lang=code), text)


def inflected(texts: Mapping[str, str], lang: str, seed: int) -> dict[str, str] | None:
    """Return key -> text with each word in another form of its lemma, drawn by ``seed`` and key; None without a table.

    Texts with a word that the table lacks, or has in one form, are left out. Numbers and words of one or two letters
    stay, as do the words of languages such as Chinese. Raise MissingExtraError if simplemma is not installed.
    """
    _, table, word = _forms(lang)
    if base_language(lang) in _ONE_FORM or not table:
        return dict(texts) if base_language(lang) in _ONE_FORM else None
    lemma = {own: table.get(own) or table.get(own.lower()) for text in texts.values() for own in word.findall(text)}
    forms: dict[str | None, set[str]] = {found: set() for found in lemma.values() if found}
    for form, found in table.items():
        if found in forms:
            forms[found].add(form)
    others = {own: sorted(forms.get(lemma[own], {own}) - {own, own.lower()}) for own in lemma}
    out = {}
    for key, text in texts.items():
        parts = word.split(text)
        if all(others[own] for own in parts[1::2]):
            drawn = int(content_key("inflected", seed, key)[:16], 16)
            parts[1::2] = [others[own][drawn % len(others[own])] for own in parts[1::2]]
            out[key] = "".join(parts)
    return out
