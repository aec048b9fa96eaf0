"""Tables as plain text: Markdown, and columns without borders; and printed text as a notebook shows it."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from html import escape
from itertools import groupby


class Displayed(ABC):
    """A result that shows itself alike on a terminal and in a notebook: as its ``text``, there in HTML."""

    @property
    @abstractmethod
    def text(self) -> str:
        """Return what the command prints."""

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return as_html(self.text)


def as_html(text: str) -> str:
    """Return headings, tables of :func:`pipe_table`, lists and lines as HTML."""
    parts = []
    for kind, block in groupby(text.split("\n"), lambda line: "".join(re.findall(r"^(?:\||- |#+ )", line))):
        lines = [escape(line.removeprefix(kind)) for line in block]
        if kind == "|":
            head, marks, *body = ([cell.strip() for cell in re.split(r"(?<!\\)\|", line)[:-1]] for line in lines)
            sides = ["right" if mark.endswith(":") else "left" for mark in marks]
            for tag, row in [("th", head), *(("td", row) for row in body)]:
                cells = [f'<{tag} style="text-align:{side}">{cell}' for cell, side in zip(row, sides, strict=True)]
                parts.append(f"{'<table>' * (tag == 'th')}<tr>{''.join(cells)}</tr>".replace("\\|", "|"))
            parts.append("</table>")
        elif kind == "- ":
            parts.append(f"<ul>{''.join(f'<li>{line}</li>' for line in lines)}</ul>")
        elif kind:
            parts += [f"<h4>{line}</h4>" for line in lines]
        else:
            said = re.split(r"\n{2,}", "\n".join(lines).strip("\n"))
            parts += [f"<p>{part}</p>".replace("\n", "<br>") for part in said if part]
    return "".join(parts)


def pipe_table(head: Sequence[str], rows: Sequence[Sequence[str]], align: str = "") -> str:
    """Return a Markdown table whose cells are aligned, so that it can be read on a screen.

    ``align`` has ``l`` or ``r`` for each column. Columns without a letter are aligned to the left.
    """
    _, top, rule, *body, _ = _lines([[text.replace("|", "\\|") for text in row] for row in (head, *rows)], align, True)
    sides = align.ljust(len(head), "l")
    marks = [
        dashes[:-1] + ("-" if side == "l" else ":") for dashes, side in zip(rule[1:-1].split("|"), sides, strict=True)
    ]
    return "\n".join([top, f"|{'|'.join(marks)}|", *body])


def columns(rows: Sequence[Sequence[str]], align: str = "") -> list[str]:
    """Return a line per row with its cells in columns; ``align`` is that of :func:`pipe_table`."""
    return [line.rstrip() for line in _lines(rows, align, False)] if rows else []


def _lines(rows: Sequence[Sequence[str]], align: str, pipes: bool) -> list[str]:
    """Return the lines that rich draws: without colours, never wrapped, the same with and without a terminal.

    A Chinese character is two columns wide and a combining mark none. With ``pipes`` the first row is the head.
    """
    from io import StringIO

    from rich.box import MARKDOWN
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    # rich reads the brackets of an interval as markup, except in a Text, and measures a tab as nothing
    cells = [[Text(" ".join(text.replace("\t", " ").splitlines())) for text in row] for row in rows]
    head, body = (cells[0], cells[1:]) if pipes else ([Text()] * len(rows[0]), cells)
    padding = (0, 1) if pipes else (0, 2, 0, 0)
    table = Table(box=MARKDOWN if pipes else None, show_header=pipes, padding=padding)
    for title, side in zip(head, align.ljust(len(head), "l"), strict=True):
        table.add_column(title, justify="left" if side == "l" else "right", no_wrap=True)
    for row in body:
        table.add_row(*row)
    screen = StringIO()
    Console(file=screen, width=1_000_000, color_system=None, legacy_windows=False, force_jupyter=False).print(table)
    return screen.getvalue().split("\n")[:-1]
