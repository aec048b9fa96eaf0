"""Search results that come with a benchmark, and what annotators said of the documents in them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from mrag_eval.core import Passage

# (passage id, score), best first
Run = tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class Published:
    """``runs``: IR mode -> row id -> its hits; ``passages`` has the text of every hit.

    ``searchable``: row id -> language -> documents known on the row's subject, the nearest there is to what the search
    ranged over. ``labels``: (row id, passage id) -> label -> value.
    """

    runs: Mapping[str, Mapping[str, Run]]
    passages: Mapping[str, Passage]
    searchable: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    labels: Mapping[tuple[str, str], Mapping[str, str]] = field(default_factory=dict)
