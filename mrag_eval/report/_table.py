"""Tables as data, and as Markdown, CSV or JSON."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import inf
from textwrap import wrap

from mrag_eval.core import decimal, pipe_table, score_text
from mrag_eval.metrics import Estimate
from mrag_eval.platform import ConfigError, csv_cell, did_you_mean
from mrag_eval.report.files._scores import Score
from mrag_eval.scoring import scale_of

# Lines that give one reason for blanks of several rows, on a screen.
_LISTED = 3


@dataclass(frozen=True, slots=True)
class Cell:
    """A figure in the unit of its table; if ``value`` is None the cell is blank and ``reason`` says why.

    ``state`` says of a place of ours in a paper's table whether it is ``as shipped``, ``run otherwise`` or ``not run``.
    ``low`` and ``high`` bound the 95% interval, ``n`` counts rows; both are unknown for published figures. ``digits``
    is set only if it differs from the table's. A reason of "" needs no explanation.
    """

    value: float | None
    reason: str | None = None
    low: float | None = None
    high: float | None = None
    n: int | None = None
    task: str | None = None
    metric: str | None = None
    digits: int | None = None
    state: str = ""


def percent_cell(
    score: Estimate | Score, task: str | None = None, metric: str | None = None, scale: float | None = None
) -> Cell:
    """Return the cell of a score that has a value: in percent, or in the unit of ``metric``, or times ``scale``."""
    if scale is None:
        scale = scale_of(metric or "").factor
    low, high = (None if end is None else scale * end for end in (score.low, score.high))
    return Cell(None if score.value is None else scale * score.value, None, low, high, score.n or None, task, metric)


@dataclass(frozen=True, slots=True)
class Row:
    """The labels of the stub, the source of the figures, the settings in which it ``differs``, and the other cells."""

    labels: tuple[str, ...]
    source: str
    cells: tuple[Cell, ...]
    differs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Table:
    """A table with ``digits`` decimals; ``notes`` are lines below it.

    ``intervals``: intervals are printed as well. ``margins``: intervals are printed as half widths, as some papers do.
    """

    id: str
    title: str
    stub: tuple[str, ...]
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    digits: int
    notes: tuple[str, ...] = ()
    intervals: bool = False
    margins: bool = False


def markdown(tables: Sequence[Table], width: int | None = None) -> str:
    """Return pipe tables. Blank cells and differences are explained below each table.

    ``n`` follows every figure that has one. A table that is wider than ``width`` columns is turned, or cut into several
    below each other, and says above them what all its rows share.
    """
    parts = []
    for table in tables:
        marked, told = noted(table, width)
        notes = [f"- {note}" for note in told]
        grids = "\n\n".join(_grids(marked, width))
        parts.append("\n".join([f"### {table.title}", "", grids, *(["", *notes] if notes else [])]))
    return within("\n\n".join(parts), width)


def within(text: str, width: int | None) -> str:
    """Return a text whose lines are broken where they exceed a width, but for those of tables."""
    out: list[str] = []
    for line in text.split("\n"):
        whole = width is None or len(line) <= width or line.startswith("|")
        indent = "  " if line.startswith("- ") else ""
        out += [line] if whole else wrap(line, width or 0, subsequent_indent=indent, break_on_hyphens=False)
    return "\n".join(out)


def noted(table: Table, width: int | None = None) -> tuple[Table, list[str]]:
    """Return the table with marks in its sources for what differs from it, and the lines below it."""
    ours = [row.differs for row in table.rows if not row.source.startswith(("paper", "computed", "no run"))]
    shared, marks = numbered(ours)
    rows = tuple(replace(row, source=row.source + "".join(marks.get(t, "") for t in row.differs)) for row in table.rows)
    lines = [f"all runs of ours differ: {text}" for text in shared] + [f"{m.strip()} {t}" for t, m in marks.items()]
    return replace(table, rows=rows), [*_blanks(table, width), *lines, *table.notes]


def as_texts(table: Table) -> tuple[tuple[str, ...], list[tuple[list[str], list[str]]]]:
    """Return the heads of a table, and the labels and figures of each row; the sources are labels, if rows have one."""
    sources = [[row.source] if any(one.source for one in table.rows) else [] for row in table.rows]
    heads = (*table.stub, "from") if any(sources) else table.stub
    rows = zip(table.rows, sources, strict=True)
    return heads, [([*row.labels, *source], [_shown(cell, table) for cell in row.cells]) for row, source in rows]


def numbered(rows: Sequence[Sequence[str]]) -> tuple[list[str], dict[str, str]]:
    """Return what is said of all of several rows, and the mark of each text that is said of some of them."""
    found = list(dict.fromkeys(text for row in rows for text in row))
    shared = [text for text in found if len(rows) > 1 and all(text in row for row in rows)]
    return shared, {text: f" [{n}]" for n, text in enumerate((text for text in found if text not in shared), 1)}


def _grids(table: Table, width: int | None) -> list[str]:
    """Return the pipe table of a table, or as few as hold it within a width; of one turned, rows are columns."""
    heads, rows = as_texts(table)
    labels, cells = [label for label, _ in rows], [own for _, own in rows]
    (whole, *others) = blocks(heads, labels, table.columns, cells, None)
    if width is None or not cells or len(whole.partition("\n")[0]) <= width:
        return [whole, *others]
    # a label may name its source
    if heads[-1] == "from" and all(row[-1] in "".join(row[:-1]) for row in labels):
        heads, labels = heads[:-1], [row[:-1] for row in labels]
    shared = [i for i, of in enumerate(zip(*labels, strict=True)) if len({*of}) == 1 and (i or len(labels) > 1)]
    apart = [i for i in range(len(heads)) if i not in shared] or [0]
    own = [[row[i] for i in apart] for row in labels]
    straight = blocks([heads[i] for i in apart], own, table.columns, cells, width)
    names = [(name,) for name in table.columns]
    turned = blocks([""], names, [" · ".join(filter(None, row)) for row in own], [*zip(*cells, strict=True)], width)
    said = [" · ".join(f"{heads[i]}: {labels[0][i]}" for i in shared)] if shared else []
    return [*said, *min(straight, turned, key=len)]


def table_width(table: Table) -> int:
    """Return the columns that a table takes in one piece."""
    from rich.cells import cell_len

    return cell_len(_grids(table, None)[0].partition("\n")[0])


def blocks(
    stub: Sequence[str],
    labels: Sequence[Sequence[str]],
    heads: Sequence[str],
    cells: Sequence[Sequence[str]],
    width: int | None,
) -> list[str]:
    """Return pipe tables, each of the next columns that fit into a width, at least one."""
    from rich.cells import cell_len

    def taken(texts: Iterable[str]) -> int:
        return 3 + max(map(cell_len, texts))

    first = 1 + sum(taken((head, *(row[i] for row in labels))) for i, head in enumerate(stub))
    parts: list[list[int]] = [[]]
    room = inf if width is None else width - first
    left = room
    for i, head in enumerate(heads):
        needs = taken((head, *(row[i] for row in cells)))
        if needs > left and parts[-1]:
            parts.append([])
            left = room
        parts[-1].append(i)
        left -= needs
    return [
        pipe_table(
            (*stub, *(heads[i] for i in block)),
            [[*label, *(row[i] for i in block)] for label, row in zip(labels, cells, strict=True)],
            "l" * len(stub) + "r" * len(block),
        )
        for block in parts
    ]


def _shown(cell: Cell, table: Table) -> str:
    if cell.value is None:
        return ""
    digits = table.digits if cell.digits is None else cell.digits
    low, high = (cell.low, cell.high) if table.intervals and not table.margins else (None, None)
    text = score_text(cell.value, low, high, scale=1.0, digits=digits)
    if table.margins and cell.low is not None and cell.high is not None:
        text += f" ± {decimal((cell.high - cell.low) / 2, digits)}"
    return text + (f" (n={cell.n:,})" if cell.n is not None else "")


def _blanks(table: Table, width: int | None) -> list[str]:
    """Return a line for each row and reason, with the columns or tasks that it applies to, or for a frequent reason."""
    where: dict[tuple[str, str], list[str]] = {}
    for row in table.rows:
        for name, cell in zip(table.columns, row.cells, strict=True):
            if cell.value is None and cell.reason != "":
                key = (row.labels[-1], cell.reason or "no figure")
                where.setdefault(key, []).append(cell.task or ", ".join((*row.labels[:-1], name)))
    reasons: dict[str, dict[str, list[str]]] = {}
    for (model, reason), cells in where.items():
        reasons.setdefault(reason, {}).setdefault("; ".join(dict.fromkeys(cells)), []).append(model)
    return [
        line
        for why, places in reasons.items()
        for line in (
            [f"blank in {sum(map(len, places.values()))} rows: {why}"]
            if width is not None and len(places) > _LISTED
            else [f"{', '.join(models)}, blank: {cells}: {why}" for cells, models in places.items()]
        )
    ]


def comma_separated(tables: Sequence[Table]) -> str:
    """Return one line per cell: table, labels, source, column, task, metric, figures, reason, state, differences."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    head = (
        "table",
        "row",
        "from",
        "column",
        "task",
        "metric",
        "value",
        "low",
        "high",
        "n",
        "reason",
        "state",
        "differs",
    )
    writer.writerow(head)
    for table in tables:
        for row in table.rows:
            for name, cell in zip(table.columns, row.cells, strict=True):
                digits = table.digits if cell.digits is None else cell.digits
                bounds = ["" if x is None else decimal(x, digits) for x in (cell.value, cell.low, cell.high)]
                named = (table.id, " / ".join(row.labels), row.source, name, cell.task or "", cell.metric or "")
                texts = (cell.reason or "", cell.state, "; ".join(row.differs))
                tail = ["" if cell.n is None else cell.n, *map(csv_cell, texts)]
                # numbers are no formulas: -0.5 stays one
                writer.writerow([*map(csv_cell, named), *bounds, *tail])
    return out.getvalue().rstrip("\n")


def as_json(tables: Sequence[Table]) -> str:
    """Return the tables as JSON, with unrounded values."""
    return json.dumps([asdict(table) for table in tables], ensure_ascii=False, indent=2)


FORMATS: Mapping[str, Callable[[Sequence[Table]], str]] = {
    "md": markdown,
    "csv": comma_separated,
    "json": as_json,
}


def render(tables: Sequence[Table], form: str = "md", width: int | None = None) -> str:
    """Return the tables in one of :data:`FORMATS`, as text within a width. Raise ConfigError for another name."""
    if form not in FORMATS:
        raise ConfigError(f"--format: no format '{form}'{did_you_mean(form, FORMATS)}")
    return markdown(tables, width) if form == "md" else FORMATS[form](tables)
