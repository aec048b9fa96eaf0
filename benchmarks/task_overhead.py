"""Measure the cost of a row besides the model: this package against the stock harness with the same prompts in Jinja.

    python benchmarks/task_overhead.py [--rows 100000] [--repeats 2] [--work cached] [--quick] [--json FILE]

Work ``cached``: each row is searched for in a lexical index, its results are read from the cache on disk, three
passages are shown, and ranking measures are computed; the rows of the stock task contain the same passages. Work
``given``: the rows bring their passages. The harness's dummy model runs both tasks, each in its own process, in
alternation; the clock starts after a run of ten rows, which absorbs one-time imports. The stock task writes its prompt
inline in YAML, as tasks usually do, and scores an exact match; ours scores character n-grams and the language of the
answer, with intervals. Prompts are compared before anything is measured. Peak memory is that of the whole process.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import resource
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

_COMMON = """
class: !function mrag_eval.task.RagTask
output_type: generate_until
test_split: test
num_fewshot: 0
metric_list: []
generation_kwargs: {{until: [], do_sample: false, max_gen_toks: 16}}
prompt: {{template: short_answer, max_tokens: 100000}}
metadata: {{version: 1.0}}
"""
OURS = {
    "given": """
task: given
data: {{benchmark: jsonl, path: {folder}/rows.jsonl}}
retrieval: {{mode: given, k: 3}}
metrics: [char3gram_recall, correct_language]
"""
    + _COMMON,
    "cached": """
task: cached
data: {{benchmark: jsonl, path: {folder}/questions.jsonl, corpus: {folder}/corpus.jsonl}}
retrieval: {{mode: all, k: 3, kind: bm25}}
metrics: [char3gram_recall, correct_language, hit@3, mrr@3]
"""
    + _COMMON,
}
SYSTEM = (
    "You answer questions with the help of the documents you are given. Reply with the shortest answer that is "
    "complete: a name, a number or a few words, no sentence around it. Write the answer in English, whatever language "
    "the documents are in."
)
STOCK = """
task: stock_{work}
output_type: generate_until
dataset_path: json
dataset_kwargs: {{data_files: {{test: {folder}/stock_{work}.jsonl}}}}
test_split: test
num_fewshot: 0
generation_kwargs: {{until: ["@@"], do_sample: false, max_gen_toks: 16}}
description: "{system}\\n\\n"
doc_to_text: "<documents>\\n\
{{% for p in given_passages %}}<document index=\\"{{{{ loop.index }}}}\\">\\n{{{{ p.text }}}}\\n\
</document>\\n{{% endfor %}}</documents>\\n\\n<question>\\n{{{{ query }}}}\\n</question>"
doc_to_target: "{{{{ answers[0] }}}}"
metric_list: [{{metric: exact_match, aggregation: mean, higher_is_better: true}}]
metadata: {{version: 1.0}}
"""
WORDS = ("lamp river stone", "лампа река камень", "램프 강 돌", "灯 河 石")
PASSAGES = 2000


def write_lines(path: Path, lines: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), encoding="utf-8")


def write_files(folder: Path, rows: int) -> None:
    """Write questions about one of 2,000 passages of forty words in four scripts, and rows with their own passages."""
    corpus = []
    for i in range(PASSAGES):
        text = f"number{i} " + " ".join([WORDS[i % 4]] * 13)
        corpus.append({"id": f"p{i}", "lang": "en", "text": text})
    questions, given = [], []
    for i in range(rows):
        text = " ".join([WORDS[i % 4]] * 13)
        # each number is asked for fifty times, in different words
        query = f"Which {WORDS[i % 4]} is number{i % PASSAGES}, question {i}?"
        question: dict[str, Any] = {"id": str(i), "query": query, "lang": "en", "answers": [WORDS[i % 4]]}
        questions.append({**question, "relevant_ids": [f"p{i % PASSAGES}"]})
        passages = [{"id": f"{i}-{j}", "lang": "en", "text": f"{j} {text}"} for j in range(3)]
        given.append({**question, "given_passages": passages})
    write_lines(folder / "corpus.jsonl", corpus)
    write_lines(folder / "questions.jsonl", questions)
    for name in ("rows", "stock_given"):
        write_lines(folder / f"{name}.jsonl", given)
    for work, yaml in OURS.items():
        (folder / f"{work}.yaml").write_text(yaml.format(folder=folder), encoding="utf-8")
        stock = STOCK.format(folder=folder, work=work, system=SYSTEM)
        (folder / f"stock_{work}.yaml").write_text(stock, encoding="utf-8")


def retrieve_once(folder: Path) -> None:
    """Fill the cache, and write the rows with their retrieved passages in the form that the stock task reads."""
    from lm_eval.tasks import TaskManager

    manager = TaskManager(include_path=str(folder), include_defaults=False)
    supply = manager.load(["cached"])["tasks"]["cached"].supply  # type: ignore[union-attr]
    supply.prepare(list(supply.docs))
    lines = []
    for key in supply.docs:
        found = supply.row(key)
        passages = [{"text": passage["text"]} for passage in found["passages"]]
        lines.append({"id": key, "query": found["query"], "answers": found["answers"], "given_passages": passages})
    write_lines(folder / "stock_cached.jsonl", lines)


def one(task: str, folder: str) -> dict[str, Any]:
    """Run in its own process: return seconds for the whole task, peak memory and the first prompts."""
    import lm_eval
    from lm_eval.tasks import TaskManager

    logging.disable(logging.WARNING)
    manager = TaskManager(include_path=folder, include_defaults=False)

    def run(limit: int | None) -> Any:
        return lm_eval.simple_evaluate(
            model="dummy",
            tasks=[task],
            task_manager=manager,
            bootstrap_iters=0,
            log_samples=limit is not None,
            limit=limit,
        )

    first = run(10)
    start = time.perf_counter()
    run(None)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    prompts = [sample["arguments"][0][0].strip() for sample in first["samples"][task]]
    return {"seconds": seconds, "peak_mb": peak, "prompts": prompts}


def apart(task: str, folder: Path) -> dict[str, Any]:
    """Run :func:`one` in a new process."""
    done = subprocess.run(
        [sys.executable, __file__, "--one", task, str(folder)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    parser = arguments(__doc__, quick="500 rows, once: does it still run?")
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--work", action="append", choices=list(OURS), help="default: cached; may be repeated")
    parser.add_argument("--one", nargs=2, metavar=("TASK", "FOLDER"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(one(*options.one)))
        return
    rows, repeats = (500, 1) if options.quick else (options.rows, options.repeats)
    found = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ |= {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "TQDM_DISABLE": "1"}
        os.environ |= {"HF_DATASETS_CACHE": str(folder / "hf"), "MRAG_CACHE": str(folder / "cache")}
        write_files(folder, rows)
        works = options.work or ["cached"]
        if "cached" in works:
            logging.disable(logging.WARNING)
            retrieve_once(folder)
        for work in works:
            found.append(compared(work, folder, rows, repeats, judged=not options.quick))
    write_rows(options.json, found)


def compared(work: str, folder: Path, rows: int, repeats: int, *, judged: bool) -> dict[str, Any]:
    """Measure one kind of work, ours against stock."""
    pairs = []
    for _ in range(repeats):
        pairs.append((apart(work, folder), apart(f"stock_{work}", folder)))
    same = pairs[0][0]["prompts"] == pairs[0][1]["prompts"]
    if not same:
        print("the prompts differ:", pairs[0][0]["prompts"][0], pairs[0][1]["prompts"][0], sep="\n---\n")
    ratios = [ours["seconds"] / stock["seconds"] for ours, stock in pairs]
    per_row = [statistics.median(pair[i]["seconds"] for pair in pairs) / rows * 1e3 for i in (0, 1)]
    memory = [max(pair[i]["peak_mb"] for pair in pairs) for i in (0, 1)]
    print(
        f"{rows:,} rows, passages {work}: mrag_eval {per_row[0]:.3f} ms/row, stock Jinja YAML {per_row[1]:.3f} ms/row, "
        f"ratio {statistics.median(ratios):.2f}; peak {memory[0]:,.0f} MB, {memory[1]:,.0f} MB"
    )
    retrieval = "retrieval cached" if work == "cached" else "passages given"
    figures = {
        "ms a row": round(per_row[0], 4),
        "ms a row, stock": round(per_row[1], 4),
        "peak MB": round(memory[0]),
        "peak MB, stock": round(memory[1]),
    }
    against = "stock harness, same prompts in Jinja YAML"
    work_done = f"{rows:,}-row task, {retrieval}"
    return row(work_done, against, ratios, at_most=0.5, judged=judged, holds=same, figures=figures)


if __name__ == "__main__":
    main()
