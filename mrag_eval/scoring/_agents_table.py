"""How an agents' loop went over all rows: rounds, ends, faults, cost, and languages chosen against languages used."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from mrag_eval.core import Hit, RagDoc

Record = Mapping[str, Any]
# Resamples of an interval, as in mrag_eval.scoring._summary.
_RESAMPLES = 2_000


def loop_record(doc: RagDoc, trace: Mapping[str, Any], passages: Sequence[Hit]) -> dict[str, Any]:
    """What the table needs of one row.

    ``source`` is the language of the row's culture, else of its question. ``chosen`` counts the rounds in which each
    language was chosen, ``used`` the passages shown in it (in their own language, where they are shown translated).
    """
    usage = trace["usage"]
    return {
        "source": doc.culture_lang or doc.query_lang,
        "rounds": len(trace["rounds"]),
        "stopped": trace["stopped"],
        "valid": trace["valid"],
        "shown": len(passages),
        "fallback": trace["fallback"],
        "faults": dict(trace["faults"]),
        "calls": usage["calls"],
        "cached": usage["cached"],
        "tokens": usage["tokens_in"] + usage["tokens_out"],
        "chosen": dict(Counter(code for each in trace["rounds"] for code in each["languages"])),
        "used": dict(Counter(hit.original_lang or hit.lang for hit in passages)),
    }


def loop_table(rows: Sequence[Record], correct: Sequence[str], seed: int = 0) -> dict[str, Any] | None:
    """The table of the rows that a loop retrieved for, None where there are none; ``correct`` are metrics of 0 and 1.

    Returns a JSON object::

        rows               number of rows
        rounds, stopped    how many rows took so many rounds, and why they ended
        faults             faults of the agents' replies by who, which kind, and what was done
        without_documents  share of rows that were answered without documents, with interval
        fallback           share of rows that were shown documents of which none is valid
        per_question       means of calls, tokens (in and out) and valid documents; cached: calls from the cache in all
        languages          source language -> chosen (corpora, by rounds) and used (passages shown), by language
        by_rounds          the first of ``correct`` that the rows have, by number of rounds
        by_calls           the same by number of calls
    """
    looped = [r for r in rows if "loop" in r]
    if not looped:
        return None
    loops = [r["loop"] for r in looped]
    n = len(loops)
    languages: dict[str, dict[str, Counter[str]]] = defaultdict(lambda: {"chosen": Counter(), "used": Counter()})
    for loop in loops:
        for part in ("chosen", "used"):
            languages[loop["source"]][part].update(loop[part])
    out: dict[str, Any] = {
        "rows": n,
        "rounds": _counted(loop["rounds"] for loop in loops),
        "stopped": _counted(loop["stopped"] for loop in loops),
        "faults": dict(sorted(sum((Counter(loop["faults"]) for loop in loops), Counter()).items())),
        "without_documents": _share([float(loop["shown"] == 0) for loop in loops], seed),
        "fallback": _share([float(loop["fallback"]) for loop in loops], seed),
        "per_question": {key: sum(loop[key] for loop in loops) / n for key in ("calls", "tokens", "valid")},
        "cached": sum(loop["cached"] for loop in loops),
        "languages": {
            source: {part: dict(sorted(counts.items())) for part, counts in parts.items()}
            for source, parts in sorted(languages.items())
        },
    }
    metric = next((m for m in correct if any(m in r["values"] for r in looped)), None)
    if metric is not None:
        for name, key in (("by_rounds", "rounds"), ("by_calls", "calls")):
            cells: dict[int, list[Any]] = defaultdict(list)
            for r in looped:
                cells[r["loop"][key]].append(r["values"].get(metric))
            out[name] = {str(cell): _share(values, seed) for cell, values in sorted(cells.items())}
        out["correct_by"] = metric
    return out


def loop_line(table: Mapping[str, Any]) -> str:
    """One line: rounds, ends, what was answered without documents, what it cost, what was mended."""
    per = table["per_question"]
    ends = ", ".join(f"{count} {reason}" for reason, count in table["stopped"].items())
    rounds = ", ".join(f"{count} in {rounds}" for rounds, count in table["rounds"].items())
    bare = round(table["without_documents"]["value"] * table["rows"])
    parts = [f"rounds: {rounds}", f"ended: {ends}", f"{bare} of {table['rows']} without documents"]
    if table["fallback"]["value"]:
        parts.append(f"{round(table['fallback']['value'] * table['rows'])} with documents none of which is valid")
    parts.append(f"{per['calls']:.1f} calls and {per['tokens']:,.0f} tokens a question, {table['cached']:,} from cache")
    if table["faults"]:
        parts.append("faults: " + ", ".join(f"{count} {fault}" for fault, count in table["faults"].items()))
    return " · ".join(parts)


def _counted(values: Any) -> dict[str, int]:
    return {str(value): count for value, count in sorted(Counter(values).items())}


def _share(values: Sequence[float | None], seed: int) -> dict[str, Any]:
    from mrag_eval.metrics import interval_for

    return interval_for(values, n_resamples=_RESAMPLES, seed=seed).as_dict()
