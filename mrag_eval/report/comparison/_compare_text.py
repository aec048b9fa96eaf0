"""Comparisons as Markdown, CSV and JSON."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict

from mrag_eval.core import interval_text, p_text, points
from mrag_eval.platform import ConfigError, csv_cell, did_you_mean, number_of
from mrag_eval.report._table import blocks, within
from mrag_eval.report.comparison._compare import Comparison, Difference
from mrag_eval.report.files._leaves import labelled
from mrag_eval.scoring import more_is_better, nearer_zero_is_better, scale_of

_HEAD = ("task", "language", "n", "first", "second", "difference", "95%", "p", "p adjusted", "detectable", "+ / −")
# Number of row ids printed of each kind; the JSON form has all of them.
_SHOWN_IDS = 20
# Differences that the verdict names beside those of whole tasks, and the level at which one is shown.
_MOST, _LEVEL = 5, 0.05


def comparison_text(comparison: Comparison, form: str = "md", *, flips: bool = False, width: int | None = None) -> str:
    """Return the comparison as ``md`` (within a width), ``csv`` or ``json``; ``flips`` lists the changed rows by id.

    Scores and differences are in points (x 100), or in the unit of their metric. Raises ConfigError for another form.
    """
    if form not in (known := ("md", *_FORMS)):
        raise ConfigError(f"--format: no format '{form}'{did_you_mean(form, known)}")
    return _FORMS[form](comparison, flips) if form in _FORMS else within(_markdown(comparison, flips, width), width)


def _markdown(comparison: Comparison, flips: bool, width: int | None) -> str:
    parts = []
    for metric in dict.fromkeys(d.metric for d in comparison.differences):
        rows = [d for d in comparison.differences if d.metric == metric]
        head = _HEAD if comparison.margin is None else (*_HEAD, "equivalent")
        cells = [_cells(d) for d in rows]
        table = "\n\n".join(blocks(head[:2], [own[:2] for own in cells], head[2:], [own[2:] for own in cells], width))
        notes = [f"- {d.task}, {d.language or 'all'}: {d.reason}" for d in rows if d.reason]
        notes += [f"- {d.task}, many rows failed: {d.marked}" for d in rows if d.marked and d.language is None]
        notes += [f"- {d.task}, limited by the metric: {d.limited}" for d in rows if d.limited and d.language is None]
        parts.append("\n".join([f"### {metric}{scale_of(metric).note}", "", table, *(["", *notes] if notes else [])]))
    for task, keys in comparison.differs.items():
        parts.append("\n".join([f"{task}: settings that differ", *(f"- {k}: {values}" for k, values in keys.items())]))
    if comparison.notes:
        parts.append("\n".join(f"- {note}" for note in comparison.notes))
    if flips:
        parts += [
            _changed(d)
            for d in comparison.differences
            if d.language is None and d.task not in comparison.groups and (d.better or d.worse)
        ]
    if comparison.left_out:
        parts.append(f"Left out: {number_of(comparison.left_out, 'pair')} of languages of too few rows to differ.")
    parts.append(
        "Points (× 100) unless another unit is named, second minus first, on rows scored in both runs · "
        "p: two-sided, paired, by the test of the interval, of the metrics that decide · adjusted: over all of these · "
        "detectable: the smallest difference that these pairs show with 80% power"
        + ("" if comparison.margin is None else f" · equivalent: 90% interval within ± {comparison.margin:g}")
    )
    verdict = comparison_verdict(comparison)
    if comparison.cause is None:
        return "\n\n".join([*parts, verdict])
    return "\n\n".join([f"{verdict[:-1]}; {comparison.cause}.", *parts])


def comparison_verdict(comparison: Comparison) -> str:
    """Return what a comparison shows, in words: by the first metric that decides in each task, then what differs."""
    tested = [d for d in comparison.differences if d.p_adjusted is not None]
    wholes = deciding(comparison)
    if not wholes:
        return "No test was possible."
    first, second = comparison.runs
    shown = {task: side_of(d) for task, d in wholes.items()}
    groups = [wholes.pop(name) for name in comparison.groups if name in wholes]
    said = [_of_one(one, comparison.runs, f"over {one.task}") for one in groups]
    if len(wholes) == 1:
        (one,) = wholes.values()
        said = [_of_one(one, comparison.runs)]
        moved = [d for d in tested if d.language and d.metric == one.metric and side_of(d) == side_of(one) != 0]
        own = [d for d in moved if "->" not in str(d.language) and " " not in str(d.language)]
        if own:
            most = max(own, key=lambda d: abs(_gain(d)))
            said.append(f"Most in {_place(most)}: {_change(most)}.")
    else:
        counts = [[task for task in wholes if shown[task] == wanted] for wanted in (1, -1, 0)]
        by = " and ".join(dict.fromkeys(d.metric for d in wholes.values()))
        said.append(
            f"By {by}, {second} is better than {first} in {len(counts[0])} of {number_of(len(wholes), 'task')}, "
            f"worse in {len(counts[1])}, and no difference is shown in {len(counts[2])}."
        )
        for word, side in (("Most gained", 1), ("Most lost", -1)):
            end = max(wholes.values(), key=lambda d: _gain(d) * side)
            said += [f"{word}: {end.task} {_change(end)}."] if side_of(end) == side else []
    # a language that moves as its task does is no news
    leading = {d.task: d for d in (*groups, *wholes.values())}
    known = {id(d) for d in leading.values()}
    others = [
        d for d in tested if id(d) not in known and side_of(d) not in (0, shown.get(d.task, 0) if d.language else 0)
    ]
    main = {task: d.metric for task, d in leading.items()}
    others.sort(key=lambda d: (main.get(d.task, d.metric) != d.metric, d.language is not None, d.p_adjusted or 0.0))
    for d in others[:_MOST]:
        more = f", {d.task}" if len(leading) > 1 else ""
        said.append(f"{'Better' if side_of(d) > 0 else 'Worse'} in {_place(d)} ({d.metric}{more}): {_change(d)}.")
    said += [f"{len(others) - _MOST} more differences are shown."] if len(others) > _MOST else []
    return " ".join(said)


def deciding(comparison: Comparison) -> dict[str, Difference]:
    """Return task -> the difference of all its rows by the first metric that decides; only those that were tested."""
    found: dict[str, Difference] = {}
    for d in comparison.differences:
        if d.p_adjusted is not None and d.language is None:
            found.setdefault(d.task, d)
    return found


def _of_one(d: Difference, runs: tuple[str, str], where: str = "") -> str:
    first, second = runs
    where = where and f" {where}"
    scale = scale_of(d.metric)
    scores = f"{points(d.second, scale=scale)} against {points(d.first, scale=scale)} by {d.metric}, {_change(d)}"
    rows = number_of(d.n, "paired row")
    if side_of(d):
        return f"{second} is {'better' if side_of(d) > 0 else 'worse'} than {first}{where}: {scores}, {rows}."
    more_or_less = more_is_better(d.metric) is None and (d.p_adjusted or 1.0) <= _LEVEL
    if more_or_less:
        return f"{second} differs from {first}{where}: {scores}, {rows}; neither side of {d.metric} is better."
    least = f"; {points(d.detectable, scale=scale)} would be shown in four of five" if d.detectable is not None else ""
    return f"No difference is shown between {first} and {second}{where}: {scores}, {rows}{least}."


def _gain(d: Difference) -> float:
    """Return by how much the second run is better, in the metric's unit."""
    change = d.difference or 0.0
    if nearer_zero_is_better(d.metric):
        return abs(d.first or 0.0) - abs(d.second or 0.0)
    return -change if more_is_better(d.metric) is False else change


def side_of(d: Difference) -> int:
    """Return 1 if the second run is shown to be better, -1 if it is worse, else 0."""
    if d.p_adjusted is None or d.p_adjusted > _LEVEL or more_is_better(d.metric) is None:
        return 0
    return 1 if _gain(d) > 0 else -1


def _change(d: Difference) -> str:
    scale = scale_of(d.metric)
    return f"{points(d.difference, '+', scale)} {interval_text(d.low, d.high, scale)}, p {p_text(d.p_adjusted)}"


def _place(d: Difference) -> str:
    return "all languages" if d.language is None else d.language.replace("->", " → ")


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


_FORMS: Mapping[str, Callable[[Comparison, bool], str]] = {
    "csv": _csv,
    "json": lambda comparison, _: json.dumps(comparison.as_dict(), ensure_ascii=False, indent=2),
}
