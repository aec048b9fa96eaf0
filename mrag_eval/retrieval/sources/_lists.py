"""Lists that another system has made, in place of a search of ours."""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mrag_eval import models
from mrag_eval.core import Kept, Passage, RagDoc, Ranked, Retrieved, Searched
from mrag_eval.retrieval._plan import RowPlan, plan_rows, refuse_empty
from mrag_eval.retrieval._texts import PassageSource, with_texts
from mrag_eval.retrieval.rerank._rerank import rerank
from mrag_eval.retrieval.sources._source import Setup, Source

# Below the harness's logger, so that its command shows our lines as it shows its own.
log = logging.getLogger(f"lm_eval.{__name__}")


class Lists(Source):
    """Return ready lists, reranked if the block asks for it; ``_index`` says what they are, once that is known."""

    def __init__(self, setup: Setup) -> None:
        self._setup, self._retrieval, self._benchmark = setup, setup.retrieval, setup.benchmark
        self._index: dict[str, Any] | None = None

    @abstractmethod
    def _found(self, docs: Sequence[RagDoc], plans: Sequence[RowPlan]) -> tuple[list[Searched], PassageSource]:
        """Return the rows' lists, aligned with them, and what has the texts of their passages."""

    @abstractmethod
    def _texts(self) -> PassageSource:
        """Return what has the texts of all lists."""

    def retrieve(self, docs: Sequence[RagDoc], translator: models.Translator | None = None) -> list[Retrieved]:
        """Return the lists with the texts of the passages that are shown."""
        plans = plan_rows(docs, self._retrieval, self._benchmark.docs)
        refuse_empty(docs, plans)
        reranker = self._setup.reranker()
        found, texts = self._found(docs, plans)
        if reranker is not None:
            found = rerank(found, docs, plans, self._retrieval, reranker, texts, use_cache=self._setup.use_cache)
        return with_texts(found, texts)

    def passages(self, ids: Sequence[str]) -> list[Passage]:
        """Return the texts behind the lists."""
        return self._texts().passages(ids)

    def check_models(self) -> None:
        """Raise ConfigError for a reranker that cannot answer."""
        self._setup.check()

    def seats(self) -> dict[str, models.Seat]:
        """Return the seat of a listwise reranker."""
        return self._setup.seats()

    def identity(self) -> dict[str, Any]:
        """Return what the lists are."""
        return {"corpus": dict(self._index or {})}

    def record(self) -> dict[str, Any]:
        """Return what the lists are, for the results."""
        return {} if self._index is None else {"index": self._index}

    def _searched(self, hits: Iterable[tuple[Passage, float]], searchable: Mapping[str, int] | None = None) -> Searched:
        """Return passages with their scores, best first, in the form of a search: the first ``k`` are kept."""
        ranking = tuple(Ranked(passage.id, passage.doc_id, passage.lang, score) for passage, score in hits)
        kept = tuple(Kept(place.id, place.score) for place in ranking[: self._retrieval.k])
        return Searched(ranking, kept, searchable or {})


def warn_of_missing(run: Path, missing: Sequence[str], docs: Sequence[RagDoc]) -> None:
    """Log the rows that a run has no line for."""
    if missing:
        log.warning(
            "run %s has no line for %d of %d rows, which count as having retrieved nothing: %s%s",
            run, len(missing), len(docs), ", ".join(missing[:5]), ", ..." if len(missing) > 5 else "",
        )  # fmt: skip
