"""Corpora of one language, read lazily."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice

from mrag_eval.core import ConfigError
from mrag_eval.retrievers.corpora._corpus import Document
from mrag_eval.retrievers.corpora._reading import counted


@dataclass(frozen=True)
class Edition:
    """Documents of one language; ``source`` is their origin, for the manifest.

    Each call of ``documents`` reads them from the beginning, in the same order.
    """

    lang: str
    source: str
    documents: Callable[[], Iterator[Document]]

    def first(self, limit: int) -> Edition:
        """Return an edition of the first ``limit`` documents, with a source that says so."""
        if limit < 1:
            raise ConfigError(f"the number of documents is {limit}, it must be at least 1", "leave it out to take all")
        return replace(
            self,
            source=f"{self.source}, first {limit:,} documents",
            documents=lambda: counted(islice(self.documents(), limit), limit),
        )
