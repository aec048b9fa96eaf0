"""Traces of the loop: one line per question in ``traces/<task>.jsonl``, and one of them formatted for reading."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mrag_eval.core import ConfigError, DataError, is_language, language_name
from mrag_eval.retrieval.agents._records import CRITERIA

_RULE = "─" * 72
_SHORT = dict(zip(CRITERIA, ("rel", "use", "spec", "comp"), strict=True))


def write_traces(
    folder: Path, task: str, records: Sequence[Mapping[str, Any]], rank: int = 0, world_size: int = 1
) -> Path:
    """Write the traces of one rank's rows of a task, replacing those of an earlier run of it.

    Raises ConfigError if the folder cannot be written to.
    """
    path = folder / (f"{task}.jsonl" if world_size == 1 else f"{task}.rank{rank}of{world_size}.jsonl")
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        text = "".join(f"{json.dumps(record, ensure_ascii=False)}\n" for record in records)
        # half a surrogate pair in a question must not cost the run its traces
        part.write_text(text, encoding="utf-8", errors="backslashreplace")
        part.replace(path)
    except OSError as err:
        raise ConfigError(
            f"agent.traces: {path} cannot be written ({err.strerror})",
            "name another folder (--metadata agent.traces=FOLDER), or none (null)",
        ) from None
    return path


def find_trace(places: Sequence[Path], row: str, task: str | None = None) -> dict[str, Any]:
    """Return the trace of a row, by its id or its number (the harness's ``doc_id``), of ``task`` if several have it.

    ``places`` are trace or sample files, or folders of them. If several files contain the row of one task, the newest
    counts. Raises DataError if there is no such trace, and for rows of several tasks.
    """
    files = _files(places)
    found: dict[str, dict[str, Any]] = {}
    tasks: set[str] = set()
    for path in sorted(files, key=lambda p: p.stat().st_mtime):
        for record in _records(path):
            tasks.add(record["task"])
            if task in (None, record["task"]) and row in (record["id"], str(record.get("doc_id"))):
                found[record["task"]] = record
    if not found:
        there = f"; tasks there: {', '.join(sorted(tasks))}" if tasks else ""
        where = ", ".join(map(str, places))
        raise DataError(
            f"no trace of row '{row}'{f' of task {task}' if task else ''} in {where}{there}",
            "traces are written by tasks with retrieval.mode=coral; name their folder, or the samples of a run",
        )
    if len(found) > 1:
        raise DataError(f"row '{row}' has traces in several tasks: {', '.join(sorted(found))}", "name one with --task")
    return next(iter(found.values()))


def read_traces(places: Sequence[Path], task: str | None = None) -> list[dict[str, Any]]:
    """Return every trace under ``places`` (of ``task`` if given); of several for one row, the newest counts.

    Raises DataError if there are no traces.
    """
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for path in sorted(_files(places), key=lambda p: p.stat().st_mtime):
        for record in _records(path):
            if task in (None, record["task"]):
                found[str(record["task"]), str(record["id"])] = record
    if not found:
        raise DataError(
            f"no trace{f' of task {task}' if task else ''} in {', '.join(map(str, places))}",
            "traces are written by tasks with retrieval.mode=coral; name their folder, or the samples of a run",
        )
    return list(found.values())


def _files(places: Sequence[Path]) -> list[Path]:
    files: list[Path] = []
    for place in places:
        if place.is_dir():
            files += sorted(place.rglob("*.jsonl"))
        elif place.is_file():
            files.append(place)
        else:
            raise DataError(f"{place}: no such file or folder", "name the folder of traces, or the samples of a run")
    return files


def _records(path: Path) -> Iterator[dict[str, Any]]:
    """Return the traces in a file: its lines, or the ``trace`` inside the lines of a sample file."""
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            try:
                record = json.loads(line)
            except json.JSONDecodeError as err:
                raise DataError(
                    f"{path}, line {number}: not JSON ({err.msg})",
                    "write the traces again: run with --metadata agent.traces=FOLDER",
                ) from None
            if not isinstance(record, dict):
                continue
            doc = record.get("doc")
            if isinstance(doc, dict) and isinstance(doc.get("trace"), dict):
                name = path.name.removeprefix("samples_").removesuffix(".jsonl").rsplit("_", 1)[0]
                yield trace_record(name, record.get("doc_id"), doc, doc["trace"])
            elif "rounds" in record and "task" in record and "id" in record:
                yield record


def trace_record(task: str, number: Any, row: Mapping[str, Any], trace: Mapping[str, Any]) -> dict[str, Any]:
    """Return the line of a trace file: task, row, question and trace."""
    question = {key: row[key] for key in ("id", "query", "query_lang", "choices") if key in row}
    return {"task": task, "doc_id": number, **question, **trace}


def shown_trace(record: Mapping[str, Any]) -> str:
    """Return a trace as text, round by round: query, documents found, their scores, decision."""
    lines = [f"{record['task']} · {record['id']}", _RULE, "Question", record["query"]]
    lines += [f"  {chr(65 + i)}. {choice}" for i, choice in enumerate(record.get("choices") or ())]
    for each in record["rounds"]:
        # the first round searches with the original question
        lines += ["", *_round(each, record["rounds"][0]["query"])]
    lines += ["", _RULE, _end(record)]
    return "\n".join(lines)


def _round(each: Mapping[str, Any], question: str) -> Iterator[str]:
    yield f"Round {each['round']} ".ljust(72, "─")
    yield f"corpora     {', '.join(_named(code) for code in each['languages'])}"
    yield f"query       {'the question' if each['query'] == question else ' '.join(each['query'].split())}"
    for number, hit in enumerate(each["hits"], 1):
        yield ""
        yield f"Document {number}  {hit['lang']}  {hit['id']}  {_verdict(hit)}"
        title = f"{hit['title']}. " if hit["title"] and not hit["text"].startswith(hit["title"]) else ""
        yield f"    {' '.join((title + hit['text']).split())}"
        if hit.get("critic", {}).get("critique"):
            yield f"    Critic: {' '.join(hit['critic']['critique'].split())}"
    if not each["hits"]:
        yield "nothing was found"
    yield ""
    if "enough_documents" in each:
        yield f"enough      {each['enough_documents']}"
        yield f"reason      {' '.join(each['reason'].split())}"
    else:
        yield "enough      not asked"
    for fault, count in each.get("faults", {}).items():
        yield f"fault       {fault}{f' × {count}' if count > 1 else ''}"
    usage = " · ".join(
        f"{role}: {_times(part['calls'], 'call')}, {part['tokens_in']:,} + {part['tokens_out']:,} tokens, "
        f"{part['seconds']:.1f} s" + (f", {part['cached']} from cache" if part["cached"] else "")
        for role, part in each["usage"].items()
    )
    yield f"cost        {usage or 'no call'}"


def _verdict(hit: Mapping[str, Any]) -> str:
    seen = "" if hit["new"] else "seen before, "
    if "critic" not in hit:
        return seen + (f"unscored ({hit['unscored']})" if "unscored" in hit else "kept" if hit["valid"] else "unscored")
    scores = " ".join(f"{short} {hit['critic'][name]}" for name, short in _SHORT.items())
    return f"{seen}{'valid' if hit['valid'] else 'dropped'}  {scores}  total {hit['critic']['total']:g}"


def _end(record: Mapping[str, Any]) -> str:
    usage = record["usage"]
    shown = f"{len(record['shown'])} shown"
    if record["fallback"]:
        shown += " (none valid: the best scored)"
    return (
        f"ended: {record['stopped']} after {_times(len(record['rounds']), 'round')} · {record['valid']} valid, {shown}"
        f" · {_times(usage['calls'], 'call')}, {usage['tokens_in']:,} + {usage['tokens_out']:,} tokens"
    )


def _times(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _named(code: str) -> str:
    return f"{code} ({language_name(code)})" if is_language(code) else code
