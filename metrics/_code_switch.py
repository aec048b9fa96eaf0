"""Code-switching: the share of an answer in another script, or in another language of the same script."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from mrag_eval.core import NO_SPACES, base_language, language_name, normalize_language
from mrag_eval.metrics._language_detection import UNDETERMINED, LanguageDetector
from mrag_eval.metrics._language_rate import accepts, detector_for, unknown_to, unreliable
from mrag_eval.metrics._text import graphemes
from mrag_eval.platform import ConfigError, MetricError
from mrag_eval.text import NO_SPACE_SCRIPTS, expected_scripts, letter_scripts, script

# The fewest words of a clause in another script, and of one that windows tell.
_TOGETHER, _RUN = 6, 3


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

    Words in another script than the language's count where six or more stand together; fewer are a name or a title.
    Of the others the detector labels each window; a word has the label of half of its windows or more, and counts in a
    run of three (half a window, if that is more) of which two do not begin in upper case, as names do. Clauses of fewer
    than six words are missed, and related languages (Spanish and Portuguese) confused (docs/evidence/languages.md).

    Args:
        text: the answer.
        language: the expected language.
        window: tokens per window; by default 6 words, or 24 characters in languages written without spaces.
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
    scripts = _scripts(language)
    expected = base_language(language)
    unspaced = expected in NO_SPACES
    size = window if window is not None else (24 if unspaced else 6)
    if size < 2:
        raise MetricError(f"a window needs at least 2 tokens, got {size}")
    tokens = graphemes(text) if unspaced else text.split()
    if len(text) <= min_chars or not tokens:
        return LanguageMix(None, len(tokens), {}, "too short to tell the language")
    own = detector_for(expected, detector)
    if (reason := unknown_to(own, normalize_language(language))) is not None:
        return LanguageMix(None, len(tokens), {}, reason)
    foreign = [False] * len(tokens)
    if scripts and letter_scripts(text).keys() - scripts:
        used = {token: letter_scripts(token).keys() for token in {*tokens}}
        foreign = [bool(used[token]) and not used[token] & scripts for token in tokens]
    written = [token for token, other in zip(tokens, foreign, strict=True) if not other]
    joiner = "" if unspaced else " "
    windows = [joiner.join(written[at : at + size]) for at in range(max(len(written) - size, 0) + 1)] if written else []
    length = sum(map(len, windows)) // max(len(windows), 1)
    if (reason := unreliable(own, expected, length, min_recognised)) is not None:
        return LanguageMix(None, len(tokens), {}, reason)
    labels = iter(_by_windows(written, windows, own, size, expected))
    told = [expected if other else next(labels) for other in foreign]
    for first, last in _clauses(tokens, foreign) if any(foreign) else ():
        told[first:last] = own.detect([" ".join(tokens[first:last])]) * (last - first)
    by_language = dict(Counter(told).most_common())
    known = sum(n for label, n in by_language.items() if label != UNDETERMINED)
    if not known:
        return LanguageMix(None, len(tokens), by_language, "no language could be told")
    return LanguageMix((known - by_language.get(expected, 0)) / known, len(tokens), by_language)


def _by_windows(
    tokens: Sequence[str], windows: Sequence[str], detector: LanguageDetector, size: int, expected: str
) -> list[str]:
    """Return the language of each token by the labels of the windows that hold it.

    Of any ``size`` windows in a row a bare majority is detected first; the others only where it is not all of the
    expected language, since they cannot outvote it.
    """
    names: dict[int, str] = {}

    def detect(places: Iterable[int]) -> None:
        new = [at for at in places if at not in names]
        for at, label in zip(new, detector.detect([windows[at] for at in new]) if new else (), strict=True):
            # varieties of the expected language count as the expected language
            names[at] = expected if label != UNDETERMINED and accepts(expected, label) else label

    spared = (size - 1) // 2
    detect(at for at in range(len(windows)) if at * spared // size == (at + 1) * spared // size)
    agree = [0, *accumulate(names.get(at) == expected for at in range(len(windows)))]
    holding = [range(max(at - size + 1, 0), min(at + 1, len(windows))) for at in range(len(tokens))]
    unsettled = [at for at, own in enumerate(holding) if 2 * (agree[own.stop] - agree[own.start]) <= len(own)]
    detect(dict.fromkeys(window for at in unsettled for window in holding[at]))
    told = [expected] * len(tokens)
    for at in unsettled:
        votes = Counter(names[window] for window in holding[at])
        label, most = votes.most_common(1)[0]
        if 2 * votes[expected] <= votes.total() <= 2 * most:
            told[at] = label
    for first, last in _runs([each not in (expected, UNDETERMINED) for each in told]):
        lettered = [token for token in tokens[first:last] if any(map(str.isalpha, token))]
        words = [token for token in lettered if not token.strip("\"'“”«»([")[:1].isupper()]
        if last - first < max(_RUN, size // 2) or len(words) < 2:
            told[first:last] = [expected] * (last - first)
    return told


def _clauses(tokens: Sequence[str], foreign: Sequence[bool]) -> Iterator[tuple[int, int]]:
    """Yield the half-open runs of tokens in another script that are long enough for a clause."""
    firsts = [next(filter(str.isalpha, token), " ") for token in tokens]
    # a word of a script without spaces has two letters
    words = [
        len(token) / 2 if script(first) in NO_SPACE_SCRIPTS else 1 for token, first in zip(tokens, firsts, strict=True)
    ]
    # a number may be part of a clause, and is none by itself
    for first, last in _runs([other or mark == " " for other, mark in zip(foreign, firsts, strict=True)]):
        lettered = sum(word for word, other in zip(words[first:last], foreign[first:last], strict=True) if other)
        if sum(words[first:last]) >= _TOGETHER and lettered >= _RUN:
            yield first, last


def _runs(marked: Sequence[bool]) -> list[tuple[int, int]]:
    """Return the half-open runs of what is marked."""
    edges = [at for at in range(len(marked) + 1) if (at > 0 and marked[at - 1]) != (at < len(marked) and marked[at])]
    return list(zip(edges[::2], edges[1::2], strict=True))


def _scripts(language: str) -> frozenset[str]:
    try:
        return expected_scripts(language)
    except ConfigError as error:
        raise MetricError(error.message, error.next_step) from error
