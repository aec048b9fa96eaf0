"""Presets of starter corpora: a part of Wikipedia that a laptop indexes in an hour, for a first number."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType

from mrag_eval.core import normalize_language
from mrag_eval.platform import ConfigError, read_yaml
from mrag_eval.retrievers.corpora._starter_words import Words, words_of
from mrag_eval.retrievers.corpora._topics import Topics, topics

# Another version chooses other pages.
VERSION = 1


@dataclass(frozen=True)
class Starter:
    """A preset: the most passages of each language, and the topics by which pages are chosen.

    ``passages`` maps a language to its budget, None for the whole edition. ``places`` are pairs as in ``topics``.
    ``about`` names the words in ``starter_words.yaml``. ``size`` is that of a passage: words, or characters in
    languages written without spaces.
    """

    name: str
    benchmarks: str
    passages: Mapping[str, int | None]
    places: tuple[tuple[str, str], ...]
    about: str
    kind: str = "bm25"
    size: int = 100

    @property
    def subjects(self) -> Words:
        """Return the words of the subjects, by language."""
        return words_of(self.about)

    def languages(self, some: Sequence[str] = ()) -> list[str]:
        """Return the codes of some of the languages, or of all; raise ConfigError for one that the preset lacks."""
        wanted = list(dict.fromkeys(normalize_language(lang) for lang in some)) or list(self.passages)
        for lang in wanted:
            if lang not in self.passages:
                raise ConfigError(f"'{self.name}' has no '{lang}'", f"it has {' '.join(self.passages)}")
        return wanted

    def topics(self, lang: str) -> Topics:
        """Return the names and words to look for in a language."""
        return topics(lang, self.places, self.subjects)


def _read() -> Iterator[Starter]:
    for name, preset in read_yaml(Path(__file__).with_name("starters.yaml")).items():
        places = tuple((place, lang or "") for place, lang in preset.pop("places").items())
        yield Starter(name, **preset, places=places)


@cache
def starters() -> Mapping[str, Starter]:
    """Return the starter corpora by name."""
    return MappingProxyType({preset.name: preset for preset in _read()})
