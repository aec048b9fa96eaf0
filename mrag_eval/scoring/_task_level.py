"""Scores of a task as a whole, which no single row has: concurrence over territories, citations by language.

They are named in a task's ``metrics`` like the others. The fields of a row that they need are in its record, and the
result is in ``configs.<task>.scores`` under the same name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from mrag_eval.core import SHARE, Hit, RagDoc, Scale, way_to
from mrag_eval.metrics import CONCURRENCE_SCALES, UNKNOWN_CONTROLLER, Estimate
from mrag_eval.platform import DataError
from mrag_eval.scoring._resamples import RESAMPLES
from mrag_eval.scoring._row_records import CitedAnswer, RowRecord, TerritoryAnswer, TerritoryQuestion, groups_of
from mrag_eval.scoring._score_records import CitationTable, ConcurrenceTable, SkippedQuestions

if TYPE_CHECKING:
    from mrag_eval.metrics import Outcome

# The steps on the way to whatever is read off the answer.
ANSWERED = way_to("answer")
# Fields of a question that the concurrence scores need, except its options.
_TERRITORY = ("territory", "claimants", "claimant_langs", "controller", "controller_lang", "control_query")


def check_task_scores(names: Sequence[str], docs: Sequence[RagDoc]) -> None:
    """Raise DataError, before anything is generated, for a row without a field that a score needs."""
    if "concurrence" not in names:
        return
    for doc in docs:
        for key in _TERRITORY:
            if key not in doc.extra:
                raise DataError(
                    f"row '{doc.id}' has no '{key}', which the metric concurrence needs",
                    f"give every row {', '.join(_TERRITORY)} and its options as 'choices'",
                )
        if not doc.choices:
            raise DataError(f"row '{doc.id}' has no choices, which the metric concurrence needs", "add 'choices'")


def read_option(doc: RagDoc, answer: str, form: str) -> tuple[int, Outcome]:
    """Return the option that a reply chooses by BordIRlines' rule (-1: none), and the outcome.

    The outcome says whether the reply without an option declines, or cannot be read. ``form`` is ``citation`` if the
    option is in the second of three parts, anything else for a direct answer. A citation without that part is
    classified as a whole.
    """
    from mrag_eval.metrics import parse_borderlines_citation, parse_borderlines_direct, reply_outcome

    options = list(doc.choices or ())
    if form != "citation":
        index = parse_borderlines_direct(answer, options)
        return index, reply_outcome(answer, options, index, doc.query_lang)
    index = parse_borderlines_citation(answer, options).index
    chosen = answer.partition("Chosen Option:")[2].partition("Explanation:")[0] or answer
    return index, reply_outcome(chosen, options, index, doc.query_lang)


def task_record(
    names: Sequence[str],
    doc: RagDoc,
    answer: str,
    passages: Sequence[Hit],
    form: str = "plain",
    *,
    failed: bool = False,
) -> dict[str, Any]:
    """Return a row's part in the scores named, by the field of its record; ``form`` as in :func:`read_option`.

    ``failed``: there is no answer that could be trusted, so that no score may count one.
    """
    if failed:
        return {"unanswered": TerritoryQuestion(**_territory(doc))} if "concurrence" in names else {}
    record: dict[str, Any] = {}
    if "concurrence" in names:
        index, outcome = read_option(doc, answer, form)
        record["concurrence"] = TerritoryAnswer(**_territory(doc), claimant_ind=index, outcome=outcome)
    if "citations" in names:
        record["citations"] = CitedAnswer(answer, tuple(hit.lang for hit in passages))
    return record


def refusal_in(record: Mapping[str, Any]) -> str | None:
    """Return ``refusal`` if a row's part in the scores says that its reply declines in words."""
    answer = record.get("concurrence")
    return "refusal" if isinstance(answer, TerritoryAnswer) and answer.outcome == "refused" else None


def skipped_territories(names: Sequence[str], skipped: Sequence[RagDoc]) -> tuple[TerritoryQuestion, ...]:
    """Return the facts on rows that the mode leaves out; one row of each rank carries them."""
    return tuple(TerritoryQuestion(**_territory(doc)) for doc in skipped) if "concurrence" in names else ()


def _territory(doc: RagDoc) -> dict[str, Any]:
    facts = {key: doc.extra[key] for key in _TERRITORY}
    facts |= {key: tuple(value) for key, value in facts.items() if isinstance(value, list)}
    return {"query_id": doc.id, "query_lang": doc.query_lang, **facts}


@contextmanager
def _one_blas_thread() -> Iterator[None]:
    """Keep matrix products in this thread: for small ones, threads wait for each other longer than they multiply."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1, user_api="blas"):
        yield


@_one_blas_thread()
def concurrence_table(records: Sequence[RowRecord], seed: int = 0) -> ConcurrenceTable | None:
    """Return the concurrence over territories, which are resampled together; None if no row is about one."""
    from mrag_eval.metrics import (
        SHARES,
        concurrence_intervals,
        concurrence_scores,
        interval_for,
        random_concurrence,
        undefined,
    )

    asked, left, lost = _territories(records)
    if not asked:
        return None
    rows = [_as_row(row) for row in asked]
    territories = [*rows, *map(_as_row, left)]
    scores = concurrence_scores(territories, rows)
    # a question counts by itself in the shares of replies, even if another one on its territory has no answer
    outcomes: Counter[str] = Counter(r.concurrence.outcome for r in records if r.concurrence is not None)
    shares = [None if r.concurrence is None else SHARES[r.concurrence.outcome] for r in records]
    groups = groups_of(records)

    def rate(share: str) -> Estimate:
        values = [None if one is None else float(one == share) for one in shares]
        return interval_for(values, groups=groups, n_resamples=RESAMPLES, seed=seed, bounds=SHARE.bounds)

    def intervals(**reading: Any) -> Mapping[str, Estimate]:
        found = concurrence_intervals(territories, rows, n_resamples=RESAMPLES, seed=seed, **reading)
        blank = {} if reading.get("refusals") == "exclude" else _without_control(left)
        return {**found, **{name: undefined(reason, found[name].method) for name, reason in blank.items()}}

    table = ConcurrenceTable(
        scores=scores.as_dict(),
        intervals=intervals(),
        random=random_concurrence(territories),
        refusals=scores.n_refusals,
        refused_controls=scores.n_refused_controls,
        outcomes=dict(outcomes),
        rates={share: rate(share) for share in dict.fromkeys(SHARES.values())},
        exclude=intervals(refusals="exclude"),
        incorrect=intervals(refusals="incorrect"),
        lost=len(lost),
        unanswered=sum(r.unanswered is not None for r in records),
    )
    if not left:
        return table
    only = {row.territory for row in asked}
    shared = [row for row in territories if row["territory"] in only]
    return replace(
        table,
        skipped=SkippedQuestions(len(left), len({row["territory"] for row in territories} - only)),
        deflated=tuple(name for name in ("KB_CS", "countries_mean") if scores[name] is not None),
        answered_only=concurrence_scores(shared, rows, refusals="exclude").as_dict(),
    )


def _territories(records: Sequence[RowRecord]) -> tuple[list[TerritoryAnswer], list[TerritoryQuestion], set[str]]:
    """Return the answers about territories, the questions that the mode skipped, and the territories left out.

    These have a question without an answer that could be trusted: its answers in fewer languages would agree more
    easily.
    """
    lost = {r.unanswered.territory for r in records if r.unanswered is not None}
    asked = [r.concurrence for r in records if r.concurrence is not None and r.concurrence.territory not in lost]
    known = {row.query_id for row in asked}
    skipped = (row for r in records for row in r.skipped if row.territory not in lost)
    return asked, list({row.query_id: row for row in skipped if row.query_id not in known}.values()), lost


def _without_control(left: Sequence[TerritoryQuestion]) -> dict[str, str]:
    """Return the scores that a mode cannot have, with the reason, if it leaves out control questions.

    They would count as wrong: BordIRlines' Table 4 leaves the KB CS of swap_docs blank.
    """
    n = sum(bool(row.control_query) and row.controller != UNKNOWN_CONTROLLER for row in left)
    return {"KB_CS": f"the mode leaves out {n} English control questions, which would count as wrong"} if n else {}


def _as_row(record: TerritoryQuestion) -> dict[str, Any]:
    """Return the fields; ``dataclasses.asdict`` would copy every value."""
    return {field.name: getattr(record, field.name) for field in fields(record)}


def territory_values(records: Sequence[RowRecord]) -> dict[str, dict[str, float]]:
    """Return territory -> measure -> value, for the measures that are means over territories; empty without any."""
    from mrag_eval.metrics import concurrence_by_territory

    asked, left, _ = _territories(records)
    if not asked:
        return {}
    rows, blank = [_as_row(row) for row in asked], _without_control(left)
    found = concurrence_by_territory([*rows, *map(_as_row, left)], rows)
    return {
        territory: {
            name: value
            for key, value in values.items()
            if key not in blank and (name := f"concurrence.{key}") in TASK_MEASURES
        }
        for territory, values in found.items()
    }


@_one_blas_thread()
def citation_tables(records: Sequence[RowRecord], seed: int = 0) -> dict[str, CitationTable] | None:
    """Return the citations by source: inline marks as BordIRlines counts them, and the line of cited documents.

    See BordIRlines, section 4.1. None if no row has citations. Rows with a passage in a language that is not known are
    left out. ``preference`` is by resource group of the question's language if the rows have one, and by that language.
    """
    from mrag_eval.metrics import citation_preferences, citation_rates, parse_citations

    cited = [(r, r.citations) for r in records if r.citations is not None and all(r.citations.document_langs)]
    if not cited:
        return None
    answers = [parse_citations(part.answer) for _, part in cited]
    documents = [list(part.document_langs) for _, part in cited]
    languages = [r.cell["query_lang"] for r, _ in cited]
    cells = {"query_lang": languages}
    if all("resource_group" in r.cell for r, _ in cited):
        cells["resource_group"] = [r.cell["resource_group"] for r, _ in cited]
    groups = [r.resampled_with for r, _ in cited]
    preferences = citation_preferences(answers, documents, languages, cells=cells, groups=groups, seed=seed)
    found: dict[str, CitationTable] = {}
    for source, by_column in preferences.items():
        rates = citation_rates(answers, documents, query_languages=languages, source=source)
        found[source] = CitationTable(
            **{part.name: getattr(rates, part.name) for part in fields(rates)},
            preference={
                name: {
                    target: {cell: figures.as_dict() for cell, figures in by_cell.items()}
                    for target, by_cell in by_target.items()
                }
                for name, by_target in by_column.items()
            },
        )
    return found


TASK_SCORES = ("concurrence", "citations")


@dataclass(frozen=True)
class TaskMeasure:
    """A measure of a task as a whole: its name in results, its unit and range, and whether higher is better.

    ``in_results``: the harness's table has it, too. ``nearer_zero``: it is better the nearer it is to 0.
    """

    name: str
    scale: Scale = SHARE
    higher_is_better: bool | None = None
    in_results: bool = False
    _: KW_ONLY
    needs: frozenset[str]
    nearer_zero: bool = False


def _measures() -> Iterator[TaskMeasure]:
    better = {**dict.fromkeys(("controller_share", "KB_CS", "Cst_CS_unk", "Cst_CS_all", "read"), True), "unread": False}
    papers = ("KB_CS", "Con_CS", "Non_CS", "delta_CS_ratio", "delta_CS_difference", "Cst_CS_unk", "Cst_CS_all")
    in_results = ("controller_share", *papers)
    for name in (*in_results, "read", "refused", "unread", *CONCURRENCE_SCALES):
        scale = CONCURRENCE_SCALES.get(name, SHARE)
        kept = (f"concurrence.{name}", scale, better.get(name), name in in_results)
        yield TaskMeasure(*kept, needs=ANSWERED, nearer_zero=name.startswith("delta_CS"))


TASK_MEASURES = {measure.name: measure for measure in _measures()}


def reported_measures(names: Sequence[str]) -> dict[str, bool | None]:
    """Return the measures of a task with these metrics that the harness reports, and whether higher is better."""
    found = (measure for measure in TASK_MEASURES.values() if measure.in_results)
    return {measure.name: measure.higher_is_better for measure in found if measure.name.partition(".")[0] in names}
