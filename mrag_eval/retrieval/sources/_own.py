"""Retrievers of the user's (``retrieval.retriever``): a function, or a service, in place of a search of ours."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from mrag_eval.core import Passage, RagDoc
from mrag_eval.retrieval._own_index import OwnIndex
from mrag_eval.retrieval._plan import RowPlan
from mrag_eval.retrieval.sources._agents import AgentLoop
from mrag_eval.retrieval.sources._index import IndexSearch
from mrag_eval.retrieval.sources._source import Setup


class OwnRetriever(IndexSearch):
    """Search as in an index; a query that the retriever fails is a failure of its row."""

    def held(self, docs: Sequence[RagDoc]) -> None:
        """Return None: what is searched cannot be listed."""

    def relevant(self, docs: Sequence[RagDoc]) -> None:
        """Return None, as :meth:`held`."""

    def passages(self, ids: Sequence[str]) -> list[Passage]:
        """Return the texts that were found in this process."""
        return self._own.passages(ids)

    def identity(self) -> dict[str, Any]:
        """Return what the retriever is."""
        return {"corpus": dict(self._index or {})}

    @cached_property
    def _own(self) -> OwnIndex:
        block = self._retrieval.retriever
        assert block is not None, "a rule of the block"
        return OwnIndex(block)

    def _checked(self, docs: Sequence[RagDoc]) -> dict[str, Any]:
        self._own.check_languages(self._plans(docs), self._retrieval)
        return self._own.record

    def _opened(self, docs: Sequence[RagDoc], plans: Sequence[RowPlan]) -> OwnIndex:
        self._own.check_languages(plans, self._retrieval)
        self._own.languages = sorted({code for plan in plans for code in plan.languages or ()})
        return self._own


class OwnAgentLoop(AgentLoop, OwnRetriever):
    """Retrieve by agents from a retriever of the user's."""

    def _check_fixed(self, docs: Sequence[RagDoc]) -> None:
        """Do nothing: which languages there are is not known."""

    def _retriever(self) -> OwnIndex:
        return self._own


def open_source(setup: Setup) -> OwnRetriever:
    """Return the source of ``retrieval.retriever``."""
    return OwnAgentLoop(setup) if setup.retrieval.preset.source == "agents" else OwnRetriever(setup)
