"""Runs of the stock command with planted replies: one server plays the model and its judges."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from tests.programs import Programs
from tests.tables import single_spaced
from tests.worlds.judges import verdict
from tests.worlds.model_server import Answer, ModelServer, asked, said

ROOT = Path(__file__).resolve().parents[2]
MODEL = "planted"
_ANSWER = re.compile(r"<generated_answer>\n(.*?)\n</generated_answer>", re.DOTALL)

# The prompt -> the model's reply; the judge's name and the answer -> whether the judge finds it correct.
Reply = Callable[[str], str]
Verdict = Callable[[str, str], bool]


@contextmanager
def served(reply: Reply, correct: Verdict) -> Iterator[ModelServer]:
    """Yield a server that answers as the model, and grades as each judge."""

    def text(body: dict[str, Any]) -> str:
        if body["model"] == MODEL:
            return reply(asked(body))
        found = _ANSWER.search(asked(body))
        assert found is not None
        return verdict("correct" if correct(body["model"], found[1]) else "incorrect")

    def script(body: dict[str, Any], attempt: int) -> Answer:
        # the harness reads JSON only under its type
        return replace(said(text(body)), headers={"Content-Type": "application/json"})

    server = ModelServer(script)
    try:
        yield server
    finally:
        server.close()


def evaluate(
    programs: Programs,
    folder: Path,
    server: ModelServer,
    tasks: Sequence[str],
    judges: Sequence[str],
    *more: str,
    **data: str,
) -> Path:
    """Run the committed tasks with ``mrag-eval run`` and ``more`` options; return the folder of its results."""
    seats = [
        {"model": "local-chat-completions", "model_args": {"model": name, "base_url": server.url}} for name in judges
    ]
    (folder / "mrag.yaml").write_text(yaml.safe_dump({"judges": seats}), "utf-8")
    words = ["run", "--model", "local-chat-completions", "--apply_chat_template", "--log_samples"]
    words += ["--model_args", f"model={MODEL},base_url={server.url},num_concurrent=8,max_length=100000"]
    words += ["--tasks", ",".join(tasks), "--output_path", str(folder / "out")]
    words += ["--metadata", ",".join(f"data.{key}={value}" for key, value in data.items())]
    words += more
    environment = {**os.environ, "MRAG_CONFIG": str(folder / "mrag.yaml"), "OPENAI_API_KEY": "none"}
    environment |= {"MRAG_CACHE": str(folder / "cache"), "PYTHONPATH": os.pathsep.join([str(ROOT), *_path()])}
    command = [programs / "mrag-eval", *words]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=900)
    assert done.returncode == 0, done.stderr[-4000:]
    return folder / "out"


def printed(programs: Programs, *words: str | Path) -> str:
    """Return what ``mrag-eval`` prints, with one space for each run of spaces."""
    command = [programs / "mrag-eval", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr[-4000:]
    return single_spaced(done.stdout)


def _path() -> list[str]:
    return [found] if (found := os.environ.get("PYTHONPATH")) else []
