"""The rows of a task and their retrieval, which runs once, for the requested rows only."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import replace
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from mrag_eval import models
from mrag_eval.config import TRANSLATED, TaskBlocks, relevance_measures
from mrag_eval.core import Passage, RagDoc, Ranked, Retrieved, ranking_dict
from mrag_eval.datasets import Benchmark, load_benchmark, with_absent
from mrag_eval.platform import DataError, number_of, present_device
from mrag_eval.retrieval._pipeline import as_shown, check_withholding, translator_for
from mrag_eval.retrieval._plan import Selection
from mrag_eval.retrieval._texts import passages_by_id
from mrag_eval.retrieval.saved._folder import RunFolder, file_name
from mrag_eval.retrieval.saved._hub_folder import run_folder_at
from mrag_eval.retrieval.saved._manifest import ManifestEntry, marked
from mrag_eval.retrieval.saved._settings import fingerprint_of, seeds_of, settings_of_retrieval
from mrag_eval.retrieval.saved._terms import terms_of
from mrag_eval.retrieval.sources import Lacking, Relevant, Saved, Source, source_for
from mrag_eval.systems import hits_of

if TYPE_CHECKING:
    from mrag_eval.models import EvaluatedModel, Translator

_STAND_IN = {"title": "title", "text": "text", "date": "2026-01-01"}
# Rows that ``mrag-eval run`` retrieved, for the tasks that the harness builds while this is set.
FIRST: ContextVar[RunFolder | None] = ContextVar("rows retrieved first", default=None)


def served(blocks: TaskBlocks) -> tuple[Benchmark, Source, Selection]:
    """Return the benchmark of a task, the source of its passages, and the rows that this source serves.

    Nothing is searched for it. Raises ConfigError and DataError for an invalid block or file, and if no row is left.
    """
    benchmark = load_benchmark(blocks.data)
    source = source_for(blocks.retrieval, benchmark, blocks.agent)
    selection = source.select(benchmark.docs)
    if not selection.docs:
        raise DataError(
            f"no rows left to run ({len(benchmark.docs)} loaded, {selection.without_documents} without published "
            f"documents, {len(selection.skipped)} skipped by mode '{blocks.retrieval.mode}')",
            "check the 'data' block (language, category, split), or choose another retrieval.mode",
        )
    return benchmark, source, selection


class TaskRows:
    """A benchmark's rows under a task's blocks, and their passages.

    ``docs`` are the rows that run, by id; ``skipped`` those that the mode leaves out; ``without`` counts rows that have
    no published documents. ``translator`` is None if nothing is translated. Rows that are ``saved`` under the task's
    name are taken from there, as those of ``retrieval.run_folder`` are.

    Raises:
        ConfigError, DataError, CorpusError: before anything is searched, for an invalid block, file or corpus, and if
            no row is left.
    """

    def __init__(self, blocks: TaskBlocks, task: str = "", saved: RunFolder | None = None) -> None:
        self.blocks, self._task = blocks, task
        retrieval = blocks.retrieval
        folder = retrieval.run_folder if retrieval.retrieves else None
        if retrieval.searches and folder is None:
            present_device(retrieval.device)
        self.benchmark, self._source, selection = served(blocks)
        self.skipped, self.without, self._why_skipped = selection.skipped, selection.without_documents, selection.why
        self.docs = {doc.id: doc for doc in selection.docs}
        # rows in a run folder need neither corpus nor models, but those available on this machine are compared
        needed = ["translator"] if self._translates_answers() else []
        needed += ["corpus"] if blocks.judge.relevance.labels != "ids" else []
        self._missing = Lacking(tolerant=folder is not None, needed=needed)
        self.translator: Translator | None = None
        self._source.check(selection.docs, self._missing)
        if "corpus" not in self._missing.names:
            self._mark_absent()
        check_withholding(list(self.docs.values()), retrieval)
        with self._missing.allowed("translator"):
            self.translator = self._translator()
        self._retrieved: dict[str, Retrieved] = {}
        self._prepared: dict[str, dict[str, Any]] = {}
        if folder is not None:
            self.take_from(run_folder_at(folder))
        elif saved is not None and task in saved.tasks:
            self.take_from(saved)

    def take_from(self, folder: RunFolder) -> None:
        """Take the rows from a run folder; nothing is searched, reranked, translated or planned for them.

        Raises ConfigError, naming each setting that differs from the task's, and DataError if the task is missing.
        """
        settings, missing = self.settings(), self._missing.names
        self._source = Saved.of(self._source, folder, self._task, settings, self.blocks.retrieval, missing)
        if "corpus" in missing:
            self._mark_absent()

    def _mark_absent(self) -> None:
        """Mark relevant ids that the corpus does not hold; see :func:`mrag_eval.datasets.with_absent`."""
        docs = list(self.docs.values())
        if self.blocks.judge.relevance.labels != "ids" or not any(doc.relevant_ids for doc in docs):
            return
        held = self._source.held(docs)
        if held is not None:
            mode = self.blocks.retrieval.preset
            needed_by = relevance_measures(self.blocks.metrics) or (["its oracle"] if mode.shows == "gold" else [])
            self.docs = {doc.id: doc for doc in with_absent(docs, held, needed_by, self._task)}

    def settings(self) -> dict[str, Any]:
        """Return the settings that decide the retrieval; see :mod:`mrag_eval.retrieval.saved._settings`."""
        return settings_of_retrieval(self.blocks, self.benchmark, self._source.identity(), self._asked())

    def entry(self) -> ManifestEntry:
        """Return the entry of a run folder for this task before anything is retrieved."""
        settings = self.settings()
        record, seats = self._source.record(), marked(self._asked())
        agent = record.get("agent") or {}
        return ManifestEntry(
            file=file_name(self._task),
            fingerprint=fingerprint_of(settings),
            settings=settings,
            corpus=settings.get("corpus", {}).get("content_hash") or settings.get("corpus", {}).get("sha256"),
            dataset=settings["rows"]["sha256"],
            seeds=seeds_of(self.blocks),
            index=record.get("index"),
            agent=record.get("agent"),
            models=seats,
            names={role: dict.fromkeys(marks, agent[role]) for role, marks in seats.items() if role in agent},
            version=version("mrag-eval"),
            terms=terms_of(self.blocks, self.benchmark, self._source.documents()),
            absent={doc.id: list(doc.absent_ids) for doc in self.docs.values() if doc.absent_ids},
        )

    @property
    def taken(self) -> bool:
        """Return whether the rows come from a run folder."""
        return isinstance(self._source, Saved)

    @property
    def retrieve_again(self) -> str | None:
        """Return the command that retrieves again for the rows of a user's run folder; None without one."""
        if not isinstance(self._source, Saved) or self.blocks.retrieval.run_folder is None:
            return None
        return self._source.folder.command(self._task)

    @property
    def evaluated(self) -> EvaluatedModel | None:
        """Return the evaluated model if it takes part in the retrieval."""
        return self._source.evaluated

    def _translates_answers(self) -> str | None:
        """Return what requires replies or reference answers to be translated; None if nothing does."""
        metric = next((name for name in self.blocks.metrics if name in TRANSLATED), None)
        if metric is not None:
            return f"metric '{metric}'"
        labels = self.blocks.judge.relevance.labels
        return f"judge.relevance.labels={labels}" if labels == "translated" else None

    def _translator(self) -> Translator | None:
        """Return the translator for retrieval, and for answers if a metric or the labels require that."""
        blocks, parallel = self.blocks, self.benchmark.parallel
        translator, needed_by = translator_for(blocks.retrieval, list(self.docs.values()), parallel), None
        if translator is not None or (needed_by := self._translates_answers()) is None:
            return translator
        return models.build_translator(blocks.retrieval.translator, needed_by=needed_by, parallel=parallel)

    def check(self) -> None:
        """Check whether the models that retrieval needs can be reached."""
        self._source.check_models()

    def examples(self) -> list[dict[str, Any]]:
        """Return a row of each language of questions, with stand-ins for the passages that it will have."""
        first: dict[str, RagDoc] = {}
        for doc in self.docs.values():
            first.setdefault(doc.query_lang, doc)
        retrieval, rows = self.blocks.retrieval, []
        for doc in first.values():
            given = 0 if retrieval.searches else len(doc.given_passages)
            shown = (given or retrieval.k) if retrieval.shows_passages else 0
            rows.append({**doc.to_dict(), "passages": [{**_STAND_IN, "lang": doc.query_lang}] * shown})
        return rows

    def prepare(self, ids: Sequence[str]) -> None:
        """Retrieve for the given rows that have not been retrieved for, in one batch."""
        docs = [self.docs[row] for row in ids if row not in self._prepared]
        if not docs:
            return
        for doc, found in zip(docs, self.retrieved(docs), strict=True):
            self._retrieved[doc.id] = found
            self._prepared[doc.id] = logged_row(doc, found)

    def retrieved(self, docs: Sequence[RagDoc]) -> list[Retrieved]:
        """Retrieve for these rows, or take them from the run folder; the result is not kept here."""
        found = self._source.retrieve(docs, self.translator)
        return found if self.taken else as_shown(found, docs, self.blocks.retrieval, self.translator, self._source)

    def relevant(self, docs: Sequence[RagDoc], *, own: bool = False) -> Relevant | None:
        """Return the passages that answer the rows' questions; None without a corpus to look in.

        ``own``: only among the benchmark's own passages, as opening an index takes time.
        """
        if self.blocks.retrieval.corpus == "benchmark" and self.benchmark.corpus is not None:
            return Relevant.among(self.benchmark.corpus, docs)
        return None if own or self.taken else self._source.relevant(docs)

    def show(self, contexts: Mapping[str, Sequence[Mapping[str, Any]] | None]) -> bool:
        """Take the contexts of a RAG system, by row, as what these prepared rows were shown.

        Return whether it is known which are relevant: one has an id that the benchmark knows, or no row was shown any.
        Of a system that tells no row's contexts (None) it is not known.
        """
        rows = [(f"row '{key}'", self.docs[key].query_lang, listed) for key, listed in contexts.items()]
        hits = [shown or () for shown in hits_of(rows)]
        known = {name for passage in self.benchmark.corpus or () for name in (passage.id, passage.doc_id)}
        known |= {name for doc in self.docs.values() for name in doc.relevant_ids}
        shown_ids = {name for shown in hits for hit in shown for name in (hit.id, hit.doc_id)}
        told = any(listed is not None for listed in contexts.values())
        comparable = bool(shown_ids & known) if shown_ids else told
        for key, shown in zip(contexts, hits, strict=True):
            ranking = tuple(Ranked(hit.id, hit.doc_id, hit.lang, hit.score) for hit in shown)
            self._retrieved[key] = Retrieved(shown, ranking)
            doc = self.docs[key]
            self.docs[key] = replace(doc, absent_ids=() if comparable else doc.relevant_ids)
            # the harness has this very row
            self._prepared[key] |= logged_row(self.docs[key], self._retrieved[key])
        return comparable

    def row(self, key: str) -> dict[str, Any]:
        """Return a prepared row as the harness logs it, with its passages."""
        return self._prepared[key]

    def found(self, key: str) -> Retrieved:
        """Return the retrieval of a prepared row."""
        return self._retrieved[key]

    def ranked_texts(self, keys: Sequence[str]) -> dict[str, Passage]:
        """Return the passages in the rankings of prepared rows (``depth`` deep), by id."""
        return passages_by_id((place.id for key in keys for place in self._retrieved[key].ranking), self._source)

    def described(self) -> list[str]:
        """Return a description of what is retrieved and what is left out, for the log."""
        retrieval = self.blocks.retrieval
        parts = [f"mode {retrieval.mode}"]
        if retrieval.searches:
            source = retrieval.run.name if retrieval.run is not None and retrieval.run_holds_texts else retrieval.corpus
            source = str(self._source.record().get("index", {}).get("function", source))
            parts.append(f"{number_of(retrieval.k, 'passage')} from '{source}'")
            if retrieval.rerank is not None:
                parts.append(f"the best of {retrieval.rerank_depth} by {retrieval.rerank.name}")
        if retrieval.unanswerable is not None:
            parts.append(f"relevant passages withheld from {100 * retrieval.unanswerable:g}% of the rows that have any")
        if self.skipped:
            parts.append(f"{number_of(len(self.skipped), 'row')} skipped ({self._why_skipped})")
        if self.without:
            parts.append(f"{number_of(self.without, 'row')} left out (no published documents in this mode)")
        if isinstance(self._source, Saved) and retrieval.run_folder is not None:
            parts.append(f"retrieved beforehand, in {self._source.folder.name}")
        return parts

    def _asked(self) -> dict[str, Any]:
        """Return the models that retrieval asks on this machine, by role."""
        translator = {} if self.translator is None else {"translator": self.translator.identity}
        reranker = {role: seat.identity for role, seat in self._source.seats().items() if role == "reranker"}
        return {**self._source.models(), **translator, **reranker}

    def instruments(self) -> dict[str, Any]:
        """Return planner, critic, translator and reranker by what they are: those that made the rows, wherever."""
        if not self.taken:
            return self._asked()
        translator = {} if self.translator is None else {"translator": self.translator.identity}
        return {**translator, **self._source.models()}

    def take(self, *, sent: bool = False) -> dict[str, Any]:
        """Return what came back from the seats that were asked here, by role (:meth:`mrag_eval.models.Seat.take`)."""
        translator = None if self.translator is None else self.translator.seat
        seats = {**self._source.seats(), **({} if translator is None else {"translator": translator})}
        return {role: seat.take(sent=sent) for role, seat in seats.items()}

    def came_back_before(self) -> Mapping[str, Any]:
        """Return the same of the seats that were asked for the rows of a run folder, at the time of retrieval."""
        return self._source.entry.came_back if isinstance(self._source, Saved) else {}

    def as_record(self) -> dict[str, Any]:
        """Return the sources of rows and passages, for the results."""
        out: dict[str, Any] = {
            "source": self.benchmark.source,
            "left_out": {"skipped_by_mode": len(self.skipped), "without_documents": self.without},
            **self._source.record(),
        }
        if isinstance(self._source, Saved) and self.blocks.retrieval.run_folder is not None:
            out["retrieved"] = self._source.origin()
        return out

    def translation(self) -> dict[str, Any] | None:
        """Return the translator and its outcomes, here and at the time of retrieval; None without a translator."""
        there = self._source.entry.translation if isinstance(self._source, Saved) else None
        shares = [] if there is None else [there]
        if self.translator is not None and (not shares or self.translator.counts):
            shares = [self.translator.as_dict(), *shares]
        return models.total_counts(shares)


def said_text(doc: Mapping[str, Any], reply: str) -> str:
    """Return what a system says of a row as it is logged: its reply, and the ids of its passages."""
    return json.dumps([reply, *(hit["id"] for hit in doc.get("passages") or ())])


def logged_row(doc: RagDoc, found: Retrieved) -> dict[str, Any]:
    """Return a row with its passages as the harness logs it."""
    row: dict[str, Any] = {**doc.to_dict(), "passages": [hit.to_dict() for hit in found.passages]}
    if found.ranking:
        row["ranking"] = ranking_dict(found.ranking)
    if found.queries:
        row["searched_with"] = list(found.queries)
    if found.reranked is not None and found.reranked.ranking:
        row["reranked"] = ranking_dict(found.reranked.ranking)
    if found.trace is not None:
        row["trace"] = found.trace.to_dict()
    if found.withheld is not None:
        row["withheld"] = found.withheld
    return row
