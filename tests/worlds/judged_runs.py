"""Runs that three judges behind one server judge, and the commands that read them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from mrag_eval import harness
from mrag_eval.cli import Session, app
from tests.worlds.model_server import ModelServer, Script
from tests.worlds.small import ScriptedLM

JUDGES = ("strict", "kind", "moody")


@contextmanager
def serving_judges(folder: Path, script: Script, monkeypatch: pytest.MonkeyPatch, **keys: Any) -> Iterator[ModelServer]:
    """Serve the judges by ``script``, and name them in the config file of ``folder``, with ``keys`` for each."""
    server = ModelServer(script)
    entry = {"model": "local-chat-completions", **keys}
    spec = {name: {**entry, "model_args": {"model": name, "base_url": server.url}} for name in JUDGES}
    monkeypatch.chdir(folder)
    (folder / "mrag.yaml").write_text(yaml.safe_dump({"models": spec, "judges": list(JUDGES)}), "utf-8")
    monkeypatch.setenv("MRAG_CONFIG", str(folder / "mrag.yaml"))
    monkeypatch.setenv("MRAG_CACHE", str(folder / "cache"))
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    try:
        yield server
    finally:
        server.close()


def run_task(folder: Path, task: str, name: str) -> None:
    """Run a task of ``folder`` with a model that always answers 1841; write results and samples to ``name`` in it."""
    manager = harness.task_manager([str(folder)], {"pretrained": "org/small"})
    settings = {"model": ScriptedLM(lambda prompt: "1841"), "tasks": [task], "bootstrap_iters": 100}
    harness.evaluate({**settings, "log_samples": True}, manager, str(folder / name))


def cli(*arguments: Any) -> Any:
    """Run a command in this process; return what it printed, its exit code and its exception."""
    return CliRunner().invoke(app, list(map(str, arguments)), obj=Session())


def judges_told(folder: Path) -> dict[str, list[str]]:
    """Return the judges of each metric that the one export for Every Eval Ever in a folder names."""
    (record,) = folder.rglob("*.json")
    return {
        one["metric_config"]["metric_name"]: [
            judge["model_info"]["name"] for judge in one["metric_config"]["llm_scoring"]["judges"]
        ]
        for one in json.loads(record.read_text("utf-8"))["evaluation_results"]
        if "llm_scoring" in one["metric_config"]
    }
