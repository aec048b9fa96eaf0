"""How long the replies of the evaluated model are kept: until nothing of the run is left to repeat."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mrag_eval import evaluate
from mrag_eval.models import answering
from mrag_eval.platform import keep_for_repetition, remove_ended, repeated_later
from mrag_eval.task import RagTask
from tests.worlds.model_server import Answer, ModelServer, asked, said
from tests.worlds.small import BASE, write_task, write_world

Start = Callable[..., ModelServer]
DOWN = {
    "server": (Answer(500, "broken"), True),
    "conflict": (Answer(409, "later"), True),
    "too early": (Answer(425, "later"), True),
    "half a body": (Answer(body="{"), True),
    "refused for its content": (Answer(400, {"error": {"code": "content_filter", "message": "no"}}), False),
    "filtered": (said("", finish="content_filter"), False),
}


@pytest.fixture(autouse=True)
def _apart(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.setenv("MRAG_CACHE", str(tmp_path / "cache"))
    keep_for_repetition()

    def quick(self: RagTask, outer: Any, tasks: Any) -> Any:
        vain = lambda request: tasks[request.task_name].in_vain(request.doc)  # noqa: E731
        return answering(outer, tasks, in_vain=vain, first_backoff=0.01)

    monkeypatch.setattr(RagTask, "answering", quick)
    yield
    keep_for_repetition()


@pytest.fixture
def world(tmp_path: Path) -> Path:
    folder = tmp_path / "tasks"
    folder.mkdir()
    write_world(folder)
    data = {"benchmark": "jsonl", "path": str(folder / "questions.jsonl")}
    write_task(folder, "plain", **{**BASE, "metrics": ["char3gram_recall"]}, data=data, retrieval={"mode": "no_ir"})
    return folder


def run(folder: Path, server: ModelServer, *, written: bool = True) -> Any:
    """Evaluate as a command does whose process ends afterwards."""
    import lm_eval
    from lm_eval.tasks import TaskManager

    results = lm_eval.simple_evaluate(
        model="local-chat-completions",
        model_args={"model": "m", "base_url": server.url, "max_retries": 0, "num_concurrent": 4},
        tasks=["plain"],
        task_manager=TaskManager(include_path=str(folder), include_defaults=False),
        bootstrap_iters=0,
        apply_chat_template=True,
    )
    if not written:
        keep_for_repetition()
    remove_ended()
    return results


def kept(tmp_path: Path) -> int:
    with sqlite3.connect(tmp_path / "cache" / "models.sqlite") as store:
        (count,) = store.execute("SELECT COUNT(*) FROM entries").fetchone()
    return int(count)


def test_a_new_checkpoint_behind_an_old_name_is_asked(world: Path, start: Start, tmp_path: Path) -> None:
    server = start(lambda body, n: said("1841"))
    before = run(world, server)["results"]["plain"]["char3gram_recall,none"]
    assert (len(server.requests), kept(tmp_path)) == (15, 0)
    server.script = lambda body, n: said("?")
    assert run(world, server)["results"]["plain"]["char3gram_recall,none"] == 0.0 < before
    assert len(server.requests) == 30


@pytest.mark.parametrize("fault", DOWN)
def test_a_run_is_repeated_as_long_as_a_repetition_may_help(
    fault: str, world: Path, start: Start, tmp_path: Path
) -> None:
    answer, again = DOWN[fault]
    server = start(lambda body, n: answer if "Olm" in asked(body) else said("1841"))
    assert run(world, server)["results"]["plain"]["unscored,none"] > 0
    assert kept(tmp_path) == (len([body for _, _, body in server.requests if "Olm" not in asked(body)]) if again else 0)
    server.script = lambda body, n: said("1841")
    asked_before = len(server.requests)
    assert run(world, server)["results"]["plain"]["unscored,none"] == 0
    without = len([body for _, _, body in server.requests[:asked_before] if "Olm" not in asked(body)])
    assert len(server.requests) - asked_before == 15 - (without if again else 0)
    assert kept(tmp_path) == 0


def test_results_that_are_not_written_leave_the_replies(world: Path, start: Start, tmp_path: Path) -> None:
    server = start(lambda body, n: said("1841"))
    run(world, server, written=False)
    assert kept(tmp_path) == 15
    run(world, server)
    assert (len(server.requests), kept(tmp_path)) == (15, 0)


def test_a_command_that_ends_with_1_removes_them_as_well(tmp_path: Path) -> None:
    """Every row of a task failed for good: the next run may be that of a new checkpoint all the same."""
    script = """
from pathlib import Path
from mrag_eval.platform import run_ended, shared_store
from mrag_eval.harness._command import exit_with_1_at_the_end
exit_with_1_at_the_end()
cache = Path("models.sqlite")
shared_store(cache).put_many({"ended": 1, "other": 2})
run_ended(cache, ["ended"])
"""
    assert subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=False).returncode == 1
    with sqlite3.connect(tmp_path / "models.sqlite") as store:
        assert store.execute("SELECT key FROM entries").fetchall() == [("other",)]


def test_the_evaluated_model_as_planner_is_asked_anew_as_well(start: Start, tmp_path: Path) -> None:
    from mrag_eval.config import ModelSpec
    from mrag_eval.models import ASKED, Answering, EvaluatedModel
    from mrag_eval.models._run_model import Evaluated
    from mrag_eval.platform import shared_store

    server = start(lambda body, n: said("a plan"))
    args = {"model": "m", "base_url": server.url}
    model = EvaluatedModel("planner", Evaluated("local-chat-completions", args))
    assert isinstance(model.spec, ModelSpec)
    model.seat().generate([[{"role": "user", "content": "plan"}]])
    # the key, and that of the older format, under which the reply might have been kept
    assert (len(ASKED), kept(tmp_path)) == (2, 1)
    Answering("m", "mrag_eval").end(well=False)
    remove_ended()
    assert (len(ASKED), kept(tmp_path)) == (0, 1)
    # the same plan, asked for by the run that repeats it
    model.seat().generate([[{"role": "user", "content": "plan"}]])
    assert len(server.requests) == 1
    Answering("m", "mrag_eval").end(well=True)
    remove_ended()
    assert (len(ASKED), kept(tmp_path)) == (0, 0)
    assert shared_store(tmp_path / "cache" / "models.sqlite").get_many(["x"]) == {}


def test_a_pilot_keeps_them_for_the_run_that_follows(world: Path, start: Start, tmp_path: Path) -> None:
    server = start(lambda body, n: said("1841"))
    with repeated_later():
        run(world, server)
    assert kept(tmp_path) == 15
    run(world, server)
    assert (len(server.requests), kept(tmp_path)) == (15, 0)


def test_a_program_finds_nothing_of_its_last_run(world: Path, start: Start, tmp_path: Path) -> None:
    """A second run plans before the harness knows of it, and must not be given the plans of the first."""
    server = start(lambda body, n: said("1841"))
    task = str(world / "plain.yaml")
    args = {"model": "m", "base_url": server.url, "max_retries": 0}
    evaluate("local-chat-completions", model_args=args, tasks=[task], apply_chat_template=True, output=tmp_path / "out")
    assert (len(server.requests), kept(tmp_path)) == (15, 0)
