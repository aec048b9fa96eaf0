"""Correct language rate: the share of answers in the requested language, and the languages of the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

from mrag_eval.core import ConfigError, MetricError, base_language, is_language, language_name, suggestion
from mrag_eval.metrics._language_detection import UNDETERMINED, LanguageDetector, default_detector

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

    def share_answered_in(self, language: str) -> float | None:
        """Return the share of the scored answers detected as ``language`` (XRAG, Figure 5, for ``en``); None if none is
        scored.
        """
        if not self.scored:
            return None
        return self.answered_in.get(_label_language(language), 0) / self.scored


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
    detector: LanguageDetector | None = None,
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
        detector: a :class:`LanguageDetector`; None for the bundled fastText lid.176.

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
    expected = _expected(languages, len(responses))
    detector = default_detector() if detector is None else detector
    reasons: list[str | None] = []
    texts: list[str] = []
    rows: list[int] = []
    limit = -1 if min_chars is None else min_chars
    unknown = {code: unknown_to(detector, code) for code in set(expected)}
    too_short = f"{limit} code points or fewer"
    for row, (response, language) in enumerate(zip(responses, expected, strict=True)):
        reason = None
        if response is None:
            reason = "no response"
        elif not isinstance(response, str):
            raise MetricError(f"responses[{row}] must be a string, got {type(response).__name__}")
        elif len(response) <= limit:
            reason = too_short
        elif unknown[language] is not None and any(map(str.isalpha, response)):
            reason = unknown[language]
        else:
            rows.append(row)
            texts.append(response.replace("\n", " "))
        reasons.append(reason)

    # detectors have labels for digits, too, but a text without letters is in every language
    lettered = [text for text in texts if any(map(str.isalpha, text))]
    found = detector.detect(lettered) if lettered else []
    if len(found) != len(lettered):
        raise MetricError(f"the detector returned {len(found)} labels for {len(lettered)} texts")
    label_of = iter(found)
    labels = [next(label_of) if any(map(str.isalpha, text)) else UNDETERMINED for text in texts]
    detected: list[str | None] = [None] * len(responses)
    correct: list[bool | None] = [None] * len(responses)
    for row, text, label in zip(rows, texts, labels, strict=True):
        detected[row] = label
        correct[row] = accepts(expected[row], label) if label != UNDETERMINED else not any(map(str.isalpha, text))
        if label == UNDETERMINED and not correct[row] and (least := getattr(detector, "min_confidence", 0.0)) > 0:
            detected[row], correct[row] = None, None
            reasons[row] = f"the detector is less sure of the language than {least:g}"
    rows = [row for row in rows if correct[row] is not None]
    hits = sum(1 for row in rows if correct[row])
    return LanguageRate(
        rate=hits / len(rows) if rows else None,
        scored=len(rows),
        detected=tuple(detected),
        skipped=len(responses) - len(rows),
        correct=tuple(correct),
        reasons=tuple(reasons),
        reason=None if rows else _reason_nothing_scored(reasons),
        by_language=_breakdowns(expected, detected, correct),
    )


def _expected(wanted: str | Sequence[str], n: int) -> list[str]:
    codes = [wanted] * n if isinstance(wanted, str) else list(wanted)
    if len(codes) != n:
        raise MetricError(f"{n} responses but {len(codes)} languages", "pass one language, or one for each response")
    try:
        known = {code: base_language(code) for code in dict.fromkeys(codes)}
    except (ConfigError, AttributeError) as error:
        row = next(i for i, code in enumerate(codes) if not isinstance(code, str) or not is_language(code))
        wrong = codes[row]
        raise MetricError(f"languages[{row}]: unknown language {wrong!r}", suggestion(str(wrong))) from error
    return [known[code] for code in codes]


def unknown_to(detector: LanguageDetector, language: str) -> str | None:
    """Return why answers in a language (a base code) cannot be scored by a detector; None if it knows the language."""
    supported = getattr(detector, "supported", None)
    if supported is None or any(accepts(language, label) for label in supported):
        return None
    own = getattr(detector, "name", None)
    return f"the detector{f' {own}' if own else ''} does not know {language_name(language)}"


def counted_together(language: str) -> tuple[str, ...]:
    """Return the other languages that count as ``language`` (``id``: Malay), by code; empty for most languages."""
    return tuple(sorted(_VARIETIES.get(base_language(language), ())))


@cache
def accepts(expected: str, label: str) -> bool:
    """Return whether a detector's label counts as the expected language (a base code)."""
    found = _label_language(label)
    return found == expected or found in _VARIETIES.get(expected, ())


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
