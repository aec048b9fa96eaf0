"""Values of replies: what each metric finds in the rows of a task.

A value is a float, or a reason why it is missing: never a silent 0 or NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from mrag_eval import metrics
from mrag_eval.config import CorrectLanguage
from mrag_eval.core import ANY_LANGUAGE, Scored, Value, language_name
from mrag_eval.platform import ConfigError, MissingExtraError
from mrag_eval.scoring._passage_metrics import where_told
from mrag_eval.scoring._reasons import (
    DECLINED,
    EMPTY,
    NO_ALIASES,
    NO_ANSWERS,
    NO_CHECK,
    NO_CHOICES,
    NO_PANEL,
    NO_SUFFICIENCY,
    NO_TAG,
    NO_TRANSLATION,
    NO_VOTES,
    NO_WAY_TO_DECLINE,
    NOT_YES_NO,
)
from mrag_eval.scoring._task_level import read_option

Batch = Callable[[Sequence[Scored]], list[Value]]


def by_row(value: Callable[[Scored], Value]) -> Batch:
    """Return the metric of a row as a metric of rows."""
    return lambda rows: [value(row) for row in rows]


def each(
    metric: Callable[..., float], normalize: metrics.Normalizer | None = None, *, by_language: bool = False
) -> Batch:
    """Return the metric of a reply and its answers as a metric of rows.

    With ``normalize``, both are normalised for the language of the row's question, which ``by_language`` gives alone.
    """

    def value(row: Scored) -> Value:
        if not row.doc.answers:
            return NO_ANSWERS
        how = {"lang": row.doc.query_lang} if by_language or normalize else {}
        how |= {"normalize": normalize} if normalize else {}
        try:
            return float(metric(row.answer, list(row.doc.answers), **how))
        except MissingExtraError as error:
            return error.message

    return by_row(value)


def _options(row: Scored) -> tuple[int | None, int] | None:
    """Return the option that a reply chooses, if it does, and the right one; None for a row without options."""
    choices, gold = row.doc.choices, row.doc.gold_choice
    if not choices or gold is None:
        return None
    # Equal options count as one: the second's text is never looked for, its letter counts as the first.
    first = [next(j for j, other in enumerate(choices) if other.strip() == text.strip()) for text in choices]
    options = [text if first[i] == i else f"\0{i}" for i, text in enumerate(choices)]
    picked = metrics.extract_choice(row.answer, len(choices), options, row.doc.query_lang, cut_off=row.cut_off)
    return None if picked is None else first[picked], first[gold]


@by_row
def accuracy(row: Scored) -> Value:
    found = _options(row)
    return NO_CHOICES if found is None else float(found[0] == found[1])


@by_row
def choice_parsed(row: Scored) -> Value:
    found = _options(row)
    return NO_CHOICES if found is None else float(found[0] is not None)


@by_row
def yes_no(row: Scored) -> Value:
    lang = row.doc.query_lang
    gold = {says for answer in row.doc.answers if (says := metrics.read_yes_no(answer, lang)) is not None}
    return float(metrics.read_yes_no(row.answer, lang) in gold) if len(gold) == 1 else NOT_YES_NO


def char_recall(rows: Sequence[Scored]) -> list[Value]:
    answered = [row for row in rows if row.doc.answers]
    found = iter(metrics.char_ngram_recall_batch([r.answer for r in answered], [list(r.doc.answers) for r in answered]))
    return [float(next(found)) if row.doc.answers else NO_ANSWERS for row in rows]


@by_row
def char_recall_aliases(row: Scored) -> Value:
    """Return recall over the answers and their further spellings, if the benchmark has any (MKQA)."""
    aliases = row.doc.extra.get("aliases")
    if not row.doc.answers or aliases is None:
        return NO_ALIASES if row.doc.answers else NO_ANSWERS
    return metrics.char_ngram_recall(row.answer, [*row.doc.answers, *aliases])


def translated(batch: Batch) -> Batch:
    """Return a metric on the answers in the language of the reference answers."""

    def score(rows: Sequence[Scored]) -> list[Value]:
        there = [row.doc.answers and row.translated is not None for row in rows]
        pairs = zip(rows, there, strict=True)
        values = iter(batch([replace(row, answer=row.translated or "") for row, is_there in pairs if is_there]))
        return [
            next(values) if is_there else (row.untranslated or NO_TRANSLATION) if row.doc.answers else NO_ANSWERS
            for row, is_there in zip(rows, there, strict=True)
        ]

    return score


def short_answer(part: str) -> Batch:
    """Return SEM-B or SEM-W (``binary``, ``weighted``): the reply against the annotators' answers and their votes."""

    def value(row: Scored) -> Value:
        votes = [
            metrics.VotedAnswer(tuple(entry["answers"]), tuple(entry["en_answers"]), entry["count"])
            for entry in row.doc.extra.get("votes") or ()
        ]
        lang = row.doc.culture_lang or row.doc.query_lang
        return getattr(metrics.short_answer_scores(row.answer, votes, lang), part) if votes else NO_VOTES

    return by_row(value)


@by_row
def lemma_rule(row: Scored) -> Value:
    lang = row.doc.culture_lang or row.doc.query_lang
    return float(metrics.has_lemma_rule(lang)) if row.doc.extra.get("votes") else NO_VOTES


@dataclass(frozen=True)
class LanguageRule:
    """How ``correct_language`` and ``language_mix`` are told.

    Attributes:
        detector: one for all languages, or by language; None for the bundled one.
        min_chars: the length of the longest reply that is left out.
        min_recognised: the least share of a language's texts that the detector recognises; None for no bound.
        check_script: whether the scripts of a language are told apart.
    """

    detector: metrics.LanguageDetector | Mapping[str, metrics.LanguageDetector] | None = None
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
            code: metrics.load_detector(
                name,
                told_apart if code == ANY_LANGUAGE else sorted({*told_apart, code}),
                confidence,
                letters_only=setting.letters_only,
            )
            for code, name in setting.detectors.items()
        }
        for code, detector in detectors.items():
            reason = None if code == ANY_LANGUAGE else metrics.unknown_to(detector, code)
            if reason is not None:
                raise ConfigError(
                    f"judge.correct_language.detector: {code}: {reason}", "name one that does, or leave it out"
                )
        return cls(detectors, setting.min_chars, setting.min_recognised, setting.check_script)


# The bundled detector.
BUNDLED = LanguageRule()


def correct_language(rows: Sequence[Scored], rule: LanguageRule = BUNDLED) -> list[Value]:
    rate = metrics.correct_language_rate(
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


def answered_in_english(rows: Sequence[Scored]) -> list[Value]:
    """Return 1 for an answer in English, however short; by the task's language check, else by the bundled detector."""
    unchecked = [i for i, row in enumerate(rows) if row.in_language is None]
    labels = [row.detected for row in rows]
    if unchecked:
        answers = [rows[i].answer for i in unchecked]
        found = metrics.correct_language_rate(answers, "en", min_chars=None).detected
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
    return float(metrics.accepts("en", label))


def code_switch(rows: Sequence[Scored]) -> list[Value]:
    found = [metrics.code_switch_share(row.answer, row.doc.query_lang) for row in rows]
    return where_told(rows, [str(switch.reason) if switch.share is None else switch.share for switch in found])


def mixed(rows: Sequence[Scored], rule: LanguageRule = BUNDLED) -> list[Value]:
    found = [
        metrics.language_mix(row.answer, row.doc.query_lang, detector=rule.detector, min_recognised=rule.min_recognised)
        for row in rows
    ]
    return where_told(rows, [str(mix.reason) if mix.share is None else mix.share for mix in found])


def refusals_unread(lang: str) -> str | None:
    """Return why refusals in a language cannot be read, since only those in English would be; None if they can."""
    return None if metrics.reads_refusals(lang) else f"refusals in {language_name(lang)} cannot be read"


@by_row
def refused(row: Scored) -> Value:
    return refusals_unread(row.doc.query_lang) or float(
        metrics.declines(row.answer, row.doc.query_lang, row.doc.choices or ())
    )


_WHY_NO_VERDICT = {"no reference": NO_ANSWERS, "declined": DECLINED, "empty": EMPTY}


def _verdict(row: Scored) -> Value:
    """Return the verdict between 0 and 1; the reason where the panel gave none, or a label."""
    judgement = row.judgement
    if judgement is None:
        return NO_PANEL
    if judgement.value is not None:
        return judgement.value
    return _WHY_NO_VERDICT.get(judgement.outcome) or judgement.why_unjudged


verdict = by_row(_verdict)


def label(name: str) -> Batch:
    """Return the share of one label among the verdicts of a panel."""

    def share(row: Scored) -> Value:
        if row.judgement is None or row.judgement.verdict is None:
            return _verdict(row)
        return float(row.judgement.verdict == name)

    return by_row(share)


@by_row
def judged_accuracy(row: Scored) -> Value:
    """Return the verdict, and 0 for a judged answer in the wrong language (XRAG, Appendix C.2)."""
    found = _verdict(row)
    if row.in_language is None or isinstance(found, str):
        return found
    if row.in_language == 0.0 and not row.declined:
        return 0.0
    return row.in_language if found == 1.0 and isinstance(row.in_language, str) else found


@by_row
def language_check(row: Scored) -> Value:
    return NO_CHECK if row.in_language is None else row.in_language


@by_row
def context_sufficiency(row: Scored) -> Value:
    judgement = row.sufficiency
    if judgement is None:
        return NO_SUFFICIENCY
    return judgement.why_unjudged if judgement.verdict is None else float(judgement.verdict)


@by_row
def declined(row: Scored) -> Value:
    if row.tagged is None:
        return NO_TAG
    return NO_WAY_TO_DECLINE if row.declined is None else float(row.declined)


@by_row
def answer_tag(row: Scored) -> Value:
    return NO_TAG if row.tagged is None else float(row.tagged)


def option(share: metrics.Share) -> Batch:
    """Return the share of replies that an option was read from, that decline, or that cannot be read."""

    def value(row: Scored) -> Value:
        if not row.doc.choices:
            return NO_CHOICES
        return float(metrics.SHARES[read_option(row.doc, row.answer, row.form)[1]] == share)

    return by_row(value)
