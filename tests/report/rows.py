"""Runs in memory that fill a row of a paper's table: the task as shipped, with what the row requires."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from mrag_eval.config import Measurement, mode_named
from mrag_eval.planning import shipped
from mrag_eval.platform import content_key
from mrag_eval.report import LeafResult, TaskConfig, layout_names, load_layout
from mrag_eval.report.tables._requirements import REQUIRED
from mrag_eval.report.tables._row_runs import Slot, slots
from mrag_eval.scoring import TaskScores
from tests.worlds.measured import PUBLISHED

ROWS = 300
SCORES: Mapping[str, Any] = {"rows": ROWS, "metrics": {}, "unscored": {}}


def every_slot() -> Iterator[tuple[str, str, Slot]]:
    """Yield the paper, the table and the slot of every place that a task fills."""
    for name in layout_names():
        layout = load_layout(name)
        for table in layout.tables:
            for slot in slots(table, layout):
                yield name, table.id, slot


def settings_of(stated: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that a row states, of several that it allows the last."""
    return {
        name: wanted["any"][-1] if isinstance(wanted, Mapping) else wanted
        for name, wanted in stated.items()
        if wanted is not None and name not in REQUIRED
    }


def filling(task: str, stated: Mapping[str, Any]) -> LeafResult:
    """Return a run of a task of the package with what a row states and requires."""
    official, run = shipped(task), shipped(task, changes=settings_of(stated))
    assert official is not None
    assert run is not None
    setting = run.measurement.setting
    mode, texts = mode_named(setting["retrieval"]["mode"]), setting["texts"]
    data: dict[str, Any] = {
        "source": {"place": {"path": "rows.jsonl"}, **PUBLISHED},
        "ran": {"rows": ROWS, "of": ROWS, "ids": content_key(["rows"])},
        "left_out": {"skipped_by_mode": 1},
    }
    if mode.searches and setting["retrieval"]["corpus"] != "published":
        data["index"] = _index(setting["retrieval"]["corpus"], stated)
        share = int(str(stated.get("english_share", "50%")).rstrip("%"))
        data["source"]["corpus"] = {"languages": {"ar": 100 - share, "en": share}, **PUBLISHED}
    instrument: dict[str, Any] = {}
    model = {
        "model": "openai-chat-completions",
        "args": {"model": "m"},
        "generation": {"temperature": 0.6, "max_tokens": 32_768},
    }
    if {"judge", "relevance"} & {*texts}:
        seats = range(stated.get("judges") or 1)
        instrument["judges"] = {f"seat-{n}": {**model, "args": {"model": f"judge-{n}"}} for n in seats}
    if mode.source == "agents":
        instrument |= {"planner": model, "critic": model}
    if {mode.query_translation, mode.document_translation} != {"none"}:
        instrument["translator"] = {"backend": "lm", "model": wanted(stated, "translator", "m")}
    record = Measurement(task, {}, setting, instrument, data, shipped=official.sha256)
    likely = {"greedy path": "hf-greedy-path", "likelihood": "hf"}
    scored = stated.get("scored_by")
    raw = {"output_type": "multiple_choice", "model_type": likely[scored]} if scored in likely else {}
    return with_record(LeafResult(task, TaskScores.from_dict(SCORES), TaskConfig(raw), record), record)


def _index(corpus: str, stated: Mapping[str, Any]) -> dict[str, Any]:
    found = {
        "kind": wanted(stated, "kind", "dense"),
        "embedder": wanted(stated, "retriever", "org/encoder"),
        "revision": "r1",
    }
    if corpus == "benchmark":
        return found
    edition = re.sub(r"^Wikipedia (\d+)$", r"wikimedia/wikipedia, \1.ko", wanted(stated, "corpus", "passages"))
    method, size = wanted(stated, "chunker", "words 100").split()
    languages = wanted(stated, "languages", "ar ko").split()
    return {
        **found,
        "content_hash": "cd" * 32,
        "chunker": {"method": method, "size": int(size)},
        "passages": dict.fromkeys(languages, 9_000_000),
        "recipe": {"sources": dict.fromkeys(languages, f"{edition}, revision r"), "versions": {"numpy": "2"}},
    }


def wanted(stated: Mapping[str, Any], name: str, default: Any) -> Any:
    """Return what a row requires, of several the first; the default where it requires nothing."""
    found = stated.get(name)
    return (found["any"][0] if isinstance(found, Mapping) else found) or default


def with_record(leaf: LeafResult, record: Measurement) -> LeafResult:
    """Return a result with a record, and the configuration that such a run writes."""
    return replace(leaf, config=replace(leaf.config, record=record), measurement=record)
