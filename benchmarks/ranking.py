"""Compare ranking measures with the bare pytrec_eval call on the same qrels and run, in one process.

    python benchmarks/ranking.py            5,000 queries x 100 documents
    python benchmarks/ranking.py --quick    200 queries, for a smoke test

The calls alternate and medians are compared. The bare call builds its evaluator and evaluates; ours also breaks ties,
checks the input and fills in missing queries. Ours uses the ranks of the relevant documents.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable
from typing import Any

import pytrec_eval

from mrag_eval.metrics import ranking_metrics

MEASURES = {
    "hit@20": ("success.20", "success_20"),
    "ndcg@20": ("ndcg_cut.20", "ndcg_cut_20"),
    "mrr": ("recip_rank", "recip_rank"),
    "recall@20": ("recall.20", "recall_20"),
}


def make(queries: int, documents: int, seed: int) -> tuple[dict[str, dict[str, int]], dict[str, dict[str, float]]]:
    """Return runs with distinct scores, and five relevant documents per query, three of them retrieved."""
    rng = random.Random(seed)
    qrels, run = {}, {}
    for query in range(queries):
        found = [f"doc-{number}" for number in rng.sample(range(10_000_000), documents)]
        scores = rng.sample(range(1_000_000), documents)
        run[f"q{query}"] = {document: score / 1e6 for document, score in zip(found, scores, strict=True)}
        qrels[f"q{query}"] = dict.fromkeys([*rng.sample(found, 3), "missed-1", "missed-2"], 1)
    return qrels, run


def bare(qrels: dict[str, dict[str, int]], run: dict[str, dict[str, float]]) -> Any:
    return pytrec_eval.RelevanceEvaluator(qrels, {name for name, _ in MEASURES.values()}).evaluate(run)


def main() -> None:
    from _rows import arguments, row, write_rows

    parser = arguments(__doc__, quick="200 queries, to see that it runs")
    parser.add_argument("--queries", type=int, default=5000)
    parser.add_argument("--documents", type=int, default=100)
    parser.add_argument("--repetitions", type=int, default=9)
    options = parser.parse_args()
    if options.quick:
        options.queries, options.repetitions = 200, 3
    qrels, run = make(options.queries, options.documents, seed=0)
    names = tuple(MEASURES)
    calls: dict[str, Callable[[], Any]] = {
        "bare pytrec_eval": lambda: bare(qrels, run),
        "ranking_metrics": lambda: ranking_metrics(qrels, run, names),
    }
    times: dict[str, list[float]] = {name: [] for name in calls}
    values = {}
    for _ in range(options.repetitions):
        for name, call in calls.items():
            start = time.perf_counter()
            values[name] = call()
            times[name].append(time.perf_counter() - start)
    theirs, ours = values["bare pytrec_eval"], values["ranking_metrics"]
    gap = max(abs(ours[q][name] - theirs[q][key]) for q in theirs for name, (_, key) in MEASURES.items())
    baseline = statistics.median(times["bare pytrec_eval"])
    print(
        f"{options.queries} queries x {options.documents} documents, {', '.join(names)}; largest difference {gap:.1e}"
    )
    for name, seconds in times.items():
        print(f"{name:<38} {statistics.median(seconds):7.3f} s   {statistics.median(seconds) / baseline:5.2f} x")
    pairs = zip(times["ranking_metrics"], times["bare pytrec_eval"], strict=True)
    write_rows(
        options.json,
        [
            row(
                f"ranking measures, {options.queries:,} x {options.documents}",
                "bare pytrec_eval",
                [mine / other for mine, other in pairs],
                holds=gap < 1e-9,
                figures={name: statistics.median(seconds) for name, seconds in times.items()},
            )
        ],
    )


if __name__ == "__main__":
    main()
