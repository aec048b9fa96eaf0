"""Metrics: pure functions over plain values, no harness and no I/O.

A name is loaded when it is first used, so importing the package costs nothing. A new public name goes into three
places that a test keeps equal: the imports for type checkers, the table, and ``__all__``.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mrag_eval.metrics.agreement import (
        LabelF1,
        cohen_kappa,
        fleiss_kappa,
        krippendorff_alpha,
        label_f1,
        pairwise_kappas,
    )
    from mrag_eval.metrics.attribution import (
        ErrorAttribution,
        conditional_rate,
        error_attribution,
        error_attribution_by_cell,
    )
    from mrag_eval.metrics.char_ngram import (
        OverlapColumns,
        char_ngram_f1,
        char_ngram_precision,
        char_ngram_recall,
        char_ngram_recall_batch,
        char_ngram_scores,
        char_ngram_scores_batch,
    )
    from mrag_eval.metrics.choices import (
        extract_choice,
    )
    from mrag_eval.metrics.choices_official import (
        BorderlinesCitation,
        extract_choice_blend_official,
        parse_borderlines_citation,
        parse_borderlines_direct,
        parse_borderlines_freetext,
    )
    from mrag_eval.metrics.citation_preference import (
        CitationPreference,
        citation_preference,
        citation_preferences,
    )
    from mrag_eval.metrics.citations import (
        CitationPrecision,
        CitationRates,
        Citations,
        LanguageCitations,
        citation_precision,
        citation_rates,
        parse_citations,
    )
    from mrag_eval.metrics.code_switch import (
        CodeSwitch,
        LanguageMix,
        code_switch_share,
        language_mix,
    )
    from mrag_eval.metrics.concurrence import (
        ConcurrenceScores,
        concurrence_intervals,
        concurrence_scores,
    )
    from mrag_eval.metrics.concurrence_baseline import (
        random_concurrence,
    )
    from mrag_eval.metrics.evaluate_front import (
        EvaluateMetric,
        as_evaluate,
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
    from mrag_eval.metrics.language_detection import (
        FastTextDetector,
        LanguageDetector,
        LinguaDetector,
        ScriptDetector,
        load_detector,
    )
    from mrag_eval.metrics.language_pairs import (
        LanguagePairMatrix,
        language_pair_matrix,
    )
    from mrag_eval.metrics.language_preference import (
        InLanguagePreference,
        LanguagePreference,
        in_language_preference,
    )
    from mrag_eval.metrics.language_rate import (
        LanguageBreakdown,
        LanguageRate,
        correct_language_rate,
    )
    from mrag_eval.metrics.option_replies import (
        reply_outcome,
    )
    from mrag_eval.metrics.paired_ranks import (
        PairedRanks,
        paired_ranks,
    )
    from mrag_eval.metrics.panel import (
        PanelIndependence,
        effective_panel_size,
        majority_vote,
    )
    from mrag_eval.metrics.power import (
        DetectableEffect,
        minimum_detectable_effect,
        paired_power,
    )
    from mrag_eval.metrics.ranking import (
        pool_judgements,
        rank_documents,
        ranking_metrics,
    )
    from mrag_eval.metrics.short_answers import (
        ShortAnswerScores,
        VotedAnswer,
        short_answer_scores,
    )
    from mrag_eval.metrics.significance import (
        PairedTest,
        benjamini_hochberg,
        holm,
        mcnemar_exact,
        paired_cluster_bootstrap,
        paired_difference,
        paired_permutation,
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
    "agreement": (
        "LabelF1",
        "cohen_kappa",
        "fleiss_kappa",
        "krippendorff_alpha",
        "label_f1",
        "pairwise_kappas",
    ),
    "attribution": (
        "ErrorAttribution",
        "conditional_rate",
        "error_attribution",
        "error_attribution_by_cell",
    ),
    "char_ngram": (
        "OverlapColumns",
        "char_ngram_f1",
        "char_ngram_precision",
        "char_ngram_recall",
        "char_ngram_recall_batch",
        "char_ngram_scores",
        "char_ngram_scores_batch",
    ),
    "choices": ("extract_choice",),
    "choices_official": (
        "BorderlinesCitation",
        "extract_choice_blend_official",
        "parse_borderlines_citation",
        "parse_borderlines_direct",
        "parse_borderlines_freetext",
    ),
    "citation_preference": (
        "CitationPreference",
        "citation_preference",
        "citation_preferences",
    ),
    "citations": (
        "CitationPrecision",
        "CitationRates",
        "Citations",
        "LanguageCitations",
        "citation_precision",
        "citation_rates",
        "parse_citations",
    ),
    "code_switch": (
        "CodeSwitch",
        "LanguageMix",
        "code_switch_share",
        "language_mix",
    ),
    "concurrence": (
        "ConcurrenceScores",
        "concurrence_intervals",
        "concurrence_scores",
    ),
    "concurrence_baseline": ("random_concurrence",),
    "evaluate_front": (
        "EvaluateMetric",
        "as_evaluate",
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
    "language_detection": (
        "FastTextDetector",
        "LanguageDetector",
        "LinguaDetector",
        "ScriptDetector",
        "load_detector",
    ),
    "language_pairs": (
        "LanguagePairMatrix",
        "language_pair_matrix",
    ),
    "language_preference": (
        "InLanguagePreference",
        "LanguagePreference",
        "in_language_preference",
    ),
    "language_rate": (
        "LanguageBreakdown",
        "LanguageRate",
        "correct_language_rate",
    ),
    "option_replies": ("reply_outcome",),
    "paired_ranks": (
        "PairedRanks",
        "paired_ranks",
    ),
    "panel": (
        "PanelIndependence",
        "effective_panel_size",
        "majority_vote",
    ),
    "power": (
        "DetectableEffect",
        "minimum_detectable_effect",
        "paired_power",
    ),
    "ranking": (
        "pool_judgements",
        "rank_documents",
        "ranking_metrics",
    ),
    "short_answers": (
        "ShortAnswerScores",
        "VotedAnswer",
        "short_answer_scores",
    ),
    "significance": (
        "PairedTest",
        "benjamini_hochberg",
        "holm",
        "mcnemar_exact",
        "paired_cluster_bootstrap",
        "paired_difference",
        "paired_permutation",
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
    "BorderlinesCitation",
    "CitationPrecision",
    "CitationPreference",
    "CitationRates",
    "Citations",
    "CodeSwitch",
    "ConcurrenceScores",
    "DetectableEffect",
    "ErrorAttribution",
    "Estimate",
    "EvaluateMetric",
    "FastTextDetector",
    "InLanguagePreference",
    "LabelF1",
    "LanguageBreakdown",
    "LanguageCitations",
    "LanguageDetector",
    "LanguageMix",
    "LanguagePairMatrix",
    "LanguagePreference",
    "LanguageRate",
    "LinguaDetector",
    "OverlapColumns",
    "OverlapScores",
    "PairedRanks",
    "PairedTest",
    "PanelIndependence",
    "ScriptDetector",
    "ShortAnswerScores",
    "VotedAnswer",
    "as_evaluate",
    "benjamini_hochberg",
    "bootstrap_mean",
    "bootstrap_statistic",
    "char_ngram_f1",
    "char_ngram_precision",
    "char_ngram_recall",
    "char_ngram_recall_batch",
    "char_ngram_scores",
    "char_ngram_scores_batch",
    "citation_precision",
    "citation_preference",
    "citation_preferences",
    "citation_rates",
    "cluster_bootstrap",
    "code_switch_share",
    "cohen_kappa",
    "concurrence_intervals",
    "concurrence_scores",
    "conditional_rate",
    "correct_language_rate",
    "effective_panel_size",
    "error_attribution",
    "error_attribution_by_cell",
    "exact_match",
    "extract_choice",
    "extract_choice_blend_official",
    "fleiss_kappa",
    "holm",
    "in_language_preference",
    "interval_for",
    "krippendorff_alpha",
    "label_f1",
    "language_mix",
    "language_pair_matrix",
    "load_detector",
    "majority_vote",
    "match",
    "mcnemar_exact",
    "minimum_detectable_effect",
    "normalize_answer",
    "paired_cluster_bootstrap",
    "paired_difference",
    "paired_permutation",
    "paired_power",
    "paired_ranks",
    "pairwise_kappas",
    "parse_borderlines_citation",
    "parse_borderlines_direct",
    "parse_borderlines_freetext",
    "parse_citations",
    "pool_judgements",
    "random_concurrence",
    "rank_documents",
    "ranking_metrics",
    "reply_outcome",
    "short_answer_scores",
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
