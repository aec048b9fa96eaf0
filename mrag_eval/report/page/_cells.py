"""Scores by language and IR mode, and by tier of languages and IR mode, of every system."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from mrag_eval.core import base_language, language_tier
from mrag_eval.metrics import Estimate
from mrag_eval.report.files._systems import System
from mrag_eval.report.page._parts import percent
from mrag_eval.report.tables._leaderboard import TIERS, languages_score

Point = dict[str, Any]


def language_points(systems: Sequence[System], seed: int = 0) -> list[Point]:
    """Return a point for every system, metric and language: over its rows, or from its results without samples."""
    out = []
    for system in systems:
        base_point = {"benchmark": system.benchmark, "run": system.run, "mode": system.mode}
        for metric in _metrics(system):
            for language, score in _by_language(system, metric, seed).items():
                if score.value is not None:
                    out.append(base_point | {"metric": metric, "language": language} | percent(score))
    return out


def tier_points(systems: Sequence[System], seed: int = 0) -> tuple[list[Point], list[str]]:
    """Return a point for every system, metric and tier, and notes on languages left out.

    A tier's score is the unweighted mean over its languages. Only languages are counted that all systems of the
    benchmark with the metric were run in, so that every mean is over the same set.
    """
    out, left = [], []
    together: dict[tuple[str, str], list[System]] = defaultdict(list)
    for system in systems:
        if system.rows is not None:
            for metric in _metrics(system):
                together[system.benchmark, metric].append(system)
    for (benchmark, metric), having in together.items():
        sets = [{key[0] for key, row in (s.rows or {}).items() if metric in row.values} for s in having]
        common = set.intersection(*sets)
        for name in TIERS:
            inside = {code for code in common if language_tier(base_language(code)) == name}
            missing = sorted(
                {code for one in sets for code in one if language_tier(base_language(code)) == name} - inside
            )
            if missing:
                left.append(f"{benchmark}, {metric}, {name}: without {', '.join(missing)}, which not every mode has")
            if not inside or len(set().union(*sets)) < 2:
                continue
            for system in having:
                keys = sorted(key for key in system.rows or {} if key[0] in inside)
                point = {"benchmark": benchmark, "run": system.run, "mode": system.mode, "metric": metric, "tier": name}
                score = percent(languages_score(system, metric, keys, seed))
                out.append(point | score | {"languages": ", ".join(sorted(inside))})
    return out, left


def _metrics(system: System) -> list[str]:
    """Return the metrics of the system's rows, or of its results if there are no samples."""
    if system.rows is None:
        return list(dict.fromkeys(name for leaf in system.leaves for name in leaf.result.metrics))
    return list(dict.fromkeys(name for row in system.rows.values() for name in row.values))


def _by_language(system: System, metric: str, seed: int) -> dict[str, Estimate]:
    if system.rows is not None:
        by: dict[str, list[tuple[str, str]]] = defaultdict(list)
        for key, row in system.rows.items():
            if metric in row.values or metric in row.unscored:
                by[key[0]].append(key)
        return {language: languages_score(system, metric, keys, seed) for language, keys in sorted(by.items())}
    out: dict[str, Estimate] = {}
    for leaf in system.leaves:
        score = leaf.result.metrics.get(metric)
        if score is None:
            continue
        languages = list(leaf.result.scores.query_langs)
        found = {languages[0]: score} if len(languages) == 1 else score.cells("query_lang")
        for language, cell in found.items():
            # several tasks in one language cannot be pooled without their rows
            out[language] = cell if language not in out else Estimate(None)
    return out
