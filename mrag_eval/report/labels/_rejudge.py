"""Judging the sample file of a finished run, and holding a panel against human labels; nothing is generated."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mrag_eval.config import SUFFICIENCY, VERDICTS, Judge, deep_merge, validated
from mrag_eval.core import DataError, Hit, RagDoc, RowScores, Scored, write_whole
from mrag_eval.judging import Panel, build_panel, judged, language_check, sufficiency_judged
from mrag_eval.models import as_verdict
from mrag_eval.report.files._samples import Sample, config_beside, read_samples
from mrag_eval.scoring import Answer, against_human, score_rows, summarize

# What a judged sample holds besides what the run wrote.
_NAMES = (*VERDICTS, "language_check")
_WORDS = {"1": True, "0": False}


@dataclass(frozen=True)
class Rejudged:
    """A sample file judged anew: where it was written, by which settings, and the scores with the panel's table."""

    path: Path
    block: Judge
    scores: dict[str, Any]


def judge_samples(path: Path, out: Path | None = None, **changes: Any) -> Rejudged:
    """Judge the answers in the harness's sample file ``path`` and write them to ``out``, votes and scores with them.

    The settings are those of the run (its result file, if it lies beside the samples), with ``changes``: keys of the
    judge block. By default ``out`` is the file's name with ``judged_`` before it. The panel's cache is that of every
    run: what a judge has said before costs nothing.

    Raises DataError for a file that is not a sample file of ours, ConfigError for settings and where no judge is
    configured.
    """
    out, samples = _opened(path, out, "judged")
    run, block, panel = _settings(path, changes)
    rows = [_scored(sample) for sample in samples]
    check = language_check(block, {row.doc.query_lang for row in rows})
    rows, share = judged(rows, panel, block, check)
    found = score_rows(rows, _NAMES if check is not None else VERDICTS, searched=False)
    for sample, row, scores in zip(samples, rows, found, strict=True):
        record = sample["rows"]
        record.pop("panel", None)
        _replace(sample, (*_NAMES, "votes"), scores, listed=("votes",))
        if row.judgement is not None:
            record["judge"] = row.judgement.as_record()
            sample["votes"] = row.judgement.as_votes()
    samples[0]["rows"]["panel"] = share
    return _written(out, samples, run, block)


def judge_contexts(path: Path, out: Path | None = None, **changes: Any) -> Rejudged:
    """As :func:`judge_samples`, on the passages instead of the answers: ``context_sufficiency``, its votes and table.

    By default ``out`` is the file's name with ``contexts_`` before it; verdicts on answers stay as they are. Raises
    DataError also where the samples hold no passages.
    """
    out, samples = _opened(path, out, "contexts")
    passages = [[_hit(passage) for passage in sample["doc"].get("passages") or ()] for sample in samples]
    if not any(passages):
        raise DataError(f"{path}: no passages were shown in this run", "judge a run of a mode that retrieves some")
    run, block, panel = _settings(path, changes)
    rows, share = sufficiency_judged([_scored(sample) for sample in samples], passages, panel, block)
    for sample, row, scores in zip(samples, rows, score_rows(rows, (SUFFICIENCY,), searched=False), strict=True):
        record = sample["rows"]
        for key in ("sufficiency_panel", "sufficiency", "sufficiency_votes"):
            record.pop(key, None)
        _replace(sample, (SUFFICIENCY,), scores)
        if row.sufficiency is not None:
            record["sufficiency"] = row.sufficiency.as_record()
            record["sufficiency_votes"] = row.sufficiency.as_votes()
    samples[0]["rows"]["sufficiency_panel"] = share
    return _written(out, samples, run, block)


def _opened(path: Path, out: Path | None, prefix: str) -> tuple[Path, list[Sample]]:
    """Return where the judged samples go, and the samples."""
    out = out or path.with_name(f"{prefix}_{path.name}")
    if out.resolve() == path.resolve():
        raise DataError(f"{out} is the file to be judged", "give another one with --output")
    return out, read_samples(path)


def _settings(path: Path, changes: Mapping[str, Any]) -> tuple[dict[str, Any], Judge, Panel]:
    """Return the run's configuration, its judge block with the changes, and the panel that this asks for."""
    run = config_beside(path)
    named = {key: value for key, value in changes.items() if value is not None}
    settings = deep_merge(run.get("judge") or {}, named, {"required": True})
    block = validated(Judge, settings, "judge")
    panel = build_panel(block)
    assert panel is not None, "judge.required"
    panel.check()
    return run, block, panel


def _written(out: Path, samples: Sequence[Sample], run: Mapping[str, Any], block: Judge) -> Rejudged:
    text = "".join(json.dumps(sample, ensure_ascii=False) + "\n" for sample in samples)
    # half a surrogate pair, which a model may write, becomes the JSON escape that it is in the run's file
    write_whole(out, text, errors="backslashreplace")
    metadata = run.get("metadata") or {}
    evaluated = metadata.get("pretrained") or metadata.get("model")
    seed = (run.get("retrieval") or {}).get("seed", 0)
    return Rejudged(out, block, summarize([sample["rows"] for sample in samples], seed, evaluated))


def agreement(path: Path, human: Path) -> dict[str, Any]:
    """The panel whose votes are in the sample file ``path``, and each of its judges, against the labels in ``human``.

    See :func:`mrag_eval.scoring.against_human`. Raises DataError where the samples hold no votes, or no label
    belongs to one of their rows.
    """
    records = [sample["rows"] for sample in read_samples(path)]
    if not any("votes" in record.get("judge", {}) for record in records):
        raise DataError(f"{path}: no panel judged these answers", f"mrag-eval judge run {path}   judges them")
    labels = read_labels(human)
    found = against_human(records, labels)
    if not found["rows"]:
        known = str(records[0]["row"])
        raise DataError(
            f"{human}: none of its {len(labels)} ids is a judged row of {path} (one is '{known}')",
            "use the row ids of the sample file (rows.row)",
        )
    return found


def read_labels(path: Path) -> dict[str, bool]:
    """Human labels from a CSV file with the columns ``id`` and ``label`` (correct/incorrect, true/false, yes/no, 1/0).

    Raises DataError naming the line for a missing column, another label, or an id that comes twice.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as err:
        raise DataError(
            f"{path}: cannot be read ({err})", "a CSV file in UTF-8 with the columns id and label"
        ) from None
    labels: dict[str, bool] = {}
    for number, row in enumerate(rows, 2):
        key, word = row.get("id"), row.get("label")
        if key is None or word is None:
            raise DataError(f"{path}, line {number}: the columns 'id' and 'label' are needed", "id,label")
        label = _WORDS.get(word.strip(), as_verdict(word))
        if label is None:
            raise DataError(
                f"{path}, line {number}: label '{word}' is neither correct nor incorrect", "write correct or incorrect"
            )
        if key in labels:
            raise DataError(f"{path}, line {number}: the id '{key}' comes a second time", "keep one label for every id")
        labels[key] = label
    if not labels:
        raise DataError(f"{path} holds no labels", "a header line 'id,label', then one row a line")
    return labels


def _scored(sample: Sample) -> Scored:
    doc = sample["doc"]
    replies: Sequence[Any] = sample.get("filtered_resps") or [""]
    reply = replies[0][0] if isinstance(replies[0], list) and replies[0] else replies[0]
    answer = Answer.from_record(sample["rows"].get("answer", {}), str(reply))
    answers, extra = tuple(doc.get("answers") or ()), doc.get("extra") or {}
    row = RagDoc(str(doc["id"]), doc["query"], doc["query_lang"], answers, extra=extra)
    return Scored(row, answer.text, tagged=answer.tagged, declined=answer.declined)


def _hit(passage: Mapping[str, Any]) -> Hit:
    title, date = passage.get("title", ""), passage.get("date", "")
    return Hit(str(passage.get("id", "")), passage["lang"], passage["text"], 0.0, 0, title, date=date)


def _replace(sample: Sample, names: Sequence[str], scores: RowScores, listed: Sequence[str] = ()) -> None:
    """Replace the values of the metrics ``names``; ``listed`` are further names for the sample's list of metrics."""
    record = sample["rows"]
    for name in names:
        sample.pop(name, None)
    for part, found in (("values", scores.values), ("unscored", scores.unscored)):
        record[part] = {k: v for k, v in record.get(part, {}).items() if k not in names} | found
    sample |= scores.values
    kept = [name for name in sample.get("metrics", ()) if name not in names]
    sample["metrics"] = [*kept, *listed, *scores.values]
