"""Independent rows of a check, and the words for them."""

from __future__ import annotations

from collections.abc import Sequence

from mrag_eval.report.files._scored_rows import ScoredRow


def groups_of(rows: Sequence[ScoredRow]) -> list[str] | None:
    """Return the groups to resample; None if every row is its own group."""
    groups = [row.group for row in rows]
    return groups if len(set(groups)) < len(groups) else None


def units_word(groups: list[str] | None) -> str:
    """Return the name of what is independent."""
    return "rows" if groups is None else "groups of rows"


def no_rows(pair: str | None) -> str:
    return "no row to compare" if pair is None else f"no row has the languages {pair} (question->document)"
