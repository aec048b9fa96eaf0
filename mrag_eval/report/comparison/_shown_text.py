"""Texts of models and data in a comment or on a page: without control characters and secrets, cut, and escaped."""

from __future__ import annotations

import re
from collections.abc import Sequence

from mrag_eval.core import pipe_table
from mrag_eval.platform import UNSHOWN, redact

_LINE_ENDS = re.compile("\r\n|[\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
# What Markdown reads as more than text inside a line: an underscore only at the edge of a word, a colon and a dot only
# in an address.
_MARKUP = re.compile(r"[\\`*\[\]<>&#|~$]|(?<![^\W_])_|_(?![^\W_])|:(?=//)|(?<=www)\.", re.IGNORECASE)
# The same for cells whose brackets and signs are to stay readable: tags, entities, code, emphasis, links, addresses.
_CELL_MARKUP = re.compile(
    r"[`\\*~]|(?<![^\W_])_|_(?![^\W_])|<(?=[a-z/!?])|&(?=[#\w]+;)|(?<=\])[(\[]|:(?=//)|(?<=www)\.", re.IGNORECASE
)
# References and names of emoji that GitHub looks for in the text of the finished page, where entities do not help.
_REFERENCES = re.compile(r"@|&#35;|(?<=\bGH)-(?=\d)|:(?=[\w+-]*[a-z+-][\w+-]*:)", re.IGNORECASE)
# Text that is kept before the first difference of two texts.
_LEAD = 60


def plain(text: str) -> str:
    """Return the text with known secrets and key-like strings hidden, and a mark for each character of no shape."""
    return UNSHOWN.sub("\ufffd", _LINE_ENDS.sub("\n", redact(text)))


def cut(text: str, chars: int) -> str:
    """Return the first ``chars`` characters of a text; ``…`` marks a cut."""
    return text if len(text) <= chars else f"{text[:chars].rstrip()}…"


def cut_pair(first: str, second: str, chars: int) -> tuple[str, str]:
    """Return two texts cut like :func:`cut`, each from shortly before their first difference if that is far in."""
    both = enumerate(zip(first, second, strict=False))
    start = next((i for i, (a, b) in both if a != b), min(len(first), len(second))) - _LEAD
    if max(len(first), len(second)) <= chars or start < _LEAD:
        return cut(first, chars), cut(second, chars)
    return f"…{cut(first[start:], chars)}", f"…{cut(second[start:], chars)}"


def in_markdown(text: str, chars: int | None = None) -> str:
    """Return one line that Markdown, and HTML inside it, shows as the text: no markup, link, mention or reference.

    With ``chars`` the text is cut.
    """
    line = " ".join(plain(text).split())
    line = line if chars is None else cut(line, chars)
    escaped = _MARKUP.sub(lambda found: f"&#{ord(found[0])};", line)
    return _REFERENCES.sub(lambda found: f"{found[0]}\u2060", escaped)


def table_within(head: Sequence[str], rows: Sequence[Sequence[str]], align: str, chars: int) -> str:
    """Return a pipe table of at most ``chars`` characters, with the number of rows left out.

    What could be markup in a cell, such as a link, is shown as text.
    """
    cells = [[_in_cell(text) for text in row] for row in rows]
    table = pipe_table(head, cells, align)
    if len(table) <= chars:
        return table
    least, most = 0, len(cells)
    while least < most:
        middle = (least + most + 1) // 2
        if len(pipe_table(head, cells[:middle], align)) <= chars:
            least = middle
        else:
            most = middle - 1
    return f"{pipe_table(head, cells[:least], align)}\n\n{len(cells) - least:,} more are not listed here."


def _in_cell(text: str) -> str:
    """Return the text of a cell with its brackets readable, but no HTML, code, link or mention."""
    line = cut(" ".join(plain(text).split()), 300)
    escaped = _CELL_MARKUP.sub(lambda found: f"&#{ord(found[0])};", line)
    return _REFERENCES.sub(lambda found: f"{found[0]}\u2060", escaped)
