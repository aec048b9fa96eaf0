"""The section on controls: what the metrics give in each language without a model."""

from __future__ import annotations

from collections.abc import Iterator

from mrag_eval.core import score_text
from mrag_eval.metrics import Estimate
from mrag_eval.report.files._leaves import Leaf
from mrag_eval.report.page._points import Point
from mrag_eval.report.page._section import Listing, Section, each_task
from mrag_eval.report.tables._controls import SHARE, TITLES
from mrag_eval.scoring import CONTROLS, KINDS, control_of, marked_by_controls, scale_of

_PLACE = {"task": "task", "metric": "metric", "language": "language"}


def _points(leaf: Leaf, metric: str, kind: str) -> Iterator[Point]:
    """Yield score, controls, share and mark of a metric in each language, if its controls are of this kind."""
    if control_of(metric).kind != kind:
        return
    controls, scale = leaf.result.scores.controls, scale_of(metric)
    scores, marked = leaf.result.metrics.get(metric), marked_by_controls(controls, metric)
    for language, own in controls[metric].items():
        score = None if scores is None else scores.cells("query_lang").get(language, scores)
        yield {
            **dict(zip(_PLACE, (leaf.label, f"{metric}{scale.note}", language), strict=True)),
            "score": _shown(score, scale.factor),
            **{name: _shown(found, scale.factor) for name, found in own.found.items()},
            SHARE: _shown(own.share, 100.0),
            "marked": marked.get(language),
        }


def _shown(found: Estimate | None, factor: float) -> str | None:
    if found is None:
        return None
    if found.value is None:
        return found.reason
    return score_text(found.value, found.low, found.high, scale=factor)


def _listing(kind: str) -> Listing:
    beside = {"score": "score", SHARE: f"{SHARE}, %", "marked": "marked"}
    columns = {**_PLACE, **beside, **{name: CONTROLS[name] for name in KINDS[kind]}}
    return Listing(
        f"{TITLES[kind]}: what needs no model scores, by language",
        columns,
        each_task(lambda leaf: [p for metric in leaf.result.scores.controls for p in _points(leaf, metric, kind)]),
        numbers=[i for i, name in enumerate(columns) if name not in (*_PLACE, "marked")],
        folded=TITLES[kind],
        unfolded=40,
    )


SECTION = Section("controls", "Controls", blocks=tuple(_listing(kind) for kind in KINDS), folded=True)
