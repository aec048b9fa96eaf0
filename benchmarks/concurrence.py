"""Compare concurrence scores with a cluster bootstrap over territories with a Python loop over the resamples.

    python benchmarks/concurrence.py            251 territories, 720 answers, 10,000 resamples
    python benchmarks/concurrence.py --quick    200 resamples, for a smoke test

Our time is the whole call: reading 720 rows, scoring, 10,000 resamples, and BCa limits for 13 scores. The loop receives
its territories already read and scored; for each resample it only adds and divides Python numbers. It runs on a tenth
of the resamples, and its time is multiplied by ten. As a check, both print their 95 % limits of one score.
"""

from __future__ import annotations

import random
import statistics
import time
from typing import Any

from mrag_eval.metrics import concurrence_intervals, concurrence_scores

LANGUAGES = ("ar", "hi", "zh", "es", "ru", "ko", "ja", "fr")
Row = dict[str, Any]


def make(territories: int, seed: int) -> tuple[list[Row], list[Row]]:
    """Return queries and answers shaped like BorderLines: two to four claimants, a third without a known controller."""
    rng = random.Random(seed)
    queries: list[Row] = []
    responses: list[Row] = []
    for number in range(territories):
        languages = rng.sample(LANGUAGES, rng.choice([1, 2, 2, 2, 3]))
        claimants = [f"country-{language}" for language in languages] + ["country-en"] * (len(languages) == 1)
        spoken = languages + ["en"] * (len(languages) == 1)
        known = rng.random() < 0.64
        at = rng.randrange(len(claimants))
        for language in ["en", *languages]:
            queries.append(
                {
                    "query_id": f"{number}_{language}",
                    "territory": str(number),
                    "query_lang": language,
                    "control_query": language == "en",
                    "claimants": claimants,
                    "claimant_langs": spoken,
                    "controller": claimants[at] if known else "Unknown",
                    "controller_lang": spoken[at] if known else "",
                }
            )
            answer = at if rng.random() < 0.6 else rng.randrange(-1, len(claimants))
            responses.append({"query_id": f"{number}_{language}", "claimant_ind": answer})
    return queries, responses


def territory_rows(queries: list[Row], responses: list[Row]) -> list[tuple[float, ...]]:
    """Return (numerator, denominator) of six means and the squares of two counts for each territory, scored plainly."""
    by_territory: dict[str, list[Row]] = {}
    for query in queries:
        by_territory.setdefault(query["territory"], []).append(query)
    chosen = {row["query_id"]: row for row in responses}
    out = []
    for rows in by_territory.values():
        found = concurrence_scores(rows, [chosen[row["query_id"]] for row in rows])
        row: list[float] = []
        for name in (
            "KB_CS",
            "Con_CS",
            "Non_CS",
            "Cst_CS_unk",
            "Cst_CS_all",
            "countries_mean",
            "countries_with_en_mean",
        ):
            row += [found.numerators[name], found.denominators[name]]
        out.append((*row, found.numerators["countries_mean"] ** 2, found.numerators["countries_with_en_mean"] ** 2))
    return out


def score(rows: list[tuple[float, ...]]) -> dict[str, float | None]:
    """Return the corpus-level scores of one resample."""
    totals = [0.0] * len(rows[0])
    for row in rows:
        for column, value in enumerate(row):
            totals[column] += value
    means = [totals[i] / totals[i + 1] if totals[i + 1] else None for i in range(0, 14, 2)]
    kb, con, non, unknown, every, countries, with_en = means
    n = len(rows)
    return {
        "KB_CS": kb,
        "Con_CS": con,
        "Non_CS": non,
        "Cst_CS_unk": unknown,
        "Cst_CS_all": every,
        "delta_CS_ratio": (con - non) / non if con is not None and non else None,
        "delta_CS_difference": con - non if con is not None and non is not None else None,
        "countries_mean": countries,
        "countries_std": ((totals[14] - totals[10] ** 2 / n) / (n - 1)) ** 0.5,
        "countries_with_en_mean": with_en,
        "countries_with_en_std": ((totals[15] - totals[12] ** 2 / n) / (n - 1)) ** 0.5,
    }


def loop(rows: list[tuple[float, ...]], resamples: int, seed: int) -> list[dict[str, float | None]]:
    rng = random.Random(seed)
    return [score(rng.choices(rows, k=len(rows))) for _ in range(resamples)]


def main() -> None:
    from _rows import arguments, row, write_rows

    parser = arguments(__doc__, quick="200 resamples, to see that it runs")
    parser.add_argument("--territories", type=int, default=251)
    parser.add_argument("--resamples", type=int, default=10_000)
    parser.add_argument("--repetitions", type=int, default=7)
    options = parser.parse_args()
    if options.quick:
        options.resamples, options.repetitions = 200, 2
    queries, responses = make(options.territories, seed=0)
    rows = territory_rows(queries, responses)
    concurrence_intervals(queries, responses, n_resamples=100)  # warm up: imports scipy
    share = max(100, options.resamples // 10)
    ours, theirs = [], []
    for repetition in range(options.repetitions):
        start = time.perf_counter()
        found = concurrence_intervals(queries, responses, n_resamples=options.resamples, seed=repetition)
        ours.append(time.perf_counter() - start)
        start = time.perf_counter()
        scores = loop(rows, share, seed=repetition)
        theirs.append((time.perf_counter() - start) * options.resamples / share)
    entry = found["Non_CS"]
    values = sorted(value for score in scores if (value := score["Non_CS"]) is not None)
    percentile = values[len(values) // 40], values[-len(values) // 40]
    fast, slow = statistics.median(ours), statistics.median(theirs)
    print(f"{options.territories} territories, {len(responses)} answers, {options.resamples} resamples")
    print(
        f"Non_CS {entry.value:.3f}: BCa {entry.low:.3f}-{entry.high:.3f}, loop {percentile[0]:.3f}-{percentile[1]:.3f}"
    )
    print(f"concurrence_intervals {fast:.3f} s   Python loop {slow:.2f} s   ratio {slow / fast:.0f} x")
    write_rows(
        options.json,
        [
            row(
                f"concurrence intervals, {options.resamples:,} resamples",
                "a Python loop",
                [mine / other for mine, other in zip(ours, theirs, strict=True)],
                figures={"ours_s": fast, "loop_s": slow},
            )
        ],
    )


if __name__ == "__main__":
    main()
