"""The harness's result files: written whole, without secrets, or the run ends with an error."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from lm_eval.utils import handle_non_serializable, hash_string, sanitize_list

from mrag_eval.harness._command import exit_with_1_at_the_end
from mrag_eval.harness._under_way import tracker_of_run
from mrag_eval.platform import RunFiles, UnwrittenError, check_output, hidden

# Below the harness's logger, so that its command shows our lines as it shows its own.
log = logging.getLogger(f"lm_eval.{__name__}")


def run_files(output_path: str, model: str | None, **rest: Any) -> RunFiles:
    return RunFiles.below(Path(output_path), str(model), row=_sample_row, value=handle_non_serializable, **rest)


def hash_of(samples: Sequence[Mapping[str, Any]]) -> str:
    return hash_string("".join(row["doc_hash"] + row["prompt_hash"] + row["target_hash"] for row in samples))


def _sample_row(sample: Mapping[str, Any]) -> dict[str, Any]:
    """Return a sample in the form of the harness's files; one that has that form stays as it is."""
    arguments = sample["arguments"]
    if not isinstance(arguments, Mapping):
        arguments = {
            f"gen_args_{i}": {f"arg_{j}": part for j, part in enumerate(given)} for i, given in enumerate(arguments)
        }
    replies = {key: sanitize_list(sample[key]) for key in ("resps", "filtered_resps")}
    return {**sample, **replies, "arguments": arguments, "target": str(sample["target"])}


def watch_trackers() -> None:
    """Have the harness's trackers write without known secrets, and have what they drop written; once for all of them.

    The results hold the model's arguments, headers and address included, and a reply may quote the key. If what is
    missing cannot be written either, the command ends with 1.

    Raises ConfigError if the tracker of the run under way can write nothing.
    """
    now = tracker_of_run()
    if now is not None and now.output_path:
        check_output(Path(now.output_path), "--output_path")
    _wrap_trackers()


@lru_cache(maxsize=1)
def _wrap_trackers() -> None:
    from lm_eval.loggers import EvaluationTracker

    results_of, samples_of = EvaluationTracker.save_results_aggregated, EvaluationTracker.save_results_samples

    def aggregated(self: Any, results: dict[str, Any], samples: dict[str, Any] | None = None) -> None:
        shown = hidden(results, handle_non_serializable)
        results_of(self, results=shown, samples=samples)
        _complete(self, shown, {})

    def of_task(self: Any, task_name: str, samples: Any) -> None:
        shown = hidden(samples, handle_non_serializable)
        samples_of(self, task_name=task_name, samples=shown)
        _complete(self, {}, {task_name: shown})

    EvaluationTracker.save_results_aggregated, EvaluationTracker.save_results_samples = aggregated, of_task


def _complete(tracker: Any, results: Mapping[str, Any], samples: Mapping[str, Sequence[Any]]) -> None:
    """Write what a tracker should have written and has not."""
    if not tracker.output_path:
        return
    named = {"stamp": tracker.date_id} if hasattr(tracker, "date_id") else {}
    files = run_files(tracker.output_path, tracker.general_config_tracker.model_name_sanitized, **named)
    tracker.date_id = files.stamp
    missing = files.missing({task: len(rows) for task, rows in samples.items()})
    try:
        files.write({} if files.has_results() else results, {task: samples[task] for task in missing})
    except UnwrittenError as error:
        log.error("%s", error)
        exit_with_1_at_the_end()
