"""The section on languages: systems by language and by tier, marks of the controls, and pairs of languages."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from mrag_eval.config import CONTEXT_PAIR
from mrag_eval.metrics import Estimate
from mrag_eval.report.files._results import metrics_in_order
from mrag_eval.report.files._systems import System
from mrag_eval.report.findings._languages import marked, named
from mrag_eval.report.page._data import PageData
from mrag_eval.report.page._points import Point, percent
from mrag_eval.report.page._section import Chart, Markup, Section
from mrag_eval.report.page._shapes import heat_map
from mrag_eval.report.page._spec import Points, Spec, field, language
from mrag_eval.report.tables._leaderboard import languages_score
from mrag_eval.scoring import scale_of

_CHOSEN = {"benchmark": "benchmark", "metric": "metric"}


def _language_points(data: PageData) -> list[Point]:
    """Return a point for every system, metric and language: over its rows, or from its results without samples."""
    out = []
    for system in data.systems:
        for metric in (name for name in _metrics(system) if scale_of(name).percent):
            marks = marked(system, metric)
            for code, score in _by_language(system, metric).items():
                if score.value is not None:
                    point = data.of_task[system.leaves[0].label] | {"metric": metric, "language": code}
                    out.append(point | percent(score, metric) | {"mark": marks.get(code, "")})
    return out


def _marked(data: PageData) -> dict[str, Any] | None:
    """Return a line for every metric and language that the controls mark."""
    lines: dict[str, None] = {}
    for point in data.points.get("languages", ()):
        if point["mark"]:
            lines[f"{named(point['language'])}, {point['metric']}: {point['mark']}"] = None
    summary = "° the metric is weak in this language: compare systems within it, not with other languages"
    return {"summary": summary, "lines": [*lines]} if lines else None


def _languages(points: Points) -> Spec:
    return heat_map(
        points,
        "Mean score by system and language",
        language(points, "language", "", axis={"labelAngle": -30, "orient": "top"}),
        field("system", "nominal", "", sort=None),
        ("system", "language", "value", "low", "high", "n", *(["mark"] if any(p["mark"] for p in points) else [])),
        _CHOSEN,
    )


def _tiers_of(systems: Sequence[System]) -> Iterator[tuple[dict[str, str], list[System], set[str], set[str]]]:
    """Return tiers by benchmark and metric: the systems, the tier's languages that all of them were run in, the others.

    Systems that were run in one language have no means over tiers.
    """
    together: dict[tuple[str, str], list[System]] = defaultdict(list)
    for system in systems:
        if system.rows is not None:
            for metric in _metrics(system):
                together[system.benchmark, metric].append(system)
    for (benchmark, metric), having in together.items():
        groups = having[0].leaves[0].result.known.groups
        sets = [{key[0] for key, row in (s.rows or {}).items() if metric in row.values} for s in having]
        found, common = set().union(*sets), set.intersection(*sets)
        for name in groups.members:
            tier = {code for code in found if groups.of(code) == name}
            inside = tier & common if len(found) > 1 else set()
            named = {"benchmark": benchmark, "metric": metric, "tier": name, "groups": groups.called}
            yield named, having, inside, tier - common


def _tier_points(data: PageData) -> list[Point]:
    """Return a point for every system, metric and tier.

    A tier's score is the unweighted mean over its languages. Only languages are counted that all systems of the
    benchmark with the metric were run in, so that every mean is over the same set.
    """
    out = []
    for tier, having, inside, _ in _tiers_of(data.systems):
        for system in having if inside else ():
            keys = sorted(key for key in system.rows or {} if key[0] in inside)
            score = percent(languages_score(system, tier["metric"], keys), tier["metric"])
            point = data.of_task[system.leaves[0].label] | tier
            out.append(point | score | {"languages": ", ".join(sorted(inside))})
    return out


def _tiers(points: Points) -> Spec:
    return heat_map(
        points,
        "Mean score by system and tier of languages",
        field("tier", "nominal", "", sort=None, axis={"labelAngle": 0, "orient": "top"}),
        field("system", "nominal", "", sort=None),
        ("system", "tier", "value", "low", "high", "n", "languages", "groups"),
        _CHOSEN,
    )


def _left_out(data: PageData) -> dict[str, Any] | None:
    """Return a line for every tier without some of its languages."""
    lines = [
        f"{', '.join(tier.values())}: without {', '.join(sorted(missing))}, which not every system has"
        for tier, _, _, missing in _tiers_of(data.systems)
        if missing
    ]
    return {"summary": "Languages left out of tiers", "lines": lines} if lines else None


def _metrics(system: System) -> list[str]:
    """Return the metrics of the system's rows, or of its results if there are no samples."""
    if system.rows is None:
        return metrics_in_order(leaf.result for leaf in system.leaves)
    return system.leaves[0].result.in_order(name for row in system.rows.values() for name in row.values)


def _by_language(system: System, metric: str) -> dict[str, Estimate]:
    if system.rows is not None:
        by: dict[str, list[tuple[str, str]]] = defaultdict(list)
        for key, row in system.rows.items():
            if metric in row.values or metric in row.unscored:
                by[key[0]].append(key)
        return {code: languages_score(system, metric, keys) for code, keys in sorted(by.items())}
    out: dict[str, Estimate] = {}
    for leaf in system.leaves:
        score = leaf.result.metrics.get(metric)
        if score is None:
            continue
        languages = list(leaf.result.scores.query_langs)
        found = {languages[0]: score} if len(languages) == 1 else score.cells("query_lang")
        for code, cell in found.items():
            # several tasks in one language cannot be pooled without their rows
            out[code] = cell if code not in out else Estimate(None)
    return out


def _pair_points(data: PageData) -> list[Point]:
    """Return scores by language of the question and of the relevant document, or of the contexts of a log."""
    out = []
    relevant = {(row.task, row.metric) for row in data.figures if row.dimension == "pair"}
    for row in (score for score in data.figures if score.value is not None):
        if row.dimension != ("pair" if (row.task, row.metric) in relevant else CONTEXT_PAIR):
            continue
        question, _, document = row.cell.partition("->")
        out.append(
            {"task": row.task, "metric": row.metric, "question": question, "document": document}
            | percent(row, row.metric)
        )
    return out


def _pairs(points: Points) -> Spec:
    return heat_map(
        points,
        "Mean score by language of the question and of the relevant document or contexts",
        language(points, "document", "relevant document, or contexts, in", axis={"labelAngle": -20}),
        language(points, "question", "question in"),
        ("question", "document", "value", "low", "high", "n"),
        {"task": "task", "metric": "metric"},
    )


SECTION = Section(
    "languages",
    "For whom?",
    "Languages",
    (
        Chart(
            "languages",
            "By system and language",
            "Columns: the culture's language if known, else the question's. A click on a cell opens its samples; the "
            "table below has buttons for it. Cells of few rows are uncertain.",
            _languages,
            _language_points,
            opens={"model": "run", "benchmark": "benchmark", "mode": "mode", "language": "language"},
        ),
        Markup("lines.html.jinja", _marked),
        Chart(
            "tiers",
            "By tier of languages",
            "Unweighted means over the languages of each group of the benchmark that every system was run in.",
            _tiers,
            _tier_points,
            opens={"model": "run", "benchmark": "benchmark", "mode": "mode"},
        ),
        Markup("lines.html.jinja", _left_out),
        Chart(
            "pairs",
            "Question and document language",
            "Score by question × document language.",
            _pairs,
            _pair_points,
            opens={"task": "task", "language": "question", "document": "document"},
        ),
    ),
)
