"""Rules by which texts become the words of a lexical index."""

from __future__ import annotations

import logging
import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib.metadata import version
from typing import Any

from mrag_eval.core import base_language
from mrag_eval.platform import CorpusError
from mrag_eval.text import folding
from mrag_eval.text._segmenters import SEGMENTED, STEMMED, by_dictionary, korean_words, libraries, segmenters, stemmer
from mrag_eval.text._tokenize import (
    Tokenizer,
    ascii_words,
    cut,
    pairs_and_characters,
    runs,
    with_parts,
    word_pairs_and_syllables,
)

_logger = logging.getLogger(__name__)

_NAME = "unicode-scripts"
# Raised with rules that cut a text into other words
_VERSION = 2
# Options of an index, each recorded with its library.
OPTIONS = ("segment", "stem", "simplified")
# Stress marks of Cyrillic, which stemmers do not know
_STRESS = re.compile("(?<=[\u0400-\u04ff])[\u0300\u0301]")
_REMEMBERED = 1 << 17


# Languages that an option holds for; True: all that its library knows
Chosen = bool | tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Analyzer:
    """The words of texts: folded, cut by script, and optionally cut by dictionaries and reduced to stems.

    Every lexical index records its analyzer, and queries are cut like its passages.

    Attributes:
        segment: cut Chinese, Japanese, Thai, Lao, Khmer and Burmese into words by the dictionaries of ICU, and Korean
            by Kiwi, instead of single letters and pairs: in every language, or in texts of these.
        stem: reduce words to stems: in every language that Snowball knows, or in these.
        simplified: convert traditional Chinese characters to simplified ones.
    """

    segment: Chosen = False
    stem: Chosen = False
    simplified: bool = False

    @classmethod
    def choose(
        cls, segment: Chosen | None, stem: Chosen | None, *, simplified: bool = False, joint: bool = False
    ) -> Analyzer:
        """Return the analyzer of a new index; None leaves an option to what is known of each language.

        Stems are taken in the languages of ``STEMMED``, dictionaries in those of ``SEGMENTED`` if they are installed.
        A joint index has neither, as its queries are in no one language.
        """
        by_language = not joint
        installed = all(segmenters().values())
        return cls(
            (SEGMENTED if by_language and installed else False) if segment is None else segment,
            (STEMMED if by_language else False) if stem is None else stem,
            simplified,
        )

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> Analyzer:
        """Return the analyzer that an index records.

        Raises CorpusError for one that this version of mrag-eval lacks. Warns of dictionaries or stemmers in another
        version than the index was built with.
        """
        name, number = record.get("name"), record.get("version")
        if name != _NAME or number != _VERSION or record.get("folding") != folding.FOLDING_VERSION:
            raise CorpusError(
                f"the index was tokenised with '{name}' version {number}, this mrag-eval has "
                f"'{_NAME}' version {_VERSION}",
                "rebuild the index: mrag-eval index build --overwrite ...",
            )
        segment, stem = (_chosen(record.get(key)) for key in ("segment", "stem"))
        found = cls(segment, stem, "simplified" in record)
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
        found: dict[str, Any] = {"name": _NAME, "version": _VERSION, "folding": folding.FOLDING_VERSION}
        if self.segment:
            found["segment"] = {**libraries(), **_languages(self.segment)}
        if self.stem:
            found["stem"] = {"snowballstemmer": version("snowballstemmer"), **_languages(self.stem)}
        if self.simplified:
            folding.fold("漢", simplified=True)
            found["simplified"] = {"opencc": version("opencc")}
        return found

    def tokenizer(self, lang: str | None) -> Tokenizer:
        """Return the function that gives the words of a text in ``lang`` (None: several), with repetitions."""
        return _tokenizer(self, lang)


def _chosen(entry: Mapping[str, Any] | None) -> Chosen:
    """Return what an entry of a manifest says of an option; without languages, it holds in all."""
    return False if entry is None else tuple(entry.get("languages", ())) or True


def _languages(chosen: Chosen) -> dict[str, list[str]]:
    return {} if isinstance(chosen, bool) else {"languages": list(chosen)}


def _holds(chosen: Chosen, lang: str | None) -> bool:
    return chosen if isinstance(chosen, bool) else lang is not None and base_language(lang) in chosen


def analyzer_text(record: Mapping[str, Any], languages: Iterable[str]) -> str:
    """Return how an index with texts in ``languages`` cuts words: ``words, stems of de ru (snowballstemmer 3.1.1)``.

    What holds in other languages alone is left out, so that two indexes that cut the same texts alike have one text.
    """
    held = sorted({base_language(lang) for lang in languages})
    found = [f"words {record.get('version')}.{record.get('folding', 0)}"]
    for key, name in (("stem", "stems"), ("segment", "dictionaries"), ("simplified", "simplified characters")):
        entry = dict(record.get(key) or {})
        chosen = entry.pop("languages", None)
        here = [lang for lang in held if chosen is None or lang in chosen]
        if entry and here:
            libraries_used = ", ".join(f"{library} {number}" for library, number in sorted(entry.items()))
            found.append(f"{name}{'' if chosen is None else ' of ' + ' '.join(here)} ({libraries_used})")
    return ", ".join(found)


@lru_cache(maxsize=256)
def _tokenizer(analyzer: Analyzer, lang: str | None) -> Tokenizer:
    stem = stemmer(lang) if lang is not None and _holds(analyzer.stem, lang) else None
    segment = _holds(analyzer.segment, lang)
    folded = partial(folding.fold, language=lang, search=True, simplified=analyzer.simplified)
    if stem is None and not segment:
        return lambda text: ascii_words(text) if text.isascii() else _words(folded(with_parts(text)))
    # stemmers and dictionaries know the spelling of their language, so words are folded last
    spelled = lru_cache(maxsize=_REMEMBERED)(lambda word: folded(stem(word) if stem else word))

    def tokenize(text: str) -> list[str]:
        words: list[str] = []
        for script, run in runs(_STRESS.sub("", unicodedata.normalize("NFKC", with_parts(text)).lower())):
            if script == "word":
                words.append(spelled(run))
            elif segment:
                found = korean_words(run) if script == "hangul" else by_dictionary(run)
                words += map(folded, found)
            else:
                words += _words(folded(run))
        return words

    return tokenize


def _words(folded: str) -> list[str]:
    return cut(folded, word_pairs_and_syllables, pairs_and_characters)
