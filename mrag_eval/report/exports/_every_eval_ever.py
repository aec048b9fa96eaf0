"""Records of Every Eval Ever (schema 0.3.0): one JSON object per run, and its rows as JSON Lines.

The schema is that of the project's datastore: https://github.com/evaleval/every_eval_ever. Records are written
directly, since the project's package and this one need different releases of the hub's client.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any
from uuid import UUID

from mrag_eval.config import SHOWN
from mrag_eval.core import plain_name
from mrag_eval.platform import replaced, write_whole
from mrag_eval.report.exports._export import Export, Options, Written
from mrag_eval.report.exports._licences import passages_shareable
from mrag_eval.report.exports._runs import ExportedTask, Run
from mrag_eval.report.files._sample import Sample
from mrag_eval.report.files._samples import open_samples
from mrag_eval.report.files._scores import Score
from mrag_eval.scoring import RESAMPLES, direction_lines

SCHEMA = "0.3.0"
COLLECTION = "mrag_eval"
# The names of a panel's settings and templates, by what it judges.
_KINDS = {"answers": "judge", "contexts": "sufficiency", "claims": "claims"}
# Units in the words of the schema.
_UNITS = {"share": "proportion"}
# What must be told of every model, where nothing is known.
_UNKNOWN = {"deployment_type": "unknown", "model_availability": "unknown"}
# The harness's model types by where the weights are, as far as the type determines it.
_OWN_WEIGHTS = ("hf", "vllm", "sglang", "gguf", "ggml", "mamba", "nemo", "openvino", "neuronx", "huggingface")
_HOSTED = ("openai-", "anthropic", "azure")


def write_every_eval_ever(runs: Sequence[Run], folder: Path, options: Options) -> Written:
    """Write ``folder/data/mrag_eval/<developer>/<model>/<uuid>.json`` for every run.

    ``<uuid>_samples.jsonl`` is written as well if there are sample files. The same run gets the same uuid. Without
    ``options.include_text``, rows of benchmarks whose licence is not known to allow redistribution are written without
    their texts.
    """
    return Written.together(_written(run, folder, options) for run in runs)


EXPORT = Export("eee", "records of Every Eval Ever, with the rows", write_every_eval_ever, repo_type="dataset")


def _written(run: Run, folder: Path, options: Options) -> Written:
    sender, command, model = options, options.command_of(run.file.path), run.file.model
    stamp = str(int(time.time()))
    key = f"{COLLECTION}/{model_id(model)}/{stamp}"
    home = Path("data", COLLECTION, model_id(model))
    digest = hashlib.sha256(f"{model} {run.file.time.isoformat()}".encode()).digest()
    name = str(UUID(bytes=digest[:16], version=4))
    (folder / home).mkdir(parents=True, exist_ok=True)
    results = [result for task in run.tasks for result in _results(task, command)]
    info = _model(run, sender)
    record: dict[str, Any] = {
        "schema_version": SCHEMA,
        "evaluation_id": key,
        "evaluation_timestamp": run.file.time.isoformat(),
        "retrieved_timestamp": stamp,
        "source_metadata": {
            "source_name": "mrag-eval",
            "source_type": "evaluation_run",
            "source_organization_name": sender.organization,
            "evaluator_relationship": sender.relationship,
            # metrics without a figure cannot be among the results
            **({"additional_details": run.blank} if run.blank else {}),
        },
        "eval_library": {
            "name": "mrag_eval",
            "version": version("mrag-eval"),
            "additional_details": {"lm_eval_version": run.file.harness_version},
        },
        "model_info": info,
        "evaluation_results": results,
    }
    files, notes = [], []
    lines = [
        json.dumps(row, ensure_ascii=False)
        for task in run.tasks
        for row in instances(task, SCHEMA, key, include_text=options.include_text)
    ]
    if lines:
        rows = home / f"{name}_samples.jsonl"
        # half a surrogate pair, which a model may write, becomes a JSON escape
        body = ("\n".join(lines) + "\n").encode("utf-8", "backslashreplace")
        with replaced(folder / rows) as part:
            part.write_bytes(body)
        files.append(folder / rows)
        record["detailed_evaluation_results"] = {
            "format": "jsonl",
            "file_path": rows.as_posix(),
            "hash_algorithm": "sha256",
            "checksum": hashlib.sha256(body).hexdigest(),
            "total_rows": len(lines),
        }
    else:
        notes.append("no sample files next to the results, so no rows (run with --log_samples)")
    path = folder / home / f"{name}.json"
    write_whole(path, json.dumps(record, indent=2, ensure_ascii=False) + "\n")
    withheld = [
        task.label for task in run.tasks if task.samples and not (options.include_text or task.source.shareable)
    ]
    if withheld:
        notes.append(
            f"questions, references and prompts of {', '.join(withheld)} are left out: no licence is known that allows "
            "to pass them on (--include-text)"
        )
    sides = dict.fromkeys(s.metric for task in run.tasks for s in task.overall if s.lower_is_better is None)
    if sides:
        notes.append(
            f"of {', '.join(sides)} neither more nor less is better: the schema takes only yes and no, so "
            "lower_is_better is false there, and metric_config.additional_details.better tells"
        )
    if "/" not in model:
        notes.append(f"model_info.developer is 'unknown', as {model} names none, and the datastore files records by it")
    details = info["additional_details"]
    notes += [
        f"model_info.{key} is 'unknown', which the datastore does not take: --{flag}"
        for key, flag in (("deployment_type", "deployment"), ("model_availability", "availability"))
        if details[key] == "unknown"
    ]
    return Written((path, *files), tuple(notes))


def _model(run: Run, sender: Options) -> dict[str, Any]:
    kind = run.file.model_type or "unknown"
    own, hosted = kind.startswith(_OWN_WEIGHTS), kind.startswith(_HOSTED)
    deployment = "self_deployed" if own else "externally_managed" if hosted else "unknown"
    availability = "open_weights" if own else "closed_weights" if hosted else "unknown"
    return {
        **_named(run.file.model),
        "inference_engine": {"name": kind},
        "additional_details": {
            "deployment_type": sender.deployment or deployment,
            "model_availability": sender.availability or availability,
        },
    }


def _named(model: str) -> dict[str, str]:
    """Return a model by its name, with a developer: the datastore files records by it."""
    return {"name": model, "id": model_id(model), "developer": model.rpartition("/")[0] or "unknown"}


def _results(task: ExportedTask, command: str) -> Iterator[dict[str, Any]]:
    """Return every figure of a task that is a number, those of its cells too."""
    data, generation = _source(task), _generation(task, command)
    for score in task.scores:
        if score.value is None:
            continue
        name = f"{task.label}[{score.dimension}={score.cell}]" if score.dimension else task.label
        yield {
            "evaluation_result_id": f"{name}:{score.metric}",
            "evaluation_name": name,
            "source_data": data,
            "evaluation_timestamp": score.date,
            "metric_config": _metric(task, score),
            "score_details": {"score": score.value, **_uncertainty(score)},
            **generation,
        }


def _source(task: ExportedTask) -> dict[str, Any]:
    source = task.source
    # a local copy may be anything
    hub = None if task.config.local else source.hub
    hashes = task.config.place.get("sha256")
    details = {
        "licence": source.licence,
        "revision": task.config.revision,
        "copy_of": source.hub if task.config.local else None,
        "sha256": json.dumps(hashes, sort_keys=True) if hashes else None,
    }
    out: dict[str, Any] = {
        "dataset_name": source.name,
        "source_type": "other" if hub is None else "hf_dataset",
        "additional_details": {key: value for key, value in details.items() if value is not None},
    }
    if hub is not None:
        out |= {"hf_repo": hub} | ({"hf_split": task.split} if task.split else {})
        if task.leaf is not None:
            out["samples_number"] = task.leaf.scores.rows
    return out


def _metric(task: ExportedTask, score: Score) -> dict[str, Any]:
    name = score.metric
    out: dict[str, Any] = {
        "metric_id": f"{COLLECTION}.{name}",
        "metric_name": name,
        "metric_unit": _UNITS.get(score.unit, score.unit),
        "lower_is_better": score.lower_is_better is True,
        "additional_details": {"better": score.better},
    }
    if score.lower_is_better is None:
        # the schema has no third side
        out["evaluation_description"] = f"{direction_lines([name])[0].partition(':')[0]}, whatever lower_is_better says"
    base, at, cutoff = name.partition("@")
    if at and cutoff.isdigit():
        out |= {"metric_kind": base, "metric_parameters": {"k": int(cutoff)}}
    elif plain_name(name) == SHOWN and task.config.k is not None:
        out |= {"metric_kind": base, "metric_parameters": {"k": task.config.k}}
    if score.lowest is not None and score.highest is not None:
        # the schema has no continuous score without both ends
        out |= {"score_type": "continuous", "min_score": score.lowest, "max_score": score.highest}
    deciding = {} if task.leaf is None else task.leaf.scores.deciding(name)
    what = next(iter(deciding), "")
    if what and (panel := deciding[what]).models:
        judge, kind = task.config.judge, _KINDS[what]
        block = judge if kind == "judge" else judge.get("grounded" if kind == "claims" else kind) or {}
        text = task.config.setting(f"texts.{kind}")
        out["llm_scoring"] = {
            "judges": [{"model_info": {**_named(model), "additional_details": _UNKNOWN}} for model in panel.models],
            "input_prompt": f"{block.get('prompt')}{f' (sha256 {text})' if text else ''}",
            "aggregation_method": "median" if panel.scale.order and name in panel.scale.metrics else "majority_vote",
        }
    return out


def _uncertainty(score: Score) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if score.low is not None and score.high is not None:
        limits = {"lower": score.low, "upper": score.high, "confidence_level": 0.95}
        found["confidence_interval"] = limits | ({"method": score.method} if score.method else {})
        if score.method and "bootstrap" in score.method:
            found["num_bootstrap_samples"] = RESAMPLES
    if score.stderr is not None:
        found["standard_error"] = {"value": score.stderr, "method": "lm-eval, tasks taken as independent"}
    if score.n is not None:
        found["num_samples"] = score.n
    details = {f"unscored: {reason}": str(n) for reason, n in score.unscored_reasons.items()}
    details |= score.averaged | score.withheld
    if score.reason:
        details["interval"] = score.reason
    return {key: value for key, value in (("uncertainty", found), ("details", details)) if value}


def _generation(task: ExportedTask, command: str) -> dict[str, Any]:
    config = task.config.generation
    args: dict[str, Any] = {"execution_command": command}
    for key, name in (("temperature", "temperature"), ("top_p", "top_p"), ("top_k", "top_k")):
        if isinstance(config.get(key), int | float):
            args[name] = float(config[key])
    if isinstance(config.get("max_gen_toks"), int) and config["max_gen_toks"] > 0:
        args["max_tokens"] = config["max_gen_toks"]
    return {"generation_config": {"generation_args": args, "additional_details": task.scores[0].settings}}


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
    for sample in open_samples(task.samples):
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
