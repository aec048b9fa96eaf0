"""Parsers of a model's reply: JSON, a tag, a list of numbers.

Every parser accepts any text and returns :class:`Parsed`; none raises. If a reply has several candidates, the last
complete one counts, since models reason first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Generic, TypeVar

from mrag_eval.models._lenient_json import UnreadableError, read_value, storable

T = TypeVar("T")

# Only the end of a longer reply is parsed, since it contains the answer.
LONGEST_REPLY = 100_000
# A reply with more unreadable braces than this is not worth further parsing.
_MOST_FAULTS = 20


@dataclass(frozen=True)
class Parsed(Generic[T]):
    """``value``, or None and the ``error`` in words that can be sent to the model."""

    value: T | None
    error: str | None = None


Parser = Callable[[str], Parsed[T]]
# Tells if a part of a reply, from start to end, is quoted from the model's input.
Quoted = Callable[[str, int, int], bool]


def no_quotation(text: str, start: int, end: int) -> bool:
    """Return that nothing is quoted."""
    return False


@dataclass(frozen=True)
class FoundValue(Generic[T]):
    """A value read in a text, and its position there."""

    value: T
    start: int
    end: int


def parse_json(text: str, required: Sequence[str] = ()) -> Parsed[dict[str, Any]]:
    """Return the last complete object with the ``required`` keys, in strict JSON or nearly so.

    Objects inside an object are part of it, and the inside of an unreadable object is not searched: a text quoted there
    must not pass for the answer. For the same reason an object is refused if one of its required keys occurs again
    after it, which happens if a quotation closed it too early.
    """
    text = text[-LONGEST_REPLY:]
    objects, faults = json_objects(text)
    for found in reversed(objects):
        if all(key in found.value for key in required):
            again = key_in(text[found.end :], required)
            if again is not None:
                return Parsed(None, f"the key '{again}' comes again after the end of the JSON object")
            return Parsed(storable(found.value))
    return Parsed(None, why_no_json(objects, faults, required))


def json_objects(text: str) -> tuple[list[FoundValue[dict[str, Any]]], list[FoundValue[str]]]:
    """Return the complete objects of a text in their order, and the unreadable ones with their faults.

    Of a text with too many unreadable ones no object is returned.
    """
    objects: list[FoundValue[dict[str, Any]]] = []
    faults: list[FoundValue[str]] = []
    position = text.find("{")
    while position >= 0:
        try:
            value, end = read_value(text, position)
            objects.append(FoundValue(value, position, end))
        except UnreadableError as err:
            value, end = _doubled_braces(text, position)
            if value is not None:
                objects.append(FoundValue(value, position, end))
            else:
                end = _balanced_end(text, position)
                faults.append(FoundValue(f"the JSON cannot be read: {err}", position, end))
                if len(faults) > _MOST_FAULTS:
                    return [], faults
        position = text.find("{", end)
    return objects, faults


def why_no_json(
    objects: Sequence[FoundValue[dict[str, Any]]], faults: Sequence[FoundValue[str]], required: Sequence[str]
) -> str:
    """Return why a text has no object with the required keys."""
    if objects:
        missing = [key for key in required if key not in objects[-1].value]
        return "the JSON object lacks " + ", ".join(f"'{key}'" for key in missing)
    return faults[-1].value if faults else "there is no JSON object in the reply"


def key_in(text: str, keys: Sequence[str]) -> str | None:
    """Return the first of the keys that a text gives a value."""
    return next((key for key in keys if re.search(rf"""["'“”]{re.escape(key)}["'“”]\s*:""", text)), None)


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
    found, fault = tag_contents(text[-LONGEST_REPLY:], tag)
    return Parsed(found[-1].value) if found else Parsed(None, fault)


def tag_contents(text: str, tag: str) -> tuple[list[FoundValue[str]], str]:
    """Return the stripped contents of every complete ``<tag>...</tag>``, and the fault of a text without one."""
    marks = list(re.compile(rf"<\s*(?:(/)\s*)?{re.escape(tag)}\s*>", re.IGNORECASE).finditer(text))
    found = [
        FoundValue(text[opening.end() : closing.start()].strip(), opening.start(), closing.end())
        for opening, closing in pairwise(marks)
        if not opening[1] and closing[1]
    ]
    if not marks:
        return found, f"there is no <{tag}> in the reply"
    return found, f"<{tag}> and </{tag}> do not enclose anything"


_BRACKETED = re.compile(r"\[([^\[\]]*)\]")
_BETWEEN = re.compile(r"(?i)[ \t,;&]*(?:and[ \t,;]*)?")
_THEN = re.compile(r"[\s,;>]*")
_NOTHING = frozenset({"none", "no passage", "no passages", "empty", "nothing"})
_TOKEN = re.compile(r"\d+|[^\W\d_]+|[^\s\w]|_")
_FILLING = frozenset({"passage", "passages", "document", "documents", "doc", "docs", "and", "&", ",", ";", "#", "."})
# The end of a sentence behind a list, or a line's.
_SENTENCE_END = re.compile(r"[*_`\"')]*(?:[ \t]*[.;!。；！।]|[ \t]*\n)")
# The words that may come before a list that is alone on its line.
_LEAD = re.compile(
    r"(?i)(?:\W|\b(?:the|final|relevant|supporting|passages?|documents?|docs?|numbers?|list|answers?|result|is|are)\b)*"
)
# Only the last lists of a reply are examined.
_MOST_LISTS = 200


def parse_list(text: str, n: int | None = None, quoted: Quoted = no_quotation) -> Parsed[list[int]]:
    """Return a list of numbers from 1 (``[1, 3]``, ``[1], [3]``, ``Passages: 1 and 3``, ``none``), sorted and distinct.

    A bracketed list alone on its line counts, then one that opens the reply as a sentence of its own, then the last
    one, if the reply ends on it; without brackets the last line must be nothing but the list. Quoted lists are ignored.
    Two different ones, each alone on its line, are a fault, as is a reply that goes on after its list and names others:
    it may reject those.
    ``n`` is the highest valid number.
    """
    text = text[-LONGEST_REPLY:].strip()
    runs = [run for run in _runs(text) if not quoted(text, run.start, run.end)]
    numbered = [FoundValue(numbers, run.start, run.end) for run in runs if (numbers := _numbers(run.value)) is not None]
    alone = [run.value for run in numbered if _alone(text, run.start, run.end)]
    if len({frozenset(numbers) for numbers in alone}) > 1:
        return Parsed(None, "the reply gives two different lists")
    if numbered:
        chosen = alone[-1] if alone else _in_sentences(text, numbered)
        if chosen is None:
            return Parsed(None, "the reply goes on after its list, and names other passages")
        return _within(chosen, n)
    if runs:
        return Parsed(None, "the list holds something other than numbers")
    return _bare_list(text, n, quoted)


def _in_sentences(text: str, lists: Sequence[FoundValue[list[int]]]) -> list[int] | None:
    """Return the list that a reply gives within its sentences; None if it cannot be told from those that it rejects."""
    first, last = lists[0], lists[-1]
    if len({frozenset(one.value) for one in lists}) == 1:
        return last.value
    if _LEAD.fullmatch(text, 0, first.start) and _SENTENCE_END.match(text, first.end):
        return first.value
    before = text[lists[-2].end : last.start]
    ends = not re.search(r"\w", text[last.end :])
    return last.value if ends and re.search(r"[.:!?。！？؟।\n]", before) else None


def _runs(text: str) -> list[FoundValue[list[str]]]:
    """Return the items of the last bracketed lists; brackets that follow one another are one list."""
    runs: list[list[re.Match[str]]] = []
    for found in _BRACKETED.finditer(text):
        if runs and _BETWEEN.fullmatch(text, runs[-1][-1].end(), found.start()) is not None:
            runs[-1].append(found)
        else:
            runs.append([found])
    return [FoundValue(list(_items(run)), run[0].start(), run[-1].end()) for run in runs[-_MOST_LISTS:]]


def _items(lists: Sequence[re.Match[str]]) -> Iterator[str]:
    for found in lists:
        for item in found[1].split(","):
            if stripped := item.strip(" \t\r\n'\"`"):
                yield stripped


def _alone(text: str, start: int, end: int) -> bool:
    """Return whether nothing but a lead is on the same line."""
    line_end = text.find("\n", end)
    before = text[text.rfind("\n", 0, start) + 1 : start]
    after = text[end : len(text) if line_end < 0 else line_end]
    return not re.search(r"\w", after) and _LEAD.fullmatch(before) is not None


def _bare_list(text: str, n: int | None, quoted: Quoted) -> Parsed[list[int]]:
    """Return the list without brackets that is the whole of the last line, apart from a lead."""
    fault: Parsed[list[int]] = Parsed(None, "there is no list of numbers in the reply")
    start = text.rfind("\n") + 1
    colon = text.rfind(":", start)
    if colon >= 0 and _LEAD.fullmatch(text, start, colon) is None:
        return fault
    start = max(start, colon + 1)
    line = text[start:].strip(" \t.*_`").casefold()
    if line in _NOTHING:
        return fault if quoted(text, start, len(text)) else Parsed([])
    tokens = [(found[0].casefold(), found.span()) for found in _TOKEN.finditer(text, start)]
    listed = [(token, span) for token, span in tokens if token not in {*_FILLING, "*", "_", "`"}]
    numbers = _numbers([token for token, _ in listed])
    if not numbers or quoted(text, listed[0][1][0], listed[-1][1][1]):
        return fault
    return _within(numbers, n)


def parse_order(text: str, n: int) -> Parsed[list[int]]:
    """Return the numbers 1 to ``n`` in the order written (``[2, 3, 1]``, ``[2] > [3] > [1]``, ``2 > 3 > 1``).

    The last list counts. The caller repairs missing, repeated and invalid numbers; a reply without a valid number is an
    error.
    """
    text = text[-LONGEST_REPLY:].strip()
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
        found = re.fullmatch(r"(?i)(?:passage|document|doc)?\s*(?:#\s*)?(\d{1,6})", item, re.ASCII)
        if found is None:
            return None
        out.append(int(found[1]))
    return out


def _within(numbers: Sequence[int], n: int | None) -> Parsed[list[int]]:
    wrong = [i for i in numbers if i < 1 or (n is not None and i > n)]
    if wrong:
        return Parsed(None, f"{wrong[0]} is not the number of a passage" + ("" if n is None else f", they end at {n}"))
    return Parsed(sorted(set(numbers)))
