"""Score a log by string metrics, beside ragas and deepeval on the same rows.

    python benchmarks/string_metrics.py --ragas PYTHON --deepeval PYTHON [--runs 3] [--quick] [--json FILE]

``PYTHON`` is an interpreter of an environment that has the package; without the option, MRAG_TEST_RAGAS and
MRAG_TEST_DEEPEVAL name it. The rows are those of ``score_log.py``, with the reference as the answer of a quarter of
them, and within the answer of another. Exact match and, for ragas, the presence of the reference are computed by each
package's own evaluation of all rows, which are in memory, and by the metrics alone. Ours tells languages, keeps
records, computes controls and intervals and writes files as well. These metrics need no contexts, and the rows have
none; how long the evaluation takes with them, whose languages we tell, is reported. Processor times are compared, in
alternation; the scores must be the same.
"""

from __future__ import annotations

import asyncio
import json
import os
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
from score_log import rows

# Seconds of the evaluation and of each metric alone, and the scores.
Measured = dict[str, Any]
CONTEXTS = "retrieved_contexts"


def log_of(n: int) -> list[dict[str, Any]]:
    """Return the rows: the reference is the answer of a quarter of them, and in that of another.

    They are without articles and punctuation, which our metrics leave out.
    """
    log = list(rows(n))
    for number, one in enumerate(log):
        said, told = (
            [word for word in text.split() if word != "the"]
            for text in (one["response"].partition(" “")[0], one["reference"])
        )
        one |= {"response": " ".join(said), "reference": " ".join(told) or "harbour"}
        if number // 4 % 4 == 0:
            one["response"] = one["reference"]
        elif number // 4 % 4 == 1:
            one["response"] = f"{one['response']} {one['reference']} {one['response']}"
    return log


def without_contexts(log: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{key: value for key, value in one.items() if key != CONTEXTS} for one in log]


def ours(log: list[dict[str, Any]]) -> Measured:
    """Score the rows with this package."""
    import mrag_eval
    from mrag_eval.metrics import exact_match, match

    metrics = {"exact_match": exact_match, "match": match}
    # what is loaded once is not timed
    mrag_eval.score(log[:40], list(metrics))
    began = time.process_time()
    results = mrag_eval.score(log, list(metrics))
    evaluated = time.process_time() - began
    alone = {}
    for name, metric in metrics.items():
        began = time.process_time()
        for one in log:
            metric(one["response"], [one["reference"]])
        alone[name] = time.process_time() - began
    frame = results.frame
    whole = frame[frame["dimension"] == ""].set_index("metric")["value"]
    return {"evaluated": evaluated, "metrics": alone, "scores": {name: float(whole[name]) for name in metrics}}


def by_ragas(log: list[dict[str, Any]]) -> Measured:
    """Score the rows with ragas, whose Python runs this."""
    from ragas import EvaluationDataset, evaluate  # type: ignore[import-not-found,unused-ignore]
    from ragas.metrics import ExactMatch, StringPresence  # type: ignore[import-not-found,unused-ignore]

    def evaluation(part: list[dict[str, Any]]) -> Any:
        named = EvaluationDataset.from_list(part)
        return evaluate(named, [ExactMatch(), StringPresence()], show_progress=False)

    async def seconds(metric: Any, samples: list[Any]) -> float:
        began = time.process_time()
        for sample in samples:
            await metric.single_turn_ascore(sample)
        return time.process_time() - began

    metrics = {"exact_match": ExactMatch(), "match": StringPresence()}
    evaluation(log[:40])
    began = time.process_time()
    result = evaluation(log)
    evaluated = time.process_time() - began
    samples = EvaluationDataset.from_list(log).samples
    alone = {name: asyncio.run(seconds(metric, samples)) for name, metric in metrics.items()}
    scores = {name: sum(result[metric.name]) / len(log) for name, metric in metrics.items()}
    return {"evaluated": evaluated, "metrics": alone, "scores": scores}


def by_deepeval(log: list[dict[str, Any]]) -> Measured:
    """Score the rows with deepeval, whose Python runs this. It has no metric of presence without a model."""
    from deepeval import evaluate  # type: ignore[import-not-found,unused-ignore]
    from deepeval.evaluate import AsyncConfig, CacheConfig, DisplayConfig  # type: ignore[import-not-found,unused-ignore]
    from deepeval.metrics import ExactMatchMetric  # type: ignore[import-not-found,unused-ignore]
    from deepeval.test_case import LLMTestCase  # type: ignore[import-not-found,unused-ignore]

    def cases(part: list[dict[str, Any]]) -> list[Any]:
        return [
            LLMTestCase(
                input=one["user_input"],
                actual_output=one["response"],
                expected_output=one["reference"],
                retrieval_context=one.get(CONTEXTS),
            )
            for one in part
        ]

    def evaluation(part: list[dict[str, Any]]) -> Any:
        return evaluate(
            cases(part),
            [ExactMatchMetric()],
            async_config=AsyncConfig(run_async=False),
            cache_config=CacheConfig(write_cache=False),
            display_config=DisplayConfig(show_indicator=False, print_results=False, inspect_after_run=False),
        )

    evaluation(log[:40])
    began = time.process_time()
    result = evaluation(log)
    evaluated = time.process_time() - began
    listed, metric = cases(log), ExactMatchMetric()
    began = time.process_time()
    for case in listed:
        metric.measure(case, _show_indicator=False)
    alone = time.process_time() - began
    right = sum(one.metrics_data[0].score for one in result.test_results)
    return {
        "evaluated": evaluated,
        "metrics": {"exact_match": alone},
        "scores": {"exact_match": right / len(log)},
    }


PEERS = {"ours": ours, "ragas": by_ragas, "deepeval": by_deepeval}


def measured(package: str, python: str, log: Path, folder: Path) -> Measured:
    """Let a package score the rows in a process of its own, away from this project."""
    env = {**os.environ, "RAGAS_DO_NOT_TRACK": "true", "DEEPEVAL_TELEMETRY_OPT_OUT": "YES", "TQDM_DISABLE": "1"}
    if package != "ours":
        env = {name: value for name, value in env.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    words = [python, __file__, "--by", package, str(log)]
    done = subprocess.run(words, cwd=folder, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{package}: {done.stderr or done.stdout}")
    found: Measured = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    """Let each package score the rows, and print all times."""
    parser = arguments(__doc__)
    parser.add_argument("--ragas", default=os.environ.get("MRAG_TEST_RAGAS"), metavar="PYTHON")
    parser.add_argument("--deepeval", default=os.environ.get("MRAG_TEST_DEEPEVAL"), metavar="PYTHON")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--by", nargs=2, metavar=("PACKAGE", "FILE"), help="let that package score the rows of a file")
    options = parser.parse_args()
    if options.by:
        package, file = options.by
        print(f"\n{json.dumps(PEERS[package](json.loads(Path(file).read_text('utf-8'))))}")
        return
    pythons = {"ragas": options.ragas, "deepeval": options.deepeval}
    peers = {name: python for name, python in pythons.items() if python}
    for name, python in peers.items():
        if shutil.which(python) is None:
            parser.error(f"--{name}: there is no program {python}; name the Python of an environment that has {name}")
    if not peers:
        print("no Python of ragas or deepeval is named: --ragas PYTHON, --deepeval PYTHON")
        write_rows(options.json, [])
        return
    n, runs = (200, 1) if options.quick else (20_000, options.runs)
    log = log_of(n)
    asked = {"ours": sys.executable, **peers}
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        files = {"without contexts": place / "plain.json", "with three contexts each": place / "contexts.json"}
        for file, content in zip(files.values(), (without_contexts(log), log), strict=True):
            file.write_text(json.dumps(content, ensure_ascii=False), "utf-8")
        found = {
            what: [{one: measured(one, python, file, place) for one, python in asked.items()} for _ in range(runs)]
            for what, file in files.items()
        }
    table = []
    for what, times in found.items():
        print(f"{n:,} rows {what}; milliseconds of the processor for each, medians of {runs}; scores")
        for package in asked:
            spent = [(run[package]["evaluated"], sum(run[package]["metrics"].values())) for run in times]
            whole, alone = (statistics.median(part) / n * 1000 for part in zip(*spent, strict=True))
            print(f"    {package:<9} as a whole {whole:.3f}, metrics alone {alone:.3f}   {times[0][package]['scores']}")
        bounded = what == "without contexts"
        for package in peers:
            same = all(compared(run["ours"], run[package]) for run in times)
            ratios = [run["ours"]["evaluated"] / run[package]["evaluated"] for run in times]
            bound: dict[str, Any] = {"judged": not options.quick, "holds": same, "at_most": 1.0}
            limits = bound if bounded else {**bound, "at_most": None}
            table.append(row(f"score {n:,} rows {what} by string metrics", package, ratios, **limits))
            if bounded:
                alone = [ratio_of_metrics(run["ours"], run[package]) for run in times]
                table.append(row(f"string metrics alone, {n:,} rows", package, alone, **bound))
    write_rows(options.json, table)


def compared(mine: Measured, theirs: Measured) -> bool:
    """Return whether the scores are the same."""
    return all(abs(mine["scores"][name] - score) < 1e-9 for name, score in theirs["scores"].items())


def ratio_of_metrics(mine: Measured, theirs: Measured) -> float:
    """Return the time of our metrics over that of theirs, of which there may be fewer."""
    return sum(mine["metrics"][name] for name in theirs["metrics"]) / sum(theirs["metrics"].values())


if __name__ == "__main__":
    main()
