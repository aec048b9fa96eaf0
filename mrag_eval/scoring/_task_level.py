"""Scores of a task as a whole, which no row has by itself: concurrence over territories, citations by language.

Named in a task's ``metrics`` like the others; what they need of a row travels in its record, and the result stands in
``configs.<task>.scores`` under the same name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mrag_eval.core import DataError, Hit, RagDoc

if TYPE_CHECKING:
    from mrag_eval.metrics import Estimate, Outcome

# Resamples of every interval.
_RESAMPLES = 2_000
# What the concurrence scores need to know of a question, beside its options.
_TERRITORY = ("territory", "claimants", "claimant_langs", "controller", "controller_lang", "control_query")


def check_task_scores(names: Sequence[str], docs: Sequence[RagDoc]) -> None:
    """Raise DataError, before anything is generated, for a row that lacks what a score named needs.

    And MissingExtraError where the metrics of short answers are named and their extra is not installed.
    """
    if {"sem_b", "sem_w"} & {*names}:
        from mrag_eval.metrics import check_stemmers

        check_stemmers()
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
    """The option that a reply chooses by BordIRlines' rule (-1: none), and what the reply did instead of choosing.

    ``form`` is ``citation`` where the option stands in the second of three parts, anything else for a direct answer.
    """
    from mrag_eval.metrics import parse_borderlines_citation, parse_borderlines_direct, reply_outcome

    options = list(doc.choices or ())
    if form != "citation":
        index = parse_borderlines_direct(answer, options)
        return index, reply_outcome(answer, options, index)
    index = parse_borderlines_citation(answer, options).index
    chosen = answer.partition("Chosen Option:")[2].partition("Explanation:")[0]
    return index, reply_outcome(chosen, options, index)


def task_record(
    names: Sequence[str], doc: RagDoc, answer: str, passages: Sequence[Hit], form: str = "plain"
) -> dict[str, Any]:
    """A row's part in the scores named, by score; ``form`` as in :func:`read_option`."""
    record: dict[str, Any] = {}
    if "concurrence" in names:
        index, outcome = read_option(doc, answer, form)
        record["concurrence"] = {**_territory(doc), "claimant_ind": index, "outcome": outcome}
    if "citations" in names:
        record["citations"] = {"answer": answer, "document_langs": [hit.lang for hit in passages]}
    return record


def skipped_record(names: Sequence[str], skipped: Sequence[RagDoc]) -> dict[str, Any]:
    """What the scores must know of the rows that the mode leaves out; carried by one row of each rank."""
    return {"skipped": [_territory(doc) for doc in skipped]} if "concurrence" in names and skipped else {}


def _territory(doc: RagDoc) -> dict[str, Any]:
    return {"query_id": doc.id, "query_lang": doc.query_lang, **{key: doc.extra[key] for key in _TERRITORY}}


def task_scores(records: Sequence[Mapping[str, Any]], seed: int = 0) -> dict[str, Any]:
    """The scores that the gathered records have a part for, by name, as JSON values."""
    out: dict[str, Any] = {}
    for name, score in _SCORES.items():
        parts = [r for r in records if name in r]
        if parts:
            out[name] = score(parts, seed)
    return out


def _concurrence(records: Sequence[Mapping[str, Any]], seed: int) -> dict[str, Any]:
    """BordIRlines, section 4.1 and Table 4; territories are resampled together.

    ``scores`` and ``intervals`` count refusals as the published tables do, ``exclude`` and ``incorrect`` in the two
    other ways. ``random`` is what answers drawn at random would get. Questions that the mode skips count as missing in
    the published reading; ``answered_only`` leaves their territories out.
    """
    from mrag_eval.metrics import concurrence_intervals, concurrence_scores, random_concurrence

    rows = [r["concurrence"] for r in records]
    asked = {row["query_id"] for row in rows}
    skipped = {row["query_id"]: row for r in records for row in r.get("skipped", ()) if row["query_id"] not in asked}
    territories = [*rows, *skipped.values()]
    scores = concurrence_scores(territories, rows)
    outcomes = Counter(row["outcome"] for row in rows)
    out: dict[str, Any] = {
        "scores": scores.as_dict(),
        "intervals": _estimates(concurrence_intervals(territories, rows, n_resamples=_RESAMPLES, seed=seed)),
        "random": random_concurrence(territories),
        "refusals": scores.n_refusals,
        "refused_controls": scores.n_refused_controls,
        "outcomes": dict(outcomes),
        "rates": {
            "refused": _share(outcomes["refused"], len(rows)),
            "unread": _share(outcomes["unread"] + outcomes["several"] + outcomes["beyond"], len(rows)),
        },
    }
    for reading in ("exclude", "incorrect"):
        found = concurrence_intervals(territories, rows, refusals=reading, n_resamples=_RESAMPLES, seed=seed)
        out[reading] = _estimates(found)
    if skipped:
        only = {row["territory"] for row in rows}
        shared = [row for row in territories if row["territory"] in only]
        out["skipped"] = {"queries": len(skipped), "territories": len({r["territory"] for r in territories} - only)}
        out["deflated"] = [name for name in ("KB_CS", "countries_mean") if scores[name] is not None]
        out["answered_only"] = concurrence_scores(shared, rows, refusals="exclude").as_dict()
    return out


def _estimates(found: Mapping[str, Estimate]) -> dict[str, Any]:
    return {name: estimate.as_dict() for name, estimate in found.items()}


def _share(count: int, n: int) -> dict[str, Any]:
    from mrag_eval.metrics import wilson

    return wilson(count, n).as_dict()


def _citations(records: Sequence[Mapping[str, Any]], seed: int) -> dict[str, Any]:
    """BordIRlines, section 4.1: inline marks as the paper counts them, and the line of cited documents.

    ``preference`` is by resource group of the question's language where the rows have one, and by that language.
    """
    from mrag_eval.metrics import citation_preferences, citation_rates, parse_citations

    found: dict[str, Any] = {}
    answers = [parse_citations(r["citations"]["answer"]) for r in records]
    documents = [r["citations"]["document_langs"] for r in records]
    languages = [r["cell"]["query_lang"] for r in records]
    cells = {"query_lang": languages}
    if all("resource_group" in r["cell"] for r in records):
        cells["resource_group"] = [r["cell"]["resource_group"] for r in records]
    groups = [str(r.get("group", r["row"])) for r in records]
    preferences = citation_preferences(answers, documents, languages, cells=cells, groups=groups, seed=seed)
    for source, by_column in preferences.items():
        rates = citation_rates(answers, documents, query_languages=languages, source=source)
        found[source] = rates.as_dict() | {
            "preference": {
                name: {
                    target: {cell: figures.as_dict() for cell, figures in by_cell.items()}
                    for target, by_cell in by_target.items()
                }
                for name, by_target in by_column.items()
            }
        }
    return found


_SCORES: dict[str, Callable[[Sequence[Mapping[str, Any]], int], dict[str, Any]]] = {
    "concurrence": _concurrence,
    "citations": _citations,
}
TASK_SCORES = tuple(_SCORES)
