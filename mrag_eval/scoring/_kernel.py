"""A row, from what is given to its record: its reply is read, scored and recorded in one way, wherever it is from.

A run hands over what the harness has, a log its rows, verification and later judges the samples of a run, a control a
reply that needs no model. :func:`read` makes each of them the input of metrics and judges; what is decided about it
afterwards (by a panel, a classifier, a translator) is added to that input; :func:`records` makes records of both.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from mrag_eval.config import Retrieval
from mrag_eval.core import (
    Grounding,
    Hit,
    Judgement,
    Labels,
    Marks,
    ModelReply,
    RagDoc,
    Retrieved,
    RowScores,
    Scored,
    Value,
    failed_in,
    way_to,
)
from mrag_eval.scoring._agents_table import loop_record
from mrag_eval.scoring._answers import Answer, option_texts, outcome_of, parse_answer
from mrag_eval.scoring._grounding import EVIDENCE, context_pair, evidence_pair
from mrag_eval.scoring._metrics import measured_on, score_rows
from mrag_eval.scoring._ranking import answers, unknown_relevance
from mrag_eval.scoring._reply_values import BUNDLED, LanguageRule
from mrag_eval.scoring._row_records import (
    AnswerRecord,
    JudgedRecord,
    LabelRecord,
    RerankedRecord,
    RowRecord,
    SearchedLanguages,
    sufficiency_record,
)
from mrag_eval.scoring._task_level import ANSWERED, refusal_in, task_record

_SEARCHED, _CHOSEN = way_to("search"), way_to("rerank")


@dataclass(frozen=True, slots=True)
class Missing:
    """Something that this machine cannot know of rows that were made elsewhere, and ``why``."""

    why: str


@dataclass(frozen=True, slots=True)
class Given:
    """A row, and all that came back for it.

    Attributes:
        doc: the question.
        retrieved: what was retrieved for it.
        reply: the reply with its fate; None if the row asks for none.
        offered: whether the prompt offers the reply ``None``.
        likelihoods: of the options, in their order; empty where the reply is a text.
        answer: the answer as it was read before, for a reply whose form is not known here.
    """

    doc: RagDoc
    retrieved: Retrieved = field(default_factory=Retrieved)
    reply: ModelReply | None = None
    offered: bool = False
    likelihoods: tuple[float, ...] = ()
    answer: Answer | None = None


@dataclass(frozen=True)
class Rules:
    """What decides how rows are read and scored, beside the rows.

    Attributes:
        metrics: the names of the metrics.
        form: where the answer is in a reply (:func:`parse_answer`).
        retrieval: the block of the task; None searches nothing.
        language: how languages of answers are told.
        breakdowns: the keys by which scores are broken down (:func:`row_record`).
        elsewhere: the quotes that passages of rows hold which are scored apart; None if no row is.
        known: values that are not scored again, by metric: whether an answer is right.
        missing: the metrics that cannot be computed here, and why.
        thinking: what opens and closes the model's thinking, beside the marks that are known; None without such.
    """

    metrics: Sequence[str] = ()
    form: str | Missing = "plain"
    retrieval: Retrieval | None = None
    language: LanguageRule = BUNDLED
    breakdowns: Sequence[str] = ()
    elsewhere: frozenset[str] | None = None
    known: Mapping[str, Sequence[Value]] = field(default_factory=dict)
    missing: Mapping[str, Missing] = field(default_factory=dict)
    thinking: Marks | None = None

    @cached_property
    def computed(self) -> list[str]:
        """Return the metrics that can be computed here."""
        return [name for name in self.metrics if name not in self.missing]


@dataclass(frozen=True, slots=True)
class Read:
    """A row whose reply was read.

    Attributes:
        given: what it was read from.
        row: the input of judges and metrics.
        answer: the record of the answer; None if the reply shows all of it.
        outcome: how the reply gave no answer to read; None if it gave one.
    """

    given: Given
    row: Scored
    answer: AnswerRecord | None = None
    outcome: str | None = None


def read(given: Given, rules: Rules) -> Read:
    """Return the row with its reply as read. The same is read from the same, whatever the source.

    A call that failed or was not made gives an empty answer, and its failure is one of the row.
    """
    found, reply, form = given.retrieved, given.reply, rules.form
    marks = () if rules.thinking is None else (rules.thinking,)
    failures, record, outcome = found.failures, None, None
    if reply is None:
        answer, form = Answer(""), "plain"
    elif given.likelihoods and reply.came:
        best = given.likelihoods.index(max(given.likelihoods))
        answer, form = Answer(option_texts({"id": given.doc.id, "choices": given.doc.choices})[best]), "plain"
        record = AnswerRecord(answer.text, loglikelihoods=given.likelihoods)
    else:
        text = reply if reply.came else ""
        if isinstance(form, Missing):
            answer = given.answer or Answer(text)
        else:
            answer = parse_answer(text, form, may_decline=given.offered, marks=marks)
        record = AnswerRecord.of(answer, text)
        outcome = outcome_of(reply, answer, marks) if reply.came else None
        if reply.failure is not None:
            failures = (*failures, reply.failure)
    row = Scored(
        given.doc,
        answer.text,
        found.ranking,
        answer.tagged,
        answer.declined,
        reranked=found.reranked,
        form="plain" if isinstance(form, Missing) else form,
        failures=failures,
        passages=found.passages,
        elsewhere=rules.elsewhere,
        cut_off=reply is not None and reply.cut_off,
    )
    return Read(given, row, record, outcome)


def row_scores(rows: Sequence[Scored], rules: Rules) -> list[RowScores]:
    """Return the scores of rows that were read, with what was decided about them; all rows in one batch."""
    return score_rows(rows, rules.computed, **measured_on(rules.retrieval), language=rules.language, known=rules.known)


def records(reads: Sequence[Read], rows: Sequence[Scored], rules: Rules) -> list[RowRecord]:
    """Return the records of rows; ``rows`` are those of ``reads`` with what was decided about them since."""
    return [
        _record(one, row, score, rules) for one, row, score in zip(reads, rows, row_scores(rows, rules), strict=True)
    ]


def _record(one: Read, row: Scored, score: RowScores, rules: Rules) -> RowRecord:
    found, reply = one.given.retrieved, one.given.reply
    failed = failed_in(row.failures, ANSWERED) is not None
    of_task = task_record(rules.computed, row.doc, row.answer, found.passages, row.form, failed=failed)
    return replace(
        row_record(row.doc, score, found, row.judgement, row.labels, rules.breakdowns, row.grounding),
        failures=row.failures,
        fate=None if reply is None else reply.fate,
        offered=one.given.offered,
        outcome=one.outcome or refusal_in(of_task),
        answer=one.answer,
        answer_translated=None if row.translated == row.answer else row.translated,
        **sufficiency_record(row.sufficiency),
        **of_task,
    )


def row_record(
    doc: RagDoc,
    scores: RowScores,
    retrieved: Retrieved | None = None,
    judgement: Judgement | None = None,
    labels: Labels | None = None,
    breakdowns: Sequence[str] = (),
    grounding: Grounding | None = None,
) -> RowRecord:
    """Return the record of one row: identity, cell, values, reasons, and the facts of retrieval and judges.

    ``breakdowns`` are the keys of ``extra`` that scores are broken down by, and :data:`~mrag_eval.config.CONTEXT_PAIR`.
    """
    cell = {"query_lang": doc.query_lang}
    if doc.gold_doc_lang:
        cell["doc_lang"] = doc.gold_doc_lang
    found = retrieved if retrieved is not None else Retrieved()
    # a row's own key of that name is not what is compared under it
    broken_by = {**doc.extra, **context_pair(doc.query_lang, found.passages)}
    cell |= {key: str(broken_by[key]) for key in breakdowns if broken_by.get(key) is not None}
    gold = tuple(hit.rank for hit in found.passages if hit.is_gold)
    if gold:
        cell |= {"gold_first": str(gold[0]), "gold_last": str(gold[-1])}
    if found.withheld is not None:
        cell["withheld"] = "yes" if found.withheld else "no"
    second = found.reranked
    listed = second is not None and (second.windows or second.fault)
    record = RowRecord(
        row=doc.id,
        cell=cell,
        values=scores.values,
        gold_positions=gold,
        group=doc.group_id,
        question=doc.extra.get("question_id"),
        unscored=scores.unscored,
        failures=found.failures,
        judge=None if judgement is None else JudgedRecord.of(judgement),
        relevance=None if labels is None else LabelRecord.of(labels),
        rerank=RerankedRecord(second.windows, second.repaired, second.fault) if second and listed else None,
        loop=None if found.trace is None else loop_record(doc, found.trace, found.passages),
    )
    record = with_claims(record, grounding, found.passages)
    if not found.searchable or failed_in(found.failures, _SEARCHED) is not None:
        return record
    languages = SearchedLanguages(dict(Counter(place.lang for place in found.ranking)), dict(found.searchable))
    record = replace(record, languages=languages)
    # what was withheld says nothing of search and selection
    if unknown_relevance(doc, labels) is not None or found.withheld:
        return record
    kept = any(answers(hit, doc, labels) for hit in found.passages)
    # quotas over fewer places may take a passage that those over the whole list leave out
    there = kept or any(answers(place, doc, labels) for place in found.ranking)
    known = failed_in(found.failures, _CHOSEN) is None
    return replace(record, retrieved=int(there), kept=int(kept) if known else None)


def with_claims(record: RowRecord, grounding: Grounding | None, passages: Sequence[Hit]) -> RowRecord:
    """Return the record with the claims of its answer beside the passages shown, in place of any that it has."""
    if grounding is None and record.grounding is None:
        return record
    cell = {key: value for key, value in record.cell.items() if key != EVIDENCE}
    if grounding is not None:
        cell[EVIDENCE] = evidence_pair(grounding, passages)
    return replace(record, cell=cell, grounding=grounding)
