"""The tests behind findings: languages that stand out, by peeling, and systems that differ, by sign flips."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import combinations, takewhile
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Key = TypeVar("Key")
# Chance of any false claim on a page.
LEVEL = 0.05
# Questions that a language needs to be tested.
LEAST = 10
# Resamples of a test, at most and at least, and those whose tail is fitted where fewer are as extreme.
_MOST, _FEWEST, _TAIL = 10_000, 1_000, 100


class Peeled(NamedTuple):
    """A language that stands out: its p-value, -1 if it is below the ``others`` that it was compared with, else 1."""

    language: str
    p: float
    side: int
    others: tuple[str, ...]


@dataclass(frozen=True)
class Questions:
    """The values of questions by language: (N,) each, ``groups`` that span languages are one question in several.

    Questions of one group and language are one value, their mean.
    """

    values: Array
    languages: NDArray[Any]
    groups: NDArray[np.int64]
    same: bool
    names: list[str]

    @classmethod
    def of(cls, rows: Iterable[tuple[str, str, float]], left_out: Iterable[str] = ()) -> Questions:
        """Return the values of languages with enough questions, from each row's language, group and value."""
        units: dict[tuple[str, str], list[float]] = {}
        for language, group, value in rows:
            units.setdefault((language, group), []).append(value)
        sizes = Counter(language for language, _ in units)
        few = {language for language, n in sizes.items() if n < LEAST} | {*left_out}
        kept = sorted(unit for unit in units if unit[0] not in few)
        _, groups = np.unique([group for _, group in kept] or [""], return_inverse=True)
        groups = groups[: len(kept)]
        shared = np.bincount(groups)[groups] > 1
        means = np.array([sum(units[unit]) / len(units[unit]) for unit in kept], dtype=np.float64)
        names = [language for language, _ in kept]
        same = bool(len(kept) and shared.mean() > 0.5)
        return cls(means, np.array(names, dtype=object), groups, same, sorted({*names}))

    def without(self, languages: Iterable[str]) -> Questions:
        """Return the rows of the other languages."""
        kept = ~np.isin(self.languages, [*languages])
        names = sorted({*self.languages[kept]})
        return Questions(self.values[kept], self.languages[kept], self.groups[kept], self.same, names)


def tail_p(observed: float, draws: Array, least: float = 0.0) -> float:
    """Return (1 + hits) / (1 + draws); where fewer than a hundred draws are as extreme, the tail fitted to the largest.

    Beyond the hundredth largest draw q, P(X > x) is its share times exp((q² - x²) / s), as that of a normal nearly is;
    s is the mean of x² - q² there. Such a p-value is never below ``least``, that of the least likely outcome.
    """
    hits = int((draws >= observed * (1 - 1e-9) - 1e-12).sum())
    if hits >= _TAIL or len(draws) <= 2 * _TAIL:
        return (1 + hits) / (1 + len(draws))
    largest = np.partition(draws, -_TAIL)[-_TAIL:]
    start = float(largest.min())
    # the estimate and its standard error, so that the tail is rather too heavy
    spread = float((largest**2 - start**2).sum()) / (_TAIL - _TAIL**0.5)
    if spread <= 0:
        return (1 + hits) / (1 + len(draws))
    beyond = np.exp(-max(0.0, observed**2 - start**2) / spread)
    return max(least, _TAIL / len(draws) * float(beyond))


def seeded(*parts: Array) -> np.random.Generator:
    """Return a generator seeded by values."""
    told = sha256(b"".join(np.ascontiguousarray(part, dtype=np.float64).tobytes() for part in parts))
    return np.random.default_rng(int.from_bytes(told.digest()[:8], "big"))


def peel(parts: Sequence[Questions]) -> list[Peeled]:
    """Return the languages that stand out over one benchmark or several, the first first, until p is above 5%.

    t is the mean of a language less that of the others, over its standard error; over several benchmarks their t are
    added, over the root of their number. The reference is the largest |t| with languages permuted over the questions of
    each benchmark: within the question, where most are asked in several languages. The extreme language is set aside
    and the rest is tested again, while three are left (a closed procedure: its chance of any false claim is its level).
    With three languages or fewer every two are compared, by Holm.
    """
    from mrag_eval.metrics import holm

    left = sorted({name for part in parts for name in part.names})
    if not left:
        return []
    rng = seeded(*(part.values for part in parts))
    if len(left) <= 3:
        pairs = list(combinations(left, 2))
        found = [_extreme(parts, pair, rng) for pair in pairs]
        adjusted = holm([step.p for step in found])
        low = [step if step.side < 0 else Peeled(step.others[0], step.p, -1, (step.language,)) for step in found]
        steps = [step._replace(p=float(p)) for step, p in zip(low, adjusted, strict=True) if p is not None]
        return sorted((step for step in steps if step.p <= LEVEL), key=lambda step: step.p)
    out: list[Peeled] = []
    while len(left) >= 3:
        step = _extreme(parts, left, rng)
        if step.p > LEVEL:
            break
        out.append(step)
        left = [name for name in left if name != step.language]
    return out


def confirmed(parts: Sequence[Questions], steps: Sequence[Peeled], level: float) -> list[Peeled]:
    """Return the languages that stand out at a level, and do so too against those alone that do not.

    Until better languages are set aside, the others are behind them, and one may be named for that alone.
    """
    kept = list(takewhile(lambda step: step.p <= level, steps))
    rest = {name for part in parts for name in part.names} - {step.language for step in kept}
    if len(rest) < 2:
        return kept
    rng = seeded(*(part.values for part in parts))
    again = [_extreme(parts, sorted({step.language, *rest}), rng, step.language) for step in kept]
    return [step for step, one in zip(kept, again, strict=True) if one.p <= level and one.side == step.side]


def _extreme(parts: Sequence[Questions], names: Sequence[str], rng: np.random.Generator, of: str = "") -> Peeled:
    """Return the language with the largest |t| among these, or the one language ``of`` which it is asked."""
    number = _MOST if len(parts) == 1 else max(_FEWEST, _MOST // 4)
    observed, draws, times = np.zeros(len(names)), np.zeros((number, len(names))), np.zeros(len(names))
    for part in parts:
        one, many, has = _standardised(part, names, number, rng)
        observed, draws, times = observed + one, draws + many, times + has
    scale = np.sqrt(np.maximum(times, 1.0))
    found = np.abs(observed / scale)
    at = names.index(of) if of else int(found.argmax())
    p = tail_p(float(found[at]), np.abs(draws / scale).max(axis=1))
    others = tuple(name for name in names if name != names[at])
    return Peeled(names[at], p if times[at] else 1.0, 1 if observed[at] > 0 else -1, others)


def _standardised(
    part: Questions, names: Sequence[str], number: int, rng: np.random.Generator
) -> tuple[Array, Array, Array]:
    """Return t of each language (L,), of permuted ones (B, L), and 1 where the rows have the language and another."""
    place = {name: i for i, name in enumerate(names)}
    codes = np.array([place.get(name, -1) for name in part.languages], dtype=np.int64)
    inside = codes >= 0
    if part.same:
        inside &= np.bincount(part.groups, inside, len(part.groups) + 1)[part.groups] > 1
    zero = np.zeros(len(names))
    values, codes, groups = part.values[inside], codes[inside], part.groups[inside]
    if len(values) < 3 or len(np.unique(codes)) < 2:
        return zero, np.zeros((number, len(names))), zero
    if part.same:
        _, groups = np.unique(groups, return_inverse=True)
        sizes = np.bincount(groups)
        values = values - (np.bincount(groups, values) / sizes)[groups]
        order = np.lexsort((codes, groups))
        asked: dict[tuple[int, ...], list[Any]] = {}
        for question in np.split(order, np.cumsum(sizes)[:-1]):
            asked.setdefault(tuple(codes[question]), []).append(question)
        blocks = [np.array(questions) for questions in asked.values()]
    else:
        values, blocks = values - values.mean(), [np.arange(len(values)).reshape(-1, 1)]
    lost = sum(len(block) for block in blocks) if part.same else 1
    spread = float(np.sqrt((values**2).sum() / (len(values) - lost)))
    if spread <= 1e-12:
        return zero, np.zeros((number, len(names))), zero
    n = np.bincount(codes, minlength=len(names)).astype(np.float64)
    has = ((n > 0) & (n < len(values))).astype(np.float64)
    # values sum to 0: the others' sum is the negative of a language's
    weights = has * np.sqrt(len(values) / np.maximum(n * (len(values) - n), 1.0)) / spread
    draws = np.zeros((number, len(names)))
    for block in blocks:
        times = -(-number // len(block))
        labels = rng.permuted(np.broadcast_to(codes[block], (times, *block.shape)), axis=2 if part.same else 1)
        draws += shifted(np.broadcast_to(values[block], labels.shape), np.eye(len(names))[labels])[:number]
    return np.bincount(codes, values, len(names)) * weights, draws * weights, has


def shifted(values: Array, marks: Array) -> Array:
    """Return the sums of ``values`` (R, N, K) over the ``marks`` (R, N, K, L) of every shift by s of the N, (RN, L).

    Of marks in random order each shift is one as well, so that N resamples cost what one does: a circular correlation.
    """
    found = (np.fft.rfft(values, axis=1).conj()[..., None] * np.fft.rfft(marks, axis=1)).sum(axis=2)
    return np.asarray(np.fft.irfft(found, values.shape[1], axis=1).reshape(-1, marks.shape[3]))


def flip_p(differences: Array) -> list[float]:
    """Return the two-sided p of each column's sum (U, K) when the signs of units are flipped at random."""
    rng, out = seeded(differences), []
    for column in differences.T:
        units = column[column != 0]
        if not len(units):
            out.append(1.0)
            continue
        times = -(-_MOST // len(units))
        signs: Array = rng.integers(0, 2, size=(times, len(units), 1, 1)).astype(np.float64) * 2 - 1
        sums = np.abs(shifted(np.broadcast_to(units[None, :, None], signs.shape[:3]), signs))
        out.append(tail_p(abs(float(units.sum())), sums[:_MOST, 0], 2.0 ** (1 - len(units))))
    return out


def association_p(strata: Sequence[Sequence[tuple[bool, bool]]]) -> float:
    """Return the two-sided p of the pairs of marks of units that both hold, when one is drawn anew in each stratum."""
    tables = [np.array(stratum, dtype=np.int64) for stratum in strata]
    rng = seeded(*(table.astype(np.float64) for table in tables))
    sums = np.zeros(_MOST)
    observed = expected = 0.0
    for table in tables:
        n, (first, second) = len(table), table.sum(axis=0)
        observed, expected = observed + float(table.prod(axis=1).sum()), expected + first * second / n
        sums += rng.hypergeometric(first, n - first, second, size=_MOST)
    return tail_p(abs(observed - expected), np.abs(sums - expected))


def share_level(kinds: Mapping[Key, Callable[[float], bool]], level: float = LEVEL) -> dict[Key, float]:
    """Return the level of each kind of finding: an equal share of ``level``.

    A kind says of a level whether it shows everything that it tested there; such a kind passes its share on to the
    others (Holm's procedure over kinds; Bretz et al. 2009), so that the chance of any false claim is at most ``level``.
    """
    full: set[Key] = set()
    while True:
        levels = {kind: level / max(1, len(kinds) - len(full)) for kind in kinds if kind not in full}
        passing = {kind for kind, own in levels.items() if kinds[kind](own)}
        if not passing or passing == {*levels}:
            return {**dict.fromkeys(full, level / max(1, len(kinds))), **levels}
        full |= passing
