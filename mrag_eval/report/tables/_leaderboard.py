"""Leaderboards: the systems of a benchmark by one metric, with rank ranges, tiers and languages.

Only systems over the same questions and under the same settings are ranked together; the others are listed with what
sets them apart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from mrag_eval.metrics import Estimate
from mrag_eval.platform import number_of
from mrag_eval.report.files._leaves import PageRow
from mrag_eval.report.files._results import metrics_in_order
from mrag_eval.report.files._systems import System, settings_apart
from mrag_eval.scoring import RESAMPLES, more_is_better, scale_of

# Maximum number of settings in a remark.
_NAMED = 3
# A question: its language, and its row.
_Key = tuple[str, str]


@dataclass(frozen=True)
class Entry:
    """One system on a board; scores are in the unit of its metric.

    ``score`` is the unweighted mean over languages, of a ranked system over the questions that all ranked ones have a
    score for. ``best`` and ``worst`` bound its rank; they are None if it is not ranked, and ``remark`` says why; it
    also says if a part of the rows was run. ``behind`` is its paired difference to the best. ``parts`` are the tiers
    and languages. ``unscored`` counts its rows without a score, and ``cases`` are the worst and best score that it
    could have with them.
    """

    run: str
    mode: str
    score: Estimate
    unscored: int
    best: int | None = None
    worst: int | None = None
    behind: Estimate | None = None
    remark: str = ""
    parts: Mapping[str, Estimate] = field(default_factory=dict)
    cases: tuple[float, float] | None = None


@dataclass(frozen=True)
class Board:
    """The systems of a benchmark by a metric, the best first, unranked ones last.

    ``tiers`` and ``languages`` are the columns that ``parts`` of the entries fill. ``rows`` counts the questions that
    all ranked systems have a score for: ranks and scores are over these. ``left_out`` are languages without such a row;
    no mean includes them.
    ``higher`` says whether more is better; if it is None, more is neither better nor worse, and nothing is ranked.
    ``groups`` counts the units that are swapped and resampled as a whole: groups of questions, or single ones.
    """

    benchmark: str
    metric: str
    rows: int
    tiers: tuple[str, ...]
    languages: tuple[str, ...]
    entries: tuple[Entry, ...]
    left_out: tuple[str, ...] = ()
    higher: bool | None = True
    groups: int = 0


def boards(systems: Sequence[System]) -> list[Board]:
    """Return a board for every benchmark and metric of two systems or more."""
    out = []
    for benchmark in dict.fromkeys(system.benchmark for system in systems):
        here = [system for system in systems if system.benchmark == benchmark]
        metrics = metrics_in_order(leaf.result for system in here for leaf in system.leaves)
        for metric in metrics:
            having = [s for s in here if any(metric in leaf.result.metrics for leaf in s.leaves)]
            if len(having) > 1:
                out.append(_board(benchmark, metric, having))
    return out


def _board(benchmark: str, metric: str, systems: Sequence[System]) -> Board:
    scored = [s for s in systems if s.rows is not None and any(metric in row.values for row in s.rows.values())]
    entries = [_unpaired(system, metric) for system in systems if system not in scored]
    keys: list[_Key] = []
    left_out: tuple[str, ...] = ()
    groups: set[str] = set()
    unranked = {id(system): why for system in scored if (why := not_ranked(system, metric)) is not None}
    alone = [(system, unranked[id(system)]) for system in scored if id(system) in unranked]
    scored = [system for system in scored if id(system) not in unranked]
    if scored:
        together, apart = comparable(scored, metric)
        keys, left_out = common_keys(together, metric)
        groups = {_rows(together[0])[key].group for key in keys}
        entries += _ranked(together, metric, keys, left_out)
        alone += apart
    for system, remark in alone:
        own = sorted(_keys(system, metric))
        entries.append(_entry(system, metric, own, own, remark=remark))
    parts = {(system.run, system.mode): system.part for system in systems}
    entries = [replace(e, remark="; ".join(filter(None, (e.remark, parts[e.run, e.mode])))) for e in entries]
    higher = more_is_better(metric)
    entries.sort(key=lambda entry: _order(entry, higher))
    columns = {name for entry in entries for name in entry.parts}
    tiers = tuple(name for name in systems[0].leaves[0].result.known.groups.members if name in columns)
    codes = tuple(sorted(columns - {*tiers}))
    languages = codes if len(codes) > 1 else ()
    return Board(
        benchmark, metric, len(keys), tiers, languages, tuple(entries), left_out, higher=higher, groups=len(groups)
    )


def not_ranked(system: System, metric: str) -> str | None:
    """Return why a system has no rank: one of its tasks is an upper bound, or many of its rows failed; else None."""
    having = [leaf for leaf in system.leaves if metric in leaf.result.metrics]
    why = (f"{leaf.task}: {reason}" for leaf in having if (reason := leaf.result.no_headline(metric)))
    return next((f"not ranked: {reason}" for reason in why), None)


def _ranked(together: Sequence[System], metric: str, keys: Sequence[_Key], left_out: Sequence[str]) -> list[Entry]:
    """Return the entries of systems over the same questions ``keys``, ranked if there are two and one can be better."""
    asked = [key for key in sorted(_keys(together[0], metric)) if key[0] not in left_out]
    higher = more_is_better(metric)
    if higher is None or len(together) == 1 or not keys:
        remark = "more is neither better nor worse: not ranked" if higher is None else "nothing to rank it with"
        return [_entry(system, metric, keys, asked, remark=remark) for system in together]
    from mrag_eval.metrics import paired_ranks

    sign = 1.0 if higher else -1.0
    values = [[sign * _rows(system)[key].values[metric] for key in keys] for system in together]
    ranks = paired_ranks(values, [language for language, _ in keys], groups=_groups(together[0], keys))
    first = max(together, key=lambda system: sign * macro_mean(system, metric, keys))
    lags = [None if system is first else behind(system, first, metric, keys) for system in together]
    return [
        _entry(system, metric, keys, asked, best=best, worst=worst, behind=lag)
        for system, best, worst, lag in zip(together, ranks.best, ranks.worst, lags, strict=True)
    ]


def _entry(system: System, metric: str, keys: Sequence[_Key], asked: Sequence[_Key], **rest: Any) -> Entry:
    """Return an entry with scores over ``keys``, and the unscored rows among the questions that were ``asked``."""
    from mrag_eval.metrics import unscored_range

    score, parts = languages_score(system, metric, keys), _parts(system, metric, keys)
    values = {key: _rows(system)[key].values.get(metric) for key in asked}
    unscored = sum(value is None for value in values.values())
    if unscored:
        cells = [language for language, _ in asked]
        rest["cases"] = unscored_range(list(values.values()), cells, scale_of(metric).bounds)
    return Entry(system.run, system.mode, score, unscored, parts=parts, **rest)


def common_keys(systems: Sequence[System], metric: str) -> tuple[list[_Key], tuple[str, ...]]:
    """Return the questions for which every system has a score, and the languages without one."""
    keys = _keys(systems[0], metric)
    shared = sorted(key for key in keys if all(metric in _rows(system)[key].values for system in systems))
    return shared, tuple(sorted({language for language, _ in keys} - {language for language, _ in shared}))


def _rows(system: System) -> Mapping[_Key, PageRow]:
    assert system.rows is not None
    return system.rows


def _order(entry: Entry, higher: bool | None) -> tuple[bool, bool, float, str]:
    value = entry.score.value
    place = 0.0 if value is None or higher is None else -value if higher else value
    return entry.best is None, value is None, place, f"{entry.run} {entry.mode}"


def _keys(system: System, metric: str) -> set[_Key]:
    """Return the questions that the metric is defined for, scored or not."""
    return {key for key, row in _rows(system).items() if metric in row.values or metric in row.unscored}


def comparable(systems: Sequence[System], metric: str) -> tuple[list[System], list[tuple[System, str]]]:
    """Return the largest set of systems over the same questions and settings, and why the others are not in it."""
    keys = {id(system): frozenset(_keys(system, metric)) for system in systems}
    common, _ = max(Counter(keys.values()).items(), key=lambda item: (item[1], len(item[0]), sorted(item[0])))
    same = [system for system in systems if keys[id(system)] == common]
    unlike = {(id(a), id(b)): settings_apart(a, b) for a in same for b in same if a is not b}
    # "not set" agrees with any value, so agreeing with one of them is not enough: the largest set that all agree in
    together: list[System] = []
    for start in same:
        circle = [start]
        for other in sorted((s for s in same if s is not start), key=lambda s: bool(unlike[id(start), id(s)])):
            if all(not unlike[id(other), id(member)] for member in circle):
                circle.append(other)
        if len(circle) > len(together):
            together = circle
    together = [system for system in same if system in together]
    apart = []
    for system in systems:
        if keys[id(system)] != common:
            shared = len(common & keys[id(system)])
            apart.append((system, f"other questions: {shared:,} of the board's {len(common):,} shared"))
        elif system not in together:
            found = next(unlike[id(system), id(one)] for one in together if unlike[id(system), id(one)])
            named = [f"{name} {values}" for name, values in list(found.items())[:_NAMED]]
            more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
            apart.append((system, f"other settings (here | on the board): {'; '.join(named)}{more}"))
    return together, apart


def macro_mean(system: System, metric: str, keys: Sequence[_Key]) -> float:
    sums: dict[str, list[float]] = {}
    for key in keys:
        sums.setdefault(key[0], []).append(_rows(system)[key].values[metric])
    return sum(sum(v) / len(v) for v in sums.values()) / len(sums)


def _groups(system: System, keys: Sequence[_Key]) -> list[str] | None:
    """Return the groups to resample; None if every question is its own group."""
    groups = [_rows(system)[key].group for key in keys]
    return groups if len(set(groups)) < len(groups) else None


def languages_score(system: System, metric: str, keys: Sequence[_Key]) -> Estimate:
    """Return the unweighted mean over the languages of ``keys``, with an interval."""
    from mrag_eval.metrics import interval_for, stratified_bootstrap

    values, groups = [_rows(system)[key].values.get(metric) for key in keys], _groups(system, keys)
    cells, bounds = [_rows(system)[key].language for key in keys], scale_of(metric).bounds
    if len(set(cells)) == 1:
        return interval_for(values, groups=groups, n_resamples=RESAMPLES, bounds=bounds)
    # the mean leaves out languages without a scored row
    scored = {cell for cell, value in zip(cells, values, strict=True) if value is not None}
    kept = [i for i, cell in enumerate(cells) if cell in scored]
    return stratified_bootstrap(
        [values[i] for i in kept],
        [cells[i] for i in kept],
        groups=None if groups is None else [groups[i] for i in kept],
        bounds=bounds,
        n_resamples=RESAMPLES,
    )


def _parts(system: System, metric: str, keys: Sequence[_Key]) -> dict[str, Estimate]:
    languages = sorted({language for language, _ in keys})
    out = {code: languages_score(system, metric, [key for key in keys if key[0] == code]) for code in languages}
    groups = system.leaves[0].result.known.groups
    for name in groups.members:
        inside = [key for key in keys if groups.of(key[0]) == name]
        if inside and len(languages) > 1:
            out[name] = languages_score(system, metric, inside)
    return out


def behind(system: System, first: System, metric: str, keys: Sequence[_Key]) -> Estimate:
    from mrag_eval.metrics import stratified_bootstrap

    changes = [_rows(system)[key].values[metric] - _rows(first)[key].values[metric] for key in keys]
    cells, bounds = [language for language, _ in keys], scale_of(metric).differences
    return stratified_bootstrap(changes, cells, groups=_groups(system, keys), bounds=bounds, n_resamples=RESAMPLES)


def _unpaired(system: System, metric: str) -> Entry:
    """Return the entry of a system whose score is in the results only: of the task as a whole, or without samples."""
    reason = "no samples (--log_samples), so no test" if system.rows is None else "of the task as a whole: no test"
    if len(system.leaves) == 1:
        leaf = system.leaves[0]
        unscored = sum((leaf.result.unscored.get(metric) or {}).values())
        return Entry(system.run, system.mode, leaf.result.metrics[metric], unscored, remark=reason)
    found = {leaf.task: leaf.result.metrics[metric] for leaf in system.leaves if metric in leaf.result.metrics}
    lacking = [leaf.task for leaf in system.leaves if leaf.task not in found and metric in leaf.result.unscored]
    lacking += [task for task, score in found.items() if score.value is None]
    values = [score.value for score in found.values() if score.value is not None]
    mean = Estimate(None if lacking else sum(values) / len(values), n=sum(score.n for score in found.values()))
    unscored = sum(sum((leaf.result.unscored.get(metric) or {}).values()) for leaf in system.leaves)
    what = f"no mean, as {', '.join(lacking)} has no value" if lacking else f"mean of {number_of(len(values), 'task')}"
    return Entry(system.run, system.mode, mean, unscored, remark=f"{reason}; {what}")
