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
    out: dict[str, dict[str, CitationPreference]] = {}
    for target in TARGETS:
        table = np.array([_row(target, row) for row in rows], dtype=np.float64).reshape(len(rows), 8)
        out[target] = {"all": _preference(table, units, groups is not None, settings, rng)}
        for cell in sorted(set(cells or ())):
            within = np.array([c == cell for c in cells or ()])
            out[target][cell] = _preference(table[within], units[within], groups is not None, settings, rng)
    return out


def _row(target: str, row: tuple[str, Counter[str], Counter[str]] | None) -> list[float]:
    """Share, its count, target documents, documents; the same of citations."""
    if row is None or (target == "english" and row[0] == "en"):
        return [0.0] * 8
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


def _preference(
    table: Array, units: Any, grouped: bool, settings: Mapping[str, Any], rng: np.random.Generator
) -> CitationPreference:
    queries, citing = int(table[:, 1].sum()), int(table[:, 5].sum())
    if not queries or not citing:
        missing = undefined(_UNDEFINED, "cluster bootstrap" if grouped else "bootstrap", queries)
        return CitationPreference(dict.fromkeys(_FIGURES, missing), queries, citing)
    codes, inverse = np.unique(units, return_inverse=True)
    sums = _resampling.per_unit_sums(table, inverse, len(codes))
    found = _resampling.limits(sums, _figures, **settings, seed=rng)
    n = [queries, citing, citing, queries, citing, citing]
    label, unit = ("cluster bootstrap", "clusters") if grouped else ("bootstrap", "rows")
    return CitationPreference(
        dict(zip(_FIGURES, estimates(found, n, label, len(sums), unit), strict=True)), queries, citing
    )


def _figures(totals: Array) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        inclusion, citation = totals[:, 0] / totals[:, 1], totals[:, 4] / totals[:, 5]
        pooled, cited = totals[:, 2] / totals[:, 3], totals[:, 6] / totals[:, 7]
    return np.column_stack([inclusion, citation, citation - inclusion, pooled, cited, cited - pooled])
