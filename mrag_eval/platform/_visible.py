"""Characters that a terminal, a page or a comment would obey instead of showing."""

from __future__ import annotations

import re

# Control characters but tab and line end, overrides and embeddings of the direction, halves of surrogate pairs, and
# what is no character.
UNSHOWN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")
# What programs that redraw a line put before it: it goes back to its start, or up.
_REDRAW = re.compile(r"(?:[\n\r]|\x1b\[A)*")


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
