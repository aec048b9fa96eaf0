"""Votes of judges, in a run and after it: against their replies, and against the samples that they were given on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from mrag_eval.config import GROUNDED, JUDGES, OWN, SUFFICIENCY, is_named, verdict_metrics
from mrag_eval.platform import DataError, to_json
from mrag_eval.report.files._results import LaterVerdicts, LeafResult, ResultFile
from mrag_eval.report.files._sample import Sample
from mrag_eval.report.files._samples import Samples, open_samples
from mrag_eval.report.files._scored_rows import ScoredSamples
from mrag_eval.report.verification._claims import instruments_follow, task_settings
from mrag_eval.report.verification._findings import Differing, Remark, differing, value_text
from mrag_eval.report.verification._row_checks import judge_texts, made_again, row_values
from mrag_eval.report.verification._score_checks import means, recomputed_scores
from mrag_eval.report.verification._share_checks import rank_shares, seats_follow
from mrag_eval.report.verification._task_here import TaskHere
from mrag_eval.scoring import EVIDENCE

# What verdicts that were given after a run decide of its record, and of the records of its rows.
_JUDGED = ("setting.judge", "setting.texts.judge", "setting.texts.sufficiency", "setting.contents.judge",
           f"instrument.{JUDGES}", "outcome.seats")  # fmt: skip
_OF_VERDICTS = ("judge", "panel", "sufficiency", "sufficiency_votes", "sufficiency_panel", "claims_panel", "grounding",
                "failures", "values", "unscored", "asked")  # fmt: skip


def later_verdicts(
    file: ResultFile, task: str, tasks_folder: Path, copies: Sequence[Path], samples: Samples
) -> list[Remark]:
    """Return the findings on the verdicts that a task was given after the run, whose ``samples`` these are.

    They may change what judges decide, and nothing else; what judges decide follows from their votes.
    """
    paths = LaterVerdicts.path(file.path, task), LaterVerdicts.samples_path(file.path, task)
    given = [path.name for path in paths if path.is_file()]
    if not given:
        return []
    fault = f"{' and '.join(given)}: not of the same votes, so these verdicts do not count: judge again, or remove them"
    try:
        later = LaterVerdicts.of(file.path, task)
        if later is None:
            return [Remark(task, "fault", fault)]
        judged = open_samples(paths[1])
        found = list(_later(file, file.leaves[task], later, tasks_folder, copies, samples, judged))
    except DataError as error:
        return [Remark(task, "fault", error.message)]
    return [replace(one, text=f"{paths[0].name}: {one.text}") for one in found]


def _later(
    file: ResultFile,
    leaf: LeafResult,
    later: LaterVerdicts,
    tasks_folder: Path,
    copies: Sequence[Path],
    samples: Samples,
    judged: Samples,
) -> Iterator[Remark]:
    task, records = leaf.task, judged.records
    for key, one, other in differing(to_json(later.measurement), to_json(leaf.measurement)):
        if not is_named(key, _JUDGED) and not key.startswith("instrument.metric:"):
            yield Remark(task, "fault", f"{key} is {value_text(one)}, {value_text(other)} in the run")
    names = list(dict.fromkeys(name for record in records for name in (*record.values, *record.unscored)))
    decided = decided_by_judges(names)
    if [one.row for one in records] != [one.row for one in samples.records]:
        yield Remark(task, "fault", "its rows are not those of the run")
        return
    changed = Differing(task, len(samples), "in the run")
    for one, before in zip(judged, samples, strict=True):
        found, wanted = (_without_verdicts(sample, decided) for sample in (one, before))
        changed.compare(one.record.row, found, wanted)
    yield from changed.findings()
    # the metrics of the task, and those that the verdicts brought
    metrics = list(dict.fromkeys([*leaf.config.metrics, *(name for name in names if name in decided)]))
    record = later.measurement.adding("setting", {"metrics": metrics}).adding("outcome", {"not_judged": []})
    whole = LeafResult(task, later.scores, replace(leaf.config, record=record), record)
    here = TaskHere.of(whole, copies)
    again = made_again(here, judged)
    known = {(one.kind, one.text) for one in task_settings(leaf, tasks_folder)}
    asked = replace(whole, measurement=later.measurement)
    # the harness reports the scores of the run itself
    alone = replace(file, content={"configs": {task: {"scores": later.scores.to_dict()}}})
    yield from (one for one in task_settings(asked, tasks_folder) if (one.kind, one.text) not in known)
    if leaf.seats and leaf.measurement.judges != later.measurement.judges:
        text = f"judged by {', '.join(later.measurement.judges)}, in the run by {', '.join(leaf.measurement.judges)}"
        yield Remark(task, "deviation", text, JUDGES)
    yield from row_values(here, again)
    yield from rank_shares(here, judged)
    yield from seats_follow(asked, records)
    yield from again.votes
    yield from judge_texts(here)
    # a metric that the judges of the run decided stays theirs, and passages may have judges of their own
    instrument, votes, own = later.measurement.instrument, leaf.measurement.votes, f"{OWN}{SUFFICIENCY}"
    stays = [key for key, by in instrument.items() if key == own or (key.startswith(OWN) and by == votes)]
    kept = tuple(f"instrument.{key} is " for key in stays)
    yield from (one for one in instruments_follow(here, records) if not one.text.startswith(kept))
    yield from means(alone, whole, ScoredSamples.of(records))
    yield from recomputed_scores(alone, whole, records)[2]


def decided_by_judges(names: Sequence[str]) -> set[str]:
    """Return the metrics that verdicts after a run may change, among ``names``."""
    return {*verdict_metrics(names), *GROUNDED, SUFFICIENCY, "language_check"}


def _without_verdicts(sample: Sample, decided: set[str]) -> dict[str, Any]:
    """Return a sample without what judges decide of it."""
    line = {key: value for key, value in sample.line.items() if key not in ("votes", "metrics", "rows", *decided)}
    rows: Mapping[str, Any] = sample.line["rows"]
    kept = {key: value for key, value in rows.items() if key not in _OF_VERDICTS}
    for part in ("values", "unscored"):
        kept[part] = {name: value for name, value in (rows.get(part) or {}).items() if name not in decided}
    kept["cell"] = {name: cell for name, cell in (rows.get("cell") or {}).items() if name != EVIDENCE}
    kept["asked"] = {key: asked for key, asked in sample.record.asked.items() if not key.startswith(JUDGES)}
    kept["failures"] = [to_json(one) for one in sample.record.failures if one.stage not in ("judge", "grounding")]
    return {**line, "rows": kept}
