"""The harness's result files: written whole, without secrets, or the run ends with an error."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lm_eval.utils import handle_non_serializable, hash_string, sanitize_list

from mrag_eval.core import RunFiles, UnwrittenError, check_output, hidden
from mrag_eval.harness._command import exit_with_1_at_the_end
from mrag_eval.harness._under_way import run_variables

# Below the harness's logger, so that its command shows our lines as it shows its own.
log = logging.getLogger(f"lm_eval.{__name__}")


class _HidingJson:
    """The module ``json``, which hides known secrets in the strings of what it writes."""

    def dumps(self, value: Any, **kwargs: Any) -> str:
        return json.dumps(hidden(value, kwargs.get("default")), **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(json, name)


def hide_secrets_in_results() -> None:
    """Hide known secrets in the results and samples that the harness writes; calling it again changes nothing.

    The results hold the model's arguments, headers and address included, and a reply may quote the key.
    """
    from lm_eval.loggers import evaluation_tracker

    if not isinstance(evaluation_tracker.json, _HidingJson):
        evaluation_tracker.json = _HidingJson()


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


def watch_tracker() -> None:
    """Have the harness's own command write what its tracker fails to write, and exit with 1 if that fails, too.

    A task learns of the tracker only here: it is built inside ``simple_evaluate``, whose argument the tracker is.
    """
    tracker = run_variables().get("evaluation_tracker")
    if tracker is None or not tracker.output_path or hasattr(tracker, "mrag_eval_watched"):
        return
    check_output(Path(tracker.output_path), "--output_path")
    tracker.mrag_eval_watched = True
    results_of, samples_of = tracker.save_results_aggregated, tracker.save_results_samples

    def complete(results: Mapping[str, Any], samples: Mapping[str, Sequence[Any]]) -> None:
        named = {"stamp": tracker.date_id} if hasattr(tracker, "date_id") else {}
        files = run_files(tracker.output_path, tracker.general_config_tracker.model_name_sanitized, **named)
        tracker.date_id = files.stamp
        missing = files.missing({task: len(rows) for task, rows in samples.items()})
        try:
            files.write({} if files.has_results() else results, {task: samples[task] for task in missing})
        except UnwrittenError as error:
            log.error("%s", error)
            exit_with_1_at_the_end()

    def aggregated(results: dict[str, Any], samples: dict[str, Any] | None = None) -> None:
        results_of(results=results, samples=samples)
        complete(results, {})

    def of_task(task_name: str, samples: Any) -> None:
        samples_of(task_name=task_name, samples=samples)
        complete({}, {task_name: samples})

    tracker.save_results_aggregated, tracker.save_results_samples = aggregated, of_task
