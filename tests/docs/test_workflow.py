"""The workflow of docs/gate.md, step by step, in a repository that holds a baseline and its rules."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.docs.blocks import ROOT, blocks_of
from tests.docs.stages import write_copies
from tests.docs.stand_ins import write_programs
from tests.programs import Programs

RULES = {"min_n": 10, "rules": [{"metric": "char3gram_recall", "task": "xquad_rag", "max_drop": 0.02}]}


def steps() -> list[str]:
    """Return the commands of the workflow; the installation is the environment of the tests."""
    (workflow,) = (yaml.safe_load(b.text) for b in blocks_of(ROOT / "docs" / "gate.md") if "jobs:" in b.text)
    commands = [step["run"] for step in workflow["jobs"]["gate"]["steps"] if "run" in step]
    assert commands[0].startswith("pip install")
    return commands[1:]


@pytest.fixture(scope="module")
def repository(test_data: Path, tmp_path_factory: pytest.TempPathFactory, programs: Programs) -> Path:
    """Write the rules and, as the baseline, the run of a model whose answers are all right."""
    home = tmp_path_factory.mktemp("repository")
    (home / "copies").mkdir()
    write_copies(home / "copies", test_data)
    write_programs(home / "bin", programs / "python")
    (home / "gate.yaml").write_text(yaml.safe_dump(RULES), "utf-8")
    run, _ = steps()
    model = run.replace("--model hf --model_args pretrained=$MODEL", "--model oracle_answer")
    released = model.replace("--output_path out", "--output_path released")
    assert "oracle_answer" in model
    assert "released" in released
    execute(f"{released}\nmrag-eval gate --save baseline.json released", home)
    return home


def execute(command: str, home: Path, **more: str) -> Any:
    path = f"{home / 'bin'}{os.pathsep}{os.environ['PATH']}"
    own = {"PATH": path, "PYTHONPATH": str(ROOT), "DOCS_COPIES": str(home / "copies"), "MODEL": "m", "DOCS_LIMIT": "3"}
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", command],
        cwd=home, env={**os.environ, **own, **more}, capture_output=True, text=True, timeout=580, check=False,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("model", "code", "word"), [("oracle_answer", 0, "pass"), ("hf", 1, "FAIL")])
def test_the_workflow_lets_the_same_model_through_and_stops_a_worse_one(
    model: str, code: int, word: str, repository: Path
) -> None:
    run, gate = steps()
    run = run if model == "hf" else run.replace("--model hf --model_args pretrained=$MODEL", "--model oracle_answer")
    out = f"out_{model}"
    done = execute(run.replace("--output_path out", f"--output_path {out}"), repository)
    assert done.returncode == 0, done.stderr[-3000:]
    summary = repository / f"summary_{model}.md"
    github = {"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": str(summary)}
    found = execute(gate.replace("--candidate out", f"--candidate {out}"), repository, **github)
    assert found.returncode == code, found.stdout + found.stderr
    assert word in found.stdout
    assert "char3gram_recall" in summary.read_text("utf-8")
    assert ("::error" in found.stdout) == (code == 1)
    assert "<testsuite" in (repository / "gate.xml").read_text("utf-8")
