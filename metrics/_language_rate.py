"""Correct language rate: the share of answers in the requested language, and the languages of the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

from mrag_eval.core import ANY_LANGUAGE, base_language, is_language, language_name, normalize_language, suggestion
from mrag_eval.languages import name_in_prompts, reliability
from mrag_eval.metrics._language_detection import UNDETERMINED, FastTextDetector, LanguageDetector, default_detector
from mrag_eval.platform import ConfigError, MetricError
from mrag_eval.text import expected_scripts, han_variant, letter_scripts

# Labels that count as the requested language, because detectors cannot tell the two apart or one is a variety of
# the other. Arabic varieties are one language already.
_VARIETIES: dict[str, frozenset[str]] = {
    "zh": frozenset({"yue", "wuu", "lzh"}),
    # In Latin script the three are one language to a detector. Its label "sr" is learnt from Cyrillic, so it counts for
    # Serbian alone.
    "sr": frozenset({"sh", "hr", "bs"}),
    "hr": frozenset({"sh", "bs"}),
    "bs": frozenset({"sh", "hr"}),
    "ne": frozenset({"dty"}),
    "nb": frozenset({"nn"}),
    "nn": frozenset({"nb"}),
    "fa": frozenset({"prs"}),
    "prs": frozenset({"fa"}),
    # Detectors have a label of its own for the language in another script. Plain codes leave the script open.
    "az": frozenset({"azb"}),
    "ku": frozenset({"ckb"}),
    "pa": frozenset({"pnb"}),
    # most sentences are both Indonesian and Malay
    "id": frozenset({"ms"}),
    "ms": frozenset({"id"}),
}


@dataclass(frozen=True, slots=True)
class LanguageBreakdown:
    """The answers expected in one language.

    ``answered_in`` counts the scored answers by detected language, right ones included (``und``: undetermined).
    """

    language: str
    rate: float | None
    scored: int
    correct: int
    skipped: int
    answered_in: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class LanguageRate:
    """The result of :func:`correct_language_rate`; sequences are aligned with the responses.

    Attributes:
        rate: correct / scored in 0..1, None if nothing was scored.
        scored: number of responses that were scored.
        detected: the detector's label for each response, None if it was not called.
        skipped: number of responses left out of numerator and denominator.
        correct: True, False, or None if the response was left out.
        reasons: the reason for leaving out a response, None if it was scored.
        reason: the cause if ``rate`` is None, else None.
        by_language: one breakdown for each expected language.
    """

    rate: float | None
    scored: int
    detected: tuple[str | None, ...]
    skipped: int = 0
    correct: tuple[bool | None, ...] = ()
    reasons: tuple[str | None, ...] = ()
    reason: str | None = None
    by_language: Mapping[str, LanguageBreakdown] = field(default_factory=dict)


def correct_language_rate(
    responses: Sequence[str | None],
    languages: str | Sequence[str],
    *,
    min_chars: int | None = 20,
    detector: LanguageDetector | Mapping[str, LanguageDetector] | None = None,
    min_recognised: float | None = None,
    check_script: bool = False,
) -> LanguageRate:
    """Return the share of responses written in the requested language.

    A response is scored if it has MORE than ``min_chars`` code points, counted raw (spaces and newlines included);
    shorter ones, for which detectors guess, are left out of numerator and denominator. Newlines are replaced by one
    space for the detector, nothing else is cleaned, and its first label counts. Labels are compared as languages:
    scripts, regions, aliases (iw/he, tl/fil, no/nb) and varieties (Arabic dialects; Cantonese and Wu for Chinese) make
    no difference. An undetermined response (``und``) is correct if it has no letters, else wrong, or left out if the
    detector has a minimum of confidence.

    Args:
        responses: the raw responses; None (no response) is left out and counted.
        languages: one language for all responses, or one for each.
        min_chars: 20 in the mRAG paper, whose rule it is: it drops ordinary sentences in Chinese, Japanese and Korean.
            None for no minimum (XRAG).
        detector: a :class:`LanguageDetector`, or one for each requested language (base codes; ``default`` for the
            others); None for the bundled fastText lid.176.
        min_recognised: leave out responses of a language and length of which the detector recognises a smaller share
            (0..1) of texts by :func:`mrag_eval.languages.reliability`; languages and detectors that were not measured
            are scored. None for no bound, as in both papers.
        check_script: a response in another script than the one that a language code names (``sr-Latn``) is wrong, and
            text in Latin letters that no detector recognises is the language in Latin script (``hi-Latn``), not what
            the detector guesses. False in both papers.

    Returns:
        The rate with its counts. It is None, with a reason, if nothing is scored; responses in a language that the
            detector does not know are left out with that reason.

    Raises:
        MetricError: lengths differ, a response is not a string, a language is unknown, or the detector returned a
            different number of labels than texts.

    Source: "Retrieval-augmented generation in multilingual settings" (Chirkova et al., 2024), section 3; XRAG, Figure 5
    for the breakdown.
    """
    if isinstance(responses, str):
        raise MetricError("responses must be a list of strings, got one string", "pass [response]")
    expected = _expected(languages, len(responses), keep_script=check_script)
    detectors = {code: detector_for(code, detector) for code in set(expected)}
    unknown = {code: unknown_to(each, code) for code, each in detectors.items()}
    limit = -1 if min_chars is None else min_chars
    reasons: list[str | None] = []
    for row, (response, language) in enumerate(zip(responses, expected, strict=True)):
        if response is not None and not isinstance(response, str):
            raise MetricError(f"responses[{row}] must be a string, got {type(response).__name__}")
        if response is None:
            reasons.append("no response")
        elif len(response) <= limit:
            reasons.append("too short to tell the language")
        elif not _has_letters(response):
            reasons.append(None)
        elif unknown[language] is not None:
            # not even a reply in another script: a rate over wrong replies alone could only be 0
            reasons.append(unknown[language])
        else:
            reasons.append(unreliable(detectors[language], language, len(response), min_recognised))
    detected: list[str | None] = [None] * len(responses)
    correct: list[bool | None] = [None] * len(responses)
    rows = [row for row, reason in enumerate(reasons) if reason is None]
    for row, label in zip(rows, _labels(responses, expected, rows, detectors), strict=True):
        text, language = str(responses[row]), expected[row]
        least = getattr(detectors[language], "min_confidence", 0.0)
        if check_script and (script := _script_told(text, language, label)) is not None:
            detected[row], correct[row] = script, False
        elif label != UNDETERMINED:
            detected[row], correct[row] = label, accepts(language, label)
        elif least > 0 and _has_letters(text):
            reasons[row] = f"the detector is less sure of the language than {least:g}"
        else:
            detected[row], correct[row] = label, not _has_letters(text)
    scored = [row for row in rows if correct[row] is not None]
    hits = sum(1 for row in scored if correct[row])
    return LanguageRate(
        rate=hits / len(scored) if scored else None,
        scored=len(scored),
        detected=tuple(detected),
        skipped=len(responses) - len(scored),
        correct=tuple(correct),
        reasons=tuple(reasons),
        reason=None if scored else _reason_nothing_scored(reasons),
        by_language=_breakdowns(expected, detected, correct),
    )


def _has_letters(text: str) -> bool:
    """Return whether a text has letters; one without is in every language, though detectors have labels for digits."""
    return any(map(str.isalpha, text))


def _labels(
    responses: Sequence[str | None],
    expected: Sequence[str],
    rows: Sequence[int],
    detectors: Mapping[str, LanguageDetector],
) -> list[str]:
    """Return the label of each of the rows; every detector is called once."""
    labels = dict.fromkeys(rows, UNDETERMINED)
    # not by equality: a detector may be any object
    for detector in {id(each): each for each in detectors.values()}.values():
        own = [row for row in rows if detectors[expected[row]] is detector and _has_letters(str(responses[row]))]
        found = detector.detect([str(responses[row]).replace("\n", " ") for row in own]) if own else []
        if len(found) != len(own):
            raise MetricError(f"the detector returned {len(found)} labels for {len(own)} texts")
        labels.update(zip(own, found, strict=True))
    return [labels[row] for row in rows]


def _script_told(text: str, language: str, label: str) -> str | None:
    """Return the language and script of a text that is wrong by its script; None if its script says nothing."""
    base, script = base_language(language), other_script(text, language)
    if label == UNDETERMINED:
        return None
    if script is not None and accepts(base, label):
        return normalize_language(f"{base}-{script}")
    if accepts(base, label) or not is_romanised(text, base):
        return None
    return None if language.endswith("-Latn") else f"{base}-Latn"


def detector_for(language: str, detector: LanguageDetector | Mapping[str, LanguageDetector] | None) -> LanguageDetector:
    """Return the detector of a language: its own, else the default one."""
    if isinstance(detector, Mapping):
        return detector.get(base_language(language)) or detector.get(ANY_LANGUAGE) or default_detector()
    return default_detector() if detector is None else detector


def unreliable(detector: LanguageDetector, language: str, length: int, bound: float | None) -> str | None:
    """Return why a text of ``length`` code points is left out; None if a detector recognises enough of such texts."""
    name = getattr(detector, "measured_as", None)
    known = None if name is None or bound is None else reliability(name, base_language(language), length)
    if known is None or bound is None or known.share >= bound:
        return None
    share = f"{int(100 * known.share)}% of {name_in_prompts(known.language)} texts"
    return f"{known.detector} recognises {share} of {known.lengths}"


def _expected(wanted: str | Sequence[str], n: int, *, keep_script: bool) -> list[str]:
    codes = [wanted] * n if isinstance(wanted, str) else list(wanted)
    if len(codes) != n:
        raise MetricError(f"{n} responses but {len(codes)} languages", "pass one language, or one for each response")
    read = normalize_language if keep_script else base_language
    try:
        known = {code: read(code) for code in dict.fromkeys(codes)}
    except (ConfigError, AttributeError) as error:
        row = next(i for i, code in enumerate(codes) if not isinstance(code, str) or not is_language(code))
        wrong = codes[row]
        raise MetricError(f"languages[{row}]: unknown language {wrong!r}", suggestion(str(wrong))) from error
    return [known[code] for code in codes]


def unknown_to(detector: LanguageDetector, language: str) -> str | None:
    """Return why answers in a language cannot be scored by a detector; None if it knows the language, in its script."""
    supported = getattr(detector, "supported", None)
    if supported is None or language in supported:
        return None
    if any(accepts(language, label) and _share_script(language, label) for label in supported):
        return None
    own = getattr(detector, "name", None)
    return f"the detector{f' {own}' if own else ''} does not know {language_name(language)}"


def counted_together(language: str) -> tuple[str, ...]:
    """Return the other languages that count as ``language`` (``id``: Malay), by code; empty for most languages."""
    return tuple(sorted(_VARIETIES.get(base_language(language), ())))


@cache
def accepts(expected: str, label: str) -> bool:
    """Return whether a detector's label counts as the expected language, whatever its script."""
    found, wanted = _label_language(label), base_language(expected)
    return found == wanted or found in _VARIETIES.get(wanted, ())


def _share_script(language: str, label: str) -> bool:
    """Return whether texts with a label may be in the script that a language code names."""
    if "-" not in language or not is_language(label):
        return True
    return not expected_scripts(label) or bool(expected_scripts(language) & expected_scripts(label))


@cache
def _label_language(label: str) -> str:
    return base_language(label) if is_language(label) else label.replace("_", "-").lower().split("-")[0]


def _reason_nothing_scored(reasons: Sequence[str | None]) -> str:
    counts = Counter(reason for reason in reasons if reason is not None)
    if not counts:
        return "no responses"
    return "nothing to score: " + "; ".join(f"{n} × {reason}" for reason, n in counts.most_common())


def _breakdowns(
    expected: Sequence[str], detected: Sequence[str | None], correct: Sequence[bool | None]
) -> dict[str, LanguageBreakdown]:
    counts = Counter(zip(expected, detected, correct, strict=True))
    found = {}
    for language in sorted(set(expected)):
        own = {(label, ok): n for (code, label, ok), n in counts.items() if code == language}
        answered_in: Counter[str] = Counter()
        for (label, _), n in own.items():
            if label is not None:
                answered_in[_label_language(label)] += n
        scored = sum(answered_in.values())
        hits = sum(n for (_, ok), n in own.items() if ok)
        found[language] = LanguageBreakdown(
            language=language,
            rate=hits / scored if scored else None,
            scored=scored,
            correct=hits,
            skipped=sum(own.values()) - scored,
            answered_in=dict(answered_in.most_common()),
        )
    return found


# Of text in Latin letters, lid.176 is less sure than this of any language if it is romanised (58 of 60 sentences in 13
# languages), and surer of English, German and Spanish questions from 20 characters on (98 to 99 of 100).
_SURE = 0.6
# Shorter texts are names as often as sentences.
_LEAST_LETTERS = 20
_VARIANTS = ("Hans", "Hant")


def other_script(text: str, code: str) -> str | None:
    """Return the ISO 15924 code of the script of a text if that is not the one that ``code`` demands; else None.

    ``code`` (BCP 47) demands one by naming it: ``hi-Latn``, ``sr-Latn``, ``zh-Hant``. The script of a text is that of
    most of its letters, of Chinese the variant of most characters that only one has. A text that shows none is in the
    demanded one.
    """
    demanded = code.partition("-")[2]
    if not demanded:
        return None
    counts = letter_scripts(text)
    if not counts:
        return None
    used, letters = counts.most_common(1)[0]
    if used in expected_scripts(code):
        variant = han_variant(text) if demanded in _VARIANTS else None
        return variant if variant not in (None, demanded) else None
    return used if 2 * letters > counts.total() else None


def is_romanised(text: str, code: str) -> bool:
    """Return whether a text counts as the language ``code`` written in Latin letters, which are not its own.

    The language is not written with them, and :func:`is_unsure` of it.
    """
    own = expected_scripts(base_language(code))
    return bool(own) and "Latn" not in own and is_unsure(text)


def is_unsure(text: str) -> bool:
    """Return whether most of at least 20 letters are Latin, and lid.176 is not sure of any language.

    It has no label for romanised text, and calls Hindi Italian, and Arabic Spanish.
    """
    counts = letter_scripts(text)
    if counts.total() < _LEAST_LETTERS or 2 * counts["Latn"] <= counts.total():
        return False
    return _sure_of().detect([text.replace("\n", " ")]) == [UNDETERMINED]


@cache
def _sure_of() -> FastTextDetector:
    return FastTextDetector(None, _SURE)
