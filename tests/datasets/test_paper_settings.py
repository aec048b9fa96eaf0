"""Differences between the tasks' settings and the papers': complete in every README, and none that is not there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from mrag_eval.config import dotted, split_config
from mrag_eval.datasets import LOADERS, validate_data
from mrag_eval.harness import read_task_file
from mrag_eval.platform import tasks_folder
from mrag_eval.scoring import METRIC_NAMES

PAPERS: dict[str, list[dict[str, Any]]] = yaml.safe_load(
    Path(__file__).with_name("paper_settings.yaml").read_text("utf-8")
)
# Folders without a paper whose runs have settings of ours.
WITHOUT = {"demo", "blend_saq", "afriqa"}
UNSTATED = "not stated"


def settings_of(task: str) -> dict[str, Any]:
    """Return every setting of a task under its dotted key, defaults included."""
    (path,) = tasks_folder().rglob(f"{task}.yaml")
    config = read_task_file(path)
    # the harness notes the file there, from which the blocks of included files are merged
    config["metadata"] = {**(config.get("metadata") or {}), "config_source": str(path)}
    rest, blocks = split_config(config, METRIC_NAMES)
    parts = {name: getattr(blocks, name).model_dump(mode="json") for name in ("retrieval", "agent", "prompt", "judge")}
    data = validate_data(blocks.data).model_dump(mode="json")
    return dotted({**parts, "data": data, "generation_kwargs": rest["generation_kwargs"]})


def differing(folder: str) -> dict[str, str]:
    """Return key -> the paper's value, for every setting that the paper leaves open or has otherwise."""
    found = {}
    for entry in PAPERS[folder]:
        ours = settings_of(entry["task"]).get(entry["key"])
        if entry["paper"] is None:
            found[entry["key"]] = UNSTATED
        elif ours != entry["paper"] and not (entry["paper"] == "none" and ours is None):
            found[entry["key"]] = str(entry["paper"])
    return found


def told(folder: str) -> dict[str, str]:
    """Return key -> the paper's value, from the table in the README's section on differences."""
    readme = (tasks_folder() / folder / "README.md").read_text("utf-8")
    section = re.search(r"^### Differences from [^\n]*\n(.*?)(?=^### |\Z)", readme, re.MULTILINE | re.DOTALL)
    assert section is not None, f"{folder}: the README has no section on differences"
    return dict(re.findall(r"^\| `([\w.]+)` \| ([^|]*?) \|", section[1], re.MULTILINE))


def test_every_benchmark_of_a_paper_is_compared() -> None:
    folders = {loader.declaration.tasks for loader in LOADERS.values() if loader.declaration.tasks}
    assert {*PAPERS} == folders - WITHOUT


@pytest.mark.parametrize("folder", PAPERS)
def test_the_readme_lists_the_settings_that_differ_from_the_paper_and_no_other(folder: str) -> None:
    assert told(folder) == differing(folder)


def test_a_setting_that_changes_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = {"task": "xlcost_travel", "key": "retrieval.k", "paper": 7, "where": "nowhere"}
    monkeypatch.setitem(PAPERS, "xlcost", [*PAPERS["xlcost"], entry])
    assert differing("xlcost")["retrieval.k"] == "7"
    assert told("xlcost") != differing("xlcost")
