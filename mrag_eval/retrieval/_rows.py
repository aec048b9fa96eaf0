"""The rows that a task runs, and what is retrieved for them: once, for the rows that are asked for and no others."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from mrag_eval.config import TRANSLATED, TaskBlocks
from mrag_eval.core import ConfigError, CorpusError, DataError, Passage, RagDoc, Retrieved, ranking_dict
from mrag_eval.datasets import load_benchmark
from mrag_eval.models import Translator, build_translator, total_counts
from mrag_eval.retrieval._corpora import check_corpus, index_record
from mrag_eval.retrieval._pipeline import ranked_passages, retrieve, translator_for
from mrag_eval.retrieval._plan import SKIPPED, applicable, retrieves, searches, translates
from mrag_eval.retrieval._shown_translation import with_translated_passages
from mrag_eval.retrieval.agents._loop import Agents, agents_for, check_pool, retrieve_by_agents
from mrag_eval.retrieval.agents._trace import trace_record, write_traces
from mrag_eval.retrieval.saved._folder import RunFolder, TaskEntry, file_name, shown_differing
from mrag_eval.retrieval.saved._settings import (
    differing_settings,
    fingerprint_of,
    not_accepted,
    seeds_of,
    settings_of_retrieval,
)
from mrag_eval.retrieval.sources._published import published_hits

# Below the harness's logger, so that its command shows our lines as it shows its own.
log = logging.getLogger(f"lm_eval.{__name__}")

# Rows that ``mrag-eval run`` has retrieved for the tasks that are built while this is set.
FIRST: ContextVar[RunFolder | None] = ContextVar("rows retrieved first", default=None)


@dataclass(frozen=True)
class Taken:
    """The run folder that a task takes its rows from; ``differs`` holds settings that differ on purpose."""

    folder: RunFolder
    entry: TaskEntry
    differs: Mapping[str, str]


class Supply:
    """A benchmark's rows under a task's blocks, and their passages.

    ``docs`` are the rows that run, by id; ``skipped`` those that the mode leaves out; ``without`` counts rows that have
    no published documents. ``translator`` is None where nothing is translated.

    Raises:
        ConfigError, DataError, CorpusError: before anything is searched, for a block, a file or a corpus that will not
            do, and where no row is left.
    """

    def __init__(self, blocks: TaskBlocks, task: str = "") -> None:
        self._blocks, self._task = blocks, task
        folder = blocks.retrieval.run_folder if retrieves(blocks.retrieval) else None
        self._taken: Taken | None = None
        self.benchmark = load_benchmark(blocks.data)
        running = self._applicable()
        if not running:
            raise DataError(
                f"no rows left to run ({len(self.benchmark.docs)} loaded, {self.without} without published documents, "
                f"{len(self.skipped)} skipped by mode '{blocks.retrieval.mode}')",
                "check the 'data' block (language, category, split), or choose another retrieval.mode",
            )
        self.docs = {doc.id: doc for doc in running}
        # what a run folder holds needs neither corpus nor models, but where they are at hand they are compared
        self.lacks: list[str] = []
        self._index: dict[str, Any] | None = None
        self._agents: Agents | None = None
        self.translator: Translator | None = None
        with self._unless_taken(folder, "corpus"):
            check_corpus(blocks.retrieval, running, self.benchmark.corpus)
            self._index = index_record(blocks.retrieval, running)
        with self._unless_taken(None if self._translates_replies() else folder, "translator"):
            self.translator = self._translator()
        if blocks.retrieval.mode == "coral":
            with self._unless_taken(folder, "agent.planner", "agent.critic"):
                self._agents = agents_for(blocks.agent)
            if "corpus" not in self.lacks:
                check_pool(blocks.retrieval, blocks.agent, running, self.benchmark.corpus)
        self._retrieved: dict[str, Retrieved] = {}
        self._prepared: dict[str, dict[str, Any]] = {}
        if folder is not None:
            self.take_from(RunFolder.existing(folder))
        elif (first := FIRST.get()) is not None and task in first.tasks:
            self.take_from(first)

    @contextmanager
    def _unless_taken(self, folder: Path | None, *lacking: str) -> Iterator[None]:
        """What cannot be had here is an error, unless rows are taken from a run folder, which does without it."""
        try:
            yield
        except (ConfigError, CorpusError):
            if folder is None or (lacking == ("corpus",) and self._blocks.judge.relevance.labels != "ids"):
                raise
            self.lacks += lacking

    def take_from(self, folder: RunFolder) -> None:
        """Take the rows from a run folder; nothing is searched, reranked, translated or planned for them.

        Raises ConfigError, naming each setting that differs from the task's, and DataError where the task is not there.
        """
        here = self.settings()
        entry = folder.entry_for(self._task, fingerprint_of(here))
        differs = differing_settings(here, entry.settings)
        differs = not_accepted(differs, self.lacks)
        left = not_accepted(differs, self._blocks.retrieval.run_may_differ)
        if left:
            raise ConfigError(
                f"{folder.path} was retrieved under other settings (here | there): {shown_differing(left)}",
                "retrieve anew, or say that they differ on purpose: --metadata "
                f'\'{{"retrieval": {{"run_may_differ": {json.dumps(list(left)[:3])}}}}}\'',
            )
        self._taken = Taken(folder, entry, differs)
        self._index = self._index or (None if entry.index is None else dict(entry.index))
        if self.lacks and self._blocks.retrieval.run_folder is not None:
            log.info("rows from %s; not compared, as there is none here: %s", folder.path, ", ".join(self.lacks))

    def settings(self) -> dict[str, Any]:
        """What decides the retrieval; see :mod:`mrag_eval.retrieval.saved._settings`."""
        return settings_of_retrieval(self._blocks, self.benchmark, self._index, self.translator, self._agents)

    def entry(self) -> TaskEntry:
        """What a run folder says of this task before anything is retrieved."""
        settings = self.settings()
        record = self.as_record()
        return TaskEntry(
            file=file_name(self._task),
            fingerprint=fingerprint_of(settings),
            settings=settings,
            corpus=settings.get("corpus", {}).get("content_hash") or settings.get("corpus", {}).get("sha256"),
            dataset=settings["rows"]["sha256"],
            seeds=seeds_of(self._blocks),
            index=record.get("index"),
            agent=record.get("agent"),
            models=self.models(),
            version=version("mrag-eval"),
        )

    @property
    def blocks(self) -> TaskBlocks:
        """The blocks that the rows are supplied under."""
        return self._blocks

    @property
    def taken(self) -> bool:
        """Whether the rows come from a run folder."""
        return self._taken is not None

    def _translates_replies(self) -> bool:
        return any(name in TRANSLATED for name in self._blocks.metrics)

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
        if self._agents is not None and self._taken is None:
            self._agents.check()

    def prepare(self, ids: Sequence[str]) -> None:
        """Retrieve for those of the rows that have nothing yet, in one batch."""
        docs = [self.docs[row] for row in ids if row not in self._prepared]
        if not docs:
            return
        for doc, found in zip(docs, self.retrieved(docs), strict=True):
            self._retrieved[doc.id] = found
            self._prepared[doc.id] = _prepared(doc, found)

    def retrieved(self, docs: Sequence[RagDoc]) -> list[Retrieved]:
        """Retrieve for these rows, or take them from the run folder; nothing of it is kept here."""
        if self._taken is not None:
            return self._taken.folder.rows(self._task, self._taken.entry, docs)
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
        if self._blocks.retrieval.mode != "coral" or folder is None:
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
        if self._taken is not None and retrieval.run_folder is not None:
            parts.append(f"retrieved beforehand, in {self._taken.folder.path}")
        return parts

    def models(self) -> dict[str, Any]:
        """The models that plan and criticise, by what decides their replies; empty where none do."""
        if self._agents is None:
            return {} if self._taken is None else dict(self._taken.entry.models)
        return self._agents.identities()

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
        elif self._taken is not None and self._taken.entry.agent is not None:
            out["agent"] = dict(self._taken.entry.agent)
        if self._taken is not None and self._blocks.retrieval.run_folder is not None:
            entry = self._taken.entry
            out["retrieved"] = {"fingerprint": entry.fingerprint, "sha256": entry.sha256, "version": entry.version}
            if self._taken.differs:
                out["retrieved"]["differs"] = dict(self._taken.differs)
        return out

    def translation(self) -> dict[str, Any] | None:
        """Who translated, and what came of it: here, and where the rows were retrieved; None where nobody did."""
        shares = [] if self._taken is None or self._taken.entry.translation is None else [self._taken.entry.translation]
        if self.translator is not None and (not shares or self.translator.counts):
            shares = [self.translator.as_dict(), *shares]
        return total_counts(shares)


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
