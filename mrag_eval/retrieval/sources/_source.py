"""The protocol of a source, and its input and output records."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, cast

from mrag_eval import models
from mrag_eval.config import Agent, Retrieval
from mrag_eval.core import Passage, RagDoc, Ranked, Retrieved, is_relevant
from mrag_eval.datasets import Benchmark, Held
from mrag_eval.platform import ConfigError, CorpusError
from mrag_eval.retrieval import rerank
from mrag_eval.retrieval._plan import Selection

if TYPE_CHECKING:
    from mrag_eval.retrieval.rerank._listwise import ListwiseReranker
    from mrag_eval.retrievers import Reranker


@dataclass(frozen=True)
class Setup:
    """Everything that a source is made from."""

    retrieval: Retrieval
    benchmark: Benchmark
    agent: Agent
    use_cache: bool = True

    @cached_property
    def _listwise(self) -> ListwiseReranker | None:
        block = self.retrieval.rerank
        if block is None or block.kind != "listwise":
            return None
        return cast("ListwiseReranker", rerank.open_reranker(self.retrieval))

    def reranker(self) -> Reranker | ListwiseReranker | None:
        """Return the reranker of the block, None if it has none; one that is a seat is the same each time."""
        return None if self.retrieval.rerank is None else self._listwise or rerank.open_reranker(self.retrieval)

    def check(self) -> None:
        """Raise ConfigError for a reranker that is asked and cannot answer: an unknown model, a missing key."""
        if self._listwise is not None:
            self._listwise.model.check_ahead()
        elif self.retrieval.rerank is not None and self.retrieval.rerank.kind == "api":
            rerank.open_reranker(self.retrieval)

    def seats(self) -> dict[str, models.Seat]:
        """Return the seat of a listwise reranker."""
        return {} if self._listwise is None else {"reranker": self._listwise.seat}


class Lacking:
    """Collect settings that cannot be determined on this machine.

    Unless ``tolerant``, nothing may be missing. Rows from a run folder need neither corpus nor models; then the names
    of the settings are kept, except those that are ``needed`` all the same.
    """

    def __init__(self, *, tolerant: bool = False, needed: Collection[str] = ()) -> None:
        self.names: list[str] = []
        self.tolerant, self._needed = tolerant, frozenset(needed)

    @contextmanager
    def allowed(self, *names: str) -> Iterator[None]:
        """Record ``names`` as missing if the block raises ConfigError or CorpusError; raise it if they are needed."""
        try:
            yield
        except (ConfigError, CorpusError):
            if not self.tolerant or self._needed & {*names}:
                raise
            self.names += names


@dataclass(frozen=True)
class Relevant:
    """The passages of a corpus that answer the rows' questions.

    Attributes:
        passages: row id -> passages.
        whole: every document is one passage, so that a ranking of passages is one of documents.
    """

    passages: Mapping[str, Sequence[Passage]]
    whole: bool

    @classmethod
    def of(cls, named: Mapping[str, Sequence[Passage]], docs: Sequence[RagDoc], *, whole: bool) -> Relevant:
        """Return those of the passages by relevant id that are known to answer a row, each once."""
        found = {}
        for doc in docs:
            own = {passage.id: passage for name in doc.relevant_ids for passage in named.get(name, ())}
            found[doc.id] = [p for p in own.values() if is_relevant(Ranked(p.id, p.doc_id, p.lang, 0.0), doc)]
        return cls(found, whole)

    @classmethod
    def among(cls, corpus: Sequence[Passage], docs: Sequence[RagDoc]) -> Relevant:
        """Return those of a benchmark's own passages."""
        ids = {name for doc in docs for name in doc.relevant_ids}
        named = defaultdict(list)
        for passage in corpus:
            for name in {passage.id, passage.doc_id} & ids:
                named[name].append(passage)
        return cls.of(named, docs, whole=len({passage.doc_id for passage in corpus}) == len(corpus))


class Source(Protocol):
    """Find the passages of a task's rows.

    A source is made by the function ``open_source(setup)`` of its module. Only ``retrieve`` is required.
    """

    def select(self, docs: Sequence[RagDoc]) -> Selection:
        """Return the rows that can be served; the others are skipped and counted."""
        return Selection(list(docs))

    def check(self, docs: Sequence[RagDoc], missing: Lacking) -> None:
        """Raise for faults that can be known before anything runs: no corpus, no run, no model."""
        return

    def held(self, docs: Sequence[RagDoc]) -> Held | None:
        """Return the corpus, to look up the relevant ids of these rows in; None if there is none to look in."""
        return None

    def relevant(self, docs: Sequence[RagDoc]) -> Relevant | None:
        """Return the passages of the corpus that answer the rows' questions; None without a corpus to look in."""
        return None

    def check_models(self) -> None:
        """Raise ConfigError if a model behind an API would leave every call unanswered (a missing key)."""
        return

    def repeatable(self, docs: Sequence[RagDoc]) -> bool:
        """Return whether :meth:`retrieve` needs neither an index nor a model for these rows."""
        return False

    @property
    def evaluated(self) -> models.EvaluatedModel | None:
        """Return the evaluated model if it takes part in the retrieval."""
        return None

    def retrieve(self, docs: Sequence[RagDoc], translator: models.Translator | None = None) -> list[Retrieved]:
        """Retrieve for these rows in one batch, aligned with them; ``translator`` is for their queries."""
        ...

    def passages(self, ids: Sequence[str]) -> list[Passage]:
        """Return the texts behind a ranking of this source, in this order."""
        raise CorpusError(
            f"this IR mode ranks nothing, so there is no passage '{ids[0]}'",
            "choose a mode that searches: retrieval.mode",
        )

    def seats(self) -> dict[str, models.Seat]:
        """Return the seats that were asked for passages, by role."""
        return {}

    def identity(self) -> dict[str, Any]:
        """Return the settings that decide the passages, beyond the ``retrieval`` block: ``corpus``, ``agent``.

        Known once the source has been checked, as :meth:`record` is.
        """
        return {}

    def record(self) -> dict[str, Any]:
        """Return the entries ``index`` and ``agent`` of the results, if they exist."""
        return {}

    def documents(self) -> Mapping[str, str]:
        """Return the origin of the searched documents by language (a dump and its date), as far as it is known."""
        return {}

    def models(self) -> dict[str, Any]:
        """Return the identities of the models that take part, which decide their replies."""
        return {}
