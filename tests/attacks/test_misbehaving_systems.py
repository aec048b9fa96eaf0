"""Functions of users that block, never end, refer to themselves or raise: their row fails, and nothing else does."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mrag_eval.config import ModelSpec, system_spec
from mrag_eval.harness import read_task_file
from mrag_eval.models import AuxModel, RagSystem
from mrag_eval.platform import ConfigError
from tests.worlds.model_server import ModelServer, echo

QUESTIONS = [(f"question {number}", "en") for number in range(6)]
BLOCKED = threading.Event()


@pytest.fixture(autouse=True)
def ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Keep replies of this test alone, and release what still blocks after it."""
    monkeypatch.setenv("MRAG_CACHE", str(tmp_path / "cache"))
    BLOCKED.clear()
    yield
    BLOCKED.set()


def system_of(system: Any, **arguments: Any) -> RagSystem:
    return RagSystem(system_spec({"model": "s", "max_retries": 3, "timeout": 3, **arguments}), system)


async def _blocks(question: str) -> str:
    if question.endswith("2"):
        BLOCKED.wait(30)
    return "yes"


async def _sleeps(question: str) -> str:
    await asyncio.sleep(30 if question.endswith("2") else 0)
    return "yes"


def _blocks_plainly(question: str) -> str:
    if question.endswith("2"):
        BLOCKED.wait(30)
    return "yes"


@pytest.mark.parametrize("system", [_blocks, _sleeps, _blocks_plainly])
@pytest.mark.parametrize("at_once", [1, 3])
def test_what_blocks_has_a_deadline_and_stops_no_endpoint(system: Any, at_once: int) -> None:
    server = ModelServer(echo)
    judge = AuxModel(
        ModelSpec(model="local-chat-completions", model_args={"model": "m", "base_url": server.url}), name="j"
    )
    found: list[Any] = []
    made = system_of(system, num_concurrent=at_once, max_retries=0)
    running = threading.Thread(target=lambda: found.extend(made.ask(QUESTIONS)), daemon=True)
    running.start()
    time.sleep(0.5)
    start = time.monotonic()
    (reply,) = judge.seat().generate([[{"role": "user", "content": "q"}]])
    assert reply.text == "re: q"
    assert time.monotonic() - start < 5
    running.join(20)
    assert not running.is_alive()
    failed = [one.reason for one in found]
    assert failed[2] == "timeout"
    assert [reason for reason in failed if reason is not None and reason != "timeout"] == []
    assert failed.count(None) >= (5 if at_once == 1 else 3)
    server.close()


def _itself(question: str) -> Any:
    reply: dict[str, Any] = {"answer": "yes"}
    reply["more"] = [reply]
    return reply


def _contexts_of_itself(question: str) -> Any:
    contexts: list[Any] = []
    contexts.append(contexts)
    return "yes", contexts


def _deep(question: str) -> Any:
    inner: Any = "yes"
    for _ in range(5000):
        inner = {"a": inner}
    return {"answer": "yes", "more": inner}


@pytest.mark.parametrize("reply", [_itself, _contexts_of_itself, _deep])
def test_a_reply_within_itself_is_a_fault_of_its_row(reply: Callable[[str], Any]) -> None:
    made = system_of(lambda question: reply(question) if question.endswith("1") else "yes")
    found = made.ask(QUESTIONS)
    assert [one.reason for one in found] == [None, "shape", None, None, None, None]
    assert "levels" in str(found[1].error)


@pytest.mark.parametrize(
    "reply", ["x" * (17 << 20), ("yes", ["x" * (9 << 20)] * 2), {"answer": "x" * (17 << 20), "contexts": []}]
)
def test_a_reply_is_as_long_as_a_service_may_send(reply: Any) -> None:
    made = system_of(lambda question: reply if question.endswith("1") else "yes")
    found = made.ask(QUESTIONS)
    assert [one.reason for one in found] == [None, "shape", None, None, None, None]
    assert "characters, more than" in str(found[1].error)
    assert len(str(found[1].error)) < 300


ERRORS = [TypeError("no"), NameError("no"), AttributeError("no"), ImportError("no"), KeyError("no"), RecursionError()]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("later", [False, True])
def test_an_error_of_the_code_is_not_tried_again(error: Exception, later: bool) -> None:
    asked: list[str] = []

    def system(question: str) -> str:
        asked.append(question)
        raise error

    async def waits(question: str) -> str:
        return system(question)

    found = system_of(waits if later else system).ask(QUESTIONS)
    assert {one.reason for one in found} == {"raised"}
    assert len(asked) == len(QUESTIONS)


@pytest.mark.parametrize("at_once", [1, 4])
def test_what_the_first_question_raised_is_not_tried_again(at_once: int) -> None:
    asked: list[str] = []

    def system(question: str) -> str:
        asked.append(question)
        raise OSError("no index")

    found = system_of(system, num_concurrent=at_once).ask([(f"q{number}", "en") for number in range(48)])
    assert {one.reason for one in found} == {"raised"}
    # the first is tried once more
    assert len(asked) == 49
    assert asked[0] == "q0"


def test_one_question_is_asked_first() -> None:
    under_way: list[str] = []

    def system(question: str) -> str:
        under_way.append(question)
        if question.endswith("0"):
            time.sleep(0.2)
            assert under_way == [question]
        return "yes"

    found = system_of(system, num_concurrent=4).ask(QUESTIONS)
    assert [one.error for one in found] == [None] * 6


def test_a_system_that_changes_the_folder_moves_nothing_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "below").mkdir()

    def ask(question: str) -> str:
        os.chdir(tmp_path / "below")
        return "yes"

    replies = system_of(ask).ask(QUESTIONS)
    assert [reply.text for reply in replies] == ["yes"] * len(QUESTIONS)
    assert Path.cwd() == tmp_path


@pytest.mark.parametrize("code", ["'bye'", "3", ""])
def test_a_module_that_ends_the_process_is_one_line(tmp_path: Path, code: str) -> None:
    (tmp_path / "ends.py").write_text(f"raise SystemExit({code})\n", "utf-8")
    with pytest.raises(ConfigError, match=r"ends\.py cannot be imported \(SystemExit") as refused:
        RagSystem(system_spec({"system": f"{tmp_path / 'ends.py'}:ask"}))
    assert "\n" not in refused.value.message
    task = tmp_path / "task.yaml"
    task.write_text("task: t\nmetrics: [!function ends.score]\n", "utf-8")
    with pytest.raises(ImportError, match="ends the process"):
        read_task_file(task, with_functions=True)


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_command_whose_output_is_closed_says_so(stream: str, tmp_path: Path) -> None:
    closed = {"stdout": ">&-", "stderr": "2>&-"}[stream]
    command = f"{sys.executable} -m mrag_eval.cli tasks {closed}"
    done = subprocess.run(["sh", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == (2 if stream == "stdout" else 0)
    if stream == "stdout":
        assert done.stderr.splitlines()[0] == "mrag-eval: the output is closed"


def test_a_folder_that_is_not_there_any_more_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    run = f"{sys.executable} -m mrag_eval.cli run --model rag --model_args url=http://127.0.0.1:9 --tasks t.yaml -o out"
    command = f"rmdir ../gone; {run}"
    done = subprocess.run(["sh", "-c", command], cwd=tmp_path / "gone", capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 2, done.stderr
