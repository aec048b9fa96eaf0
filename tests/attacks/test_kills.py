"""kill -9 at random moments of a run with retrieval and judges: equal results, and no call is paid for twice."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.worlds.judges import verdict
from tests.worlds.model_server import Answer, ModelServer, asked, said
from tests.worlds.small import BASE, write_task

PROGRAM = str(Path(__file__).with_name("killed_runs.py"))
SEATS, IN_FLIGHT = 3, 2

KILLS, SEED = 30, 2


def judge(body: dict[str, Any], attempt: int) -> Answer:
    word = "correct" if sum(map(ord, asked(body) + body["model"])) % 2 else "incorrect"
    return replace(said(verdict(word)), delay=0.02)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_run_that_is_killed_and_repeated_loses_and_repeats_nothing(
    start: Callable[..., ModelServer], tasks: Path
) -> None:
    server = start(judge)
    data = {"benchmark": "jsonl", "path": str(tasks / "questions.jsonl"), "corpus": str(tasks / "corpus.jsonl")}
    metrics = ["judge_correct", "judged_accuracy", "char3gram_recall", "hit@2"]
    retrieval = {"mode": "all", "k": 2, "kind": "bm25"}
    keys = {**BASE, "metrics": metrics}
    write_task(
        tasks, "judged", **keys, data=data, retrieval=retrieval, judge={"prompt": "correctness"},
        prompt={"template": "articles"},
    )  # fmt: skip
    seats = [
        {
            "model": "local-chat-completions",
            "model_args": {"model": f"judge-{seat}", "base_url": server.url},
            "max_in_flight": IN_FLIGHT,
        }
        for seat in range(SEATS)
    ]
    (tasks / "mrag.yaml").write_text(yaml.safe_dump({"judges": seats}), "utf-8")
    environment = {**os.environ, "MRAG_CONFIG": str(tasks / "mrag.yaml"), "OPENAI_API_KEY": "none"}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    done = subprocess.run(
        [sys.executable, PROGRAM, str(tasks / "runs"), str(tasks), str(KILLS), str(SEED)],
        env=environment, capture_output=True, text=True, check=False, timeout=3000,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["killed"] == KILLS
    assert found["differing"] == []
    asked_for = Counter(json.dumps(body, sort_keys=True) for _, _, body in server.requests)
    assert len(asked_for) == 15 * SEATS
    # the reference's cache, and each of the others
    caches = found["caches"] + 1
    again = sum(count - caches for count in asked_for.values())
    assert min(asked_for.values()) >= caches
    assert again <= KILLS * SEATS * IN_FLIGHT
    print(f"{KILLS} kills, {caches} caches, {len(server.requests)} calls, {again} of them in flight at a kill")
