"""The command, against a server over HTTP: built, killed and resumed, reviewed, refused."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mrag_eval.platform import read_sheet, write_sheet
from tests.building.newsroom import Newsroom, corpus, write_corpus
from tests.programs import Programs
from tests.tables import single_spaced
from tests.worlds.model_server import Answer, ModelServer, said

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = {
    "languages": ["de"],
    "settings": ["mono"],
    "articles": {"min_words": 10},
    "models": {"closed_book": "m"},
    "entities": {"backend": "table", "path": "entities.jsonl"},
}


class Desk:
    """A newsroom behind HTTP, optionally slow."""

    def __init__(self) -> None:
        self.delay = 0.0
        self._play = Newsroom()

    def __call__(self, body: dict[str, Any], attempt: int) -> Answer:
        answer = said(self._play(body["messages"]))
        return Answer(answer.status, answer.body, answer.headers, delay=self.delay)


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest.fixture
def server(desk: Desk) -> Iterator[ModelServer]:
    started = ModelServer(desk)
    yield started
    started.close()


@pytest.fixture
def folder(tmp_path: Path, server: ModelServer) -> Path:
    articles = corpus(("en",))
    write_corpus(tmp_path / "news.jsonl", articles)
    table = [{"title": entry["title"], "entities": [entry["title"].split()[0], "Halden"]} for entry in articles]
    write_corpus(tmp_path / "entities.jsonl", table)
    (tmp_path / "build.yaml").write_text(json.dumps(SETTINGS))
    model = {"model": "local-chat-completions", "model_args": {"model": "m", "base_url": server.url}}
    (tmp_path / "mrag.yaml").write_text(json.dumps({"models": {"m": {**model, "max_in_flight": 4}}}))
    return tmp_path


def command(folder: Path, programs: Programs, *more: str) -> tuple[list[str], dict[str, str]]:
    words = ["build", "xrag", "news.jsonl", "-o", "out", "--settings", "build.yaml", "--model", "m", *more]
    env = {**os.environ, "MRAG_CACHE": str(folder / "cache"), "PYTHONPATH": str(ROOT), "OPENAI_API_KEY": "none"}
    return [programs / "mrag-eval", *words], env


def run(folder: Path, programs: Programs, *more: str) -> subprocess.CompletedProcess[str]:
    words, env = command(folder, programs, *more)
    return subprocess.run(words, env=env, cwd=folder, capture_output=True, text=True, check=False, timeout=300)


@pytest.mark.slow
def test_built_reviewed_and_refused_from_the_command_line(
    folder: Path, server: ModelServer, programs: Programs
) -> None:
    done = run(folder, programs, "--review", "anna.csv")
    assert done.returncode == 0, done.stderr
    assert "review     anna.csv: fill it in, then run the same command again" in done.stdout
    assert "| closed_book | 24 | 24 | 0 | |" in single_spaced(done.stdout)
    calls = len(server.requests)
    rows = [dict(row.cells) for row in read_sheet(folder / "anna.csv", ())]
    write_sheet(folder / "anna.csv", list(rows[0]), [{**rows[0], "id": "from elsewhere"}])
    refused = run(folder, programs, "--review", "anna.csv")
    assert refused.returncode == 2
    assert refused.stderr.splitlines()[0].endswith("anna.csv, row 2: 'from elsewhere' is not a question of this build")
    yes = {"natural": "yes", "answerable": "yes", "correct": "yes"}
    write_sheet(folder / "anna.csv", list(rows[0]), [row | yes for row in rows[:6]])
    done = run(folder, programs, "--review", "anna.csv")
    assert done.returncode == 0, done.stderr
    assert "reviewed   6 of 24 questions by anna" in done.stdout
    assert "set        out/xrag.test.jsonl: 6 rows" in done.stdout
    # only distractors and translations were still missing
    assert len(server.requests) - calls == 6 * 6 + 6
    again = run(folder, programs, "--review", "anna.csv")
    assert len(server.requests) - calls == 6 * 6 + 6
    assert again.stdout.count("reused") == 19


@pytest.mark.slow
def test_a_build_that_is_killed_pays_for_nothing_twice(
    folder: Path, server: ModelServer, desk: Desk, programs: Programs
) -> None:
    desk.delay = 0.1
    words, env = command(folder, programs)
    words = [sys.executable, "-m", "mrag_eval.cli", *words[1:]]
    process = subprocess.Popen(words, env=env, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 120
    while len(server.requests) < 60 and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    before = len(server.requests)
    assert 60 <= before < 300
    desk.delay = 0.0
    done = run(folder, programs)
    assert done.returncode == 0, done.stderr
    assert "from an earlier run" in done.stdout
    bodies = [json.dumps(body, sort_keys=True) for _, _, body in server.requests]
    # at most the requests that were in flight at the kill are repeated
    assert len(bodies) - len(set(bodies)) <= 4
    assert len((folder / "out" / "xrag.test.jsonl").read_text().splitlines()) == 24


def test_faults_are_one_line_and_exit_code_2(folder: Path, programs: Programs) -> None:
    (folder / "news.jsonl").write_text("")
    done = run(folder, programs)
    assert done.returncode == 2
    assert done.stderr.splitlines()[0] == (
        "mrag-eval: no row is left: step 'articles' took 0 in and dropped all (nothing came in)"
    )
    (folder / "build.yaml").write_text(json.dumps({**SETTINGS, "limts": {}}))
    done = run(folder, programs)
    assert done.returncode == 2
    assert "build.yaml: unknown key 'limts'; did you mean 'limits'?" in done.stderr
