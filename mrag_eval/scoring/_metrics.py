"""Metric names of a task's YAML, and their values per row.

A value is a float, or a reason why it is missing: never a silent 0 or NaN. All rows of a rank are scored in one batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import Any

from mrag_eval.config import RERANKED, SHOWN, CorrectLanguage, Retrieval, ranking_measures, rerank_measures
from mrag_eval.core import (
    ANY_LANGUAGE,
    SHARE,
    ConfigError,
    Failure,
    LabelSource,
    MissingExtraError,
    RowScores,
    Scale,
    Scored,
    Value,
    Wait,
    can_be_score,
    failed_in,
    labelled_name,
    not_finite,
    plain_name,
    way_to,
)
from mrag_eval.metrics import (
    SHARES,
    UNICODE_VERSION,
    LanguageDetector,
    Normalizer,
    Share,
    VotedAnswer,
    accepts,
    char_ngram_f1,
    char_ngram_precision,
    char_ngram_recall,
    char_ngram_recall_batch,
    code_switch_share,
    correct_language_rate,
    declines,
    exact_match,
    extract_choice,
    has_lemma_rule,
    language_mix,
    load_detector,
    match,
    read_yes_no,
    segmented_f1,
    short_answer_scores,
    unknown_to,
    word_f1,
    word_precision,
    word_recall,
)
from mrag_eval.scoring._control_kinds import (
    CHOICE,
    EQUALS,
    FORM,
    HOLDS,
    JUDGED,
    LANGUAGE,
    RANKING,
    Control,
    uncontrolled,
)
from mrag_eval.scoring._passage_metrics import OTHER_QUOTES, copied, passages_in_language, quotes, where_told
from mrag_eval.scoring._ranking import RANKED, REORDERED, published_name, ranking_columns, rerank_columns, shown
from mrag_eval.scoring._reasons import (
    DECLINED,
    EMPTY,
    NO_ALIASES,
    NO_ANSWERS,
    NO_CHECK,
    NO_CHOICES,
    NO_PANEL,
    NO_SEGMENTER,
    NO_SUFFICIENCY,
    NO_TAG,
    NO_TRANSLATION,
    NO_VOTES,
    NO_WAY_TO_DECLINE,
    NOT_YES_NO,
    UNDEFINED,
)
from mrag_eval.scoring._task_level import ANSWERED, TASK_MEASURES, TASK_SCORES, read_option
from mrag_eval.text import segmenters

Batch = Callable[[Sequence[Scored]], list[Value]]


@dataclass(frozen=True)
class Metric:
    """A metric: its name, the function that scores rows, its unit and range, and whether higher is better.

    ``total``: every row gets a value, whatever the reply (then the harness can average it itself). ``needs`` are the
    steps on the way to the metric: a row of which one failed has no value. ``control`` names what shows the metric's
    range in a language (:mod:`mrag_eval.scoring._control_kinds`). ``words``: what decides the words of a reply beside
    the code of the metric, a normaliser of ours or the segmenters of other libraries (:func:`words_of`).
    """

    name: str
    score: Batch
    total: bool
    summary: str
    higher_is_better: bool | None = True
    scale: Scale = SHARE
    _: KW_ONLY
    needs: frozenset[str]
    control: Control
    words: tuple[str, ...] = ()


_JUDGED = way_to("answer", "judge")
_TRANSLATED = way_to("translation of answers")


def _choice(rows: Sequence[Scored], value: Callable[[int | None, int], float]) -> list[Value]:
    out: list[Value] = []
    for row in rows:
        choices, gold = row.doc.choices, row.doc.gold_choice
        if not choices or gold is None:
            out.append(NO_CHOICES)
            continue
        # Equal options count as one: the second's text is never looked for, its letter counts as the first.
        first = [next(j for j, other in enumerate(choices) if other.strip() == text.strip()) for text in choices]
        options = [text if first[i] == i else f"\0{i}" for i, text in enumerate(choices)]
        picked = extract_choice(row.answer, len(choices), options, row.doc.query_lang)
        out.append(value(None if picked is None else first[picked], first[gold]))
    return out


def _accuracy(rows: Sequence[Scored]) -> list[Value]:
    return _choice(rows, lambda picked, gold: float(picked == gold))


def _parsed(rows: Sequence[Scored]) -> list[Value]:
    return _choice(rows, lambda picked, _: float(picked is not None))


def _yes_no(rows: Sequence[Scored]) -> list[Value]:
    out: list[Value] = []
    for row in rows:
        lang = row.doc.query_lang
        gold = {says for answer in row.doc.answers if (says := read_yes_no(answer, lang)) is not None}
        out.append(float(read_yes_no(row.answer, lang) in gold) if len(gold) == 1 else NOT_YES_NO)
    return out


def _lexical(batch: Callable[[list[str], list[list[str]]], Iterable[float]]) -> Batch:
    def score(rows: Sequence[Scored]) -> list[Value]:
        out: list[Value] = [NO_ANSWERS] * len(rows)
        where = [i for i, row in enumerate(rows) if row.doc.answers]
        if where:
            values = batch([rows[i].answer for i in where], [list(rows[i].doc.answers) for i in where])
            for i, value in zip(where, values, strict=True):
                out[i] = float(value)
        return out

    return score


def _each(metric: Callable[[str, list[str]], float]) -> Batch:
    """Return the metric of a reply and its answers as a metric of rows."""
    return _lexical(lambda replies, answers: [metric(r, a) for r, a in zip(replies, answers, strict=True)])


_char_recall = _lexical(char_ngram_recall_batch)


def _in_language(metric: Callable[..., float], normalizer: Normalizer) -> Batch:
    """Return the metric of a reply and its answers, normalised for the language of the row's question."""

    def score(rows: Sequence[Scored]) -> list[Value]:
        return [
            metric(r.answer, list(r.doc.answers), normalize=normalizer, lang=r.doc.query_lang)
            if r.doc.answers
            else NO_ANSWERS
            for r in rows
        ]

    return score


def _f1_words(rows: Sequence[Scored]) -> list[Value]:
    out: list[Value] = []
    for row in rows:
        try:
            answers = list(row.doc.answers)
            out.append(segmented_f1(row.answer, answers, lang=row.doc.query_lang) if answers else NO_ANSWERS)
        except MissingExtraError:
            out.append(NO_SEGMENTER)
    return out


def _char_recall_aliases(rows: Sequence[Scored]) -> list[Value]:
    """Return recall over the answers and their further spellings, if the benchmark has any (MKQA)."""
    out: list[Value] = []
    for row in rows:
        aliases = row.doc.extra.get("aliases")
        if not row.doc.answers:
            out.append(NO_ANSWERS)
        elif aliases is None:
            out.append(NO_ALIASES)
        else:
            out.append(char_ngram_recall(row.answer, [*row.doc.answers, *aliases]))
    return out


def _translated(batch: Batch) -> Batch:
    """Return a metric on the answers in the language of the reference answers."""

    def score(rows: Sequence[Scored]) -> list[Value]:
        out: list[Value] = [(row.untranslated or NO_TRANSLATION) if row.doc.answers else NO_ANSWERS for row in rows]
        where = [i for i, row in enumerate(rows) if row.doc.answers and row.translated is not None]
        values = batch([replace(rows[i], answer=rows[i].translated or "") for i in where])
        for i, value in zip(where, values, strict=True):
            out[i] = value
        return out

    return score


def _short_answer(part: str) -> Batch:
    """Return SEM-B or SEM-W (``binary``, ``weighted``): the reply against the annotators' answers and their votes."""

    def score(rows: Sequence[Scored]) -> list[Value]:
        out: list[Value] = []
        for row in rows:
            votes = [
                VotedAnswer(tuple(entry["answers"]), tuple(entry["en_answers"]), entry["count"])
                for entry in row.doc.extra.get("votes") or ()
            ]
            lang = row.doc.culture_lang or row.doc.query_lang
            out.append(getattr(short_answer_scores(row.answer, votes, lang), part) if votes else NO_VOTES)
        return out

    return score


def _lemma_rule(rows: Sequence[Scored]) -> list[Value]:
    return [
        float(has_lemma_rule(row.doc.culture_lang or row.doc.query_lang)) if row.doc.extra.get("votes") else NO_VOTES
        for row in rows
    ]


@dataclass(frozen=True)
class LanguageRule:
    """How ``correct_language`` is told.

    Attributes:
        detector: one for all languages, or by language; None for the bundled one.
        min_chars: the length of the longest reply that is left out.
        min_recognised: the least share of a language's texts that the detector recognises; None for no bound.
        check_script: whether the scripts of a language are told apart.
    """

    detector: LanguageDetector | Mapping[str, LanguageDetector] | None = None
    min_chars: int | None = 20
    min_recognised: float | None = 0.8
    check_script: bool = True

    @classmethod
    def of(cls, setting: CorrectLanguage, languages: Iterable[str]) -> LanguageRule:
        """Return the rule of a block; lingua tells ``languages`` apart.

        Raises:
            MissingExtraError: the extra ``lingua`` is not installed.
            ConfigError: a detector does not know the language that it is named for.
        """
        confidence, told_apart = setting.min_confidence or 0.0, sorted(languages)
        detectors = {
            code: load_detector(
                name,
                told_apart if code == ANY_LANGUAGE else sorted({*told_apart, code}),
                confidence,
                letters_only=setting.letters_only,
            )
            for code, name in setting.detectors.items()
        }
        for code, detector in detectors.items():
            reason = None if code == ANY_LANGUAGE else unknown_to(detector, code)
            if reason is not None:
                raise ConfigError(
                    f"judge.correct_language.detector: {code}: {reason}", "name one that does, or leave it out"
                )
        return cls(detectors, setting.min_chars, setting.min_recognised, setting.check_script)


def _correct_language(rows: Sequence[Scored], rule: LanguageRule = LanguageRule()) -> list[Value]:
    rate = correct_language_rate(
        [r.answer for r in rows],
        [r.doc.query_lang for r in rows],
        min_chars=rule.min_chars,
        detector=rule.detector,
        min_recognised=rule.min_recognised,
        check_script=rule.check_script,
    )
    return where_told(
        rows,
        [
            DECLINED if row.declined else str(reason) if correct is None else float(correct)
            for row, correct, reason in zip(rows, rate.correct, rate.reasons, strict=True)
        ],
    )


def _answered_in_english(rows: Sequence[Scored]) -> list[Value]:
    """Return 1 for an answer in English, however short; by the task's language check, else by the bundled detector."""
    unchecked = [i for i, row in enumerate(rows) if row.in_language is None]
    labels = [row.detected for row in rows]
    if unchecked:
        answers = [rows[i].answer for i in unchecked]
        found = correct_language_rate(answers, "en", min_chars=None).detected
        for i, label in zip(unchecked, found, strict=True):
            labels[i] = label
    return [_in_english(row, label) for row, label in zip(rows, labels, strict=True)]


def _in_english(row: Scored, label: str | None) -> Value:
    if row.declined:
        return DECLINED
    if not any(map(str.isalpha, row.answer)):
        # a number is in no language; without any text there is no answer
        return 0.0 if row.answer.strip() else EMPTY
    if label is None:
        return str(row.in_language)
    return float(accepts("en", label))


def _code_switch(rows: Sequence[Scored]) -> list[Value]:
    found = [code_switch_share(r.answer, r.doc.query_lang) for r in rows]
    return where_told(rows, [str(switch.reason) if switch.share is None else switch.share for switch in found])


def _language_mix(rows: Sequence[Scored]) -> list[Value]:
    found = [language_mix(r.answer, r.doc.query_lang) for r in rows]
    return where_told(rows, [str(mix.reason) if mix.share is None else mix.share for mix in found])


def _judge_correct(rows: Sequence[Scored]) -> list[Value]:
    return [_verdict(row) for row in rows]


def _verdict(row: Scored) -> Value:
    judgement = row.judgement
    if judgement is None:
        return NO_PANEL
    if judgement.verdict is not None:
        return float(judgement.verdict)
    return NO_ANSWERS if judgement.outcome == "no reference" else judgement.why_unjudged


def _judged_accuracy(rows: Sequence[Scored]) -> list[Value]:
    return [_accurate(row) for row in rows]


def _accurate(row: Scored) -> Value:
    """Return the verdict, and 0 for a judged answer in the wrong language (XRAG, Appendix C.2)."""
    verdict = _verdict(row)
    if row.in_language is None or isinstance(verdict, str):
        return verdict
    if row.in_language == 0.0 and not row.declined:
        return 0.0
    return row.in_language if verdict == 1.0 and isinstance(row.in_language, str) else verdict


def _language_check(rows: Sequence[Scored]) -> list[Value]:
    return [NO_CHECK if row.in_language is None else row.in_language for row in rows]


def _context_sufficiency(rows: Sequence[Scored]) -> list[Value]:
    out: list[Value] = []
    for judgement in (row.sufficiency for row in rows):
        if judgement is None:
            out.append(NO_SUFFICIENCY)
        else:
            out.append(judgement.why_unjudged if judgement.verdict is None else float(judgement.verdict))
    return out


def _declined(rows: Sequence[Scored]) -> list[Value]:
    return [
        NO_TAG if row.tagged is None else NO_WAY_TO_DECLINE if row.declined is None else float(row.declined)
        for row in rows
    ]


def _option(share: Share) -> Batch:
    """Return the share of replies that an option was read from, that decline, or that cannot be read."""

    def score(rows: Sequence[Scored]) -> list[Value]:
        return [
            float(SHARES[read_option(row.doc, row.answer, row.form)[1]] == share) if row.doc.choices else NO_CHOICES
            for row in rows
        ]

    return score


def _answer_tag(rows: Sequence[Scored]) -> list[Value]:
    return [NO_TAG if row.tagged is None else float(row.tagged) for row in rows]


def _refused(rows: Sequence[Scored]) -> list[Value]:
    return [float(declines(row.answer, row.doc.query_lang, row.doc.choices or ())) for row in rows]


_OF_PASSAGES = uncontrolled("it compares replies with passages, and controls are shown none")
# A metric of the reply.
_reply = partial(Metric, needs=ANSWERED)
METRICS: dict[str, Metric] = {
    m.name: m
    for m in (
        _reply(
            "acc",
            _accuracy,
            True,
            "the chosen option is the right one (a reply without a clear choice is wrong)",
            control=CHOICE,
        ),
        _reply("acc_micro", _accuracy, True, "acc, for groups that also report the mean over rows", control=CHOICE),
        _reply("choice_parsed", _parsed, True, "share of replies with exactly one readable choice", control=FORM),
        _reply(
            "yes_no",
            _yes_no,
            False,
            "the reply says yes or no as the answer does, in words of its language",
            control=HOLDS,
        ),
        _reply("char3gram_recall", _char_recall, True, "character 3-gram recall, best over answers", control=HOLDS),
        _reply(
            "char3gram_recall_aliases",
            _char_recall_aliases,
            False,
            "the same over answers and aliases (MKQA)",
            control=HOLDS,
        ),
        _reply("char3gram_precision", _each(char_ngram_precision), True, "character 3-gram precision", control=EQUALS),
        _reply("char3gram_f1", _each(char_ngram_f1), True, "character 3-gram F1", control=EQUALS),
        _reply(
            "char3gram_recall_unicode",
            _in_language(char_ngram_recall, "unicode"),
            True,
            "the same, normalised for every script",
            control=HOLDS,
            words=("normalizer",),
        ),
        _reply("exact_match", _each(exact_match), True, "normalised reply equals an answer", control=EQUALS),
        _reply("match", _each(match), True, "normalised answer is contained in the normalised reply", control=HOLDS),
        Metric(
            "char3gram_recall_translated",
            _translated(_char_recall),
            False,
            "char3gram_recall of the reply in the language of the reference answers, translated where it is not in it",
            needs=_TRANSLATED,
            control=HOLDS,
        ),
        Metric(
            "match_translated", _translated(_each(match)), False, "match, likewise", needs=_TRANSLATED, control=HOLDS
        ),
        _reply(
            "exact_match_unicode",
            _in_language(exact_match, "unicode"),
            True,
            "exact_match for every script",
            control=EQUALS,
            words=("normalizer",),
        ),
        _reply(
            "match_unicode",
            _in_language(match, "unicode"),
            True,
            "match for every script, of whole words",
            control=HOLDS,
            words=("normalizer",),
        ),
        _reply(
            "exact_match_mkqa",
            _in_language(exact_match, "mkqa"),
            True,
            "exact_match by MKQA's own normaliser",
            control=EQUALS,
        ),
        _reply("f1", _each(word_f1), True, "word F1, best over answers", control=EQUALS),
        _reply(
            "f1_unicode",
            _in_language(word_f1, "unicode"),
            True,
            "word F1, normalised for every script",
            control=EQUALS,
            words=("normalizer",),
        ),
        _reply(
            "f1_words",
            _f1_words,
            False,
            "word F1, normalised for every script; words of scripts without spaces, and of Korean, as dictionaries cut "
            "them (extra segment)",
            control=EQUALS,
            words=("normalizer", "segmenter"),
        ),
        _reply("f1_mkqa", _in_language(word_f1, "mkqa"), True, "word F1 by MKQA's own normaliser", control=EQUALS),
        _reply("word_recall", _each(word_recall), True, "word recall, best over answers", control=HOLDS),
        _reply("word_precision", _each(word_precision), True, "word precision, best over answers", control=EQUALS),
        _reply("sem_b", _short_answer("binary"), False, "the reply holds an annotated answer (BLEnD)", control=HOLDS),
        _reply(
            "sem_w", _short_answer("weighted"), False, "its votes over those of the top answer (BLEnD)", control=HOLDS
        ),
        Metric(
            "sem_lemma_rule",
            _lemma_rule,
            False,
            "local answers are also compared by stem, not as text alone",
            None,
            needs=frozenset(),
            control=uncontrolled("it says which rule reads a row, whatever the reply"),
        ),
        _reply(
            "correct_language", _correct_language, False, "replies over 20 characters: right language", control=LANGUAGE
        ),
        _reply(
            "answered_in_english",
            _answered_in_english,
            False,
            "the reply is in English, however short",
            None,
            control=LANGUAGE,
        ),
        Metric(
            "judged_accuracy",
            _judged_accuracy,
            False,
            "judge_correct, and in the language asked for (XRAG)",
            needs=_JUDGED,
            control=JUDGED,
        ),
        Metric(
            "judge_correct",
            _judge_correct,
            False,
            "more than half of the panel's judges find the answer correct",
            needs=_JUDGED,
            control=JUDGED,
        ),
        Metric(
            "context_sufficiency",
            _context_sufficiency,
            False,
            "what is shown suffices for a good answer (XRAG)",
            needs=way_to("translation of documents", "judge"),
            control=uncontrolled("it judges passages, not replies"),
        ),
        Metric(
            SHOWN,
            shown,
            False,
            "a relevant passage is among those in the prompt, whose number is retrieval.k; defined in every mode that "
            "shows passages",
            control=RANKING,
            needs=REORDERED,
        ),
        _reply(
            "language_check",
            _language_check,
            False,
            "right language, by the judge block's language_check",
            control=LANGUAGE,
        ),
        _reply(
            "declined",
            _declined,
            False,
            "the answer tag holds None, if the prompt offers that (incorrect)",
            None,
            control=FORM,
        ),
        _reply("answer_tag", _answer_tag, False, "share of replies with the answer tag asked for", control=FORM),
        _reply(
            "option_read",
            _option("read"),
            False,
            "an option can be read from the reply by BordIRlines' rule",
            control=FORM,
        ),
        _reply(
            "option_refused",
            _option("refused"),
            False,
            "no option is read, and the reply declines in words",
            None,
            control=FORM,
        ),
        _reply(
            "option_unread",
            _option("unread"),
            False,
            "no option is read, and the reply does not decline",
            False,
            control=FORM,
        ),
        _reply("language_mix", _language_mix, False, "share of tokens in another language", False, control=LANGUAGE),
        _reply(
            "code_switch",
            _code_switch,
            False,
            "share of letters outside the language's scripts",
            False,
            control=LANGUAGE,
        ),
        _reply(
            "refused", _refused, True, "the reply declines in words of its language or of English", None, control=FORM
        ),
        _reply(
            "verbatim_quote",
            quotes("shown"),
            False,
            "share of the reply's quotes that stand word by word in a passage shown",
            control=_OF_PASSAGES,
        ),
        *(
            _reply(
                f"quote_{source}",
                quotes(source),
                False,
                f"share of the reply's quotes {where}",
                more,
                control=_OF_PASSAGES,
            )
            for source, where, more in OTHER_QUOTES
        ),
        _reply(
            "copied",
            copied,
            False,
            "share of the reply in runs of eight words or more from a passage shown, marked as quotes or not",
            None,
            control=_OF_PASSAGES,
        ),
        Metric(
            "passages_in_language",
            passages_in_language,
            False,
            "share of the passages shown that are in the language of the question",
            None,
            needs=way_to("translation of documents"),
            control=uncontrolled("it describes passages, not replies"),
        ),
    )
}
# Metrics that a reply and its row alone decide.
REPLY_METRICS = frozenset(METRICS) - {
    "char3gram_recall_translated",
    "match_translated",
    "judged_accuracy",
    "judge_correct",
    "context_sufficiency",
    "language_check",
    "answered_in_english",
    "verbatim_quote",
    *(f"quote_{source}" for source, *_ in OTHER_QUOTES),
    "copied",
    "passages_in_language",
    SHOWN,
}
# Every name that a task may list under ``metrics``, except ranking measures.
METRIC_NAMES = (*METRICS, *TASK_SCORES)


def words_of(metrics: Iterable[str]) -> dict[str, Any]:
    """Return what decides the words of these metrics of the reply: normaliser and segmenters, by version.

    A segmenter without a version is not installed, so that the rows that need it are unscored.
    """
    declared = {METRICS[name].words for name in map(plain_name, metrics) if name in METRICS}
    known: dict[str, Callable[[], Any]] = {"normalizer": lambda: {"unicode": UNICODE_VERSION}, "segmenter": segmenters}
    return {key: version() for key, version in known.items() if any(key in words for words in declared)}


def scale_of(metric: str) -> Scale:
    """Return unit and range of a metric as results name it; ranking measures are shares, as is an unknown metric."""
    declared = TASK_MEASURES.get(metric) or METRICS.get(metric)
    return SHARE if declared is None else declared.scale


def more_is_better(metric: str) -> bool | None:
    """Return whether more of a metric, as results name it, is better; None if neither is.

    More of a ranking measure is better, and of an unknown metric.
    """
    declared = TASK_MEASURES.get(metric) or METRICS.get(plain_name(metric))
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
    declared = TASK_MEASURES.get(metric) or METRICS.get(plain_name(metric))
    if declared is not None:
        return declared.needs
    return ANSWERED if metric in TASK_SCORES else REORDERED if metric.startswith(RERANKED) else RANKED


def control_of(metric: str) -> Control:
    """Return the controls of a metric, as results name it; what is none of the answer's is one of rankings."""
    declared = METRICS.get(plain_name(metric))
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
        "searched": retrieval.searches,
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
    plain = {_labelled(name, by): METRICS[name].higher_is_better for name in names if name in METRICS}
    return plain | {labelled_name(name, by): True for name in ranked}


def _measurable(names: Sequence[str], shows: bool) -> list[str]:
    return [name for name in names if shows or name != SHOWN]


def _labelled(name: str, by: LabelSource | None) -> str:
    return labelled_name(name, by) if name == SHOWN else name


def score_rows(
    rows: Sequence[Scored],
    names: Sequence[str],
    *,
    searched: bool,
    quota_depth: int | None = None,
    reranked: bool = False,
    shows: bool = True,
    language: LanguageRule = LanguageRule(),
) -> list[RowScores]:
    """Score every row by every metric named; ``language`` is the rule of ``correct_language``.

    ``searched`` says whether the mode searched a corpus: without a search there is nothing for the ranking measures to
    measure, and they are left out; ``reranked`` says the same of a second stage and the measures on its list, ``shows``
    of passages in the prompt and ``shown@k``.
    ``quota_depth`` as in :func:`published_name`.
    """
    out = [RowScores() for _ in rows]
    names = _measurable(names, shows)
    by = next((row.labels.by for row in rows if row.labels is not None), None)
    with Wait("scoring replies", len(names), "metrics") as wait:
        columns: dict[str, list[Value]] = {
            _labelled(n, by): _correct_language(rows, language) if n == "correct_language" else METRICS[n].score(rows)
            for n in wait.over(names)
            if n in METRICS
        }
    if searched:
        ranked = ranking_columns(rows, ranking_measures(names), quota_depth)
        if reranked:
            ranked |= rerank_columns(rows, rerank_measures(names))
        columns |= {labelled_name(name, by): values for name, values in ranked.items()}
    for metric, values in columns.items():
        needs = needs_of(metric)
        for given, row, found in zip(rows, out, values, strict=True):
            value = _as_far_as_known(found, given.failures, needs) if given.failures else found
            if isinstance(value, str):
                row.unscored[metric] = value
            elif not can_be_score(value):
                row.unscored[metric] = not_finite(value)
            else:
                row.values[metric] = value
    return out
