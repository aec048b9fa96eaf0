"""The metrics that a task may name in its YAML, and the scoring of rows by them.

A value is a float, or a reason why it is missing: never a silent 0 or NaN. All rows of a rank are scored in one batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from typing import Any

from mrag_eval.config import CORRECT, GROUNDED, OWN, RERANKED, SHOWN, Retrieval, ranking_measures, rerank_measures
from mrag_eval.core import (
    LABEL_SHARE,
    SHARE,
    Failure,
    LabelSource,
    RowScores,
    Scale,
    Scored,
    Value,
    can_be_score,
    failed_in,
    labelled_name,
    not_finite,
    plain_name,
    way_to,
)
from mrag_eval.metrics import (
    char_ngram_f1,
    char_ngram_precision,
    char_ngram_recall,
    exact_match,
    lemma_match,
    match,
    segmented_f1,
    word_f1,
    word_precision,
    word_recall,
)
from mrag_eval.platform import DataError, Wait
from mrag_eval.scoring import _abstention as abstention
from mrag_eval.scoring import _reply_values as values
from mrag_eval.scoring._control_kinds import (
    CHOICE,
    EQUALS,
    FORM,
    HOLDS,
    JUDGED,
    LANGUAGE,
    RANKING,
    SUPPORT,
    Control,
    uncontrolled,
)
from mrag_eval.scoring._grounding import crossed, grounded
from mrag_eval.scoring._passage_metrics import OTHER_QUOTES, copied, passages_in_language, quotes, supported
from mrag_eval.scoring._ranking import RANKED, REORDERED, published_name, ranking_columns, rerank_columns, shown
from mrag_eval.scoring._reasons import UNDEFINED
from mrag_eval.scoring._reply_values import Batch, LanguageRule, each
from mrag_eval.scoring._task_level import ANSWERED, TASK_MEASURES, TASK_SCORES
from mrag_eval.text import segmenters


@dataclass(frozen=True)
class Metric:
    """A metric: its name, the function that scores rows, its unit and range, and whether higher is better.

    ``needs`` are the steps on the way to the metric: a row of which one failed has no value. ``control`` names what
    shows the metric's range in a language (:mod:`mrag_eval.scoring._control_kinds`). ``words``: what decides the words
    of a reply beside the code of the metric, a normaliser of ours, the segmenters of other libraries
    (:func:`words_of`), or files of languages (:func:`read_by_words`). ``identity``: of a user's metric, what its
    function is; ours go by the version of the package.
    """

    name: str
    score: Batch
    summary: str
    higher_is_better: bool | None = True
    scale: Scale = SHARE
    _: KW_ONLY
    needs: frozenset[str]
    control: Control
    words: tuple[str, ...] = ()
    identity: Mapping[str, Any] = field(default_factory=dict)


_NORMALIZED = ("normalizer",)
# Words by which a reply chooses, agrees or declines.
_BY_WORDS = ("languages",)
# Metrics of the reply, by their controls.
_reply = partial(Metric, needs=ANSWERED)
_chosen, _form = partial(_reply, control=CHOICE, words=_BY_WORDS), partial(_reply, control=FORM)
_read = partial(_form, words=_BY_WORDS)
_held, _equal = partial(_reply, control=HOLDS), partial(_reply, control=EQUALS)
_told = partial(_reply, control=LANGUAGE)
_judged = partial(Metric, needs=way_to("answer", "judge"), control=JUDGED)
_translated = partial(Metric, needs=way_to("translation of answers"), control=HOLDS)
_beside_passages = uncontrolled("it compares replies with passages, and controls are shown none")
_quoted = partial(_reply, control=_beside_passages)
_grounded = partial(Metric, needs=way_to("grounding"), control=_beside_passages, words=_BY_WORDS)
_abstains = partial(Metric, needs=way_to("answer", "label"), control=_beside_passages)
METRICS: dict[str, Metric] = {
    m.name: m
    for m in (
        _chosen("acc", values.accuracy, "the chosen option is the right one (a reply without a clear choice is wrong)"),
        _chosen("acc_micro", values.accuracy, "acc, for groups that also report the mean over rows"),
        _read("choice_parsed", values.choice_parsed, "share of replies with exactly one readable choice"),
        _held(
            "yes_no",
            values.yes_no,
            "the reply says yes or no as the answer does, in words of its language",
            words=_BY_WORDS,
        ),
        _held("char3gram_recall", values.char_recall, "character 3-gram recall, best over answers"),
        _held("char3gram_recall_aliases", values.char_recall_aliases, "the same over answers and aliases (MKQA)"),
        _equal("char3gram_precision", each(char_ngram_precision), "character 3-gram precision"),
        _equal("char3gram_f1", each(char_ngram_f1), "character 3-gram F1"),
        _held(
            "char3gram_recall_unicode",
            each(char_ngram_recall, "unicode"),
            "the same, normalised for every script",
            words=_NORMALIZED,
        ),
        _equal("exact_match", each(exact_match), "normalised reply equals an answer"),
        _held("match", each(match), "normalised answer is contained in the normalised reply"),
        _translated(
            "char3gram_recall_translated",
            values.translated(values.char_recall),
            "char3gram_recall of the reply in the language of the reference answers, translated where it is not in it",
        ),
        _translated("match_translated", values.translated(each(match)), "match, likewise"),
        _equal("exact_match_unicode", each(exact_match, "unicode"), "exact_match for every script", words=_NORMALIZED),
        _held("match_unicode", each(match, "unicode"), "match for every script, of whole words", words=_NORMALIZED),
        _held(
            "match_lemmas",
            each(lemma_match, None, by_language=True),
            "match_unicode, also by the lemmas of words (extra lemmas)",
            words=("normalizer", "lemmas"),
        ),
        _equal("exact_match_mkqa", each(exact_match, "mkqa"), "exact_match by MKQA's own normaliser"),
        _equal("f1", each(word_f1), "word F1, best over answers"),
        _equal("f1_unicode", each(word_f1, "unicode"), "word F1, normalised for every script", words=_NORMALIZED),
        _equal(
            "f1_words",
            each(segmented_f1, None, by_language=True),
            "f1_unicode; words of scripts without spaces, and of Korean, as dictionaries cut them (extra segment)",
            words=("normalizer", "segmenter"),
        ),
        _equal("f1_mkqa", each(word_f1, "mkqa"), "word F1 by MKQA's own normaliser"),
        _held("word_recall", each(word_recall), "word recall, best over answers"),
        _equal("word_precision", each(word_precision), "word precision, best over answers"),
        _held("sem_b", values.short_answer("binary"), "the reply holds an annotated answer (BLEnD)"),
        _held("sem_w", values.short_answer("weighted"), "its votes over those of the top answer (BLEnD)"),
        Metric(
            "sem_lemma_rule",
            values.lemma_rule,
            "local answers are also compared by stem, not as text alone",
            None,
            needs=frozenset(),
            control=uncontrolled("it says which rule reads a row, whatever the reply"),
        ),
        _told("correct_language", values.correct_language, "replies over 20 characters: right language"),
        _told("answered_in_english", values.answered_in_english, "the reply is in English, however short", None),
        _judged("judged_accuracy", values.judged_accuracy, "judge_correct, and in the language asked for (XRAG)"),
        _judged("judge_correct", values.verdict, "more than half of the panel's judges find the answer correct"),
        _judged("judge_grade", values.verdict, "the panel's grade, from 0 (worst) to 1 (best) (judge.scale)"),
        Metric(
            LABEL_SHARE,
            values.label(""),
            "share of answers with each label of judge.scale, as `judge_label.supported`",
            None,
            needs=way_to("answer", "judge"),
            control=uncontrolled("no label is better than another"),
        ),
        Metric(
            "context_sufficiency",
            values.context_sufficiency,
            "what is shown suffices for a good answer (XRAG)",
            needs=way_to("translation of documents", "judge"),
            control=uncontrolled("it judges passages, not replies"),
        ),
        Metric(
            SHOWN,
            shown,
            "a relevant passage is among those in the prompt, whose number is retrieval.k; defined in every mode that "
            "shows passages",
            control=RANKING,
            needs=REORDERED,
        ),
        _told("language_check", values.language_check, "right language, by the judge block's language_check"),
        _form("declined", values.declined, "the answer tag holds None, if the prompt offers that (incorrect)", None),
        _form("answer_tag", values.answer_tag, "share of replies with the answer tag asked for"),
        _form("option_read", values.option("read"), "an option can be read from the reply by BordIRlines' rule"),
        _read("option_refused", values.option("refused"), "no option is read, and the reply declines in words", None),
        _read("option_unread", values.option("unread"), "no option is read, and the reply does not decline", False),
        _told("language_mix", values.mixed, "share of tokens in another language", False),
        _told("code_switch", values.code_switch, "share of letters outside the language's scripts", False),
        _read("refused", values.refused, "the reply declines in words of its language or of English", None),
        _quoted(
            "verbatim_quote", quotes("shown"), "share of the reply's quotes that stand word by word in a passage shown"
        ),
        *(
            _quoted(f"quote_{source}", quotes(source), f"share of the reply's quotes {where}", more)
            for source, where, more in OTHER_QUOTES
        ),
        _quoted(
            "copied",
            copied,
            "share of the reply in runs of eight words or more from a passage shown, marked as quotes or not",
            None,
        ),
        _quoted(
            "citation_support_recall", supported("recall"), "share of statements that their citations support (ALCE)"
        ),
        _quoted(
            "citation_support_precision", supported("precision"), "share of citations that a statement needs (ALCE)"
        ),
        Metric(
            "grounded",
            grounded,
            "share of the answer's claims that a passage shown supports, in any language",
            needs=way_to("grounding"),
            control=SUPPORT,
            words=_BY_WORDS,
        ),
        *(
            _grounded(name, partial(crossed, name), f"the answer is {what}", more)
            for name, what, more in (
                ("right_supported", "right, and all its claims are supported", True),
                ("right_unsupported", "right, and a claim is not supported", None),
                ("wrong_supported", "wrong, and all its claims are supported", False),
                ("wrong_unsupported", "wrong, and a claim is not supported", False),
            )
        ),
        _abstains(
            "abstention_error",
            abstention.rate("error", abstention.by_words),
            "a passage shown answers, and the reply declines (in words, by tag, or without any text)",
            False,
            words=_BY_WORDS,
        ),
        _abstains(
            "abstention_hallucination",
            abstention.rate("hallucination", abstention.by_words),
            "no passage shown answers, and the reply does not decline",
            False,
            words=_BY_WORDS,
        ),
        _abstains(
            "nomiracl_error",
            abstention.rate("error", abstention.by_nomiracl),
            "a passage shown answers, and the reply says that it does not know",
            False,
        ),
        _abstains(
            "nomiracl_hallucination",
            abstention.rate("hallucination", abstention.by_nomiracl),
            "no passage shown answers, and the reply says that one does",
            False,
        ),
        _abstains("nomiracl_accuracy", abstention.nomiracl_accuracy, "it says rightly whether a passage answers"),
        _abstains(
            "nomiracl_invalid", abstention.nomiracl_invalid, "it has neither sentence of NoMIRACL's, or both", False
        ),
        Metric(
            "passages_in_language",
            passages_in_language,
            "share of the passages shown that are in the language of the question",
            None,
            needs=way_to("translation of documents"),
            control=uncontrolled("it describes passages, not replies"),
        ),
    )
}
# Before the name of a metric: in the record of what a run measured, what decides this metric alone.


# Names under which runs declare metrics of the user's of other sides or units, each with what they declare.
TWO_METRICS: dict[str, str] = {}


def words_of(metrics: Iterable[str]) -> dict[str, Any]:
    """Return what decides these metrics beside this package: normaliser and segmenters by version, users' functions.

    A segmenter without a version is not installed, so that the rows that need it are unscored.
    """
    found = [metric for name in metrics if (metric := metric_named(name)) is not None]
    declared = {metric.words for metric in found}
    from mrag_eval.metrics import UNICODE_VERSION

    known: dict[str, Callable[[], Any]] = {"normalizer": lambda: {"unicode": UNICODE_VERSION}, "segmenter": segmenters}
    known["lemmas"] = partial(segmenters, ["simplemma"])
    own = {f"{OWN}{metric.name}": dict(metric.identity) for metric in found if metric.identity}
    return own | {key: version() for key, version in known.items() if any(key in words for words in declared)}


def read_by_words(metric: str) -> bool:
    """Return whether words in files of languages decide a metric, as results name it."""
    declared = metric_named(metric)
    return metric == TASK_SCORES[0] if declared is None else _BY_WORDS[0] in declared.words


def support_by(metrics: Sequence[str], classifier: Mapping[str, Any]) -> dict[str, Any]:
    """Return what decides the metrics of support: the classifier, and the metric that says which answers are right."""
    if not {*GROUNDED} & {*metrics}:
        return {}
    right, crossed = next((n for n in CORRECT if n in metrics), None), [n for n in GROUNDED[1:] if n in metrics]
    return {**classifier, **({"right": {right: crossed}} if right and crossed else {})}


def metric_named(name: str) -> Metric | None:
    """Return the record of a metric as results name it, such as the share of one label; None for other measures.

    Raises DataError for a name of two metrics (:data:`TWO_METRICS`).
    """
    plain = plain_name(name)
    if plain in TWO_METRICS:
        raise DataError(TWO_METRICS[plain], "show them in a command each, or rename one: @metric(name=...)")
    base, dot, label = plain.partition(".")
    if dot and base == LABEL_SHARE:
        return replace(METRICS[base], name=plain, score=values.label(label))
    return METRICS.get(plain)


def scale_of(metric: str) -> Scale:
    """Return unit and range of a metric as results name it; ranking measures are shares, as is an unknown metric."""
    declared = TASK_MEASURES.get(metric) or metric_named(metric)
    return SHARE if declared is None else declared.scale


def more_is_better(metric: str) -> bool | None:
    """Return whether more of a metric, as results name it, is better; None if neither is.

    More of a ranking measure is better, and of an unknown metric.
    """
    declared = TASK_MEASURES.get(metric) or metric_named(metric)
    return True if declared is None else declared.higher_is_better


def nearer_zero_is_better(metric: str) -> bool:
    """Return whether a metric is better the nearer it is to 0 from either side, as BordIRlines' deltas of concurrence
    are.
    """
    declared = TASK_MEASURES.get(metric)
    return declared is not None and declared.nearer_zero


def better_side(metric: str) -> str:
    """Return which side of a metric is better: ``higher``, ``lower``, ``nearer_zero`` or ``neither``."""
    more = more_is_better(metric)
    if more is None:
        return "nearer_zero" if nearer_zero_is_better(metric) else "neither"
    return "higher" if more else "lower"


def direction_lines(metrics: Iterable[str]) -> list[str]:
    """Return a line for the metrics of each side that is better, except those of which more is."""
    found: dict[str, list[str]] = {}
    for metric in dict.fromkeys(metrics):
        found.setdefault(better_side(metric), []).append(metric)
    said = {
        "lower": "less is better",
        "nearer_zero": "nearer to 0 is better",
        "neither": "neither more nor less is better",
    }
    return [f"{text}: {', '.join(found[side])}" for side, text in said.items() if side in found]


def needs_of(metric: str) -> frozenset[str]:
    """Return the steps on the way to a metric, as results name it; what is none of the answer's is one of rankings."""
    declared = TASK_MEASURES.get(metric) or metric_named(metric)
    if declared is not None:
        return declared.needs
    return ANSWERED if metric in TASK_SCORES else REORDERED if metric.startswith(RERANKED) else RANKED


def control_of(metric: str) -> Control:
    """Return the controls of a metric, as results name it; what is none of the answer's is one of rankings."""
    declared = metric_named(metric)
    if declared is not None:
        return declared.control
    if metric.partition(".")[0] in TASK_SCORES:
        return uncontrolled("it is a score of the task as a whole")
    return RANKING


def measured_on(retrieval: Retrieval | None) -> dict[str, Any]:
    """Return the arguments of :func:`score_rows` and :func:`value_names` that a block decides; None searches nothing.

    Whether passages are shown is not known without a block.
    """
    if retrieval is None:
        return {"searched": False}
    return {
        "searched": retrieval.preset.ranks,
        "quota_depth": retrieval.quota_depth,
        "reranked": retrieval.rerank is not None,
        "shows": retrieval.shows_passages,
    }


def _as_far_as_known(value: Value, failures: Sequence[Failure], needs: frozenset[str]) -> Value:
    """Return the value of a row, or the failure on its way.

    Judges and labellers decide by a majority: what their failures leave open is without a value by itself.
    """
    failure = failed_in(failures, needs)
    if failure is None or failure.stage in ("judge", "label") or value in UNDEFINED:
        return value
    return failure.why


def value_names(
    names: Sequence[str],
    *,
    searched: bool,
    quota_depth: int | None = None,
    reranked: bool = False,
    shows: bool = True,
    by: LabelSource | None = None,
) -> dict[str, bool | None]:
    """Return the names of the values that :func:`score_rows` gives, each with whether higher is better.

    ``by`` is the labeller of the rankings, None if relevant documents are known by id.
    """
    names = _measurable(names, shows)
    ranked = [published_name(name, quota_depth) for name in ranking_measures(names)] if searched else []
    ranked += rerank_measures(names) if searched and reranked else []
    found = {name: metric_named(name) for name in names}
    plain = {_labelled(name, by): metric.higher_is_better for name, metric in found.items() if metric is not None}
    return plain | {labelled_name(name, by): True for name in ranked}


def _measurable(names: Sequence[str], shows: bool) -> list[str]:
    return [name for name in names if shows or name != SHOWN]


def _labelled(name: str, by: LabelSource | None) -> str:
    return labelled_name(name, by) if name == SHOWN else name


# Told by the detectors of the task.
_BY_RULE = {"correct_language": values.correct_language, "language_mix": values.mixed}


def score_rows(
    rows: Sequence[Scored],
    names: Sequence[str],
    *,
    searched: bool,
    quota_depth: int | None = None,
    reranked: bool = False,
    shows: bool = True,
    language: LanguageRule = values.BUNDLED,
    known: Mapping[str, Sequence[Value]] | None = None,
) -> list[RowScores]:
    """Score every row by every metric named; ``language`` is the rule of the metrics of languages.

    ``searched`` says whether the mode searched a corpus: without a search there is nothing for the ranking measures to
    measure, and they are left out; ``reranked`` says the same of a second stage and the measures on its list, ``shows``
    of passages in the prompt and ``shown@k``.
    ``quota_depth`` as in :func:`published_name`. ``known`` are values of metrics that are not scored again, by which an
    answer may be right.
    """
    out = [RowScores() for _ in rows]
    names = _measurable(names, shows)
    by = next((row.labels.by for row in rows if row.labels is not None), None)
    with Wait("scoring replies", len(names), "metrics") as wait:
        columns: dict[str, list[Value]] = {
            _labelled(n, by): _BY_RULE[n](rows, language) if n in _BY_RULE else declared.score(rows)
            for n in wait.over(names)
            if (declared := metric_named(n)) is not None
        }
    all_known = {**(known or {}), **columns}
    right = next((all_known[name] for name in CORRECT if name in all_known), None)
    columns |= {name: crossed(name, rows, right) for name in GROUNDED[1:] if name in columns}
    if searched:
        ranked = ranking_columns(rows, ranking_measures(names), quota_depth)
        if reranked:
            ranked |= rerank_columns(rows, rerank_measures(names))
        columns |= {labelled_name(name, by): column for name, column in ranked.items()}
    for metric, column in columns.items():
        needs = needs_of(metric)
        for given, row, found in zip(rows, out, column, strict=True):
            value = _as_far_as_known(found, given.failures, needs) if given.failures else found
            if isinstance(value, str):
                row.unscored[metric] = value
            elif not can_be_score(value):
                row.unscored[metric] = not_finite(value)
            else:
                row.values[metric] = value
    return out
