"""Numbers in answers: one form for each, with its sign and unit, whatever the digits and separators.

A point or comma before three digits begins decimals or groups thousands (``1.500``). Where the language of the question
decides, the number is written as it reads there; where it does not, the form keeps both readings.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from mrag_eval.core import base_language

# Decimal mark of the form: the one character of Unicode that is nothing else
_DECIMAL = "\u066b"
# Mark of a number with two readings
_EITHER = ","
_CURRENCIES = "".join(map(chr, (0x24, *range(0xA2, 0xA6), *map(ord, "֏؋৲৳৻૱௹฿៛"), *range(0x20A0, 0x20D0))))
# Percent, per mille and the like, degree, currencies: characters without a meaning in a class of a regular expression
UNITS = f"%‰‱°{_CURRENCIES}"
# Languages in which a comma never begins decimals (CLDR, symbols of the default numbering system)
_POINT = frozenset({
    "ak", "am", "as", "bn", "bo", "ckb", "cy", "dz", "ee", "en", "fil", "ga", "gd", "gu", "ha", "he", "hi", "ig",
    "ja", "km", "kn", "ko", "ml", "mn", "mr", "ms", "mt", "my", "ne", "om", "or", "pa", "si", "sn", "so", "sw",
    "ta", "te", "th", "ti", "ug", "ur", "yo", "yue", "zh", "zu",
})  # fmt: skip
# A hyphen or dash is a minus after a space, an opening mark or a currency; the sign of Unicode after letters, too
_MINUS = (
    f"(?:(?<![^\\s(\\[{{\"'«‹^=<>~:{_CURRENCIES}])[\\-\u2010-\u2015]|(?<![0-9])\u2212)(?=[{_CURRENCIES}]?\\.?[0-9])"
)
# Every mark that may stand between digits; a number that it does not make well-formed is several
_NUMBER = re.compile(
    f"(?=[0-9.\\-\u2010-\u2015\u2212{UNITS}])({_MINUS})?([{UNITS}])?"
    f"((?:(?<![\\w.])\\.)?[0-9]+(?:[.,'*:\u060c\u066c{_DECIMAL}][0-9]+)*)([{UNITS}])?"
)
_GROUPS = re.compile(r"[1-9][0-9]{0,2}(?:G[0-9]{3})+")
_INDIAN_GROUPS = re.compile(r"[1-9][0-9]?(?:G[0-9]{2})+G[0-9]{3}")
_GROUPED_BY_SPACES = re.compile(r"(?<!\d )(?<![\w.,])(?!0)\d{1,3}(?: \d{3})+(?!\w| \d)")
_NARROW_SPACES = re.compile("(?<=[0-9])[\u00a0\u2009\u202f](?=[0-9]{3}(?![0-9]))")
_POWER = re.compile("(?<=[0-9])(?=[\u207b\u00b2\u00b3\u00b9\u2070\u2074-\u2079])")
_FRACTION = re.compile("(?<=[0-9])(?=[\u00bc-\u00be\u2150-\u215e])")
# In the form: a number, a unit beside it
FORM = re.compile(f"(?<![0-9{_EITHER}{_DECIMAL}-])-?[0-9]+(?:[{_EITHER}{_DECIMAL}][0-9]+)*(?![0-9{_EITHER}{_DECIMAL}])")
_UNIT_BEHIND = re.compile(f"(?<![^ ])({FORM.pattern}) ([{UNITS}])(?![^ ])")
_UNIT_BEFORE = re.compile(f"(?<![^ ])([{UNITS}]) ({FORM.pattern})(?![^ ])")
_EITHER_DECIMALS = re.compile(f"{_EITHER}([0-9]+)")


def spaced_digits(text: str) -> str:
    """Return text that is not folded yet with groups of digits joined, and powers and fractions apart from the digits
    before them (``10²``, ``1½``), which compatibility forms would join.
    """
    return _FRACTION.sub(" ", _POWER.sub("^", _NARROW_SPACES.sub("", text))).replace("٪", "%")


def spaces_joined(text: str, lang: str | None) -> str | None:
    """Return the text with groups of digits between spaces as one number (``1 500``); None if it has none.

    Languages with a decimal comma group by spaces, so that readers may take them as one number or as several.
    """
    if lang is not None and base_language(lang) in _POINT:
        return None
    joined = _GROUPED_BY_SPACES.sub(lambda match: match.group().replace(" ", ""), text)
    return None if joined == text else joined


def numbers_apart(text: str, lang: str | None) -> list[str]:
    """Return folded text in pieces: at odd positions numbers in their form, at even ones what is between them.

    ``1.234,5`` and ``1,234.5`` are ``1234٫5``, ``1,00,000`` is ``100000``, ``$5`` and ``5$`` are ``5$``. A number with
    two readings has the mark ``,``: ``1.500`` and ``1,500`` in German, but not in English.
    """
    point = lang is not None and base_language(lang) in _POINT
    pieces = []
    at = 0
    for match in _NUMBER.finditer(text):
        sign, before, digits, behind = match.groups()
        pieces += [text[at : match.start()], _shown("-" if sign else "", before, _form(digits, point), behind)]
        at = match.end()
    return [*pieces, text[at:]]


def _shown(sign: str, before: str | None, form: str, behind: str | None) -> str:
    if before is None and behind is None:
        return f" {sign}{form}" if sign else form
    return f" {before} {sign}{form}{behind} " if before and behind else f" {sign}{form}{before or behind} "


def units_joined(text: str) -> str:
    """Return a form with each unit that stands beside a number, but for a space, joined to it: ``50 %`` as ``50%``."""
    return _UNIT_BEFORE.sub(r"\2\1", _UNIT_BEHIND.sub(r"\1\2", text))


def units_apart(text: str) -> str:
    """Return a form with units as words of their own."""
    return re.sub(f"(?<=[0-9])(?=[{UNITS}])", " ", text)


@lru_cache(maxsize=4096)
def _form(digits: str, point: bool) -> str:
    """Return the form of digits with separators; several numbers with spaces if they are not one."""
    digits = digits.replace("\u060c", ",")
    groups = re.split("[^0-9]", digits)
    marks = re.findall("[^0-9]", digits)
    if digits.startswith("."):
        return _decimal("0", groups[1]) if len(marks) == 1 else " ".join(groups[1:])
    if not marks:
        return digits
    last, others = marks[-1], {*marks[:-1]}
    if not others and last in f".,{_DECIMAL}":
        if last == _DECIMAL or not _grouped(digits, last):
            return _decimal(*groups)
        if point:
            return _decimal(*groups) if last == "." else "".join(groups)
        return _EITHER.join(groups)
    if (others or {last}) == {last} and _grouped(digits, last):
        return "".join(groups)
    if len(others) == 1 and last not in others and last in f".,{_DECIMAL}":
        whole = digits[: -len(groups[-1]) - 1]
        if _grouped(whole, *others):
            return _decimal("".join(groups[:-1]), groups[-1])
    return " ".join(groups)


def _grouped(digits: str, mark: str) -> bool:
    """Return whether a mark groups thousands, or, if it is a comma, thousands and hundreds as in India."""
    if mark not in ".,'\u066c":
        return False
    plain = digits.replace(mark, "G")
    return _GROUPS.fullmatch(plain) is not None or (mark == "," and _INDIAN_GROUPS.fullmatch(plain) is not None)


def _decimal(whole: str, fraction: str) -> str:
    fraction = fraction.rstrip("0")
    return f"{whole}{_DECIMAL}{fraction}" if fraction else whole


def readings(number: str) -> frozenset[str]:
    """Return what a number in its form may be."""
    if _EITHER not in number:
        return frozenset([number])
    decimals = _EITHER_DECIMALS.sub(lambda match: f"{_DECIMAL}{match[1]}".rstrip(f"0{_DECIMAL}"), number)
    return frozenset([number.replace(_EITHER, ""), decimals])


def same_number(one: str, other: str) -> bool:
    """Return whether two numbers in their form are equal in any reading of both."""
    return one == other or not readings(one).isdisjoint(readings(other))


def met(words: Sequence[str], wanted: Sequence[str]) -> list[str]:
    """Return the words with each number as ``wanted`` has it, as many as can be equal to different ones of them.

    Only numbers with two readings need it. The pairs are a maximum matching, so that their count does not depend on
    which side is which.
    """
    if not any(_EITHER in word for word in (*words, *wanted)):
        return list(words)
    partner: dict[int, int] = {}

    def place(at: int, tried: set[int]) -> bool:
        for to, other in enumerate(wanted):
            if to not in tried and FORM.fullmatch(other) and same_number(words[at], other):
                tried.add(to)
                if to not in partner or place(partner[to], tried):
                    partner[to] = at
                    return True
        return False

    for at, word in enumerate(words):
        if FORM.fullmatch(word):
            place(at, set())
    found = {at: wanted[to] for to, at in partner.items()}
    # a number that met none must not equal another's partner by its looks
    return [found.get(at, f"\0{word}" if FORM.fullmatch(word) else word) for at, word in enumerate(words)]
