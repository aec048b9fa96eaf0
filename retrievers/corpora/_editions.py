"""A corpus in one language that is read when it is built, not before."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice

from mrag_eval.core import ConfigError
from mrag_eval.retrievers.corpora._corpus import Document
from mrag_eval.retrievers.corpora._reading import counted


@dataclass(frozen=True)
class Edition:
    """Documents of one language; ``source`` says in a manifest where they come from.

    ``documents`` reads them from the beginning, in the same order, whenever it is called.
    """

    lang: str
    source: str
    documents: Callable[[], Iterator[Document]]

    def first(self, limit: int) -> Edition:
        """Its first ``limit`` documents, for trying things out; the source says so."""
        if limit < 1:
            raise ConfigError(f"the number of documents is {limit}, it must be at least 1", "leave it out to take all")
        return replace(
            self,
            source=f"{self.source}, first {limit:,} documents",
            documents=lambda: counted(islice(self.documents(), limit), limit),
        )
