"""Records of rows, made again from replies, rankings, votes and the rows of the benchmark, as a run makes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import isnan
from typing import Any

from mrag_eval.config import CORRECT, GROUNDED, TRANSLATED, mode_named
from mrag_eval.controls import ControlRule, control_pool, row_controls
from mrag_eval.core import (
    OUTCOMES,
    Failure,
    RagDoc,
    Ranked,
    Reranking,
    Retrieved,
    Scored,
    Vote,
    failed_in,
    way_to,
)
from mrag_eval.datasets import declaration_of
from mrag_eval.judging import Recount, Votes, language_check
from mrag_eval.models import ANSWERED_BY_US
from mrag_eval.report.files._sample import Sample
from mrag_eval.report.verification._task_here import TaskHere
from mrag_eval.scoring import (
    ANSWERED,
    AnswerRecord,
    ControlRecord,
    JudgedRecord,
    LanguageRule,
    RowRecord,
    is_loaded,
    measured_on,
    most_likely,
    outcome_of,
    parse_answer,
    read_by_words,
    refusal_in,
    row_record,
    score_rows,
    sufficiency_record,
    task_record,
    words_of,
)

# Fields of a record that belong to a rank, and are carried by one of its rows.
OF_A_RANK = ("prompts", "skipped", "translation", "panel", "sufficiency_panel", "claims_panel", "labelling")
# Steps of the retrieval, documents in the language of the prompt among them: their failures are taken as recorded.
_RETRIEVAL = way_to("translation of documents")
# Steps of the reply. Failures of judges and labellers follow from their votes.
_OF_REPLY = ("answer", "translation of answers", "grounding")
# Values that need the form in which the prompt asks for the answer.
_BY_FORM = ("concurrence", "citations", "option_read", "option_refused", "option_unread", "declined", "answer_tag")


@dataclass(frozen=True)
class Rebuilt:
    """The rows of a task made again, aligned with the samples.

    Attributes:
        records: their records.
        scored: the input to the metrics.
        found: what each row was shown.
        left_out: metrics that could not be computed here, and are taken from the recorded rows.
        outcomes: how a reply that shows no answer gave none, as far as the reply shows it.
        labels_repeated: whether all labels of rankings follow from what is known here.
    """

    records: list[RowRecord]
    scored: Sequence[Scored]
    found: Sequence[Retrieved]
    left_out: frozenset[str]
    outcomes: Sequence[str | None]
    labels_repeated: bool


def rebuilt(here: TaskHere, samples: Sequence[Sample], *, by_document: bool = False) -> Rebuilt:
    """Return the records of a task's rows as a run makes them.

    What is not known here is taken from the recorded ones: metrics that are ``left_out``, fields of a rank, labels that
    need texts of the whole ranking, translations, verdicts on claims, and counts of searchable passages.
    ``by_document``: relevant ids are those of documents, which samples do not say.
    """
    names, retrieval = here.leaf.config.metrics, here.retrieval
    asked = [sample.record.query_lang for sample in samples]
    language = here.language_rule(asked) if "correct_language" in names else None
    words_known = here.words_as_recorded(asked)
    left_out = frozenset(
        name
        for name in names
        if here.hashed
        or (name == "correct_language" and language is None)
        or (name in _BY_FORM and here.form is None)
        or not _cut_alike(here, name)
        or (not words_known and read_by_words(name))
    )
    if left_out & {*CORRECT}:
        left_out |= {*GROUNDED} & {*names}
    computed = [name for name in names if name not in left_out]
    found = [_found(here, sample) for sample in samples]
    read = [_scored(here, sample, shown, by_document) for sample, shown in zip(samples, found, strict=True)]
    recount = _recount(here, asked, found)
    scored = recount.of(
        [row for row, *_ in read], [_votes(sample, shown) for sample, shown in zip(samples, found, strict=True)]
    )
    scores = score_rows(scored, computed, **measured_on(retrieval), language=language or LanguageRule())
    breakdowns = _breakdowns(here)
    controls = _controls(here, scored, found, computed, language or LanguageRule()) if words_known else None
    records, outcomes = [], []
    # what a provider said of a reply, to us or in a log, is in no reply
    asked_here = here.leaf.config.setting("answering.transport") in (None, ANSWERED_BY_US)
    heard = asked_here or here.leaf.config.setting("replies") == "given"
    for sample, row, (_, answer, outcome), score, shown in zip(samples, scored, read, scores, found, strict=True):
        before = sample.record
        for name in left_out:
            score.values.update({name: before.values[name]} if name in before.values else {})
            score.unscored.update({name: before.unscored[name]} if name in before.unscored else {})
        kept: dict[str, Any] = {name: getattr(before, name) for name in (*OF_A_RANK, "answer_translated")}
        kept |= {name: getattr(before, name) for name in ("concurrence", "citations") if name in left_out}
        failed = failed_in(row.failures, ANSWERED) is not None
        of_task = task_record(computed, row.doc, row.answer, shown.passages, row.form, failed=failed)
        replied = heard and failed_in(row.failures, {"answer"}) is None
        said = before.outcome if replied and before.outcome in OUTCOMES else None
        outcomes.append(outcome or refusal_in(of_task))
        kept |= {"outcome": before.outcome if here.hashed else said or outcomes[-1], "answer": answer, **of_task}
        kept["controls"] = before.controls if controls is None else controls.get(before.row)
        kept["failures"] = _with_details(row.failures, before.failures)
        record = row_record(row.doc, score, shown, row.judgement, row.labels, breakdowns, row.grounding)
        records.append(replace(record, **kept, **sufficiency_record(row.sufficiency)))
    labels = [(row, sample.record.relevance) for row, sample in zip(scored, samples, strict=True)]
    known = all(label is None or recount.repeats(row, label) for row, label in labels)
    return Rebuilt(records, scored, found, left_out, outcomes, known)


def _controls(
    here: TaskHere, rows: Sequence[Scored], found: Sequence[Retrieved], metrics: Sequence[str], language: LanguageRule
) -> Mapping[str, ControlRecord] | None:
    """Return what the controls score, by row id; None if what they are drawn from is not on this machine.

    Controls of metrics that cannot be computed here make all of them unknown.
    """
    task, retrieval = here.rows, here.retrieval
    if task is None or task.repeated is None or retrieval is None or here.form is None:
        return None
    if {*metrics} != {*here.leaf.config.metrics}:
        return None
    docs = task.repeated.selection.docs
    check = language_check(here.judge, here.languages([]))
    rule = ControlRule(metrics, here.form, language, list if check is None else check.of)
    shown = {row.doc.id: own for row, own in zip(rows, found, strict=True)}
    pool = control_pool(docs, task.benchmark, retrieval)
    return row_controls([row.doc for row in rows], pool, rule, retrieval, shown, task.repeated.relevant)


def _cut_alike(here: TaskHere, metric: str) -> bool:
    """Return whether words are normalised and cut here as in the run; results without a record may be of any rule."""
    if not is_loaded(metric):
        return False
    there = {} if here.leaf.measurement is None else here.leaf.measurement.instrument
    return all(there.get(key) == version for key, version in words_of([metric]).items())


def _recount(here: TaskHere, asked: Sequence[str], found: Sequence[Retrieved]) -> Recount:
    """Return how votes are counted; with the texts of rankings if these are labelled by them."""
    ids = {place.id for shown in found for place in shown.ranking} if here.judge.relevance.labels == "proxy" else ()
    texts = (here.passages(sorted(ids)) or {}) if ids else {}
    return Recount(here.judge, language_check(here.judge, here.languages(asked)), texts)


def _doc(here: TaskHere, sample: Sample, by_document: bool) -> RagDoc:
    if here.rows is not None and sample.record.row in here.rows.docs:
        return replace(here.rows.docs[sample.record.row], absent_ids=sample.doc.absent_ids)
    return replace(sample.doc, relevant_documents=by_document)


def _scored(
    here: TaskHere, sample: Sample, shown: Retrieved, by_document: bool
) -> tuple[Scored, AnswerRecord | None, str | None]:
    """Return the row with the answer read off its reply, that answer's record, and how a reply gave none.

    A call that failed has no reply: where there is one, the failure is none.
    """
    record, form, config = sample.record, here.form, here.leaf.config
    doc = _doc(here, sample, by_document)
    likely = config.raw.get("output_type") == "multiple_choice" and bool(doc.choices)
    # the harness writes numbers and truth values as text
    numbers = [_number(reply) for reply in sample.line.get("filtered_resps") or ()] if likely else []
    replied = bool(numbers) and not any(map(isnan, numbers)) if likely else bool(sample.reply)
    later = [one for one in record.failures if one.step in _OF_REPLY and not (one.step == "answer" and replied)]
    not_asked = not replied and failed_in(shown.failures, ANSWERED) is not None
    failed = not_asked or failed_in(later, {"answer"}) is not None
    failures = (*shown.failures, *later)
    known: dict[str, Any] = {"failures": failures, "passages": shown.passages, "grounding": record.grounding}
    row = Scored(doc, "", shown.ranking, reranked=shown.reranked, **known)
    if likely and not failed:
        text, values = most_likely(sample.line["doc"], [(number, False) for number in numbers])
        return replace(row, answer=text), AnswerRecord(text, loglikelihoods=tuple(values)), None
    reply = "" if failed else sample.reply
    if form is None:
        answer, read = record.answer_to(reply), record.answer
    else:
        answer = parse_answer(reply, form, may_decline=_may_decline(here, sample))
        read = AnswerRecord.of(answer, reply)
    row = replace(row, answer=answer.text, tagged=answer.tagged, declined=answer.declined, form=form or "plain")
    metric = next((name for name in config.metrics if name in TRANSLATED), None)
    if metric is not None and metric in record.values:
        row = replace(row, translated=record.answer_translated or answer.text)
    elif metric is not None:
        row = replace(row, untranslated=record.unscored.get(metric))
    return row, read, None if failed else outcome_of(reply, answer)


def _with_details(failures: Sequence[Failure], recorded: Sequence[Failure]) -> tuple[Failure, ...]:
    """Return the failures with the words of the recorded ones, which votes do not repeat."""
    known = {replace(failure, detail=""): failure for failure in recorded}
    return tuple(known.get(replace(failure, detail=""), failure) for failure in failures)


def _number(reply: Any) -> float:
    try:
        return float(reply[0])
    except (TypeError, ValueError, IndexError):
        return float("nan")


def _may_decline(here: TaskHere, sample: Sample) -> bool:
    template = here.template
    if template is None:
        return sample.record.answer is not None and sample.record.answer.declined is not None
    return template.offers_none(sample.line.get("doc") or {})


def _found(here: TaskHere, sample: Sample) -> Retrieved:
    """Return what the row was shown: as found again, else as the sample shows it."""
    rows, row = here.rows, sample.record.row
    if rows is not None and rows.found is not None and row in rows.found:
        return rows.found[row]
    doc, record = sample.line.get("doc") or {}, sample.record
    second = None
    if here.retrieval is not None and here.retrieval.rerank is not None:
        listed = record.rerank
        ranking = _ranking(doc.get("reranked"))
        second = (
            Reranking(ranking) if listed is None else Reranking(ranking, listed.fault, listed.lists, listed.repaired)
        )
    return Retrieved(
        sample.passages,
        _ranking(doc.get("ranking")),
        {} if record.languages is None else record.languages.searchable,
        reranked=second,
        trace=sample.trace,
        failures=tuple(failure for failure in record.failures if failure.step in _RETRIEVAL),
        withheld=doc.get("withheld"),
    )


def _ranking(columns: Mapping[str, Any] | None) -> tuple[Ranked, ...]:
    if not columns:
        return ()
    lists = [columns.get(name) or [] for name in ("ids", "doc_ids", "langs", "scores")]
    return tuple(Ranked(*place) for place in zip(*lists, strict=False))


def _votes(sample: Sample, shown: Retrieved) -> Votes:
    record = sample.record
    answer = passages = None
    if record.judge is not None:
        answer = _in_full(sample.votes) if sample.votes else _in_short(record.judge)
    if record.sufficiency is not None:
        passages = record.sufficiency_votes or _in_short(record.sufficiency)
    return Votes(answer, passages, record.relevance, len(shown.passages), record.failures)


def _in_full(votes: Mapping[str, Mapping[str, Any]]) -> dict[str, Vote]:
    return {
        seat: Vote(vote.get("verdict"), str(vote.get("justification") or ""), vote.get("error"))
        for seat, vote in votes.items()
    }


def _in_short(judged: JudgedRecord) -> dict[str, Vote]:
    return {seat: Vote(judged.vote(seat), error=judged.why_not(seat)) for seat in judged.votes}


def _breakdowns(here: TaskHere) -> Sequence[str]:
    """Return the keys of ``extra`` that scores are broken down by."""
    of_mode = mode_named(here.leaf.config.mode).breakdowns
    if here.rows is not None:
        return (*here.rows.benchmark.breakdowns, *of_mode)
    named = here.leaf.config.data.get("breakdowns")
    declared = declaration_of(here.leaf.config.data)
    return (*(named or (declared.breakdowns_of(here.leaf.config.data) if declared is not None else ())), *of_mode)
