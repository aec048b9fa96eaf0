"""Populations on which intervals are hard: small languages, few groups, equal rows, scores at the end of a range."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from _simulate import AT_LEAST, RESAMPLES, Case

from mrag_eval.metrics import (
    Estimate,
    PairedCell,
    cohen_kappa,
    concurrence_intervals,
    interval_for,
    label_f1,
    paired_tests,
    stratified_bootstrap,
)


def languages(sizes: Sequence[int], p: float) -> Case:
    """Return the macro mean over languages of such sizes, all of which have the same share of right answers."""
    cells = np.repeat(np.arange(len(sizes)), sizes)

    def draw(rng: np.random.Generator) -> Estimate:
        values = (rng.random(len(cells)) < p).astype(float)
        return stratified_bootstrap(values, cells.tolist(), n_resamples=RESAMPLES, seed=rng)

    counts = [f"{list(sizes).count(n)} x {n}" for n in dict.fromkeys(sizes)]
    return Case(f"macro mean of {p:g}, {' + '.join(counts)} rows", p, draw, AT_LEAST)


def graded_languages(sizes: Sequence[int], a: float, b: float) -> Case:
    """Return the macro mean of graded scores, beta-distributed in every language."""
    cells = np.repeat(np.arange(len(sizes)), sizes)

    def draw(rng: np.random.Generator) -> Estimate:
        return stratified_bootstrap(rng.beta(a, b, size=len(cells)), cells.tolist(), n_resamples=RESAMPLES, seed=rng)

    counts = [f"{list(sizes).count(n)} x {n}" for n in dict.fromkeys(sizes)]
    return Case(f"macro mean of beta({a:g}, {b:g}), {' + '.join(counts)} rows", a / (a + b), draw, AT_LEAST)


def grouped_languages(count: int, p: float) -> Case:
    """Return the macro mean over five languages of ``count`` questions, each of which is asked in all of them."""
    cells, members = np.tile(np.arange(5), count), np.repeat(np.arange(count), 5)

    def draw(rng: np.random.Generator) -> Estimate:
        values = (rng.random(5 * count) < rng.beta(4 * p, 4 * (1 - p), size=count)[members]).astype(float)
        return stratified_bootstrap(values, cells.tolist(), groups=members.tolist(), n_resamples=RESAMPLES, seed=rng)

    return Case(f"macro mean of {p:g}, {count} questions in 5 languages", p, draw, AT_LEAST)


def bounded(name: str, n: int, truth: float, sample: Callable[[np.random.Generator, int], Any]) -> Case:
    """Return the mean of few skewed scores between 0 and 1."""

    def draw(rng: np.random.Generator) -> Estimate:
        return interval_for(sample(rng, n), bounds=(0.0, 1.0), n_resamples=RESAMPLES, seed=rng)

    return Case(f"{name}, n = {n}", truth, draw, AT_LEAST if n >= 12 else None)


def groups(count: int, p: float) -> Case:
    """Return a share of rows in few groups whose rows are mostly alike."""

    def draw(rng: np.random.Generator) -> Estimate:
        effects = rng.beta(p, 1 - p, size=count)
        members = np.repeat(np.arange(count), 6)
        values = (rng.random(len(members)) < effects[members]).astype(float)
        return interval_for(values, groups=members.tolist(), bounds=(0.0, 1.0), n_resamples=RESAMPLES, seed=rng)

    return Case(f"share of {p:g} in {count} groups of 6", p, draw, AT_LEAST)


def lost(n: int, p: float) -> Case:
    """Return the difference of two runs if most rows change the same way."""

    def draw(rng: np.random.Generator) -> Estimate:
        changed = (rng.random(n) < p).astype(float)
        (found,) = paired_tests([PairedCell([0.0] * n, changed.tolist())], n_resamples=RESAMPLES)
        return Estimate(found.difference, found.low, found.high, n)

    return Case(f"difference of -{p:g}, n = {n}", -p, draw, AT_LEAST)


def kappa(n: int, agreement: float) -> Case:
    """Return Cohen's kappa of raters who give the same label with such a probability, else independent ones."""

    def draw(rng: np.random.Generator) -> Estimate:
        first = rng.random(n) < 0.7
        second = np.where(rng.random(n) < agreement, first, rng.random(n) < 0.7)
        return cohen_kappa(first.tolist(), second.tolist(), n_resamples=RESAMPLES, seed=rng)

    return Case(f"kappa of {agreement:g}, n = {n}", agreement, draw, AT_LEAST if n > 8 else None)


def macro_f1(n: int, right: float) -> Case:
    """Return the mean F1 of two labels, of which one is at nine rows in ten."""
    common, rare = (2 * p * right / (p + p * right + (1 - p) * (1 - right)) for p in (0.9, 0.1))

    def draw(rng: np.random.Generator) -> Estimate:
        human = rng.random(n) < 0.9
        predicted = np.where(rng.random(n) < right, human, ~human)
        return label_f1(predicted.tolist(), human.tolist(), n_resamples=RESAMPLES, seed=rng).macro_f1

    # with few rows the rare label is often absent, and then the mean is of another number
    return Case(f"macro-F1, n = {n}", (common + rare) / 2, draw, AT_LEAST if n >= 50 else None)


def concurrence(territories: int, with_controller: int, score: str, p: float, truth: float) -> Case:
    """Return a concurrence score over territories asked about in four languages, right with probability p."""
    asked = [
        {
            "query_id": f"{t}{lang}",
            "territory": str(t),
            "query_lang": lang,
            "control_query": lang == "en",
            "claimants": ["A", "B", "C", "D"],
            "claimant_langs": ["de", "fr", "es", "it"],
            "controller": "A" if t < with_controller else "Unknown",
            "controller_lang": "de" if t < with_controller else "",
        }
        for t in range(territories)
        for lang in ("en", "de", "fr", "es", "it")
    ]

    def draw(rng: np.random.Generator) -> Estimate:
        wrong = rng.random(len(asked)) >= p
        answers = [{"query_id": row["query_id"], "claimant_ind": int(w)} for row, w in zip(asked, wrong, strict=True)]
        return concurrence_intervals(asked, answers, n_resamples=RESAMPLES, seed=rng)[score]

    name = f"{score}, controllers in {with_controller} of {territories} territories"
    return Case(name, truth, draw, AT_LEAST)


def small_cases() -> list[Case]:
    """Return every case of this module."""
    return [
        languages([1000] * 8 + [20] * 2, 0.98),
        languages([500] + [5] * 4, 0.98),
        languages([500] + [5] * 4, 0.95),
        languages([200, 100, 50, 20, 10], 0.98),
        languages([2] * 10, 0.9),
        # no spread is known of a language of one row: no interval
        languages([1000] + [1] * 4, 0.9),
        graded_languages([20] * 5, 9, 0.5),
        graded_languages([200] + [10] * 4, 9, 0.5),
        *(grouped_languages(count, 0.8) for count in (10, 30, 100)),
        *(bounded("beta(9, 0.5)", n, 9 / 9.5, lambda rng, n: rng.beta(9, 0.5, size=n)) for n in (5, 12, 50)),
        *(groups(count, p) for count in (4, 12) for p in (0.7, 0.95)),
        *(lost(n, 0.9) for n in (5, 8, 20)),
        *(kappa(n, agreement) for n in (8, 20, 50) for agreement in (0.6, 0.95)),
        *(macro_f1(n, 0.95) for n in (8, 50, 200)),
        concurrence(5, 5, "KB_CS", 0.8, 0.8),
        concurrence(20, 4, "KB_CS", 0.9, 0.9),
        concurrence(20, 4, "Non_CS", 0.7, 0.7),
        concurrence(20, 20, "delta_CS_difference", 0.7, 0.0),
        concurrence(20, 4, "Cst_CS_unk", 0.7, 0.7**2 + 0.3**2),
    ]
