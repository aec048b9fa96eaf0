"""Languages of which many rows failed: a comparison marks them, as the rows that are left may be the easy ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, fields

from mrag_eval.report.files._scored_rows import ScoredRow
from mrag_eval.scoring import MOST_FAILED, MOST_FAILED_IN_LANGUAGE


@dataclass(frozen=True)
class FailedRows:
    """The numbers of questions of a run, and of those of which a step failed, by language.

    ``asked`` counts the answers in a language that a judge was asked about, ``silent`` those of them without a verdict:
    (language, judge) -> rows.
    """

    failed: Mapping[str, int] = field(default_factory=dict)
    rows: Mapping[str, int] = field(default_factory=dict)
    asked: Mapping[tuple[str, str], int] = field(default_factory=dict)
    silent: Mapping[tuple[str, str], int] = field(default_factory=dict)

    @classmethod
    def of(cls, rows: Iterable[ScoredRow]) -> FailedRows:
        """Count the questions of a run; rows of territories are no questions."""
        asked = [row for row in rows if not row.of_territory]
        judged = [(row.language, judge, spoke) for row in asked for judge, spoke in row.judged_by.items()]
        return cls(
            Counter(row.language for row in asked if row.failed),
            Counter(row.language for row in asked),
            Counter((language, judge) for language, judge, _ in judged),
            Counter((language, judge) for language, judge, spoke in judged if not spoke),
        )

    def __add__(self, other: FailedRows) -> FailedRows:
        return FailedRows(
            *(Counter(getattr(self, each.name)) + Counter(getattr(other, each.name)) for each in fields(self))
        )

    @property
    def of_all(self) -> str | None:
        """Return how many rows failed of all, if these are more than a headline may have."""
        failed, rows = sum(self.failed.values()), sum(self.rows.values())
        return f"{failed} of {rows} rows failed" if failed > MOST_FAILED * rows else None

    def marked(self) -> dict[str, str]:
        """Return the languages with too many failed rows to read a score without a mark, and how many failed.

        A language in which a judge gave no verdict on the same share of its answers is marked, too.
        """
        found = {
            language: [f"{failed} of {self.rows[language]} rows failed"]
            for language, failed in sorted(self.failed.items())
            if failed > MOST_FAILED_IN_LANGUAGE * self.rows[language]
        }
        for (language, judge), silent in sorted(self.silent.items()):
            asked = self.asked[language, judge]
            if silent > MOST_FAILED_IN_LANGUAGE * asked:
                found.setdefault(language, []).append(f"no verdict of {judge} on {silent} of {asked} answers")
        return {language: ", ".join(parts) for language, parts in sorted(found.items())}


def marks(runs: Mapping[str, FailedRows], languages: Collection[str] = ()) -> str | None:
    """Return the marked languages of each run in one line, of all if none are given, and first all rows if these are of
    several languages, all of them given. None: no mark.
    """
    found = [
        f"all: {rows.of_all} in the {run}"
        for run, rows in runs.items()
        if rows.of_all and (not languages or 1 < len(rows.rows.keys() & {*languages}) == len(rows.rows))
    ]
    found += [
        f"{language or 'no language'}: {share} in the {run}"
        for run, rows in runs.items()
        for language, share in rows.marked().items()
        if not languages or language in languages
    ]
    return "; ".join(found) or None
