"""Two processes that retrieve for the same rows at once: every query is embedded, and every pair scored, once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.worlds.model_server import Answer, ModelServer

RETRIEVE = """
import json, sys, time
from pathlib import Path
from mrag_eval.config import Retrieval
from mrag_eval.datasets import load_benchmark
from mrag_eval.retrieval import retrieve
folder, url = Path(sys.argv[1]), sys.argv[2]
benchmark = load_benchmark(
    {"benchmark": "jsonl", "path": str(folder / "questions.jsonl"), "corpus": str(folder / "corpus.jsonl")}
)
embedder = {"kind": "openai", "model": "e", "base_url": url, "batch_size": 1, "dimensions": 2}
rerank = {"kind": "api", "shape": "tei", "url": url + "/rerank", "batch_size": 2, "max_in_flight": 2}
block = Retrieval.model_validate({"mode": "all", "k": 2, "kind": "dense", "embedder": embedder, "rerank": rerank})
print("ready", flush=True)
sys.stdin.readline()
found = retrieve(benchmark.docs, block, corpus=benchmark.corpus)
print(json.dumps([[hit.id for hit in row.passages] for row in found]))
"""


def reply(body: dict[str, Any], attempt: int) -> Answer:
    texts = body.get("input") or body["texts"]
    if "input" in body:
        found: Any = {"data": [{"index": i, "embedding": [1.0, float(len(t))]} for i, t in enumerate(texts)]}
    else:
        found = [{"index": i, "score": float(len(text))} for i, text in enumerate(texts)]
    return Answer(body=found, delay=0.03)


@pytest.mark.slow
def test_two_processes_over_the_same_rows_ask_once(
    world: Path, start: Callable[..., ModelServer], tmp_path: Path
) -> None:
    server = start(reply)
    paths = os.pathsep.join(filter(None, sys.path))
    runs = [
        subprocess.Popen(
            [sys.executable, "-c", RETRIEVE, str(world), server.url.removesuffix("/chat/completions")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "MRAG_CACHE": str(tmp_path / "cache"), "PYTHONPATH": paths},
        )
        for _ in range(2)
    ]
    for run in runs:
        assert run.stdout is not None
        assert run.stdout.readline() == "ready\n"
    shown = []
    for run in runs:
        assert run.stdin is not None
        run.stdin.write("\n")
        run.stdin.flush()
    for run in runs:
        shown.append(run.communicate(timeout=120)[0])
        assert run.returncode == 0
    assert shown[0] == shown[1] != ""
    counts = Counter(json.dumps(body, sort_keys=True) for _, _, body in server.requests)
    assert {body for body, count in counts.items() if count > 1} == set()
    embedded = [body["input"] for _, _, body in server.requests if "input" in body]
    # 15 passages and 15 questions
    assert len(embedded) == 30
    assert sum(len(body["texts"]) for _, _, body in server.requests if "texts" in body) == len(
        {(body["query"], text) for _, _, body in server.requests if "texts" in body for text in body["texts"]}
    )
