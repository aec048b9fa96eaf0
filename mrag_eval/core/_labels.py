"""Relevance labels: which passages of a row's ranking answer its question, and who says so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

LabelSource = Literal["judge", "proxy"]
PROXY_SUFFIX = "_proxy"


@dataclass(frozen=True, slots=True)
class Labels:
    """``judged`` are the ids that were looked at, ``relevant`` those among them that answer the question.

    ``fault`` is the reason why the row has no labels; ``votes`` what each seat of a panel said: passage numbers from
    1, or why it abstained.
    """

    by: LabelSource
    judged: tuple[str, ...] = ()
    relevant: frozenset[str] = frozenset()
    fault: str | None = None
    votes: Mapping[str, tuple[int, ...] | str] = field(default_factory=dict)

    @property
    def grades(self) -> dict[str, int]:
        """Judgements as the ranking measures take them: 1 or 0 for everything that was looked at."""
        return {passage: int(passage in self.relevant) for passage in self.judged}


def labelled_name(metric: str, by: LabelSource | None) -> str:
    """The name of a ranking measure: one that rests on the lexical proxy says so."""
    return f"{metric}{PROXY_SUFFIX}" if by == "proxy" else metric
