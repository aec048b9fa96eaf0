"""The contexts of a RAG system that is asked as it is (mode ``system``): they come with its answers."""

from __future__ import annotations

from collections.abc import Sequence

from mrag_eval import models
from mrag_eval.core import RagDoc, Retrieved
from mrag_eval.retrieval.sources._source import Setup, Source


class SystemContexts(Source):
    """Find nothing before the system is asked; see :meth:`mrag_eval.retrieval.TaskRows.show`."""

    def retrieve(self, docs: Sequence[RagDoc], translator: models.Translator | None = None) -> list[Retrieved]:
        """Return an empty record per row."""
        return [Retrieved()] * len(docs)


def open_source(_: Setup) -> SystemContexts:
    """Return the source of the mode ``system``."""
    return SystemContexts()
