"""Pipeline of named steps, with the records between them kept as JSON Lines in a working folder.

``NN_name.jsonl`` holds a step's records, ``NN_name.dropped.jsonl`` its dropped items with reasons, ``NN_name.json`` its
counts and settings. A step in progress has a journal; the other files are written under a temporary name and renamed. A
step is repeated if its settings, its input or an earlier step changed, or if calls failed.
"""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from mrag_eval.building.steps._records import Drop, Outcome, R, Record, Settle, dropped
from mrag_eval.core import pipe_table
from mrag_eval.datasets import sha256_file
from mrag_eval.models import AuxModel, summed
from mrag_eval.platform import content_key, from_json, json_value, replaced, to_json, write_whole

_FORMAT = "building/1"
# Receives a pipeline's progress, line by line.
Say = Callable[[str], None]


@dataclass(frozen=True)
class Step:
    """One step of a pipeline. ``work`` receives the items that are not settled yet, and settles every one.

    The items are the records of the step before, read as ``kind``; the first step gets none and settles the records it
    reads. ``settings`` holds everything that affects the result, as JSON: thresholds, models (``model_identity``),
    prompts (their hash). ``models`` are those whose calls are counted. ``whole`` marks a step whose items depend on one
    another, so an interrupted run restarts it.
    """

    name: str
    work: Callable[[Sequence[Any], Settle], None]
    settings: Mapping[str, Any] = field(default_factory=dict)
    kind: type[Record] | None = None
    models: Sequence[AuxModel] = ()
    whole: bool = False


@dataclass(frozen=True)
class StepReport:
    """Counts of one step. ``dropped`` counts by reason, largest first; ``failed`` of them may succeed next time.

    ``taken`` items came in, ``made`` records went on (an item may give several or none). ``resumed`` items were settled
    by an earlier, interrupted run. ``ledgers`` records the calls to each model by the run that finished the step,
    ``came_back`` what came back from it.
    """

    name: str
    taken: int
    made: int
    dropped: Mapping[str, int]
    failed: int = 0
    resumed: int = 0
    seconds: float = 0.0
    finished: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    ledgers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    came_back: Mapping[str, Any] = field(default_factory=dict)
    key: str = ""
    reused: bool = False

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON form for files."""
        return {key: value for key, value in asdict(self).items() if key != "reused"}


def run_steps(steps: Sequence[Step], folder: Path, *, say: Say = lambda line: None) -> list[StepReport]:
    """Run a pipeline in its working folder, one process at a time; return one report per step, in order.

    Finished steps with the same settings are reused. A step that leaves no records does not end the run; later steps
    then have no input.
    """
    from mrag_eval.platform import build_lock

    names = [step.name for step in steps]
    if len(set(names)) != len(names):
        raise ValueError(f"duplicate step names: {names}")
    folder.mkdir(parents=True, exist_ok=True)
    with build_lock(folder / "steps"):
        reports: list[StepReport] = []
        before: Path | None = None
        chain = _FORMAT
        for number, step in enumerate(steps, 1):
            place = folder / f"{number:02d}_{step.name}"
            # a version with fewer or more steps may have left the step's files under another number
            for path in folder.glob(f"[0-9][0-9]_{place.name[3:]}.*"):
                if path.name[:2] != place.name[:2]:
                    path.unlink()
            chain = content_key(chain, step.name, step.settings, "" if before is None else sha256_file(before))
            report = _finished(place, chain) or _run(step, place, before, chain, say)
            reports.append(report)
            say(report_line(report))
            before = records_path(place)
        return reports


def records_path(place: Path) -> Path:
    """Return the path of a step's records; ``place`` is its folder and numbered name."""
    return place.with_name(place.name + ".jsonl")


def step_records(folder: Path, name: str) -> Path:
    """Return the records of the named step in a pipeline's working folder."""
    found = sorted(folder.glob(f"[0-9][0-9]_{name}.jsonl"))
    if len(found) != 1:
        raise FileNotFoundError(f"{folder}: no records of a step '{name}'")
    return found[0]


def read_records(path: Path, kind: type[R]) -> Iterator[R]:
    """Yield the records of a step's file."""
    with path.open("rb") as handle:
        for number, line in enumerate(handle, 1):
            yield from_json(kind, json.loads(line), f"{path}, line {number}", "remove that file, and build again")


def report_line(report: StepReport) -> str:
    """Return one line of a log: ``topic  12 in, 9 out · dropped 3 (not related 3) · 12 calls · 0.4 s``."""
    text = f"{report.name:<12} {report.taken:,} in, {report.made:,} out"
    if report.dropped:
        reasons = ", ".join(f"{reason} {count:,}" for reason, count in report.dropped.items())
        text += f" · dropped {sum(report.dropped.values()):,} ({reasons})"
    if report.reused:
        return f"{text} · reused"
    calls, cached = (sum(ledger.get(key, 0) for ledger in report.ledgers.values()) for key in ("calls", "cached"))
    if calls or cached:
        text += f" · {calls:,} calls" + (f", {cached:,} from cache" if cached else "")
    if report.resumed:
        text += f" · {report.resumed:,} from an earlier run"
    return f"{text} · {report.seconds:.1f} s"


def _finished(place: Path, key: str) -> StepReport | None:
    """Return the report of a finished step with this key and no calls to retry, else None."""
    state = place.with_name(place.name + ".json")
    try:
        report = StepReport(**json_value(state.read_bytes()), reused=True)
    except (OSError, ValueError, TypeError):
        return None
    return report if report.key == key and not report.failed and records_path(place).is_file() else None


def _run(step: Step, place: Path, before: Path | None, key: str, say: Say) -> StepReport:
    start = time.perf_counter()
    state = place.with_name(place.name + ".json")
    path = place.with_name(place.name + ".journal.jsonl")
    if step.whole:
        path.unlink(missing_ok=True)
    if state.is_file():
        say(f"{step.name:<12} {_repeat_reason(state, key)}")
        state.unlink()
    journal = Journal(path, key)
    if journal.stale:
        say(f"{step.name:<12} settings or input changed since it was interrupted: restarted")
    items = [] if before is None or step.kind is None else list(read_records(before, step.kind))
    order = None if before is None else [item.id for item in items]
    done = journal.settled
    for model in step.models:
        model.count_anew()
    try:
        waiting = [item for item in items if item.id not in done]
        step.work(waiting, journal.settle)
        settled = journal.settled
        for item in waiting:
            if item.id not in settled:
                journal.settle(item.id, dropped("no result"))
        counts = _write(place, journal, order)
    finally:
        journal.close()
    report = StepReport(
        step.name,
        *counts,
        resumed=len(done),
        seconds=round(time.perf_counter() - start, 3),
        finished=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        settings=step.settings,
        ledgers={model.name: model.ledger.as_dict() for model in step.models},
        came_back=summed([{model.name: model.came_back.take() for model in step.models}]),
        key=key,
    )
    _replace(state, [json.dumps(report.as_dict(), indent=2, ensure_ascii=False, default=str)])
    if not report.failed:
        path.unlink()
    return report


def _repeat_reason(state: Path, key: str) -> str:
    try:
        old = json_value(state.read_bytes())
    except ValueError:
        return "its state cannot be read: repeating the step"
    if old.get("key") == key:
        return f"{old.get('failed', 0):,} calls had failed: retrying those items"
    return "its settings, or a step before it, changed: repeating the step"


def _write(place: Path, journal: Journal, order: list[str] | None) -> tuple[int, int, dict[str, int], int]:
    """Write the step's two files; return (items in, records out, drops by reason, drops worth retrying)."""
    taken = made = failed = 0
    reasons: Counter[str] = Counter()
    ids: set[str] = set()

    def lines() -> Iterator[str]:
        nonlocal taken, made
        for _, records, _ in journal.outcomes(order):
            taken += 1
            for record in records:
                if record["id"] in ids:
                    raise ValueError(f"step {place.name}: two records with the id '{record['id']}'")
                ids.add(record["id"])
                made += 1
                yield json.dumps(record, ensure_ascii=False)

    def drops() -> Iterator[str]:
        nonlocal failed
        for item, _, lost in journal.outcomes(order):
            for drop in lost:
                reasons[drop.reason] += 1
                failed += drop.passing
                yield json.dumps({"id": item, **to_json(replace(drop, passing=False))}, ensure_ascii=False)

    _replace(records_path(place), lines())
    _replace(place.with_name(place.name + ".dropped.jsonl"), drops())
    return taken, made, dict(reasons.most_common()), failed


def _replace(path: Path, lines: Iterator[str] | list[str]) -> None:
    with replaced(path) as part, part.open("w", encoding="utf-8", errors="surrogatepass") as handle:
        handle.writelines(f"{line}\n" for line in lines)


_JOURNAL_FORMAT = 1


class Journal:
    """``settled`` items of one step under one ``key``. A journal with another key is discarded (``stale`` is then set).

    Memory holds only the file position of every item. An incomplete last line, left by a killed process, is cut off.
    """

    def __init__(self, path: Path, key: str) -> None:
        self.path = path
        self.stale = False
        self._where: dict[str, int] = {}
        self._lock = threading.Lock()
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists():
            end = self._read_back(key)
            self.stale = end == 0
            with path.open("r+b") as handle:
                handle.truncate(end)
        self._handle = path.open("ab")
        if self._handle.tell() == 0:
            self._append({"format": _JOURNAL_FORMAT, "key": key})

    def _read_back(self, key: str) -> int:
        """Find the settled items; return the position after the last whole line, or 0 for another key."""
        end = 0
        with self.path.open("rb") as handle:
            for line in handle:
                try:
                    entry = json_value(line)
                except ValueError:
                    break
                if not line.endswith(b"\n"):
                    break
                if end == 0 and (entry.get("format"), entry.get("key")) != (_JOURNAL_FORMAT, key):
                    return 0
                # an item is tried again if it was dropped for a temporary cause
                if "item" in entry and not any(drop.get("passing") for drop in entry["drops"]):
                    self._where[entry["item"]] = end
                end += len(line)
        return end

    @property
    def settled(self) -> set[str]:
        """Return the ids of the items that need no more work."""
        return set(self._where)

    def settle(self, item: str, outcome: Outcome) -> None:
        """Record the outcome of an item; the last one recorded counts."""
        with self._lock:
            self._where[item] = self._append({"item": item, **to_json(outcome)})

    def _append(self, entry: dict[str, Any]) -> int:
        position = self._handle.tell()
        self._handle.write(json.dumps(entry, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n")
        self._handle.flush()
        return position

    def outcomes(self, order: list[str] | None = None) -> Iterator[tuple[str, list[dict[str, Any]], list[Drop]]]:
        """Yield item, records as JSON and drops, in the given order or that of settling; skip items not settled."""
        with self.path.open("rb") as handle:
            for item in self._where if order is None else order:
                position = self._where.get(item)
                if position is None:
                    continue
                handle.seek(position)
                entry = json.loads(handle.readline())
                yield item, entry["made"], [Drop(**drop) for drop in entry["drops"]]

    def close(self) -> None:
        """Close the file."""
        self._handle.close()


def yield_table(reports: Sequence[StepReport]) -> str:
    """Return Markdown: items in, items out, drops and their reasons, step by step."""
    rows = []
    for report in reports:
        reasons = ", ".join(f"{reason} {count:,}" for reason, count in report.dropped.items())
        dropped = sum(report.dropped.values())
        rows.append((report.name, f"{report.taken:,}", f"{report.made:,}", f"{dropped:,}", reasons))
    return pipe_table(("step", "in", "out", "dropped", "reasons"), rows, "lrrrl")


def call_table(reports: Sequence[StepReport]) -> str:
    """Return Markdown: the calls to each model, by step; empty if no model was called."""
    counts = ("calls", "cached", "tokens_in", "tokens_out")
    rows = []
    for report in reports:
        for model, spent in report.ledgers.items():
            if spent.get("calls") or spent.get("cached"):
                rows.append((report.name, model, *(f"{spent[key]:,}" for key in counts)))
    head = ("step", "model", "calls", "from cache", "tokens in", "tokens out")
    return pipe_table(head, rows, "llrrrr") if rows else ""


def write_datasheet(
    folder: Path,
    title: str,
    facts: Mapping[str, Any],
    reports: Sequence[StepReport],
    *,
    sections: Mapping[str, str] | None = None,
    details: Mapping[str, Any] | None = None,
) -> Path:
    """Write ``datasheet.md`` and ``datasheet.json`` into ``folder``; return the path of the Markdown file.

    Args:
        title: heading of the page.
        facts: description of the set (source, dates, models, prompt hashes, files with their SHA-256, ...), as JSON;
            each mapping becomes a table.
        reports: the pipeline's steps, in order.
        sections: further parts of the page, heading to Markdown.
        details: facts for the JSON file only.
    """
    from importlib.metadata import version

    written = datetime.now(timezone.utc).isoformat(timespec="seconds")
    made_by = {"package": f"mrag-eval {version('mrag-eval')}", "written": written}
    record = {"title": title, **made_by, **facts, **(details or {}), "steps": [report.as_dict() for report in reports]}
    if sections:
        record["sections"] = dict(sections)
    parts = [f"# {title}", f"Written {written} by {made_by['package']}."]
    parts += [_fact(key, value) for key, value in facts.items()]
    parts += ["## Yield", yield_table(reports)]
    calls = call_table(reports)
    if calls:
        parts += ["## Calls", "Of the runs that finished each step; answers from the cache cost nothing.", calls]
    parts += [text for heading, body in (sections or {}).items() for text in (f"## {heading}", body)]
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / "datasheet.json", json.dumps(record, indent=2, ensure_ascii=False, default=str) + "\n")
    return write_whole(folder / "datasheet.md", "\n\n".join(parts) + "\n")


def _fact(key: str, value: Any) -> str:
    heading = key.replace("_", " ")
    if isinstance(value, Mapping):
        table = pipe_table(("", ""), [(_cell(name), _cell(content)) for name, content in value.items()])
        return f"## {heading[0].upper()}{heading[1:]}\n\n{table}"
    return f"**{heading[0].upper()}{heading[1:]}**: {_cell(value)}"


def _cell(value: Any) -> str:
    if isinstance(value, Mapping):
        text = ", ".join(f"{key} {_cell(content)}" for key, content in value.items())
    elif isinstance(value, list | tuple):
        text = ", ".join(_cell(content) for content in value)
    elif isinstance(value, float):
        text = f"{value:.4g}"
    else:
        text = f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
    return " ".join(text.split())
