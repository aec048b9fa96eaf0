"""The runs in a report, as its sections read them: plain values, no layout."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from itertools import cycle
from typing import Any

from mrag_eval.report.files._leaves import Leaf
from mrag_eval.report.files._results import ResultFile
from mrag_eval.report.files._scores import Score
from mrag_eval.report.files._systems import System
from mrag_eval.report.findings._record import Finding
from mrag_eval.report.page._planner_counts import PlannerCounts
from mrag_eval.report.page._points import Point, percent
from mrag_eval.report.page._samples import Browser
from mrag_eval.report.page._spec import SYSTEM_COLOURS
from mrag_eval.report.tables._leaderboard import Board


@dataclass
class PageData:
    """Everything that is on the page. ``figures`` are all scores, in the cells of every dimension, too.

    ``findings`` open it. ``points`` are the values of each chart, by its id. ``samples`` and their ``passages`` are
    those that fit of the ``browser``'s.
    """

    runs: list[tuple[Leaf, ResultFile]]
    figures: list[Score]
    browser: Browser
    systems: list[System] = field(default_factory=list)
    boards: list[Board] = field(default_factory=list)
    planners: dict[str, PlannerCounts] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    points: dict[str, list[Point]] = field(default_factory=dict)
    samples: list[dict[str, Any]] = field(default_factory=list)
    passages: list[dict[str, Any]] = field(default_factory=list)

    @cached_property
    def leaves(self) -> list[Leaf]:
        """Return the tasks of the runs."""
        return [leaf for leaf, _ in self.runs]

    @cached_property
    def of_task(self) -> dict[str, Point]:
        """Return label of a task -> benchmark, model, mode, name and colour of its system, the same on all the page."""
        modes = {system.mode for system in self.systems}
        names = {(one.run, one.mode): one.run if len(modes) == 1 else one.name for one in self.systems}
        colours = dict(zip(dict.fromkeys(names.values()), cycle(SYSTEM_COLOURS), strict=False))
        return {
            leaf.label: {"benchmark": one.benchmark, "run": one.run, "mode": one.mode}
            | {"system": (name := names[one.run, one.mode]), "colour": colours[name]}
            for one in self.systems
            for leaf in one.leaves
        }

    @cached_property
    def scores(self) -> list[Point]:
        """Return every metric of every task that has a value, with the task's system, in the systems' order."""
        whole = [one for one in self.figures if not one.dimension and one.value is not None]
        points = [{"metric": r.metric, **percent(r, r.metric), "task": r.task} | self.of_task[r.task] for r in whole]
        order = [*dict.fromkeys(one["system"] for one in self.of_task.values())]
        return sorted(points, key=lambda point: order.index(point["system"]))
