"""Retrieval that is shared: pushed by one machine, read by another that has neither corpus nor cache."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.worlds.hub_server import Hub, serving
from tests.worlds.small import BASE, write_task, write_world

pytestmark = pytest.mark.slow


@pytest.fixture
def hub() -> Iterator[Hub]:
    with serving() as running:
        yield running


class Machine:
    """A machine with its own caches and task files; ``corpus`` whether it holds the passages."""

    def __init__(self, home: Path, hub: Hub, *, corpus: bool, token: bool) -> None:
        self.home = home
        (home / "tasks").mkdir(parents=True)
        write_world(home / "tasks")
        index = home / "wiki"
        data = {"benchmark": "jsonl", "path": str(home / "tasks" / "questions.jsonl")}
        block = {"mode": "all", "k": 2, "depth": 4, "kind": "bm25", "corpus": str(index)}
        write_task(home / "tasks", "shared", **BASE, data=data, retrieval=block)
        self._env = hub.environment(home / "hf", **({} if token else {"token": None}))
        self._env |= {"MRAG_CACHE": str(home / "cache"), "PYTHONPATH": ":".join(filter(None, sys.path))}
        if corpus:
            self.run("index", "build", str(home / "tasks" / "corpus.jsonl"), str(index), "--kind", "bm25")
        (home / "tasks" / "corpus.jsonl").unlink()

    def run(self, *arguments: str, code: int = 0, **env: str) -> tuple[str, str]:
        """Run ``mrag-eval`` as its own process."""
        done = subprocess.run(
            [sys.executable, "-m", "mrag_eval.cli", *arguments],
            cwd=self.home, env={**self._env, **env}, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == code, done.stderr[-3000:]
        assert "Traceback" not in done.stderr, done.stderr[-3000:]
        return done.stdout, done.stderr

    def evaluated(self, output: str, *metadata: str, **env: str) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the scores and the configuration of a run of the task."""
        given = [part for one in metadata for part in ("--metadata", one)]
        flags = ["--model", "oracle_answer", "--tasks", "shared", "--include_path", "tasks", "--limit", "6"]
        self.run("run", *flags, "--output_path", output, *given, **env)
        (file,) = (self.home / output).rglob("results_*.json")
        results = json.loads(file.read_text("utf-8"))
        return results["results"]["shared"], results["configs"]["shared"]


def test_retrieved_pushed_and_read_without_a_corpus(tmp_path: Path, hub: Hub) -> None:
    owner = Machine(tmp_path / "owner", hub, corpus=True, token=True)
    asked = ["retrieve", "--tasks", "shared", "--include_path", "tasks", "-o", "run", "--limit", "6"]
    refused = owner.run(*asked, "--push", "hub:org/shared", code=2)[1]
    assert "the licence of its passages (wiki) is not known" in refused
    assert not (owner.home / "run").exists()
    said = owner.run(*asked, "--push", "hub:org/shared", "--licence", "CC-BY-4.0")[0].splitlines()
    commit = hub.repos["org/shared"].refs["main"]
    assert said[0] == "shared: 6 rows"
    assert said[1].startswith("pushed 4 files (0.0 MB) to hub:org/shared")
    assert said[2].endswith(f"--metadata retrieval.run_folder=hub:org/shared@{commit}")
    assert str(tmp_path) not in "".join(text.decode() for text in hub.files("org/shared").values())
    direct, _ = owner.evaluated("direct")

    reader = Machine(tmp_path / "reader", hub, corpus=False, token=False)
    place = f"retrieval.run_folder=hub:org/shared@{commit}"
    scores, config = reader.evaluated("out", place)
    assert scores == direct
    assert (
        config["measurement"]["data"]["retrieved"]["repository"],
        config["measurement"]["data"]["retrieved"]["commit"],
    ) == ("org/shared", commit)
    assert not (reader.home / "cache").exists() or not list((reader.home / "cache").rglob("manifest.json"))
    # again without a connection, and not at all at another commit
    assert reader.evaluated("offline", place, HF_HUB_OFFLINE="1")[0] == direct
    flags = ["run", "--model", "oracle_answer", "--tasks", "shared", "--include_path", "tasks", "--limit", "6"]
    wrong = reader.run(*flags, "--metadata", f"retrieval.run_folder=hub:org/shared@{'0' * 40}", code=2)[1]
    assert f"the dataset has no revision '{'0' * 40}'" in wrong
    # a later commit of other rows is refused by name
    shutil.rmtree(owner.home / "run")
    owner.run(*asked, "--metadata", "retrieval.k=1", "--push", "hub:org/shared", "--licence", "CC-BY-4.0")
    newest = reader.run(*flags, "--metadata", "retrieval.run_folder=hub:org/shared", code=2)[1]
    assert "retrieval.k (2 | 1)" in newest
    assert reader.evaluated("still", place)[0] == direct
