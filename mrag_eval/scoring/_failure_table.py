"""Failures and missing answers of a task's rows: counted by step and language, and what they leave open of a score."""

from __future__ import annotations

import logging
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from mrag_eval.config import relevance_measures
from mrag_eval.core import BEFORE, CUT_OFF, failed_in, way_to
from mrag_eval.models import LASTING, may_pass
from mrag_eval.scoring._metrics import needs_of, scale_of
from mrag_eval.scoring._reasons import BY_RULE, NOT_IN_LOG, UNDEFINED
from mrag_eval.scoring._row_records import RowRecord
from mrag_eval.scoring._score_records import FailureCounts, LanguageFailures, TaskScores

# Below the harness's logger, so that its command shows our lines as it shows its own.
log = logging.getLogger(f"lm_eval.{__name__}")

# Metrics that short replies have no value of.
_OF_LANGUAGE = ("correct_language", "language_mix")


def failure_counts(rows: Sequence[RowRecord]) -> dict[str, Any]:
    """Return the counts of failures, outcomes and replies that were cut off, by the field of the task's scores."""
    from mrag_eval.metrics import wilson

    if rows and all({failure.reason for failure in row.failures} == {NOT_IN_LOG} for row in rows):
        # a log of rankings alone: no row lacks its answer
        rows = [replace(row, failures=()) for row in rows]
    failures, outcomes = _failures(rows), _outcomes(rows)
    cut_off = {"cut_off": sum(row.fate == CUT_OFF for row in rows)}
    if not failures and not outcomes:
        return cut_off
    languages: dict[str, list[RowRecord]] = defaultdict(list)
    for row in rows:
        languages[row.query_lang].append(row)
    by_language = {
        language: LanguageFailures(wilson(sum(bool(r.failures) for r in own), len(own)), _failures(own), _outcomes(own))
        for language, own in sorted(languages.items())
    }
    return {"failures": failures, "outcomes": outcomes, "by_language": by_language, **cut_off}


def lost_headline(scores: TaskScores, metrics: Sequence[str], declared: str | None) -> str | None:
    """Return the main metric of a task if no row has it; None if some row does, or a rule leaves all of them out.

    It is ``declared``, that of the benchmark, if the task measures it, else the first of its ``metrics`` that it does:
    one of the reply's language, which short replies do not tell, only if there is no other.
    """
    measured = {**scores.metrics, **scores.unscored}
    whole = scores.concurrence
    if declared is not None and declared.partition(".")[0] == "concurrence" in metrics:
        own = {} if whole is None else {**whole.intervals, **whole.rates}
        found = own.get(declared.partition(".")[2])
        return declared if scores.rows and (found is None or found.value is None) else None
    listed = sorted((name for name in metrics if name in measured), key=_OF_LANGUAGE.__contains__)
    name = declared if declared in measured else next(iter(listed), None)
    if name is None or ((score := scores.metrics.get(name)) is not None and score.value is not None):
        return None
    return None if {*scores.unscored.get(name, ())} <= BY_RULE else name


def _failures(rows: Iterable[RowRecord]) -> FailureCounts:
    """Return step -> reason -> rows, in the order of the pipeline; a row counts once a step, by its first failure."""
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for row in rows:
        first = {failure.step: failure.reason for failure in reversed(row.failures)}
        for step, reason in first.items():
            found[step][reason] += 1
    return {step: dict(found[step]) for step in BEFORE if step in found}


def _outcomes(rows: Iterable[RowRecord]) -> dict[str, int]:
    return dict(sorted(Counter(row.outcome for row in rows if row.outcome is not None).items()))


def failed_rows(rows: Iterable[RowRecord], metric: str) -> int:
    """Return the number of rows that have no value of a metric because a step on the way to it failed."""
    needs = needs_of(metric)
    return sum(
        row.unscored[metric] not in UNDEFINED and failed_in(row.failures, needs) is not None
        for row in rows
        if row.failures and metric in row.unscored
    )


def bounds_with(total: float, n: int, failed: int, metric: str) -> tuple[float, float] | None:
    """Return a mean of ``n`` values of this ``total``, with ``failed`` more at either end of the metric's range.

    None without failed rows, and for a range without ends.
    """
    low, high = scale_of(metric).bounds
    if not failed or not math.isfinite(high - low):
        return None
    return (total + failed * low) / (n + failed), (total + failed * high) / (n + failed)


def vote_lines(scores: TaskScores) -> list[str]:
    """Return the votes that failed by judge, one line for each panel that has any."""
    return [
        f"failed votes on {what}: {table.failed_votes}" for what, table in scores.panels.items() if table.failed_votes
    ]


def failure_line(scores: TaskScores) -> str:
    """Return the failures in one line: rows, steps, reasons; and the languages in which many rows failed."""
    steps = [
        f"{step} of {sum(reasons.values()):,} ({', '.join(f'{n:,} {reason}' for reason, n in reasons.items())})"
        for step, reasons in scores.failures.items()
    ]
    marked = [f"{language} {share.or_else(0.0):.0%}" for language, share in scores.marked_languages.items()]
    return "; ".join([*steps, *([f"languages with many: {', '.join(marked)}"] if marked else [])])


def failed_for_good(scores: TaskScores) -> bool:
    """Return whether the same call has nothing more to get: what failed, if anything did, fails in the same way."""
    failures = [*scores.failures.values(), *(judge.abstained for judge in scores.silent_judges)]
    return not any(may_pass(reason) for reasons in failures for reason in reasons)


def tell_failures(scores: TaskScores, task: str, ahead: str | None = None) -> None:
    """Log a line with the command that repeats only what failed; ``ahead`` is the one that translates documents.

    Let the command fail if a step failed for all rows, or all votes of a judge.
    """
    silent = scores.silent_judges
    if not scores.failures and not silent:
        return
    from mrag_eval.harness import command_line, end_with_1

    again = command_line() or "the same call"
    if ahead and scores.failures.keys() & way_to("translation of documents"):
        again = f"{ahead} && {again}"
    next_step = LASTING if failed_for_good(scores) else f"what succeeded is kept; this repeats the rest: {again}"
    everywhere = scores.failed_everywhere is not None
    parts = [*([failure_line(scores)] if scores.failures else []), *(vote_lines(scores) if silent else [])]
    log.log(
        logging.ERROR if everywhere or silent else logging.WARNING,
        "[%s] failed%s: %s; %s",
        task,
        " in every row" if everywhere else "",
        "; ".join(parts),
        next_step,
    )
    if everywhere or silent:
        end_with_1()


def unfound_line(scores: TaskScores) -> str | None:
    """Return the measures by which no row's search found anything relevant; None if one did, or none was measured.

    Of a retriever whose corpus cannot be listed this is as likely another naming of ids as a search that fails.
    """
    found = {name: scores.metrics[name] for name in relevance_measures([*scores.metrics])}
    rows = max((metric.n for metric in found.values()), default=0)
    if not rows or any(metric.value for metric in found.values()):
        return None
    what = f"in {rows:,} rows the retriever returned no relevant id, and whether it holds any is not known"
    return f"{', '.join(found)}: {what}: compare its ids with 'relevant_ids'"
