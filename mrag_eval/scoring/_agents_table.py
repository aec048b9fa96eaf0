"""The table of an agents' loop over all rows: rounds, ends, faults, cost, and languages chosen and used."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING

from mrag_eval.core import Hit, RagDoc, failed_in, way_to
from mrag_eval.metrics import Estimate
from mrag_eval.scoring._resamples import RESAMPLES
from mrag_eval.scoring._row_records import LoopRecord, RowRecord
from mrag_eval.scoring._score_records import LoopLanguages, LoopTable, PerQuestion

if TYPE_CHECKING:
    from mrag_eval.core import Trace

_SEARCHED = way_to("search")


def loop_record(doc: RagDoc, trace: Trace, passages: Sequence[Hit]) -> LoopRecord:
    """Return the fields of one row that the table needs."""
    return LoopRecord(
        source=doc.culture_lang or doc.query_lang,
        rounds=len(trace.rounds),
        stopped=trace.stopped,
        valid=trace.valid,
        shown=len(passages),
        fallback=trace.fallback,
        faults=dict(trace.faults),
        calls=trace.usage.calls,
        cached=trace.usage.cached,
        tokens=trace.usage.tokens,
        chosen=dict(Counter(code for each in trace.rounds for code in each.languages)),
        used=dict(Counter(hit.original_lang or hit.lang for hit in passages)),
    )


def loop_table(rows: Sequence[RowRecord], correct: Sequence[str], seed: int = 0) -> LoopTable | None:
    """Return the table of the rows that a loop retrieved for, None without any; ``correct`` are metrics of 0 and 1."""
    looped = [(r, r.loop) for r in rows if r.loop is not None]
    if not looped:
        return None
    loops = [loop for _, loop in looped]
    n = len(loops)
    # what a loop ends with is its outcome only if none of its calls failed
    done = [loop for r, loop in looped if failed_in(r.failures, _SEARCHED) is None]
    languages: dict[str, dict[str, Counter[str]]] = defaultdict(lambda: {"chosen": Counter(), "used": Counter()})
    for loop in loops:
        languages[loop.source]["chosen"].update(loop.chosen)
        languages[loop.source]["used"].update(loop.used)
    metric = next((m for m in correct if any(m in r.values for r, _ in looped)), None)

    def by(number: Callable[[LoopRecord], int]) -> dict[str, Estimate] | None:
        if metric is None:
            return None
        cells: dict[int, list[float | None]] = defaultdict(list)
        for r, loop in looped:
            cells[number(loop)].append(r.values.get(metric))
        return {str(cell): _share(values, seed) for cell, values in sorted(cells.items())}

    return LoopTable(
        rows=n,
        rounds=_counted(loop.rounds for loop in loops),
        stopped=_counted(loop.stopped for loop in loops),
        faults=dict(sorted(sum((Counter(loop.faults) for loop in loops), Counter[str]()).items())),
        without_documents=_share([float(loop.shown == 0) for loop in done], seed),
        fallback=_share([float(loop.fallback) for loop in done], seed),
        per_question=PerQuestion(
            calls=sum(loop.calls for loop in loops) / n,
            tokens=sum(loop.tokens for loop in loops) / n,
            valid=sum(loop.valid for loop in loops) / n,
        ),
        cached=sum(loop.cached for loop in loops),
        languages={
            source: LoopLanguages(dict(sorted(parts["chosen"].items())), dict(sorted(parts["used"].items())))
            for source, parts in sorted(languages.items())
        },
        by_rounds=by(lambda loop: loop.rounds),
        by_calls=by(lambda loop: loop.calls),
        correct_by=metric,
    )


def loop_line(table: LoopTable) -> str:
    """Return one line: rounds, ends, questions answered without documents, cost, faults."""
    per = table.per_question
    ends = ", ".join(f"{count} {reason}" for reason, count in table.stopped.items())
    rounds = ", ".join(f"{count} in {rounds}" for rounds, count in table.rounds.items())
    done = table.without_documents.n
    bare = round(table.without_documents.or_else(0.0) * done)
    parts = [f"rounds: {rounds}", f"ended: {ends}", f"{bare} of {done} without documents"]
    if table.fallback.value:
        parts.append(f"{round(table.fallback.value * done)} with documents none of which is valid")
    parts.append(f"{per.calls:.1f} calls and {per.tokens:,.0f} tokens a question, {table.cached:,} from cache")
    if table.faults:
        parts.append("faults: " + ", ".join(f"{count} {fault}" for fault, count in table.faults.items()))
    return " · ".join(parts)


def _counted(values: Iterable[int | str]) -> dict[str, int]:
    return {str(value): count for value, count in sorted(Counter(values).items(), key=itemgetter(0))}


def _share(values: Sequence[float | None], seed: int) -> Estimate:
    from mrag_eval.metrics import interval_for

    return interval_for(values, n_resamples=RESAMPLES, seed=seed)
