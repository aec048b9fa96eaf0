"""The table of relevance labels of a task's rankings: labeller, rows, passages per row, and cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain

from mrag_eval.models import total, totals
from mrag_eval.scoring._panel_table import panel_of
from mrag_eval.scoring._row_records import RowRecord
from mrag_eval.scoring._score_records import LabelTable


def label_table(records: Sequence[RowRecord]) -> LabelTable | None:
    """Return the table from the rows' records; None if no ranking was labelled."""
    shares = [r.labelling for r in records if r.labelling is not None]
    if not shares:
        return None
    rows = [r.relevance for r in {r.row: r for r in records if r.relevance is not None}.values() if r.relevance]
    counts = [len(row.relevant) for row in rows if row.relevant is not None]
    first = shares[0]
    table = LabelTable(
        by=first.by,
        labelled=len(counts),
        unlabelled=dict(Counter(row.fault for row in rows if row.fault is not None)),
        relevant=sum(counts) / len(counts) if counts else None,
        none=sum(not count for count in counts),
    )
    if first.by != "judge":
        return replace(table, threshold=first.threshold, n=first.n)
    votes = chain.from_iterable(row.votes.values() for row in rows)
    return replace(
        table,
        judges=dict(first.models),
        abstained=dict(Counter(vote for vote in votes if isinstance(vote, str))),
        ledger=totals([share.ledger for share in shares]),
    )


def label_line(table: LabelTable) -> str:
    """Return the table in one line, for the log."""
    rows = f"{table.labelled:,} rankings"
    left = ", ".join(f"{n:,} not ({reason})" for reason, n in table.unlabelled.items())
    found = "" if table.relevant is None else f" · {table.relevant:.1f} relevant passages a row"
    if table.by != "judge":
        how = "guessed by the page"
        if table.threshold is not None:
            how = f"guessed by {table.n}-grams (at least {table.threshold:g} of the answer's"
            how += ", translated)" if table.by == "translated" else ")"
        return f"relevance of {rows} {how}{found}" + (f" · {left}" if left else "")
    who = "one judge" if len(table.judges or {}) == 1 else panel_of(table.judges or {})
    cost = total((table.ledger or {}).values()).line()
    return f"relevance of {rows} labelled by {who}{found}" + (f" · {left}" if left else "") + f" · {cost}"
