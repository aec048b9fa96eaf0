"""Metrics: pure functions over plain values, without the harness and without I/O."""

from typing import TYPE_CHECKING

from mrag_eval.platform import lazy_door

if TYPE_CHECKING:
    from mrag_eval.metrics._agreement import (
        LabelF1,
        balanced_accuracy,
        cohen_kappa,
        fleiss_kappa,
        krippendorff_alpha,
        label_f1,
        pairwise_kappas,
    )
    from mrag_eval.metrics._attribution import ErrorAttribution, conditional_rate, error_attribution, lost_stage
    from mrag_eval.metrics._char_ngram import (
        OverlapColumns,
        char_ngram_f1,
        char_ngram_precision,
        char_ngram_recall,
        char_ngram_recall_batch,
        char_ngram_scores,
        char_ngram_scores_batch,
    )
    from mrag_eval.metrics._choices import declines, extract_choice, reads_refusals
    from mrag_eval.metrics._choices_official import (
        BorderlinesCitation,
        extract_choice_blend_official,
        parse_borderlines_citation,
        parse_borderlines_direct,
        parse_borderlines_freetext,
    )
    from mrag_eval.metrics._citation_rates import (
        CitationPreference,
        CitationRates,
        LanguageCitations,
        citation_preferences,
        citation_rates,
    )
    from mrag_eval.metrics._citation_support import CitationSupport, citation_support
    from mrag_eval.metrics._citations import Citations, parse_citations, without_citations
    from mrag_eval.metrics._code_switch import CodeSwitch, LanguageMix, code_switch_share, language_mix
    from mrag_eval.metrics._concurrence import (
        CONCURRENCE_SCALES,
        ConcurrenceScores,
        concurrence_by_territory,
        concurrence_intervals,
        concurrence_scores,
        random_concurrence,
    )
    from mrag_eval.metrics._family import Place, benjamini_hochberg, hierarchy, holm
    from mrag_eval.metrics._intervals import (
        Estimate,
        Kind,
        bootstrap_mean,
        bootstrap_statistic,
        cluster_interval,
        interval_for,
        t_interval,
        undefined,
        wilson,
    )
    from mrag_eval.metrics._judge_correction import CorrectedRate, corrected_rate
    from mrag_eval.metrics._language_detection import (
        FastTextDetector,
        LanguageDetector,
        LinguaDetector,
        ScriptDetector,
        default_detector,
        load_detector,
    )
    from mrag_eval.metrics._language_preference import (
        InLanguagePreference,
        LanguagePairMatrix,
        LanguagePreference,
        in_language_preference,
        language_pair_matrix,
    )
    from mrag_eval.metrics._language_rate import (
        LanguageBreakdown,
        LanguageRate,
        accepts,
        correct_language_rate,
        counted_together,
        detector_for,
        is_unsure,
        unknown_to,
        unreliable,
    )
    from mrag_eval.metrics._loss_causes import CAUSES, Cause, RowEvidence, Subject, cause_of_loss
    from mrag_eval.metrics._macro import stratified_bootstrap, unscored_range
    from mrag_eval.metrics._nomiracl import Presence, nomiracl_reading
    from mrag_eval.metrics._option_replies import SHARES, Outcome, Share, reply_outcome
    from mrag_eval.metrics._paired import MarginTest, PairedCell, PairedTest, margin_tests, paired_tests
    from mrag_eval.metrics._paired_ranks import PairedRanks, paired_ranks
    from mrag_eval.metrics._panel import PanelIndependence, effective_panel_size, majority_vote
    from mrag_eval.metrics._ranking import random_ranking, rank_documents, ranking_metrics
    from mrag_eval.metrics._readings import lemma_match, segmented_f1
    from mrag_eval.metrics._response_sets import UNKNOWN_CONTROLLER
    from mrag_eval.metrics._share_between import share_between
    from mrag_eval.metrics._short_answers import ShortAnswerScores, VotedAnswer, has_lemma_rule, short_answer_scores
    from mrag_eval.metrics._spans import span_overlap
    from mrag_eval.metrics._text import (
        Normalizer,
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
    from mrag_eval.metrics._unicode_normalizer import UNICODE_VERSION
    from mrag_eval.metrics._verbatim import Quotes, Source, copied_share, held_elsewhere, verbatim_quotes
    from mrag_eval.metrics._yes_no import read_yes_no
else:
    __getattr__, __dir__ = lazy_door(__name__)

__all__ = [
    "CAUSES",
    "CONCURRENCE_SCALES",
    "SHARES",
    "UNICODE_VERSION",
    "UNKNOWN_CONTROLLER",
    "BorderlinesCitation",
    "Cause",
    "CitationPreference",
    "CitationRates",
    "CitationSupport",
    "Citations",
    "CodeSwitch",
    "ConcurrenceScores",
    "CorrectedRate",
    "ErrorAttribution",
    "Estimate",
    "FastTextDetector",
    "InLanguagePreference",
    "Kind",
    "LabelF1",
    "LanguageBreakdown",
    "LanguageCitations",
    "LanguageDetector",
    "LanguageMix",
    "LanguagePairMatrix",
    "LanguagePreference",
    "LanguageRate",
    "LinguaDetector",
    "MarginTest",
    "Normalizer",
    "Outcome",
    "OverlapColumns",
    "OverlapScores",
    "PairedCell",
    "PairedRanks",
    "PairedTest",
    "PanelIndependence",
    "Place",
    "Presence",
    "Quotes",
    "RowEvidence",
    "ScriptDetector",
    "Share",
    "ShortAnswerScores",
    "Source",
    "Subject",
    "VotedAnswer",
    "accepts",
    "balanced_accuracy",
    "benjamini_hochberg",
    "bootstrap_mean",
    "bootstrap_statistic",
    "cause_of_loss",
    "char_ngram_f1",
    "char_ngram_precision",
    "char_ngram_recall",
    "char_ngram_recall_batch",
    "char_ngram_scores",
    "char_ngram_scores_batch",
    "citation_preferences",
    "citation_rates",
    "citation_support",
    "cluster_interval",
    "code_switch_share",
    "cohen_kappa",
    "concurrence_by_territory",
    "concurrence_intervals",
    "concurrence_scores",
    "conditional_rate",
    "copied_share",
    "correct_language_rate",
    "corrected_rate",
    "counted_together",
    "declines",
    "default_detector",
    "detector_for",
    "effective_panel_size",
    "error_attribution",
    "exact_match",
    "extract_choice",
    "extract_choice_blend_official",
    "fleiss_kappa",
    "has_lemma_rule",
    "held_elsewhere",
    "hierarchy",
    "holm",
    "in_language_preference",
    "interval_for",
    "is_unsure",
    "krippendorff_alpha",
    "label_f1",
    "language_mix",
    "language_pair_matrix",
    "lemma_match",
    "load_detector",
    "lost_stage",
    "majority_vote",
    "margin_tests",
    "match",
    "nomiracl_reading",
    "normalize_answer",
    "paired_ranks",
    "paired_tests",
    "pairwise_kappas",
    "parse_borderlines_citation",
    "parse_borderlines_direct",
    "parse_borderlines_freetext",
    "parse_citations",
    "random_concurrence",
    "random_ranking",
    "rank_documents",
    "ranking_metrics",
    "read_yes_no",
    "reads_refusals",
    "reply_outcome",
    "segmented_f1",
    "share_between",
    "short_answer_scores",
    "span_overlap",
    "stratified_bootstrap",
    "t_interval",
    "undefined",
    "unknown_to",
    "unreliable",
    "unscored_range",
    "verbatim_quotes",
    "wilson",
    "without_citations",
    "word_f1",
    "word_precision",
    "word_recall",
    "word_scores",
    "word_tokens",
]
