"""The section of leaderboards: systems ranked by one metric of a benchmark, and plotted by IR mode."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mrag_eval.core import is_language, language_name, points
from mrag_eval.metrics import Estimate
from mrag_eval.report._table import Cell, percent_cell
from mrag_eval.report.page._data import PageData
from mrag_eval.report.page._points import Point, percent
from mrag_eval.report.page._section import Chart, Markup, Section
from mrag_eval.report.page._spec import Points, Spec, choices, field, height, intervals, spec
from mrag_eval.report.tables._leaderboard import Board, Entry
from mrag_eval.scoring import scale_of


def _boards(data: PageData) -> dict[str, Any] | None:
    shown = [_board(board) for board in data.boards]
    return {"boards": shown} if shown else None


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
    return {
        "benchmark": board.benchmark,
        "metric": board.metric,
        "note": "; ".join(said),
        "columns": [*(f"{name} tier" for name in board.tiers), *map(_named, board.languages)],
        "entries": [_board_entry(entry, board.metric, [*board.tiers, *board.languages]) for entry in board.entries],
    }


def _named(code: str) -> str:
    return language_name(code) if is_language(code) else f"{code} tier"


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


def _board_points(data: PageData) -> list[Point]:
    """Return scores of the leaderboards' systems over everything, each tier and each language."""
    out: list[Point] = []
    for board in data.boards:
        # the axis is in percent
        if not scale_of(board.metric).percent:
            continue
        for entry in board.entries:
            base = {"benchmark": board.benchmark, "metric": board.metric, "run": entry.run, "mode": entry.mode}
            for over, score in {"all": entry.score, **entry.parts}.items():
                if score.value is not None:
                    out.append({**base, "over": over, **percent(score, board.metric)})
    groups = dict.fromkeys(name for board in data.boards for name in board.tiers)
    order = {name: number for number, name in enumerate(("all", *groups))}
    return sorted(out, key=lambda point: (order.get(point["over"], len(order)), point["over"]))


def _plotted(points: Points) -> Spec:
    keys = {"benchmark": "benchmark", "metric": "metric", "over": "over"}
    return spec(
        points,
        "Scores of each model by IR mode with their 95% intervals, over all languages, a tier or a language",
        ("run", "mode", "value", "low", "high", "n"),
        height=height(points, "run", "mode", chosen=("benchmark", "metric", "over"), step=20) + 20,
        **choices(points, keys),
        **intervals(
            points,
            {
                "y": field("run", "nominal", "", axis={"labelLimit": 200}),
                "yOffset": field("mode"),
                "color": field("mode", "nominal", "IR mode"),
            },
            ("run", "mode", "over", "value", "low", "high", "n"),
        ),
    )


SECTION = Section(
    "leaderboard",
    "Leaderboard",
    blocks=(
        Markup("leaderboard.html.jinja", _boards),
        # CORAL, Figure 2
        Chart(
            "board",
            "Models and modes",
            "Dots with 95% intervals; choose what the mean is over below the plot.",
            _plotted,
            _board_points,
        ),
    ),
)
