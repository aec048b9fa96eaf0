"""Parsers of a model's reply: JSON, a tag, a list of numbers, a verdict.

Every parser accepts any text and returns :class:`Parsed`; none raises. If a reply has several candidates, the last
complete one counts, since models reason first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from mrag_eval.models._lenient_json import UnreadableError, read_value, storable

T = TypeVar("T")

# Only the end of a longer reply is parsed, since it contains the answer.
_LONGEST = 100_000
# A reply with more unreadable braces than this is not worth further parsing.
_MOST_FAULTS = 20

_TRUE_WORDS = frozenset({"true", "yes", "correct"})
_FALSE_WORDS = frozenset({"false", "no", "incorrect"})


@dataclass(frozen=True)
class Parsed(Generic[T]):
    """``value``, or None and the ``error`` in words that can be sent to the model."""

    value: T | None
    error: str | None = None


Parser = Callable[[str], Parsed[T]]


def parse_json(text: str, required: Sequence[str] = ()) -> Parsed[dict[str, Any]]:
    """Return the last complete object with the ``required`` keys, in strict JSON or nearly so.

    Objects inside an object are part of it, and the inside of an unreadable object is not searched: a text quoted there
    must not pass for the answer. For the same reason an object is refused if one of its required keys occurs again
    after it, which happens if a quotation closed it too early.
    """
    text = text[-_LONGEST:]
    found: list[tuple[dict[str, Any], int]] = []
    fault = "there is no JSON object in the reply"
    position, faults = text.find("{"), 0
    while position >= 0:
        try:
            value, end = read_value(text, position)
            found.append((value, end))
        except UnreadableError as err:
            value, end = _doubled_braces(text, position)
            if value is not None:
                found.append((value, end))
            else:
                fault = f"the JSON cannot be read: {err}"
                end = _balanced_end(text, position)
                faults += 1
                if faults > _MOST_FAULTS:
                    return Parsed(None, fault)
        position = text.find("{", end)
    if not found:
        return Parsed(None, fault)
    for value, end in reversed(found):
        if all(key in value for key in required):
            again = next((key for key in required if re.search(rf"""["']{re.escape(key)}["']\s*:""", text[end:])), None)
            if again is not None:
                return Parsed(None, f"the key '{again}' comes again after the end of the JSON object")
            return Parsed(storable(value))
    missing = [key for key in required if key not in found[-1][0]]
    return Parsed(None, "the JSON object lacks " + ", ".join(f"'{key}'" for key in missing))


def _doubled_braces(text: str, position: int) -> tuple[dict[str, Any] | None, int]:
    """Parse ``{{...}}``, written by models that have seen the escaped braces of a template."""
    if text.startswith("{{", position):
        try:
            value, end = read_value(text, position + 1)
        except UnreadableError:
            return None, position
        if isinstance(value, dict) and text.startswith("}", end):
            return value, end + 1
    return None, position


def _balanced_end(text: str, position: int) -> int:
    """Return the position after the brace that closes the one at ``position``, ignoring strings; else the end of the
    text.
    """
    depth = 0
    for brace in re.compile(r"[{}]").finditer(text, position):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            return brace.end()
    return len(text)


def parse_tag(text: str, tag: str) -> Parsed[str]:
    """Return the stripped content of the last complete ``<tag>...</tag>``; an empty tag gives an empty string."""
    text = text[-_LONGEST:]
    marks = list(re.compile(rf"<\s*(/?)\s*{re.escape(tag)}\s*>", re.IGNORECASE).finditer(text))
    for opening, closing in zip(reversed(marks[:-1]), reversed(marks[1:]), strict=True):
        if not opening[1] and closing[1]:
            return Parsed(text[opening.end() : closing.start()].strip())
    if not marks:
        return Parsed(None, f"there is no <{tag}> in the reply")
    return Parsed(None, f"<{tag}> and </{tag}> do not enclose anything")


def as_verdict(value: Any) -> bool | None:
    """Return True or False for a boolean or a word for one, whatever its case and punctuation; else None."""
    if isinstance(value, bool):
        return value
    if not isinstance(value, str):
        return None
    word = value.strip(" \t\r\n.,;:!*_`'\"“”‘’()[]").casefold()
    return True if word in _TRUE_WORDS else False if word in _FALSE_WORDS else None


@dataclass(frozen=True)
class Verdict:
    """A judge's verdict and, if one was requested, its justification."""

    holds: bool
    justification: str = ""


def parse_verdict_tag(text: str, tag: str) -> Parsed[Verdict]:
    """Return the verdict inside a tag; the text before the tag is the justification."""
    parsed = parse_tag(text, tag)
    if parsed.value is None:
        return Parsed(None, parsed.error)
    holds = as_verdict(parsed.value)
    if holds is None:
        return Parsed(None, f"<{tag}> holds {parsed.value!r:.60}, neither 'true' nor 'false'")
    return Parsed(Verdict(holds, re.split(rf"(?i)<\s*{re.escape(tag)}\s*>", text[-_LONGEST:])[0].strip()))


_BRACKETED = re.compile(r"\[([^\[\]]*)\]")
_BETWEEN = re.compile(r"(?i)[ \t,;&]*(?:and)?[ \t,;]*")
_THEN = re.compile(r"[\s,;>]*")
_NOTHING = frozenset({"", "none", "no passage", "no passages", "empty", "nothing"})
_TOKEN = re.compile(r"\d+|[^\W\d_]+|[^\s\w]|_")
_FILLING = frozenset({"passage", "passages", "document", "documents", "doc", "docs", "and", "&", ",", ";", "#", "."})


def parse_list(text: str, n: int | None = None) -> Parsed[list[int]]:
    """Return a list of numbers from 1 (``[1, 3]``, ``[1], [3]``, ``Passages: 1 and 3``, ``none``), sorted and distinct.

    The last bracketed list counts; without brackets the last line must be nothing but the list. ``n`` is the highest
    valid number.
    """
    text = text[-_LONGEST:].strip()
    runs: list[list[str]] = []
    before = -1
    for found in _BRACKETED.finditer(text):
        if before < 0 or _BETWEEN.fullmatch(text, before, found.start()) is None:
            runs.append([])
        runs[-1] += found[1].split(",")
        before = found.end()
    for run in reversed(runs):
        items = (item.strip(" \t\r\n'\"`") for item in run)
        numbers = _numbers([item for item in items if item])
        if numbers is not None:
            return _within(numbers, n)
    if runs:
        return Parsed(None, "the list holds something other than numbers")
    line = text.rsplit("\n", 1)[-1].rsplit(":", 1)[-1].strip(" \t.*_`").casefold()
    if text and line in _NOTHING:
        return Parsed([])
    tokens = _TOKEN.findall(line)
    numbers = _numbers([token for token in tokens if token not in _FILLING])
    return Parsed(None, "there is no list of numbers in the reply") if not numbers else _within(numbers, n)


def parse_order(text: str, n: int) -> Parsed[list[int]]:
    """Return the numbers 1 to ``n`` in the order written (``[2, 3, 1]``, ``[2] > [3] > [1]``, ``2 > 3 > 1``).

    The last list counts. The caller repairs missing, repeated and invalid numbers; a reply without a valid number is an
    error.
    """
    text = text[-_LONGEST:].strip()
    runs: list[list[str]] = []
    before = -1
    for found in _BRACKETED.finditer(text):
        if before < 0 or _THEN.fullmatch(text, before, found.start()) is None:
            runs.append([])
        runs[-1] += re.split(r"[,;>]", found[1])
        before = found.end()
    if not runs:
        runs = [re.split(r"[,;>]", text.rsplit("\n", 1)[-1].rsplit(":", 1)[-1].strip(" \t.*_`"))]
    for run in reversed(runs):
        items = (item.strip(" \t\r\n'\"`") for item in run)
        numbers = _numbers([item for item in items if item])
        if numbers is not None and any(1 <= number <= n for number in numbers):
            return Parsed(numbers)
    return Parsed(None, f"there is no list of the passages' numbers, 1 to {n}, in the reply")


def _numbers(items: Sequence[str]) -> list[int] | None:
    out = []
    for item in items:
        found = re.fullmatch(r"(?i)(?:passage|document|doc)?\s*#?\s*(\d{1,6})", item, re.ASCII)
        if found is None:
            return None
        out.append(int(found[1]))
    return out


def _within(numbers: Sequence[int], n: int | None) -> Parsed[list[int]]:
    wrong = [i for i in numbers if i < 1 or (n is not None and i > n)]
    if wrong:
        return Parsed(None, f"{wrong[0]} is not the number of a passage" + ("" if n is None else f", they end at {n}"))
    return Parsed(sorted(set(numbers)))
