"""The section on losses: where answers are lost, by language."""

from __future__ import annotations

from collections import Counter

from mrag_eval.report.page._data import PageData
from mrag_eval.report.page._points import Point
from mrag_eval.report.page._section import Chart, Section
from mrag_eval.report.page._spec import Points, Spec, choices, field, height, language, spec, tooltip
from mrag_eval.report.tables._losses import STAGES, losses

# Colours of the stages that colour-blind readers can distinguish (Okabe and Ito).
_COLOURS = ("#009E73", "#D55E00", "#E69F00", "#56B4E9", "#F0E442", "#CC79A7", "#999999")
_ANY, _SAME, _OTHER = "any language", "the question's language", "another language"
# No code of a language: "all" is that of Allar.
_ALL = "all languages"


def _stage_points(data: PageData) -> list[Point]:
    """Return the questions of each system by stage: all, and by language if it was asked in several."""
    out: list[Point] = []
    for system in data.systems:
        counts = {name: {_ALL: Counter[str]()} for name in (_ANY, _SAME, _OTHER)}
        for leaf in system.leaves:
            asked = list(leaf.result.scores.query_langs)
            for pair, found, _ in losses(leaf):
                question, arrow, document = pair.partition(" → ")
                held = [_ANY, _SAME if question == document else _OTHER] if arrow else [_ANY]
                several = len(leaf.result.scores.attribution.by_pair) if leaf.result.scores.attribution else 0
                places = [(one, question if arrow else _ALL) for one in held] + [(one, _ALL) for one in held[1:]]
                if not arrow and len(asked) == 1 and not several:
                    places.append((_ANY, asked[0]))
                for documents, code in places:
                    counts[documents].setdefault(code, Counter()).update(found)
        for documents, by_language in counts.items():
            for code in by_language if len(by_language) > 2 else [*by_language][:1]:
                stages = by_language[code]
                out += [
                    data.of_task[system.leaves[0].label]
                    | {"documents": documents, "language": code, "stage": stage, "rows": n}
                    | {"share": round(100 * n / stages.total(), 1)}
                    for stage, n in stages.items()
                    if n
                ]
    return out


def _stages(points: Points) -> Spec:
    place = {stage: number for number, stage in enumerate(STAGES)}
    ordered = [{**p, "order": place.get(p["stage"], len(place))} for p in points]
    found = dict.fromkeys(str(p["stage"]) for p in points)
    there = [*(stage for stage in STAGES if stage in found), *(stage for stage in found if stage not in STAGES)]
    colours = [_COLOURS[place.get(stage, -1)] for stage in there]
    keys = {"benchmark": "benchmark", "system": "system", "documents": "relevant document in"}
    return spec(
        ordered,
        "Where answers are lost: shares of the questions by the stage of the pipeline that they reached",
        ("language", "stage", "rows", "share"),
        height=height(points, "language", chosen=tuple(keys)),
        **choices(points, keys),
        mark={"type": "bar"},
        encoding={
            "y": language(points, "language", "", sort=None),
            "x": field("rows", "quantitative", "share of questions", stack="normalize", axis={"format": "%"}),
            "color": field("stage", "nominal", "", scale={"domain": there, "range": colours}),
            "order": field("order", "ordinal"),
            "tooltip": tooltip("language", "stage", "rows", "share"),
        },
    )


SECTION = Section(
    "losses",
    "Where is it lost?",
    "Losses",
    (
        Chart(
            "stages",
            "Where answers are lost",
            "Of the questions in each language: those answered right, and the stage at which the others were lost. "
            "A click opens their samples.",
            _stages,
            _stage_points,
            opens={"model": "run", "benchmark": "benchmark", "mode": "mode", "language": "language"},
        ),
    ),
)
