"""Patterns around a chosen option, made of the words of all languages."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import cache
from typing import Final

from mrag_eval.languages import Language, known_languages, language
from mrag_eval.text import NO_SPACE_SCRIPTS, marks, script

WORDING: Final[dict[str, Language]] = {
    code: known for code in known_languages() if "-" not in code and (known := language(code)) is not None
}
_PART: Final = rf"[\w{marks()}]"


def nfkc(text: str) -> str:
    # replies are compared in NFKC, which decomposes some Thai and Bengali letters
    return unicodedata.normalize("NFKC", text)


@cache
def compiled(pattern: str) -> re.Pattern[str]:
    """Compile a pattern at its first use: those of all languages would take 0.4 s of every start."""
    return re.compile(pattern, re.IGNORECASE)


def words_of(*fields: str, languages: Iterable[str] = WORDING) -> list[str]:
    """Return the words of some fields in the given languages, longest first."""
    listed = {word for code in languages for field in fields for word in map(nfkc, getattr(WORDING[code].words, field))}
    return sorted(listed, key=lambda word: (-len(word), word))


def alternatives(words: Iterable[str], *, attached: bool = False) -> str:
    """Return a regular expression for any of some words, which are not parts of longer words.

    ``attached``: they may follow a letter, as particles do. A label may follow a word of another script ("답B").
    """
    groups: dict[tuple[str, str], list[str]] = {}
    for word in words:
        stem = word.rstrip("~")
        last = script(stem[-1])
        before = "" if attached or script(stem[0]) in NO_SPACE_SCRIPTS else rf"(?<!{_PART})"
        if last in NO_SPACE_SCRIPTS or (attached and last == "Hang"):
            after = ""
        elif word.endswith("~"):
            after = f"{_PART}*"
        else:
            after = rf"(?!{_PART})" if last == "Latn" else rf"(?![^\W\d_A-H]|[{marks()}])"
        groups.setdefault((before, after), []).append(re.escape(stem).replace(r"\ ", r"\s+"))
    parts = (f"{before}(?:{'|'.join(stems)}){after}" for (before, after), stems in groups.items())
    return f"(?:{'|'.join(parts)})"


def _denials() -> str:
    """Return a pattern of announcements behind a negation of their own language: "no elijo", "nie wybieram"."""
    parts = []
    for code, known in WORDING.items():
        if known.words.rejects and known.words.answer:
            negation, link, answer = (
                alternatives(words_of(*fields, languages=[code]))
                for fields in (["rejects"], ["filler", "option"], ["answer"])
            )
            # a space ends a clause in Thai
            gap = "" if script(known.words.rejects[0][0]) in NO_SPACE_SCRIPTS else r"[^\S\n]{0,3}"
            parts.append(rf"{negation}(?:{gap}{link}){{0,3}}{gap}{answer}")
    return "|".join(parts)


def _denied_praise() -> str:
    """Return a pattern of "is not right" in languages that negate at the end: "सही उत्तर नहीं", "정답이 아닙"."""
    parts = []
    for code in ("am", "as", "az", "bn", "fa", "hi", "ja", "ko", "tr", "ur"):
        right, particle, wrong = (
            alternatives(words_of(field, languages=[code]), attached=True) for field in ("right", "particle", "wrong")
        )
        parts.append(rf"{right}{particle}?\s{{0,3}}{wrong}")
    return "|".join(parts)


def _rows() -> dict[str, int]:
    rows = [row.split() for code in WORDING for row in map(nfkc, WORDING[code].labels)]
    return {label: index for row in rows for index, label in enumerate(row) if label != "-"}


# Labels other than Latin letters. Omitted where two orders compete: the third letter of the Arabic alphabet (abjad or
# modern), Cyrillic В (third, or a Latin B in disguise).
LOCAL_LABELS: Final[dict[str, int]] = _rows()

_OPEN: Final = r"[\s\"'(\[*_«“「『‘`]{0,4}"
_CLOSE: Final = r"[\s\"')\]*_»”」』’`]{0,4}"
# One letter is a word only before a label: "é a B".
_LETTER_WORDS: Final = r"(?-i:[ao])(?=\s+(?:[A-Z](?!\w)|$))"
_FILLER: Final = rf"(?:{alternatives(words_of('filler'))}|{_LETTER_WORDS})"
# Few words, because there are many ways to divide a run of short ones.
_LINKS: Final = rf"(?:\s{{0,3}}(?:{alternatives(words_of('filler', 'option'))}|{_LETTER_WORDS})){{0,6}}{_OPEN}"
_OPTION: Final = alternatives(words_of("option"))
_AFTER: Final = alternatives(words_of("option_after"), attached=True)
# Endings behind an apostrophe or a hyphen: "B'dir", "ক-ৰ".
_ENDING: Final = rf"(?:[dt][ıiuü]r(?:l[ae]r)?|[yn]?[ıiuüaeə]n?|[dn][ae]n?|ৰ|ক)(?!{_PART})"
_PARTICLES: Final = alternatives(words_of("particle"), attached=True)
_BEHIND: Final = rf"{_CLOSE}(?:['-]{_ENDING})?{_CLOSE}{_AFTER}?{_PARTICLES}?\s{{0,3}}"

MARKER: Final = alternatives(words_of("answer"))
FILLER: Final = _FILLER
RIGHT: Final = _BEHIND + alternatives(words_of("right"), attached=True)
WRONG: Final = rf"{_BEHIND}(?:[—–]\s{{0,3}})?(?:{alternatives(words_of('wrong'), attached=True)}|{_denied_praise()})"
_NEGATION: Final = rf"(?:{_denials()}|{alternatives(words_of('rejects'))})"
# Announcements in it announce nothing: "No elijo la A".
DENIED: Final = _NEGATION
NOT: Final = rf"(?:{_NEGATION}|n't){_LINKS}$"
_JOIN: Final = alternatives(words_of("joins"), attached=True)
# Between two labels that are both proposed: a word, or a mark alone.
JOINED: Final = rf"{_BEHIND}[,،、፣]?\s{{0,3}}{_JOIN}{_LINKS}|{_CLOSE}[/&+]{_LINKS}"
LISTED: Final = rf"{_BEHIND}[,;、،፣]{_LINKS}"
# Between a label that is taken back and the one that replaces it: "A — no, B", "A. Sorry, I meant B".
_GAP: Final = r"[\s.,;:!?…—–\-*_\"'«»“”、。，؛،۔።፣፤।()]"
_RETRACTION: Final = alternatives(words_of("corrects"), attached=True)
CORRECTED: Final = (
    rf"{_BEHIND}{_GAP}{{0,6}}{_RETRACTION}"
    rf"(?:{_GAP}{{0,4}}{alternatives(words_of('corrects', 'filler', 'option', 'joins'), attached=True)}){{0,4}}"
    rf"{_GAP}{{0,4}}"
)

_locals = sorted(LOCAL_LABELS, key=len, reverse=True)
_LOCAL: Final = "|".join(_locals)
_LABEL: Final = f"(?:[A-Za-z]|{_LOCAL})"
_NUMBERED: Final = rf"([A-Z]|\d{{1,2}}|{_LOCAL})"
# A label with its own mark: "B)", "(B)", "B.", "B:", "[B]", "**B**", "option B", "B variantı".
MARKED: Final = re.compile(
    rf"(?<![\w'])\(({_LABEL})\)|\[({_LABEL})\]|\*\*({_LABEL})\*\*|(?<!{_PART})(?<!['.])({_LABEL})\)|"
    rf"(?:^|(?<=\n))[ \t>*_#-]*([A-Z]|{_LOCAL})[.:](?=\s|\*|$)|"
    rf"\b[Oo](?:ption|pción|psi)\s+\**([A-Za-z])\b|"
    rf"(?i:{_OPTION})[\s:#]{{0,3}}[\"'(\[*«“]{{0,4}}{_NUMBERED}(?!{_PART}|['.:]\w)|"
    rf"(?<!{_PART}){_NUMBERED}[\"')\]*»”]{{0,4}}\s?(?i:{_AFTER})"
)
# A label without one: a capital, or a letter that is neither a word nor a syllable in its script.
_alone = "|".join(
    label for label in _locals if script(label[0]) not in ("Hang", "Hani", "Kana") and not label.islower()
)
_CASED: Final = r"A-Za-z0-9_&\u00c0-\u02af\u0370-\u052f\u1e00-\u1fff"
BARE: Final = re.compile(
    rf"(?<![{_CASED}'.°-])([A-Z])(?![{_CASED}]|'(?!{_ENDING}))|"
    # no numeral of kings: "Β'"
    rf"(?<!{_PART})(?<!['.&-])({_alone})(?!{_PART}|&|'\w|(?<![א-ת])\s?['\u0301\u0384\u0374])"
)
LABEL_ENDING: Final = re.compile(rf"['-]{_ENDING}")
# The copula, directly behind a label that is a syllable.
SYLLABLE_ENDING: Final = re.compile("です|でし|だ[。、]|が正|が答|입니다|이다|이에요|예요|번|가 정답|가 맞")
