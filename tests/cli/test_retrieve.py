"""``mrag-eval retrieve``, and ``mrag-eval run``, which does the same first in its own process."""

from __future__ import annotations

import json
import logging
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from lm_eval.utils import setup_logging

from mrag_eval.cli import _harness as harness
from mrag_eval.cli import main
from mrag_eval.cli._first import First
from mrag_eval.platform import ConfigError, CorpusError, MragError
from mrag_eval.platform._disk import NoRoomError
from mrag_eval.retrieval import Order, retrieved_apart
from mrag_eval.retrieval.ahead import _process as retrieve_first
from mrag_eval.retrieval.sources._index import IndexSearch
from tests.programs import Programs
from tests.task.test_hook import build
from tests.worlds.small import BASE, write_task, write_world


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> Path:
    """Write the tasks ``small`` (BM25, all languages), ``own`` (the question's language) and ``bare`` (none)."""
    monkeypatch.setenv("MRAG_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    setup_logging()  # this detaches the harness's logger, once per process
    monkeypatch.setattr(logging.getLogger("lm_eval"), "propagate", True)
    caplog.set_level(logging.INFO, "lm_eval")
    folder = tmp_path / "tasks"
    folder.mkdir()
    write_world(folder)
    data = {"benchmark": "jsonl", "path": str(folder / "questions.jsonl"), "corpus": str(folder / "corpus.jsonl")}
    write_task(folder, "small", **BASE, data=data, retrieval={"mode": "all", "k": 2, "kind": "bm25"})
    write_task(folder, "own", **BASE, data=data, retrieval={"mode": "qlang", "k": 2, "kind": "bm25"})
    write_task(folder, "bare", **{**BASE, "metrics": ["char3gram_recall"]}, data=data)
    return folder


@pytest.fixture
def not_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make retrieval in this process an error."""

    def refuse(*_: Any) -> Any:
        raise AssertionError("retrieved in the process of the run")

    monkeypatch.setattr(IndexSearch, "retrieve", refuse)


def flags(world: Path, tasks: str, *more: str) -> list[str]:
    return ["--model", "dummy", "--tasks", tasks, "--include_path", str(world), "--seed", "0", *more]


def evaluated(output: Path) -> tuple[dict[str, Any], dict[str, list[dict[str, Any]]]]:
    """Return scores by task, and the samples with their retrieved passages."""
    (file,) = output.rglob("results_*.json")
    samples = {}
    for path in output.rglob("samples_*.jsonl"):
        rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        samples[path.name.split("_20")[0]] = [{"doc": r["doc"], "arguments": r["arguments"]} for r in rows]
    return json.loads(file.read_text("utf-8"))["results"], samples


def test_the_same_run_with_and_without(
    world: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture, request: pytest.FixtureRequest
) -> None:
    saved = ["--log_samples", "--output_path"]
    harness.run(flags(world, "small,own,bare", "--no-retrieve-first", *saved, "out/plain"))
    assert "separate process" not in caplog.text
    request.getfixturevalue("not_here")
    harness.run(flags(world, "small,own,bare", *saved, "out/first"))
    said = [r.getMessage() for r in caplog.records if "separate process" in r.getMessage()]
    assert len(said) == 1
    assert said[0].startswith("retrieving for 30 rows of 2 tasks in a separate process, before the model is loaded")
    first, plain = evaluated(tmp_path / "out" / "first"), evaluated(tmp_path / "out" / "plain")
    assert first == plain
    assert {name: len(rows) for name, rows in first[1].items()} == dict.fromkeys(first[1], 15)
    assert len(first[1]) == 3
    assert list((tmp_path / "cache" / "runs").iterdir()) == []


@pytest.mark.slow
def test_the_command_and_a_run_from_its_folder(
    world: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    not_here: None,
    monkeypatch: pytest.MonkeyPatch,
    programs: Programs,
) -> None:
    command = ["retrieve", "--tasks", "small,bare", "--include_path", str(world), "-o", "run"]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run([programs / "mrag-eval", *command, "--limit", "4"], capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "bare: mode no_ir retrieves nothing",
        "small: 4 rows",
        "run: use it   mrag-eval run --tasks small,bare ... --metadata retrieval.run_folder=run",
    ]
    monkeypatch.setattr(retrieve_first, "_run", None)  # rows that are already retrieved need no process
    given = ["--metadata", "retrieval.run_folder=run", "--output_path", "out", "--log_samples"]
    harness.run(flags(world, "small,bare", "--limit", "4", *given))
    assert len(evaluated(tmp_path / "out")[1]["samples_small"]) == 4
    for wrong, message in (
        (["--limit", "5"], "lacks 1 of the 5 rows of task small"),
        (["--metadata", "retrieval.k=1"], r"retrieval.k (1 | 2)"),
    ):
        with pytest.raises(SystemExit) as caught:
            main(["run", *flags(world, "small", "--limit", "4", *given, *wrong)])
        assert caught.value.code == 2
        assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (["--tasks", "mrag_dem"], "no task 'mrag_dem'; did you mean 'mrag_demo'?"),
        (
            ["--tasks", "small", "--limit", "2", "--samples", '{"small": [0]}'],
            "--samples cannot be combined with --limit",
        ),
        (["--tasks", "small", "--samples", "nowhere.json"], "neither JSON nor a file of it"),
        (["--tasks", "small", "--samples", "[0, 1]"], "--samples: expected lists of row numbers by task"),
        (["--tasks", "small", "--samples", '{"small": 0}'], "--samples: expected lists of row numbers by task"),
        (["--tasks", "small", "--metadata", "retrieval.run_folder=run"], "takes its rows from a run folder"),
        (["--tasks", "small", "--metadata", "retrieval.device=gpu"], "expected cpu, cuda"),
        ([], "Invalid value for --tasks: name the tasks to retrieve for"),
        (["--push", "hub:org/name", "--limit", "3"], "Invalid value for --limit: has no meaning without --tasks"),
        (["--tasks", "small", "--private"], "Invalid value for --private: has no meaning without --push"),
        (["--tasks", "small", "--push", "org/name"], "Invalid value for --push: write it as hub:ORG/NAME"),
        (["--tasks", "small", "--push", "hub:org/name@v1"], "Invalid value for --push: write it as hub:ORG/NAME"),
        (["--tasks", "small", "--push", "hub:org"], "--push: 'hub:org' is no dataset of the hub"),
        (
            ["--tasks", "small", "--push", "hub:org/name", "--licence", "my own"],
            "'my own' is not an SPDX",
        ),
        (["--tasks", "small", "-o", "hub:org/name"], "Invalid value for --output: is a folder"),
        (["--tasks", "small", "--push", "hub:org/name"], "--push: there is no token for the hub"),
    ],
)
def test_wrong_flags(
    world: Path, wrong: list[str], message: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.get_token", lambda: None)
    if any("run_folder" in flag for flag in wrong):
        with pytest.raises(SystemExit) as caught:
            main(["retrieve", "--tasks", "small", "--include_path", str(world), "-o", "run"])
        assert caught.value.code == 0
    given = ["--include_path", str(world)] if "--tasks" in wrong else []
    with pytest.raises(SystemExit) as caught:
        main(["retrieve", *given, "-o", "run", *wrong])
    assert caught.value.code == 2
    assert message in " ".join(capsys.readouterr().err.replace("│", " ").split())


@pytest.fixture
def ordered(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, list[str]]]:
    """Return the rows of every work order, which is carried out in this process."""
    orders: list[dict[str, list[str]]] = []

    def carry_out(folder: Path) -> None:
        tasks = json.loads((folder / "order.json").read_text("utf-8"))["tasks"]
        orders.append({name: asked["ids"] for name, asked in tasks.items()})
        retrieve_first._retrieve(folder, tasks)

    monkeypatch.setattr(retrieve_first, "_run", carry_out)
    return orders


def test_only_the_rows_that_run(world: Path, ordered: list[dict[str, list[str]]]) -> None:
    rows = [json.loads(line)["id"] for line in (world / "questions.jsonl").read_text("utf-8").splitlines()]
    harness.run(flags(world, "small,own", "--limit", "3"))
    harness.run(flags(world, "small", "--limit", "0.2"))
    harness.run(flags(world, "small,own", "--samples", '{"small": [7, 2], "own": [0]}'))
    assert ordered == [
        {"small": rows[:3], "own": rows[:3]},
        {"small": rows[:3]},
        {"small": [rows[7], rows[2]], "own": rows[:1]},
    ]


def test_blocks_travel_whole(world: Path, tmp_path: Path, ordered: list[dict[str, list[str]]]) -> None:
    from mrag_eval.models import write_table

    write_table([{"de": "Wann?", "en": "When?"}], tmp_path / "table.jsonl")
    metadata = {
        "retrieval": {
            "mode": "trag",
            "k": 1,
            "translator": {"backend": "table", "path": str(tmp_path / "table.jsonl")},
            "rerank": {"kind": "listwise", "model": "m", "window": 4, "step": 2},
        },
        "agent": {"preset": "fixed_all"},
        "judge": {"panel": "nobody", "language_check": "lingua"},
        "prompt": {"max_tokens": 500},
    }
    blocks = build(world, metadata=metadata).supply.blocks
    copied = retrieve_first._blocks(json.loads(json.dumps(retrieve_first._dumped(blocks))))
    for name in ("retrieval", "agent", "prompt", "judge", "data", "metrics"):
        assert getattr(copied, name) == getattr(blocks, name)


def test_nothing_is_started_where_nothing_is_retrieved(
    world: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(retrieve_first, "_run", None)
    harness.run(flags(world, "bare"))
    harness.run(flags(world, "small", "--no_retrieve_first"))
    (world.parent / "mrag.yaml").write_text("retrieve_first: false\n", encoding="utf-8")
    harness.run(flags(world, "small"))
    assert "separate process, before" not in caplog.text


def test_ranks_retrieve_for_themselves(
    world: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(retrieve_first, "_run", None)
    task = build(world)
    for rank in ("0", "1"):
        monkeypatch.setenv("WORLD_SIZE", "2")
        monkeypatch.setenv("RANK", rank)
        First().rows_of({"small": task}, None, None)
    assert caplog.text.count("one of several ranks: each retrieves for its own rows") == 1
    assert not task.supply.taken


def test_tasks_that_are_built_later_find_their_rows(
    world: Path, ordered: list[dict[str, list[str]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With flags that only the harness's own command knows, that command builds the tasks itself."""
    with First().rows_for({"small": build(world)}, 4, None):
        monkeypatch.setattr(IndexSearch, "retrieve", None)
        task = build(world)
        assert task.supply.taken
        assert len(list(task.doc_iterator(limit=4))) == 4
        assert task.supply.as_record().get("retrieved") is None
    assert not build(world).supply.taken
    assert len(ordered) == 1


def test_faults_are_raised_here_as_they_were_there(
    world: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "other.trec").write_text("q-lighthouse-en Q0 nowhere 1 1.0 x\n", encoding="utf-8")
    block = {"mode": "all", "k": 1, "kind": "precomputed", "run": str(tmp_path / "other.trec")}
    data = {"benchmark": "jsonl", "path": str(world / "questions.jsonl"), "corpus": str(world / "corpus.jsonl")}
    write_task(world, "theirs", **BASE | {"metrics": ["char3gram_recall"]}, data=data, retrieval=block)
    task = build(world, "theirs")
    with (
        pytest.raises(
            CorpusError, match=r"task theirs: .* line 1: corpus 'benchmark' holds no passage 'nowhere'"
        ) as here,
        retrieved_apart([Order("theirs", task.supply, task.rows_to_run())]),
    ):
        pytest.fail("the rows are there")
    capfd.readouterr()
    with pytest.raises(SystemExit) as caught:
        main(["run", *flags(world, "theirs")])
    assert caught.value.code == 2
    shown = capfd.readouterr().err
    assert f"mrag-eval: {here.value.message}\n    {here.value.next_step}" in shown
    assert "Traceback" not in shown
    with pytest.raises(CorpusError):
        main(["--debug", "run", *flags(world, "theirs")])
    assert "Traceback" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("script", "error", "message"),
    [
        ("kill -9 $$", MragError, r"was ended \(SIGKILL\); this machine's memory may be full"),
        ("exit 7", MragError, r"was ended \(exit code 7\)"),
        ("exit 130", KeyboardInterrupt, None),
        (
            'echo \'{"kind": "ValueError", "message": "no", "next_step": null}\'; exit 2',
            MragError,
            "failed: ValueError: no",
        ),
    ],
)
def test_a_process_that_ends_early(
    world: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    script: str,
    error: type[BaseException],
    message: str | None,
) -> None:
    program = tmp_path / "python"
    program.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    task = build(world)
    with pytest.raises(error, match=message), retrieved_apart([Order("small", task.supply, task.rows_to_run())]):
        pytest.fail("nothing was retrieved")
    assert list((tmp_path / "cache" / "runs").iterdir()) == []


def test_a_fault_keeps_its_class_or_the_nearest_known_one() -> None:
    assert retrieve_first._kind(ConfigError("no")) == "ConfigError"
    # the class of a full disk is private to its module
    assert retrieve_first._kind(NoRoomError("full", "free it")) == "CorpusError"
    assert retrieve_first._kind(KeyError("x")) == "KeyError"


def test_a_cache_that_cannot_be_written_to(world: Path, tmp_path: Path) -> None:
    task = build(world)
    (tmp_path / "cache").mkdir(exist_ok=True)
    (tmp_path / "cache" / "runs").write_text("", encoding="utf-8")
    with pytest.raises(ConfigError, match="cannot be written to"), retrieved_apart([Order("small", task.supply, [])]):
        pytest.fail("nothing was retrieved")


@pytest.mark.slow
def test_the_process_loads_only_what_it_needs() -> None:
    code = (
        "import sys, mrag_eval.retrieval.ahead._process, mrag_eval.retrieval.ahead._write; "
        "print(sorted({'torch', 'lm_eval', 'faiss', 'transformers', 'datasets', 'ray', 'pandas'} & {*sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# --------------------------------------------------------------------------------------- interruptions


@pytest.fixture
def waiting(world: Path, tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """Start a run whose retrieval waits for an endpoint that never answers; return it and the id of the waiting
    process.
    """
    server = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{server.getsockname()[1]}/rerank"
    data = {"benchmark": "jsonl", "path": str(world / "questions.jsonl"), "corpus": str(world / "corpus.jsonl")}
    rerank = {"kind": "api", "shape": "tei", "url": url}
    write_task(world, "slow", **BASE, data=data, retrieval={"mode": "all", "k": 2, "kind": "bm25", "rerank": rerank})
    run = subprocess.Popen(
        [sys.executable, "-m", "mrag_eval.cli", "run", *flags(world, "slow")],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        # a shell that runs the tests in the background makes them and their children ignore Ctrl-C
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    server.settimeout(120)
    try:
        connection, _ = server.accept()
        (child,) = _children(run.pid)
        yield run, child
        connection.close()
    finally:
        server.close()
        if run.poll() is None:
            run.kill()
        run.communicate()


def _children(process: int) -> list[int]:
    text = Path(f"/proc/{process}/task/{process}/children").read_text()
    return [int(pid) for pid in text.split() if "ahead._process" in Path(f"/proc/{pid}/cmdline").read_text()]


def _gone(process: int, seconds: float = 20) -> bool:
    for _ in range(int(seconds * 10)):
        state = Path(f"/proc/{process}/stat")
        if not state.exists() or state.read_text().rpartition(")")[2].split()[0] == "Z":
            return True
        time.sleep(0.1)
    return False


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks at processes in /proc")
@pytest.mark.parametrize("to", ["both", "the run"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_ends_both(
    waiting: tuple[subprocess.Popen[str], int], tmp_path: Path, number: int, to: str
) -> None:
    run, child = waiting
    sent = time.monotonic()
    if to == "both":  # as a terminal does
        os.killpg(run.pid, number)
    else:
        run.send_signal(number)
    shown, _ = run.communicate(timeout=60)
    # a second of ours, and what a busy machine adds
    assert time.monotonic() - sent < 10
    assert run.returncode == 128 + number
    assert "Traceback" not in shown
    assert "mrag-eval: interrupted\n    run the same command again" in shown
    assert _gone(child)
    with retrieve_first._folder_in(tmp_path / "cache" / "runs") as folder:
        assert list((tmp_path / "cache" / "runs").glob("first-*")) == [folder]


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks at processes in /proc")
def test_the_process_does_not_outlive_the_run(waiting: tuple[subprocess.Popen[str], int], tmp_path: Path) -> None:
    run, child = waiting
    run.kill()
    run.wait(30)
    assert _gone(child)
    (left,) = (tmp_path / "cache" / "runs").glob("first-*")
    with retrieve_first._folder_in(tmp_path / "cache" / "runs"):
        assert not left.exists()
