"""The sections on how good the systems are, ranked by a metric, and on what changed since the run before."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from mrag_eval.core import points
from mrag_eval.metrics import Estimate
from mrag_eval.report._table import Cell, percent_cell
from mrag_eval.report.page._data import PageData
from mrag_eval.report.page._points import Point
from mrag_eval.report.page._section import Listing, Markup, Section
from mrag_eval.report.page.sections._scores import SCORES
from mrag_eval.report.tables._leaderboard import Board, Entry
from mrag_eval.scoring import scale_of


def _boards(data: PageData) -> dict[str, Any] | None:
    told = {(one["run"], one["mode"]): one for one in data.of_task.values()}
    shown = [_board(board) for board in data.boards]
    for entry in (entry for board in shown for entry in board["entries"]):
        entry["colour"] = told[entry["run"], entry["mode"]]["colour"]
    return {"boards": shown, "modes": len({one.mode for one in data.systems}) > 1} if shown else None


def _board(board: Board) -> dict[str, Any]:
    """Return a leaderboard as the page prints it."""
    said = [f"{board.rows:,} questions that every ranked system has a score for"] if board.rows else []
    if 0 < board.groups < board.rows:
        said.append(f"{board.groups:,} groups of questions, each of which counts as one in tests and intervals")
    if not scale_of(board.metric).percent:
        said.append(f"in {scale_of(board.metric).unit}")
    if board.higher is not True:
        said.append("less is better" if board.higher is False else "neither more nor less is better, so no ranks")
    if board.left_out:
        said.append(f"without {', '.join(board.left_out)}, where no question is scored for all of them")
    ends = [end for one in board.entries for end in (one.score.value, one.score.low, one.score.high) if end is not None]
    scale = scale_of(board.metric)
    # in tens, so that the ends of the axis are read with ease
    step = 10 ** math.floor(math.log10(max(1e-3, scale.factor * (max(ends, default=1.0) - min(ends, default=0.0)))))
    left = step * math.floor(scale.factor * min(ends, default=0.0) / step)
    right = max(left + step, step * math.ceil(scale.factor * max(ends, default=1.0) / step))
    return {
        "ends": (left, right),
        "benchmark": board.benchmark,
        "metric": board.metric,
        "note": "; ".join(said),
        "columns": [f"{name} tier" for name in board.tiers],
        "entries": [_board_entry(entry, board.metric, board.tiers) for entry in board.entries],
    }


def _board_entry(entry: Entry, metric: str, columns: Sequence[str]) -> dict[str, Any]:
    rank = "–"
    if entry.best is not None:
        rank = str(entry.best) if entry.best == entry.worst else f"{entry.best}–{entry.worst}"
    return {
        "rank": rank,
        "best": "" if entry.best is None else entry.best + (entry.worst or 0) / 1000,
        "run": entry.run,
        "mode": entry.mode,
        "score": _percent(entry.score, metric),
        "behind": _percent(entry.behind, metric),
        "unscored": entry.unscored,
        "cases": "" if entry.cases is None else " to ".join(points(end, scale=scale_of(metric)) for end in entry.cases),
        "remark": entry.remark,
        "parts": [_percent(entry.parts.get(name), metric) for name in columns],
    }


def _percent(score: Estimate | None, metric: str = "") -> Cell | None:
    return None if score is None or score.value is None else percent_cell(score, metric=metric)


def _changed(data: PageData) -> list[Point]:
    """Return what changed since the last run of a system, as the findings say it."""
    return [
        {**one.words, "now": f"{found['score']}", "was": f"{found['rival']}"}
        | {"differ": one.words["differ"].removeprefix("what differs: ")}
        | {
            "gap": f"{found['gap']:signed}" if "gap" in found else "0",
            "p": f"{found['gap']:p}" if "gap" in found else "",
        }
        for one in data.findings
        if one.kind == "changed"
        for found in (one.numbers,)
    ]


SECTION = Section("leaderboard", "How good?", "Systems", (Markup("leaderboard.html.jinja", _boards), SCORES))
CHANGED = Section(
    "changed",
    "What changed?",
    "Changes",
    (
        Listing(
            "Systems that were run before, over the questions of both runs",
            {"system": "system", "metric": "metric", "was": "was", "now": "now", "gap": "change", "p": "p"}
            | {"differ": "what differs"},
            _changed,
            numbers=range(2, 6),
        ),
    ),
)
