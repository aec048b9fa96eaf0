"""Published rows of the benchmarks: their numbers, and their hashes where they were at hand as a whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from mrag_eval.datasets._content import combined_content

# Written by scripts/published_rows.py.
FILE = Path(__file__).resolve().parent / "published_rows.yaml"


@dataclass(frozen=True, slots=True)
class PublishedPart:
    """A part of the published rows: a language, a country, a subject.

    Attributes:
        rows: number of its rows.
        content: SHA-256 over them (:class:`~mrag_eval.datasets._content.Part`); None where it is not declared.
    """

    rows: int
    content: str | None = None


@dataclass(frozen=True, slots=True)
class PublishedRows:
    """The rows that were published for a ``data:`` block, before anything is drawn from them.

    Attributes:
        parts: name of a part -> its rows.
    """

    parts: Mapping[str, PublishedPart]

    @property
    def rows(self) -> int:
        """Return the number of all rows."""
        return sum(part.rows for part in self.parts.values())

    @property
    def content(self) -> str | None:
        """Return the hash over all rows; None where that of a part is not declared."""
        known = {name: part.content for name, part in self.parts.items() if part.content is not None}
        return combined_content(known) if known and len(known) == len(self.parts) else None


@lru_cache(maxsize=1)
def declared_contents() -> Mapping[str, Mapping[str, Mapping[str, str]]]:
    """Return what the file declares: ``rows`` or ``documents`` -> benchmark -> part -> SHA-256."""
    content: Any = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    return {kind: content.get(kind) or {} for kind in ("rows", "documents")}


def published(kind: str, benchmark: str, counts: Mapping[str, int]) -> PublishedRows:
    """Return published numbers (part -> rows, or documents) with the hashes that are declared for them."""
    known = declared_contents()[kind].get(benchmark, {})
    return PublishedRows({name: PublishedPart(rows, known.get(name)) for name, rows in counts.items()})
