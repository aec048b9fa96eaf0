"""Rows of a run: their number, and their values by their own replies and votes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from mrag_eval.config import CorrectLanguage, validated
from mrag_eval.core import ConfigError, Scored
from mrag_eval.metrics import majority_vote
from mrag_eval.prompts import load_template
from mrag_eval.report.files._results import LeafResult, ResultFile
from mrag_eval.report.files._samples import Sample
from mrag_eval.report.verification._findings import Finding, alike, counted, value_text
from mrag_eval.scoring import REPLY_METRICS, LanguageRule, RowRecord, parse_answer, score_rows


def row_counts(file: ResultFile, leaf: LeafResult, records: Sequence[RowRecord]) -> Iterator[Finding]:
    """Compare the number of rows in the samples with those of the results, of the harness, and of the task."""
    ids = Counter(record.row for record in records)
    twice = [row for row, n in ids.items() if n > 1]
    if twice:
        yield Finding(leaf.task, "fault", f"{counted(len(twice), 'repeated row')}, '{twice[0]}' first")
    if leaf.scores.rows != len(ids):
        yield Finding(leaf.task, "fault", f"{leaf.scores.rows} rows in the results, {len(ids)} in the samples")
    size = (file.content.get("n-samples") or {}).get(leaf.task) or {}
    effective, original = size.get("effective"), size.get("original")
    if effective is not None and effective != len(ids):
        yield Finding(leaf.task, "fault", f"{effective} rows by the harness, {len(ids)} in the samples")
    if isinstance(original, int) and len(ids) < original:
        limit = file.run.get("limit")
        why = f"--limit {limit:g}" if limit is not None else "--samples" if leaf.config.samples else "rows are missing"
        yield Finding(leaf.task, "deviation", f"{len(ids)} of {original} rows ({why})")


def row_values(leaf: LeafResult, samples: Sequence[Sample]) -> Iterator[Finding]:
    """Compare the values of rows with those of their replies and votes, as far as samples contain what is needed."""
    form = _answer_form(leaf)
    if form is None:
        yield Finding(leaf.task, "note", f"replies were not read again: no prompt template '{leaf.config.prompt}' here")
    else:
        yield from _reply_values(leaf, samples, form)
    tie = None if leaf.config.judge.get("tie") == "abstain" else False
    wrong = [record.row for sample in samples if not _follows_votes(record := sample.record, tie)]
    if wrong:
        text = f"{counted(len(wrong), 'verdict')} against the votes, first on '{wrong[0]}'"
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
            if not alike(before, after):
                faults.setdefault(name, []).append(
                    f"'{row.doc.id}': {value_text(before)}, {value_text(after)} by its reply"
                )
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
        return Scored(sample.doc, sample.answer, form=form, failures=sample.record.failures)
    answer = parse_answer(sample.reply, form, may_decline=read is not None and read.declined is not None)
    return Scored(
        sample.doc,
        answer.text,
        tagged=answer.tagged,
        declined=answer.declined,
        form=form,
        failures=sample.record.failures,
    )


def _of_row(record: RowRecord, name: str) -> float | str | None:
    return record.values.get(name, record.unscored.get(name))


def _follows_votes(record: RowRecord, tie: bool | None) -> bool:
    judged = record.judge
    if judged is None or not judged.votes:
        return True
    verdict = majority_vote([judged.vote(seat) for seat in judged.votes], tie=tie)
    value = record.values.get("judge_correct")
    return judged.verdict is verdict and (value is None or value == float(bool(verdict)))
