"""Documents cited by a response, and their languages."""

from __future__ import annotations

import re
import sys
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal

from mrag_eval.core import MetricError, did_you_mean, is_language, normalize_language, suggestion

CitationSource = Literal["inline", "listed"]

_MOST_DIGITS = 18
_INLINE = re.compile(r"<doc([0-9]+(?:,[0-9]+)*)>")
_LISTED = re.compile(r"Cited Documents:([^\n]*)")


@dataclass(frozen=True, slots=True)
class Citations:
    """The document numbers (0-based, with repeats) that a response cites.

    ``listed_line`` is the raw content of the ``Cited Documents:`` line, None without such a line.
    """

    inline: tuple[int, ...]
    listed: tuple[int, ...]
    listed_line: str | None


def parse_citations(response: str, *, whole_response: bool = False) -> Citations:
    """Parse the citations of a response, from the inline marks and from the line that lists them.

    Inline marks are ``<docN>`` and ``<docN,M>`` without spaces, read after the first ``Explanation:``, or anywhere if
    ``whole_response``. The listed ones are the numbers on the first ``Cited Documents:`` line.

    Raises:
        MetricError: the response is not a string.

    Source: BordIRlines, section 4.1 and its citation prompt.
    """
    if not isinstance(response, str):
        raise MetricError(f"response must be a string, got {type(response).__name__}")
    explained = response if whole_response else response.partition("Explanation:")[2]
    inline = tuple(_number(digits) for group in _INLINE.findall(explained) for digits in group.split(","))
    line = _LISTED.search(response)
    listed = tuple(map(_number, re.findall(r"[0-9]+", line[1]))) if line else ()
    return Citations(inline, listed, line[1].strip() if line else None)


def _number(digits: str) -> int:
    """Return the number; Python refuses thousands of digits, and no prompt has a document of such a number anyway."""
    return int(digits) if len(digits) <= _MOST_DIGITS else sys.maxsize


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

    @property
    def preference_mean(self) -> float | None:
        """Return citation minus inclusion, of the per-query means: above 0 the language is preferred, below 0
        avoided.
        """
        return _difference(self.citation_mean, self.inclusion_mean)

    @property
    def preference_pooled(self) -> float | None:
        """Return citation minus inclusion, of the pooled rates."""
        return _difference(self.citation_pooled, self.inclusion_pooled)

    def as_dict(self) -> dict[str, Any]:
        """Return JSON values: the attributes."""
        return {name: getattr(self, name) for name in self.__slots__}


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

    by_language: Mapping[str, LanguageCitations]
    by_query_language: Mapping[str, Mapping[str, LanguageCitations]] = field(default_factory=dict)
    queries: int = 0
    citing: int = 0
    unanswered: int = 0
    without_documents: int = 0
    out_of_range: int = 0

    def as_dict(self) -> dict[str, Any]:
        """Return JSON values: the attributes."""
        tables = {asked: _plain(table) for asked, table in self.by_query_language.items()}
        counts = {name: getattr(self, name) for name in self.__slots__[2:]}
        return {"by_language": _plain(self.by_language), "by_query_language": tables, **counts}


def _plain(table: Mapping[str, LanguageCitations]) -> dict[str, dict[str, Any]]:
    return {language: entry.as_dict() for language, entry in table.items()}


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
    _same_length(responses, document_languages, "lists of document languages")
    if query_languages is not None:
        _same_length(responses, query_languages, "query languages")
    shares: list[tuple[str | None, Counter[str], Counter[str]]] = []
    unanswered = bare = out_of_range = 0
    for row, (response, found) in enumerate(zip(responses, document_languages, strict=True)):
        if response is None:
            unanswered += 1
            continue
        if not found:
            bare += 1
            continue
        documents = _languages(found, row)
        numbers = _numbers(response, source, repeats)
        valid = [number for number in numbers if number < len(documents)]
        out_of_range += len(numbers) - len(valid)
        asked = None if query_languages is None else _language(query_languages[row], f"query_languages[{row}]")
        shares.append((asked, Counter(documents), Counter(documents[number] for number in valid)))

    by_query: dict[str, list[tuple[Counter[str], Counter[str]]]] = defaultdict(list)
    for asked, included, cited in shares:
        if asked is not None:
            by_query[asked].append((included, cited))
    return CitationRates(
        by_language=_table([(included, cited) for _, included, cited in shares]),
        by_query_language={asked: _table(pairs) for asked, pairs in sorted(by_query.items())},
        queries=len(shares),
        citing=sum(1 for _, _, cited in shares if cited),
        unanswered=unanswered,
        without_documents=bare,
        out_of_range=out_of_range,
    )


def cited_languages(
    responses: Sequence[str | Citations | None],
    document_languages: Sequence[Sequence[str]],
    query_languages: Sequence[str],
    *,
    source: CitationSource = "inline",
    repeats: bool = True,
) -> list[tuple[str, Counter[str], Counter[str]] | None]:
    """Return per query its language, the languages of its documents and those of its citations in range, as counts.

    None if there is no response or no document. Arguments and errors as in :func:`citation_rates`.
    """
    _same_length(responses, document_languages, "lists of document languages")
    _same_length(responses, query_languages, "query languages")
    out: list[tuple[str, Counter[str], Counter[str]] | None] = []
    for row, (response, found) in enumerate(zip(responses, document_languages, strict=True)):
        asked = _language(query_languages[row], f"query_languages[{row}]")
        if response is None or not found:
            out.append(None)
            continue
        documents = _languages(found, row)
        cited = [documents[n] for n in _numbers(response, source, repeats) if n < len(documents)]
        out.append((asked, Counter(documents), Counter(cited)))
    return out


def _numbers(response: str | Citations, source: str, repeats: bool) -> tuple[int, ...]:
    cited = response if isinstance(response, Citations) else parse_citations(response)
    if source not in ("inline", "listed"):
        raise MetricError(f"unknown source of citations '{source}'" + did_you_mean(source, ("inline", "listed")))
    numbers = cited.inline if source == "inline" else cited.listed
    return numbers if repeats else tuple(dict.fromkeys(numbers))


def _table(pairs: Sequence[tuple[Counter[str], Counter[str]]]) -> dict[str, LanguageCitations]:
    included_total: Counter[str] = Counter()
    cited_total: Counter[str] = Counter()
    inclusion: defaultdict[str, float] = defaultdict(float)
    citation: defaultdict[str, float] = defaultdict(float)
    citing = 0
    for included, cited in pairs:
        citing += bool(cited)
        for counts, totals, shares in ((included, included_total, inclusion), (cited, cited_total, citation)):
            size = counts.total()
            for language, count in counts.items():
                totals[language] += count
                shares[language] += count / size
    n_documents, n_citations = included_total.total(), cited_total.total()
    return {
        language: LanguageCitations(
            language=language,
            inclusion_mean=inclusion[language] / len(pairs) if pairs else None,
            citation_mean=citation[language] / citing if citing else None,
            inclusion_pooled=included_total[language] / n_documents,
            citation_pooled=cited_total[language] / n_citations if n_citations else None,
            documents=included_total[language],
            citations=cited_total[language],
        )
        for language in sorted(included_total)
    }


def _languages(found: Sequence[str], row: int) -> list[str]:
    known = {code: _language(code, f"document_languages[{row}]") for code in set(found)}
    return [known[code] for code in found]


def _language(code: str, where: str) -> str:
    known = _known(code) if isinstance(code, str) else None
    if known is None:
        raise MetricError(f"{where}: unknown language {code!r}", suggestion(str(code)))
    return known


@lru_cache(maxsize=4_096)
def _known(code: str) -> str | None:
    return normalize_language(code) if is_language(code) else None


def _same_length(responses: Sequence[object], other: Sequence[object], what: str) -> None:
    if len(responses) != len(other):
        raise MetricError(f"{len(responses)} responses but {len(other)} {what}")


def _difference(a: float | None, b: float | None) -> float | None:
    return None if a is None or b is None else a - b
