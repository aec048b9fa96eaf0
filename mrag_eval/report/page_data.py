"""What a report shows, gathered from result and sample files: plain values, no layout."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from mrag_eval.errors import DataError
from mrag_eval.report.results import LeafResult, ResultFile, read_results
from mrag_eval.report.samples import Sample, read_samples

# A passage is cut in the browser of samples: what matters is which one it is.
_PASSAGE_CHARS = 700
Point = dict[str, Any]


@dataclass(frozen=True)
class Leaf:
    """One task of one run as the report shows it; ``label`` tells it from the same task of other runs."""

    run: str
    task: str
    label: str
    mode: str
    benchmark: str
    result: LeafResult
    samples: Path | None


@dataclass
class PageData:
    """Everything on the page, as rows of values (scores in percent)."""

    runs: list[dict[str, Any]]
    leaves: list[Leaf]
    scores: list[Point] = field(default_factory=list)
    languages: list[Point] = field(default_factory=list)
    pairs: list[Point] = field(default_factory=list)
    stages: list[Point] = field(default_factory=list)
    retrieved: list[Point] = field(default_factory=list)
    unscored: list[Point] = field(default_factory=list)
    judges: list[Point] = field(default_factory=list)
    agreement: list[Point] = field(default_factory=list)
    ledger: list[Point] = field(default_factory=list)
    samples: list[dict[str, Any]] = field(default_factory=list)
    passages: list[dict[str, Any]] = field(default_factory=list)


def page_data(paths: Sequence[Path], *, samples: int = 200, text: bool = True, seed: int = 0) -> PageData:
    """Gather a report from the result files at ``paths`` (files, or folders searched for them).

    Of each task at most ``samples`` rows are taken for the browser, drawn with ``seed``; without ``text`` passages are
    named but not shown. Of a task that a model ran several times, the newest counts. Raises DataError where there is
    no result of our tasks.
    """
    leaves = _leaves(read_results(paths))
    if not leaves:
        raise DataError(
            f"{', '.join(map(str, paths))}: no task of ours in these results", "name the --output_path of a run"
        )
    data = PageData(_runs(leaves), [leaf for leaf, _ in leaves])
    for leaf in data.leaves:
        scores = leaf.result.config["scores"]
        data.scores += _scores(leaf)
        data.pairs += _pairs(leaf)
        data.stages += _stages(leaf, scores)
        data.retrieved += _retrieved(leaf, scores)
        data.unscored += [
            {"task": leaf.label, "metric": metric, "reason": reason, "rows": n}
            for metric, reasons in leaf.result.unscored.items()
            for reason, n in reasons.items()
        ]
        _judged(leaf, scores.get("judge"), data)
        rows = read_samples(leaf.samples) if leaf.samples is not None else []
        data.languages += _languages(leaf, rows)
        _browse(leaf, rows, data, samples, text, seed)
    return data


def _leaves(files: Sequence[ResultFile]) -> list[tuple[Leaf, ResultFile]]:
    newest: dict[tuple[str, str, str], tuple[LeafResult, ResultFile]] = {}
    for file in files:
        for task, result in file.leaves.items():
            newest[file.model, task, _mode(result)] = (result, file)
    models = {model for model, _, _ in newest}
    modes: dict[tuple[str, str], set[str]] = defaultdict(set)
    for model, task, mode in newest:
        modes[model, task].add(mode)
    out = []
    for (model, task, mode), (result, file) in sorted(newest.items()):
        label = task if len(modes[model, task]) == 1 else f"{task} ({mode})"
        label = label if len(models) == 1 else f"{label} · {model}"
        benchmark = str((result.config.get("data") or {}).get("benchmark", task))
        out.append((Leaf(model, task, label, mode, benchmark, result, _samples_beside(file.path, task)), file))
    return out


def _mode(result: LeafResult) -> str:
    return str((result.config.get("retrieval") or {}).get("mode", "no_ir"))


def _samples_beside(results: Path, task: str) -> Path | None:
    date = results.stem.removeprefix("results_")
    names = (f"judged_samples_{task}_{date}.jsonl", f"samples_{task}_{date}.jsonl")
    return next((path for name in names if (path := results.parent / name).is_file()), None)


def _runs(leaves: Sequence[tuple[Leaf, ResultFile]]) -> list[dict[str, Any]]:
    """One entry a model and result file: what was run, on what."""
    out: dict[Path, dict[str, Any]] = {}
    for leaf, file in leaves:
        entry = out.setdefault(
            file.path, {"model": file.model, "date": file.date, "path": str(file.path), "tasks": 0, "rows": 0}
        )
        scores = leaf.result.config["scores"]
        entry["tasks"] += 1
        entry["rows"] += int(scores.get("rows", 0))
        shortened = (scores.get("prompts") or {}).get("shortened") or 0
        entry["shortened"] = entry.get("shortened", 0) + shortened
    return list(out.values())


def _percent(entry: Mapping[str, Any]) -> Point:
    keys = ("value", "low", "high")
    return {key: None if entry.get(key) is None else round(float(entry[key]) * 100, 2) for key in keys} | {
        "n": entry.get("n")
    }


def _scores(leaf: Leaf) -> list[Point]:
    return [
        {"task": leaf.label, "run": leaf.run, "mode": leaf.mode, "benchmark": leaf.benchmark, "metric": name}
        | _percent(entry)
        for name, entry in leaf.result.metrics.items()
        if entry.get("value") is not None
    ]


def _pairs(leaf: Leaf) -> list[Point]:
    out = []
    for name, entry in leaf.result.metrics.items():
        for pair, cell in ((entry.get("by") or {}).get("pair") or {}).items():
            query, _, document = pair.partition("->")
            if cell.get("value") is not None:
                out.append(
                    {"task": leaf.label, "metric": name, "question": query, "document": document} | _percent(cell)
                )
    return out


def _stages(leaf: Leaf, scores: Mapping[str, Any]) -> list[Point]:
    stages: Mapping[str, int] = ((scores.get("attribution") or {}).get("overall") or {}).get("stages") or {}
    return [{"task": leaf.label, "stage": stage, "rows": n} for stage, n in stages.items() if n]


def _retrieved(leaf: Leaf, scores: Mapping[str, Any]) -> list[Point]:
    found = (scores.get("languages") or {}).get("retrieved") or {}
    out = []
    for pair, n in found.items():
        query, _, document = pair.partition("->")
        out.append({"task": leaf.label, "question": query, "document": document, "passages": n})
    return out


def _languages(leaf: Leaf, rows: Sequence[Sample]) -> list[Point]:
    """Means by language of the question: from the samples, else from the breakdown in the results."""
    base = {"benchmark": leaf.benchmark, "mode": leaf.mode, "run": leaf.run, "task": leaf.label}
    if not rows:
        return [
            base | {"metric": name, "language": language} | _percent(cell)
            for name, entry in leaf.result.metrics.items()
            for language, cell in ((entry.get("by") or {}).get("query_lang") or {}).items()
            if cell.get("value") is not None
        ]
    values: dict[tuple[str, str], list[float]] = defaultdict(list)
    for sample in rows:
        record = sample["rows"]
        for name, value in record.get("values", {}).items():
            values[name, str(record.get("cell", {}).get("query_lang", ""))].append(float(value))
    return [
        base | {"metric": name, "language": language, "value": round(100 * sum(v) / len(v), 2), "n": len(v)}
        for (name, language), v in values.items()
        if language
    ]


def _judged(leaf: Leaf, table: Mapping[str, Any] | None, data: PageData) -> None:
    if not table:
        return
    for seat, judge in table.get("judges", {}).items():
        data.judges.append(
            {"task": leaf.label, "judge": seat, "model": judge.get("model", "")}
            | _percent(judge.get("correct") or {})
            | {"abstained": sum((judge.get("abstained") or {}).values())}
        )
    agreement = table.get("agreement") or {}
    pairs = {**(agreement.get("pairwise") or {}), "Fleiss, all judges": agreement.get("fleiss")}
    for name, kappa in pairs.items():
        value = kappa.get("value") if isinstance(kappa, Mapping) else kappa
        if value is not None:
            data.agreement.append({"task": leaf.label, "judges": name, "kappa": round(float(value), 3)})
    for model, entry in (table.get("ledger") or {}).items():
        unanswered = sum((entry.get("failures") or {}).values())
        data.ledger.append({"task": leaf.label, "model": model} | dict(entry) | {"failures": unanswered})


def _browse(leaf: Leaf, rows: Sequence[Sample], data: PageData, limit: int, text: bool, seed: int) -> None:
    """Samples for the browser; a passage that several samples show is kept once."""
    known = {json.dumps(p, sort_keys=True): i for i, p in enumerate(data.passages)}
    for sample in _drawn(rows, limit, seed):
        doc, record = sample.get("doc") or {}, sample["rows"]
        shown = []
        for hit in doc.get("passages") or ():
            entry = {"lang": hit.get("lang", ""), "title": hit.get("title", ""), "id": hit.get("id", "")}
            if text:
                entry["text"] = str(hit.get("text", ""))[:_PASSAGE_CHARS]
            key = json.dumps(entry, sort_keys=True)
            if key not in known:
                known[key] = len(data.passages)
                data.passages.append(entry)
            score = hit.get("rerank_score", hit.get("score"))
            shown.append([known[key], None if score is None else round(float(score), 4), bool(hit.get("is_gold"))])
        answer = record.get("answer")
        data.samples.append(
            {
                "task": leaf.label,
                "id": str(record["row"]),
                "lang": str(record.get("cell", {}).get("query_lang", "")),
                "doc_lang": record.get("cell", {}).get("doc_lang"),
                "question": doc.get("query", ""),
                "choices": doc.get("choices"),
                "references": doc.get("answers") or [],
                "reply": _reply(sample),
                "answer": answer.get("text") if isinstance(answer, Mapping) else None,
                "passages": shown,
                "values": record.get("values", {}),
                "unscored": record.get("unscored", {}),
                "retrieved": record.get("retrieved"),
                "votes": sample.get("votes") or None,
                "trace": doc.get("trace"),
            }
        )


def _reply(sample: Sample) -> str:
    replies: Any = sample.get("filtered_resps") or [""]
    first = replies[0] if isinstance(replies, list) else replies
    return str(first[0] if isinstance(first, list) and first else first)


def _drawn(rows: Sequence[Sample], limit: int, seed: int) -> Iterator[Sample]:
    if len(rows) <= limit:
        yield from rows
        return
    for i in sorted(np.random.default_rng(seed).choice(len(rows), size=limit, replace=False).tolist()):
        yield rows[i]
