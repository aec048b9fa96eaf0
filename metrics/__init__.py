"""Metrics: pure functions over plain values, no harness and no I/O.

A name is loaded when it is first used, so importing the package costs nothing. A new public name goes into three
places that a test keeps equal: the imports for type checkers, the table, and ``__all__``.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mrag_eval.metrics.char_ngram import (
        char_ngram_f1,
        char_ngram_precision,
        char_ngram_recall,
        char_ngram_recall_batch,
        char_ngram_scores,
    )
    from mrag_eval.metrics.intervals import (
        Estimate,
        bootstrap_mean,
        bootstrap_statistic,
        cluster_bootstrap,
        interval_for,
        stratified_bootstrap,
        wilson,
    )
    from mrag_eval.metrics.ranking import (
        pool_judgements,
        rank_documents,
        ranking_metrics,
    )
    from mrag_eval.metrics.text import (
        OverlapScores,
        exact_match,
        match,
        normalize_answer,
        word_f1,
        word_precision,
        word_recall,
        word_scores,
        word_tokens,
    )

# module of this package -> the public names it defines
_EXPORTS: dict[str, tuple[str, ...]] = {
    "char_ngram": (
        "char_ngram_f1",
        "char_ngram_precision",
        "char_ngram_recall",
        "char_ngram_recall_batch",
        "char_ngram_scores",
    ),
    "intervals": (
        "Estimate",
        "bootstrap_mean",
        "bootstrap_statistic",
        "cluster_bootstrap",
        "interval_for",
        "stratified_bootstrap",
        "wilson",
    ),
    "ranking": (
        "pool_judgements",
        "rank_documents",
        "ranking_metrics",
    ),
    "text": (
        "OverlapScores",
        "exact_match",
        "match",
        "normalize_answer",
        "word_f1",
        "word_precision",
        "word_recall",
        "word_scores",
        "word_tokens",
    ),
}
_MODULE_OF = {name: module for module, names in _EXPORTS.items() for name in names}

__all__ = [
    "Estimate",
    "OverlapScores",
    "bootstrap_mean",
    "bootstrap_statistic",
    "char_ngram_f1",
    "char_ngram_precision",
    "char_ngram_recall",
    "char_ngram_recall_batch",
    "char_ngram_scores",
    "cluster_bootstrap",
    "exact_match",
    "interval_for",
    "match",
    "normalize_answer",
    "pool_judgements",
    "rank_documents",
    "ranking_metrics",
    "stratified_bootstrap",
    "wilson",
    "word_f1",
    "word_precision",
    "word_recall",
    "word_scores",
    "word_tokens",
]


def __getattr__(name: str) -> Any:
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULE_OF})
