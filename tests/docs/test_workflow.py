"""The workflow of docs/gate.md and the action it uses, step by step, in a repository with a baseline and rules."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.docs.blocks import ROOT, blocks_of
from tests.programs import Programs
from tests.worlds.model_server import Answer, ModelServer, asked, said

ACTION = "./mrag-eval"


def workflow() -> Mapping[str, Any]:
    (found,) = (yaml.safe_load(b.text) for b in blocks_of(ROOT / "docs" / "gate.md") if "jobs:" in b.text)
    job: Mapping[str, Any] = found["jobs"]["gate"]
    return job


def run_steps() -> list[str]:
    """The workflow's own commands: installation, run, comment."""
    return [step["run"] for step in workflow()["steps"] if "run" in step]


def gate_steps() -> list[tuple[str, dict[str, str]]]:
    """The commands of the action with the environment of each, given the workflow's inputs, as GitHub fills them in."""
    (used,) = (step for step in workflow()["steps"] if step.get("uses") == ACTION)
    action = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
    assert set(used["with"]) <= set(action["inputs"])
    inputs = {name: entry["default"] for name, entry in action["inputs"].items()} | used["with"]

    def filled(text: str) -> str:
        return re.sub(r"\$\{\{ inputs\.(\w+) \}\}", lambda found: str(inputs[found[1]]), text)

    assert action["runs"]["using"] == "composite"
    assert all(step["shell"] == "bash" for step in action["runs"]["steps"])
    return [
        (filled(step["run"]), {name: filled(value) for name, value in step.get("env", {}).items()})
        for step in action["runs"]["steps"]
    ]


@dataclass(frozen=True)
class Repository:
    """A checkout in ``home`` with mrag-eval in its folder; ``path`` is searched for programs first."""

    home: Path
    path: str
    server: ModelServer

    def execute(self, command: str, **more: str) -> subprocess.CompletedProcess[str]:
        """Run a step as GitHub does: bash that stops at the first error, in the checkout."""
        clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
        github = {
            "GITHUB_ACTIONS": "true",
            "GITHUB_STEP_SUMMARY": str(self.home / "summary.md"),
            "GITHUB_ACTION_PATH": str(self.home / "mrag-eval"),
            "MODEL": "a-model",
            "MODEL_URL": self.server.url,
            "OPENAI_API_KEY": "none",
            "MRAG_CACHE": str(self.home / "cache"),
            "PATH": f"{self.path}{os.pathsep}{os.environ['PATH']}",
        }
        return subprocess.run(
            ["bash", "-eo", "pipefail", "-c", command],
            cwd=self.home, env={**clean, **github, **more}, capture_output=True, text=True, check=False,
        )  # fmt: skip

    def done(self, command: str, **more: str) -> str:
        done = self.execute(command, **more)
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        return done.stdout


def knows_everything(body: dict[str, Any], attempt: int) -> Answer:
    """Return the answer to the demo's question that the prompt ends with."""
    lines = (ROOT / "mrag_eval" / "datasets" / "demo_data" / "questions.jsonl").read_text("utf-8").splitlines()
    prompt = asked(body)
    return said(next(q["answers"][0] for q in map(json.loads, lines) if q["query"] in prompt))


def knows_nothing(body: dict[str, Any], attempt: int) -> Answer:
    return said("?")


@pytest.fixture
def server() -> Iterator[ModelServer]:
    server = ModelServer(knows_everything)
    yield server
    server.close()


def with_baseline(repository: Repository) -> None:
    """Leave the two files that the page says to commit: the baseline of a good model, and the first rules."""
    _, run, _ = run_steps()
    repository.done(run)
    repository.done("mrag-eval gate --save baseline.json out && mrag-eval gate --init gate.yaml baseline.json")
    shutil.rmtree(repository.home / "out")


def check_steps(repository: Repository) -> None:
    """The workflow passes with the same model, and fails with a worse one; its comment says so first."""
    _, run, comment = run_steps()
    for script, code, verdict in ((knows_everything, 0, "pass"), (knows_nothing, 1, "FAIL")):
        repository.server.script = script
        repository.done(run)
        summary = repository.home / "summary.md"
        summary.unlink(missing_ok=True)
        (install, no_env), (gate, env) = gate_steps()
        repository.done(install, **no_env)
        found = repository.execute(gate, **env)
        assert found.returncode == code, found.stdout + found.stderr
        assert ("::error" in found.stdout) == (code == 1)
        assert summary.read_text("utf-8").startswith(f"## mrag-eval gate: {verdict}\n")
        (repository.home / "bin").mkdir(exist_ok=True)
        # gh is GitHub's own program: a stand-in prints the file that it is given
        (repository.home / "bin" / "gh").write_text('#!/bin/sh\ncat "$5"\n', "utf-8")
        (repository.home / "bin" / "gh").chmod(0o755)
        there = f"{repository.home / 'bin'}{os.pathsep}{repository.path}{os.pathsep}{os.environ['PATH']}"
        written = repository.done(comment, PATH=there, PULL_REQUEST="7")
        assert written == summary.read_text("utf-8")
        assert (" worse: <code>" in written) == (code == 1)
        assert "<testsuite" in (repository.home / "gate.xml").read_text("utf-8")
        shutil.rmtree(repository.home / "out")


@pytest.mark.slow
def test_the_workflow_lets_the_same_model_through_and_stops_a_worse_one(
    tmp_path: Path, programs: Programs, server: ModelServer
) -> None:
    """With the programs that the tests run in; only the installation is left out."""
    (tmp_path / "mrag-eval").symlink_to(ROOT)
    repository = Repository(tmp_path, str(programs.folder), server)
    with_baseline(repository)
    check_steps(repository)


@pytest.mark.slow
@pytest.mark.wheel
@pytest.mark.timeout(1800)
def test_the_workflow_installs_what_its_steps_need(tmp_path: Path, server: ModelServer) -> None:
    """Every step as it stands, in an empty environment."""
    checkout = tmp_path / "mrag-eval"
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, tracked.split("\0")):
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, checkout / name, follow_symlinks=False)
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "environment"], check=True)
    repository = Repository(tmp_path, str(tmp_path / "environment" / "bin"), server)
    install, *_ = run_steps()
    assert install.startswith("pip install")
    repository.done(install)
    with_baseline(repository)
    check_steps(repository)
    # a job that only checks: the action installs what the gate needs
    subprocess.run([sys.executable, "-m", "venv", "--clear", tmp_path / "environment"], check=True)
    (own, env), (gate, given) = gate_steps()
    repository.done(own, PATH=f"{repository.path}{os.pathsep}/usr/bin{os.pathsep}/bin", **env)
    assert "pass" in repository.done(gate, **{**given, "CANDIDATE": "baseline.json"})
