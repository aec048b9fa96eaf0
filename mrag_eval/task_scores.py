"""Scores of a task as a whole, which no row has by itself: concurrence over territories, citations by language.

Named in a task's ``metrics`` like the others; what they need of a row travels in its record, and the result stands in
``configs.<task>.scores`` under the same name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from mrag_eval.errors import DataError
from mrag_eval.schema import Hit, RagDoc

# What the concurrence scores need to know of a question, beside its options.
_TERRITORY = ("territory", "claimants", "claimant_langs", "controller", "controller_lang", "control_query")


def check_task_scores(names: Sequence[str], docs: Sequence[RagDoc]) -> None:
    """Raise DataError, before anything is generated, for a row that lacks what a score named needs."""
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


def task_record(names: Sequence[str], doc: RagDoc, answer: str, passages: Sequence[Hit]) -> dict[str, Any]:
    """A row's part in the scores named, by score."""
    record: dict[str, Any] = {}
    if "concurrence" in names:
        from mrag_eval.metrics import parse_borderlines_direct

        record["concurrence"] = {
            "query_id": doc.id,
            "query_lang": doc.query_lang,
            **{key: doc.extra[key] for key in _TERRITORY},
            "claimant_ind": parse_borderlines_direct(answer, list(doc.choices or ())),
        }
    if "citations" in names:
        record["citations"] = {"answer": answer, "document_langs": [hit.lang for hit in passages]}
    return record


def task_scores(records: Sequence[Mapping[str, Any]], seed: int = 0) -> dict[str, Any]:
    """The scores that the gathered records have a part for, by name, as JSON values."""
    out: dict[str, Any] = {}
    for name, score in _SCORES.items():
        parts = [r for r in records if name in r]
        if parts:
            out[name] = score(parts, seed)
    return out


def _concurrence(records: Sequence[Mapping[str, Any]], seed: int) -> dict[str, Any]:
    """BordIRlines, section 5.2: territories are resampled together; refusals count as the published tables have it."""
    from mrag_eval.metrics import concurrence_intervals, concurrence_scores

    rows = [r["concurrence"] for r in records]
    scores = concurrence_scores(rows, rows)
    intervals = concurrence_intervals(rows, rows, n_resamples=2_000, seed=seed)
    return {
        "scores": scores.as_dict(),
        "intervals": {name: estimate.as_dict() for name, estimate in intervals.items()},
        "refusals": sum(row["claimant_ind"] < 0 for row in rows),
    }


def _citations(records: Sequence[Mapping[str, Any]], _: int) -> dict[str, Any]:
    """BordIRlines, section 4.1: inline marks as the paper counts them, and the line of cited documents."""
    from mrag_eval.metrics import citation_rates

    found = {}
    for source in ("inline", "listed"):
        rates = citation_rates(
            [r["citations"]["answer"] for r in records],
            [r["citations"]["document_langs"] for r in records],
            query_languages=[r["cell"]["query_lang"] for r in records],
            source=source,
        )
        found[source] = asdict(rates)
    return found


_SCORES: dict[str, Callable[[Sequence[Mapping[str, Any]], int], dict[str, Any]]] = {
    "concurrence": _concurrence,
    "citations": _citations,
}
TASK_SCORES = tuple(_SCORES)
