"""What a row costs besides the model: this package against the stock harness with the same prompts in Jinja YAML.

    python benchmarks/task_overhead.py [--rows 20000] [--quick]

Both run the harness's dummy model over the same rows with three passages each, in alternation in one process, after a
run of each that is not counted: it pays for what the harness imports once a process. Medians over the repetitions. The
stock task writes its prompt inline in YAML, as tasks usually do.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["HF_DATASETS_OFFLINE"] = "1"
os.environ["TQDM_DISABLE"] = "1"

OURS = """
task: ours
class: !function mrag_eval.task.RagTask
output_type: generate_until
test_split: test
num_fewshot: 0
metric_list: []
generation_kwargs: {{until: [], do_sample: false, max_gen_toks: 16}}
data: {{benchmark: jsonl, path: {path}}}
retrieval: {{mode: given, k: 3}}
prompt: {{template: short_answer, max_tokens: 100000}}
metrics: [char3gram_recall, correct_language]
metadata: {{version: 1.0}}
"""

STOCK = """
task: stock
output_type: generate_until
dataset_path: json
dataset_kwargs: {{data_files: {{test: {path}}}}}
test_split: test
num_fewshot: 0
generation_kwargs: {{until: ["@@"], do_sample: false, max_gen_toks: 16}}
description: "You answer questions with the help of the documents you are given. Reply briefly.\\n\\n"
doc_to_text: "<documents>\\n\
{{% for p in given_passages %}}<document index=\\"{{{{ loop.index }}}}\\">\\n{{{{ p.text }}}}\\n\
</document>\\n{{% endfor %}}</documents>\\n\\n<question>\\n{{{{ query }}}}\\n</question>"
doc_to_target: "{{{{ answers[0] }}}}"
metric_list: [{{metric: exact_match, aggregation: mean, higher_is_better: true}}]
metadata: {{version: 1.0}}
"""


def write_rows(path: Path, rows: int) -> None:
    """Questions with three passages of forty words each, in four scripts."""
    words = ("lamp river stone", "лампа река камень", "램프 강 돌", "灯 河 石")
    with path.open("w", encoding="utf-8") as out:
        for i in range(rows):
            text = " ".join([words[i % 4]] * 13)
            passages = [{"id": f"{i}-{j}", "lang": "en", "text": f"{j} {text}"} for j in range(3)]
            row: dict[str, Any] = {"id": str(i), "query": f"Which {words[i % 4]} is number {i}?", "lang": "en"}
            out.write(
                json.dumps(row | {"answers": [words[i % 4]], "given_passages": passages}, ensure_ascii=False) + "\n"
            )


def seconds(task: str, folder: Path) -> float:
    """Wall time of building and evaluating the task, without loading the harness."""
    import lm_eval
    from lm_eval.tasks import TaskManager

    manager = TaskManager(include_path=str(folder), include_defaults=False)
    start = time.perf_counter()
    lm_eval.simple_evaluate(model="dummy", tasks=[task], task_manager=manager, bootstrap_iters=0, log_samples=False)
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="500 rows, once: does it still run?")
    args = parser.parse_args()
    rows, repeats = (500, 1) if args.quick else (args.rows, args.repeats)
    logging.disable(logging.WARNING)

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["HF_DATASETS_CACHE"] = str(folder / "hf")
        write_rows(folder / "rows.jsonl", rows)
        (folder / "ours.yaml").write_text(OURS.format(path=folder / "rows.jsonl"), encoding="utf-8")
        (folder / "stock.yaml").write_text(STOCK.format(path=folder / "rows.jsonl"), encoding="utf-8")
        for task in ("ours", "stock"):
            seconds(task, folder)
        taken: dict[str, list[float]] = {"ours": [], "stock": []}
        for _ in range(repeats):
            for task, runs in taken.items():
                runs.append(seconds(task, folder))
    ours, stock = (statistics.median(taken[t]) / rows * 1e3 for t in ("ours", "stock"))
    print(f"{rows:,} rows: mrag_eval {ours:.3f} ms/row, stock Jinja YAML {stock:.3f} ms/row, ratio {ours / stock:.2f}")


if __name__ == "__main__":
    main()
