"""Where a comparison got worse: one sentence, the causes by language, and the rows that tell most."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from mrag_eval.config import CORRECT
from mrag_eval.core import p_text, points
from mrag_eval.metrics import CAUSES, Cause
from mrag_eval.platform import number_of
from mrag_eval.report.comparison._changed_gather import subject_of
from mrag_eval.report.comparison._changed_rows import ChangedCell, ChangedRow, Changes
from mrag_eval.report.comparison._shown_text import cut
from mrag_eval.scoring import scale_of

# How the sentence "10 of them ..." ends, by cause.
_CAME: Mapping[Cause, str] = {
    "retrieval": "after the relevant passage was no longer shown",
    "reading": "although no relevant passage was lost",
    "language": "as the answer is in another language now",
    "judging": "by another verdict on the same answer",
}
# Characters of the name of a cell; those of languages are short.
_PLACE = 60
# A difference between losses and gains is called possible by chance above this probability, over all cells together.
_LEVEL = 0.05


def where_worse(changes: Changes) -> str:
    """Return the sentence that says where a comparison got worse.

    It names the cell with the largest excess of losses over gains: of the cells that a failing check covers, if any
    does, and of the most trustworthy metric of :data:`~mrag_eval.config.CORRECT` among theirs. If chance alone could
    do as much in that cell, and not in all cells of the metric together, it names these. Gains and the rest are said
    beside it, and that chance is enough where it is.
    """
    cells = changes.cells
    if not cells:
        return "No row was compared."
    if not changes.worse:
        once = sum(cell.once for cell in cells)
        unknown = f"; {number_of(once, 'row')} had a score in one run only" if once else ""
        return f"No row got worse; {number_of(len(changes.better), 'row')} got better{unknown}."
    kept = [cell for cell in cells if cell.failed and cell.excess > 0] or [c for c in cells if c.excess > 0]
    if not kept:
        lost, won = len(changes.worse), len(changes.better)
        return f"No language got worse on balance: {number_of(lost, 'loss', 'losses')}, {number_of(won, 'gain')}."
    rank = min(_rank(cell.metric) for cell in kept)
    worst = max((cell for cell in kept if _rank(cell.metric) == rank), key=lambda cell: cell.excess)
    same = [cell for cell in cells if cell.metric == worst.metric]
    p = min(1.0, worst.chance * len(same))
    whole = _whole(same)
    if p > _LEVEL and len(same) > 1 and whole.excess > 0 and whole.chance <= _LEVEL:
        beside = [_won(whole), f"most in {_place(worst, same)}: {len(worst.worse):,} of {worst.n:,}"]
        return f"{_place(whole, cells)}: {_lost(whole)}{_cause(whole)}{_brackets(beside)}."
    lost, n = sum(len(cell.worse) for cell in same), sum(cell.n for cell in same)
    elsewhere = f"elsewhere {lost - len(worst.worse):,} of {n - worst.n:,}" if len(same) > 1 else ""
    over = f" over {len(same)} cells" if len(same) > 1 else ""
    chance = f"chance alone could do this, p {p_text(p)}{over}" if p > _LEVEL else ""
    return f"{_place(worst, cells)}: {_lost(worst)}{_cause(worst)}{_brackets([_won(worst), elsewhere, chance])}."


def _whole(cells: Sequence[ChangedCell]) -> ChangedCell:
    """Return the rows of all cells as one."""
    tasks = dict.fromkeys(cell.task for cell in cells)
    return replace(
        cells[0],
        task=", ".join(tasks) if len(tasks) == 1 else "all tasks",
        place="all languages",
        n=sum(cell.n for cell in cells),
        worse=tuple(row for cell in cells for row in cell.worse),
        better=tuple(row for cell in cells for row in cell.better),
    )


def _won(cell: ChangedCell) -> str:
    return f"{len(cell.better):,} won" if cell.better else ""


def _brackets(parts: Sequence[str]) -> str:
    found = "; ".join(filter(None, parts))
    return f" ({found})" if found else ""


def _rank(metric: str) -> int:
    return CORRECT.index(metric) if metric in CORRECT else len(CORRECT)


def _place(cell: ChangedCell, cells: Sequence[ChangedCell]) -> str:
    """Return the name of a cell, with its task and metric where the comparison has several."""
    named = [shown_place(cell)]
    named += [cell.task] if len({other.task for other in cells}) > 1 else []
    named += [cell.metric] if len({other.metric for other in cells}) > 1 else []
    return ", ".join(named)


def shown_place(cell: ChangedCell | ChangedRow) -> str:
    """Return the languages of a cell or a row: ``ar → en``, ``ar``, or "all rows" where none is known."""
    return cut(cell.place, _PLACE).replace("->", " → ") or "all rows"


def _lost(cell: ChangedCell) -> str:
    lost = "answers lost" if cell.metric in CORRECT else "rows got worse"
    return f"{len(cell.worse):,} of {cell.n:,} {lost}"


def _cause(cell: ChangedCell) -> str:
    if subject_of(cell.metric) == "passages":
        return ""
    cause = max(_CAME, key=lambda cause: len(cell.lost_to(cause)))
    found = len(cell.lost_to(cause))
    if not found:
        return ", the cause unknown"
    return f", {f'{found:,}' if found < len(cell.worse) else 'all'} of them {_CAME[cause]}"


@dataclass(frozen=True)
class CauseTable:
    """The losses of one task and metric by cause, as texts: the whole first, then its cells, the worst first.

    A cell is a number of rows and, in brackets, what they add to the score, so that the parts of a row add up to its
    ``change``.
    """

    task: str
    metric: str
    rows: tuple[tuple[str, ...], ...]

    HEAD: ClassVar = ("language", "rows", "worse", *CAUSES, "better", "change")

    @property
    def title(self) -> str:
        """Return the task and the metric with its unit."""
        return f"{self.task}, {self.metric}{scale_of(self.metric).note}"


def cause_tables(changes: Changes) -> Iterator[CauseTable]:
    """Yield the table of each task and metric of which a row changed."""
    for task, metric in dict.fromkeys((cell.task, cell.metric) for cell in changes.cells):
        cells = sorted((c for c in changes.cells if (c.task, c.metric) == (task, metric)), key=lambda c: -c.excess)
        changed = [cell for cell in cells if cell.worse or cell.better]
        if changed:
            whole = [_whole(cells)] if len(cells) > 1 else []
            yield CauseTable(task, metric, tuple(_row(cell) for cell in [*whole, *changed]))


def _row(cell: ChangedCell) -> tuple[str, ...]:
    scale = scale_of(cell.metric)

    def share(rows: Sequence[ChangedRow]) -> str:
        return f"{len(rows):,} ({points(_sum(rows) / cell.n, '+', scale)})" if rows else "0"

    causes = (share(cell.lost_to(cause)) for cause in CAUSES)
    change = points(_sum([*cell.worse, *cell.better]) / cell.n, "+", scale)
    return (shown_place(cell), f"{cell.n:,}", share(cell.worse), *causes, share(cell.better), change)


def _sum(rows: Sequence[ChangedRow]) -> float:
    return sum(row.scores[1] - row.scores[0] for row in rows)


def most_telling(changes: Changes, most: int | None = None, *, worse: bool = True) -> list[ChangedRow]:
    """Return the changed rows in the order in which they tell what happened, at most ``most``, each row of a task once.

    Places are dealt to the cells in proportion to their losses (Sainte-Laguë), those of failing checks first. Within a
    cell come known causes before unknown ones, then the largest change.
    """
    queues = [
        (cell, sorted(cell.worse if worse else cell.better, key=lambda r: (r.cause == "unknown", -r.size, r.after.id)))
        for cell in sorted(changes.cells, key=lambda c: (not c.failed, _rank(c.metric), -c.excess))
    ]
    out: dict[tuple[str, str], ChangedRow] = {}
    weights = [sum(row.size for row in rows) for _, rows in queues]
    tiers = [(cell.failed, _rank(cell.metric)) for cell, _ in queues]
    for tier in dict.fromkeys(tiers):
        places = [i for i, found in enumerate(tiers) if found == tier]
        dealt = dict.fromkeys(places, 0)
        while left := [i for i in places if dealt[i] < len(queues[i][1])]:
            chosen = max(left, key=lambda i: weights[i] / (2 * dealt[i] + 1))
            row = queues[chosen][1][dealt[chosen]]
            dealt[chosen] += 1
            out.setdefault((row.task, row.after.id), row)
            if most is not None and len(out) == most:
                return list(out.values())
    return list(out.values())
