"""The record of what a task's numbers measure, completed by what only the finished run's result file holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mrag_eval.config import CONTEXT_METADATA, Measurement
from mrag_eval.models import ANSWERED_BY_US
from mrag_eval.scoring import tell_metrics

# Keys of the harness's record that seed a sampled reply, with its defaults.
_SEEDS = {"random_seed": 0, "numpy_seed": 1234, "torch_seed": 1234, "fewshot_seed": 1234}
# Keys of a result file, beside its record of the run, that belong to the model.
_OF_THE_MODEL = ("model_source", "max_length")


def measurement_of(content: Mapping[str, Any], task: str, where: str) -> Measurement | None:
    """Return the record of a task in the content of a result file; None if the run is older than such records.

    Raises DataError for a record of another version, and for a faulty one.
    """
    written = content["configs"][task].get("measurement")
    if not isinstance(written, Mapping):
        return None
    record = Measurement.from_dict(written, where)
    tell_metrics(record.instrument, where)
    run = content.get("config")
    run = run if isinstance(run, Mapping) else {}
    record = record.adding("subject", _subject(run, content))
    record = record.adding("setting", _context(content["configs"][task], record.subject["model_args"]))
    seeds = {key: run[key] for key, default in _SEEDS.items() if run.get(key) not in (None, default)}
    # requests to an API hold a seed of their own, which --seed does not change
    if record.subject.get("transport") == ANSWERED_BY_US and record.subject.get("generation"):
        return record
    return record.adding("setting", {"seeds": seeds}) if seeds and _is_sampled(record) else record


def _context(config: Mapping[str, Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata that bounds prompts, or names another model than the run's, and that no argument gives."""
    metadata = config.get("metadata")
    given = metadata if isinstance(metadata, Mapping) else {}
    found = {key: given[key] for key in CONTEXT_METADATA if key in given and str(given[key]) != arguments.get(key)}
    return {"context": found} if found else {}


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
    return {str(key): _arguments(value) if isinstance(value, Mapping) else str(value) for key, value in given.items()}


def _is_sampled(record: Measurement) -> bool:
    decoding = record.setting.get("generation_kwargs") or {}
    temperature = decoding.get("temperature")
    return bool(decoding.get("do_sample")) or (isinstance(temperature, int | float) and temperature > 0)
