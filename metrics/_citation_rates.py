"""Inclusion and citation of documents by language, and the preference that a model shows among them."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mrag_eval.metrics import _resampling
from mrag_eval.metrics._citations import CitationCounts, Citations, CitationSource, count_citations
from mrag_eval.metrics._intervals import Estimate, estimates, group_codes, undefined
from mrag_eval.metrics._resampling import Array
from mrag_eval.platform import MetricError


@dataclass(frozen=True, slots=True)
class LanguageCitations:
    """Inclusion and citation of the documents in one language; rates in 0..1, None for a zero denominator.

    ``*_mean`` averages the shares of the single queries (the paper's definition), ``*_pooled`` divides the totals (its
    notebook's). A query without documents has no inclusion share, one without citations no citation share.

    Attributes:
        documents: documents of the language in all prompts.
        citations: citations of them.
    """

    language: str
    inclusion_mean: float | None
    citation_mean: float | None
    inclusion_pooled: float | None
    citation_pooled: float | None
    documents: int
    citations: int


@dataclass(frozen=True, slots=True)
class CitationRates:
    """The result of :func:`citation_rates`.

    Attributes:
        by_language: all queries, one entry per document language.
        by_query_language: the same for the queries of each language; the entry of a language under itself is the
            paper's cr and nr of that language (Figure 4). Empty without ``query_languages``.
        queries: queries with documents.
        citing: queries with at least one citation in range.
        unanswered: queries without a response (left out).
        without_documents: queries with a response but no documents (left out).
        out_of_range: citations of documents that were not in the prompt (dropped).
    """

    by_language: Mapping[str, LanguageCitations] = field(default_factory=dict)
    by_query_language: Mapping[str, Mapping[str, LanguageCitations]] = field(default_factory=dict)
    queries: int = 0
    citing: int = 0
    unanswered: int = 0
    without_documents: int = 0
    out_of_range: int = 0


def citation_rates(
    responses: Sequence[str | Citations | None],
    document_languages: Sequence[Sequence[str]],
    *,
    query_languages: Sequence[str] | None = None,
    source: CitationSource = "inline",
    repeats: bool = True,
) -> CitationRates:
    """Return inclusion rate and citation rate of each document language.

    For one query, nr(l) is the share of the prompt's documents in language l, and cr(l) the share of its citations of
    documents in l.

    Args:
        responses: raw responses or parsed citations, one per query; None if the model gave none.
        document_languages: for each query the languages of its documents, in prompt order.
        query_languages: the language of each query, for the table by query language.
        source: the inline marks (the paper's figures) or the ``Cited Documents:`` line.
        repeats: count a document as often as it is cited (the paper's figures), or once.

    Raises:
        MetricError: lengths differ, a language is unknown, or ``source`` is.

    Source: BordIRlines, section 4.1, Figure 4, Table 10.
    """
    counts = count_citations(responses, document_languages, query_languages, source=source, repeats=repeats)
    with_documents = np.asarray(counts.documents.any(axis=1))
    queries, unanswered = int(with_documents.sum()), sum(response is None for response in responses)
    by_query_language: dict[str, dict[str, LanguageCitations]] = {}
    if counts.asked is not None:
        for asked, column in sorted(counts.columns.items()):
            rows = with_documents & (counts.asked == column)
            if rows.any():
                by_query_language[asked] = _table(counts, rows)
    return CitationRates(
        by_language=_table(counts, with_documents),
        by_query_language=by_query_language,
        queries=queries,
        citing=int(counts.citations.any(axis=1).sum()),
        unanswered=unanswered,
        without_documents=len(responses) - unanswered - queries,
        out_of_range=counts.out_of_range,
    )


def _table(counts: CitationCounts, rows: NDArray[np.bool_]) -> dict[str, LanguageCitations]:
    """Return the entry of each language among the documents of ``rows``, which all have documents."""
    documents, citations = counts.documents[rows], counts.citations[rows]
    cited = citations.sum(axis=1, keepdims=True)
    citing = int(np.count_nonzero(cited))
    inclusion = (documents / documents.sum(axis=1, keepdims=True)).sum(axis=0).tolist()
    citation = (citations / np.maximum(cited, 1.0)).sum(axis=0).tolist()
    included_total, cited_total = (side.sum(axis=0).astype(int).tolist() for side in (documents, citations))
    n_documents, n_citations = sum(included_total), sum(cited_total)
    return {
        language: LanguageCitations(
            language=language,
            inclusion_mean=inclusion[at] / len(documents),
            citation_mean=citation[at] / citing if citing else None,
            inclusion_pooled=included_total[at] / n_documents,
            citation_pooled=cited_total[at] / n_citations if n_citations else None,
            documents=included_total[at],
            citations=cited_total[at],
        )
        for language, at in sorted(counts.columns.items())
        if included_total[at]
    }


# Target documents: those in the question's language, those in English if that is another language, and those in
# neither.
TARGETS = ("own", "english", "other")
# The cell of all questions.
ALL = "all"
_FIGURES = ("inclusion", "citation", "preference", "inclusion_pooled", "citation_pooled", "preference_pooled")
# Share, its count, target documents, documents; the same of citations.
_COLUMNS = 8
# Ranges other than 0 to 1.
_BOUNDS = {"preference": (-1.0, 1.0), "preference_pooled": (-1.0, 1.0)}
_UNDEFINED = "no question here has documents, or none has citations"


@dataclass(frozen=True)
class CitationPreference:
    """Figures of one set of questions, each with its interval: see :func:`citation_preferences`.

    ``n_queries`` counts questions with documents, ``n_citing`` those with a citation in range.
    """

    figures: Mapping[str, Estimate]
    n_queries: int
    n_citing: int

    def as_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        figures = {name: estimate.as_dict() for name, estimate in self.figures.items()}
        return {**figures, "n_queries": self.n_queries, "n_citing": self.n_citing}


def citation_preferences(
    responses: Sequence[str | Citations | None],
    document_languages: Sequence[Sequence[str]],
    query_languages: Sequence[str],
    *,
    cells: Mapping[str, Sequence[str]],
    groups: Sequence[Hashable] | None = None,
    sources: Sequence[CitationSource] = ("inline", "listed"),
    confidence: float = 0.95,
    n_resamples: int = 2_000,
    seed: int | np.random.Generator = 0,
) -> dict[CitationSource, dict[str, dict[str, dict[str, CitationPreference]]]]:
    """Return source -> column of ``cells`` -> target -> cell: inclusion, citation and their difference.

    ``inclusion`` and ``citation`` are the nr and cr of BordIRlines (sections 4.1 and 5.2, Figure 4): the share of a
    question's documents, and of its citations, that are in the target languages, averaged over questions; ``*_pooled``
    divide the totals. ``preference`` = citation minus inclusion, above 0 if such documents are preferred. A question
    without citations has no citation share; one without documents is left out.

    Args:
        responses, document_languages, query_languages: (N,) as in :func:`~mrag_eval.metrics.citation_rates`.
        cells: columns of (N,) labels to break the figures down by, e.g. a resource group. The cell ``all`` is always
            included. The figures of a column do not depend on the other columns.
        groups: (N,) units resampled together, e.g. territories (default: questions).
        sources: which citations are counted, inline marks or the line of cited documents; all from the same resamples.

    Raises MetricError as :func:`~mrag_eval.metrics.citation_rates`, and for cells or groups of another length.
    """
    for name, column in (*((name, column) for name, column in cells.items()), ("groups", groups)):
        if column is not None and len(column) != len(responses):
            raise MetricError(f"{len(responses)} responses but {len(column)} {name}")
    table = np.hstack(
        [_rows(count_citations(responses, document_languages, query_languages, source=name)) for name in sources]
    )
    units = group_codes(range(len(responses)) if groups is None else groups, np.ones(len(responses), dtype=bool))[0]
    rng = _resampling.generator(seed)
    settings = {"confidence": confidence, "n_resamples": n_resamples}
    every = _preferences(table, units, groups is not None, settings, rng)
    out: dict[CitationSource, dict[str, dict[str, dict[str, CitationPreference]]]] = {name: {} for name in sources}
    for name, column in cells.items():
        # every column starts from the generator's state after the figures of all rows, so that none depends on the
        # others
        own = deepcopy(rng)
        labels = np.array(column, dtype=object)
        found = {ALL: every}
        for cell in sorted(set(column) - {ALL}):
            within = labels == cell
            found[cell] = _preferences(table[within], units[within], groups is not None, settings, own)
        for s, source in enumerate(sources):
            out[source][name] = {
                target: {cell: listed[len(TARGETS) * s + t] for cell, listed in found.items()}
                for t, target in enumerate(TARGETS)
            }
    return out


def _rows(counts: CitationCounts) -> Array:
    """Return (N, columns x targets): per target the share, 1, the target's and all documents; then the same of
    citations.
    """
    asked, english = np.asarray(counts.asked), counts.columns.get("en", -1)
    in_english = asked == english
    each = np.arange(len(asked))
    sides = []
    for side in (counts.documents, counts.citations):
        total = side.sum(axis=1)
        own, of_english = side[each, asked], np.zeros_like(total) if english < 0 else side[:, english]
        other = total - own - np.where(in_english, 0.0, of_english)
        for hits, meant in ((own, total > 0), (of_english, (total > 0) & ~in_english), (other, total > 0)):
            share = hits / np.maximum(total, 1.0)
            sides.append(np.stack([share, np.ones_like(total), hits, total], axis=1) * meant[:, None])
    # the two sides of a target are next to each other
    return np.hstack([part for pair in zip(sides[:3], sides[3:], strict=True) for part in pair])


def _preferences(
    table: Array, units: Any, grouped: bool, settings: Mapping[str, Any], rng: np.random.Generator
) -> list[CitationPreference]:
    """Return the preferences of every source and target, in the order of the table's columns, from one set of
    resamples.
    """
    label, unit = ("cluster bootstrap", "clusters") if grouped else ("bootstrap", "rows")
    counts = table.sum(axis=0)
    queries = counts[1::_COLUMNS].astype(int).tolist()
    citing = counts[5::_COLUMNS].astype(int).tolist()
    listed: list[Estimate] = []
    if any(citing):
        codes, inverse = np.unique(units, return_inverse=True)
        sums = _resampling.per_unit_sums(table, inverse, len(codes))
        found = _resampling.limits(sums, _figures, **settings, seed=rng)
        n = [k for asked, cited in zip(queries, citing, strict=True) for k in (asked, cited, cited) * 2]
        listed = estimates(found, n, label, len(sums), unit)
    out, width = [], len(_FIGURES)
    for at, (asked, cited) in enumerate(zip(queries, citing, strict=True)):
        if asked and cited:
            own = zip(_FIGURES, listed[width * at : width * (at + 1)], strict=True)
            figures = {name: each.within(_BOUNDS.get(name, (0.0, 1.0))) for name, each in own}
        else:
            figures = dict.fromkeys(_FIGURES, undefined(_UNDEFINED, label, asked))
        out.append(CitationPreference(figures, asked, cited))
    return out


def _figures(totals: Array) -> Array:
    """Return the figures of every source and target, from the totals of the columns of :func:`_rows`."""
    # targets, documents or citations, mean or pooled, hits or size, resamples
    parts = totals.T.reshape(-1, 2, 2, 2, len(totals))
    with np.errstate(divide="ignore", invalid="ignore"):
        rates = parts[:, :, :, 0] / parts[:, :, :, 1]
    inclusion, citation = rates[:, 0], rates[:, 1]
    figures = np.stack([inclusion, citation, citation - inclusion], axis=2).reshape(-1, len(totals))
    return np.asarray(figures.T)
