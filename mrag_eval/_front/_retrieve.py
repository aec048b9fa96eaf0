"""Retrieval for a task without a model to evaluate, from Python."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mrag_eval._front._arguments import Block, blocks_of, folder_for, known_names, manager_over
from mrag_eval.core import RagDoc, Ranked, Retrieved
from mrag_eval.platform import ConfigError

if TYPE_CHECKING:
    from pandas import DataFrame

    from mrag_eval.harness import TaskManager
    from mrag_eval.task import RagTask


@dataclass(frozen=True)
class RetrievedRun:
    """The passages retrieved for the rows of a task.

    ``docs`` and ``rows`` are by the row's id; ``path`` is the run folder on disk.

    A task searches nothing again with ``retrieval={"run_folder": path}``.
    """

    task: str
    path: Path
    docs: Mapping[str, RagDoc] = field(repr=False)
    rows: Mapping[str, Retrieved] = field(repr=False)

    def run(self) -> dict[str, dict[str, float]]:
        """Return query id -> {document id: score}, as ranx, pytrec_eval and ir_measures take it.

        Ids are those of :meth:`qrels`: documents, or passages where a row's relevant ids are passages. A list whose
        scores do not fall from place to place (ties, merged lists) is scored by its places instead.
        """
        return {row: _scores_by_id(doc, self.rows[row].ranking) for row, doc in self.docs.items()}

    def frame(self) -> DataFrame:
        """Return one row for each place of each row's ranking, the best first.

        Columns: ``id``, ``query`` and ``query_lang`` of the row; ``rank`` from 1; ``passage``, ``document``, ``lang``
        and ``score`` of the place; ``relevant``, None for a row whose relevant documents are unknown; ``shown``,
        whether the passage is in the prompt.
        """
        from pandas import DataFrame

        return DataFrame([place for row, doc in self.docs.items() for place in _places(doc, self.rows[row])])

    def qrels(self) -> dict[str, dict[str, int]]:
        """Return query id -> {document id: grade} for the rows whose relevant documents are known."""
        known = ((row, doc) for row, doc in self.docs.items() if doc.relevant_ids)
        return {row: dict.fromkeys(doc.relevant_ids, 1) | dict(doc.grades) for row, doc in known}


def _places(doc: RagDoc, found: Retrieved) -> Iterator[dict[str, Any]]:
    from mrag_eval.scoring import judged_ids

    relevant, shown = {*doc.relevant_ids}, {hit.id for hit in found.passages}
    names = judged_ids(doc, found.ranking, relevant)
    for rank, (name, place) in enumerate(zip(names, found.ranking, strict=True), 1):
        yield {
            "id": doc.id,
            "query": doc.query,
            "query_lang": doc.query_lang,
            "rank": rank,
            "passage": place.id,
            "document": place.doc_id,
            "lang": place.lang,
            "score": place.score,
            "relevant": name in relevant if relevant else None,
            "shown": place.id in shown,
        }


def _scores_by_id(doc: RagDoc, ranking: Sequence[Ranked]) -> dict[str, float]:
    from mrag_eval.scoring import judged_ids

    best: dict[str, float] = {}
    for name, place in zip(judged_ids(doc, ranking, {*doc.relevant_ids}), ranking, strict=True):
        best.setdefault(name, place.score)
    scores = list(best.values())
    falling = all(first > second for first, second in pairwise(scores))
    return best if falling else {name: float(len(best) - i) for i, name in enumerate(best)}


def retrieve(
    task: str | Block,
    *,
    retrieval: Block | None = None,
    data: Block | None = None,
    agent: Block | None = None,
    limit: float | None = None,
    output: str | Path | None = None,
    include: str | Path | None = None,
) -> RetrievedRun:
    """Retrieve for the rows of a task, without a model to evaluate; the same as ``mrag-eval retrieve``.

    Args:
        task: the name of a task, or the ``data`` block of a benchmark, such as ``{"benchmark": "demo"}``.
        retrieval, data, agent: settings that replace the task's own.
        limit: retrieve for that many rows, or below 1 for that share of them.
        output: the folder to write to, or to go on with; a temporary one by default.
        include: a folder of your own task files.

    Raises:
        ConfigError, DataError, CorpusError: with the next step.
    """
    from mrag_eval.models import forget_asked
    from mrag_eval.retrieval import open_folder, retrieve_into

    blocks = blocks_of(retrieval=retrieval, data=data, agent=agent)
    found = _named_task(task, manager_over(include, blocks)) if isinstance(task, str) else _task_over(task, blocks)
    name, supply = str(found.config.task), found.supply
    mode = supply.blocks.retrieval.mode
    if not supply.blocks.retrieval.retrieves:
        raise ConfigError(f"task {name}: mode '{mode}' retrieves nothing", 'retrieval={"mode": "all"}')
    if supply.taken:
        raise ConfigError(f"task {name} takes its rows from a run folder", "leave retrieval.run_folder out")
    ids = found.rows_to_run(limit)
    folder = open_folder(folder_for(output))
    entry = retrieve_into(folder, name, supply, ids).entry
    if not entry.faults:
        forget_asked()
    docs = {row: supply.docs[row] for row in ids}
    return RetrievedRun(
        name, folder.path, docs, dict(zip(ids, folder.rows(name, entry, list(docs.values())), strict=True))
    )


def _named_task(name: str, manager: TaskManager) -> RagTask:
    from mrag_eval.harness import load_tasks
    from mrag_eval.task import RagTask

    tasks = load_tasks(manager, known_names(name, manager))[1]
    if len(tasks) != 1:
        raise ConfigError(f"'{name}' is the name of {len(tasks)} tasks: {', '.join(tasks)}", "name one of them")
    (task,) = tasks.values()
    if not isinstance(task, RagTask):
        raise ConfigError(f"task {name} retrieves nothing: it is not of the class RagTask", "mrag-eval tasks")
    return task


def _task_over(data: Block, blocks: Mapping[str, Any]) -> RagTask:
    """Return a task over the rows of a benchmark, named after it."""
    from mrag_eval.task import RagTask

    merged = {**data, **blocks.get("data", {})}
    config = {"task": str(merged.get("benchmark", "rows")), "metrics": ["match"], **blocks, "data": merged}
    return RagTask(config)
