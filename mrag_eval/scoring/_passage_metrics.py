"""Metrics of a reply beside the passages that were shown, and of what is known of a row's languages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from mrag_eval import metrics
from mrag_eval.core import UNSURE_LANGUAGE, Scored, Value, same_language
from mrag_eval.scoring._reasons import (
    EMPTY,
    NO_CITATION,
    NO_LANGUAGE,
    NO_PASSAGES,
    NO_QUOTE,
    OTHER_LANGUAGE,
    TOO_SHORT_TO_COPY,
    UNMARKED,
    UNREAD_CITATION,
)
from mrag_eval.text import sentences_marked

# Places of quotes besides the passages shown: place, in words, whether more is better.
OTHER_QUOTES: tuple[tuple[metrics.Source, str, bool | None], ...] = (
    ("elsewhere", "in a passage of another row alone", None),
    ("stitched", "put together from two places of the passages shown", False),
    ("nowhere", "in no passage", False),
)


def where_told(rows: Sequence[Scored], values: Sequence[Value]) -> list[Value]:
    """Return the values of rows whose question is in a known language; for others, why it is not known."""
    return [row.doc.extra.get(UNSURE_LANGUAGE, value) for row, value in zip(rows, values, strict=True)]


def _texts(row: Scored) -> list[str]:
    return [hit.text for hit in row.passages if hit.text]


def _why_none(row: Scored, reason: str) -> str:
    return reason if _texts(row) else NO_PASSAGES


class _Quotes:
    """The quotes of the rows that were asked about last: four metrics in a row ask for them."""

    def __init__(self) -> None:
        self._rows: Sequence[Scored] = ()
        self._found: list[metrics.Quotes] = []

    def of(self, rows: Sequence[Scored]) -> list[metrics.Quotes]:
        """Return the quotes of each reply, with where they stand."""
        if rows is not self._rows:
            self._rows, self._found = rows, self._read(rows)
        return self._found

    def _read(self, rows: Sequence[Scored]) -> list[metrics.Quotes]:
        nothing = metrics.Quotes(())
        found = [metrics.verbatim_quotes(row.answer, _texts(row)) if row.passages else nothing for row in rows]
        open_ones = [
            text
            for row, own in zip(rows, found, strict=True)
            for text, place in own.found
            if place != "shown" and row.elsewhere is None
        ]
        held = metrics.held_elsewhere(open_ones, (text for row in rows for text in _texts(row)))
        for i, (row, own) in enumerate(zip(rows, found, strict=True)):
            known = held if row.elsewhere is None else row.elsewhere
            if any(text in known for text, place in own.found if place != "shown"):
                found[i] = metrics.verbatim_quotes(row.answer, _texts(row), known)
        return found


def quotes(source: metrics.Source) -> Callable[[Sequence[Scored]], list[Value]]:
    """Return the share of a reply's quotes that stand in what was shown, elsewhere, in two parts, or nowhere."""

    def score(rows: Sequence[Scored]) -> list[Value]:
        shares = [found.share(source) for found in _QUOTES.of(rows)]
        return [_why_none(row, NO_QUOTE) if share is None else share for row, share in zip(rows, shares, strict=True)]

    return score


_QUOTES = _Quotes()


def copied(rows: Sequence[Scored]) -> list[Value]:
    """Return the share of each reply that is copied from the passages shown."""
    out: list[Value] = []
    for row in rows:
        share = metrics.copied_share(row.answer, _texts(row)) if _texts(row) else None
        out.append(_why_none(row, TOO_SHORT_TO_COPY) if share is None else share)
    return out


def supported(side: Literal["recall", "precision"]) -> Callable[[Sequence[Scored]], list[Value]]:
    """Return the share of a reply's statements that their citations support, or of its citations that are needed."""

    def score(rows: Sequence[Scored]) -> list[Value]:
        return where_told(rows, [value(row) for row in rows])

    def value(row: Scored) -> Value:
        # BordIRlines asks for explanations in English
        lang = "en" if row.form == "citation" else row.doc.query_lang
        if not _texts(row):
            return NO_PASSAGES
        found = metrics.citation_support(row.answer, [hit.text for hit in row.passages], lang)
        if found.unread:
            return UNREAD_CITATION
        if not sentences_marked(metrics.without_citations(row.answer, lang), lang):
            return UNMARKED
        cited = [row.passages[number].lang for number in found.cited]
        if not all(cited):
            return NO_LANGUAGE
        if not all(same_language(code, lang) for code in cited):
            return OTHER_LANGUAGE
        share = found.recall if side == "recall" else found.precision
        return share if share is not None else EMPTY if not found.statements else NO_CITATION

    return score


def passages_in_language(rows: Sequence[Scored]) -> list[Value]:
    """Return the share of each row's passages that are in the language of its question."""
    out: list[Value] = []
    for row in rows:
        told = [same_language(hit.lang, row.doc.query_lang) for hit in row.passages if hit.lang]
        out.append(sum(told) / len(told) if told else _why_none(row, NO_LANGUAGE))
    return where_told(rows, out)
