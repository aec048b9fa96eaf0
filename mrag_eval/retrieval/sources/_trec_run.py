"""Retrieval by another system (``kind: precomputed``): its run file in place of a search."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mrag_eval.core import Kept, Passage, RagDoc, Searched
from mrag_eval.datasets import Held, read_passages
from mrag_eval.platform import CorpusError, DataError, number_of
from mrag_eval.retrieval._corpora import held_by_index, no_passages, open_index, own_passages
from mrag_eval.retrieval._plan import RowPlan
from mrag_eval.retrieval._texts import PassageSource, PassageTable
from mrag_eval.retrieval.sources._bergen_texts import BergenTexts, bergen_texts, holds_bergen_texts
from mrag_eval.retrieval.sources._lists import Lists, warn_of_missing
from mrag_eval.retrieval.sources._run_file import RunFile, RunLine, read_run
from mrag_eval.retrieval.sources._source import Lacking, Setup

if TYPE_CHECKING:
    from mrag_eval.retrievers import Index

# Below the harness's logger, so that its command shows our lines as it shows its own.
log = logging.getLogger(f"lm_eval.{__name__}")


class TrecRun(Lists):
    """Return the lists of a run file, with texts from the corpus that the run was made on."""

    def check(self, docs: Sequence[RagDoc], missing: Lacking) -> None:
        """Raise if the run cannot be read, or its corpus does not exist."""
        with missing.allowed("corpus"):
            run = read_run(str(self._retrieval.run))
            self._texts()
            self._index = {"kind": "precomputed", "sha256": run.sha256, "tag": run.tag}

    def held(self, docs: Sequence[RagDoc]) -> Held | None:
        """Return the corpus of the run; None for BERGEN's documents, which can be looked up by passage alone."""
        texts = self._texts()
        if isinstance(texts, PassageTable):
            return Held.among(f"corpus {texts.name}", texts)
        if isinstance(texts, BergenTexts):
            return None
        return held_by_index(texts, docs, self._retrieval.corpus)

    def _found(self, docs: Sequence[RagDoc], plans: Sequence[RowPlan]) -> tuple[list[Searched], PassageSource]:
        """Return the run's lists, ``depth`` deep; queries are matched by the rows' ids.

        Raises DataError if the run names none of the rows, and CorpusError for passages that the corpus lacks.
        """
        texts, depth = self._texts(), self._retrieval.search_depth
        run = read_run(str(self._retrieval.run))
        lists = [run.lists.get(doc.id, ())[:depth] for doc in docs]
        _log_coverage(run, docs, depth)
        shown = [run.shown(doc.id, self._retrieval.k) for doc in docs]
        held = _passages(run, [*lists, *shown], texts, self._retrieval.corpus)
        found = (((held[line.passage], line.score) for line in lines) for lines in lists)
        searched = [self._searched(hits, texts.counts) for hits in found]
        kept = (tuple(Kept(line.passage, line.score) for line in lines) for lines in shown)
        return [replace(one, kept=own) for one, own in zip(searched, kept, strict=True)], texts

    def identity(self) -> dict[str, Any]:
        """Return the run and its corpus, by their content."""
        return {"corpus": {**(self._index or {}), **own_passages(self._retrieval, self._benchmark)}}

    def _texts(self) -> Index | PassageTable | BergenTexts:
        """Return the corpus that the run was made on: the benchmark's passages, a file, BERGEN's, or an index."""
        retrieval, corpus = self._retrieval, self._benchmark.corpus
        if retrieval.corpus == "benchmark":
            if not corpus:
                raise no_passages(retrieval)
            return PassageTable(corpus, "of the benchmark")
        if retrieval.corpus.endswith((".jsonl", ".jsonl.gz")):
            path = Path(retrieval.corpus).expanduser()
            if not path.is_file():
                raise CorpusError(f"retrieval.corpus: there is no file {path}", "name a JSON Lines file, or an index")
            return _table(path.resolve(), path.stat().st_mtime_ns)
        folder = Path(retrieval.corpus).expanduser()
        if holds_bergen_texts(folder):
            return bergen_texts(folder.resolve(), retrieval.run_language)
        return open_index(retrieval.model_copy(update={"kind": None, "embedder": None}))


def open_source(setup: Setup) -> TrecRun:
    """Return the source of ``retrieval.kind: precomputed``."""
    return TrecRun(setup)


@lru_cache(maxsize=2)
def _table(path: Path, _modified: int) -> PassageTable:
    return PassageTable(read_passages(path), str(path))


def _log_coverage(run: RunFile, docs: Sequence[RagDoc], depth: int) -> None:
    missing = [doc.id for doc in docs if doc.id not in run.lists]
    if len(missing) == len(docs):
        raise DataError(
            f"{run.path}: none of the {len(docs)} rows is among its {len(run.lists)} queries "
            f"(the first row is '{docs[0].id}', the first query '{next(iter(run.lists))}')",
            "the queries of a run are named by the ids of the benchmark's rows",
        )
    unused = len(run.lists) - (len(docs) - len(missing))
    log.info(
        "run %s (sha256 %s): %s, %d of them not among the rows that are run",
        run.path, run.sha256[:12], number_of(len(run.lists), "query", "queries"), unused,
    )  # fmt: skip
    warn_of_missing(run.path, missing, docs)
    short = sum(0 < len(run.lists.get(doc.id, ())) < depth for doc in docs)
    if short:
        log.warning("run %s: %d rows have fewer than depth = %d passages", run.path, short, depth)
    if run.reordered:
        log.warning(
            "run %s: the ranks of %d queries contradict their scores (first on line %d); the scores count",
            run.path, run.reordered, run.first_reordered,
        )  # fmt: skip


def _passages(
    run: RunFile, lists: Sequence[Sequence[RunLine]], source: PassageSource, corpus: str
) -> dict[str, Passage]:
    lines: dict[str, int] = {}
    for line in (line for own in lists for line in own):
        lines.setdefault(line.passage, line.line)
    wanted = list(lines)
    try:
        return dict(zip(wanted, source.passages(wanted), strict=True))
    except CorpusError:
        unknown = [pid for pid in wanted if not _holds(source, pid)]
        if not unknown:
            raise
    first = min(unknown, key=lambda pid: lines[pid])
    others = f" (nor {len(unknown) - 1} others of {len(wanted)})" if len(unknown) > 1 else ""
    raise CorpusError(
        f"{run.path}, line {lines[first]}: corpus '{corpus}' holds no passage '{first}'{others}",
        "name the corpus that the run was made on in retrieval.corpus: an index, or a .jsonl file (id, lang, text)",
    )


def _holds(source: PassageSource, pid: str) -> bool:
    try:
        source.passages([pid])
    except CorpusError:
        return False
    return True
