"""The record of what a task's numbers measure, compared with and completed by what the harness wrote beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any

from mrag_eval import models
from mrag_eval.config import CONTEXT_METADATA, NAMING_METADATA, Measurement, Role, dotted, harmless, shown
from mrag_eval.platform import DataError, from_json, headers_in
from mrag_eval.scoring import tell_metrics

# Keys of the harness's record that seed a sampled reply, with its defaults.
_SEEDS = {"random_seed": 0, "numpy_seed": 1234, "torch_seed": 1234, "fewshot_seed": 1234}
# Keys of a result file, beside its record of the run, that belong to the model.
_OF_THE_MODEL = ("model_source", "max_length")
# The task's own blocks, and the role of the record that holds each.
_HOME: Mapping[str, Role] = {
    **dict.fromkeys(("agent", "contexts", "data", "judge", "languages", "metrics", "prompt", "replies"), "setting"),
    **dict.fromkeys(("retrieval", "row_texts", "texts"), "setting"),
    **dict.fromkeys(("index", "left_out", "retrieved", "source"), "data"),
    "versions": "environment",
}
# Blocks that a log's results have beside the record, since its passages and rows are none of ours.
_OF_A_LOG = ("data", "generation_kwargs", "metrics", "output_type", "retrieval")
# What the harness writes of a task beside its settings, and keys of its own that our tasks do not use.
UNUSED = ("test_split", "unsafe_code", "description", "target_delimiter", "fewshot_delimiter", "fewshot_config",
          "metric_list", "repeats", "should_decontaminate", "tag")  # fmt: skip
_BESIDE = (*UNUSED, "measurement", "metadata", "provenance", "scores", "task", "task_alias")
_AGAIN = "run again with this version of mrag-eval"


def measurement_of(content: Mapping[str, Any], task: str, where: str) -> Measurement | None:
    """Return the record of a task in the content of a result file; None for a task that is not ours.

    Raises DataError for results of another version, and for a record that is faulty, contradicts the harness's keys, or
    lacks a setting that stands beside it: no reader takes one from there.
    """
    config = content["configs"][task]
    written = config.get("measurement")
    if not isinstance(written, Mapping):
        if isinstance(config.get("scores"), Mapping):
            raise DataError(f"{where}.measurement is missing: another version wrote these results", _AGAIN)
        return None
    record = Measurement.from_dict(written, f"{where}.measurement")
    if twice := next((name for name in _HOME if name in config and held(record, name)), None):
        raise DataError(f"{where}.{twice} is in the record, too: another version wrote these results", _AGAIN)
    for key, told, own in _contradictions(content, task, record):
        text = f"{where}.{key} is {shown(told)}, in the record of what was measured {shown(own)}"
        raise DataError(text, f"take the file as the run wrote it, or {_AGAIN}")
    tell_metrics(record.instrument, where)
    run = content.get("config")
    run = run if isinstance(run, Mapping) else {}
    _check_numbers(record, run, where)
    record = record.adding("subject", _subject(run, content))
    # what bounds prompts is a setting, whether --metadata or --model_args says it
    arguments = {key: value for key, value in record.subject["model_args"].items() if key not in CONTEXT_METADATA[1:]}
    beside = _beside(content["configs"][task], arguments)
    record = record.adding("setting", {"context": found} if (found := beside(CONTEXT_METADATA)) else {})
    record = record.adding("subject", {"named": found} if (found := beside(NAMING_METADATA)) else {})
    seeds = {key: run[key] for key, default in _SEEDS.items() if run.get(key) not in (None, default)}
    # requests to an API hold a seed of their own, which --seed does not change
    if record.subject.get("generation") and record.subject.get("transport") == models.ANSWERED_BY_US:
        return record
    decoding = record.setting.get("generation_kwargs") or {}
    temperature = decoding.get("temperature")
    is_sampled = decoding.get("do_sample") or (isinstance(temperature, int | float) and temperature > 0)
    return record.adding("setting", {"seeds": seeds}) if seeds and is_sampled else record


def _check_numbers(record: Measurement, run: Mapping[str, Any], where: str) -> None:
    """Raise DataError, naming the key, where readers count on a number and there is something else."""
    ran, retrieval = record.data.get("ran"), record.setting.get("retrieval")
    parts = [("measurement.data.ran", ran, ("rows", "of")), ("measurement.setting.retrieval", retrieval, ("seed",))]
    for name, part, keys in parts:
        found = part if isinstance(part, Mapping) else {}
        for key in keys:
            if found.get(key) is not None:
                from_json(int, found[key], f"{where}.{name}.{key}", _AGAIN)
    if run.get("limit") is not None:
        from_json(float, run["limit"], f"{where.partition(': ')[0]}: config.limit", _AGAIN)


def _beside(config: Mapping[str, Any], arguments: Mapping[str, Any]) -> Callable[[Sequence[str]], dict[str, Any]]:
    """Return what gives those of some keys that a task's metadata has, and no argument of the model as well."""
    metadata = config.get("metadata")
    given = metadata if isinstance(metadata, Mapping) else {}
    return lambda keys: {key: given[key] for key in keys if key in given and str(given[key]) != arguments.get(key)}


def held(record: Measurement | None, name: str) -> Mapping[str, Any]:
    """Return the role of a record that holds the task's own block ``name``; empty if none does."""
    part: Mapping[str, Any] = {} if record is None or name not in _HOME else getattr(record, _HOME[name])
    return part if name in part else {}


def _contradictions(content: Mapping[str, Any], task: str, record: Measurement) -> Iterator[tuple[str, Any, Any]]:
    """Yield the keys in which the harness says something else than the record, with both values."""
    config = content["configs"][task]
    told = {name: config[name] for name in record.setting if name in config and name not in _HOME}
    own = {name: record.setting[name] for name in told}
    beside = (*_BESIDE, *(_OF_A_LOG if record.setting.get("replies") == "given" else ()))
    told |= {name: value for name, value in config.items() if name not in (*record.setting, *beside)}
    if "task" in config:
        told["task"], own["task"] = config["task"], record.task
    metadata = config.get("metadata")
    if isinstance(metadata, Mapping) and "version" in metadata:
        told["metadata"] = {"version": metadata["version"]}
        own["metadata"] = {"version": record.setting.get("version")}
    if "chat_template" in content and "chat_template_sha256" in record.subject:
        text, key = content["chat_template"], "measurement.subject.chat_template"
        told |= {f"{key}_sha256": sha256(str(text).encode()).hexdigest() if text else None}
        told |= {f"{key}_applied": text is not None}
        own |= {name: record.subject.get(name.rpartition(".")[2]) for name in told if name.startswith(key)}
    one, other = dotted(told), dotted(own)
    for key in sorted({*one, *other}):
        # a block of ours that stands beside the record is none of the harness's, whatever it has
        if one.get(key) != other.get(key) and (harmless(key, "setting") is None or key.partition(".")[0] in _HOME):
            yield key, one.get(key), other.get(key)


def _subject(run: Mapping[str, Any], content: Mapping[str, Any]) -> dict[str, Any]:
    found = {key: value for key, value in run.items() if key not in (*_SEEDS, "model_args")}
    found |= {key: content[key] for key in _OF_THE_MODEL if content.get(key) is not None}
    return {**found, "model_args": _arguments(run.get("model_args"))}


def _arguments(given: Any) -> dict[str, Any]:
    """Return the model's arguments as texts, however they were given: the harness reads numbers from both forms.

    Those in a mapping, such as headers, stay in it.
    """
    if isinstance(given, str):
        pairs = (part.partition("=") for part in given.split(",") if part.strip())
        return {key.strip(): value.strip() for key, _, value in pairs}
    if not isinstance(given, Mapping):
        return {}
    read = {str(key): headers_in(value) if key == "header" else value for key, value in given.items()}
    return {key: _arguments(value) if isinstance(value, Mapping) else str(value) for key, value in read.items()}
