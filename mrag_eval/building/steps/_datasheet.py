"""Yield table of a pipeline, and the datasheet of its result, as Markdown and JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from mrag_eval.building.steps._steps import StepReport
from mrag_eval.core import pipe_table
from mrag_eval.platform import write_whole


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
