"""Relevance labels of a row's ranking: the passages that answer its question, and the source of the labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

# The key of a row's extra facts that names the page, by document id, on which its answer is found.
PAGE = "page"
LabelSource = Literal["judge", "proxy", "translated", "page"]
# Endings of the names of measures, by the source of their labels.
_SUFFIXES: Mapping[LabelSource | None, str] = {
    "proxy": "_proxy",
    "translated": "_proxy_translated",
    "page": "_proxy_page",
}


@dataclass(frozen=True, slots=True)
class Labels:
    """Labels of one row. ``judged`` are the ids examined, ``relevant`` those of them that answer the question.

    ``fault`` is the reason for missing labels. ``votes`` holds the reply of each seat of a panel: passage numbers from
    1, or the reason of an abstention.
    """

    by: LabelSource
    judged: tuple[str, ...] = ()
    relevant: frozenset[str] = frozenset()
    fault: str | None = None
    votes: Mapping[str, tuple[int, ...] | str] = field(default_factory=dict)

    @property
    def grades(self) -> dict[str, int]:
        """Return graded judgements for the ranking measures: 1 or 0 for every examined id."""
        return {passage: int(passage in self.relevant) for passage in self.judged}


def plain_name(metric: str) -> str:
    """Return the name of a measure without the mark of its labels."""
    return metric.partition("_proxy")[0]


def labelled_name(metric: str, by: LabelSource | None) -> str:
    """Return the name of a ranking measure, marked if its labels are not a panel's."""
    return metric + _SUFFIXES.get(by, "")
