"""The charts of all tasks together: scores by language and by tier in every IR mode, and the sources of errors."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from mrag_eval.metrics import Estimate
from mrag_eval.report.files._leaves import Leaf
from mrag_eval.report.files._results import metrics_in_order
from mrag_eval.report.files._systems import System
from mrag_eval.report.page._data import PageData
from mrag_eval.report.page._points import Point, percent
from mrag_eval.report.page._section import Beside, Chart, Markup, Section, each_task
from mrag_eval.report.page._shapes import heat_map
from mrag_eval.report.page._spec import Points, Spec, choices, field, height, language, spec, tooltip
from mrag_eval.report.tables._leaderboard import languages_score
from mrag_eval.report.tables._losses import STAGES, losses
from mrag_eval.scoring import scale_of

# Colours of the stages that colour-blind readers can distinguish (Okabe and Ito).
_COLOURS = ("#009E73", "#D55E00", "#E69F00", "#56B4E9", "#F0E442", "#CC79A7", "#999999")
_OF_A_MODEL = {"benchmark": "benchmark", "metric": "metric", "run": "model"}


def _language_points(data: PageData) -> list[Point]:
    """Return a point for every system, metric and language: over its rows, or from its results without samples."""
    out = []
    for system in data.systems:
        base_point = {"benchmark": system.benchmark, "run": system.run, "mode": system.mode}
        for metric in (name for name in _metrics(system) if scale_of(name).percent):
            for code, score in _by_language(system, metric).items():
                if score.value is not None:
                    out.append(base_point | {"metric": metric, "language": code} | percent(score, metric))
    return out


def _languages(points: Points) -> Spec:
    return heat_map(
        points,
        "Mean score by language and IR mode",
        field("mode", "nominal", "IR mode", axis={"labelAngle": -20, "labelLimit": 140}),
        language(points, "language", "language"),
        ("language", "mode", "value", "low", "high", "n"),
        _OF_A_MODEL,
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
            point = {"benchmark": tier["benchmark"], "run": system.run, "mode": system.mode, **tier}
            out.append(point | score | {"languages": ", ".join(sorted(inside))})
    return out


def _tiers(points: Points) -> Spec:
    return heat_map(
        points,
        "Mean score by tier of languages and IR mode",
        field("mode", "nominal", "IR mode", axis={"labelAngle": -20, "labelLimit": 140}),
        field("tier", "nominal", "tier", sort=None),
        ("tier", "mode", "value", "low", "high", "n", "languages", "groups"),
        _OF_A_MODEL,
    )


def _left_out(data: PageData) -> dict[str, Any] | None:
    """Return a line for every tier without some of its languages."""
    lines = [
        f"{', '.join(tier.values())}: without {', '.join(sorted(missing))}, which not every mode has"
        for tier, _, _, missing in _tiers_of(data.systems)
        if missing
    ]
    return {"lines": lines} if lines else None


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


def _stage_points(leaf: Leaf) -> list[Point]:
    """Return where the errors come from, in rows."""
    return [
        {"task": leaf.label, "pair": pair, "stage": stage, "rows": n, "share": round(100 * n / sum(found.values()), 1)}
        for pair, found, _ in losses(leaf)
        for stage, n in found.items()
        if n
    ]


def _stages(points: Points) -> Spec:
    place = {stage: number for number, stage in enumerate(STAGES)}
    ordered = [{**p, "order": place.get(p["stage"], len(place))} for p in points]
    return spec(
        ordered,
        "Where errors come from: shares of rows by stage of the pipeline",
        ("task", "pair", "stage", "rows", "share"),
        height=height(points, "task", chosen=("pair",)),
        **choices(points, {"pair": "pair"}),
        mark={"type": "bar"},
        encoding={
            "y": field("task", "nominal", "", axis={"labelLimit": 180}),
            "x": field("rows", "quantitative", "share of rows", stack="normalize", axis={"format": "%"}),
            "color": field("stage", "nominal", "", scale={"domain": list(STAGES), "range": list(_COLOURS)}),
            "order": field("order", "ordinal"),
            "tooltip": tooltip("task", "stage", "rows", "share"),
        },
    )


SECTION = Section(
    blocks=(
        Beside(
            Chart(
                "languages",
                "By language and IR mode",
                "Rows: the culture's language if known, else the question's. A click on a cell opens its "
                "samples; the table below has buttons for it. Cells of few rows are uncertain.",
                _languages,
                _language_points,
                opens={"model": "run", "benchmark": "benchmark", "mode": "mode", "language": "language"},
                link="Languages",
            ),
            Chart(
                "stages",
                "Where errors come from",
                "Shares of rows, in the order of the pipeline; choose a pair of languages below the plot.",
                _stages,
                each_task(_stage_points),
                opens={"task": "task"},
                link="Errors",
            ),
        ),
        Chart(
            "tiers",
            "By tier and IR mode",
            "Unweighted means over the languages of each group of the benchmark that every mode was run in.",
            _tiers,
            _tier_points,
            opens={"model": "run", "benchmark": "benchmark", "mode": "mode"},
        ),
        Markup("left_out.html.jinja", _left_out),
    )
)
