"""Whether responses cite documents in the question's language more, or less, than such documents are shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mrag_eval.errors import MetricError
from mrag_eval.metrics import _resampling
from mrag_eval.metrics._resampling import Array
from mrag_eval.metrics.citations import Citations, CitationSource, cited_languages
from mrag_eval.metrics.intervals import Estimate, estimates, group_codes, undefined

# Which documents are meant: those in the question's language, those in English where that is another language, and
# those in neither.
TARGETS = ("own", "english", "other")
_FIGURES = ("inclusion", "citation", "preference", "inclusion_pooled", "citation_pooled", "preference_pooled")
# Share, its count, target documents, documents; the same of citations.
_COLUMNS = 8
_UNDEFINED = "no question here has documents, or none has citations"


@dataclass(frozen=True)
class CitationPreference:
    """Figures of one set of questions, each with its interval: see :func:`citation_preference`.

    ``n_queries`` counts questions with documents, ``n_citing`` those with a citation in range.
    """

    figures: Mapping[str, Estimate]
    n_queries: int
    n_citing: int

    def as_dict(self) -> dict[str, Any]:
        """JSON values."""
        figures = {name: estimate.as_dict() for name, estimate in self.figures.items()}
        return {**figures, "n_queries": self.n_queries, "n_citing": self.n_citing}


def citation_preference(
    responses: Sequence[str | Citations | None],
    document_languages: Sequence[Sequence[str]],
    query_languages: Sequence[str],
    *,
    cells: Sequence[str] | None = None,
    groups: Sequence[Hashable] | None = None,
    source: CitationSource = "inline",
    confidence: float = 0.95,
    n_resamples: int = 2_000,
    seed: int | np.random.Generator = 0,
) -> dict[str, dict[str, CitationPreference]]:
    """Target -> cell -> inclusion, citation and their difference (BordIRlines, sections 4.1 and 5.2, Figure 4).

    ``inclusion`` and ``citation`` are the paper's nr and cr: the share of a question's documents, and of its citations,
    that are in the target languages, averaged over questions; ``*_pooled`` divide the totals. ``preference`` = citation
    minus inclusion, above 0 where such documents are preferred. A question without citations has no citation share, one
    without documents takes no part.

    Args:
        responses, document_languages, query_languages: (N,) as in :func:`~mrag_eval.metrics.citation_rates`.
        cells: (N,) what to break the figures down by, e.g. a resource group; the cell ``all`` is always there.
        groups: (N,) what is resampled together, e.g. territories (default: questions).

    Raises MetricError as :func:`~mrag_eval.metrics.citation_rates`, and for cells or groups of another length.
    """
    for name, column in (("cells", cells), ("groups", groups)):
        if column is not None and len(column) != len(responses):
            raise MetricError(f"{len(responses)} responses but {len(column)} {name}")
    rows = cited_languages(responses, document_languages, query_languages, source=source)
    units = group_codes(range(len(responses)) if groups is None else groups, np.ones(len(responses), dtype=bool))[0]
    rng = _resampling.generator(seed)
    settings = {"confidence": confidence, "n_resamples": n_resamples}
    table = np.array(
        [[figure for target in TARGETS for figure in _row(target, row)] for row in rows], dtype=np.float64
    ).reshape(len(rows), _COLUMNS * len(TARGETS))
    found = {"all": _preferences(table, units, groups is not None, settings, rng)}
    for cell in sorted(set(cells or ())):
        within = np.array([c == cell for c in cells or ()])
        found[cell] = _preferences(table[within], units[within], groups is not None, settings, rng)
    return {target: {cell: by_target[target] for cell, by_target in found.items()} for target in TARGETS}


def _row(target: str, row: tuple[str, Counter[str], Counter[str]] | None) -> list[float]:
    if row is None or (target == "english" and row[0] == "en"):
        return [0.0] * _COLUMNS
    asked, included, cited = row
    out: list[float] = []
    for counts in (included, cited):
        total = counts.total()
        hits = sum(n for lang, n in counts.items() if _meant(target, asked, lang))
        out += [hits / total, 1.0, hits, total] if total else [0.0] * 4
    return out


def _meant(target: str, asked: str, language: str) -> bool:
    if target == "own":
        return language == asked
    return language == "en" if target == "english" else language not in (asked, "en")


def _preferences(
    table: Array, units: Any, grouped: bool, settings: Mapping[str, Any], rng: np.random.Generator
) -> dict[str, CitationPreference]:
    """Of every target, from one set of resamples."""
    label, unit = ("cluster bootstrap", "clusters") if grouped else ("bootstrap", "rows")
    out, counts = {}, table.sum(axis=0)
    queries = {target: int(counts[_COLUMNS * t + 1]) for t, target in enumerate(TARGETS)}
    citing = {target: int(counts[_COLUMNS * t + 5]) for t, target in enumerate(TARGETS)}
    listed: list[Estimate] = []
    if any(citing.values()):
        codes, inverse = np.unique(units, return_inverse=True)
        sums = _resampling.per_unit_sums(table, inverse, len(codes))
        found = _resampling.limits(sums, _figures, **settings, seed=rng)
        n = [k for target in TARGETS for k in (queries[target], citing[target], citing[target]) * 2]
        listed = estimates(found, n, label, len(sums), unit)
    for t, target in enumerate(TARGETS):
        if queries[target] and citing[target]:
            figures = dict(zip(_FIGURES, listed[len(_FIGURES) * t : len(_FIGURES) * (t + 1)], strict=True))
        else:
            figures = dict.fromkeys(_FIGURES, undefined(_UNDEFINED, label, queries[target]))
        out[target] = CitationPreference(figures, queries[target], citing[target])
    return out


def _figures(totals: Array) -> Array:
    columns = []
    with np.errstate(divide="ignore", invalid="ignore"):
        for start in range(0, totals.shape[1], _COLUMNS):
            part = totals[:, start : start + _COLUMNS]
            inclusion, citation = part[:, 0] / part[:, 1], part[:, 4] / part[:, 5]
            pooled, cited = part[:, 2] / part[:, 3], part[:, 6] / part[:, 7]
            columns += [inclusion, citation, citation - inclusion, pooled, cited, cited - pooled]
    return np.column_stack(columns)
