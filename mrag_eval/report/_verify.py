"""Verification of finished runs: whether scores follow from samples, and which settings are not the benchmark's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from mrag_eval.config import PLACES, CorrectLanguage, dotted, fingerprints, package_versions, split_config, validated
from mrag_eval.core import ConfigError, DataError, Scored, to_json
from mrag_eval.metrics import majority_vote
from mrag_eval.prompts import load_template
from mrag_eval.report.files._results import LeafResult, ResultFile, read_results
from mrag_eval.report.files._samples import Sample, read_samples, samples_beside
from mrag_eval.scoring import (
    METRIC_NAMES,
    REPLY_METRICS,
    LanguageRule,
    RowRecord,
    TaskScores,
    halved_metrics,
    parse_answer,
    score_rows,
    summarize,
    territory_values,
)

Kind = Literal["fault", "deviation", "note"]
_KINDS: tuple[Kind, ...] = get_args(Kind)
# Two computations of one number may differ in the order of its sums.
_TOLERANCE = 1e-9
# Differing values that are printed of one part; the others are counted.
_SHOWN = 5
# Settings of the harness that decide a reply, besides our own blocks.
_HARNESS_SETTINGS = ("generation_kwargs", "output_type")


@dataclass(frozen=True)
class Finding:
    """Hold one difference.

    A ``fault`` is a number or a fingerprint that does not follow from the samples. A ``deviation`` is a setting or a
    number of rows that is not the benchmark's. A ``note`` says what could not be checked.
    """

    task: str
    kind: Kind
    text: str

    @property
    def line(self) -> str:
        """Return the finding as one line."""
        return f"{self.kind}: {self.text}"


@dataclass(frozen=True)
class Verified:
    """Hold a result file after its verification: how many tasks, rows and numbers were checked, and what differs."""

    path: Path
    tasks: int
    rows: int
    numbers: int
    findings: tuple[Finding, ...]

    def of(self, kind: Kind) -> list[Finding]:
        """Return the findings of one kind."""
        return [finding for finding in self.findings if finding.kind == kind]

    @property
    def lines(self) -> list[str]:
        """Return the verification as text: the verdict, then each finding once, with its tasks."""
        checked = ", ".join([_count(self.tasks, "task"), _count(self.rows, "row"), _count(self.numbers, "number")])
        faults, deviations = len(self.of("fault")), len(self.of("deviation"))
        verdict = _count(faults, "fault") if faults else "all scores follow from the samples"
        official = f"{_count(deviations, 'deviation')} from" if deviations else "in"
        tasks: dict[str, list[str]] = {}
        for finding in sorted(self.findings, key=lambda finding: _KINDS.index(finding.kind)):
            tasks.setdefault(finding.line, []).append(finding.task)
        lines = [f"    {line}   [{_named(named)}]" for line, named in tasks.items()]
        return [f"{self.path}: {verdict}, {official} the tasks' settings ({checked})", *lines]

    def as_dict(self) -> dict[str, Any]:
        """Return the verification as JSON."""
        return {
            "path": str(self.path),
            "tasks": self.tasks,
            "rows": self.rows,
            "numbers": self.numbers,
            "findings": [{"task": f.task, "kind": f.kind, "text": f.text} for f in self.findings],
        }


def _count(n: int, noun: str) -> str:
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


def _named(tasks: Sequence[str]) -> str:
    return ", ".join(tasks) if len(tasks) <= _SHOWN else f"{', '.join(tasks[:_SHOWN])} and {len(tasks) - _SHOWN} more"


def verify(paths: Sequence[Path | str], tasks_folder: Path) -> list[Verified]:
    """Verify the result files at ``paths`` (files, or folders of them) against their samples.

    For each task: rows and their number; values of rows from replies and votes; all scores, by summarizing the rows
    again; the harness's averages; fingerprints; and the settings against the task's file in ``tasks_folder``.
    Raises DataError for a path without results.
    """
    return [_verified(file, tasks_folder) for file in read_results([Path(path) for path in paths])]


def unsupported(paths: Sequence[Path | str]) -> list[str]:
    """Return one line for each score in the results at ``paths`` that is not the mean of its samples.

    This is the quick part of :func:`verify`, for every command that prints scores. Results without samples, and paths
    that are not results, give no line.
    """
    lines = []
    for file in _results_of(paths):
        for task, leaf in file.leaves.items():
            rows = _rows_or_none(file, task)
            for finding in _means(file, leaf, [sample.record for sample in rows]) if rows else ():
                lines.append(f"{task}: {finding.text} (mrag-eval verify {file.path})")
    return lines


def _results_of(paths: Sequence[Path | str]) -> list[ResultFile]:
    found: dict[Path, ResultFile] = {}
    for path in map(Path, paths):
        is_results = path.is_file() and path.name.startswith("results_") and path.suffix == ".json"
        if path.is_dir() or is_results:
            try:
                found |= {file.path: file for file in read_results([path])}
            except DataError:
                # the command that reads this path names its fault
                continue
    return list(found.values())


def _rows_or_none(file: ResultFile, task: str) -> list[Sample] | None:
    path = samples_beside(file.path, task)
    try:
        return read_samples(path) if path is not None else None
    except DataError:
        return None


def _verified(file: ResultFile, tasks_folder: Path) -> Verified:
    findings: list[Finding] = []
    rows = numbers = 0
    for task, leaf in file.leaves.items():
        findings += _settings(leaf, tasks_folder)
        path = samples_beside(file.path, task)
        if path is None:
            findings.append(Finding(task, "fault", "no samples next to the results; run with --log_samples"))
            continue
        samples = read_samples(path)
        records = [sample.record for sample in samples]
        rows += len(samples)
        findings += _counts(file, leaf, records)
        findings += _values(leaf, samples)
        findings += _means(file, leaf, records)
        checked, differing = _scores(leaf, records)
        numbers += checked
        findings += differing
        findings += _prints(file, leaf, records)
    findings += _groups(file)
    if not file.leaves:
        findings.append(Finding("", "fault", "no task of ours in these results"))
    return Verified(file.path, len(file.leaves), rows, numbers, tuple(findings))


# -------------------------------------------------------------------- rows


def _counts(file: ResultFile, leaf: LeafResult, records: Sequence[RowRecord]) -> Iterator[Finding]:
    ids = Counter(record.row for record in records)
    twice = [row for row, n in ids.items() if n > 1]
    if twice:
        yield Finding(leaf.task, "fault", f"{_count(len(twice), 'repeated row')}, '{twice[0]}' first")
    if leaf.scores.rows != len(ids):
        yield Finding(leaf.task, "fault", f"{leaf.scores.rows} rows in the results, {len(ids)} in the samples")
    counted = (file.content.get("n-samples") or {}).get(leaf.task) or {}
    effective, original = counted.get("effective"), counted.get("original")
    if effective is not None and effective != len(ids):
        yield Finding(leaf.task, "fault", f"{effective} rows by the harness, {len(ids)} in the samples")
    if isinstance(original, int) and len(ids) < original:
        limit = file.run.get("limit")
        why = f"--limit {limit:g}" if limit is not None else "--samples" if leaf.config.samples else "rows are missing"
        yield Finding(leaf.task, "deviation", f"{len(ids)} of {original} rows ({why})")


def _values(leaf: LeafResult, samples: Sequence[Sample]) -> Iterator[Finding]:
    """Compare the values of rows with those of their replies and votes, as far as samples contain what is needed."""
    form = _answer_form(leaf)
    if form is None:
        yield Finding(leaf.task, "note", f"replies were not read again: no prompt template '{leaf.config.prompt}' here")
    else:
        yield from _reply_values(leaf, samples, form)
    tie = None if leaf.config.judge.get("tie") == "abstain" else False
    wrong = [record.row for sample in samples if not _follows_votes(record := sample.record, tie)]
    if wrong:
        text = f"{_count(len(wrong), 'verdict')} against the votes, first on '{wrong[0]}'"
        yield Finding(leaf.task, "fault", text)


def _reply_values(leaf: LeafResult, samples: Sequence[Sample], form: str) -> Iterator[Finding]:
    names = [name for name in leaf.config.metrics if name in REPLY_METRICS]
    language = _language_rule(leaf)
    if language is None and "correct_language" in names:
        names.remove("correct_language")
        yield Finding(
            leaf.task, "note", "correct_language was not computed again: lingua, or a model that is not on this machine"
        )
    if not names:
        return
    rows = [_scored(sample, form) for sample in samples]
    faults: dict[str, list[str]] = {}
    scores = score_rows(rows, names, searched=False, language=language or LanguageRule())
    for row, sample, again in zip(rows, samples, scores, strict=True):
        for name in names:
            before, after = _of_row(sample.record, name), again.values.get(name, again.unscored.get(name))
            if not _alike(before, after):
                faults.setdefault(name, []).append(f"'{row.doc.id}': {_text(before)}, {_text(after)} by its reply")
    for name, lines in faults.items():
        yield Finding(leaf.task, "fault", f"{name} of {len(lines)} of {len(samples)} rows, first {lines[0]}")


def _language_rule(leaf: LeafResult) -> LanguageRule | None:
    """Return how the run told languages; None if its model is not on this machine, or if it was lingua.

    Lingua tells apart the languages of all the task's rows, and the samples may have some of them.
    """
    try:
        setting = validated(CorrectLanguage, leaf.config.judge.get("correct_language") or {}, "correct_language")
    except ConfigError:
        return None
    return None if setting.detector == "lingua" else LanguageRule.of(setting, ())


def _answer_form(leaf: LeafResult) -> str | None:
    """Return where the answer is in a reply; None if the prompt template is not on this machine."""
    given = leaf.config.setting("prompt.answer")
    if given is not None:
        return str(given)
    try:
        return load_template(leaf.config.prompt or "").answer_format
    except ConfigError:
        return None


def _scored(sample: Sample, form: str) -> Scored:
    read = sample.record.answer
    if read is not None and read.loglikelihoods:
        # the likeliest option is not a reply
        return Scored(sample.doc, sample.answer, form=form)
    answer = parse_answer(sample.reply, form, may_decline=read is not None and read.declined is not None)
    return Scored(sample.doc, answer.text, tagged=answer.tagged, declined=answer.declined, form=form)


def _of_row(record: RowRecord, name: str) -> float | str | None:
    return record.values.get(name, record.unscored.get(name))


def _follows_votes(record: RowRecord, tie: bool | None) -> bool:
    judged = record.judge
    if judged is None or not judged.votes:
        return True
    verdict = majority_vote([judged.vote(seat) for seat in judged.votes], tie=tie)
    value = record.values.get("judge_correct")
    return judged.verdict is verdict and (value is None or value == float(bool(verdict)))


# ------------------------------------------------------------------ scores


def _scores(leaf: LeafResult, records: Sequence[RowRecord]) -> tuple[int, list[Finding]]:
    """Return how many numbers were computed again, and those that differ; :func:`_means` names scores over all rows."""
    again = summarize(records, leaf.config.retrieval.get("seed", 0), leaf.config.evaluated)
    before, after = _numbers(leaf.scores), _numbers(again)
    names = dict.fromkeys([*before, *after])
    named = {f"metrics.{metric}.value" for metric in leaf.scores.metrics}
    other = [name for name in names if name not in named and not _alike(before.get(name), after.get(name))]
    shown = [f"{name} {_text(before.get(name))}, {_text(after.get(name))} by the samples" for name in other[:_SHOWN]]
    if len(other) > _SHOWN:
        shown.append(f"{len(other) - _SHOWN} more numbers of its scores")
    return len(names), [Finding(leaf.task, "fault", text) for text in shown]


def _means(file: ResultFile, leaf: LeafResult, records: Sequence[RowRecord]) -> Iterator[Finding]:
    """Compare both records of a metric, ours and the harness's, with the mean of its rows or territories."""
    reported = file.reported(leaf.task)
    rows = list({record.row: record for record in records}.values())
    territories = list(territory_values(records).values())
    means = {name for values in territories for name in values}
    for name, score in leaf.metrics.items():
        if name not in leaf.scores.metrics and name not in means:
            continue
        values = [found[name] for found in (*(row.values for row in rows), *territories) if name in found]
        whole = values and not halved_metrics(rows, [name])
        mean = sum(values) / len(values) if whole else None
        by_harness = next((value for key, value in reported.items() if key.partition(",")[0] == name), mean)
        for where, value in (("scores", score.value), ("harness's results", by_harness)):
            if not _alike(value, mean):
                text = f"{name} is {_text(value)} in the {where}, {_text(mean)} by the samples"
                yield Finding(leaf.task, "fault", text)


def _groups(file: ResultFile) -> Iterator[Finding]:
    """Compare a group's averages with those of its members: one of the two means that the harness knows."""
    for group, members in file.groups.items():
        for key, value in file.reported(group).items():
            name, _, filtered = key.partition(",")
            inner = [(file.reported(member), _size(file, member)) for member in members]
            parts = [(found[key], n) for found, n in inner if isinstance(found.get(key), int | float)]
            if name.endswith("_stderr") or not filtered or not isinstance(value, int | float) or not parts:
                continue
            plain = sum(part for part, _ in parts) / len(parts)
            total = sum(n for _, n in parts)
            weighted = sum(part * n for part, n in parts) / total if total else plain
            if not (_alike(value, plain) or _alike(value, weighted)):
                text = f"{name} is {_text(value)}, {_text(plain)} or weighted by rows {_text(weighted)} by its tasks"
                yield Finding(group, "fault", text)


def _size(file: ResultFile, name: str) -> int:
    counts = file.content.get("n-samples") or {}
    return sum((counts.get(task) or {}).get("effective") or 0 for task in file.tasks_of(name) or [name])


# ---------------------------------------------------------------- settings


def _prints(file: ResultFile, leaf: LeafResult, records: Sequence[RowRecord]) -> Iterator[Finding]:
    config = leaf.config
    recorded = config.fingerprints
    if not recorded:
        yield Finding(leaf.task, "note", "an older run without fingerprints")
        return
    raw = file.content["configs"][leaf.task]
    ids = list(dict.fromkeys(record.row for record in records))
    again = fingerprints(raw, config.texts, config.provenance.get("models") or {}, ids, config.versions)
    for name, found in again.items():
        if recorded.get(name) != found:
            text = f"the fingerprint '{name}' does not belong to the recorded settings"
            yield Finding(leaf.task, "fault", text if name != "rows" else "the fingerprint 'rows' is of other rows")
    here = package_versions()
    for name in ("mrag-eval", "lm-eval"):
        if config.versions.get(name) not in (None, here.get(name)):
            yield Finding(leaf.task, "note", f"run with {name} {config.versions[name]}, verified with {here.get(name)}")


def _settings(leaf: LeafResult, tasks_folder: Path) -> Iterator[Finding]:
    """Compare the settings with those of the task's own file."""
    from mrag_eval.harness import read_task_file

    file = next(iter(sorted(tasks_folder.rglob(f"{leaf.task}.yaml"))), None)
    if file is None:
        yield Finding(leaf.task, "note", "not a task of the package: there are no official settings to compare with")
        return
    content = read_task_file(file)
    metadata = {**(content.get("metadata") or {}), "config_source": str(file)}
    rest, blocks = split_config({**content, "metadata": metadata}, METRIC_NAMES)
    official = {
        "version": metadata.get("version"),
        "retrieval": blocks.retrieval.model_dump(mode="json"),
        "agent": blocks.agent.model_dump(mode="json") if leaf.config.agent else None,
        "prompt": blocks.prompt.model_dump(mode="json"),
        "judge": blocks.judge.model_dump(mode="json"),
        "data": blocks.data,
        "metrics": list(blocks.metrics),
        **{name: rest.get(name) for name in _HARNESS_SETTINGS},
    }
    ran = {**{name: leaf.config.raw.get(name) for name in official}, "version": leaf.config.version}
    for key, found, wanted in _differing(to_json(ran), to_json(official)):
        yield Finding(leaf.task, "deviation", f"{key} is {_text(found)}, officially {_text(wanted)}")


def _differing(ran: Any, official: Any, key: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Yield dotted key, value and official value where they differ; a block that one side lacks is one difference."""
    if isinstance(ran, Mapping) and isinstance(official, Mapping):
        for name in sorted({*ran, *official}):
            where = f"{key}.{name}" if key else name
            if where not in PLACES:
                yield from _differing(ran.get(name), official.get(name), where)
    elif ran != official:
        yield key, ran, official


# ----------------------------------------------------------------- numbers


def _numbers(scores: TaskScores) -> dict[str, Any]:
    """Return every value of the scores under its dotted path."""
    return {key: value for key, value in dotted(scores.to_dict()).items() if not isinstance(value, list)}


def _alike(first: Any, second: Any) -> bool:
    if isinstance(first, int | float) and isinstance(second, int | float):
        return abs(first - second) <= _TOLERANCE * max(1.0, abs(first), abs(second))
    return bool(first == second)


def _text(value: Any) -> str:
    if isinstance(value, Mapping):
        value = ", ".join(str(part) for part in value.values() if isinstance(part, str))
    return "nothing" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)
