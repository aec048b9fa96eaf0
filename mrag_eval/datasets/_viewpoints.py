"""Labels of a document about a disputed territory: its relevance, and the claim that it supports."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from mrag_eval.core import majority_of
from mrag_eval.platform import DataError

NEUTRAL = "Neutral"
NOT_RELEVANT = "Not relevant"
_LETTER = re.compile(r"([A-Z])\)\s*")
_YES = {"true", "yes", "1", "relevant"}
_NO = {"false", "no", "0", "not relevant", "irrelevant", "non-relevant"}
_NEUTRAL = {"neutral"}
_IRRELEVANT = {"", "not relevant", "irrelevant", "non-relevant", "n/a", "na", "nan", "none"}


@dataclass(frozen=True, slots=True)
class Label:
    """One annotation: ``viewpoint`` is a claimant's English name, :data:`NEUTRAL` or :data:`NOT_RELEVANT`.

    It is "" for a question that is not about a territory, and where people have no majority for any.
    """

    relevant: bool
    viewpoint: str

    @property
    def contradictory(self) -> bool:
        """Return whether it is relevant without a viewpoint, or not relevant with one (BordIRlines, H.1.3).

        Both are left out there.
        """
        return bool(self.viewpoint) and self.relevant == (self.viewpoint == NOT_RELEVANT)

    def as_labels(self) -> dict[str, str]:
        """Return the label in the form of a passage's ``labels``."""
        labels = {"relevant": "yes" if self.relevant else "no"}
        return labels | ({"viewpoint": self.viewpoint} if self.viewpoint else {})


def read_relevance(value: str, where: str) -> bool:
    """Return True or False for ``TRUE`` / ``Yes`` and their opposites; raise DataError for another label."""
    text = value.strip().casefold()
    if text in _YES:
        return True
    if text in _NO:
        return False
    raise DataError(f"{where}: relevance label '{value}' is neither yes nor no", "allowed: TRUE, FALSE, Yes, No")


def read_viewpoint(value: str, claimants: Sequence[str], where: str, native: Sequence[str] = ()) -> str:
    """Return a claimant given by name or as ``A) name`` (English or ``native``), Neutral, or Not relevant; else raise
    DataError.
    """
    letter = _LETTER.match(value.strip())
    name = value.strip()[letter.end() :].strip() if letter else value.strip()
    for names in (claimants, native):
        if name in names:
            return claimants[list(names).index(name)]
    plain = name.casefold().rstrip(".")
    if plain in _NEUTRAL:
        return NEUTRAL
    if plain in _IRRELEVANT and not (letter and not name):
        return NOT_RELEVANT
    if letter and not name and ord(letter[1]) - ord("A") < len(claimants):
        return claimants[ord(letter[1]) - ord("A")]
    allowed = ", ".join([*claimants, NEUTRAL, NOT_RELEVANT])
    raise DataError(f"{where}: viewpoint label '{value}' is not one of this query's", f"allowed: {allowed}")


def majority(labels: Sequence[Label]) -> Label | None:
    """Return what more than half of the annotators say, for each of the two questions (BordIRlines, section 3.3).

    Contradictory labels are ignored. Returns None without a majority for relevance. A relevant document on whose
    viewpoint no majority agrees keeps its relevance, and its viewpoint is "".
    """
    sound = [label for label in labels if not label.contradictory]
    relevant = majority_of([label.relevant for label in sound])
    viewpoint = majority_of([label.viewpoint for label in sound])
    return None if relevant is None else Label(relevant, viewpoint or "")
