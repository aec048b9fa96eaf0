"""Repair of MKQA's aliases."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mrag_eval.core import NO_SPACES, base_language


def usable_aliases(aliases: Iterable[str], answers: Sequence[str], language: str) -> tuple[str, ...]:
    """Return the further spellings of an answer: stripped, distinct, and different from the answers.

    In some rows an alias is exploded into its characters (``["j", "u", "l", "y", " ", "2", ...]``). Every character
    occurs once, in no order, so the alias cannot be restored: the characters are left out, since they would match in
    almost any reply. A single character can be a valid alias (``6``), and so can a few in a script with words that
    short; a space or a mark among them shows that they are pieces.
    """
    stripped = [alias for alias in aliases if alias]
    pieces = [alias for alias in stripped if len(alias) == 1]
    short_words = base_language(language) in NO_SPACES or base_language(language) == "ko"
    if len(pieces) > (3 if short_words else 1) or not all(map(str.isalnum, pieces)):
        stripped = [alias for alias in stripped if len(alias) > 1]
    kept = dict.fromkeys(text for alias in stripped if (text := alias.strip()))
    return tuple(text for text in kept if text not in answers)
