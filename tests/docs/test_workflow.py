"""The jobs of docs/gate.md and the action they use, step by step, in a repository with a baseline and rules."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from statistics import NormalDist
from typing import Any

import pytest
import yaml

from mrag_eval.datasets import load_benchmark
from tests.docs.blocks import ROOT, Block, blocks_of
from tests.programs import Programs
from tests.worlds.model_server import Answer, ModelServer, asked, said

ACTION = "./mrag-eval"
PAGE = ROOT / "docs" / "gate.md"
LANGUAGES = ("ar", "de", "el", "en", "es", "hi", "ru", "tr", "vi", "zh")


def block(file: str) -> Block:
    """Return the page's block that is a file of the reader's."""
    (found,) = (b for b in blocks_of(PAGE) if b.mark == "file" and b.said == file)
    return found


def workflow() -> Mapping[str, Any]:
    job: Mapping[str, Any] = yaml.safe_load(block(".github/workflows/gate.yml").text)["jobs"]["gate"]
    return job


def action() -> Mapping[str, Any]:
    found: Mapping[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
    return found


def given() -> Mapping[str, Any]:
    """Return the workflow's step that uses the action."""
    (used,) = (step for step in workflow()["steps"] if step.get("uses") == ACTION)
    return used


@dataclass(frozen=True)
class Repository:
    """A checkout in ``home`` with mrag-eval in its folder; ``path`` is searched for programs first."""

    home: Path
    path: str
    server: ModelServer

    def filled(self, text: str, inputs: Mapping[str, Any]) -> str:
        """Fill in what GitHub knows, as it does before a step."""
        known = {
            **{f"inputs.{name}": value for name, value in inputs.items()},
            "vars.MODEL": "a-model",
            "vars.MODEL_URL": self.server.url,
            "secrets.OPENAI_API_KEY": "none",
            "github.workspace": str(self.home),
            "github.token": "token",
            "github.event.pull_request.number": "7",
        }
        hashed = r"\$\{\{ hashFiles\((.+?)\) \}\}"
        text = re.sub(hashed, lambda found: self._hash(re.findall(r"'(.+?)'", found[1])), text)
        return re.sub(r"\$\{\{ (.+?) \}\}", lambda found: str(known[found[1]]), text)

    def _hash(self, names: list[str]) -> str:
        parts = [(self.home / name).read_bytes() for name in names if (self.home / name).is_file()]
        return hashlib.sha256(b"".join(parts)).hexdigest()

    def execute(self, command: str, **more: str) -> subprocess.CompletedProcess[str]:
        """Run a step as GitHub does: bash that stops at the first error, in the checkout."""
        left_out = ("PYTHONPATH", "VIRTUAL_ENV", "MRAG_CACHE", "MRAG_CONFIG")
        clean = {name: value for name, value in os.environ.items() if name not in left_out}
        github = {
            "GITHUB_ACTIONS": "true",
            "GITHUB_STEP_SUMMARY": str(self.home / "summary.md"),
            "GITHUB_ACTION_PATH": str(self.home / "mrag-eval"),
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

    def use_action(self, **changed: str) -> subprocess.CompletedProcess[str]:
        """Run the steps of the action on what the workflow gives it; ``actions/cache`` keeps files in ``kept``."""
        own, used = action(), given()
        assert own["runs"]["using"] == "composite"
        asked_for = {name: self.filled(str(value), {}) for name, value in used["with"].items()}
        assert set(asked_for) <= set(own["inputs"])
        inputs = {**{name: entry["default"] for name, entry in own["inputs"].items()}, **asked_for, **changed}
        environment = {name: self.filled(value, {}) for name, value in used["env"].items()}
        kept: list[tuple[Path, Path]] = []
        done = None
        for step in own["runs"]["steps"]:
            if step.get("if") == "${{ inputs.model != '' }}" and not inputs["model"]:
                continue
            if "uses" in step:
                assert step["uses"].startswith("actions/cache@")
                with_ = {name: self.filled(value, inputs) for name, value in step["with"].items()}
                store = self.home.parent / "kept" / hashlib.sha256(with_["key"].encode()).hexdigest()
                kept = [(self.home / path, store / path) for path in with_["path"].split()]
                for here, there in kept:
                    _copy(there, here)
                continue
            assert step["shell"] == "bash"
            env = {name: self.filled(value, inputs) for name, value in step.get("env", {}).items()}
            done = self.execute(self.filled(step["run"], inputs), **environment, **env)
            if done.returncode:
                return done
        for here, there in kept:
            _copy(here, there)
        assert done is not None
        return done


def _copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, dirs_exist_ok=True)
    elif source.is_file():
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, target)


@pytest.fixture(scope="module")
def answers(test_data: Path) -> Mapping[str, str]:
    """Return the question in each prompt -> its reference answer."""
    blocks = [{"benchmark": "xquad", "path": str(test_data / "xquad"), "question_language": code} for code in LANGUAGES]
    return {doc.query: doc.answers[0] for block in blocks for doc in load_benchmark(block).docs}


def answering(answers: Mapping[str, str], lost: int) -> Callable[[dict[str, Any], int], Answer]:
    """Return a model that answers every question but those whose hash is among the first ``lost`` of a hundred."""

    def script(body: dict[str, Any], attempt: int) -> Answer:
        prompt = asked(body)
        question = max((known for known in answers if known in prompt), key=len)
        is_lost = int(hashlib.sha256(question.encode()).hexdigest(), 16) % 100 < lost
        return said("?" if is_lost else answers[question])

    return script


@pytest.fixture
def server(answers: Mapping[str, str]) -> Iterator[ModelServer]:
    server = ModelServer(answering(answers, 0))
    yield server
    server.close()


def prepared(home: Path, test_data: Path) -> Path:
    """Return a checkout with the reader's files: settings and the script of the page."""
    home.mkdir()
    (home / "mrag.yaml").write_text(f"data: {{xquad: {{path: {test_data / 'xquad'}}}}}\n", "utf-8")
    (home / "gate.sh").write_text(block("gate.sh").text, "utf-8")
    return home


def with_baseline(repository: Repository) -> None:
    """Make the two files that the page says to commit, with its own lines."""
    model = {"MODEL_TYPE": "local-chat-completions", "MODEL_ARGS": f"model=a-model,base_url={repository.server.url}"}
    repository.done("bash gate.sh run", OPENAI_API_KEY="none", **model)
    (lines,) = (b.text for b in blocks_of(PAGE) if "--save baseline.json out\n" in b.text)
    repository.done(lines)
    shutil.rmtree(repository.home / "out")


def check_steps(repository: Repository, answers: Mapping[str, str]) -> None:
    """The workflow passes with the same model, and fails with one that lost 15% of its answers; its comment says so."""
    comment = str(workflow()["steps"][-1]["run"])
    for lost, code, verdict in ((0, 0, "pass"), (15, 1, "FAIL")):
        repository.server.script = answering(answers, lost)
        summary = repository.home / "summary.md"
        summary.unlink(missing_ok=True)
        asked_before = len(repository.server.requests)
        found = repository.use_action()
        assert found.returncode == code, found.stdout + found.stderr
        # every reply is the model's own, none an earlier one's
        assert len(repository.server.requests) - asked_before == 597
        assert ("::error" in found.stdout) == (code == 1)
        assert summary.read_text("utf-8").startswith(f"## mrag-eval gate: {verdict}")
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


def check_gitlabs_job(repository: Repository, answers: Mapping[str, str]) -> None:
    """The same model passes, one that lost answers does not; the programs are there already."""
    home, server = repository.home, repository.server
    # the last lines are those of a shell; the first one fetches this project
    job = yaml.safe_load(block(".gitlab-ci.yml").text)["gate"]
    variables = {"CI_PROJECT_DIR": str(home), "MODEL": "a-model", "MODEL_URL": server.url, "OPENAI_API_KEY": "none"}
    for name, value in job["variables"].items():
        variables[name] = re.sub(r"\$(\w+)", lambda found: variables[found[1]], value)
    fetch, install, *script = job["script"]
    assert (fetch.split()[:2], install.split()[:2]) == (["git", "clone"], ["pip", "install"])
    for lost, code in ((0, 0), (15, 1)):
        server.script = answering(answers, lost)
        done = repository.execute("\n".join(script), **variables)
        assert done.returncode == code, done.stdout + done.stderr
    assert set(job["artifacts"]["paths"]) <= {path.name for path in home.iterdir()}


@pytest.mark.slow
@pytest.mark.wheel
@pytest.mark.timeout(3600)
def test_the_workflow_installs_what_its_steps_need_and_stops_a_worse_model(
    tmp_path: Path, server: ModelServer, answers: Mapping[str, str], test_data: Path
) -> None:
    """Every step as it stands, in an empty environment."""
    home = prepared(tmp_path / "home", test_data)
    checkout = home / "mrag-eval"
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, tracked.split("\0")):
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, checkout / name, follow_symlinks=False)
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "environment"], check=True)
    repository = Repository(home, str(tmp_path / "environment" / "bin"), server)
    install = next(step["run"] for step in workflow()["steps"] if "run" in step)
    assert install.startswith("pip install")
    repository.done(install)
    with_baseline(repository)
    shutil.rmtree(home / ".mrag_cache")
    check_steps(repository, answers)
    # the second job found indexes and rankings, and no replies
    assert {path.name for path in (tmp_path / "kept").glob("*/.mrag_cache/*")} == {"indexes", "retrieval.sqlite"}
    check_gitlabs_job(repository, answers)
    # a job that only checks: the action installs what the gate needs
    subprocess.run([sys.executable, "-m", "venv", "--clear", tmp_path / "environment"], check=True)
    alone = Repository(home, f"{repository.path}{os.pathsep}/usr/bin{os.pathsep}/bin", server)
    done = alone.use_action(model="", candidate="baseline.json")
    assert done.returncode == 0, done.stdout + done.stderr


# ------------------------------------------------------------------ without running anything


def test_variants_give_the_action_what_it_takes_and_install_extras_that_exist() -> None:
    extras = re.findall(r"^(\w+) = \[", (ROOT / "pyproject.toml").read_text("utf-8"), re.MULTILINE)
    known = set(action()["inputs"])
    seen = set()
    for found in blocks_of(PAGE):
        for extra in re.findall(r"mrag-eval\[(\w+)\]", found.text):
            assert extra in extras
            seen.add(extra)
        for used in re.findall(r"uses: \./mrag-eval\n\s+with:\n((?:\s{10}.+\n)+)", found.text):
            assert set(yaml.safe_load(used)) <= known
    assert seen == {"api", "vllm"}


def test_actions_of_others_are_pinned_by_commit() -> None:
    """A tag may move; the page's steps and the action's own name commits, with their tags for a reader."""
    texts = [(ROOT / "action.yml").read_text("utf-8"), *(page.read_text("utf-8") for page in PAGE.parent.glob("*.md"))]
    used = [line for text in texts for line in re.findall(r"^\s*(?:- )?uses: (.+)$", text, re.MULTILINE)]
    assert len(used) >= 5
    for line in used:
        assert line == ACTION or re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", line), line


def test_every_job_runs_the_same_rows() -> None:
    """Those of the action's defaults; a baseline of other rows would not be comparable."""
    inputs = action()["inputs"]
    rows = {(inputs["tasks"]["default"], inputs["metadata"]["default"])}
    rows |= {(given()["with"]["tasks"], given()["with"]["metadata"])}
    rows |= {*re.findall(r"--tasks (\S+) --metadata (\S+)", PAGE.read_text("utf-8"))}
    rows |= {*re.findall(r"tasks: (\S+)\n\s+metadata: (\S+)", PAGE.read_text("utf-8"))}
    assert rows == {("xquad_rag", "data.share=0.5")}


def test_the_model_s_replies_are_never_kept() -> None:
    (cache,) = (step for step in action()["runs"]["steps"] if "uses" in step)
    kept = {*cache["with"]["path"].split()}
    job = yaml.safe_load(block(".gitlab-ci.yml").text)["gate"]
    assert kept == {path for entry in job["cache"] for path in entry["paths"] if ".pip" not in path}
    assert not any("models" in path for path in kept)


def test_the_table_of_shares_follows_from_its_formula() -> None:
    """The drop d of a score of 0 and 1 at which d sqrt(n) = z(.975) sqrt(c) + z(.8) sqrt(c - d^2)."""
    z = NormalDist().inv_cdf

    def drop(n: int, changed: float) -> float:
        low, high = 0.0, changed
        for _ in range(60):
            d = (low + high) / 2
            enough = d * sqrt(n) >= z(0.975) * sqrt(changed) + z(0.8) * sqrt(changed - d * d)
            low, high = (low, d) if enough else (d, high)
        return round(100 * high, 1)

    rows = re.findall(r"^\| ([\d.]+) \| ([\d,]+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|", PAGE.read_text("utf-8"), re.M)
    assert len(rows) == 4
    for share, questions, *drops in rows:
        n = int(questions.replace(",", ""))
        assert n == pytest.approx(1190 * float(share), abs=1)
        assert [float(d) for d in drops] == [drop(n, changed) for changed in (0.1, 0.2, 0.3)]


def test_the_table_of_shares_has_the_costs_of_plan(test_data: Path, programs: Programs) -> None:
    text = PAGE.read_text("utf-8")
    for share, calls, into, out in re.findall(
        r"^\| ([\d.]+) \| [\d,]+ \|(?: [\d.]+ \|){3} ([\d,]+) \| ([\d.]+ [kM]) \| (\d+) k \|$", text, re.M
    ):
        place = f"data.path={test_data / 'xquad'},data.share={share}"
        command = [programs.folder / "mrag-eval", "plan", "--tasks", "xquad_rag", "--metadata", place]
        said_ = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        found = re.search(r"evaluated +([\d,]+) calls +~([\d.]+) ([kM]) tokens in +~([\d.]+) k out", said_)
        assert found is not None, said_
        assert found[1] == calls
        number, unit = into.split()
        assert (round(float(found[2]), 1 if unit == "M" else 0), found[3]) == (float(number), unit)
        assert round(float(found[4])) == int(out)
