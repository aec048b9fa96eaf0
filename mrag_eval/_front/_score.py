"""Scoring replies and rankings that are there already, from Python."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mrag_eval._front._arguments import Block, folder_for
from mrag_eval._front._results import Results
from mrag_eval.config import (
    JUDGED,
    RANKING_MEASURE,
    TRANSLATED,
    Measurement,
    Prompt,
    check_metrics,
    package_versions,
    ranking_measures,
    relevance_measures,
    validated,
)
from mrag_eval.core import ConfigError, DataError, Hit, RagDoc, Ranked, Retrieved, RunFiles, Scored, content_key

if TYPE_CHECKING:
    from pandas import DataFrame

    from mrag_eval.datasets import Held

_PASSAGE = 'e.g. {"id": "p1", "lang": "en", "text": "...", "doc_id": "d1"}, the best passage first'


def score(
    rows: Iterable[Block] | DataFrame | str | Path,
    metrics: str | Sequence[str],
    *,
    answer: str = "plain",
    task: str = "rows",
    model: str = "unnamed",
    output: str | Path | None = None,
    corpus: Iterable[str] | str | Path | None = None,
    seed: int = 0,
) -> Results:
    """Score replies and rankings that are there already; no model is run.

    Args:
        rows: dictionaries, a DataFrame, or a JSON Lines file. The keys are those of your own benchmark (``query``,
            ``lang``, ``answers``, ``choices``, ``relevant_ids`` ...; ``id`` is optional), and ``reply``, and for
            ranking measures ``passages``: objects with ``id`` and ``lang``, best first.
        metrics: names of metrics that need no judge and no translator.
        answer: where the answer is in the reply, as the ``prompt`` block says it: plain, tag, line, choice, citation.
        task, model: names for the results, which reports and comparisons show.
        output: the folder for results and samples; a temporary one by default.
        corpus: the passages that the system searched: their ids and those of their documents, a JSON Lines file of
            passages, or the folder of an index. A row is then unscored by measures of relevance if the corpus holds no
            relevant id of it. Without it, ids are known from the rows' passages alone.
        seed: of the resampling for intervals.

    Raises:
        ConfigError: for a metric that is unknown or needs a model. DataError: naming the row and the key; and if no
            relevant id of any row is in the corpus, or without one among the passages of all rows.
    """
    from mrag_eval.controls import ControlPool, ControlRule, reply_controls
    from mrag_eval.datasets import Benchmark, english_answers, with_absent
    from mrag_eval.scoring import (
        METRICS,
        AnswerRecord,
        check_task_scores,
        parse_answer,
        row_record,
        score_rows,
        summarize,
        task_record,
    )

    names = [metrics] if isinstance(metrics, str) else list(metrics)
    _check_scorable(names)
    form = str(validated(Prompt, {"answer": answer}, "score").answer)
    given = [_given(row, where, number, names) for number, (where, row) in enumerate(_read(rows))]
    _check_ids([row.doc.id for row in given])
    check_task_scores(names, [row.doc for row in given])
    if measures := relevance_measures(names):
        marked = with_absent([row.doc for row in given], _held(corpus, given), measures)
        given = [replace(row, doc=doc) for row, doc in zip(given, marked, strict=True)]
    # as in XRAG: a question without passages may be passed on
    read = [parse_answer(row.reply, form, may_decline=not row.passages) for row in given]
    scored = [
        Scored(row.doc, found.text, row.ranking, found.tagged, found.declined, form=form, passages=row.passages)
        for row, found in zip(given, read, strict=True)
    ]
    docs = [row.doc for row in given]
    controls = reply_controls(
        docs, ControlPool(docs, english_answers(Benchmark("rows", docs))), ControlRule(names, form)
    )
    values = score_rows(scored, names, searched=bool(ranking_measures(names)))
    records = [
        replace(
            row_record(row.doc, value, Retrieved(row.passages, row.ranking)),
            answer=AnswerRecord.of(found, row.reply),
            controls=controls[row.doc.id],
            **task_record(names, row.doc, found.text, row.passages, form),
        )
        for row, value, found in zip(given, values, read, strict=True)
    ]
    directions = {name: METRICS[name].higher_is_better if name in METRICS else True for name in names}
    config = {
        "task": task,
        "metrics": names,
        "scores": summarize(records, seed).to_dict(),
        "measurement": _measured(task, form, given, names).to_dict(),
    }
    content = {
        "results": {},
        "configs": {task: config},
        "higher_is_better": {task: directions},
        "config": {"model": model, "model_args": {"model": model}},
        "model_name": model,
        "date": time.time(),
    }
    samples = [
        {
            "doc_id": number,
            "doc": row.doc.to_dict() | {"passages": [hit.to_dict() for hit in row.passages]},
            "filtered_resps": [row.reply],
            "rows": record.to_dict(),
        }
        for number, (row, record) in enumerate(zip(given, records, strict=True))
    ]
    return Results(RunFiles(folder_for(output)).write(content, {task: samples}))


def _held(corpus: Iterable[str] | str | Path | None, given: Sequence[_Given]) -> Held:
    """Return the corpus that was searched, as far as it is known."""
    from mrag_eval.datasets import Held, read_passages
    from mrag_eval.retrieval import held_by_index
    from mrag_eval.retrievers import load_index

    if corpus is None:
        found = (hit for row in given for hit in row.passages)
        return Held.among("score: the rows' passages", found, complete=False, also=", or pass corpus=, all of its ids")
    if isinstance(corpus, str | Path):
        path = Path(corpus)
        if path.is_dir():
            return held_by_index(load_index(path), [row.doc for row in given], str(corpus))
        return Held.among(f"score: {path}", read_passages(path))
    ids = dict.fromkeys(map(str, corpus))
    return Held("score: corpus", lambda doc, name: name in ids, tuple(ids)[:1])


def _measured(task: str, form: str, given: Sequence[_Given], metrics: Sequence[str]) -> Measurement:
    """Return the record of what is measured: the rows, and how they are read; replies and passages are the system's."""
    from mrag_eval.scoring import words_of

    rows = {row.doc.id: row.doc.to_dict() for row in given}
    return Measurement(
        task,
        setting={"replies": "given", "prompt": {"answer": form}},
        instrument=words_of(metrics),
        data={
            "source": {"content": content_key(sorted(rows.items()))},
            "ran": {"rows": len(rows), "of": len(rows), "ids": content_key(sorted(rows))},
        },
        environment={"versions": package_versions()},
    )


def _check_ids(ids: Sequence[str]) -> None:
    if not ids:
        raise DataError("score: there are no rows", "give one dictionary a question")
    if len(set(ids)) < len(ids):
        again = next(row for i, row in enumerate(ids) if row in ids[:i])
        raise DataError(f"score: two rows have the id '{again}'", "give each row its own id, or leave out all ids")


def _check_scorable(names: Sequence[str]) -> None:
    from mrag_eval.scoring import METRIC_NAMES

    if not names:
        raise ConfigError("score: no metric is named", 'e.g. metrics=["char3gram_recall"]')
    check_metrics(names, METRIC_NAMES, "score")
    for name in names:
        if name in (*JUDGED, *TRANSLATED):
            raise ConfigError(
                f"score: metric '{name}' needs a model, and score runs none",
                "leave it out; mrag-eval judge scores the samples of a run by a panel",
            )
        if name not in METRIC_NAMES and RANKING_MEASURE.match(name) is None:
            raise ConfigError(f"score: metric '{name}' needs a reranked list", "name the measure without rerank_")


@dataclass(frozen=True)
class _Given:
    doc: RagDoc
    reply: str
    passages: tuple[Hit, ...]

    @property
    def ranking(self) -> tuple[Ranked, ...]:
        return tuple(Ranked(hit.id, hit.doc_id, hit.lang, hit.score) for hit in self.passages)


def _read(rows: Iterable[Block] | DataFrame | str | Path) -> list[tuple[str, Block]]:
    """Return the place of each row, and the row."""
    from mrag_eval.datasets import iter_jsonl

    if isinstance(rows, str | Path):
        if not Path(rows).is_file():
            raise DataError(f"{rows}: no such file", "name a JSON Lines file, or pass the rows themselves")
        return [(f"{rows}, line {number}", row) for number, row in iter_jsonl(Path(rows))]
    if hasattr(rows, "convert_dtypes"):
        # JSON knows lists and null where a frame has arrays and NaN
        found = json.loads(rows.convert_dtypes().to_json(orient="records", double_precision=15))
        return [
            (f"rows[{i}]", {key: value for key, value in row.items() if value is not None})
            for i, row in enumerate(found)
        ]
    return [(f"rows[{i}]", row) for i, row in enumerate(rows)]


def _given(row: Any, where: str, number: int, names: Sequence[str]) -> _Given:
    from mrag_eval.datasets import as_question

    if not isinstance(row, Mapping):
        raise DataError(f"{where}: expected a dictionary, got {type(row).__name__}", "give one dictionary a question")
    ranked = relevance_measures(names)
    needed = (["passages"] if ranked else []) + (["reply"] if len(ranked) < len(names) else [])
    for key in needed:
        if row.get(key) is None:
            raise DataError(f"{where}: '{key}' is missing", f"metrics {', '.join(names)} need it")
    reply = row.get("reply", "")
    if not isinstance(reply, str):
        raise DataError(f"{where}: 'reply' must be text, found {type(reply).__name__}", "an empty reply is ''")
    question = {key: value for key, value in row.items() if key not in ("reply", "passages")}
    doc = as_question({"id": number, **question}, where)
    return _Given(doc, reply, tuple(_hits(row.get("passages") or (), where)))


def _hits(passages: Any, where: str) -> Iterable[Hit]:
    if not isinstance(passages, Iterable):
        raise DataError(f"{where}: 'passages' must be a list, found {type(passages).__name__}", _PASSAGE)
    for rank, item in enumerate(passages, 1):
        place = f"{where}, passages[{rank - 1}]"
        if not isinstance(item, Mapping) or "id" not in item or "lang" not in item:
            raise DataError(f"{place}: expected a dictionary with 'id' and 'lang'", _PASSAGE)
        text, title = str(item.get("text") or ""), str(item.get("title") or "")
        doc_id = str(item.get("doc_id") or item["id"])
        given = item.get("score")
        try:
            score = 1 / rank if given is None else float(given)
        except (TypeError, ValueError):
            raise DataError(f"{place}: 'score' is {given!r:.40}", "give a number, or leave it out") from None
        yield Hit(str(item["id"]), str(item["lang"]), text, score, rank, title, doc_id)
