"""Judging of a finished run's sample file; nothing is generated."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from mrag_eval.config import (
    CORRECT,
    GROUNDED,
    JUDGES,
    SUFFICIENCY,
    Judge,
    Measurement,
    by_content,
    deep_merge,
    following_verdicts,
    judges_of,
    validated,
    verdict_metrics,
)
from mrag_eval.core import RowScores, Scored, Value, Vote
from mrag_eval.datasets import sha256_file
from mrag_eval.judging import Panel, build_panel, judged, language_check, sufficiency_judged, verdict_rubric
from mrag_eval.platform import DataError, UnwrittenError, content_key
from mrag_eval.report.files._results import LaterVerdicts, ResultFile
from mrag_eval.report.files._sample import Sample
from mrag_eval.report.files._samples import config_beside, read_samples, result_beside, task_of, write_samples
from mrag_eval.report.files._task_config import TaskConfig
from mrag_eval.scoring import (
    NO_CORRECT,
    OWN,
    JudgedRecord,
    PanelTable,
    RowRecord,
    TaskScores,
    needs_of,
    score_rows,
    sufficiency_record,
    summarize,
)

T = TypeVar("T")


@dataclass(frozen=True)
class Rejudged:
    """A re-judged sample file: its path, its settings, the scores with the panel's table, and the judged metrics."""

    path: Path
    block: Judge
    scores: TaskScores
    metrics: tuple[str, ...]

    @property
    def panel(self) -> PanelTable:
        """Return the table of the panel on what it judged: answers, or contexts."""
        table = self.scores.sufficiency if SUFFICIENCY in self.metrics else self.scores.judge
        assert table is not None, "a panel is required"
        return table

    @property
    def silent(self) -> tuple[str, ...]:
        """Return the seats that were asked and gave no vote."""
        return tuple(seat for seat, judge in self.panel.judges.items() if judge.silent)


def judge_samples(path: Path, out: Path | None = None, **changes: Any) -> Rejudged:
    """Judge the answers in the harness's sample file ``path`` and write them to ``out``, with votes and scores.

    The settings are those of the run (if its result file is in the same folder), with ``changes``: keys of the judge
    block. By default ``out`` is the file's name with the prefix ``judged_``. The panel's cache is shared with runs, so
    that a repeated question to a judge costs nothing.

    Raises DataError for a file that is not a sample file of ours, ConfigError for invalid settings and if no judge is
    configured, UnwrittenError if no judge gives a vote: nothing is written then.
    """
    out, samples = _opened(path, out, "judged")
    return judge_answers(path, samples, out, **changes)


def judge_answers(
    path: Path, samples: Sequence[Sample], out: Path, *, of_people: bool = False, **changes: Any
) -> Rejudged:
    """Judge the answers in ``samples`` with the settings of the run whose sample file is ``path``.

    Those ``of_people`` are no evaluated model's, whose family a judge could prefer.
    """
    config, block, panel = _settings(path, changes)
    rows = [_scored(sample) for sample in samples]
    check = language_check(block, {row.doc.query_lang for row in rows})
    rows, share = judged(rows, panel, block, check)
    earlier = _metrics_of([sample.record for sample in samples])
    names = (*block.scale.metrics, *(n for n in following_verdicts(earlier) if not verdict_metrics([n])))
    # those of an earlier panel, perhaps on another scale, go
    stale = {*names, "language_check", *verdict_metrics(earlier)}
    known = _known(samples, [name for name in CORRECT if name in earlier and name not in stale])
    told = names if check is None else (*names, "language_check")
    scores = score_rows(rows, told, searched=False, known=known)
    done = []
    for i, (sample, row, score) in enumerate(zip(samples, rows, scores, strict=True)):
        record = _rescored(sample.record, score, stale)
        record = replace(record, panel=share if i == 0 else None, judge=None, failures=row.failures)
        votes: Mapping[str, Vote] = {}
        if row.judgement is not None:
            record, votes = replace(record, judge=JudgedRecord.of(row.judgement)), row.judgement.votes
        done.append(sample.rescored(record, stale, score.values, votes))
    judged_run = _written(out, done, config, block, (*names, "language_check"), None if of_people else config.evaluated)
    run, task = result_beside(path), task_of(path)
    # samples in another place are no part of the run
    if run is not None and out.resolve() == LaterVerdicts.samples_path(run.path, task).resolve():
        right = next((name for name in CORRECT if name in {*known, *names}), None)
        measured = _measured(run, task, block, panel, _of_other_votes([sample.record for sample in done]), right)
        later = LaterVerdicts(judged_run.scores, block.model_dump(mode="json"), sha256_file(out), measured)
        later.write(run.path, task)
    return judged_run


def judge_contexts(path: Path, out: Path | None = None, **changes: Any) -> Rejudged:
    """Judge the passages as :func:`judge_samples` judges answers: ``context_sufficiency``, its votes and table.

    By default ``out`` is the file's name with the prefix ``contexts_``; verdicts on answers are kept. Raises DataError
    also if the samples hold no passages.
    """
    out, samples = _opened(path, out, "contexts")
    if not any(sample.passages for sample in samples):
        raise DataError(f"{path}: no passages were shown in this run", "judge a run of a mode that retrieves some")
    config, block, panel = _settings(path, changes)
    passages = [sample.passages for sample in samples]
    rows, share = sufficiency_judged([_scored(sample) for sample in samples], passages, panel, block)
    done = []
    for i, (sample, row, score) in enumerate(
        zip(samples, rows, score_rows(rows, (SUFFICIENCY,), searched=False), strict=True)
    ):
        parts = {"sufficiency": None, "sufficiency_votes": None, **sufficiency_record(row.sufficiency)}
        parts["failures"] = (*sample.record.failures, *(row.sufficiency.failures if row.sufficiency else ()))
        record = _rescored(sample.record, score, (SUFFICIENCY,))
        record = replace(record, sufficiency_panel=share if i == 0 else None, **parts)
        done.append(sample.rescored(record, (SUFFICIENCY,), score.values, None))
    return _written(out, done, config, block, (SUFFICIENCY,), config.evaluated)


def _rescored(record: RowRecord, scores: RowScores, names: Collection[str]) -> RowRecord:
    """Return the record with new values of the metrics ``names``, replacing any earlier ones."""

    def renewed(before: Mapping[str, T], new: Mapping[str, T]) -> dict[str, T]:
        return {name: value for name, value in before.items() if name not in names} | dict(new)

    return replace(
        record, values=renewed(record.values, scores.values), unscored=renewed(record.unscored, scores.unscored)
    )


def _opened(path: Path, out: Path | None, prefix: str) -> tuple[Path, list[Sample]]:
    """Return the path of the judged samples, and the samples."""
    out = out or path.with_name(f"{prefix}_{path.name}")
    if out.resolve() == path.resolve():
        raise DataError(f"{out} is the file to be judged", "give another one with --output")
    return out, read_samples(path)


def _settings(path: Path, changes: Mapping[str, Any]) -> tuple[TaskConfig, Judge, Panel]:
    """Return the run's configuration, its judge block with the changes, and the panel of that block."""
    config = config_beside(path)
    named = {key: value for key, value in changes.items() if value is not None}
    _check_prompts(path, config.judge, named)
    if "prompt" in named:
        # the form of the run's own prompt is none of this one's
        named.setdefault("reply", None)
    block = validated(Judge, deep_merge(config.judge, named, {"required": True}), "judge")
    panel = build_panel(block)
    assert panel is not None, "judge.required"
    panel.check()
    return config, block, panel


def _check_prompts(path: Path, recorded: Mapping[str, Any], named: Mapping[str, Any]) -> None:
    """Raise DataError if the recorded judge block names a template's file and ``named`` does not."""
    blocks = ((recorded, named), (recorded.get("sufficiency") or {}, named.get("sufficiency") or {}))
    for block, given in blocks:
        prompt = block.get("prompt")
        if isinstance(prompt, str) and "prompt" not in given and not prompt.replace("_", "").isalnum():
            raise DataError(
                f"{path}: its results name the file {prompt!r} as judge.prompt, which is not for a file to decide",
                "if it is yours, name it: --prompt FILE",
            )


def _metrics_of(records: Sequence[RowRecord]) -> list[str]:
    """Return the metrics of the records, with a value or without."""
    return list(dict.fromkeys(name for record in records for name in (*record.values, *record.unscored)))


def _known(samples: Sequence[Sample], names: Sequence[str]) -> dict[str, list[Value]]:
    """Return the values of metrics that samples hold, with the reasons where there is none."""
    rows: list[dict[str, Value]] = [{**sample.record.unscored, **sample.record.values} for sample in samples]
    return {name: [row.get(name, NO_CORRECT) for row in rows] for name in names}


def _of_other_votes(records: Sequence[RowRecord]) -> list[str]:
    """Return the metrics that judges decide and that verdicts on answers leave as they are."""
    labelled = any(record.relevance is not None and record.relevance.by == "judge" for record in records)
    steps = {"judge", "label"} if labelled else {"judge"}
    return [name for name in _metrics_of(records) if steps & needs_of(name) and not verdict_metrics([name])]


def _measured(
    run: ResultFile, task: str, block: Judge, panel: Panel, others: Sequence[str], right: str | None
) -> Measurement | None:
    """Return what the scores of a run measure with the verdicts of a panel.

    ``others`` are the metrics that keep the run's own judges, ``right`` is the one that says which answers are right.
    """
    record = run.measurement(task)
    if record is None:
        return None
    text = verdict_rubric(block.prompt, block.reply, block.scale).template.sha256
    own = by_content({"judge": block.model_dump(mode="json")})
    texts = {**(record.setting.get("texts") or {}), "judge": text}
    before = record.votes
    crossed = {key: who for n in GROUNDED[1:] if (who := record.instrument.get(key := f"{OWN}{n}"))}
    record = record.adding("instrument", {key: {**who, "right": right} for key, who in crossed.items()})
    record = record.adding("instrument", {JUDGES: judges_of(panel.identities)})
    record = record.adding("setting", {**own, "texts": texts})
    kept = [] if content_key(record.votes) == content_key(before) else others
    return record.adding("instrument", {f"{OWN}{name}": before for name in kept})


def _written(
    out: Path,
    samples: Sequence[Sample],
    config: TaskConfig,
    block: Judge,
    metrics: tuple[str, ...],
    evaluated: str | None,
) -> Rejudged:
    seed = config.retrieval.get("seed", 0)
    scores = summarize([sample.record for sample in samples], seed, evaluated)
    done = Rejudged(out, block, scores, metrics)
    if done.silent and len(done.silent) == len(done.panel.judges):
        raise UnwrittenError(
            f"{out}: not written, as no judge gave a vote: {done.panel.failed_votes}",
            "earlier verdicts are as they were; judge again when a judge answers",
        )
    write_samples(out, samples)
    return done


def _scored(sample: Sample) -> Scored:
    answer = sample.record.answer_to(sample.reply)
    # the judges are asked again
    failures = tuple(failure for failure in sample.record.failures if failure.stage != "judge")
    scored = Scored(sample.doc, answer.text, tagged=answer.tagged, declined=answer.declined, failures=failures)
    return replace(scored, passages=sample.passages, grounding=sample.record.grounding)
