"""Time BordIRlines' scores, intervals and tables for 7 models in 6 modes, 720 answers each.

    python benchmarks/bordirlines_scores.py            42 runs of 720 answers
    python benchmarks/bordirlines_scores.py --quick    4 runs, for a smoke test

Timed one by one: the scores of Table 4 (concurrence with three ways to count refusals, with bootstrap intervals); for
answers with ten documents, citations by language and resource group, with intervals; and reading the result files into
the paper's tables. Questions are in 49 languages, a third of them in English, the others as unevenly distributed as in
the paper.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import time
from pathlib import Path
from typing import Any

from mrag_eval.config import Measurement
from mrag_eval.core import RESOURCE_GROUPS
from mrag_eval.report import render
from mrag_eval.report.tables._layouts import layout_tables
from mrag_eval.scoring import RowRecord, TaskScores
from mrag_eval.scoring._task_level import citation_tables, concurrence_table

GROUP_OF = {code: group for group, members in RESOURCE_GROUPS.items() for code in members if code != "en"}
# the most frequent languages first; 49 with English
LANGUAGES = tuple(dict.fromkeys(("zh", "ar", "hi", "es", "ru", "fr", "sw", "az", *sorted(GROUP_OF))))[:48]
FREQUENCY = [1 / (1 + place) for place in range(len(LANGUAGES))]
MODES = {
    "no_ir": "no_ir_direct",
    "qlang": "qlang_direct_openai",
    "qlang+en": "qlang_en_direct_openai",
    "en_only": "en_only_direct_openai",
    "rel_langs": "rel_langs_direct_openai",
    "swap_docs": "swap_docs_direct_openai",
}
TERRITORIES = 251


def records(seed: int, documents: bool) -> list[RowRecord]:
    """Return what the hook gathers from a run over 251 territories: two to four claimants, a third without a
    controller.
    """
    rng = random.Random(seed)
    out = []
    for number in range(TERRITORIES):
        wanted = rng.choice([1, 2, 2, 2, 3])
        languages = list(dict.fromkeys(rng.choices(LANGUAGES, FREQUENCY, k=wanted)))
        claimants = [f"country-{code}" for code in languages] + ["country-en"] * (len(languages) == 1)
        spoken = languages + ["en"] * (len(languages) == 1)
        known = rng.random() < 0.64
        at = rng.randrange(len(claimants))
        for lang in ["en", *languages]:
            index = at if rng.random() < 0.6 else rng.randrange(-1, len(claimants))
            record: dict[str, Any] = {
                "row": f"{number}_{lang}",
                "group": str(number),
                "cell": {"query_lang": lang, "resource_group": GROUP_OF.get(lang, "high")},
                "values": {},
                "concurrence": {
                    "query_id": f"{number}_{lang}",
                    "territory": str(number),
                    "query_lang": lang,
                    "control_query": lang == "en",
                    "claimants": claimants,
                    "claimant_langs": spoken,
                    "controller": claimants[at] if known else "Unknown",
                    "controller_lang": spoken[at] if known else "",
                    "claimant_ind": index,
                    "outcome": "refused" if index < 0 else "chosen",
                },
            }
            if documents:
                cited = " ".join(f"<doc{rng.randrange(11)}>" for _ in range(4))
                record["citations"] = {
                    "answer": f"Cited Documents: 0, 1\nChosen Option: A)\nExplanation: because {cited}",
                    "document_langs": [rng.choice([*spoken, "en"]) for _ in range(10)],
                }
            out.append(RowRecord.from_dict(record))
    return out


def main() -> None:
    """Time the scores of all runs and the tables over their result files."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="two models in two modes")
    quick = parser.parse_args().quick
    models, modes = (2, list(MODES)[:2]) if quick else (7, list(MODES))
    gathered = {(m, mode): records(m, mode != "no_ir") for m in range(models) for mode in modes}
    busy = time.process_time()
    started = time.perf_counter()
    scores = {key: concurrence_table(rows) for key, rows in gathered.items()}
    scored = time.perf_counter() - started
    started = time.perf_counter()
    citing = [citation_tables(rows) for (_, mode), rows in gathered.items() if mode != "no_ir"]
    cited = time.perf_counter() - started
    with tempfile.TemporaryDirectory() as folder:
        for (m, mode), found in scores.items():
            task = f"bordirlines_{MODES[mode]}"
            record = Measurement(task, setting={"retrieval": {"mode": mode}, "data": {}}).to_dict()
            config = {"measurement": record}
            config["scores"] = TaskScores(len(gathered[m, mode]), {}, concurrence=found).to_dict()
            run = {"model": "hf", "model_args": {"pretrained": f"model-{m}"}}
            content = {"configs": {task: config}, "results": {}, "date": float(m), "config": run}
            (Path(folder) / f"results_{m}_{mode}.json").write_text(json.dumps(content), encoding="utf-8")
        started = time.perf_counter()
        tables = layout_tables("bordirlines", [folder])
        text = render(tables)
        tabled = time.perf_counter() - started
    answers = sum(map(len, gathered.values()))
    print(f"{len(gathered)} runs, {answers:,} answers, 2,000 resamples an interval")
    print(f"concurrence  {scored:6.2f} s   {1000 * scored / len(gathered):6.0f} ms a run")
    print(f"citations    {cited:6.2f} s   {1000 * cited / len(citing):6.0f} ms a run with documents")
    print(f"tables       {tabled:6.2f} s   {sum(len(t.rows) for t in tables)} rows, {len(text):,} characters")
    print(f"together     {scored + cited + tabled:6.2f} s   (processor time {time.process_time() - busy:.2f} s)")


if __name__ == "__main__":
    main()
