"""The results of strategies: the table, the front of quality, latency and cost, and sentences that follow from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mrag_eval._front._strategy_merges import MergeGain, merges_sentence, merges_text
from mrag_eval.config import SHOWN
from mrag_eval.core import Displayed, decimal, interval_text, p_text, pipe_table, points, score_text
from mrag_eval.platform import number_of
from mrag_eval.scoring import scale_of

if TYPE_CHECKING:
    from pandas import DataFrame

    from mrag_eval.metrics import Estimate
    from mrag_eval.report import Difference

ALPHA = 0.05
# Questions that may fail to show a larger difference than this are too few to call a strategy good enough.
COARSE = 0.1
# Seconds that count as none: a busy machine is no strategy's fault.
_STEP = 0.1
_SPENT = "s, tokens: retrieval and models, for one question"


@dataclass(frozen=True)
class Measured:
    """A strategy that ran.

    Attributes:
        settings: those that tell it from others.
        quality, order: its score by the metric that decides, and its mrr.
        pairs: ``de->en`` -> the quality over these questions.
        seconds: of retrieval for one question; ``at_least`` if a cache answered for a model.
        tokens, money: of one question, money in US dollars; None if a model has no price.
        bound: whether the loop of agents may take less.
    """

    name: str
    settings: Mapping[str, Any]
    quality: Estimate
    order: Estimate | None = None
    pairs: Mapping[str, Estimate] = field(default_factory=dict)
    seconds: float = 0.0
    at_least: bool = False
    tokens: float = 0.0
    money: float | None = None
    bound: bool = False

    @property
    def value(self) -> float:
        return self.quality.or_else(0.0)


def ranked(measured: Sequence[Measured]) -> list[Measured]:
    """Return the strategies by quality, equals by cost, latency and place: the default comes first."""
    order = dict(zip((one.name for one in measured), _prices(measured), strict=True))
    return sorted(measured, key=lambda one: (-one.value, order[one.name]))


def _prices(measured: Sequence[Measured]) -> list[tuple[float, float, int]]:
    """Return cost, latency and place of each; cost is money if that is known of all of them, else tokens.

    Latencies count as the shortest one that they are less than a tenth of a second above.
    """
    priced = all(one.money is not None for one in measured)
    costs = [one.money if priced and one.money is not None else one.tokens for one in measured]
    counted: dict[float, float] = {}
    start = -inf
    for seconds in sorted(one.seconds for one in measured):
        counted[seconds] = start = start if seconds - start < _STEP else seconds
    return [
        (round(cost, 9), counted[one.seconds], place)
        for place, (one, cost) in enumerate(zip(measured, costs, strict=True))
    ]


@dataclass(frozen=True, repr=False)
class Strategies(Displayed):
    """The outcome of :func:`mrag_eval.strategies`; it shows itself as a table and sentences.

    Attributes:
        metric: the one that decides.
        measured: the strategies that ran, the default first.
        tests: two names -> the second less the first, which ranks higher; all of them are one family.
        refused: name -> why a strategy did not run.
        notes: lines on questions and documents, on those that the scores are over if not all, and on what failed.
        path: the result file, for ``mrag-eval report``.
        tasks: the folder of the strategies' task files.
        merges: what merges gain over ``score``.
    """

    metric: str
    measured: tuple[Measured, ...]
    tests: Mapping[tuple[str, str], Difference] = field(repr=False)
    refused: Mapping[str, str]
    notes: tuple[str, ...]
    path: Path
    tasks: Path
    merges: tuple[MergeGain, ...] = ()

    @property
    def best(self) -> Measured:
        """Return the strategy of the highest quality; among equals the cheapest."""
        return ranked(self.measured)[0]

    @property
    def good_enough(self) -> tuple[Measured, ...]:
        """Return the best and all that are not shown to be worse and are near it: of the front, the cheapest first.

        Near is a difference that is smaller than what this many questions show with 80% power, if they show 10 points.
        Otherwise a strategy that is not shown to be worse is open: there are too few questions. A merge whose gain over
        ``score`` is not shown is none of them.
        """
        unshown = {gain.name: gain.base for gain in self.merges if not gain.is_shown}
        kept = tuple(one for one in self._near if one.name not in unshown)
        return kept or tuple(one for one in self.measured if one.name == unshown.get(self.best.name, self.best.name))

    @property
    def _near(self) -> tuple[Measured, ...]:
        front, unsure = self.front, self.open
        kept = [
            ((one not in front, *price[:2], -one.value, price[2]), one)
            for price, one in self._priced
            if one not in unsure and not self._is_worse(one)
        ]
        return tuple(one for _, one in sorted(kept, key=lambda part: part[0]))

    @property
    def open(self) -> tuple[Measured, ...]:
        """Return the strategies that are neither shown to be worse than the best nor near it."""
        coarse = COARSE if scale_of(self.metric).percent else inf
        return tuple(one for one in self.measured if not self._is_worse(one) and _is_open(self.less_best(one), coarse))

    @property
    def front(self) -> tuple[Measured, ...]:
        """Return the strategies than which no other is as good in quality, latency and cost, and better in one."""
        sides = [(-one.value, *price[:2]) for price, one in self._priced]
        return tuple(
            one
            for one, mine in zip(self.measured, sides, strict=True)
            if not any(other != mine and all(a <= b for a, b in zip(other, mine, strict=True)) for other in sides)
        )

    @property
    def frame(self) -> DataFrame:
        """Return one row a strategy: its settings, quality, latency and cost, and its difference to the best."""
        from pandas import DataFrame

        front, enough = self.front, self.good_enough
        return DataFrame(
            [self._row(one) | {"front": one in front, "good_enough": one in enough} for one in self.measured]
        )

    def less_best(self, one: Measured) -> Difference | None:
        """Return the difference of a strategy to the best, as it was tested; None for the best."""
        return self.tests.get((self.best.name, one.name))

    @property
    def sentences(self) -> tuple[str, ...]:
        """Return what follows: the best beside the default, and whether a cheaper one is good enough."""
        best, default, enough = self.best, self.measured[0], self.good_enough
        merges = [merges_sentence(self.merges, base) for base in dict.fromkeys(gain.base for gain in self.merges)]
        return (self._beside(best, default), self._decided(best, enough[0]), *merges)

    def _beside(self, best: Measured, default: Measured) -> str:
        what = "shows the document for" if self.metric == SHOWN else f"has {self.metric}"
        if best is default:
            return f"{best.name} (the default) {what} {self._shown(best)}, and no other more"
        lost = {
            pair: round(own.value - theirs.value, 9)
            for pair, own in best.pairs.items()
            if own.value is not None and (theirs := default.pairs.get(pair)) is not None and theirs.value is not None
        }
        widest, *others = sorted(lost, key=lambda pair: -lost[pair]) or [""]
        told = self._is_worse(default) and others and lost[widest] > max(0.0, lost[others[0]])
        gap = f"the gap is {widest.replace('->', ' -> ')}; " if told and self._apart(widest, best, default) else ""
        # no minus before a difference that is rounded to none
        later = decimal(round(best.seconds - default.seconds, 1) + 0.0, sign="+")
        beside = f"{default.name} (the default) {self._shown(default)}"
        return f"{best.name} {what} {self._shown(best)}, {beside}; {gap}{later} s"

    @staticmethod
    def _apart(pair: str, best: Measured, default: Measured) -> bool:
        """Return whether the intervals of two strategies on a pair do not meet, so that few questions tell no gap."""
        low, high = best.pairs[pair].low, default.pairs[pair].high
        return low is not None and high is not None and low > high

    def _decided(self, best: Measured, chosen: Measured) -> str:
        enough = self._near
        if len(self.measured) == 1:
            return f"{best.name} is the only one that ran"
        unsure = _few([one.name for one in self.open])
        if len(enough) == 1 and self.open:
            return f"no winner: too few questions to tell {best.name} from {unsure}{self._unseen(self.open)}"
        if len(enough) == 1:
            corrected = f"p <= .05, {self._corrected}"
            return f"winner: {best.name}; every other is shown to be worse ({corrected})"
        others = [found for one in enough if (found := self.less_best(one)) is not None]
        names = ", ".join(one.name for one in enough)
        besides = f"; too few questions to tell it from {unsure}" if unsure else ""
        if not any(found.better or found.worse for found in others):
            costs = f"{chosen.name} costs no more than the others"
            return f"no winner: {names} are equal on every question; {costs}{besides}"
        seen = self._unseen(enough)
        if chosen is best:
            names = ", ".join(one.name for one in enough if one is not best)
            return f"no winner: {names} not shown to be worse; {best.name} is also the cheapest of these{seen}{besides}"
        cheap, found = chosen, self.less_best(chosen)
        prices = {one.name: price for price, one in self._priced}
        (cost, time, _), (most, longest, _) = prices[cheap.name], prices[best.name]
        less = "is cheaper" if cost < most else "is faster" if time < longest else "costs no more"
        return (
            f"no winner: {cheap.name} {less} than {best.name} and is good enough: {self._shown(cheap)} against "
            f"{self._shown(best)} is no significant difference ({_p(found)}){seen}{besides}"
        )

    @property
    def _corrected(self) -> str:
        return f"corrected for {number_of(len(self.tests), 'pair')}"

    def _unseen(self, those: Sequence[Measured]) -> str:
        """Say how large a difference to the best these questions may fail to show."""
        known = [found for one in those if (found := self.less_best(one)) is not None]
        widest = max((max(_least(found), abs(found.difference or 0.0)) for found in known), default=0.0)
        scale = scale_of(self.metric)
        if widest == inf or (scale.percent and widest >= 1):
            return "; no difference at all would be seen"
        return f"; a difference under {points(widest, scale=scale)} points would not be seen"

    def _shown(self, one: Measured) -> str:
        scale = scale_of(self.metric)
        return points(one.value, scale=scale) + (" %" if scale.percent else "")

    @property
    def _priced(self) -> list[tuple[tuple[float, float, int], Measured]]:
        return list(zip(_prices(self.measured), self.measured, strict=True))

    def _is_worse(self, one: Measured) -> bool:
        found = self.less_best(one)
        if found is None or found.p_adjusted is None:
            return False
        return found.p_adjusted <= ALPHA and (found.difference or 0.0) < 0

    def _row(self, one: Measured) -> dict[str, Any]:
        found, quality = self.less_best(one), one.quality
        return {
            "strategy": one.name,
            **one.settings,
            **{key: getattr(quality, key) for key in ("value", "low", "high", "n")},
            "mrr": None if one.order is None else one.order.value,
            "less_best": None if found is None else found.difference,
            "less_best_low": None if found is None else found.low,
            "less_best_high": None if found is None else found.high,
            "p_adjusted": None if found is None else found.p_adjusted,
            "seconds": one.seconds,
            "tokens": one.tokens,
            "usd": one.money,
        }

    @property
    def text(self) -> str:
        """Return notes, the table, what merges gain, what did not run, and the sentences."""
        names: dict[str, list[str]] = {}
        for name, why in self.refused.items():
            names.setdefault(why, []).append(name)
        left = "\n".join(["did not run", *(f"  {_few(those)}: {why}" for why, those in names.items())])
        return "\n\n".join(
            [
                "\n".join(self.notes),
                self._table(),
                *([merges_text(self.merges)] if self.merges else []),
                *([left] if names else []),
                "\n".join(self.sentences),
            ]
        )

    def _table(self) -> str:
        scale, front, best = scale_of(self.metric), self.front, self.best
        priced = any(one.money is not None for one in self.measured)
        head = (
            "strategy",
            self.metric,
            "mrr",
            "less the best",
            "p",
            "s",
            "tokens",
            *(["USD / 1,000"] if priced else []),
        )
        body = []
        for one in self.measured:
            found, quality = self.less_best(one), one.quality
            less = "best" if one is best else ""
            if found is not None:
                less = f"{points(found.difference, '+', scale)} {interval_text(found.low, found.high, scale)}"
            body.append(
                [
                    one.name + (" *" if one in front else ""),
                    score_text(quality.value, quality.low, quality.high, scale=scale.factor),
                    "" if one.order is None else score_text(one.order.value, undefined=""),
                    less,
                    _p(found, ""),
                    (">= " if one.at_least else "") + decimal(one.seconds, 3),
                    ("<= " if one.bound else "") + decimal(one.tokens, 0),
                    *(["" if one.money is None else decimal(1000 * one.money, 2)] if priced else []),
                ]
            )
        notes = (
            "* no other is as good in quality, latency and cost, and better in one of them",
            " · ".join([*([f"p: paired, {self._corrected}"] if self.tests else []), _SPENT]),
        )
        return "\n".join([pipe_table(head, body, "l" + "r" * (len(head) - 1)), *notes])


def _is_open(found: Difference | None, coarse: float) -> bool:
    # what is equal on every question is not told apart
    if found is None or not (found.better or found.worse):
        return False
    seen = _least(found)
    return abs(found.difference or 0.0) > seen or seen > coarse


def _least(found: Difference) -> float:
    """Return the smallest difference that these questions show; infinite if they show none."""
    return inf if found.detectable is None else found.detectable


def _p(found: Difference | None, sign: str = "p = ") -> str:
    return "" if found is None or found.p_adjusted is None else f"{sign}{p_text(found.p_adjusted)}"


def _few(names: Sequence[str], most: int = 3) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
