"""For whom systems are good: languages that stand out in one benchmark, or over all of a system's."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from mrag_eval.core import is_language, language_name
from mrag_eval.metrics import Estimate
from mrag_eval.report.files._systems import System
from mrag_eval.report.findings._record import Finding, Number
from mrag_eval.report.findings._systems import Seen, few, ranked
from mrag_eval.report.findings._tests import LEVEL, Peeled, Questions, confirmed, peel
from mrag_eval.report.tables._leaderboard import languages_score
from mrag_eval.scoring import marked_by_controls

# Whether all languages ask the same -> what is said of a language that is below the others, and above.
_SIDES = {True: ("falls behind", "is ahead of"), False: ("worse than", "better than")}


@dataclass(frozen=True)
class _Look:
    """Languages of one system in one benchmark, or over several; ``share`` is its part of the level."""

    seen: tuple[Seen, ...]
    rows: tuple[Questions, ...]
    share: float

    @property
    def least(self) -> float:
        """Return about the smallest distance of a language from the others that is named in four of five."""
        quantiles = NormalDist().inv_cdf(1 - LEVEL / 4 * self.share / len(self.rows[0].names)) + NormalDist().inv_cdf(
            0.8
        )
        values, count = self.rows[0].values, len(self.rows[0].names)
        return quantiles * float(values.std() / np.sqrt(len(values) / count * (1 - 1 / count)))

    def shown(self, level: float, known: Collection[str]) -> list[Peeled]:
        """Return the languages that stand out at a level of the kind, those aside that are ``known``."""
        rows = [one.without(known) if known else one for one in self.rows]
        return confirmed(rows, peel(rows), level * self.share)


class Languages:
    """Look for languages that stand out, in every benchmark of every system and over all of a system's benchmarks."""

    def __init__(self, shown: Sequence[Seen]) -> None:
        tables = [(one, self._rows(one)) for one in ranked(shown)]
        tables = [(one, rows) for one, rows in tables if len(rows.names) > 1]
        by_system: dict[str, list[tuple[Seen, Questions]]] = {}
        for one, rows in tables:
            by_system.setdefault(one.system.run + one.system.mode, []).append((one, rows))
        pooled = [own for own in by_system.values() if len(own) > 1]
        half = 0.5 if pooled else 1.0
        whole = [
            _Look(tuple(one for one, _ in own), tuple(rows for _, rows in own), half / max(1, len(pooled)))
            for own in pooled
        ]
        self.looks = [*whole, *(_Look((one,), (rows,), half / max(1, len(tables))) for one, rows in tables)]
        self.tests = len(self.looks)

    @staticmethod
    def _rows(one: Seen) -> Questions:
        return Questions.of(
            ((key[0], row.group, one.sign * row.values[one.metric]) for key, row in one.rows.items()),
            marked(one.system, one.metric),
        )

    def say(self, level: float) -> list[Finding]:
        """Return the languages that are behind the others at a level, and those that are ahead."""
        claims: dict[int, dict[str, list[tuple[_Look, Peeled]]]] = {-1: {}, 1: {}}
        whole: list[tuple[_Look, Peeled]] = []
        for look in self.looks:
            # a language that is named over all benchmarks is set aside in each, where the others would be behind it
            known = {step.language for one, step in whole if look.seen[0] in one.seen}
            for step in look.shown(level, known):
                whole += [(look, step)] if len(look.seen) > 1 else []
                claims[step.side].setdefault(step.language, []).append((look, step))
        return [self._said(side, own, level) for side, own in claims.items() if own]

    def _said(self, side: int, own: Mapping[str, Sequence[tuple[_Look, Peeled]]], level: float) -> Finding:
        """Return the language that most looks name, where it is furthest from the others, and the other ones."""
        first = max(own, key=lambda code: (max(len(look.seen) for look, _ in own[code]), -own[code][0][1].p))
        look, step = max(own[first], key=lambda claim: len(claim[0].seen))
        every = {one.name for other in self.looks for one in other.seen}
        systems = {one.name: None for other, _ in own[first] for one in other.seen}
        where = "" if len(every) == 1 else " with every system" if {*systems} == every else f" with {few([*systems])}"
        if len({one.benchmark for other in self.looks for one in other.seen}) > 1:
            where += f" on {look.seen[0].benchmark}" if len(look.seen) == 1 else f" over {len(look.seen)} benchmarks"
        pairs = [(one, self._score(one, [first]), self._score(one, step.others)) for one in look.seen]
        known = [(one, a, b) for one, a, b in pairs if a.value is not None and b.value is not None]
        one, score, others = max(known, key=lambda ends: abs(ends[1].or_else(0.0) - ends[2].or_else(0.0)))
        same = all(rows.same for rows in look.rows)
        rest = [named(code) for code in own if code != first]
        words = {
            "language": named(first),
            "side": _SIDES[same][side > 0],
            "rivals": named(step.others[0])
            if len(step.others) == 1
            else "the other languages"
            if same
            else "the others",
            "where": where,
            "metric": one.metric,
            "corrected": f", corrected for {self.tests} looks" if self.tests > 1 else "",
            "also": f"; so {'does' if len(rest) == 1 else 'do'} {few(rest)}" if rest else "",
        }
        p = min(1.0, step.p * LEVEL / level / look.share)
        numbers = {"score": Number.of(score, one.metric, p), "others": Number.of(others, one.metric)}
        rows = {"tasks": [leaf.label for seen in look.seen for leaf in seen.system.leaves], "language": first}
        template = "behind" if same else "questions"
        return Finding("whom", template, words, numbers, tuple(own), "peeling by permutation", rows)

    @staticmethod
    def _score(one: Seen, languages: Collection[str]) -> Estimate:
        keys = sorted(key for key in one.rows if key[0] in languages)
        return languages_score(one.system, one.metric, keys) if keys else Estimate(None)


def marked(system: System, metric: str) -> dict[str, str]:
    """Return the languages in which the controls mark a metric, with what they say."""
    tables = [marked_by_controls(leaf.result.scores.controls, metric) for leaf in system.leaves]
    return {code: why for found in tables for code, why in found.items()}


def named(code: str) -> str:
    """Return the name of a language; what is none is named by its code."""
    return language_name(code) if is_language(code) else code
