"""The rows that a task runs, and what is retrieved for them: once, for the rows that are asked for and no others."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mrag_eval.agents import Agents, agents_for, check_pool, retrieve_by_agents
from mrag_eval.agents.trace import trace_record, write_traces
from mrag_eval.blocks import TaskBlocks
from mrag_eval.corpora import index_record
from mrag_eval.datasets import load_benchmark
from mrag_eval.errors import DataError
from mrag_eval.ir_modes import SKIPPED, applicable, searches, translates
from mrag_eval.published import published_hits
from mrag_eval.ranked import Retrieved, ranking_dict
from mrag_eval.retrieve import check_corpus, ranked_passages, retrieve, translator_for
from mrag_eval.schema import Passage, RagDoc
from mrag_eval.scoring import TRANSLATED
from mrag_eval.shown_translation import with_translated_passages
from mrag_eval.translate import Translator, build_translator


class Supply:
    """A benchmark's rows under a task's blocks, and their passages.

    ``docs`` are the rows that run, by id; ``skipped`` those that the mode leaves out; ``without`` counts rows that have
    no published documents. ``translator`` is None where nothing is translated.

    Raises:
        ConfigError, DataError, CorpusError: before anything is searched, for a block, a file or a corpus that will not
            do, and where no row is left.
    """

    def __init__(self, blocks: TaskBlocks) -> None:
        self._blocks = blocks
        self.benchmark = load_benchmark(blocks.data)
        running = self._applicable()
        if not running:
            raise DataError(
                f"no rows left to run ({len(self.benchmark.docs)} loaded, {self.without} without published documents, "
                f"{len(self.skipped)} skipped by mode '{blocks.retrieval.mode}')",
                "check the 'data' block (language, category, split), or choose another retrieval.mode",
            )
        check_corpus(blocks.retrieval, running, self.benchmark.corpus)
        self.docs = {doc.id: doc for doc in running}
        self.translator = self._translator()
        self._index = index_record(blocks.retrieval, running)
        self._agents: Agents | None = None
        if blocks.retrieval.mode == "coral":
            self._agents = agents_for(blocks.agent)
            check_pool(blocks.retrieval, blocks.agent, running, self.benchmark.corpus)
        self._retrieved: dict[str, Retrieved] = {}
        self._prepared: dict[str, dict[str, Any]] = {}

    def _translator(self) -> Translator | None:
        """For what is retrieved, and for the replies where a metric asks for that."""
        blocks, parallel = self._blocks, self.benchmark.parallel
        metric = next((name for name in blocks.metrics if name in TRANSLATED), None)
        if metric is None or translates(blocks.retrieval):
            return translator_for(blocks.retrieval, parallel)
        return build_translator(blocks.retrieval.translator, needed_by=f"metric '{metric}'", parallel=parallel)

    def _applicable(self) -> list[RagDoc]:
        rows = self.benchmark.docs
        hits = published_hits(self.benchmark.published, self._blocks.retrieval, rows)
        covered = rows if hits is None else hits.covered(rows)
        docs, _ = applicable(covered, self._blocks.retrieval)
        running = {doc.id for doc in docs}
        self.without = len(rows) - len(covered)
        self.skipped = [doc for doc in covered if doc.id not in running]
        return docs

    def check(self) -> None:
        """Ask the models that retrieval needs whether they can be reached."""
        if self._agents is not None:
            self._agents.check()

    def prepare(self, ids: Sequence[str]) -> None:
        """Retrieve for those of the rows that have nothing yet, in one batch."""
        docs = [self.docs[row] for row in ids if row not in self._prepared]
        if not docs:
            return
        for doc, found in zip(docs, self._retrieve(docs), strict=True):
            self._retrieved[doc.id] = found
            self._prepared[doc.id] = _prepared(doc, found)

    def _retrieve(self, docs: Sequence[RagDoc]) -> list[Retrieved]:
        retrieval, corpus = self._blocks.retrieval, self.benchmark.corpus
        if self._agents is None:
            return retrieve(
                docs,
                retrieval,
                corpus=corpus,
                siblings=self.benchmark.docs,
                published=self.benchmark.published,
                translator=self.translator,
            )
        found = retrieve_by_agents(docs, retrieval, self._blocks.agent, self._agents, corpus=corpus)
        if self.translator is not None and translates(retrieval):
            found = with_translated_passages(found, docs, retrieval, self.translator)
        return found

    def row(self, key: str) -> dict[str, Any]:
        """A prepared row as the harness logs it, its passages with it."""
        return self._prepared[key]

    def found(self, key: str) -> Retrieved:
        """What was retrieved for a prepared row."""
        return self._retrieved[key]

    def ranked_texts(self, keys: Sequence[str]) -> dict[str, Passage]:
        """The passages in the rankings of prepared rows, by id."""
        return ranked_passages(
            [self._retrieved[key] for key in keys],
            self._blocks.retrieval,
            corpus=self.benchmark.corpus,
            published=self.benchmark.published,
        )

    def write_traces(self, task: str, numbered: Sequence[tuple[int, str]], rank: int, world_size: int) -> None:
        """The agents' traces of these rows under the numbers that the harness gives them, if the block wants any."""
        folder = self._blocks.agent.traces
        if self._agents is None or folder is None:
            return
        records = [
            trace_record(task, number, self._prepared[key], self._prepared[key]["trace"]) for number, key in numbered
        ]
        write_traces(Path(folder).expanduser(), task, records, rank, world_size)

    def described(self) -> list[str]:
        """What is retrieved and what is left out, for the log."""
        retrieval = self._blocks.retrieval
        parts = [f"mode {retrieval.mode}"]
        if searches(retrieval):
            parts.append(f"{retrieval.k} passages from '{retrieval.corpus}'")
            if retrieval.rerank is not None:
                parts.append(f"the best of {retrieval.rerank_depth} by {retrieval.rerank.name}")
        if self.skipped:
            parts.append(f"{len(self.skipped)} rows skipped ({SKIPPED[retrieval.mode]})")
        if self.without:
            parts.append(f"{self.without} rows left out (no published documents in this mode)")
        return parts

    def models(self) -> dict[str, Any]:
        """The models that plan and criticise, by what decides their replies; empty where none do."""
        return {} if self._agents is None else self._agents.identities()

    def as_record(self) -> dict[str, Any]:
        """Where rows and passages came from, for the results."""
        out: dict[str, Any] = {
            "source": self.benchmark.source,
            "left_out": {"skipped_by_mode": len(self.skipped), "without_documents": self.without},
        }
        if self._index is not None:
            out["index"] = self._index
        if self._agents is not None:
            out["agent"] = self._blocks.agent.model_dump(mode="json") | self._agents.names()
        return out


def _prepared(doc: RagDoc, found: Retrieved) -> dict[str, Any]:
    row: dict[str, Any] = {**doc.to_dict(), "passages": [hit.to_dict() for hit in found.passages]}
    if found.ranking:
        row["ranking"] = ranking_dict(found.ranking)
    if found.queries:
        row["searched_with"] = list(found.queries)
    if found.reranked is not None and found.reranked.ranking:
        row["reranked"] = ranking_dict(found.reranked.ranking)
    if found.trace is not None:
        row["trace"] = dict(found.trace)
    return row
