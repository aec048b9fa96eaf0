"""Runs that are killed at random moments: ``python killed_runs.py FOLDER TASKS KILLS SEED``.

Everything is imported once; each run is a fork. A run that is killed is started again on the same cache until one ends;
then a new cache is taken. Prints the number of kills, of caches, and what differs from a run that was not disturbed.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import torch  # noqa: F401

from mrag_eval.cli import _harness

_VOLATILE = ("date", "total_evaluation_time_seconds", "start_time", "end_time", "seconds", "ledger", "pretty_env_info")


def start(folder: Path, tasks: Path) -> int:
    """Start a run in a fork, with its cache and output below ``folder``; return its process."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        os.environ["MRAG_CACHE"] = str(folder / "cache")
        words = ["--model", "dummy", "--tasks", "judged", "--include_path", str(tasks), "--log_samples", "--seed", "0"]
        _harness.run([*words, "--no-retrieve-first", "--output_path", str(folder / "out")])
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def _steady(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _steady(inner) for key, inner in value.items() if key not in _VOLATILE}
    return [_steady(inner) for inner in value] if isinstance(value, list) else value


def found(folder: Path) -> list[Any]:
    """Return the scores and samples of each run that wrote its results: one that is killed after that is repeated."""
    out = []
    for results in (folder / "out").rglob("results_*.json"):
        samples = results.with_name(results.name.replace("results_", "samples_judged_") + "l")
        rows = [json.loads(line) for line in samples.read_text("utf-8").splitlines()]
        content = json.loads(results.read_text("utf-8"))
        keep = ("doc_id", "resps", "votes", "rows", "doc")
        scores = _steady([content["results"], content["configs"]["judged"]["scores"]])
        out.append((scores, [_steady({key: row[key] for key in keep}) for row in rows]))
    return out


def calls_kept(folder: Path) -> int:
    """Return the number of replies in a run's cache."""
    path = folder / "cache" / "models.sqlite"
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
            return int(db.execute("SELECT COUNT(*) FROM entries").fetchone()[0])
    except sqlite3.Error:  # not there yet, or not yet a cache
        return 0


def moment(draw: random.Random, folder: Path, seconds: float, calls: int) -> Callable[[], bool]:
    """Return whether a run is to be killed now: after a random time, or after a random number of replies."""
    if draw.random() < 0.5:
        until = time.monotonic() + draw.uniform(0, seconds)
        return lambda: time.monotonic() >= until
    wanted = draw.randint(min(calls_kept(folder) + 1, calls), calls)
    return lambda: calls_kept(folder) >= wanted


def main(folder: Path, tasks: Path, kills: int, seed: int) -> None:
    draw, begun = random.Random(seed), time.monotonic()
    assert os.waitstatus_to_exitcode(os.waitpid(start(folder / "reference", tasks), 0)[1]) == 0
    seconds, calls = time.monotonic() - begun, calls_kept(folder / "reference")
    (expected,) = found(folder / "reference")
    killed, caches, differing = 0, 0, []
    while killed < kills:
        place = folder / f"cache-{caches}"
        caches += 1
        while True:
            run, due = start(place, tasks), moment(draw, place, seconds, calls)
            process, status = os.waitpid(run, os.WNOHANG)
            while process == 0 and not (killed < kills and due()):
                time.sleep(0.005)
                process, status = os.waitpid(run, os.WNOHANG)
            if process:
                break
            os.kill(run, signal.SIGKILL)
            killed += os.WIFSIGNALED(os.waitpid(run, 0)[1])
        assert os.waitstatus_to_exitcode(status) == 0, place
        runs = found(place)
        assert runs, place
        differing += [str(place) for run in runs if run != expected]
    print(json.dumps({"killed": killed, "caches": caches, "differing": differing}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
