"""The data of a report, gathered from result and sample files: plain values, no layout."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mrag_eval.report.files._leaves import Leaf, PageRow, result_leaves
from mrag_eval.report.files._results import ResultFile
from mrag_eval.report.files._samples import read_samples
from mrag_eval.report.files._scores import leaf_frame
from mrag_eval.report.files._systems import System, systems
from mrag_eval.report.page._agents import PlannerCounts, loop_row
from mrag_eval.report.page._cells import language_points, tier_points
from mrag_eval.report.page._judges import judge_parts, ledger_rows
from mrag_eval.report.page._parts import (
    answer_languages,
    citation_points,
    citation_rows,
    link_points,
    pair_points,
    preference_points,
    retrieved_points,
    score_points,
    stage_points,
    unscored_points,
)
from mrag_eval.report.page._samples import Browser
from mrag_eval.report.tables._leaderboard import Board, boards

Point = dict[str, Any]


@dataclass
class PageData:
    """Hold everything on the page, as rows of values (scores in percent). ``points`` are those of the charts."""

    runs: list[dict[str, Any]]
    leaves: list[Leaf]
    systems: list[System] = field(default_factory=list)
    boards: list[Board] = field(default_factory=list)
    scores: list[Point] = field(default_factory=list)
    points: dict[str, list[Point]] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)
    citations: list[Point] = field(default_factory=list)
    preference: list[Point] = field(default_factory=list)
    loops: list[Point] = field(default_factory=list)
    unscored: list[Point] = field(default_factory=list)
    judges: list[Point] = field(default_factory=list)
    agreement: list[Point] = field(default_factory=list)
    ledger: list[Point] = field(default_factory=list)
    samples: list[dict[str, Any]] = field(default_factory=list)
    passages: list[dict[str, Any]] = field(default_factory=list)
    browser: Browser = field(default_factory=lambda: Browser(0, False, 0))

    def add(self, chart: str, points: Sequence[Point]) -> None:
        """Add values to a chart."""
        self.points.setdefault(chart, []).extend(points)


def page_data(paths: Sequence[Path], *, samples: int = 200, text: bool = True, seed: int = 0) -> PageData:
    """Gather a report from the result files at ``paths`` (files, or folders searched for them).

    For each task at most ``samples`` rows are taken for the browser, drawn with ``seed``; without ``text`` passages are
    named but not shown. If a model ran a task several times with the same settings, the newest counts. Raises DataError
    if there is no result of our tasks.
    """
    leaves = result_leaves(paths)
    data = PageData(_runs(leaves), [leaf for leaf, _ in leaves])
    frame = leaf_frame(leaves)
    data.scores = score_points(frame)
    data.add("scores", [point for point in data.scores if point["low"] is not None or point["n"]])
    data.add("pairs", pair_points(frame))
    browser = data.browser = Browser(samples, text, seed)
    rows: dict[str, list[PageRow]] = {}
    planners: dict[str, PlannerCounts] = {}
    for leaf in data.leaves:
        # one task's samples at a time: they hold every passage of every prompt
        lines = read_samples(leaf.samples) if leaf.samples is not None else []
        rows[leaf.label] = [PageRow.of(sample) for sample in lines]
        browser.add(leaf, lines)
        name = " · ".join(filter(None, (leaf.benchmark, leaf.run, leaf.variant)))
        planner = planners.setdefault(name, PlannerCounts(name))
        for sample in lines:
            planner.add(leaf, sample)
        data.add("answers", answer_languages(leaf, lines))
        _results(leaf, data)
    for planner in planners.values():
        for chart, points in planner.points().items():
            data.add(chart, points)
        data.ledger += planner.ledger()
    data.samples, data.passages = browser.within()
    data.systems = systems(data.leaves, rows)
    data.add("languages", language_points(data.systems, seed))
    tiers, data.left_out = tier_points(data.systems, seed)
    data.add("tiers", tiers)
    data.boards = boards(data.systems, seed)
    return data


def _results(leaf: Leaf, data: PageData) -> None:
    """Add the results of one task."""
    data.add("stages", stage_points(leaf))
    data.add("links", link_points(leaf))
    data.add("retrieved", retrieved_points(leaf))
    data.add("cited", citation_points(leaf))
    data.citations += citation_rows(leaf)
    data.preference += preference_points(leaf)
    data.loops += loop_row(leaf)
    data.unscored += unscored_points(leaf)
    judges, agreement = judge_parts(leaf)
    data.judges += judges
    data.agreement += agreement
    data.ledger += ledger_rows(leaf)


def _runs(leaves: Sequence[tuple[Leaf, ResultFile]]) -> list[dict[str, Any]]:
    """Return one entry per result file: the model, the data and the judges of the run."""
    out: dict[Path, dict[str, Any]] = {}
    for leaf, file in leaves:
        entry = out.setdefault(
            file.path,
            {"model": file.model, "date": file.date, "path": str(file.path), "tasks": 0, "rows": 0, "shortened": 0},
        )
        scores = leaf.result.scores
        entry["tasks"] += 1
        entry["rows"] += scores.rows
        entry["shortened"] += (scores.prompts.shortened or 0) if scores.prompts is not None else 0
        benchmarks, judges = entry.setdefault("benchmarks", {}), entry.setdefault("judges", {})
        benchmarks[leaf.benchmark] = None
        judges |= dict.fromkeys(scores.judge.models if scores.judge is not None else ())
    return [
        entry | {"benchmarks": ", ".join(entry["benchmarks"]), "judges": ", ".join(entry["judges"]) or "none"}
        for entry in out.values()
    ]
