"""Traces of the loop, as the samples of a run hold them, and one of them formatted for reading."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from mrag_eval.core import (
    CRITERIA,
    AgentUsage,
    Trace,
    TracedHit,
    TracedQuestion,
    TracedRound,
    is_language,
    language_name,
    titled,
)
from mrag_eval.platform import (
    DataError,
    JsonFault,
    json_value,
    number_of,
    readable,
    task_and_date,
    with_names_of_one_line,
)

_RULE = "─" * 72
_NEXT = "name the output folder of a run with retrieval.mode=coral and --log_samples, or its samples"
_SHORT = dict(zip(CRITERIA, ("rel", "use", "spec", "comp"), strict=True))


def find_trace(places: Sequence[Path], row: str, task: str | None = None) -> TracedQuestion:
    """Return the trace of a row, by its id or its number (the harness's ``doc_id``), of ``task`` if several have it.

    ``places`` are trace or sample files, or folders of them. If several files contain the row of one task, the newest
    counts. Raises DataError if there is no such trace, and for rows of several tasks.
    """
    files = _files(places)
    found: dict[str, TracedQuestion] = {}
    tasks: set[str] = set()
    for path in sorted(files, key=lambda p: p.stat().st_mtime):
        for record in _records(path):
            tasks.add(record.task)
            if task in (None, record.task) and row in (record.id, str(record.doc_id)):
                found[record.task] = record
    if not found:
        there = f"; tasks there: {', '.join(sorted(tasks))}" if tasks else ""
        where = ", ".join(map(str, places))
        raise DataError(f"no trace of row '{row}'{f' of task {task}' if task else ''} in {where}{there}", _NEXT)
    if len(found) > 1:
        raise DataError(f"row '{row}' has traces in several tasks: {', '.join(sorted(found))}", "name one with --task")
    return next(iter(found.values()))


def read_traces(places: Sequence[Path], task: str | None = None) -> tuple[list[TracedQuestion], int]:
    """Return the newest trace of each row under ``places`` (of ``task`` if given), and how many others are older.

    Raises DataError if there are no traces.
    """
    found: dict[tuple[str, str], TracedQuestion] = {}
    older = 0
    for path in sorted(_files(places), key=lambda p: p.stat().st_mtime):
        for record in _records(path):
            if task in (None, record.task):
                # judging copies the traces of a run
                older += found.get((record.task, record.id), record) != record
                found[record.task, record.id] = record
    if not found:
        raise DataError(f"no trace{f' of task {task}' if task else ''} in {', '.join(map(str, places))}", _NEXT)
    return list(found.values()), older


def _files(places: Sequence[Path]) -> list[Path]:
    files: list[Path] = []
    for place in places:
        if place.is_dir():
            files += sorted(place.rglob("*.jsonl"))
        elif place.is_file():
            files.append(place)
        else:
            raise DataError(f"{place}: no such file or folder", "name the output folder of a run, or its samples")
    return files


def _records(path: Path) -> Iterator[TracedQuestion]:
    """Return the traces in a file: its lines, or the ``trace`` inside the lines of a sample file."""
    with readable(path, _NEXT), path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            try:
                record = with_names_of_one_line(json_value(line, lax="all"))
            except JsonFault as err:
                raise DataError(
                    f"{path}, line {number}: not JSON ({err.reason})", "run the task again with --log_samples"
                ) from None
            if not isinstance(record, dict):
                continue
            doc = record.get("doc")
            if isinstance(doc, dict) and isinstance(doc.get("trace"), dict):
                record = {"task": task_and_date(path)[0], "doc_id": record.get("doc_id"), **doc, **doc["trace"]}
            if "rounds" in record and "task" in record and "id" in record:
                yield TracedQuestion.from_dict(record, f"{path}, line {number}")


def shown_trace(record: TracedQuestion) -> str:
    """Return a trace as text, round by round: query, documents found, their scores, decision."""
    lines = [f"{record.task} · {record.id}", _RULE, "Question", record.query]
    lines += [f"  {chr(65 + i)}. {choice}" for i, choice in enumerate(record.choices or ())]
    if record.trace.agents:
        lines += ["", " · ".join(f"{role}: {name}" for role, name in record.trace.agents.items())]
    rounds = record.trace.rounds
    for each in rounds:
        # the first round searches with the original question
        lines += ["", *_round(each, rounds[0].query)]
    lines += ["", _RULE, _end(record.trace)]
    return "\n".join(lines)


def _round(each: TracedRound, question: str) -> Iterator[str]:
    yield f"Round {each.round} ".ljust(72, "─")
    yield f"corpora     {', '.join(_named(code) for code in each.languages)}"
    yield f"query       {'the question' if each.query == question else ' '.join(each.query.split())}"
    for number, hit in enumerate(each.hits, 1):
        yield ""
        yield f"Document {number}  {hit.lang}  {hit.id}  {_verdict(hit)}"
        yield f"    {' '.join(titled(hit.title, hit.text).split())}"
        if hit.critic is not None and hit.critic.critique:
            yield f"    Critic: {' '.join(hit.critic.critique.split())}"
    if not each.hits:
        yield "nothing was found"
    yield ""
    if each.enough_documents is None:
        yield f"enough      {'not asked' if each.undecided is None else f'no decision ({each.undecided})'}"
    else:
        yield f"enough      {each.enough_documents}"
        yield f"reason      {' '.join((each.reason or '').split())}"
    for fault, count in each.faults.items():
        yield f"fault       {fault}{f' × {count}' if count > 1 else ''}"
    usage = " · ".join(
        f"{role}: {_cost(part)}, {part.seconds:.1f} s" + (f", {part.cached} from cache" if part.cached else "")
        for role, part in each.usage.items()
    )
    yield f"cost        {usage or 'no call'}"


def _verdict(hit: TracedHit) -> str:
    seen = "" if hit.new else "seen before, "
    if hit.critic is None:
        why = "" if hit.unscored is None else f" ({hit.unscored})"
        return seen + ("kept" if hit.valid and not why else f"unscored{why}")
    scores = " ".join(f"{_SHORT[name]} {score}" for name, score in hit.critic.by_criterion().items())
    return f"{seen}{'valid' if hit.valid else 'dropped'}  {scores}  total {hit.critic.total:g}"


def _end(trace: Trace) -> str:
    shown = f"{len(trace.shown)} shown"
    if trace.fallback:
        shown += " (none valid: the best scored)"
    return (
        f"ended: {trace.stopped} after {number_of(len(trace.rounds), 'round')} · {trace.valid} valid, {shown}"
        f" · {_cost(trace.usage)}"
    )


def _cost(usage: AgentUsage) -> str:
    return f"{number_of(usage.calls, 'call')}, {usage.tokens_in:,} + {usage.tokens_out:,} tokens"


def _named(code: str) -> str:
    return f"{code} ({language_name(code)})" if is_language(code) else code
