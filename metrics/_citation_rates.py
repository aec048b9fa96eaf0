"""Inclusion and citation of documents, by their language."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from mrag_eval.metrics._citations import CitationCounts, Citations, CitationSource, count_citations


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
