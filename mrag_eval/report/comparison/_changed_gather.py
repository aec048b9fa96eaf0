"""The gathering of changed rows: of a gate by its checks, or of a comparison, with the cause of each loss."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

from mrag_eval.config import RIGHT_LANGUAGE, SHOWN, relevance_measures
from mrag_eval.core import plain_name
from mrag_eval.metrics import Cause, RowEvidence, Subject, cause_of_loss
from mrag_eval.platform import Wait
from mrag_eval.report.comparison._baseline import read_runs_or_baseline
from mrag_eval.report.comparison._changed_rows import ChangedCell, ChangedRow, Changes
from mrag_eval.report.comparison._compare import Comparison
from mrag_eval.report.comparison._gate_rules import Check, GateResult, GateRules
from mrag_eval.report.comparison._paired_rows import cell_in, is_of
from mrag_eval.report.files._row_texts import RowTexts
from mrag_eval.report.files._runs import SampleSet
from mrag_eval.report.files._scored_rows import ScoredRow
from mrag_eval.scoring import METRICS, more_is_better, nearer_zero_is_better, needs_of, right_language


def fails(check: Check) -> bool:
    """Return whether a check shows a regression."""
    return check.verdict == "fail"


@dataclass
class _Looked:
    """What is looked at in one task by one metric: two runs, and the rows of interest."""

    first: SampleSet
    second: SampleSet
    metric: str
    less_is_better: bool
    scopes: list[tuple[Check | None, bool]] = field(default_factory=list)

    def is_changed(self, a: ScoredRow, b: ScoredRow) -> bool:
        """Return whether a row has another value, and a check covers it."""
        x, y = self._value(a), self._value(b)
        return x is not None and y is not None and x != y and self.failed(a, b) is not None

    def is_worse(self, a: ScoredRow, b: ScoredRow) -> bool:
        """Return whether the other value of a changed row is the worse one."""
        return ((self._value(b) or 0.0) > (self._value(a) or 0.0)) is self.less_is_better

    def _value(self, row: ScoredRow) -> float | None:
        value = row.values.get(self.metric)
        return abs(value) if value is not None and nearer_zero_is_better(self.metric) else value

    def failed(self, a: ScoredRow, b: ScoredRow) -> bool | None:
        """Return whether a check that covers the row fails; None: no check covers it."""
        found = [bad for check, bad in self.scopes if _covers(check, a, b)]
        return any(found) if found else None


def gate_changes(
    result: GateResult,
    baseline: Sequence[Path],
    candidate: Sequence[Path],
    rules: GateRules,
    *,
    model: str | None = None,
    baseline_model: str | None = None,
) -> Changes:
    """Return the rows that changed by the rules of a gate, which compared these runs, chosen as by the gate.

    A second, older baseline is not looked at, nor are checks of unscored rows.
    """
    before, after = read_runs_or_baseline(baseline, baseline_model), read_runs_or_baseline(candidate, model)
    looked: dict[tuple[str, str], _Looked] = {}
    for check in result.checks:
        if check.difference is None or check.unscored or check.against != "baseline":
            continue
        for task in sorted(before.keys() & after.keys()):
            if not _named(check.task, before[task]):
                continue
            key = task, check.metric
            if key not in looked:
                less = any(
                    rule.less_is_better
                    for rule in rules.rules
                    if rule.metric == check.metric and _named(rule.task, before[task])
                )
                looked[key] = _Looked(before[task], after[task], check.metric, less)
            looked[key].scopes.append((check, fails(check)))
    return _changes(looked.values(), checked=True)


def comparison_changes(
    found: Comparison, first: Sequence[Path], second: Sequence[Path], pairs: Mapping[str, str] | None = None
) -> Changes:
    """Return the rows that changed between two runs, by the metrics of their comparison."""
    a, b = read_runs_or_baseline(first), read_runs_or_baseline(second)
    looked: list[_Looked] = []
    for task, other in (pairs or {task: task for task in a if task in b}).items():
        name = task if task == other else f"{task} / {other}"
        for metric in dict.fromkeys(d.metric for d in found.differences if d.task == name):
            less = more_is_better(metric) is False or nearer_zero_is_better(metric)
            looked.append(_Looked(a[task], b[other], metric, less, [(None, False)]))
    return _changes(looked, checked=False)


def _named(name: str, run: SampleSet) -> bool:
    return name == run.task or fnmatchcase(run.task, name) or name in run.groups


def _covers(check: Check | None, a: ScoredRow, b: ScoredRow) -> bool:
    if check is None or check.language is None:
        return True
    if check.by is not None:
        return cell_in(check.by, a, b) == check.language
    return b.language == check.language or fnmatchcase(b.pair, check.language)


def _changes(looked: Iterable[_Looked], *, checked: bool) -> Changes:
    by_task: dict[tuple[str, str], list[_Looked]] = defaultdict(list)
    for one in looked:
        by_task[one.first.task, one.second.task].append(one)
    cells: list[ChangedCell] = []
    with Wait("reading changed rows", len(by_task), "tasks") as wait:
        for group in wait.over(by_task.values()):
            # one task's samples at a time: they hold every passage of every prompt
            cells += _cells(group)
    first = [group[0].first for group in by_task.values()]
    second = [group[0].second for group in by_task.values()]
    return Changes(
        tuple(cells), (_run_names(first), _run_names(second)), (_have_answers(first), _have_answers(second)), checked
    )


def _run_names(runs: Sequence[SampleSet]) -> str:
    return "; ".join(dict.fromkeys(str(run.run) for run in runs))


def _have_answers(runs: Sequence[SampleSet]) -> bool:
    return all(run.kept is None or run.kept for run in runs)


def _cells(group: Sequence[_Looked]) -> Iterator[ChangedCell]:
    """Yield the cells of one task, for each of its metrics."""
    first, second = group[0].first, group[0].second
    pairs = [(first.rows[row], second.rows[row]) for row in sorted(first.rows.keys() & second.rows.keys())]
    changed = {a.id for one in group for a, b in pairs if one.is_changed(a, b)}
    texts = first.texts(changed), second.texts(changed)
    for one in group:
        places: dict[str, list[tuple[ScoredRow, ScoredRow]]] = defaultdict(list)
        for a, b in pairs:
            if one.failed(a, b) is not None and (is_of(a, one.metric) or is_of(b, one.metric)):
                places[b.pair or b.language].append((a, b))
        for place in sorted(places):
            yield _cell(one, place, places[place], texts)


def _cell(
    one: _Looked,
    place: str,
    pairs: Sequence[tuple[ScoredRow, ScoredRow]],
    texts: tuple[Mapping[str, RowTexts], Mapping[str, RowTexts]],
) -> ChangedCell:
    sides: dict[bool, list[ChangedRow]] = {True: [], False: []}
    scored = [(one.metric in a.values) + (one.metric in b.values) for a, b in pairs]
    for a, b in pairs:
        if one.is_changed(a, b):
            worse = one.is_worse(a, b)
            both = texts[0].get(a.id), texts[1].get(b.id)
            cause = _cause(one.metric, (a, b), both) if worse else None
            sides[worse].append(ChangedRow(one.second.task, one.metric, a, b, worse, both, cause))
    return ChangedCell(
        task=one.second.task,
        metric=one.metric,
        place=place,
        n=scored.count(2),
        once=scored.count(1),
        failed=any(one.failed(a, b) for a, b in pairs),
        worse=tuple(sides[True]),
        better=tuple(sides[False]),
    )


def _cause(metric: str, rows: tuple[ScoredRow, ScoredRow], texts: tuple[RowTexts | None, RowTexts | None]) -> Cause:
    before, after = (_evidence(row, found) for row, found in zip(rows, texts, strict=True))
    return cause_of_loss(before, after, subject=subject_of(metric), judged="judge" in needs_of(metric))


def subject_of(metric: str) -> Subject:
    """Return what a metric is of; one that the package does not know is of the answer."""
    name = plain_name(metric).removesuffix("_score_merged")
    if relevance_measures([name]) or (name in METRICS and "answer" not in needs_of(name)):
        return "passages"
    return "language" if name in RIGHT_LANGUAGE else "answer"


def _evidence(row: ScoredRow, texts: RowTexts | None) -> RowEvidence:
    value = right_language(row.values)
    language = None if value is None else value == 1.0
    if texts is None:
        shown = next((value == 1.0 for name, value in row.values.items() if plain_name(name) == SHOWN), None)
        return RowEvidence(shown=shown, right_language=language)
    return RowEvidence(texts.answer, tuple(passage.id for passage in texts.passages), texts.shown, language)
