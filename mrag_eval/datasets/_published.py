"""Search results published with a benchmark, and annotators' labels of their documents."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from mrag_eval.core import Passage

# (passage id, score), best first
Run = tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class Published:
    """Published search results. ``runs``: IR mode -> row id -> its hits; ``passages`` has the text of every hit.

    ``searchable``: row id -> language -> number of known documents on the row's subject, the best available estimate of
    the searched passages; ``pool`` says which documents these are. ``labels``: (row id, passage id) -> label -> value.
    """

    runs: Mapping[str, Mapping[str, Run]]
    passages: Mapping[str, Passage]
    searchable: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    labels: Mapping[tuple[str, str], Mapping[str, str]] = field(default_factory=dict)
    pool: str = ""
