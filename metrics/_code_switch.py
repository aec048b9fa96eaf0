"""Code-switching: the share of an answer in another script, or in another language of the same script."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mrag_eval.core import NO_SPACES, base_language, language_name, normalize_language
from mrag_eval.metrics._language_detection import UNDETERMINED, LanguageDetector
from mrag_eval.metrics._language_rate import accepts, detector_for, unknown_to, unreliable
from mrag_eval.metrics._text import graphemes
from mrag_eval.platform import ConfigError, MetricError
from mrag_eval.text import expected_scripts, letter_scripts


@dataclass(frozen=True, slots=True)
class CodeSwitch:
    """Letters outside the expected scripts.

    Attributes:
        share: outside / letters in 0..1, None if the text has no letters or the script of the language is unknown.
        letters: letters that belong to a script (digits, marks and shared letters are not counted).
        outside: foreign letters by ISO 15924 script.
        reason: the cause if ``share`` is None, else None.
    """

    share: float | None
    letters: int
    outside: Mapping[str, int]
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class LanguageMix:
    """Tokens by language.

    Attributes:
        share: tokens in another language / tokens in 0..1, None if the text is too short for detection or the detector
            does not know the language.
        tokens: number of tokens.
        by_language: tokens by detected language.
        reason: the cause if ``share`` is None, else None.
    """

    share: float | None
    tokens: int
    by_language: Mapping[str, int]
    reason: str | None = None


def code_switch_share(text: str, language: str) -> CodeSwitch:
    """Return the share of the letters outside the script(s) of the expected language.

    It quantifies the mRAG paper's error class "correct response with code switching" (names left in English in a
    Russian or Korean answer). Limits: it detects scripts, not languages, so English inside German is invisible (see
    :func:`language_mix`). It cannot recognise legitimate foreign words (abbreviations, units, quoted titles, the Han
    characters in a Korean text), so compare it between systems instead of aiming at 0. Chinese inside Japanese is
    invisible, since Japanese also uses Han characters. Scripts are derived from the Unicode names.

    Raises:
        MetricError: the text is not a string, or the language is unknown.
    """
    if not isinstance(text, str):
        raise MetricError(f"text must be a string, got {type(text).__name__}")
    own = _scripts(language)
    counts = letter_scripts(text)
    letters = counts.total()
    if not letters:
        return CodeSwitch(None, 0, {}, "the reply has no letters")
    if not own:
        return CodeSwitch(None, letters, {}, f"the script of {language_name(language)} is not known")
    outside = {name: n for name, n in counts.most_common() if name not in own}
    return CodeSwitch(sum(outside.values()) / letters, letters, outside)


def language_mix(
    text: str,
    language: str,
    *,
    window: int | None = None,
    min_chars: int = 20,
    detector: LanguageDetector | Mapping[str, LanguageDetector] | None = None,
    min_recognised: float | None = None,
) -> LanguageMix:
    """Return the share of the tokens in passages of another language, for languages that share a script.

    The detector labels overlapping windows (half a window apart). Each token takes the majority label of its windows;
    the expected language wins ties. Limits: a window is short, so related languages (Spanish and Portuguese, Indonesian
    and Malay) are confused and single foreign names are not found; runs shorter than half a window are missed. Use it
    to compare systems or to select answers to read, not as a verdict on one token.

    Args:
        text: the answer.
        language: the expected language.
        window: tokens per window; by default 8 words, or 24 characters in languages written without spaces.
        min_chars: texts of at most this many code points are not judged.
        detector: a :class:`LanguageDetector`, or one by language as :func:`correct_language_rate` takes them; None for
            the bundled fastText lid.176.
        min_recognised: leave out a text if the detector recognises a smaller share (0..1) of texts of the language that
            are as long as a window; languages and detectors that were not measured are judged. None for no bound.

    Raises:
        MetricError: the text is not a string, the language is unknown, or ``window`` is below 2.
    """
    if not isinstance(text, str):
        raise MetricError(f"text must be a string, got {type(text).__name__}")
    _scripts(language)
    expected = base_language(language)
    unspaced = expected in NO_SPACES
    size = window if window is not None else (24 if unspaced else 8)
    if size < 2:
        raise MetricError(f"a window needs at least 2 tokens, got {size}")
    tokens = graphemes(text) if unspaced else text.split()
    if len(text) <= min_chars or not tokens:
        return LanguageMix(None, len(tokens), {}, "too short to tell the language")
    own = detector_for(expected, detector)
    if (reason := unknown_to(own, normalize_language(language))) is not None:
        return LanguageMix(None, len(tokens), {}, reason)
    starts = list(range(0, max(len(tokens) - size, 0) + 1, max(size // 2, 1)))
    if starts[-1] + size < len(tokens):
        starts.append(len(tokens) - size)
    joiner = "" if unspaced else " "
    windows = [joiner.join(tokens[start : start + size]) for start in starts]
    length = sum(map(len, windows)) // len(windows)
    if (reason := unreliable(own, expected, length, min_recognised)) is not None:
        return LanguageMix(None, len(tokens), {}, reason)
    labels = own.detect(windows)
    by_language = _vote(labels, starts, size, len(tokens), expected)
    known = sum(n for label, n in by_language.items() if label != UNDETERMINED)
    if not known:
        return LanguageMix(None, len(tokens), by_language, "no language could be told")
    return LanguageMix((known - by_language.get(expected, 0)) / known, len(tokens), by_language)


def _vote(labels: Sequence[str], starts: Sequence[int], size: int, n: int, expected: str) -> dict[str, int]:
    votes: list[Counter[str]] = [Counter() for _ in range(n)]
    for label, start in zip(labels, starts, strict=True):
        # varieties of the expected language count as the expected language
        name = expected if label != UNDETERMINED and accepts(expected, label) else label
        for token in range(start, min(start + size, n)):
            votes[token][name] += 1
    tally: Counter[str] = Counter()
    for vote in votes:
        most = max(vote.values())
        leaders = [label for label, count in vote.items() if count == most]
        tally[expected if expected in leaders else leaders[0]] += 1
    return dict(tally.most_common())


def _scripts(language: str) -> frozenset[str]:
    try:
        return expected_scripts(language)
    except ConfigError as error:
        raise MetricError(error.message, error.next_step) from error
