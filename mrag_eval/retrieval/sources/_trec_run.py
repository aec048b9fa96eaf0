"""Retrieval by another system (``kind: precomputed``): its run file in place of a search."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mrag_eval.config import Retrieval
from mrag_eval.core import Kept, Passage, RagDoc, Ranked, Retrieved, Searched
from mrag_eval.datasets import Held, read_passages
from mrag_eval.models import Translator
from mrag_eval.platform import CorpusError, DataError
from mrag_eval.retrieval._corpora import held_by_index, no_passages, open_index, own_passages
from mrag_eval.retrieval._plan import plan_rows, refuse_empty
from mrag_eval.retrieval._texts import PassageSource, PassageTable, with_texts
from mrag_eval.retrieval.rerank._rerank import open_reranker, rerank
from mrag_eval.retrieval.sources._bergen_texts import BergenTexts, bergen_texts, holds_bergen_texts
from mrag_eval.retrieval.sources._run_file import RunFile, RunLine, read_run
from mrag_eval.retrieval.sources._source import Missing, Setup, Source

if TYPE_CHECKING:
    from mrag_eval.retrievers import Index

# Below the harness's logger, so that its command shows our lines as it shows its own.
log = logging.getLogger(f"lm_eval.{__name__}")


class TrecRun(Source):
    """Return the lists of a run file, with texts from the corpus that the run was made on."""

    def __init__(self, setup: Setup) -> None:
        self._retrieval, self._benchmark, self._use_cache = setup.retrieval, setup.benchmark, setup.use_cache
        self._index: dict[str, Any] | None = None

    def check(self, docs: Sequence[RagDoc], missing: Missing) -> None:
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

    def retrieve(self, docs: Sequence[RagDoc], translator: Translator | None = None) -> list[Retrieved]:
        """Return the run's lists, reranked if the block asks for it."""
        plans = plan_rows(docs, self._retrieval, self._benchmark.docs)
        refuse_empty(docs, plans)
        reranker = open_reranker(self._retrieval)
        texts = self._texts()
        found = _lists(docs, self._retrieval, texts, texts.counts)
        if reranker is not None:
            found = rerank(found, docs, plans, self._retrieval, reranker, texts, use_cache=self._use_cache)
        return with_texts(found, texts)

    def passages(self, ids: Sequence[str]) -> list[Passage]:
        """Return the corpus's texts."""
        return self._texts().passages(ids)

    def identity(self) -> dict[str, Any]:
        """Return the run and its corpus, by their content."""
        return {"corpus": {**(self._index or {}), **own_passages(self._retrieval, self._benchmark)}}

    def record(self) -> dict[str, Any]:
        """Return the run, for the results."""
        return {} if self._index is None else {"index": self._index}

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


def _lists(
    docs: Sequence[RagDoc], retrieval: Retrieval, source: PassageSource, counts: Mapping[str, int]
) -> list[Searched]:
    """Return the run's lists, ``depth`` deep, for these rows; queries are matched by the rows' ids.

    ``counts`` are the corpus's passages by language. A row that is not in the run has an empty list, and is counted in
    a warning. Raises DataError if the run has none of the rows, and CorpusError for a passage that is not in the
    corpus, naming its line.
    """
    run = read_run(str(retrieval.run))
    depth = retrieval.search_depth
    lists = [run.lists.get(doc.id, ())[:depth] for doc in docs]
    _log_coverage(run, docs, depth)
    passages = _passages(run, lists, source, retrieval.corpus)
    out = []
    for lines in lists:
        ranking = tuple(
            Ranked(line.passage, passages[line.passage].doc_id, passages[line.passage].lang, line.score)
            for line in lines
        )
        kept = tuple(Kept(place.id, place.score) for place in ranking[: retrieval.k])
        out.append(Searched(ranking, kept, counts))
    return out


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
        "run %s (sha256 %s): %d queries, %d of them not among the rows that are run",
        run.path, run.sha256[:12], len(run.lists), unused,
    )  # fmt: skip
    if missing:
        log.warning(
            "run %s has no line for %d of %d rows, which count as having retrieved nothing: %s%s",
            run.path, len(missing), len(docs), ", ".join(missing[:5]), ", ..." if len(missing) > 5 else "",
        )  # fmt: skip
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
