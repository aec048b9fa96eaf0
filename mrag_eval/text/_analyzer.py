"""Rules by which texts become the words of a lexical index."""

from __future__ import annotations

import logging
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib.metadata import version
from typing import Any

from mrag_eval.core import CorpusError
from mrag_eval.text._segmenters import by_dictionary, korean_words, libraries
from mrag_eval.text._stemming import stem_languages, stemmer
from mrag_eval.text._tokenize import (
    Tokenizer,
    ascii_words,
    cut,
    pairs,
    pairs_and_characters,
    runs,
    with_parts,
    word_and_pairs,
    word_pairs_and_syllables,
)
from mrag_eval.text._tokenize_v1 import normalize_v1
from mrag_eval.text.folding import FOLDING_VERSION, fold

_logger = logging.getLogger(__name__)

_NAME = "unicode-scripts"
_VERSIONS = (1, 2)
# Options of an index, each recorded with its library.
OPTIONS = ("segment", "stem", "simplified")
# Stress marks of Cyrillic, which stemmers do not know
_STRESS = re.compile("(?<=[\u0400-\u04ff])[\u0300\u0301]")
_REMEMBERED = 1 << 17


@dataclass(frozen=True, slots=True)
class Analyzer:
    """The words of texts: folded, cut by script, and optionally cut by dictionaries and reduced to stems.

    Every lexical index records its analyzer, and queries are cut like its passages.

    Attributes:
        segment: cut Chinese, Japanese, Thai, Lao, Khmer and Burmese into words by the dictionaries of ICU, and Korean
            by Kiwi, instead of single letters and pairs.
        stem: reduce words to stems, in the languages that Snowball knows.
        simplified: convert traditional Chinese characters to simplified ones.
        version: 2, or 1 for an index that was built with the first rules.
    """

    segment: bool = False
    stem: bool = False
    simplified: bool = False
    version: int = 2

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> Analyzer:
        """Return the analyzer that an index records.

        Raises CorpusError for one that this version of mrag-eval lacks. Warns of dictionaries or stemmers in another
        version than the index was built with.
        """
        name, number = record.get("name"), record.get("version")
        if name != _NAME or number not in _VERSIONS or record.get("folding", FOLDING_VERSION) != FOLDING_VERSION:
            raise CorpusError(
                f"the index was tokenised with '{name}' version {number}, this mrag-eval has "
                f"'{_NAME}' version {_VERSIONS[-1]}",
                "rebuild the index: mrag-eval index build --overwrite ...",
            )
        found = cls(version=int(number), **{key: key in record for key in OPTIONS})
        own = found.record()
        for key in OPTIONS:
            if record.get(key) != own.get(key):
                _logger.warning(
                    "the index was built with %s, its queries are cut with %s: some words may not meet",
                    record[key], own[key],
                )  # fmt: skip
        return found

    def record(self) -> dict[str, Any]:
        """Return the entry of a manifest. Raise MissingExtraError for a library that is not installed."""
        found: dict[str, Any] = {"name": _NAME, "version": self.version}
        if self.version > 1:
            found["folding"] = FOLDING_VERSION
        if self.segment:
            found["segment"] = libraries()
        if self.stem:
            stem_languages()
            found["stem"] = {"snowballstemmer": version("snowballstemmer")}
        if self.simplified:
            fold("漢", simplified=True)
            found["simplified"] = {"opencc": version("opencc")}
        return found

    def tokenizer(self, lang: str | None) -> Tokenizer:
        """Return the function that gives the words of a text in ``lang`` (None: several), with repetitions."""
        return _tokenizer(self, lang)


@lru_cache(maxsize=256)
def _tokenizer(analyzer: Analyzer, lang: str | None) -> Tokenizer:
    if analyzer.version == 1:
        return lambda text: ascii_words(text) if text.isascii() else cut(normalize_v1(text), word_and_pairs, pairs)
    stem = stemmer(lang) if analyzer.stem and lang is not None else None
    folded = partial(fold, language=lang, search=True, simplified=analyzer.simplified)
    if stem is None and not analyzer.segment:
        return lambda text: ascii_words(text) if text.isascii() else _words(folded(with_parts(text)))
    # stemmers and dictionaries know the spelling of their language, so words are folded last
    spelled = lru_cache(maxsize=_REMEMBERED)(lambda word: folded(stem(word) if stem else word))

    def tokenize(text: str) -> list[str]:
        words: list[str] = []
        for script, run in runs(_STRESS.sub("", unicodedata.normalize("NFKC", with_parts(text)).lower())):
            if script == "word":
                words.append(spelled(run))
            elif analyzer.segment:
                found = korean_words(run) if script == "hangul" else by_dictionary(run)
                words += map(folded, found)
            else:
                words += _words(folded(run))
        return words

    return tokenize


def _words(folded: str) -> list[str]:
    return cut(folded, word_pairs_and_syllables, pairs_and_characters)
