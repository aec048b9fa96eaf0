"""The recipes of the page on systems run as they stand, and give one report."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from mrag_eval import evaluate, load_results
from mrag_eval.report import verify
from tests.docs.blocks import DOCS, ROOT, blocks_of
from tests.report.test_consumers import foreign

PAGE = DOCS / "score.md"
MODULES = ("small_rag", "llamaindex_rag", "service")


@pytest.fixture
def recipes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder with the files of the page."""
    for block in blocks_of(PAGE):
        if block.mark == "file":
            (tmp_path / block.said).write_text(block.text, "utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("MRAG_CACHE", str(tmp_path / "cache"))
    for name in MODULES:
        monkeypatch.delitem(sys.modules, name, raising=False)
    return tmp_path


@contextmanager
def served(app: Any) -> Iterator[str]:
    """Serve an application of FastAPI; yield its address."""
    import uvicorn

    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    end = time.monotonic() + 20
    while not server.started and time.monotonic() < end:
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()


def scores(folder: Path) -> dict[str, dict[str, float]]:
    """Return the scores of whole tasks by system and metric."""
    frame = load_results([folder])
    whole = frame[frame.dimension == ""]
    return {str(model): dict(zip(rows.metric, rows.value, strict=True)) for model, rows in whole.groupby("model")}


def test_a_function_an_engine_and_a_service_stand_side_by_side(recipes: Path) -> None:
    pytest.importorskip("llama_index.core")
    pytest.importorskip("fastapi")
    from importlib import import_module

    out = recipes / "out"
    evaluate(import_module("small_rag").ask, "places.yaml", output=out)
    evaluate("rag", "places.yaml", output=out, model_args={"system": "llamaindex_rag.py:engine"})
    with served(import_module("service").app) as address:
        where = {"system": "service.yaml", "url": f"{address}/ask", "api_key_env": None}
        evaluate("rag", "places.yaml", output=out, model_args=where)
    found = scores(out)
    assert set(found) == {"small_rag:ask", "llamaindex_rag.py:engine", "our service, v2"}
    first, *others = found.values()
    # three ways to one search and one answer
    assert all(other == pytest.approx(first) for other in others)
    assert first["shown@k"] == 1.0
    assert 0 < first["char3gram_recall"] < 1
    for checked in verify([out], recipes):
        assert checked.of("fault") == []


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_recipes_of_frameworks_run_where_they_are_installed(recipes: Path) -> None:
    python = foreign("FRAMEWORKS", "langchain-core, haystack-ai and the packages of this project")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "HAYSTACK_TELEMETRY_ENABLED": "False"}
    for system in ("small_rag:ask", "langchain_rag:chain", "llamaindex_rag:engine", "haystack_rag:pipeline"):
        flags = ["--model", "rag", "--model_args", f"system={system}", "--tasks", "places.yaml", "--log_samples"]
        done = subprocess.run(
            [python, "-m", "mrag_eval.cli", "run", *flags, "--output_path", "out"],
            env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-3000:]
    found = scores(recipes / "out")
    assert len(found) == 4
    assert {name: values["shown@k"] for name, values in found.items()} == dict.fromkeys(found, 1.0)
    assert found["langchain_rag:chain"] == pytest.approx(found["small_rag:ask"])
    # its search is BM25
    assert found["haystack_rag:pipeline"]["mrr@10"] > 0.5
    for checked in verify([recipes / "out"], recipes):
        assert checked.of("fault") == []
