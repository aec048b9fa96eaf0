"""No passages (mode ``no_ir``)."""

from __future__ import annotations

from collections.abc import Sequence

from mrag_eval import models
from mrag_eval.core import RagDoc, Retrieved
from mrag_eval.retrieval.sources._source import Setup, Source


class Nothing(Source):
    """Return no passages for the prompt."""

    def repeatable(self, docs: Sequence[RagDoc]) -> bool:
        """Return True."""
        return True

    def retrieve(self, docs: Sequence[RagDoc], translator: models.Translator | None = None) -> list[Retrieved]:
        """Return an empty record per row."""
        return [Retrieved()] * len(docs)


def open_source(_: Setup) -> Nothing:
    """Return the source of the mode ``no_ir``."""
    return Nothing()
