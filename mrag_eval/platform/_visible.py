"""Characters that a terminal, a page or a comment would obey instead of showing."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

# Control characters but tab and line end, overrides and embeddings of the direction, halves of surrogate pairs, and
# what is no character.
UNSHOWN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")
# What programs that redraw a line put before it: it goes back to its start, or up.
_REDRAW = re.compile(r"(?:[\n\r]|\x1b\[A)*")
# What a name must not have beside it: the end of a line, and what a workflow's log obeys, at its start or anywhere.
_NOT_IN_A_NAME = re.compile(rf"{UNSHOWN.pattern}|[\t\n\u2028\u2029]|^\s*:(?=:)|#(?=#(?:\[|vso\[))")
_LONGEST = 500
# Keys of results under which names are, in a text or a list, and those of mappings to names.
_NAMES = re.compile(r"(.*_)?(alias|by|judges?|langs?|languages?|metrics?|models?|names?|pretrained|tasks?)")
_OF_NAMES = frozenset({"cell", "group_subtasks", "unscored"})


def one_line(text: str) -> str:
    """Return a name from elsewhere as one printable, bounded line that no terminal and no workflow's log obeys."""
    text = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
    if text.isprintable() and "::" not in text and "##" not in text:
        return text
    return _NOT_IN_A_NAME.sub(lambda found: f"{found[0][:-1].strip()}\\u{ord(found[0][-1]):04x}", text)


def is_one_line(text: str) -> bool:
    """Return whether the path of a file has no character that would end its line, or be obeyed."""
    return text.isprintable() or _NOT_IN_A_NAME.search(text) is None


def with_names_of_one_line(value: Any, key: str = "") -> Any:
    """Return JSON from elsewhere with each name in it as :func:`one_line` has it: every key, and what naming keys hold.

    Texts stay as they are.
    """
    if isinstance(value, dict):
        below = key if key in _OF_NAMES else ""
        return {_key(k): with_names_of_one_line(inner, below or k) if type(inner) in _NESTED else inner
                for k, inner in value.items()}  # fmt: skip
    if isinstance(value, list):
        return [with_names_of_one_line(inner, key) for inner in value]
    named = isinstance(value, str) and (key in _OF_NAMES or _NAMES.fullmatch(key) is not None)
    return one_line(value) if named else value


# the rows of a file have their keys in common
_key = lru_cache(maxsize=1024)(one_line)
_NESTED = (str, list, dict)


def visible(text: str) -> str:
    """Return the text with each character that a terminal would obey as its JSON escape, such as ``\\u001b``.

    So JSON stays the same JSON.
    """
    return text if text.isprintable() else UNSHOWN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def visible_line(text: str) -> str:
    """Return the text as :func:`visible` does, and let a progress bar return to the start of its line."""
    start = _REDRAW.match(text)
    end = start.end() if start else 0
    rest = text[end:]
    # what clears a line ends at its start
    clears = rest.endswith("\r") and not rest[:-1].strip(" ")
    return text[:end] + (rest if clears else visible(rest))
