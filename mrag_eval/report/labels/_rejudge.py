"""Judging of a finished run's sample file; nothing is generated."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeVar

from mrag_eval.config import (
    CORRECT,
    GROUNDED,
    JUDGES,
    OWN,
    SUFFICIENCY,
    GroundedByPanel,
    Judge,
    Measurement,
    asked_of,
    deep_merge,
    judges_of,
    validated,
    verdict_metrics,
)
from mrag_eval.core import Failure, Retrieved, RowScores, Scored, Stage, Value, Vote
from mrag_eval.datasets import sha256_file
from mrag_eval.judging import (
    Panel,
    build_panel,
    claims_by,
    claims_judged,
    judged,
    kept_panel,
    language_check,
    sufficiency_judged,
    sufficiency_rubric,
    verdict_rubric,
)
from mrag_eval.models import NOT_KEPT, summed, total
from mrag_eval.platform import DataError, UnwrittenError, content_key
from mrag_eval.report.files._results import LaterVerdicts, ResultFile
from mrag_eval.report.files._sample import Sample
from mrag_eval.report.files._samples import config_beside, read_samples, result_beside, task_of, write_samples
from mrag_eval.report.files._task_config import TaskConfig
from mrag_eval.scoring import (
    NO_CORRECT,
    JudgedRecord,
    Missing,
    PanelTable,
    RowRecord,
    Rules,
    TaskScores,
    needs_of,
    read,
    row_scores,
    sufficiency_record,
    summarize,
    support_by,
    with_claims,
)

T = TypeVar("T")
# The block within that of the judges whose prompt is asked with; None for its own.
_Part = Literal["sufficiency", "grounded"] | None
_PARTS = ("sufficiency", "grounded")
# The prompt of the run need not be here.
_AS_READ = Rules(form=Missing("answers are taken as the run read them"))


@dataclass(frozen=True)
class Rejudged:
    """A re-judged sample file.

    Attributes:
        path: the file.
        block: its settings.
        scores: the scores with the panel's table.
        metrics: the judged metrics.
        seats: what came back from the panel, beside what did in the run.
    """

    path: Path
    block: Judge
    scores: TaskScores
    metrics: tuple[str, ...]
    seats: Mapping[str, Any]

    @property
    def about(self) -> str:
        """Return what the panel judged: answers, contexts or claims."""
        return next(iter(self.scores.deciding(self.metrics[0])))

    @property
    def panel(self) -> PanelTable:
        """Return the table of the panel on what it judged."""
        return self.scores.panels[self.about]

    @property
    def requests(self) -> tuple[int, int]:
        """Return how many replies the judges have kept, and how many requests a dry run would send."""
        ledger = total(self.panel.ledger.values())
        return ledger.cached, ledger.failures.get(NOT_KEPT, 0)

    @property
    def silent(self) -> tuple[str, ...]:
        """Return the seats that were asked and gave no vote."""
        return tuple(seat for seat, judge in self.panel.judges.items() if judge.silent)


def judge_samples(path: Path, out: Path | None = None, *, dry_run: bool = False, **changes: Any) -> Rejudged:
    """Judge the answers in the harness's sample file ``path`` and write them to ``out``, with votes and scores.

    The settings are those of the run (if its result file is in the same folder), with ``changes``: keys of the judge
    block. By default ``out`` is the file's name with the prefix ``judged_``. The panel's cache is shared with runs, so
    that a repeated question to a judge costs nothing.

    A ``dry_run`` asks nobody and writes nothing: its table has the replies that are kept on this machine.

    Raises DataError for a file that is not a sample file of ours, ConfigError for invalid settings and if no judge is
    configured, UnwrittenError if no judge gives a vote: nothing is written then.
    """
    out, samples = _opened(path, out)
    return judge_answers(path, samples, out, dry_run=dry_run, **changes)


def judge_answers(
    path: Path, samples: Sequence[Sample], out: Path, *, of_people: bool = False, dry_run: bool = False, **changes: Any
) -> Rejudged:
    """Judge the answers in ``samples`` with the settings of the run whose sample file is ``path``.

    Those ``of_people`` are no evaluated model's, whose family a judge could prefer.
    """
    config, block, panel = _settings(path, changes, dry_run=dry_run)
    part_of = None if dry_run else _run_of(path, out)
    rows = [_read(sample, "judge") for sample in samples]
    check = language_check(block, {row.doc.query_lang for row in rows})
    rows, share = judged(rows, panel, block, check)
    earlier = _metrics_of([sample.record for sample in samples])
    # those of an earlier panel, perhaps on another scale, go
    given = {*block.scale.metrics, *verdict_metrics(earlier)}
    known = _known(samples, [name for name in CORRECT if name in earlier and name not in given])
    right = next((name for name in CORRECT if name in {*known, *block.scale.metrics}), None)
    whole = right is not None and GROUNDED[0] in earlier
    names = (*block.scale.metrics, *(n for n in GROUNDED[1:] if whole or n in earlier))
    stale = {*names, *given, "language_check"}
    told = names if check is None else (*names, "language_check")
    scores = row_scores(rows, Rules(told, known=known))
    done = []
    for i, (sample, row, score) in enumerate(zip(samples, rows, scores, strict=True)):
        record = _rescored(sample.record, score, stale)
        failures = (*row.failures, *_lost_on_passages(record))
        record = replace(record, panel=share if i == 0 else None, judge=None, failures=failures)
        record = replace(record, asked=_asked(record, panel))
        votes: Mapping[str, Vote] = {}
        if row.judgement is not None:
            record, votes = replace(record, judge=JudgedRecord.of(row.judgement)), row.judgement.votes
        done.append(sample.rescored(record, stale, score.values, votes))
    judged_run = _written(
        *(out, done, config, block, (*names, "language_check")), None if of_people else config.evaluated, dry_run
    )
    if part_of is not None:
        run, measured = part_of
        # verdicts on claims and on passages that were given before stay
        held = measured.setting.get("judge") or {}
        recorded = {**block.model_dump(mode="json"), **{key: held[key] for key in _PARTS if key in held}}
        crossed = [name for name in names if name in GROUNDED]
        claims = {**measured.support, **({"right": {right: crossed}} if crossed else {})}
        others = _of_other_votes([sample.record for sample in done])
        _join(run, path, judged_run, _measured(measured, recorded, block, panel, others).with_support(claims))
    return judged_run


def judge_claims(path: Path, out: Path | None = None, *, dry_run: bool = False, **changes: Any) -> Rejudged:
    """Judge the claims of answers as :func:`judge_samples` judges answers: ``grounded``, its votes and table.

    If a metric says which answers are right, the metrics that cross both are scored as well. Verdicts on answers keep
    their judges; claims that were checked before are checked anew. Raises DataError also if the samples hold no
    passages.
    """
    out, samples = _opened(path, out, shown=True)
    config, block, panel = _settings(path, changes, "grounded", dry_run=dry_run)
    part_of = None if dry_run else _run_of(path, out)
    rows = [replace(_read(sample, "grounding"), grounding=None) for sample in samples]
    rows, share = claims_judged(rows, panel, block)
    earlier = _metrics_of([sample.record for sample in samples])
    known = _known(samples, [name for name in CORRECT if name in earlier])
    names = GROUNDED if known else GROUNDED[:1]
    stays = _by_others(samples)
    scores = row_scores(rows, Rules(names, known=known))
    done = []
    for i, (sample, row, score) in enumerate(zip(samples, rows, scores, strict=True)):
        record = with_claims(_rescored(sample.record, score, GROUNDED), row.grounding, sample.passages)
        record = replace(record, claims_panel=share if i == 0 else None, failures=row.failures)
        record = record if stays else replace(record, asked=_asked(record, panel))
        done.append(sample.rescored(record, GROUNDED, score.values, None))
    judged_run = _written(out, done, config, block, names, config.evaluated, dry_run)
    if part_of is not None:
        measured = _with_part(part_of[1], block, panel, "grounded", stays=stays)
        by = support_by([*known, *names], claims_by(panel, block))
        _join(part_of[0], path, judged_run, measured.with_support(by))
    return judged_run


def judge_contexts(path: Path, out: Path | None = None, *, dry_run: bool = False, **changes: Any) -> Rejudged:
    """Judge the passages as :func:`judge_samples` judges answers: ``context_sufficiency``, its votes and table.

    Verdicts on answers and claims keep their judges. Raises DataError also if the samples hold no passages.
    """
    out, samples = _opened(path, out, shown=True)
    config, block, panel = _settings(path, changes, "sufficiency", dry_run=dry_run)
    part_of = None if dry_run else _run_of(path, out)
    rows, share = sufficiency_judged([_read(sample, "judge") for sample in samples], panel, block)
    stays = _by_others(samples, but=SUFFICIENCY) or any(sample.record.claims_panel for sample in samples)
    done = []
    for i, (sample, row, score) in enumerate(zip(samples, rows, row_scores(rows, Rules((SUFFICIENCY,))), strict=True)):
        kept = Counter(sample.record.failures) - Counter(_lost_on_passages(sample.record))
        parts = {"sufficiency": None, "sufficiency_votes": None, **sufficiency_record(row.sufficiency)}
        parts["failures"] = (*kept.elements(), *(row.sufficiency.failures if row.sufficiency else ()))
        record = _rescored(sample.record, score, (SUFFICIENCY,))
        record = replace(record, sufficiency_panel=share if i == 0 else None, **parts)
        record = record if stays else replace(record, asked=_asked(record, panel))
        done.append(sample.rescored(record, (SUFFICIENCY,), score.values, None))
    judged_run = _written(out, done, config, block, (SUFFICIENCY,), config.evaluated, dry_run)
    if part_of is not None:
        measured = _with_part(part_of[1], block, panel, "sufficiency", stays=stays)
        text = sufficiency_rubric(block.sufficiency.prompt).template.sha256
        measured = measured.with_blocks({"texts": {**(measured.setting.get("texts") or {}), "sufficiency": text}})
        by = {JUDGES: judges_of(panel.identities), "repeats": block.repeats, "tie": block.tie}
        _join(part_of[0], path, judged_run, _decided(measured, {SUFFICIENCY: by}))
    return judged_run


def _asked(record: RowRecord, panel: Panel) -> Mapping[str, str]:
    """Return the hashes of a rank's models with those of its judges now; of rows that carry none, nothing."""
    if record.prompts is None:
        return record.asked
    kept = {key: value for key, value in record.asked.items() if not key.startswith(f"{JUDGES}.")}
    return kept | asked_of({JUDGES: panel.identities})


def _rescored(record: RowRecord, scores: RowScores, names: Collection[str]) -> RowRecord:
    """Return the record with new values of the metrics ``names``, replacing any earlier ones."""

    def renewed(before: Mapping[str, T], new: Mapping[str, T]) -> dict[str, T]:
        return {name: value for name, value in before.items() if name not in names} | dict(new)

    return replace(
        record, values=renewed(record.values, scores.values), unscored=renewed(record.unscored, scores.unscored)
    )


def _opened(path: Path, out: Path | None, *, shown: bool = False) -> tuple[Path, list[Sample]]:
    """Return the path of the judged samples, and the samples, with the verdicts given since the run.

    Raises DataError for texts that no judge can read, and where ``shown`` passages are to be judged and none were.
    """
    out = out or path.with_name(f"judged_{path.name}")
    if out.resolve() == path.resolve():
        raise DataError(f"{out} is the file to be judged", "give another one with --output")
    run, task = result_beside(path), task_of(path)
    if config_beside(path).setting("row_texts") == "hashed":
        raise DataError(
            f"{path}: its texts are hashes, which no judge can read", "score the log again without --hash-texts"
        )
    is_own = run is not None and run.samples(task, judged=False) == path
    samples = read_samples((run.samples(task) if run is not None and is_own else None) or path)
    if shown and not any(sample.passages for sample in samples):
        raise DataError(f"{path}: no passages were shown in this run", "judge a run of a mode that retrieves some")
    return out, samples


def _run_of(path: Path, out: Path) -> tuple[ResultFile, Measurement] | None:
    """Return the run that judged samples at ``out`` are part of, and what its scores measure until now.

    Samples in another place are part of none.
    """
    run, task = result_beside(path), task_of(path)
    if run is None or out.resolve() != LaterVerdicts.samples_path(run.path, task).resolve():
        return None
    return run, (LaterVerdicts.of(run.path, task) or run.leaves[task]).measurement


def _join(run: ResultFile, path: Path, done: Rejudged, measured: Measurement) -> None:
    """Make verdicts part of a run, and what came back from the judges who gave them."""
    if done.seats:
        measured = measured.adding("outcome", {"seats": done.seats})
    LaterVerdicts(done.scores, sha256_file(done.path), measured).write(run.path, task_of(path))


def _settings(
    path: Path, changes: Mapping[str, Any], part: _Part = None, *, dry_run: bool = False
) -> tuple[TaskConfig, Judge, Panel]:
    """Return the run's configuration, its judge block with the changes, and the panel of that block.

    ``part`` names the block within it that has the prompt to ask with. Raises DataError as :func:`_check_prompt` does.
    """
    config = config_beside(path)
    named = {key: value for key, value in changes.items() if value is not None}
    recorded = dict(config.judge)
    if part == "grounded" and (recorded.get(part) or {}).get("by") != GroundedByPanel().by:
        recorded[part] = GroundedByPanel().model_dump()
    _check_prompt(path, recorded, named, part)
    if "prompt" in named:
        # the form of the run's own prompt is none of this one's
        named.setdefault("reply", None)
    block = validated(Judge, deep_merge(recorded, named, {"required": True}), "judge")
    panel = kept_panel(block) if dry_run else build_panel(block)
    assert panel is not None, "judge.required"
    if not dry_run:
        panel.check()
    return config, block, panel


def _check_prompt(path: Path, recorded: Mapping[str, Any], named: Mapping[str, Any], part: _Part = None) -> None:
    """Raise DataError if the recorded prompt to ask with is a template's file and ``named`` has none."""
    of_prompt, given = (block if part is None else block.get(part) or {} for block in (recorded, named))
    prompt = of_prompt.get("prompt")
    if isinstance(prompt, str) and "prompt" not in given and not prompt.replace("_", "").isalnum():
        key = ".".join(filter(None, ("judge", part, "prompt")))
        raise DataError(
            f"{path}: its results name the file {prompt!r} as {key}, which is not for a file to decide",
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


def _lost_on_passages(record: RowRecord) -> list[Failure]:
    """Return the failures of judges that left the passages of a row without a verdict."""
    votes = (record.sufficiency_votes or {}) if record.sufficiency and record.sufficiency.outcome == "unjudged" else {}
    return [Failure.of("judge", seat, vote.error) for seat, vote in votes.items() if vote.error is not None]


def _by_others(samples: Sequence[Sample], but: str = "") -> bool:
    """Return whether judges decided answers, or another metric than this one: what they decided keeps them."""
    records = [sample.record for sample in samples]
    return bool({*verdict_metrics(_metrics_of(records)), *_of_other_votes(records)} - {but})


def _with_part(record: Measurement, block: Judge, panel: Panel, part: str, *, stays: bool) -> Measurement:
    """Return the record with a part of the judge block; unless other judges stay, with all of it and its judges."""
    told = block.model_dump(mode="json")
    if stays:
        return record.with_blocks({"judge": {**(record.setting.get("judge") or {}), part: told[part]}})
    return record.adding("instrument", {JUDGES: panel.identities}).with_blocks({"judge": told})


def _measured(
    record: Measurement, told: Mapping[str, Any], block: Judge, panel: Panel, others: Sequence[str]
) -> Measurement:
    """Return what the scores of a run measure with the verdicts of a panel on its answers.

    ``told`` is the judge block that says how they were given, by ``block``. ``others`` are the metrics that keep the
    judges that they had.
    """
    text = verdict_rubric(block.prompt, block.reply, block.scale).template.sha256
    texts = {**(record.setting.get("texts") or {}), "judge": text}
    kept = {name: record.instrument.get(f"{OWN}{name}", record.votes) for name in others}
    record = record.adding("instrument", {JUDGES: panel.identities})
    return _decided(record.with_blocks({"judge": told, "texts": texts}), kept)


def _decided(record: Measurement, by: Mapping[str, Any]) -> Measurement:
    """Return the record with who votes on each of these metrics, where others than the judges of the record do."""
    own = content_key(record.votes)
    found = {key: value for key, value in record.instrument.items() if key.removeprefix(OWN) not in by}
    found |= {f"{OWN}{name}": votes for name, votes in by.items() if content_key(votes) != own}
    return replace(record, instrument=found)


def _written(
    out: Path,
    samples: Sequence[Sample],
    config: TaskConfig,
    block: Judge,
    metrics: tuple[str, ...],
    evaluated: str | None,
    dry_run: bool,
) -> Rejudged:
    seed = config.retrieval.get("seed", 0)
    scores = summarize([sample.record for sample in samples], seed, evaluated)
    done = Rejudged(out, block, scores, metrics, summed(sample.record.seats for sample in samples))
    if dry_run:
        return done
    if done.silent and len(done.silent) == len(done.panel.judges):
        raise UnwrittenError(
            f"{out}: not written, as no judge gave a vote: {done.panel.failed_votes}",
            "earlier verdicts are as they were; judge again when a judge answers",
        )
    write_samples(out, samples)
    return done


def _read(sample: Sample, asked: Stage) -> Scored:
    """Return the row as the run read it, without the failures of the stage that is ``asked`` again."""
    given = sample.given(sample.doc, Retrieved(sample.passages))
    failures = tuple(failure for failure in sample.record.failures if failure.stage != asked)
    return replace(read(given, _AS_READ).row, failures=failures, grounding=sample.record.grounding)
