"""Loads during a small run: counted, since seconds depend on the machine (benchmarks/cold_start.py measures them)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.worlds.small import BASE, write_task, write_world

# Our dependencies that are slow to import; the harness itself loads torch and transformers.
HEAVY = {
    "datasets", "faiss", "lingua", "llama_index", "matplotlib", "nltk", "pandas", "pyarrow", "pymilvus", "pytrec_eval",
    "ray", "rich", "scipy.optimize", "scipy.stats", "sentence_transformers", "sklearn", "tiktoken", "typer",
}  # fmt: skip

# Our own modules and folders for what a plain task does not have: judges, choices, citations, an evaluated API or
# system, a classifier, a translator, a plan, agents, a retriever of the user's, a second stage.
OF_OTHER_TASKS = (
    *("judging._panel", "judging._rubrics", "metrics._choices", "metrics._citation_support", "models._api"),
    *("models._systems", "models.grounding", "models.translate", "planning._plan", "report", "retrieval.agents"),
    *("retrieval._own_index", "retrieval.rerank._rerank"),
)

SCRIPT = """
import json, sys
import lm_eval, lm_eval.tasks, lm_eval.evaluator
from lm_eval.tasks import TaskManager

read = []
def opened(event, given):
    if event == "open" and str(given[0]).endswith(".yaml"):
        read.append(str(given[0]))
sys.addaudithook(opened)
manager = TaskManager(include_path=sys.argv[1], include_defaults=False)
before = set(sys.modules)
read.clear()
import mrag_eval.task._hook
tasks = manager.load([sys.argv[2]])["tasks"]
built = set(sys.modules) - before
files = list(read)
# what the harness itself loads for any task is no concern of ours
import torch, transformers
before = set(sys.modules)
lm_eval.simple_evaluate(model="dummy", tasks=list(tasks.values()), task_manager=manager, bootstrap_iters=0)
print(json.dumps({"built": sorted(built), "ran": sorted(set(sys.modules) - before), "files": files}))
"""


def loaded(folder: Path, task: str, tmp_path: Path) -> dict[str, list[str]]:
    env = {**os.environ, "MRAG_CACHE": str(tmp_path / "cache"), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(folder), task], capture_output=True, text=True, env=env, check=False
    )
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout.splitlines()[-1]))


@pytest.fixture
def world(tmp_path: Path) -> Path:
    folder = tmp_path / "tasks"
    folder.mkdir()
    write_world(folder)
    data = {"benchmark": "jsonl", "path": str(folder / "questions.jsonl"), "corpus": str(folder / "corpus.jsonl")}
    plain: dict[str, Any] = {**BASE, "metrics": ["char3gram_recall", "correct_language"]}
    write_task(folder, "bare", **plain, data=data)
    write_task(folder, "lexical", **BASE, data=data, retrieval={"mode": "all", "k": 2, "kind": "bm25"})
    (folder / "above.yaml").write_text("retrieval: {mode: all, k: 2, kind: bm25}\n", encoding="utf-8")
    write_task(folder, "leaf", **plain, data=data, include="above.yaml")
    for number in range(30):
        write_task(folder, f"other{number}", **plain, data=data)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("task", ["bare", "lexical"])
def test_a_run_loads_only_what_its_task_needs(world: Path, tmp_path: Path, task: str) -> None:
    found = loaded(world, task, tmp_path)
    assert HEAVY & {*found["built"]} == set()
    assert HEAVY & {*found["ran"]} == set()
    # an index of one kind does not need another kind's engine, and no task needs a planner's transport
    assert ("bm25s" in found["ran"]) == (task == "lexical")
    assert "httpx" not in {*found["built"], *found["ran"]}
    ours = [name.removeprefix("mrag_eval.") for name in (*found["built"], *found["ran"])]
    assert len(ours) > 100
    assert [name for name in ours if f"{name}.".startswith(tuple(f"{part}." for part in OF_OTHER_TASKS))] == []


@pytest.mark.slow
def test_of_many_task_files_only_the_tasks_own_are_read(world: Path, tmp_path: Path) -> None:
    read = {Path(file) for file in loaded(world, "leaf", tmp_path)["files"]}
    assert {file.name for file in read if file.is_relative_to(world)} == {"leaf.yaml", "above.yaml"}
    # of the languages, that of its rows
    assert {file.name for file in read if not file.is_relative_to(world)} == {"en.yaml"}


def test_a_log_scored_by_its_words_loads_no_judges_and_no_page(tmp_path: Path) -> None:
    script = (
        "import sys, mrag_eval\n"
        "row = {'user_input': 'Who?', 'response': 'He did it.', 'reference': 'He', 'retrieved_contexts': ['He did.']}\n"
        "mrag_eval.score([row], ['match'], output=sys.argv[1])\n"
        "print(*sys.modules)"
    )
    env = {**os.environ, "MRAG_CACHE": str(tmp_path), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, env=env, check=True, cwd=tmp_path
    )
    ours = [name.removeprefix("mrag_eval.") for name in done.stdout.split() if name.startswith("mrag_eval.")]
    others = tuple(f"{part}." for part in OF_OTHER_TASKS if part != "report")
    assert "scoring._metrics" in ours
    assert [name for name in ours if f"{name}.".startswith((*others, "report.page."))] == []
