"""Scored rows of sample files, without their texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mrag_eval.core import VOTED
from mrag_eval.scoring import ControlRecord, RowRecord, halved_metrics, territory_values

# Before the name of a territory in the id of its row.
TERRITORY = "territory "
# The breakdown by languages of question and relevant document.
PAIR = "pair"


@dataclass(frozen=True, slots=True)
class ScoredRow:
    """The fields of a row that comparisons need: its id, language, resampling group, and values by metric.

    ``document_language`` is that of its relevant document, empty if it is unknown. ``cells`` is its place in every
    further breakdown of its results. ``failed``: whether a step failed.
    ``unscored`` are the reasons why metrics have no value, unless the row is of a baseline file, which keeps no
    ``controls`` either. ``judged_by`` are the judges that were asked about its answer and gave a verdict, or not;
    ``the panel`` stands for all of them.
    """

    id: str
    language: str
    group: str
    values: Mapping[str, float]
    document_language: str = ""
    failed: bool = False
    unscored: Mapping[str, str] = field(default_factory=dict)
    controls: ControlRecord | None = None
    judged_by: Mapping[str, bool] = field(default_factory=dict)
    cells: Mapping[str, str] = field(default_factory=dict)

    @property
    def of_territory(self) -> bool:
        """Return whether the row holds the scores over a territory; other rows are questions."""
        return self.id.startswith(TERRITORY)

    @property
    def pair(self) -> str:
        """Return the languages of question and relevant document, ``de->en``; empty if one is unknown."""
        both = self.language and self.document_language
        return f"{self.language}->{self.document_language}" if both else ""

    @property
    def breakdowns(self) -> tuple[str, ...]:
        """Return the breakdowns of which the row has a cell, by the names that results give them."""
        return tuple(name for name in ("query_lang", "doc_lang", PAIR, *self.cells) if self.cell(name))

    def cell(self, by: str) -> str:
        """Return the cell of the row in a breakdown; empty if it has none."""
        if by == PAIR:
            return self.pair
        own = self.language if by == "query_lang" else self.document_language if by == "doc_lang" else None
        return self.cells.get(by, "") if own is None else own

    @classmethod
    def of(cls, record: RowRecord) -> ScoredRow:
        """Return the fields of a row's record that comparisons need."""
        cells = {name: cell for name, cell in record.cell.items() if name not in ("query_lang", "doc_lang")}
        document = record.cell.get("doc_lang", "")
        of = (record.row, record.query_lang, record.resampled_with, record.values, document)
        return cls(*of, bool(record.failures), record.unscored, record.controls, _judged_by(record), cells)


def _judged_by(record: RowRecord) -> dict[str, bool]:
    judged = record.judge
    if judged is None or judged.outcome not in VOTED:
        return {}
    seats = {seat: judged.vote(seat) is not None for seat in judged.votes}
    # of one judge, its verdict is the panel's
    return {**({"the panel": judged.verdict is not None} if len(seats) != 1 else {}), **seats}


@dataclass(frozen=True, slots=True)
class ScoredSamples:
    """The rows of a sample file, by id, and the values of its territories.

    ``halved`` are the metrics that have no mean over the rows, because one half of them lacks a value.
    """

    rows: Mapping[str, ScoredRow]
    territories: Mapping[str, Mapping[str, float]]
    halved: frozenset[str]

    @classmethod
    def of(cls, records: Sequence[RowRecord]) -> ScoredSamples:
        """Return the scored rows of the records; of two with one id the later counts."""
        kept = {record.row: record for record in records}
        rows = {row: ScoredRow.of(record) for row, record in kept.items()}
        names = {name for row in rows.values() for name in row.values}
        return cls(rows, territory_values(records), frozenset(halved_metrics(list(kept.values()), names)))
