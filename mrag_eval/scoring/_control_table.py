"""Controls of a task by metric and language, from the records of its rows."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from mrag_eval.metrics import Estimate
from mrag_eval.scoring._control_kinds import CLOSED_FORM, LEAST_GAP, control_mark
from mrag_eval.scoring._metrics import control_of, more_is_better, scale_of
from mrag_eval.scoring._resamples import RESAMPLES
from mrag_eval.scoring._row_records import ControlRecord, RowRecord
from mrag_eval.scoring._score_records import MetricControls

Table = Mapping[str, Mapping[str, MetricControls]]
# A row with the record of its controls.
Checked = tuple[RowRecord, ControlRecord]
# Control -> its values of a metric, aligned with the rows.
Columns = dict[str, list[float | None]]


def control_table(rows: Sequence[RowRecord], seed: int = 0) -> dict[str, dict[str, MetricControls]]:
    """Return metric -> language -> its controls; empty if no row has any."""
    languages: dict[str, list[Checked]] = defaultdict(list)
    for row in rows:
        if row.controls is not None:
            languages[row.query_lang].append((row, row.controls))
    records = [checked for own in languages.values() for _, checked in own]
    parts = (part for checked in records for part in (*checked.values.values(), *checked.unscored.values()))
    metrics = dict.fromkeys(metric for part in parts for metric in part)
    tables = {language: _of_language(own, metrics, seed) for language, own in sorted(languages.items())}
    return {metric: {language: own[metric] for language, own in tables.items()} for metric in metrics}


def _of_language(rows: Sequence[Checked], metrics: Iterable[str], seed: int) -> dict[str, MetricControls]:
    found: dict[str, Columns] = {metric: {} for metric in metrics}
    for place, (_, checked) in enumerate(rows):
        for name, values in checked.values.items():
            for metric, value in values.items():
                if name not in found[metric]:
                    found[metric][name] = [None] * len(rows)
                found[metric][name][place] = value
    return {metric: _of_metric(rows, metric, columns, seed) for metric, columns in found.items()}


def _of_metric(rows: Sequence[Checked], metric: str, columns: Columns, seed: int) -> MetricControls:
    control = control_of(metric)
    # parts of a control, such as texts of one length, follow it
    known = {name for _, checked in rows for name in (*checked.values, *checked.unscored, *checked.missing)}
    wholes = [name for name in control.names if name in known or name != "inflected"]
    names = [name for whole in wholes for name in (whole, *(n for n in columns if n.startswith(f"{whole}, ")))]
    found = {name: _mean(rows, name, metric, columns.get(name)) for name in dict.fromkeys(names)}
    ends = (control.ceiling(found), *control.floors[:1])
    return MetricControls(found, _share(rows, metric, ends, columns, seed))


def _mean(rows: Sequence[Checked], name: str, metric: str, values: Sequence[float | None] | None) -> Estimate:
    from mrag_eval.metrics import interval_for

    if values is None:
        reasons = Counter(why for _, checked in rows if (why := checked.why_not(name, metric)) is not None)
        return Estimate(None, reason="; ".join(reasons) or "not measured")
    if name in CLOSED_FORM:
        known = [value for value in values if value is not None]
        return Estimate(sum(known) / len(known), n=len(known), method="closed form")
    groups = [row.resampled_with for row, _ in rows]
    return interval_for(values, groups=groups, kind="cluster", bounds=scale_of(metric).bounds)


def _share(rows: Sequence[Checked], metric: str, ends: Sequence[str], columns: Columns, seed: int) -> Estimate | None:
    """Return (score - floor) / (ceiling - floor) of means over the rows that have all three."""
    if not all((*ends, len(ends) > 1)) or not any(metric in row.values for row, _ in rows):
        return None
    from mrag_eval.metrics import share_between

    none: list[float | None] = [None] * len(rows)
    kept = [
        (row.values[metric], top, bottom, row.resampled_with)
        for (row, _), top, bottom in zip(rows, *(columns.get(name, none) for name in ends), strict=True)
        if metric in row.values and top is not None and bottom is not None
    ]
    return share_between(
        [score for score, _, _, _ in kept],
        [top for _, top, _, _ in kept],
        [bottom for _, _, bottom, _ in kept],
        [group for _, _, _, group in kept],
        least_gap=LEAST_GAP,
        n_resamples=RESAMPLES,
        seed=seed,
    )


def control_marks(records: Iterable[tuple[str, ControlRecord]], metric: str) -> dict[str, str]:
    """Return language -> why its scores by a metric are marked, from the languages and controls of rows."""
    return _marks(_means(records, metric), metric)


def ceilings(records: Iterable[tuple[str, ControlRecord]], metric: str) -> dict[str, tuple[str, float]]:
    """Return language -> the ceiling of a metric and its mean, from the languages and controls of rows."""
    found = {code: (control_of(metric).ceiling(own), own) for code, own in _means(records, metric).items()}
    return {code: (name, mean) for code, (name, own) in found.items() if (mean := own.get(name)) is not None}


def _means(records: Iterable[tuple[str, ControlRecord]], metric: str) -> dict[str, dict[str, float | None]]:
    values: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for language, record in records:
        for name in (*record.values, *record.missing):
            values[language][name] += [own[metric]] if metric in (own := record.values.get(name, {})) else []
    return {
        language: {name: sum(of) / len(of) if of else None for name, of in own.items()}
        for language, own in sorted(values.items())
    }


def marked_by_controls(table: Table, metric: str) -> dict[str, str]:
    """Return the languages whose scores by a metric the controls mark, with what they score."""
    return _marks({language: own.means for language, own in table.get(metric, {}).items()}, metric)


def _marks(means: Mapping[str, Mapping[str, float | None]], metric: str) -> dict[str, str]:
    control, scale, more = control_of(metric), scale_of(metric), more_is_better(metric)
    found = {language: control_mark(control, scale, more, own) for language, own in means.items()}
    return {language: why for language, why in found.items() if why is not None}
