"""The gathering of a report from result and sample files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mrag_eval.platform import Wait
from mrag_eval.report.files._leaves import PageRow, result_leaves
from mrag_eval.report.files._samples import open_samples
from mrag_eval.report.files._scores import leaf_scores
from mrag_eval.report.files._systems import systems
from mrag_eval.report.findings._find import findings
from mrag_eval.report.page._data import PageData
from mrag_eval.report.page._planner_counts import PlannerCounts
from mrag_eval.report.page._samples import Browser
from mrag_eval.report.page._sections import CHARTS
from mrag_eval.report.tables._leaderboard import boards


def page_data(paths: Sequence[Path], *, samples: int = 200, text: bool = True, seed: int = 0) -> PageData:
    """Gather a report from the result files at ``paths`` (files, or folders searched for them).

    For each task at most ``samples`` rows are taken for the browser, drawn with ``seed``; without ``text`` passages are
    named but not shown. If a model ran a task several times with the same settings, the newest counts. Raises DataError
    if there is no result of our tasks.
    """
    leaves = result_leaves(paths)
    data = PageData(leaves, leaf_scores(leaves), Browser(samples, text, seed))
    data.points |= {chart.id: [] for chart in CHARTS if chart.of_samples is not None}
    rows: dict[str, list[PageRow]] = {}
    with Wait("reading samples", len(data.leaves), "tasks") as wait:
        for leaf in wait.over(data.leaves):
            name = " · ".join(filter(None, (leaf.benchmark, leaf.run, leaf.variant)))
            planner = data.planners.setdefault(name, PlannerCounts(name))
            own = rows[leaf.label] = []
            if leaf.samples is None:
                continue
            lines = open_samples(leaf.samples)
            data.browser.add(leaf, lines)
            for sample in lines:
                own.append(PageRow.of(sample))
                planner.add(leaf, sample)
            for chart in CHARTS:
                if chart.of_samples is not None:
                    data.points[chart.id].extend(chart.of_samples(leaf, lines))
    data.samples, data.passages = data.browser.within()
    data.systems = systems(data.leaves, rows)
    with Wait("comparing systems"):
        data.boards = boards(data.systems)
        # the first board of a benchmark orders its systems on all the page; those that score alike stay as they are
        places = {
            (board.benchmark, one.run, one.mode): [other.score.value for other in board.entries].index(one.score.value)
            for board in reversed(data.boards)
            for one in board.entries
        }
        known = [*dict.fromkeys(one.benchmark for one in data.systems)]
        data.systems.sort(
            key=lambda one: (known.index(one.benchmark), places.get((one.benchmark, one.run, one.mode), 0))
        )
        data.findings = findings(data.runs, rows)
    with Wait("drawing charts", len(CHARTS), "charts") as wait:
        data.points |= {chart.id: chart.points(data) for chart in wait.over(CHARTS) if chart.points is not None}
    return data
