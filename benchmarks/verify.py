"""Measure ``mrag-eval verify`` against the scoring of the same runs: seven models in six modes, 720 answers each.

    python benchmarks/verify.py [--quick] [--json FILE]

Questions are about territories, as in BordIRlines; in five of the modes ten documents are shown. A run here has a model
that replies at once: prompts, metrics, records, hashes, all scores with their intervals, and the files. A verification
reads these files and does all of it again. The scores alone (metrics, records, intervals) are timed as well. Processor
times of one process are compared.
"""

from __future__ import annotations

import json
import logging
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parent))

from _rows import arguments, row, write_rows
from bordirlines_scores import FREQUENCY, LANGUAGES

_TASK = """
class: !function mrag_eval.task.RagTask
task: {name}
output_type: generate_until
generation_kwargs: {{until: [], do_sample: false, max_gen_toks: 16}}
data: {{benchmark: jsonl, path: {folder}/{name}.jsonl}}
retrieval: {{mode: {mode}}}
prompt: {{template: {template}}}
metrics: [{metrics}]
metadata: {{version: 1.0}}
"""
_METRICS = ["concurrence", "option_read", "option_refused", "option_unread"]
_TEXT = "the river border town council law map north harbour treaty people island claim coast village"


def write_tasks(folder: Path, modes: int, territories: int) -> list[str]:
    """Write the tasks and their questions; return their names. The first shows no documents."""
    names = []
    for number in range(modes):
        name = f"mode_{number}"
        rows = questions(random.Random(0), territories, documents=10 if number else 0, mode=number)
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(one) + "\n" for one in rows), "utf-8")
        metrics = [*_METRICS, *(["citations"] if number else [])]
        template = "territory_citation" if number else "territory_direct"
        mode = "given" if number else "no_ir"
        text = _TASK.format(name=name, folder=folder, mode=mode, template=template, metrics=", ".join(metrics))
        (folder / f"{name}.yaml").write_text(text, "utf-8")
        names.append(name)
    return names


def questions(rng: random.Random, territories: int, documents: int, mode: int) -> list[dict[str, Any]]:
    """Return questions on territories with two to four claimants, each in the claimants' languages and English."""
    out = []
    texts, words = random.Random(mode), _TEXT.split()
    for number in range(territories):
        languages = list(dict.fromkeys(rng.choices(LANGUAGES, FREQUENCY, k=rng.choice([1, 2, 2, 2, 3]))))
        spoken = languages + ["en"] * (len(languages) == 1)
        claimants = [f"Country {code}" for code in spoken]
        for lang in ["en", *languages]:
            shown = [
                {"id": f"{number}-{i}", "lang": texts.choice(spoken), "text": " ".join(texts.choices(words, k=70))}
                for i in range(documents)
            ]
            out.append(
                {
                    "id": f"{number}_{lang}",
                    "query": f"Is territory {number} a territory of A) or B)?",
                    "lang": lang,
                    "choices": claimants,
                    "gold_choice": 0,
                    "group_id": str(number),
                    "territory": str(number),
                    "claimants": claimants,
                    "claimant_langs": spoken,
                    "controller": claimants[0] if number % 3 else "Unknown",
                    "controller_lang": spoken[0] if number % 3 else "",
                    "control_query": lang == "en",
                    **({"given_passages": shown} if shown else {}),
                }
            )
    return out


def model(seed: int) -> Any:
    """Return a model that chooses an option at random, with citations where it is shown documents."""
    from mrag_eval.harness import LM

    rng = random.Random(seed)

    class Chooser(LM):
        def generate_until(self, requests: list[Any], disable_tqdm: bool = False) -> list[str]:
            return [self._reply(request) for request in requests]

        def _reply(self, request: Any) -> str:
            options = request.doc["choices"]
            index = rng.randrange(len(options) + 1)
            chosen = f"{chr(65 + index)}) {options[index]}" if index < len(options) else "I would rather not say."
            if not request.doc.get("passages"):
                return chosen
            cited = " ".join(f"it is so <doc{rng.randrange(10)}>." for _ in range(4))
            return f"Cited Documents: 0, 1\nChosen Option: {chosen}\nExplanation: because {cited}"

        def loglikelihood(self, requests: list[Any], disable_tqdm: bool = False) -> list[tuple[float, bool]]:
            raise AssertionError("no likelihoods are asked for")

        loglikelihood_rolling = loglikelihood

    return Chooser()


def timed(spent: list[float], function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function; each call adds its processor time."""

    def call(*args: Any, **kwargs: Any) -> Any:
        started = time.process_time()
        try:
            return function(*args, **kwargs)
        finally:
            spent.append(time.process_time() - started)

    return call


def main() -> None:
    """Run all models, verify their files, and print both times."""
    options = arguments(__doc__).parse_args()
    models, modes, territories = (2, 2, 20) if options.quick else (7, 6, 251)
    os.environ.setdefault("LMEVAL_LOG_LEVEL", "ERROR")
    from mrag_eval import harness
    from mrag_eval.report import verify
    from mrag_eval.task import RagTask

    logging.getLogger("lm_eval").setLevel("ERROR")
    scored: list[float] = []
    ran: list[float] = []
    for name in ("score_replies", "summarize_records"):
        setattr(RagTask, name, timed(scored, getattr(RagTask, name)))
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        names = write_tasks(folder, modes, territories)
        for number in range(models):
            manager = harness.task_manager([str(folder)])
            settings = {"model": model(number), "tasks": names, "bootstrap_iters": 100, "log_samples": True}
            timed(ran, harness.evaluate)(settings, manager, str(folder / f"out_{number}"))
        started = time.process_time()
        found = verify(sorted(folder.glob("out_*")), folder)
        spent = time.process_time() - started
    faults = [finding for file in found for finding in file.of("fault")]
    rows = sum(file.rows for file in found)
    print(f"{models * modes} runs, {rows:,} answers, {len(faults)} faults")
    print(f"runs {sum(ran):6.2f} s, their scores {sum(scored):6.2f} s, verification {spent:6.2f} s of processor time")
    work = f"verify {models * modes} runs, {rows:,} answers"
    figures = {"runs_s": sum(ran), "scores_s": sum(scored), "verify_s": spent}
    bound: dict[str, Any] = {"judged": not options.quick, "holds": not faults, "figures": figures}
    measured = [
        row(work, "running them, without a model", spent / sum(ran), at_most=1.2, **bound),
        row(work, "their scores alone", spent / sum(scored), **bound),
    ]
    write_rows(options.json, measured)


if __name__ == "__main__":
    main()
