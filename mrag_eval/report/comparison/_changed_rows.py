"""Rows that got worse or better between two runs: by language and pair, with the cause of each loss."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property

from mrag_eval.metrics import Cause
from mrag_eval.platform import content_key
from mrag_eval.report.files._row_texts import RowTexts
from mrag_eval.report.files._scored_rows import ScoredRow
from mrag_eval.scoring import nearer_zero_is_better, scale_of


@dataclass(frozen=True)
class ChangedRow:
    """A row whose score by one metric changed. ``cause`` is that of a loss, None for a gain.

    ``texts`` are those of the baseline and of the candidate, None where a run keeps none.
    """

    task: str
    metric: str
    before: ScoredRow
    after: ScoredRow
    worse: bool
    texts: tuple[RowTexts | None, RowTexts | None]
    cause: Cause | None

    @property
    def scores(self) -> tuple[float, float]:
        """Return the score in the baseline and in the candidate."""
        return self.before.values[self.metric], self.after.values[self.metric]

    @property
    def place(self) -> str:
        """Return the languages of question and relevant document, ``de->en``, or that of the question."""
        return self.after.pair or self.after.language

    @property
    def size(self) -> float:
        """Return how much the score changed, as a share of the metric's range if that has bounds."""
        first, second = map(abs, self.scores) if nearer_zero_is_better(self.metric) else self.scores
        low, high = scale_of(self.metric).bounds
        width = high - low
        return abs(second - first) / (width if 0 < width < float("inf") else 1.0)

    @property
    def anchor(self) -> str:
        """Return the anchor of the row on a page: the same for a task and row id in every run, safe for any id."""
        plain = "".join(c if c.isascii() and c.isalnum() else "-" for c in self.after.id[:40])
        return f"row-{plain}-{content_key(self.task, self.after.id)[:12]}"


@dataclass(frozen=True)
class ChangedCell:
    """The rows of one task, metric, and pair of languages (one language where documents have none known).

    ``n`` rows are scored in both runs, ``once`` in one of them only. ``failed``: a check that covers them fails.
    ``worse`` and ``better`` are in order of their ids.
    """

    task: str
    metric: str
    place: str
    n: int
    once: int
    failed: bool
    worse: tuple[ChangedRow, ...]
    better: tuple[ChangedRow, ...]

    @property
    def language(self) -> str:
        """Return the language of the questions, empty if it is not known."""
        return self.place.partition("->")[0]

    @property
    def excess(self) -> float:
        """Return by how much losses exceed gains, in rows that lose the whole range of the metric."""
        return sum(row.size for row in self.worse) - sum(row.size for row in self.better)

    @property
    def chance(self) -> float:
        """Return the chance of at least this surplus of losses if losses and gains were equally likely.

        One-sided exact sign test; rows that are resampled together count once, by the sum of their changes.
        """
        from scipy.stats import binom

        units: dict[str, float] = defaultdict(float)
        for sign, rows in ((1, self.worse), (-1, self.better)):
            for row in rows:
                units[row.before.group] += sign * row.size
        lost, won = sum(u > 0 for u in units.values()), sum(u < 0 for u in units.values())
        return float(binom.sf(lost - 1, lost + won, 0.5)) if lost + won else 1.0

    def lost_to(self, cause: Cause) -> tuple[ChangedRow, ...]:
        """Return the rows that got worse for this cause."""
        return tuple(row for row in self.worse if row.cause == cause)


@dataclass(frozen=True)
class Changes:
    """The changed rows of a comparison by cell. ``runs`` names baseline and candidate.

    ``answers`` says of both whether they keep answers; ``checked``: whether rules decide what got worse.
    """

    cells: tuple[ChangedCell, ...]
    runs: tuple[str, str]
    answers: tuple[bool, bool]
    checked: bool = True

    @cached_property
    def worse(self) -> list[ChangedRow]:
        """Return every row that got worse."""
        return [row for cell in self.cells for row in cell.worse]

    @cached_property
    def better(self) -> list[ChangedRow]:
        """Return every row that got better."""
        return [row for cell in self.cells for row in cell.better]
