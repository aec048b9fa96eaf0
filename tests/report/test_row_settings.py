"""The settings that the rows of the papers' tables state, against those of the committed tasks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from lm_eval.tasks._yaml_loader import load_yaml

from mrag_eval.config import split_config
from mrag_eval.report import TaskConfig
from mrag_eval.report.tables._layout_schema import layout_names, load_layout
from mrag_eval.report.tables._row_runs import slots
from mrag_eval.report.tables._row_settings import fit
from mrag_eval.scoring import METRIC_NAMES

TASKS = {path.stem: path for path in (Path(__file__).resolve().parents[2] / "tasks").rglob("*.yaml")}
# Settings that belong to the user's index, model or benchmark, and prompts that the mRAG paper compares.
CHOSEN = {"retriever", "kind", "english_share", "revision", "scored_by", "prompt.system"}


def resolved(task: str) -> TaskConfig:
    """Return the configuration of a committed task as a run records it; what is searched remains open."""
    config = load_yaml(TASKS[task], resolve_func=False)
    config["metadata"] = {**config.get("metadata", {}), "config_source": str(TASKS[task])}
    rest, blocks = split_config(config, METRIC_NAMES)
    parts = {"retrieval": blocks.retrieval, "prompt": blocks.prompt, "judge": blocks.judge}
    made: dict[str, Any] = {name: block.model_dump(mode="json") for name, block in parts.items()}
    made |= {"data": blocks.data, "generation_kwargs": rest.get("generation_kwargs") or {}}
    if blocks.retrieval.mode == "coral":
        made["agent"] = blocks.agent.model_dump(mode="json")
    return TaskConfig(made)


@pytest.mark.parametrize("name", layout_names())
def test_a_committed_task_has_the_settings_of_its_rows(name: str) -> None:
    layout = load_layout(name)
    configs: dict[str, TaskConfig] = {}
    differ, checked = [], set()
    for table in layout.tables:
        for slot in slots(table, layout):
            if slot.task not in configs:
                configs[slot.task] = resolved(slot.task)
            stated = {key: value for key, value in slot.stated.items() if key not in CHOSEN}
            found = fit(configs[slot.task], stated)
            differ += [f"{table.id}, {slot.row}, {slot.task}: {text}" for text in found.differs]
            checked |= stated.keys() - set(found.unrecorded)
    # the tasks rerank SPLADE's hits like the rest, the paper with MiniLM (docs/mrag.md)
    rest = [text for text in differ if "mkqa_sparse_trag_" not in text]
    # Figure 6 of BordIRlines filters the documents of one task by a setting
    assert [text for text in rest if not (text.startswith("Figure 6, ") and ": data.documents=all, not " in text)] == []
    assert {"retrieval.mode", "rows"} <= checked


@pytest.mark.parametrize(
    ("config", "stated", "differs"),
    [
        ({"retrieval": {"mode": "no_ir", "k": 1}}, {"retrieval.k": 5, "retriever": "x"}, ()),
        ({"retrieval": {"mode": "all", "k": 1}}, {"retrieval.k": 5}, ("retrieval.k=1, not 5",)),
        (
            {
                "retrieval": {"mode": "all", "corpus": "wiki"},
                "index": {
                    "embedder": "BAAI/bge-m3",
                    "imported": [{"check": "imported, not verified (9 of 100 agree)"}],
                },
            },
            {"retriever": "BAAI/bge-m3"},
            ("retriever=BAAI/bge-m3 (imported, not verified), not BAAI/bge-m3",),
        ),
        (
            {
                "retrieval": {"mode": "all", "corpus": "wiki"},
                "index": {"embedder": "BAAI/bge-m3", "imported": [{"check": "verified 100 of 100 (text alone)"}]},
            },
            {"retriever": "BAAI/bge-m3"},
            (),
        ),
        ({"retrieval": {"mode": "all", "k": 1}}, {"retrieval.k": None}, ()),
        ({"retrieval": {"mode": "all", "rerank": {"model": "/models/bge"}}}, {"reranker": "BAAI/BGE"}, ()),
        ({"retrieval": {"mode": "all", "rerank": None}}, {"reranker": "a/b"}, ("reranker=none, not a/b",)),
        ({"retrieval": {"mode": "all", "pool": ["en", "ko"]}}, {"pool": ["ko", "en"]}, ()),
        ({"retrieval": {"mode": "all", "pool": None}}, {"pool": ["ko"]}, ("pool=every language, not ko",)),
        ({"retrieval": {"mode": "qlang", "pool": None}}, {"pool": ["ko"]}, ()),
        ({"data": {"split": "b"}}, {"data.split": {"any": ["a", "b"]}}, ()),
        ({"data": {"split": "c"}}, {"data.split": {"any": ["a", "b"]}}, ("data.split=c, not a or b",)),
        ({"data": {"country": "UK"}}, {"data.country": "none"}, ("data.country=UK, not none",)),
        ({"data": {}}, {"data.country": "none"}, ()),
    ],
)
def test_settings_compared(config: dict[str, Any], stated: dict[str, Any], differs: tuple[str, ...]) -> None:
    assert fit(TaskConfig(config), stated).differs == differs


def test_a_setting_that_is_not_recorded_neither_fits_nor_differs() -> None:
    found = fit(TaskConfig({"retrieval": {"mode": "all"}}), {"retrieval.k": 5, "data.sample": "none"})
    assert (found.differs, found.unrecorded) == ((), ("retrieval.k",))
