"""What some rows of tasks took: from a finished run, or from one of a few rows."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from mrag_eval.planning import Observed, Pilot, Spent
from mrag_eval.platform import DataError, repeated_later

if TYPE_CHECKING:
    from mrag_eval.models import Ledger
    from mrag_eval.report import LeafResult, Sample


def run_pilot(words: Sequence[str], *, debug: bool = False) -> Pilot:
    """Run ``mrag-eval run`` with these options; return what the rows took.

    Its files are not kept. The calls are in the cache, so that the run that follows does not make them again.
    """
    from mrag_eval.cli._harness import run

    with TemporaryDirectory(prefix="mrag-pilot-") as folder:
        start = time.perf_counter()
        with repeated_later():
            run([*words, "--log_samples", "--output_path", folder], debug=debug)
        return replace(read_pilot(Path(folder)), seconds=time.perf_counter() - start)


def read_pilot(folder: Path) -> Pilot:
    """Return what the rows of a finished run took, from its samples and results; its time is not taken from there.

    Raises DataError if the folder holds no samples of our tasks.
    """
    from mrag_eval.report import read_results, read_samples

    by_task: dict[str, Observed] = {}
    for file in read_results([folder]):
        for task, leaf in file.leaves.items():
            samples = file.samples(task)
            if samples is not None:
                by_task[task] = _observed(leaf, read_samples(samples))
    if not by_task:
        raise DataError(
            f"--pilot {folder}: no samples of our tasks", "name the --output_path of a run with --log_samples"
        )
    return Pilot(by_task)


def _observed(leaf: LeafResult, samples: Sequence[Sample]) -> Observed:
    from mrag_eval.text import estimated_tokens

    spent: dict[str, Spent] = defaultdict(Spent)
    for sample in samples:
        replies = sample.replies
        written = sum(map(estimated_tokens, replies)) if leaf.config.scored_by != "likelihood" else 0
        spent["evaluated"] += Spent(len(replies), len(replies) * estimated_tokens(sample.prompt or ""), written)
        for traced in () if sample.trace is None else sample.trace.rounds:
            for role, usage in traced.usage.items():
                who = "planner" if role == "planner" else "critic"
                spent[who] += Spent(usage.calls, usage.tokens_in, usage.tokens_out)
    scores = leaf.scores
    for table in (*scores.panels.values(), scores.relevance):
        for judge, ledger in ((table and table.ledger) or {}).items():
            spent[judge] += _asked(ledger)
    return Observed(len(samples), dict(spent))


def _asked(ledger: Ledger) -> Spent:
    """Return the calls of a judge, with those that the cache answered, whose tokens are taken to be the others'."""
    calls = ledger.calls + ledger.cached
    share = calls / ledger.calls if ledger.calls else 0.0
    return Spent(calls, ledger.tokens_in * share, ledger.tokens_out * share)
