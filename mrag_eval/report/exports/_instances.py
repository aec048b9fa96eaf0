"""Rows of a run for Every Eval Ever: one record per row and metric, without texts that may not be redistributed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

from mrag_eval.report.exports._licences import passages_shareable
from mrag_eval.report.exports._runs import ExportedTask
from mrag_eval.report.files._sample import Sample
from mrag_eval.report.files._samples import read_samples


def instances(task: ExportedTask, schema: str, evaluation_id: str, *, include_text: bool) -> Iterator[dict[str, Any]]:
    """Return the records of a task's rows, one metric at a time; empty for a group, and without a sample file.

    The question, references, options and prompt are the benchmark's. If its licence is not known to allow
    redistribution, they are left empty (``metadata.text`` says so), and ``sample_hash`` still identifies the row. The
    prompt holds passages, so it is included only if these may be redistributed, too. The reply is the model's and is
    kept.
    """
    if task.samples is None:
        return
    shareable = include_text or task.source.shareable
    prompt = include_text or passages_shareable(task.config)
    withheld = f"withheld: {f'licence {licence}' if (licence := task.source.licence) else 'no licence known'}"
    kept = {score.metric: score.lower_is_better for score in task.overall if score.value is not None}
    for sample in read_samples(task.samples):
        record = sample.record
        shown = _texts(sample, shareable, prompt)
        for metric, value in record.values.items():
            if metric not in kept:
                continue
            yield {
                "schema_version": schema,
                "evaluation_id": evaluation_id,
                "model_id": model_id(task.file.model),
                "evaluation_name": task.label,
                "evaluation_result_id": f"{task.label}:{metric}",
                "sample_id": record.row,
                **shown,
                "evaluation": {
                    "score": value,
                    "is_correct": value >= 1.0 if kept[metric] is False else value <= 0.0 and bool(kept[metric]),
                },
                "metadata": {**record.cell, **({} if shareable else {"text": withheld})},
            }


def model_id(model: str) -> str:
    """Return the id of a model, by which its record is filed: developer and name, as parts of a path."""
    developer, _, name = model.rpartition("/")
    parts = developer or "unknown", name
    return "/".join("".join(c if c.isalnum() or c in "-_." else "_" for c in part) or "unknown" for part in parts)


def _texts(sample: Sample, shareable: bool, prompt: bool) -> dict[str, Any]:
    query, references, choices = sample.doc.query, list(sample.doc.answers), sample.doc.choices
    digest = hashlib.sha256((query + "".join(references)).encode("utf-8")).hexdigest()
    replies = sample.replies
    extracted = None if sample.record.answer is None else sample.record.answer.text
    given: dict[str, Any] = {
        "raw": query if shareable else "",
        "formatted": sample.prompt if prompt and shareable else None,
        "reference": references if shareable else [],
        "choices": list(choices) if choices and shareable else None,
    }
    return {
        "sample_hash": digest,
        "interaction_type": "single_turn",
        "input": given,
        "output": {"raw": replies},
        "messages": None,
        "answer_attribution": [
            {
                "turn_idx": 0,
                "source": "output.raw",
                "extracted_value": str(extracted if extracted is not None else "".join(replies[:1])),
                "extraction_method": "answer format of the prompt" if extracted is not None else "whole reply",
                "is_terminal": True,
            }
        ],
    }
