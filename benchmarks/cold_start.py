"""Measure what a small run waits for: the harness, the index and this package's own code, separately.

    python benchmarks/cold_start.py [--runs 5] [--quick] [--json FILE]

The harness's dummy model runs a demo task, whose index and retrieval are cached, and a stock task over the same
questions, each in its own process, in alternation. Everything that both need (the harness, torch, transformers,
datasets and what it loads with any rows) is imported before the clock starts and reported separately. So is reading the
YAML of our tasks, which the harness does for every command. Our own time is that of our task (imports, construction,
evaluation of five rows) minus opening its index and minus the harness's evaluation of the stock task. Medians over the
runs are reported, in CPU seconds as well as wall-clock seconds: on a busy machine the latter say little. The start of
the process in which `mrag-eval run` retrieves before the model is loaded is measured last, with everything cached.

The harness's own command is measured as a whole, too: CPU seconds of `lm_eval --tasks` with the demo task over those
with the stock task, both in one folder, in which the harness reads the YAML of our tasks either way.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parent))

from _rows import arguments, row, write_rows

OURS = "mrag_demo_multirag"
LIMIT = 5.0

STOCK = """
task: stock_questions
output_type: generate_until
dataset_path: json
dataset_kwargs: {{data_files: {{test: {path}}}}}
test_split: test
num_fewshot: 0
generation_kwargs: {{until: ["@@"], do_sample: false, max_gen_toks: 16}}
doc_to_text: "{{{{ query }}}}"
doc_to_target: "{{{{ answers[0] }}}}"
metric_list: [{{metric: exact_match, aggregation: mean, higher_is_better: true}}]
metadata: {{version: 1.0}}
"""


Parts = dict[str, tuple[float, float]]


def now() -> tuple[float, float]:
    """Return wall-clock seconds, and CPU seconds of this process and its children."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.perf_counter(), time.process_time() + children.ru_utime + children.ru_stime


def one(task: str, folder: str) -> Parts:
    """Run in its own process: return wall-clock and CPU seconds for each part."""
    taken: Parts = {}
    last = now()

    def lap(name: str) -> None:
        nonlocal last
        here = now()
        taken[name] = (here[0] - last[0], here[1] - last[1])
        last = here

    import datasets  # noqa: F401
    import lm_eval
    import lm_eval.evaluator

    # datasets loads it for every plain task, with parts of scipy and numpy that our intervals need as well
    import scipy.io  # noqa: F401
    import torch  # noqa: F401
    import transformers  # noqa: F401
    from lm_eval.tasks import TaskManager

    lap("imports of the harness")
    ours = task == OURS
    manager = TaskManager(include_path=folder, include_defaults=False)
    lap("YAML of our tasks" if ours else "YAML of one task")
    opening = (0.0, 0.0)
    if ours:
        import mrag_eval.task  # noqa: F401

        lap("imports")
        from mrag_eval.retrieval import _corpora as corpora
        from mrag_eval.retrieval.sources import _index as search

        real: Any = corpora.open_index

        def timed(*args: Any, **kwargs: Any) -> Any:
            nonlocal opening
            start = now()
            try:
                return real(*args, **kwargs)
            finally:
                end = now()
                opening = (opening[0] + end[0] - start[0], opening[1] + end[1] - start[1])

        corpora.open_index = search.open_index = timed  # type: ignore[assignment]
    tasks = list(manager.load([task])["tasks"].values())
    lap("building the task")
    lm_eval.simple_evaluate(model="dummy", tasks=tasks, task_manager=manager, bootstrap_iters=0, limit=LIMIT)
    lap("evaluating")
    taken["opening the index"] = opening
    if ours:
        from mrag_eval.cli._first import First

        fresh = manager.load([task])["tasks"]
        last = now()
        First().rows_of(fresh, LIMIT, None)
        lap("retrieving first, all cached")
    return taken


def surroundings(cache: Path) -> dict[str, str]:
    """Return the environment of a run without a network that keeps everything below ``cache``.

    OpenBLAS has one thread: others wait in a loop for a tenth of a second once scipy has loaded them, which is work of
    the processor and of nobody's code.
    """
    env = {**os.environ, "MRAG_CACHE": str(cache), "HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}
    env["OPENBLAS_NUM_THREADS"] = "1"
    return env | {"TQDM_DISABLE": "1", "HF_DATASETS_CACHE": str(cache / "datasets"), "LMEVAL_LOG_LEVEL": "ERROR"}


def measured(task: str, folder: Path, cache: Path) -> Parts:
    """Run :func:`one` in a new process."""
    words = [sys.executable, __file__, "--one", task, str(folder)]
    done = subprocess.run(words, env=surroundings(cache), capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    return {part: (wall, cpu) for part, (wall, cpu) in json.loads(done.stdout.splitlines()[-1]).items()}


def command_seconds(task: str, folder: Path, env: dict[str, str]) -> float:
    """Return the CPU seconds of the harness's own command with a task."""
    words = ["--model", "dummy", "--include_path", str(folder), "--tasks", task, "--limit", str(LIMIT)]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-m", "lm_eval", *words], env=env, capture_output=True, text=True, check=False
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise SystemExit(done.stderr)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def own_seconds(ours: Parts, stock: Parts, clock: int) -> float:
    """Return our own time: without the harness's evaluation and the opening of the index."""
    mine = sum(ours[part][clock] for part in ("imports", "building the task", "evaluating"))
    return mine - ours["opening the index"][clock] - stock["evaluating"][clock]


def main() -> None:
    parser = arguments(__doc__, quick="one run: does it still work?")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--one", nargs=2, metavar=("TASK", "FOLDER"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(one(*options.one)))
        return
    from mrag_eval.cli._catalog import tasks_folder
    from mrag_eval.datasets import load_benchmark

    runs = 1 if options.quick else options.runs
    with tempfile.TemporaryDirectory() as name:
        cache, stock = Path(name) / "cache", Path(name) / "stock"
        stock.mkdir()
        lines = [
            json.dumps({"query": doc.query, "answers": doc.answers})
            for doc in load_benchmark({"benchmark": "demo"}).docs
        ]
        (stock / "questions.jsonl").write_text("\n".join(lines), encoding="utf-8")
        (stock / "stock.yaml").write_text(STOCK.format(path=stock / "questions.jsonl"), encoding="utf-8")
        pairs = []
        for number in range(runs + 1):
            pair = (measured(OURS, tasks_folder(), cache), measured("stock_questions", stock, cache))
            # the first run builds the index and fills the caches
            if number:
                pairs.append(pair)
        shutil.copytree(tasks_folder(), stock / "ours")
        env = surroundings(cache)
        commands = [[command_seconds(task, stock, env) for task in (OURS, "stock_questions")] for _ in range(runs)]
    wall, cpu = ([own_seconds(ours, theirs, clock) for ours, theirs in pairs] for clock in (0, 1))
    parts: dict[str, tuple[float, float]] = {}
    for which, prefix in ((0, ""), (1, "stock task: ")):
        for part in pairs[0][which]:
            clocks = ([pair[which][part][clock] for pair in pairs] for clock in (0, 1))
            parts[prefix + part] = tuple(map(statistics.median, clocks))  # type: ignore[assignment]
    print(f"a run of {OURS}, {LIMIT:g} rows; medians over {runs} runs, in seconds of the clock and of the processor")
    for part, (clock, processor) in parts.items():
        print(f"    {part:<36} {clock:6.2f} {processor:6.2f}")
    own = [statistics.median(seconds) for seconds in (wall, cpu)]
    print(f"our own code, the index aside: {own[0]:.2f} s, {own[1]:.2f} s of the processor")
    figures: dict[str, Any] = {part: round(clock, 3) for part, (clock, _) in parts.items()}
    figures["processor"] = round(own[1], 3)
    found = row(
        "a small run's start",
        "0.5 s in our code",
        wall,
        at_most=0.5,
        judged=not options.quick,
        unit="s",
        figures=figures,
    )
    of_ours, of_stock = map(statistics.median, zip(*commands, strict=True))
    print(f"lm_eval --tasks: {of_ours:.2f} s of the processor with our task, {of_stock:.2f} s with the stock task")
    command = row(
        "lm_eval --tasks with a task of ours, 5 rows",
        "the same with a plain task",
        [mine / theirs for mine, theirs in commands],
        at_most=1.1,
        judged=not options.quick,
        figures={"ours": round(of_ours, 3), "plain": round(of_stock, 3)},
    )
    write_rows(options.json, [found, command])


if __name__ == "__main__":
    main()
