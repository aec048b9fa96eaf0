"""Simulate how a gate shares its level, and what its tests do with few or unlike rows.

    python benchmarks/gate_levels.py              2,000 gates a row
    python benchmarks/gate_levels.py --quick      20, for a smoke test

Prints five tables. The first has the share of gates that fail, and that fail in the language that got worse, by three
procedures: the hierarchy of the gate, one family with Holm's correction, and a fixed sequence (the whole, then all
languages, then all pairs). The second has false alarms where some groups of rows change whole and others in part, at a
mean of 0: an exact test decides if only the first are among the rows. The third has how often a drop of exactly what is
allowed is said to be excluded. The last two have false alarms of gates of many tests: on graded scores, and on
groups of unequal size that change whole.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache

import numpy as np

from mrag_eval.core import pipe_table
from mrag_eval.metrics import PairedCell, Place, hierarchy, holm, margin_tests
from mrag_eval.metrics._family import PairedMeans, ResampledCell, graphical
from mrag_eval.metrics._joint_bootstrap import JointBootstrap
from mrag_eval.metrics._paired_shares import BoundedMean, PairedShares

LEVEL = 0.05
LANGUAGES, DOCUMENTS, ROWS, METRICS = 10, 2, 50, 3
# Share of the answers that change without a drop.
CHANGE = 0.3
RESAMPLES = 400
# Tests of a gate: ten rules, thirty, and in effect ten and thirty with ten languages each.
TESTS = (10, 30, 200, 600)
# Standard errors that a mean has to be above 0 to be tested at all: no critical value of ten tests is below.
ABOVE = 1.8
Draw = Callable[[np.random.Generator], np.ndarray]
Shaped = Callable[[np.random.Generator, tuple[int, int]], np.ndarray]

PLACES = [
    place
    for metric in range(METRICS)
    for place in (
        Place(metric),
        *(Place(metric, str(a)) for a in range(LANGUAGES)),
        *(Place(metric, str(a), f"{a}->{b}") for a in range(LANGUAGES) for b in range(DOCUMENTS)),
    )
]
OF_FIRST = [place.of == 0 and place.language == "0" for place in PLACES]


@cache
def p_value(n: int, lost: int, gained: int, allowed: float = 0.0) -> float:
    """Return the p-value of a drop larger than what is allowed."""
    return PairedShares(n, lost, gained).p_value(allowed)


def p_values(rng: np.random.Generator, drop: np.ndarray) -> list[float]:
    """Return the p-values of a gate's tests; ``drop`` is that of the first metric by language and document."""
    found: list[float] = []
    for metric in range(METRICS):
        own = drop if metric == 0 else np.zeros_like(drop)
        change = np.maximum(CHANGE, own)
        lost = rng.binomial(ROWS, (change + own) / 2)
        gained = rng.binomial(ROWS - lost, np.clip((change - own) / 2 / (1 - (change + own) / 2), 0, 1))
        for size, parts in ((drop.size, (lost, gained)), (DOCUMENTS, (lost, gained)), (1, (lost, gained))):
            counts = (np.atleast_1d(part.reshape(-1, size).sum(axis=1)) for part in parts)
            found += [p_value(size * ROWS, int(a), int(b)) for a, b in zip(*counts, strict=True)]
    return found


def by_hierarchy(p: Sequence[float]) -> np.ndarray:
    return np.array(graphical(p, *SHARED, LEVEL)[0]) <= LEVEL


def by_holm(p: Sequence[float]) -> np.ndarray:
    return np.array([(q or 0.0) <= LEVEL for q in holm(list(p))])


def by_sequence(p: Sequence[float]) -> np.ndarray:
    """Return the rejections, metric by metric at half of the level: languages wait for the whole, pairs for them."""
    out = np.zeros(len(p), dtype=bool)
    for metric in range(METRICS):
        for level in ("whole", "language", "pair"):
            at = [i for i, place in enumerate(PLACES) if place.of == metric and place.level == level]
            corrected = np.array(holm([p[i] for i in at]), dtype=float)
            out[at] = corrected <= LEVEL / METRICS
            if not out[at].any():
                break
    return out


SHARED = hierarchy(PLACES)
PROCEDURES = {"hierarchy": by_hierarchy, "one family": by_holm, "fixed sequence": by_sequence}


def worlds() -> Mapping[str, np.ndarray]:
    """Return the drop of the first metric by language and document, by the name of what happened."""
    none = np.zeros((LANGUAGES, DOCUMENTS))
    first, pair = np.arange(LANGUAGES)[:, None] == 0, np.arange(DOCUMENTS) == 0
    three = np.arange(LANGUAGES)[:, None] < 3
    return {
        "nothing": none,
        "one language −10": none + 0.1 * first,
        "one language −20": none + 0.2 * first,
        "three languages −10": none + 0.1 * three,
        "one pair −30": none + 0.3 * (first & pair),
        "all −3": none + 0.03,
        "all −5": none + 0.05,
    }


def procedures(gates: int) -> Iterator[tuple[str, ...]]:
    """Yield a row for each world: by procedure the share of gates that fail, and that fail in the first language."""
    for name, drop in worlds().items():
        rng = np.random.default_rng(1)
        counts = np.zeros((len(PROCEDURES), 2))
        for _ in range(gates):
            p = p_values(rng, drop)
            for at, decide in enumerate(PROCEDURES.values()):
                found = decide(p)
                counts[at] += found.any(), found[OF_FIRST].any()
        yield name, *(f"{100 * a / gates:.1f} ({100 * b / gates:.1f})" for a, b in counts)


def mixed(gates: int) -> Iterator[tuple[str, ...]]:
    """Yield a row for each number of groups: the share of false alarms by how many groups gain a part of their rows."""
    for groups in (50, 100):
        for part in (0.25, 0.5, 0.75):
            row = []
            for gains in (0.02, 0.1, 0.2):
                rng, alarms = np.random.default_rng(2), 0
                # as many groups gain everything, and so many more lose everything that the mean is 0
                rare = 0.01
                shares = np.array([gains + rare * part, gains, rare, 0.0])
                shares[3] = 1 - shares.sum()
                for gate in range(gates):
                    sizes = rng.multinomial(groups, shares)
                    drops = np.repeat([1.0, -1.0, -part, 0.0], sizes)
                    # a mean that is not above 0 by its own error never alarms
                    if drops.mean() > drops.std() / groups**0.5:
                        alarms += tested(drops, 0.0, gate, 4).shown
                row.append(f"{100 * alarms / gates:.1f}")
            yield f"{groups}", f"{part:.0%}", *row


def tested(drops: np.ndarray, margin: float, seed: int, size: int):  # type: ignore[no-untyped-def]
    """Return the test of groups of rows with these mean drops, as parts of their rows."""
    rows = np.repeat(drops, size)
    if size > 1:
        ends = np.clip(np.round(np.abs(drops) * size), 0, size).astype(int)
        rows = np.concatenate(
            [np.r_[np.full(k, np.sign(d)), np.zeros(size - k)] for d, k in zip(drops, ends, strict=True)]
        )
    units = [str(i) for i in np.repeat(np.arange(len(drops)), size)]
    cell = PairedCell(np.maximum(rows, 0).tolist(), np.maximum(-rows, 0).tolist(), units, margin)
    return margin_tests([cell], n_resamples=RESAMPLES, seed=seed)[0]


def at_margins() -> Iterator[tuple[str, int, float, int, Draw]]:
    """Yield worlds in which the true drop is what is allowed: their name, number of rows or groups, and drop."""
    for chance in (0.02, 0.05):
        for n in (50, 100, 300):

            def rare(rng: np.random.Generator, n: int = n, chance: float = chance) -> np.ndarray:
                return np.where(rng.random(n) < chance, 0.8, rng.normal(0, 0.02, n))

            yield f"{chance:.0%} of {n} graded rows lose .8", n, 0.8 * chance, 1, rare
    for chance in (0.01, 0.02, 0.05):

        def whole(rng: np.random.Generator, chance: float = chance) -> np.ndarray:
            noise = (rng.binomial(10, 0.03, 119) - rng.binomial(10, 0.03, 119)) / 10
            return np.where(rng.random(119) < chance, 1.0, noise)

        yield f"{chance:.0%} of 119 questions × 10 are lost", 119, chance, 10, whole

    def half(rng: np.random.Generator) -> np.ndarray:
        return np.where(rng.random(100) < 0.5, 0.05, rng.uniform(-0.35, 0.45, 100))

    yield "half of 100 graded rows change", 100, 0.05, 1, half
    yield "2% of 100 rows of 0 and 1 are lost", 100, 0.02, 1, lambda rng: (rng.random(100) < 0.02).astype(float)


def margins(gates: int) -> Iterator[tuple[str, ...]]:
    """Yield a row for each world: how often its drop is said to be excluded, and how often no drop at all is."""
    for name, _, drop, size, draw in at_margins():
        rng = np.random.default_rng(3)
        found = [tested(draw(rng), drop, gate, size) for gate in range(gates)]
        said = np.mean([one.upper is not None and one.upper < drop for one in found])
        yield name, f"{100 * drop:.1f}", f"{100 * said:.1f}"


def graded_worlds() -> Mapping[str, Shaped]:
    """Return worlds of graded differences of mean 0: (tests, rows) from a generator and such a shape."""

    def regular(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
        return np.where(rng.random(shape) < 0.5, 0.0, rng.uniform(-0.4, 0.4, shape))

    def rare(chance: float) -> Shaped:
        small = 0.8 * chance / (1 - chance)
        return lambda rng, shape: np.where(rng.random(shape) < chance, -0.8, small + rng.normal(0, 0.02, shape))

    def heavy(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
        return np.clip(0.03 * rng.standard_t(2, shape), -1, 1)

    return {
        "half of the rows change": regular,
        "10% of the rows lose .8": lambda rng, shape: -rare(0.1)(rng, shape),
        "10% of the rows gain .8": rare(0.1),
        "5% of the rows gain .8": rare(0.05),
        "2% of the rows gain .8": rare(0.02),
        "heavy tails": heavy,
    }


def many(tests: int) -> Iterator[tuple[str, ...]]:
    """Yield a row for each world of graded scores: gates that fail by the number of their tests, which are independent
    and share the level equally, from so many ``tests``.
    """
    for name, draw in graded_worlds().items():
        for n in (100, 300):
            rng = np.random.default_rng(4)
            p_values: list[float] = []
            for start in range(0, tests, 5_000):
                drops = draw(rng, (min(5_000, tests - start), n))
                kept = drops[drops.mean(axis=1) > ABOVE * drops.std(axis=1) / n**0.5]
                for block in np.array_split(kept, max(1, len(kept) // 100)):
                    cells = [(np.arange(n), row) for row in block]
                    joint = JointBootstrap.of(cells, n, 10_000, rng)
                    for at, row in enumerate(block):
                        both = PairedMeans(ResampledCell(joint, at), BoundedMean(row, np.ones(n), 1.0))
                        p_values.append(both.p_value(0.0))
            found = np.array(p_values)
            alone = [(found <= LEVEL / k).sum() / tests for k in TESTS]
            yield name, f"{n}", *(f"{100 * (1 - (1 - p) ** k):.1f}" for p, k in zip(alone, TESTS, strict=True))


def unequal(gates: int) -> Iterator[tuple[str, ...]]:
    """Yield a row for each number and size of groups that change whole: the most false alarms of one test at a drop of
    what is allowed, and how often this drop is said to be excluded at most, of three shares of changes.
    """
    for groups in (30, 100):
        every = np.arange(groups)
        for name, sizes in (
            ("2 to 10", 2 + every % 9),
            ("9 and 10", 9 + every % 2),
            ("2 and 3", 2 + every % 2),
            ("2, and one of 10", np.where(every, 2, 10)),
        ):
            shares = []
            for allowed, change in ((0.0, 0.05), (0.0, 0.15), (0.05, 0.05)):
                rng = np.random.default_rng(5)
                kind = rng.random((gates, groups))
                losses = (kind < change + allowed) @ sizes / sizes.max()
                gains = (kind > 1 - change) @ sizes / sizes.max()
                n, counts = round(sizes.sum() / sizes.max()), list(zip(losses, gains, strict=True))
                wrong = np.mean([p_value(n, round(a), round(b), allowed) <= LEVEL for a, b in counts])
                said = np.mean([p_value(n, round(b), round(a), -allowed) <= LEVEL for a, b in counts])
                shares.append((wrong, said))
            yield f"{groups}", name, *(f"{100 * x:.1f}" for x in np.max(shares, axis=0))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="20 gates a row")
    gates = 20 if parser.parse_args().quick else 2_000
    print(
        f"Gates that fail (in the first language), in percent of {gates}: {METRICS} metrics, {LANGUAGES} languages of "
        f"{DOCUMENTS} × {ROWS} rows, {CHANGE:.0%} of the answers change\n"
    )
    print(pipe_table(("what got worse", *PROCEDURES), list(procedures(gates)), "lrrr"), end="\n\n")
    print(f"False alarms of one rule in percent of {gates}: 1% of the groups gain a part of their rows\n")
    head = ("groups", "part gained", "2% more gain all", "10%", "20%")
    print(pipe_table(head, list(mixed(gates)), "rrrrr"), end="\n\n")
    print(f"Drops of exactly what is allowed that are said to be excluded, in percent of {gates // 2}\n")
    print(pipe_table(("drop", "allowed", "excluded"), list(margins(gates // 2)), "lrr"), end="\n\n")
    tests = 50 * gates
    print(f"Gates of independent graded scores that fail if nothing got worse, in percent, from {tests:,} tests\n")
    head = ("differences", "rows", *(f"{k} tests" for k in TESTS))
    print(pipe_table(head, list(many(tests)), "lr" + "r" * len(TESTS)), end="\n\n")
    print(f"Groups of unequal size that change whole, at a drop of exactly what is allowed, in percent of {gates}\n")
    print(pipe_table(("groups", "rows in each", "false alarms", "excluded"), list(unequal(gates)), "rlrr"))


if __name__ == "__main__":
    main()
