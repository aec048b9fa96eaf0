"""What is done for languages, as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from mrag_eval.core import columns, language_name, pipe_table

if TYPE_CHECKING:
    from mrag_eval.planning import Piece

_MARKS = {True: "yes", False: "no", None: "not measured"}


def one_language(code: str, pieces: Sequence[Piece]) -> str:
    """Return a line for each piece, with the next step below each that is missing."""
    lines = columns([("", _MARKS[piece.ok], piece.name, piece.what) for piece in pieces])
    out = [f"{language_name(code)} ({code})"]
    for piece, line in zip(pieces, lines, strict=True):
        out += [line, *([f"      {piece.fix}"] if piece.fix else [])]
    return "\n".join(out)


def table_of_languages(found: Mapping[str, Sequence[Piece]]) -> str:
    """Return a row for each language, a column for each piece, and the next steps below."""
    names = list(dict.fromkeys(piece.name for pieces in found.values() for piece in pieces if piece.name != "file"))
    rows = []
    for code, pieces in found.items():
        marks = {piece.name: _MARKS[piece.ok] for piece in pieces}
        rows.append([code, language_name(code), *(marks.get(name, "") for name in names)])
    steps: dict[tuple[str, str], list[str]] = {}
    for code, pieces in found.items():
        for piece in pieces:
            if piece.fix:
                steps.setdefault((piece.name, piece.fix), []).append(code)
    below = [f"{name}: {', '.join(own)}\n      {fix}" for (name, fix), own in steps.items()]
    return "\n".join([pipe_table(["", "language", *names], rows), *(["", *below] if below else [])])
