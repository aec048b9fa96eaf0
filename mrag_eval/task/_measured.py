"""The record of what a task's numbers measure: what decides them, before the first request; what came of it, after."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from mrag_eval import models
from mrag_eval.config import Measurement, TaskBlocks, package_versions, setting_of
from mrag_eval.core import ANY_LANGUAGE
from mrag_eval.datasets import sha256_file, validate_data
from mrag_eval.harness import Running, running
from mrag_eval.judging import JudgingStage
from mrag_eval.languages import RELIABILITY_FILE, changed_languages
from mrag_eval.models import Answering, asked_with
from mrag_eval.planning import shipped
from mrag_eval.platform import content_key, to_json
from mrag_eval.retrieval import TaskRows
from mrag_eval.scoring import words_of

# Arguments of the harness's evaluation that belong to the model.
_OF_THE_MODEL = ("apply_chat_template",)


def measured(
    task: str,
    blocks: TaskBlocks,
    harness: Mapping[str, Any],
    texts: Mapping[str, Any],
    supply: TaskRows,
    verdicts: JudgingStage,
    *,
    answered: Answering | None = None,
    support: Mapping[str, Any],
) -> Measurement:
    """Return what decides the numbers of a task, when its rows are retrieved and nothing is asked yet.

    Args:
        task: its name.
        blocks: its merged blocks, with the metrics that its file names.
        harness: its other keys, as the harness knows them after the run's flags.
        texts: the hashes of its prompts by what they are for.
        supply: its rows.
        verdicts: its judges.
        answered: how the model is asked; None outside of a run.
        support: what decides the metrics of support; empty without them.

    What only the finished run's result file holds (type, arguments and revision of the model, seeds) is added when that
    file is read.
    """
    now, record = running(), supply.as_record()
    names = {role: name for role, name in record.pop("agent", {}).items() if role in ("planner", "critic")}
    data = validate_data(blocks.data).model_dump(mode="json")
    # what scores are broken down by decides no number
    data |= {key: to_json(blocks.data[key]) for key in ("breakdowns",) if key in blocks.data}
    official = shipped(task)
    # languages of the rows, and English, for which the user has a file of words, prompts and names
    spoken = {code for doc in supply.docs.values() for code in (doc.query_lang, doc.culture_lang) if code}
    changed = changed_languages({"en", *spoken})
    return Measurement(
        task,
        subject={} if now is None else _subject(now, answered, harness),
        setting={
            **(setting := setting_of(blocks, data, harness, texts)),
            **({"agent": {**setting["agent"], **names}} if "agent" in setting else {}),
            "run": _flags(now, task),
        },
        instrument={
            **supply.instruments(),
            **verdicts.models(),
            **_detector(blocks),
            **words_of(blocks.metrics),
            **({"languages": changed} if changed else {}),
        },
        data=record,
        environment={"versions": package_versions()},
        shipped=None if official is None else official.sha256,
        unknown=() if now is not None else ("the model and the flags of the run",),
    ).with_support(support)


def completed(
    record: Measurement,
    of: int,
    rows: Sequence[str],
    left_out: Sequence[str],
    answered: Answering | None,
    seats: Mapping[str, Mapping[str, Any]],
) -> Measurement:
    """Return the record of a task with what came of it.

    Args:
        record: what decides its numbers.
        of: how many rows the task has.
        rows: the ids of those that ran, each once.
        left_out: metrics that its file names and nobody was there to judge.
        answered: what is known of the model's replies; None outside of a run.
        seats: what came back from judges, planner, critic, translator and reranker.
    """
    outcome = {} if answered is None else {k: v for k, v in answered.as_dict().items() if k != "transport"}
    outcome |= {"seats": dict(seats)} if seats else {}
    record = record.adding("outcome", {**outcome, **({"not_judged": list(left_out)} if left_out else {})})
    return record.adding("data", {"ran": {"rows": len(rows), "of": of, "ids": content_key(sorted(rows))}})


def _subject(now: Running, answered: Answering | None, harness: Mapping[str, Any]) -> dict[str, Any]:
    applied = now.arguments.get("apply_chat_template")
    template = now.lm.chat_template(applied) if applied else None
    wanted = harness.get("generation_kwargs") if harness.get("output_type") == "generate_until" else None
    return {
        "generation": asked_with(now.lm, wanted),
        "chat_template_applied": bool(applied),
        "chat_template_name": applied if isinstance(applied, str) else None,
        "chat_template_sha256": sha256(template.encode()).hexdigest() if template else None,
        **_system(now),
        **({} if answered is None else {"transport": answered.transport}),
    }


def _system(now: Running) -> dict[str, Any]:
    """Return the code of a system that is asked as it is, the hash of each file, and how a service is asked."""
    system = getattr(now.lm, "system", None)
    if system is None or not isinstance(system, models.RagSystem):
        return {}
    # its arguments may stand in a file of which the run's record has the name
    asked = {key: value for key, value in system.identity().items() if key in ("request", "header") and value}
    return {"code": system.code or "unknown", **({"asked": asked} if asked else {})}


def _flags(now: Running | None, task: str) -> dict[str, Any]:
    """Return the arguments of the evaluation that are not the harness's defaults; of ``--samples`` the task's own."""
    if now is None:
        return {}
    found = {key: value for key, value in now.given.items() if key not in _OF_THE_MODEL}
    chosen = (found.pop("samples", None) or {}).get(task)
    return found if chosen is None else {**found, "samples": list(chosen)}


def _detector(blocks: TaskBlocks) -> dict[str, Any]:
    """Return the detectors of languages that are files of the user's, and what is known of detectors where it counts.

    The others go by name and version.
    """
    setting, found = blocks.judge.correct_language, {}
    if setting.files:
        hashes = {code: {"sha256": _file_hash(path, path.stat().st_mtime_ns)} for code, path in setting.files.items()}
        found["detector"] = {**hashes.pop(ANY_LANGUAGE, {}), **hashes}
    if setting.min_recognised is not None and "correct_language" in blocks.metrics:
        found["reliability"] = {"sha256": _file_hash(RELIABILITY_FILE, RELIABILITY_FILE.stat().st_mtime_ns)}
    return found


@lru_cache(maxsize=4)
def _file_hash(path: Path, _modified: int) -> str:
    return sha256_file(path)
