"""Scores by question language x document language, with same-language and cross-language macro means."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from mrag_eval.core import normalize_language, same_language, suggestion
from mrag_eval.metrics import _resampling
from mrag_eval.metrics._intervals import Estimate, interval_for, scored_rows, undefined
from mrag_eval.metrics._macro import stratified_bootstrap
from mrag_eval.platform import ConfigError, MetricError

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
