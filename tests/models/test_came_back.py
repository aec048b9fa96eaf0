"""What came back from each seat, in the record of a run: counted from the server's replies, and after a resumption."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from mrag_eval import harness
from mrag_eval.cli import Session, app
from mrag_eval.config import ModelSpec
from mrag_eval.core import Failure, Retrieved
from mrag_eval.judging import Panel
from mrag_eval.models import AuxModel
from mrag_eval.report import annotate_files, shown_reports, verify
from mrag_eval.report.labels._rewrites import label_rewrites
from mrag_eval.retrieval import RunFolder, TaskRows, open_folder, retrieve_into
from tests.retrieval.agents.scripted import GOOD, enough, plan
from tests.task.test_hook import build, knows_everything, run, run_ranks
from tests.worlds.judges import verdict
from tests.worlds.model_server import Answer, ModelServer, said
from tests.worlds.small import BASE, ScriptedLM, write_task, write_world

# Words of the prompts of each seat, and what it replies.
SEATS = {
    "sufficiency": ("enough_documents", enough(True)),
    "critic": ("clarity_specificity", GOOD),
    "planner": ("language_names", plan("en", "de")),
    "j": ("<generated_answer>", verdict("correct")),
    "translator": ("<source_text>", "<translation>When was the tower of Varn built?</translation>"),
    "reranker": ("You order passages", "[2, 1]"),
}
IN_PROMPT, OUT = 11, 7


def seat_of(body: Mapping[str, Any]) -> str:
    """Return the seat that sent a request; all but the evaluated model's are of the model ``aux``."""
    text = "\n".join(str(turn["content"]) for turn in body["messages"])
    return next((seat for seat, (mark, _) in SEATS.items() if mark in text), "?") if body["model"] == "aux" else "run"


def answer(body: dict[str, Any], attempt: int) -> Answer:
    seat = seat_of(body)
    text = SEATS[seat][1] if seat in SEATS else "1841"
    return Answer(body={**said(text).body, "model": f"served-{seat}"}, delay=0.05)


@pytest.fixture
def server(start: Callable[..., ModelServer]) -> ModelServer:
    return start(answer)


@pytest.fixture
def world(tmp_path: Path, server: ModelServer) -> Path:
    """A folder with a task in agents' rounds, and one whose questions are translated and whose lists are reranked."""
    tasks = tmp_path / "tasks"
    tasks.mkdir()
    write_world(tasks)
    data = {"benchmark": "jsonl", "path": str(tasks / "questions.jsonl"), "corpus": str(tasks / "corpus.jsonl")}
    looped = {"mode": "coral", "k": 2, "kind": "bm25"}
    metrics = {**BASE, "metrics": ["match", "judged_accuracy"]}
    write_task(tasks, "looped", **metrics, data=data, agent={"k": 2, "max_rounds": 2}, retrieval=looped)
    asked = {"translator": {"backend": "lm", "model": "aux"}, "rerank": {"kind": "listwise", "model": "aux"}}
    ranked = {"mode": "all", "k": 2, "kind": "bm25", "query_translation": "en", **asked}
    write_task(tasks, "ranked", **BASE, data=data, retrieval=ranked)
    args = {"model": "aux", "base_url": server.url}
    aux = {"model": "local-chat-completions", "model_args": args, "max_in_flight": 1}
    judges = {"models": {"aux": aux, "j": aux}, "planner": "aux", "critic": "aux", "judges": ["j"]}
    (tmp_path / "mrag.yaml").write_text(json.dumps(judges), "utf-8")
    return tmp_path


def started(world: Path, server: ModelServer, out: str, cache: str, *more: str) -> subprocess.Popen[str]:
    model = f"model=m,base_url={server.url},num_concurrent=1"
    words = ["run", "--model", "local-chat-completions", "--model_args", model, "--tasks", "looped,ranked",
             "--include_path", str(world / "tasks"), "--apply_chat_template", "--log_samples", "--limit", "4",
             "--output_path", str(world / out), *more]  # fmt: skip
    places = {"MRAG_CACHE": str(world / cache), "MRAG_CONFIG": str(world / "mrag.yaml"), "OPENAI_API_KEY": "planted"}
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **places}
    program = [sys.executable, "-m", "mrag_eval.cli", *words]
    return subprocess.Popen(program, env=env, text=True, stderr=subprocess.PIPE, start_new_session=True)


def finished(world: Path, *args: Any) -> dict[str, Any]:
    """Return the seats of each task in the results of a run."""
    run = started(world, *args)
    _, errors = run.communicate()
    assert run.returncode == 0, errors
    (file,) = sorted((world / args[1]).rglob("results_*.json"))
    configs = json.loads(file.read_text("utf-8"))["configs"]
    return {task: config["measurement"]["outcome"]["seats"] for task, config in configs.items()}


def summed(seats: Mapping[str, Any]) -> Counter[str]:
    return Counter({seat: found["answered_by"][f"served-{seat}"] for task in seats.values()
                    for seat, found in task.items()})  # fmt: skip


@pytest.mark.slow
def test_a_run_records_what_came_back_and_a_resumed_one_the_same(world: Path, server: ModelServer) -> None:
    """Rows are retrieved in a process of their own, which is killed with the run; a third run has every reply."""
    whole = finished(world, server, "whole", "cache")
    sent = Counter(seat_of(body) for *_, body in server.requests)
    assert {task: {*seats} for task, seats in whole.items()} == {
        "looped": {"planner", "critic", "sufficiency", "j"},
        "ranked": {"translator", "reranker"},
    }
    # equal prompts are sent once, and each of their replies is counted
    replies = summed(whole)
    assert replies.keys() == {*SEATS}
    assert all(replies[seat] >= sent[seat] for seat in SEATS)
    for seat, found in {**whole["looped"], **whole["ranked"]}.items():
        assert found["answered_by"] == {f"served-{seat}": replies[seat]}
        assert found["ends"] == {"stop": replies[seat]}
        assert (found["tokens_in"], found["tokens_out"]) == (IN_PROMPT * replies[seat], OUT * replies[seat])
    # what came back from the seats is each task's own
    (file,) = verify([world / "whole"], world / "tasks")
    assert {found.text for found in file.findings} == {"4 of 15 rows (--limit 4)"}
    since = len(server.requests)
    assert finished(world, server, "again", "cache") == whole
    assert {seat_of(body) for *_, body in server.requests[since:]} == {"run"}
    assert finished(world, server, "live", "cache", "--no-retrieve-first") == whole

    since = len(server.requests)
    cut = started(world, server, "part", "other")
    while len(server.requests) < since + since // 4:
        assert cut.poll() is None
        time.sleep(0.02)
    os.killpg(cut.pid, signal.SIGKILL)
    cut.communicate()
    time.sleep(1)
    assert not [*(world / "part").rglob("results_*.json")]
    assert finished(world, server, "part", "other") == whole


def test_ranks_are_summed(world: Path, server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MRAG_CONFIG", str(world / "mrag.yaml"))
    tasks = ["looped", "ranked"]

    def seats(results: Any) -> dict[str, Any]:
        return {task: results["configs"][task]["measurement"]["outcome"]["seats"] for task in tasks}

    monkeypatch.setenv("MRAG_CACHE", str(world / "alone"))
    alone = seats(run(world / "tasks", tasks, limit=4))
    assert summed(alone).keys() == {*SEATS}
    monkeypatch.setenv("MRAG_CACHE", str(world / "ranks"))
    assert seats(run_ranks(world / "tasks", knows_everything, name=tasks, limit=4)[0]) == alone


def test_a_row_that_failed_and_is_retrieved_again_is_counted_once(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What came back for it the first time is kept, and was counted then; what is sent since counts as well."""
    monkeypatch.setenv("MRAG_CONFIG", str(world / "mrag.yaml"))
    real, failing = TaskRows.retrieved, ["once"]

    def retrieved(self: TaskRows, docs: Sequence[Any]) -> list[Retrieved]:
        rows = real(self, docs)
        failed = Failure("rerank", "aux", "timeout", "3 s")
        return [Retrieved(row.passages, failures=(failed,)) for row in rows] if failing else rows

    monkeypatch.setattr(TaskRows, "retrieved", retrieved)

    def into(folder: str, cache: str, rows: int) -> Any:
        monkeypatch.setenv("MRAG_CACHE", str(world / cache))
        task = build(world / "tasks", "ranked")
        retrieve_into(open_folder(world / folder), "ranked", task.supply, task.rows_to_run()[:rows])
        entry = RunFolder(world / folder).tasks["ranked"]
        return {**entry.came_back, "texts": (entry.translation or {})["counts"]}

    first = into("again", "one", 2)
    failing.clear()
    assert into("again", "one", 2) == first
    assert into("again", "one", 4) == into("whole", "two", 4)
    assert {*first} == {"translator", "reranker", "texts"}


def test_errands_after_a_run_count_what_came_back(
    world: Path, server: ModelServer, start: Callable[..., ModelServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Judging passages joins its counts with the run's; labels of documents and of rewritings have their own."""
    monkeypatch.setenv("MRAG_CONFIG", str(world / "mrag.yaml"))
    manager = harness.task_manager([str(world / "tasks")], {"pretrained": "org/small"})
    settings = {"tasks": ["ranked"], "bootstrap_iters": 100, "log_samples": True, "limit": 2}
    harness.evaluate({"model": ScriptedLM(knows_everything), **settings}, manager, str(world / "out"))
    (results,) = (world / "out").rglob("results_*.json")
    (samples,) = (world / "out").rglob("samples_ranked_*")
    before = json.loads(results.read_text("utf-8"))["configs"]["ranked"]["measurement"]["outcome"]["seats"]
    assert {*before} == {"translator", "reranker"}

    def came_back(replies: int) -> dict[str, Any]:
        tokens = {"tokens_in": IN_PROMPT * replies, "tokens_out": OUT * replies}
        return {"answered_by": {"labeller": replies}, "ends": {"stop": replies}, **tokens}

    def labeller(text: str) -> AuxModel:
        replying = start(lambda body, attempt: Answer(body={**said(text).body, "model": "labeller"}))
        args = {"model": "l", "base_url": replying.url}
        return AuxModel(ModelSpec(model="local-chat-completions", model_args=args), name="l")

    panel = Panel({"l": labeller(json.dumps({"justification": "so", "sufficient": "yes"}))})
    monkeypatch.setattr("mrag_eval.report.labels._rejudge.build_panel", lambda block: panel)
    shown = CliRunner().invoke(app, ["judge", "passages", str(samples), "--json"], obj=Session())
    assert shown.exit_code == 0, shown.output
    assert json.loads(shown.output)["seats"] == {**before, "l": came_back(2)}
    shown = CliRunner().invoke(app, ["judge", "passages", str(samples)], obj=Session())
    (line,) = [line for line in shown.output.splitlines() if line.startswith("came back  ")]
    assert "translator (served-translator): " in line
    assert "l (labeller): 2 stop, 22 tokens in, 14 out" in line
    labelled = annotate_files([samples], labeller("No"), world / "labelled")
    assert labelled[0]["seats"] == {"annotate relevance": came_back(labelled[0]["pairs"])}
    assert "came back  annotate relevance (labeller): " in shown_reports(labelled)
    pairs = [("a", "b"), ("a", "c")]
    assert label_rewrites(pairs, labeller('{"type": "narrow", "why": "so"}')).seats == {"label rewrites": came_back(2)}
