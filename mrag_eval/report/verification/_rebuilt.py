"""Records of rows, made again from replies, rankings, votes and the rows of the benchmark, as a run makes them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, cast

from mrag_eval.config import CORRECT, GROUNDED, TRANSLATED, mode_named
from mrag_eval.controls import ControlRule, control_pool, row_controls
from mrag_eval.core import (
    Failure,
    Labels,
    LabelSource,
    ModelReply,
    RagDoc,
    Ranked,
    Reranking,
    Retrieved,
    Scored,
    Vote,
    way_to,
)
from mrag_eval.datasets import declaration_of
from mrag_eval.judging import Decided, LanguageCheck, Recount, language_check
from mrag_eval.models import ANSWERED_BY_US
from mrag_eval.report.files._sample import Sample
from mrag_eval.report.files._samples import Samples
from mrag_eval.report.verification._task_here import TaskHere
from mrag_eval.scoring import (
    ControlRecord,
    Given,
    LabelRecord,
    LanguageRule,
    Missing,
    RowRecord,
    Rules,
    is_loaded,
    read,
    read_by_words,
    records,
    words_of,
)

# Fields of a record that belong to a rank, and are carried by one of its rows.
OF_A_RANK = ("prompts", "skipped", "translation", "panel", "sufficiency_panel", "claims_panel", "labelling",
             "came_back", "asked")  # fmt: skip
# Steps of the retrieval, documents in the language of the prompt among them: their failures are taken as recorded. That
# of a RAG system is one of its reply.
_RETRIEVAL = way_to("translation of documents") - {"system"}
OTHER_WORDS = Missing("your files of languages are not those of the run")
# Values that need the form in which the prompt asks for the answer.
_BY_FORM = ("concurrence", "citations", "option_read", "option_refused", "option_unread", "declined", "answer_tag")


@dataclass(frozen=True)
class Rebuilt:
    """Some rows of a task made again, aligned with their samples.

    Attributes:
        samples: what they were made of.
        records: their records.
        rows: the input to the metrics.
        missing: metrics that could not be computed here, and why; they are taken from the recorded rows.
        labels_repeated: whether all labels of rankings follow from what is known here.
    """

    samples: Sequence[Sample]
    records: list[RowRecord]
    rows: Sequence[Scored]
    missing: Mapping[str, Missing]
    labels_repeated: bool


def rebuilt(here: TaskHere, samples: Samples, *, by_document: bool = False) -> Iterator[Rebuilt]:
    """Yield the records of a task's rows as a run makes them, those of some rows at a time.

    What is not known here is taken from the recorded ones: metrics that are ``missing``, fields of a rank, labels that
    need texts of the whole ranking, translations, verdicts on claims, and counts of searchable passages.
    ``by_document``: relevant ids are those of documents, which samples do not say.
    """
    asked = [record.query_lang for record in samples.records]
    rules = _rules(here, asked)
    if any("quote" in name for name in rules.computed):
        rules = replace(rules, elsewhere=_quoted_elsewhere(here, samples, rules))
    check = language_check(here.judge, here.languages(asked))
    controls = _controls(here, (_given(here, sample, by_document) for sample in samples), asked, rules, check)
    # the names of columns follow from the first labels
    size = len(samples) if any(record.relevance is not None for record in samples.records) else 500
    left = iter(samples)
    while part := [*islice(left, size)]:
        reads = [read(_given(here, sample, by_document), rules) for sample in part]
        ids = {place.id for one in reads for place in one.row.ranking} if here.judge.relevance.labels == "proxy" else ()
        recount = Recount(here.judge, (here.passages(sorted(ids)) or {}) if ids else {})
        rows = [one.row for one in reads]
        decided = [_decided(here, sample, row) for sample, row in zip(part, rows, strict=True)]
        rows = recount.of(rows if check is None else check.of(rows), decided)
        out = [
            _with_recorded(here, record, sample, rules, controls)
            for record, sample in zip(records(reads, rows, rules), part, strict=True)
        ]
        labels = ((row, said.labels) for row, said in zip(rows, decided, strict=True))
        known = all(said is None or recount.repeats(row, said) for row, said in labels)
        yield Rebuilt(part, out, rows, rules.missing, known)


def _quoted_elsewhere(here: TaskHere, samples: Samples, rules: Rules) -> frozenset[str]:
    """Return the quotes of replies that a passage of any row holds; that of their own row counts first."""
    from mrag_eval.metrics import held_elsewhere, verbatim_quotes

    sought: dict[str, None] = {}
    for row in (read(_given(here, sample, False), rules).row for sample in samples):
        sought |= dict.fromkeys(quote for quote, _ in verbatim_quotes(row.answer, ()).found if row.passages)
    return held_elsewhere(sought, (hit.text for s in samples for hit in _found(here, s).passages if hit.text))


def _rules(here: TaskHere, asked: Sequence[str]) -> Rules:
    """Return how the run read and scored its rows, as far as this machine can: the rest is missing, with the reason."""
    names, words_known = here.leaf.config.metrics, here.words_as_recorded(asked)
    language = here.language_rule(asked) if "correct_language" in names else None
    form: str | Missing = here.form or Missing(f"there is no prompt template '{here.leaf.config.prompt}' here")
    hashed = Missing("their texts are hashed") if here.hashed else None

    def why_not(name: str) -> Missing | None:
        if name == "correct_language" and language is None:
            return Missing("lingua, or a model, is not on this machine")
        if read_by_words(name) and not words_known:
            return OTHER_WORDS
        if name in _BY_FORM and isinstance(form, Missing):
            return form
        return None if _cut_alike(here, name) else Missing("words are cut in another way here, or it is not loaded")

    missing = {name: why for name in names if (why := hashed or why_not(name)) is not None}
    right = next((missing[name] for name in CORRECT if name in missing), None)
    if right is not None:
        missing |= {name: missing.get(name, right) for name in GROUNDED if name in names}
    own, how = here.thinking, language or LanguageRule()
    return Rules(names, hashed or form, here.retrieval, how, _breakdowns(here), missing=missing, thinking=own)


def _with_recorded(
    here: TaskHere, made: RowRecord, sample: Sample, rules: Rules, controls: Mapping[str, ControlRecord] | Missing
) -> RowRecord:
    """Return a record with what is recorded of all that is missing here."""
    before = sample.record
    kept: dict[str, Any] = {name: getattr(before, name) for name in OF_A_RANK}
    kept |= {name: getattr(before, name) for name in ("concurrence", "citations") if name in rules.missing}
    # of a hash it cannot be told whether the text is an unfinished thought
    kept |= {"outcome": before.outcome} if here.hashed else {}
    kept["controls"] = before.controls if isinstance(controls, Missing) else controls.get(before.row)
    # whether the prompt offers the reply None: as recorded if the prompt's template is not here
    kept["offered"] = (
        before.offered if here.template is None else here.template.offers_none(sample.line.get("doc") or {})
    )
    if here.leaf.config.setting("replies") == "given":
        kept["offered"] = not sample.passages
    values = {name: before.values[name] for name in rules.missing if name in before.values}
    unscored = {name: before.unscored[name] for name in rules.missing if name in before.unscored}
    return replace(made, values={**made.values, **values}, unscored={**made.unscored, **unscored}, **kept)


def _controls(
    here: TaskHere, rows: Iterable[Given], asked: Sequence[str], rules: Rules, check: LanguageCheck | None
) -> Mapping[str, ControlRecord] | Missing:
    """Return what the controls score, by row id.

    Controls of metrics that cannot be computed here make all of them unknown.
    """
    task, retrieval = here.rows, here.retrieval
    if task is None or task.repeated is None or retrieval is None or isinstance(rules.form, Missing):
        return Missing("what they are drawn from is not on this machine")
    if (why := next(iter(rules.missing.values()), None)) is not None:
        return why
    if not here.words_as_recorded(asked):
        return OTHER_WORDS
    rule = ControlRule(rules.metrics, rules.form, rules.language, list if check is None else check.of)
    docs: list[RagDoc] = []
    shown: dict[str, Retrieved] = {}
    for one in rows:
        docs.append(one.doc)
        shown[one.doc.id] = replace(one.retrieved, passages=(), ranking=(), reranked=None, trace=None)
    pool = control_pool(task.repeated.selection.docs, task.benchmark, retrieval)
    return row_controls(docs, pool, rule, retrieval, shown, task.repeated.relevant)


def _cut_alike(here: TaskHere, metric: str) -> bool:
    """Return whether words are normalised and cut here as in the run; results without a record may be of any rule."""
    if not is_loaded(metric):
        return False
    there = here.leaf.measurement.instrument
    return all(there.get(key) == version for key, version in words_of([metric]).items())


def _given(here: TaskHere, sample: Sample, by_document: bool) -> Given:
    given, config = sample.given(_doc(here, sample, by_document), _found(here, sample)), here.leaf.config
    asked_here = config.transport in (None, ANSWERED_BY_US)
    if given.reply is None or not given.reply.came or asked_here or config.setting("replies") == "given":
        return given
    # nobody but a provider, to us or in a log, says anything of a reply beside its text
    return replace(given, reply=ModelReply(given.reply))


def _doc(here: TaskHere, sample: Sample, by_document: bool) -> RagDoc:
    if here.rows is not None and sample.record.row in here.rows.docs:
        return replace(here.rows.docs[sample.record.row], absent_ids=sample.doc.absent_ids)
    return replace(sample.doc, relevant_documents=by_document)


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


def _decided(here: TaskHere, sample: Sample, row: Scored) -> Decided:
    """Return what the sample says that judges, classifiers and translators said of its row."""
    record, labels = sample.record, sample.record.relevance
    taken = [one for one in record.failures if one.step == "translation of answers"]
    taken += [one for one in record.failures if one.step == "grounding"] if record.grounding is None else []
    if labels is not None and labels.by != "judge":
        taken += [one for one in record.failures if one.stage == "label" and one.reason == labels.fault]
    metric = next((name for name in here.leaf.config.metrics if name in TRANSLATED), None)
    scored = metric in record.values
    return Decided(
        None if record.judge is None else votes_of(sample),
        None if record.sufficiency is None else record.sufficiency_votes or {},
        record.grounding,
        None if labels is None else _labels(row, labels, record.failures),
        (record.answer_translated or row.answer) if scored else None,
        None if scored or metric is None else record.unscored.get(metric),
        taken,
    )


def votes_of(sample: Sample) -> dict[str, Vote]:
    """Return the votes on the answer, by seat."""
    return {
        seat: Vote(
            vote.get("verdict"),
            str(vote.get("justification") or ""),
            vote.get("error"),
            reply=None if vote.get("reply") is None else str(vote["reply"]),
        )
        for seat, vote in sample.votes.items()
    }


def _labels(row: Scored, record: LabelRecord, failures: Sequence[Failure]) -> Labels:
    """Return recorded labels; abstentions have the words of their failures."""
    ids = tuple(place.id for place in row.ranking)
    found = frozenset(ids[n - 1] for n in record.relevant or () if 0 < n <= len(ids))
    why = {one.model: f"{one.reason}: {one.detail}" for one in failures if one.stage == "label"}
    votes = {seat: why.get(seat, said) if isinstance(said, str) else said for seat, said in record.votes.items()}
    return Labels(cast(LabelSource, record.by), ids[: record.judged], found, record.fault, votes)


def _breakdowns(here: TaskHere) -> Sequence[str]:
    """Return the keys of ``extra`` that scores are broken down by."""
    of_mode = mode_named(here.leaf.config.mode).breakdowns
    if here.rows is not None:
        return (*here.rows.benchmark.breakdowns, *of_mode)
    named = here.leaf.config.data.get("breakdowns")
    declared = declaration_of(here.leaf.config.data)
    return (*(named or (declared.breakdowns_of(here.leaf.config.data) if declared is not None else ())), *of_mode)
