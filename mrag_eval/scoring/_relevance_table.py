"""How a task's rankings were labelled: by whom, how many rows, how many passages a row, and what it cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

from mrag_eval.models import Ledger, total

Record = Mapping[str, Any]


def label_table(records: Sequence[Record]) -> dict[str, Any] | None:
    """The table from the rows' records; None where no ranking was labelled.

    ``relevance`` of a record is :meth:`mrag_eval.core.Labels.as_record`; one record of every rank holds
    ``labelling``: by whom, and the models and ledgers of that rank or the proxy's threshold. Returns a JSON object::

        by         judge or proxy
        labelled   rows with labels
        unlabelled reason -> rows
        relevant   mean number of relevant passages of a labelled row
        none       labelled rows without a relevant passage
        threshold, n   of the proxy
        judges     seat -> model; abstained: reason -> votes
        ledger     model -> calls, cached, retries, tokens, failures, seconds
    """
    shares = [r["labelling"] for r in records if "labelling" in r]
    if not shares:
        return None
    rows = [r["relevance"] for r in {str(r["row"]): r for r in records if "relevance" in r}.values()]
    counts = [len(row["relevant"]) for row in rows if "relevant" in row]
    out: dict[str, Any] = {
        "by": shares[0]["by"],
        "labelled": len(counts),
        "unlabelled": dict(Counter(row["fault"] for row in rows if "fault" in row)),
        "relevant": sum(counts) / len(counts) if counts else None,
        "none": sum(not count for count in counts),
    }
    if out["by"] == "proxy":
        return out | {key: shares[0][key] for key in ("threshold", "n")}
    votes = chain.from_iterable(row.get("votes", {}).values() for row in rows)
    out["judges"] = dict(shares[0]["models"])
    out["abstained"] = dict(Counter(vote for vote in votes if isinstance(vote, str)))
    names = list(dict.fromkeys(chain.from_iterable(share["ledger"] for share in shares)))
    out["ledger"] = {
        name: total(Ledger.from_dict(share["ledger"][name]) for share in shares if name in share["ledger"]).as_dict()
        for name in names
    }
    return out


def label_line(table: Mapping[str, Any]) -> str:
    """The table in one line, for the log."""
    rows = f"{table['labelled']:,} rankings"
    left = ", ".join(f"{n:,} not ({reason})" for reason, n in table["unlabelled"].items())
    found = "" if table["relevant"] is None else f" · {table['relevant']:.1f} relevant passages a row"
    if table["by"] == "proxy":
        how = f"guessed by {table['n']}-grams (at least {table['threshold']:g} of the answer's)"
        return f"relevance of {rows} {how}{found}" + (f" · {left}" if left else "")
    cost = total(Ledger.from_dict(ledger) for ledger in table["ledger"].values()).line()
    judges = len(table["judges"])
    who = "one judge" if judges == 1 else f"a panel of {judges}"
    return f"relevance of {rows} labelled by {who}{found}" + (f" · {left}" if left else "") + f" · {cost}"
