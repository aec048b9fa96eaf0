"""Topics of a starter corpus in one language, and how near a page is to them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mrag_eval.core import NO_SPACES, base_language
from mrag_eval.retrievers.corpora._outlines import Outline
from mrag_eval.retrievers.corpora._starter_words import Words, also_called

# Nearness: a page about a subject in a place, about a place, in a category of a place (or linked from a page about
# one), about none of these.
SUBJECT, PLACE, NEAR, OTHER = 3, 2, 1, 0
NO_PLACE = -1

_BETWEEN = re.compile(r"[\s!-/:-@\[-`{-~–—…«»“”‘’،؛·・]+")
# Particles are written together with the word that follows.
_PARTICLES = frozenset({"am", "he", "ti"})
_ARTICLE, _BEFORE = "ال", {"ar": ("", "ال", "وال", "بال", "لل")}
# A shorter name must be a whole word: "Oman" is found in no other word than itself. Two syllables of Hangul are a name.
_SHORT, _SHORT_IN = 5, {"ko": 2}


@dataclass(frozen=True)
class Topics:
    """Names to look for, folded: a group of names for each place, and the words of the subjects."""

    places: tuple[tuple[str, ...], ...]
    subjects: tuple[str, ...]

    def near(self, outline: Outline) -> tuple[int, int]:
        """Return how near a page is (``SUBJECT`` to ``OTHER``), and the number of its place (or ``NO_PLACE``).

        Without places, a page about a subject is the nearest.
        """
        title, categories = _fold(outline.title), _fold(outline.categories)
        in_title = self._place(title)
        place = in_title if in_title != NO_PLACE or not categories else self._place(categories)
        if self.places and place == NO_PLACE:
            return OTHER, NO_PLACE
        if any(word in title or word in categories for word in self.subjects):
            return SUBJECT, place
        if not self.places:
            return OTHER, NO_PLACE
        return (PLACE, place) if in_title != NO_PLACE else (NEAR, place)

    def _place(self, text: str) -> int:
        for number, names in enumerate(self.places):
            for name in names:
                if name in text:
                    return number
        return NO_PLACE


def topics(lang: str, places: Sequence[tuple[str, str]], subjects: Words) -> Topics:
    """Return the topics in a language.

    ``places`` are pairs of a territory's code (or a region that ``also_called`` knows) and the code of its language (or
    ""). The names of both are CLDR's; that of the language is often the adjective (Greek, griego).
    """
    code = base_language(lang)
    within = code in NO_SPACES or code in _PARTICLES
    groups = tuple(_folded(_names(code, territory, speech), code, within) for territory, speech in places)
    return Topics(groups, _folded(subjects.get(code, ()), code, within, whole=False))


def _fold(text: str) -> str:
    return f" {_BETWEEN.sub(' ', text.casefold())} "


def _names(lang: str, territory: str, speech: str) -> list[str]:
    from langcodes import Language

    found = [*also_called(territory).get(lang, ())]
    for form in (lang, "zh-Hant") if lang == "zh" else (lang,):
        if len(territory) == 2:
            found.append(str(Language.make(territory=territory).territory_name(form)))
        if speech:
            found.append(str(Language.get(speech).display_name(form)))
    return found


def _folded(names: Iterable[str], lang: str, within: bool, *, whole: bool = True) -> tuple[str, ...]:
    """Return the names as they are looked for: anywhere in a text, or at the beginning of a word."""
    folded = (_BETWEEN.sub(" ", name.casefold()).strip() for name in names)
    found = [name for name in dict.fromkeys(folded) if name]
    if within:
        return tuple(found)
    short = _SHORT_IN.get(lang, _SHORT)
    spelt = [f" {name} " if whole and len(name) < short else f" {name}" for name in found]
    if lang in _BEFORE:
        bare = [name.strip().removeprefix(_ARTICLE) for name in spelt]
        spelt = [f" {particle}{name}" for name in bare for particle in _BEFORE[lang]]
    return tuple(spelt)
