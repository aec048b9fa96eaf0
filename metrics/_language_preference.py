"""Preference of a retriever for documents in the question's language, and its retrieved documents by language."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mrag_eval.core import normalize_language, same_language, suggestion
from mrag_eval.metrics import _resampling
from mrag_eval.metrics._intervals import (
    Estimate,
    bootstrap_statistic,
    few_units,
    group_codes,
    interval_for,
    scored_rows,
    undefined,
)
from mrag_eval.metrics._macro import stratified_bootstrap
from mrag_eval.metrics._resampling import Array
from mrag_eval.platform import ConfigError, MetricError


@dataclass(frozen=True)
class LanguagePreference:
    """Ratio of the retrieval probabilities of documents in the question's language and in other languages.

    ``native`` and ``foreign`` are retrieved / searchable documents, ``ratio`` = native / foreign, ``normalised`` =
    native / (native + foreign). ``n_queries`` counts questions; ``reason`` gives the cause of a None.
    """

    native: float | None
    foreign: float | None
    ratio: float | None
    normalised: float | None
    ratio_interval: Estimate
    n_queries: int
    reason: str | None = None


@dataclass(frozen=True)
class InLanguagePreference:
    """Preference per question language and overall; ``counts`` holds retrieved documents by language pair."""

    by_language: Mapping[str, LanguagePreference]
    overall: LanguagePreference
    counts: Mapping[Pair, int]

    def shares(self) -> dict[Pair, float]:
        """Return the share of each document language among the documents retrieved for a question language."""
        totals: Counter[str] = Counter()
        for (query, _), count in self.counts.items():
            totals[query] += count
        return {pair: count / totals[pair[0]] for pair, count in self.counts.items()}


def in_language_preference(
    query_langs: Sequence[str],
    retrieved_langs: Sequence[Sequence[str]],
    searchable: Sequence[Mapping[str, int]],
    *,
    groups: Sequence[Hashable] | None = None,
    confidence: float = 0.95,
    n_resamples: int = 2_000,
    seed: int | np.random.Generator = 0,
) -> InLanguagePreference:
    """Measure whether a retriever prefers documents in the question's language (BordIRlines, 6.1 and Figures 5, 15).

    P(retrieved | question's language) = retrieved documents in it / searchable documents in it, both summed over the
    questions; P(retrieved | other) likewise. Their ratio is 1 for an indifferent retriever, their normalised form p /
    (p + p') one half. The ratio's interval resamples questions, or ``groups`` (N,) of them.

    Args:
        query_langs: (N,) language of each question. Codes must be equal to count as the question's language, except
            that a code without a script matches any script (``zh`` and ``zh-Hant``, but not ``zh-Hans``).
        retrieved_langs: (N,) languages of the documents retrieved for each question, with repeats.
        searchable: (N,) number of documents in each language that were searched for the question.

    A language without searchable documents on one side has None on that side, with a reason.

    Raises:
        MetricError: unequal lengths, no rows, unknown language, more retrieved than searchable in a language.
    """
    if not query_langs:
        raise MetricError("no questions for the in-language preference")
    if not len(query_langs) == len(retrieved_langs) == len(searchable):
        raise MetricError(
            f"{len(query_langs)} query_langs, {len(retrieved_langs)} retrieved_langs and {len(searchable)} searchable"
        )
    queries = language_codes(query_langs, "query_langs")
    counts: Counter[Pair] = Counter()
    table = np.zeros((len(queries), 4))
    for i, query in enumerate(queries):
        found = Counter(language_codes(retrieved_langs[i], f"retrieved_langs[{i}]"))
        pool: Counter[str] = Counter()
        for language, size in zip(
            language_codes(list(searchable[i]), f"searchable[{i}]"), searchable[i].values(), strict=True
        ):
            pool[language] += size
        for language, count in found.items():
            if count > pool[language]:
                raise MetricError(
                    f"question {i}: {count} documents in '{language}' were retrieved out of {pool[language]} searchable"
                )
            counts[query, language] += count
        for language, size in pool.items():
            side = 0 if _native(query, language) else 2
            table[i, side : side + 2] += (found[language], size)
    every = np.ones(len(queries), dtype=bool)
    units = group_codes(range(len(queries)) if groups is None else groups, every)[0]
    settings = (confidence, n_resamples, _resampling.generator(seed))
    by_language = {}
    for language in sorted(set(queries)):
        rows = np.array([query == language for query in queries])
        by_language[language] = _preference(table[rows], units[rows], groups is not None, *settings)
    return InLanguagePreference(
        by_language=by_language,
        overall=_preference(table, units, groups is not None, *settings),
        counts=dict(sorted(counts.items())),
    )


def _preference(
    table: Array, units: NDArray[np.int64], grouped: bool, confidence: float, n_resamples: int, rng: np.random.Generator
) -> LanguagePreference:
    codes, inverse = np.unique(units, return_inverse=True)
    sums = _resampling.per_unit_sums(table, inverse, len(codes))
    interval = bootstrap_statistic(
        sums,
        _preference_ratio,
        n=len(table),
        units="clusters" if grouped else "rows",
        confidence=confidence,
        n_resamples=n_resamples,
        seed=rng,
    )
    # a ratio: t limits of a few questions may be negative
    interval = few_units(interval, len(sums), "groups" if grouped else "questions").within((0.0, math.inf))
    near, near_pool, far, far_pool = (float(total) for total in table.sum(axis=0))
    native = near / near_pool if near_pool else None
    foreign = far / far_pool if far_pool else None
    reason = None
    if native is None or foreign is None:
        reason = f"nothing to search in {'the question language' if native is None else 'another language'}"
    elif not foreign:
        reason = (
            "nothing was retrieved"
            if not native
            else "nothing was retrieved in another language: the ratio is infinite"
        )
    normalised = None
    if native is not None and foreign is not None and native + foreign:
        normalised = native / (native + foreign)
    return LanguagePreference(
        native=native,
        foreign=foreign,
        ratio=native / foreign if native is not None and foreign else None,
        normalised=normalised,
        ratio_interval=interval if interval.value is not None else undefined(reason or "", interval.method, len(table)),
        n_queries=len(table),
        reason=reason,
    )


def _preference_ratio(totals: Array) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = (totals[:, 0] / totals[:, 1]) / (totals[:, 2] / totals[:, 3])
    return np.where(np.isfinite(ratio), ratio, np.nan)


def _native(query: str, document: str) -> bool:
    return query == document or (("-" not in query or "-" not in document) and same_language(query, document))


Pair = tuple[str, str]


@dataclass(frozen=True)
class LanguagePairMatrix:
    """A score by (question language, document language), with its macro means.

    ``same_language`` and ``cross_language`` are plain means over the cells whose languages match or differ
    (Cross-Lingual Cost, Table 5); ``overall`` is the mean over all scored rows. Each estimate has its own n.
    ``unscored`` counts the rows left out of each cell.
    """

    cells: Mapping[Pair, Estimate]
    same_language: Estimate
    cross_language: Estimate
    overall: Estimate
    unscored: Mapping[Pair, int]


def language_pair_matrix(
    values: Sequence[float | None] | ArrayLike,
    query_langs: Sequence[str],
    doc_langs: Sequence[str],
    *,
    groups: Sequence[Hashable] | None = None,
    confidence: float = 0.95,
    n_resamples: int = 2_000,
    seed: int | np.random.Generator = 0,
    bounds: tuple[float, float] | None = None,
) -> LanguagePairMatrix:
    """Return the mean of ``values`` (N,) in each cell of question language x language of the relevant document.

    Cells get the interval of :func:`~mrag_eval.metrics.interval_for`; the macro means get that of
    :func:`~mrag_eval.metrics.stratified_bootstrap`. With ``groups`` (N,), whole groups are resampled. ``bounds`` is the
    range of the metric. Languages may be in
    any spelling that :func:`mrag_eval.core.normalize_language` knows; scripts of one language count as the same
    language. None entries are unscored: left out and counted by cell. A cell without a scored row leaves its macro mean
    undefined.

    Raises:
        MetricError: unequal lengths, no rows, NaN, unknown language.
    """
    scored, kept = scored_rows(values)
    if not len(kept):
        raise MetricError("no rows for the language-pair table")
    if not len(kept) == len(query_langs) == len(doc_langs):
        raise MetricError(f"{len(kept)} values, {len(query_langs)} query_langs and {len(doc_langs)} doc_langs")
    full: list[float | None] = [None] * len(kept)
    for row, value in zip(np.flatnonzero(kept), scored, strict=True):
        full[row] = float(value)
    pairs = list(zip(language_codes(query_langs, "query_langs"), language_codes(doc_langs, "doc_langs"), strict=True))
    rng = _resampling.generator(seed)

    def chosen(rows: list[int], *, macro: bool) -> Estimate:
        part = [full[i] for i in rows]
        part_groups = None if groups is None else [groups[i] for i in rows]
        if macro:
            cells = [pairs[i] for i in rows]
            return stratified_bootstrap(
                part,
                cells,
                groups=part_groups,
                bounds=bounds,
                confidence=confidence,
                n_resamples=n_resamples,
                seed=rng,
            )
        return interval_for(
            part, groups=part_groups, confidence=confidence, n_resamples=n_resamples, seed=rng, bounds=bounds
        )

    order = sorted(set(pairs))
    by_cell = {pair: [i for i, p in enumerate(pairs) if p == pair] for pair in order}
    macros = []
    for same in (True, False):
        cells = [pair for pair in order if same_language(*pair) == same]
        rows = [i for pair in cells for i in by_cell[pair]]
        name = "same-language" if same else "cross-language"
        macros.append(chosen(rows, macro=True) if rows else undefined(f"no {name} pair", "stratified bootstrap"))
    return LanguagePairMatrix(
        cells={pair: chosen(rows, macro=False) for pair, rows in by_cell.items()},
        same_language=macros[0],
        cross_language=macros[1],
        overall=chosen(list(range(len(full))), macro=False),
        unscored={pair: sum(full[i] is None for i in rows) for pair, rows in by_cell.items()},
    )


def language_codes(languages: Sequence[str], where: str) -> list[str]:
    """Return the BCP 47 codes of ``languages``; raise MetricError with ``where`` for an unknown one."""
    known: dict[str, str] = {}
    for i, language in enumerate(languages):
        if language not in known:
            try:
                known[language] = normalize_language(language)
            except (ConfigError, AttributeError):
                raise MetricError(f"{where}[{i}]: unknown language {language!r}", suggestion(str(language))) from None
    return [known[language] for language in languages]
