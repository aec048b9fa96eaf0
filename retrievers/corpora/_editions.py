"""Corpora of one language, read lazily."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass, replace
from itertools import islice

from mrag_eval.platform import ConfigError
from mrag_eval.retrievers.corpora._corpus import Document
from mrag_eval.retrievers.corpora._outlines import Outline
from mrag_eval.retrievers.corpora._reading import counted
from mrag_eval.retrievers.shards._manifest import SelectionRecord


@dataclass(frozen=True)
class Pages:
    """The pages of an edition in two readings: their outlines, and the documents of some of them by page number."""

    outlines: Callable[[], Iterator[Outline]]
    documents: Callable[[Container[str]], Iterator[Document]]


@dataclass(frozen=True)
class Edition:
    """Documents of one language; ``source`` is their origin, for the manifest.

    Each call of ``documents`` reads them from the beginning, in the same order. ``pages`` gives a part of them, for a
    starter corpus; ``selection`` says which part of a larger source they are.
    """

    lang: str
    source: str
    documents: Callable[[], Iterator[Document]]
    pages: Pages | None = None
    selection: SelectionRecord | None = None

    def first(self, limit: int) -> Edition:
        """Return an edition of the first ``limit`` documents; ``source`` and ``selection`` say so."""
        if limit < 1:
            raise ConfigError(f"the number of documents is {limit}, it must be at least 1", "leave it out to take all")
        return replace(
            self,
            source=f"{self.source}, first {limit:,} documents",
            documents=lambda: counted(islice(self.documents(), limit), limit),
            pages=None,
            selection=SelectionRecord(rule=f"the first {limit:,} documents"),
        )
