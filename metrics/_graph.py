"""Families of tests that pass their level on: sequentially rejective procedures on weighted graphs."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mrag_eval.metrics._resampling import Array

# What a part of a hierarchy gets at first, and how much less a less preferred heir inherits.
_SHARES = {"whole": 2.0, "language": 2.0, "pair": 1.0}
_LATER = 1e-3


@dataclass(frozen=True)
class Place:
    """The place of a test in a hierarchy: all rows of what is tested (``of``), one ``language``, or a ``pair``.

    A pair of languages has the language of its questions too.
    """

    of: Hashable
    language: str = ""
    pair: str = ""

    @property
    def level(self) -> str:
        """Return the level of the hierarchy: ``whole``, ``language`` or ``pair``."""
        return "pair" if self.pair else "language" if self.language else "whole"


def graphical(p_values: Sequence[float], shares: Array, passes: Array, alpha: float) -> tuple[list[float], list[float]]:
    """Return adjusted p-values of m tests, and the level of each at its decision, if rejected tests pass theirs on.

    The sequentially rejective procedure of Bretz, Maurer, Brannath & Posch (2009, Statistics in Medicine 28, 586-604),
    which bounds the chance of any false rejection by ``alpha`` whatever the dependence. The test with the smallest p_i
    / w_i is rejected if that is at most alpha. Then w_j grows by w_i g_ij, and g_jk becomes (g_jk + g_ji g_ik) / (1 -
    g_ji g_ij). A test is rejected if and only if its p-value is at most its level.

    Args:
        shares: (m,) share w of alpha that each test has at first; their sum is at most 1.
        passes: (m, m) shares g of its level that a rejected test passes to each other one; rows sum to at most 1.
    """
    p, weight, graph = np.asarray(p_values, dtype=np.float64), shares.astype(np.float64), passes.astype(np.float64)
    adjusted, levels, left = np.ones(len(p)), np.full(len(p), -1.0), np.ones(len(p), dtype=bool)
    largest = 0.0
    while left.any():
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = np.where(left & (weight > 0), p / weight, np.inf)
        i = int(ratios.argmin())
        rejected = bool(p[i] <= alpha * weight[i]) and largest <= alpha
        if not rejected and (levels[left] < 0).any():
            # no test is rejected from here on: these are the levels of the decision
            levels[left] = alpha * weight[left]
        largest = max(largest, float(ratios[i]))
        if largest >= 1:
            break
        # rounding does not separate a p-value from its level
        adjusted[i] = min(largest, alpha) if rejected else max(largest, math.nextafter(alpha, 1.0))
        levels[i] = alpha * weight[i] if rejected else levels[i]
        left[i] = False
        weight = weight + weight[i] * graph[i]
        loop = graph[:, i] * graph[i]
        with np.errstate(divide="ignore", invalid="ignore"):
            moved = (graph + np.outer(graph[:, i], graph[i])) / (1 - loop)[:, None]
        graph = np.where(left[:, None] & left & (loop < 1)[:, None], moved, 0.0)
        np.fill_diagonal(graph, 0.0)
    return adjusted.tolist(), levels.tolist()


def hierarchy(places: Sequence[Place]) -> tuple[Array, Array]:
    """Return shares (m,) and passes (m, m) of :func:`graphical` for tests at these places.

    Everything that is tested has the same share. Two fifths of it test the whole, two are shared by the languages, one
    by the pairs; a level without tests leaves its part to the others. A whole passes its share to the languages, a
    language to its pairs, a pair to the other pairs. What is left goes to the rest of the same hierarchy, then to the
    others. Tests that are alone in their hierarchies have Holm's procedure.
    """
    members: dict[Hashable, dict[str, list[int]]] = {}
    for i, place in enumerate(places):
        members.setdefault(place.of, {}).setdefault(place.level, []).append(i)
    shares, passes = np.zeros(len(places)), np.zeros((len(places), len(places)))
    for levels in members.values():
        for level, own in levels.items():
            part = _SHARES[level] / sum(_SHARES[name] for name in levels)
            shares[own] = part / len(own) / len(members)
    for i, place in enumerate(places):
        levels, left = members[place.of], 1.0
        pairs, languages = levels.get("pair", []), levels.get("language", [])
        below = [j for j in pairs if places[j].language == place.language] if place.level == "language" else pairs
        first = {"whole": [languages, pairs], "language": [below, languages, pairs], "pair": [pairs, languages]}
        inside = {j for own in levels.values() for j in own}
        outside = np.where([j in inside for j in range(len(places))], 0.0, shares)
        for heirs in (*first[place.level], sorted(inside)):
            weights = np.zeros(len(places))
            weights[[j for j in heirs if j != i]] = 1.0
            if weights.any():
                passes[i] += left * weights / weights.sum()
                left *= _LATER
        if outside.any():
            passes[i] += left * outside / outside.sum()
        if passes[i].any():
            passes[i] /= passes[i].sum()
    return shares, passes


def able(at_worst: Mapping[int, float], places: Sequence[Place], alpha: float) -> tuple[set[int], float]:
    """Return the most tests that the :func:`hierarchy` of them could reject at once, and the level for one more.

    ``at_worst`` are the p-values with the worst outcome there is. Each has to be rejected with its first share, without
    help of the others (Tarone 1990, Biometrics 46).
    """
    members: dict[Hashable, dict[str, list[int]]] = {}
    for i in at_worst:
        members.setdefault(places[i].of, {}).setdefault(places[i].level, []).append(i)
    least = {of: min(at_worst[i] for own in levels.values() for i in own) for of, levels in members.items()}
    order = sorted(least, key=lambda of: least[of])
    count = max((k for k, of in enumerate(order, 1) if least[of] * k <= alpha), default=0)
    kept: set[int] = set()
    for of in order[:count]:
        levels = dict(members[of])
        while levels:
            found = {}
            for level, own in levels.items():
                part = alpha / count * _SHARES[level] / sum(_SHARES[name] for name in levels)
                ordered = sorted(own, key=lambda i: at_worst[i])
                found[level] = ordered[
                    : max((k for k, i in enumerate(ordered, 1) if at_worst[i] * k <= part), default=0)
                ]
            empty = [level for level in ("pair", "language", "whole") if level in levels and not found[level]]
            if not empty:
                kept |= {i for own in found.values() for i in own}
                break
            del levels[empty[0]]
    return kept, alpha / (1 + len(kept))
