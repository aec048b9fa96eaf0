"""Rows of a run for Every Eval Ever: one record a row and metric, without texts that may not be passed on."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

from mrag_eval.report.exports._licences import passages_shareable, source_of
from mrag_eval.report.exports._runs import Exported, Run
from mrag_eval.report.files._samples import Sample, read_samples


def instances(
    task: Exported, run: Run, schema: str, evaluation_id: str, *, include_text: bool
) -> Iterator[dict[str, Any]]:
    """The records of a task's rows, a metric at a time; none for a group, and none without a sample file.

    The question, references, options and prompt are the benchmark's; where its licence is not known to allow it they
    are left empty (``metadata.text`` says so) and ``sample_hash`` still tells the row. The prompt holds passages, so it
    goes along only where these may, too. The reply is the model's own and stays.
    """
    if task.samples is None:
        return
    shareable = include_text or source_of(task.config).shareable
    prompt = include_text or passages_shareable(task.config)
    kept = {score.metric for score in task.overall() if score.value is not None}
    for sample in read_samples(task.samples):
        record = sample["rows"]
        shown = _texts(sample, shareable, prompt)
        for metric, value in (record.get("values") or {}).items():
            if metric not in kept:
                continue
            yield {
                "schema_version": schema,
                "evaluation_id": evaluation_id,
                "model_id": run.model_id,
                "evaluation_name": task.label,
                "evaluation_result_id": f"{task.label}:{metric}",
                "sample_id": str(record["row"]),
                **shown,
                "evaluation": {"score": float(value), "is_correct": float(value) >= 1.0},
                "metadata": _metadata(record, shareable, source_of(task.config).licence),
            }


def _texts(sample: Sample, shareable: bool, prompt: bool) -> dict[str, Any]:
    doc: Mapping[str, Any] = sample.get("doc") or {}
    query, references = str(doc.get("query", "")), [str(answer) for answer in doc.get("answers") or ()]
    choices = doc.get("choices")
    digest = hashlib.sha256((query + "".join(references)).encode("utf-8")).hexdigest()
    replies = [str(reply) for reply in _leaves(sample.get("filtered_resps"))]
    answer = sample["rows"].get("answer")
    extracted = answer.get("text") if isinstance(answer, Mapping) else None
    given: dict[str, Any] = {
        "raw": query if shareable else "",
        "formatted": _prompt(sample) if prompt and shareable else None,
        "reference": references if shareable else [],
        "choices": [str(c) for c in choices] if choices and shareable else None,
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


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, list):
        for item in value:
            yield from _leaves(item)
    elif value is not None:
        yield value


def _prompt(sample: Sample) -> str | None:
    arguments = sample.get("arguments")
    first = arguments.get("gen_args_0") if isinstance(arguments, Mapping) else None
    found = first.get("arg_0") if isinstance(first, Mapping) else None
    return None if found is None else str(found)


def _metadata(record: Mapping[str, Any], shareable: bool, licence: str | None) -> dict[str, str]:
    cell = {str(key): str(value) for key, value in (record.get("cell") or {}).items()}
    if shareable:
        return cell
    return {**cell, "text": f"withheld: {f'licence {licence}' if licence else 'no licence known'}"}
