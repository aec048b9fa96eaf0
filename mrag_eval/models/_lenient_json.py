"""Parser for almost-JSON, as models write it.

Besides JSON it accepts: strings in single or typographic quotes, unescaped quotes inside a string, raw line breaks in
one, trailing commas, bare words as keys, ``True``, ``False`` and ``None``. An object with one key twice and different
values is refused: one of them may have been quoted from the text under judgement.

json-repair is not used: it closes a truncated vote and takes the last of two contradicting votes.
"""

from __future__ import annotations

import json
import re
from typing import Any

from mrag_eval.platform import JsonFault, finite_number, nested_too_deeply, no_number, without_conflict

_DEEPEST = 50
_SPACE = re.compile(r"\s*")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.])")
_WORD = re.compile(r"[A-Za-z_]\w*")
_WORDS = {"true": True, "false": False, "none": None, "null": None}
_CLOSING = {'"': '"', "'": "'", "“": "”", "‘": "’"}
_SURROGATE = re.compile("[\ud800-\udfff]")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}


class UnreadableError(Exception):
    """The fault, in words that a model can act on."""


def read_value(text: str, start: int) -> tuple[Any, int]:
    """Return the value that begins at ``start`` and the position after it; raise UnreadableError if there is none."""
    try:
        value, end = _STRICT.raw_decode(text, start)
    except UnreadableError:
        raise
    except (ValueError, RecursionError):
        return _Reader(text).value(start, 0)
    if nested_too_deeply(value):
        raise UnreadableError("it is nested too deeply")
    return value, end


def storable(value: Any) -> Any:
    """Return the value with surrogate pairs joined and lone ones replaced: JSON can escape those, but files cannot hold
    them.
    """
    if isinstance(value, str):
        if _SURROGATE.search(value) is None:
            return value
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if isinstance(value, dict):
        return {storable(key): storable(inner) for key, inner in value.items()}
    return [storable(item) for item in value] if isinstance(value, list) else value


def _without_conflict(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    try:
        return without_conflict(pairs)
    except JsonFault as fault:
        raise UnreadableError(fault.reason) from None


_STRICT = json.JSONDecoder(
    strict=False, object_pairs_hook=_without_conflict, parse_constant=no_number, parse_float=finite_number
)


def _number(literal: str) -> int | float:
    if re.search(r"[.eE]", literal) is None:
        return int(literal)
    try:
        return finite_number(literal)
    except JsonFault as fault:
        raise UnreadableError(fault.reason) from None


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text

    def _at(self, position: int) -> str:
        return self.text[position] if position < len(self.text) else ""

    def _skip(self, position: int) -> int:
        found = _SPACE.match(self.text, position)
        return found.end() if found else position

    def value(self, position: int, depth: int) -> tuple[Any, int]:
        if depth > _DEEPEST:
            raise UnreadableError("it is nested too deeply")
        position = self._skip(position)
        first = self._at(position)
        if first == "{":
            return self._object(position, depth)
        if first == "[":
            return self._array(position, depth)
        if first in _CLOSING and first:
            return self._string(position)
        number = _NUMBER.match(self.text, position)
        if number:
            literal = number[0]
            if len(literal) > 300:
                raise UnreadableError("a number is too long")
            return _number(literal), number.end()
        word = _WORD.match(self.text, position)
        if word and word[0].lower() in _WORDS:
            return _WORDS[word[0].lower()], word.end()
        raise UnreadableError(f"a value is missing at {self.text[position : position + 20]!r}")

    def _object(self, position: int, depth: int) -> tuple[dict[str, Any], int]:
        pairs: list[tuple[str, Any]] = []
        position = self._skip(position + 1)
        while self._at(position) != "}":
            key, position = self._key(position)
            position = self._skip(position)
            if self._at(position) != ":":
                raise UnreadableError(f"a colon is missing after the key '{key[:40]}'")
            value, position = self.value(position + 1, depth + 1)
            pairs.append((key, value))
            position = self._after_item(position, "}")
        return _without_conflict(pairs), position + 1

    def _key(self, position: int) -> tuple[str, int]:
        if self._at(position) and self._at(position) in _CLOSING:
            return self._string(position)
        word = _WORD.match(self.text, position)
        if word is None:
            raise UnreadableError(f"a key is missing at {self.text[position : position + 20]!r}")
        return word[0], word.end()

    def _array(self, position: int, depth: int) -> tuple[list[Any], int]:
        items: list[Any] = []
        position = self._skip(position + 1)
        while self._at(position) != "]":
            item, position = self.value(position, depth + 1)
            items.append(item)
            position = self._after_item(position, "]")
        return items, position + 1

    def _after_item(self, position: int, closing: str) -> int:
        position = self._skip(position)
        if self._at(position) == ",":
            return self._skip(position + 1)
        if self._at(position) != closing:
            raise UnreadableError(f"it is not closed by '{closing}'")
        return position

    def _string(self, position: int) -> tuple[str, int]:
        """Parse a string; a quote inside it ends it only if something valid after a value follows."""
        closing = _CLOSING[self._at(position)]
        out: list[str] = []
        position += 1
        while position < len(self.text):
            char = self.text[position]
            if char == "\\":
                char, position = self._escape(position)
                out.append(char)
                continue
            if char == closing:
                following = self._at(self._skip(position + 1))
                if following == "" or following in ",:}]":
                    return "".join(out), position + 1
            out.append(char)
            position += 1
        raise UnreadableError("a string is not closed")

    def _escape(self, position: int) -> tuple[str, int]:
        kind = self._at(position + 1)
        width = {"u": 4, "x": 2}.get(kind, 0)
        digits = self.text[position + 2 : position + 2 + width]
        if width and re.fullmatch(rf"[0-9a-fA-F]{{{width}}}", digits):
            return chr(int(digits, 16)), position + 2 + width
        return _ESCAPES.get(kind, kind), position + 2
