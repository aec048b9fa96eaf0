"""Comparisons as Markdown, CSV and JSON."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict

from mrag_eval.core import interval_text, p_text, pipe_table, points
from mrag_eval.platform import ConfigError, csv_cell, did_you_mean
from mrag_eval.report.comparison._compare import Comparison, Difference
from mrag_eval.report.files._leaves import labelled
from mrag_eval.scoring import scale_of

_HEAD = ("task", "language", "n", "first", "second", "difference", "95%", "p", "p adjusted", "detectable", "+ / −")
# Number of row ids printed of each kind; the JSON form has all of them.
_SHOWN_IDS = 20


def comparison_text(comparison: Comparison, form: str = "md", *, flips: bool = False) -> str:
    """Return the comparison as ``md``, ``csv`` or ``json``; with ``flips`` the changed rows are listed by id.

    Scores and differences are in points (x 100), or in the unit of their metric. Raises ConfigError for another form.
    """
    if form not in _FORMS:
        raise ConfigError(f"--format: no format '{form}'{did_you_mean(form, _FORMS)}")
    return _FORMS[form](comparison, flips)


def _markdown(comparison: Comparison, flips: bool) -> str:
    parts = []
    for metric in dict.fromkeys(d.metric for d in comparison.differences):
        rows = [d for d in comparison.differences if d.metric == metric]
        head, sides = (_HEAD, "llrrrrrrrrr") if comparison.margin is None else ((*_HEAD, "equivalent"), "llrrrrrrrrrl")
        table = pipe_table(head, [_cells(d) for d in rows], sides)
        notes = [f"- {d.task}, {d.language or 'all'}: {d.reason}" for d in rows if d.reason]
        notes += [f"- {d.task}, many rows failed: {d.marked}" for d in rows if d.marked and d.language is None]
        notes += [f"- {d.task}, limited by the metric: {d.limited}" for d in rows if d.limited and d.language is None]
        parts.append("\n".join([f"### {metric}{scale_of(metric).note}", "", table, *(["", *notes] if notes else [])]))
    for task, keys in comparison.differs.items():
        parts.append("\n".join([f"{task}: settings that differ", *(f"- {k}: {values}" for k, values in keys.items())]))
    if comparison.notes:
        parts.append("\n".join(f"- {note}" for note in comparison.notes))
    if flips:
        parts += [_changed(d) for d in comparison.differences if d.language is None and (d.better or d.worse)]
    parts.append(
        "Points (× 100) unless another unit is named, second minus first, on rows scored in both runs · "
        "p: two-sided, paired, by the test of the interval · adjusted: over all tests above · "
        "detectable: the smallest difference that these pairs show with 80% power"
        + ("" if comparison.margin is None else f" · equivalent: 90% interval within ± {comparison.margin:g}")
    )
    return "\n\n".join(parts)


def _cells(d: Difference) -> list[str]:
    scale = scale_of(d.metric)
    return [
        labelled(d.task, d.part),
        _language(d),
        f"{d.n:,}",
        points(d.first, scale=scale),
        points(d.second, scale=scale),
        points(d.difference, "+", scale),
        interval_text(d.low, d.high, scale),
        p_text(d.p_value),
        p_text(d.p_adjusted),
        points(d.detectable, scale=scale),
        f"{len(d.better)} / {len(d.worse)}",
        *([] if d.equivalent is None else ["shown" if d.equivalent else "not shown"]),
    ]


def _language(d: Difference) -> str:
    """Return the language of a difference, with what it is marked for."""
    if d.language is None:
        return "all"
    marks = ["many failed"] * (d.marked is not None) + ["limited by the metric"] * (d.limited is not None)
    return d.language + (f" ({', '.join(marks)})" if marks else "")


def _changed(d: Difference) -> str:
    lines = [f"{d.task}, {d.metric}: rows that changed"]
    for word, ids in (("better", d.better), ("worse", d.worse)):
        more = f" and {len(ids) - _SHOWN_IDS} more" if len(ids) > _SHOWN_IDS else ""
        lines.append(f"- {word} ({len(ids)}): {', '.join(ids[:_SHOWN_IDS])}{more}")
    return "\n".join(lines)


def _csv(comparison: Comparison, flips: bool) -> str:
    out = io.StringIO()
    names = [name for name in asdict(comparison.differences[0]) if flips or name not in ("better", "worse")]
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(names)
    for d in comparison.differences:
        writer.writerow([_flat(value) for name, value in asdict(d).items() if name in names])
    return out.getvalue().rstrip("\n")


def _flat(value: object) -> object:
    text = " ".join(value) if isinstance(value, tuple) else "" if value is None else value
    return csv_cell(text) if isinstance(text, str) else text


def _json(comparison: Comparison, _flips: bool) -> str:
    return json.dumps(comparison.as_dict(), ensure_ascii=False, indent=2)


_FORMS: Mapping[str, Callable[[Comparison, bool], str]] = {"md": _markdown, "csv": _csv, "json": _json}
