"""What a log holds and how it scored, in lines for a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from textwrap import wrap

from mrag_eval._front._results import Results
from mrag_eval._front._survey import Survey
from mrag_eval.core import UNSURE_LANGUAGE
from mrag_eval.platform import number_of
from mrag_eval.report import read_results

# Languages, reasons and pairs that a line names.
_MOST = 8
_JUDGED = (
    "judge_correct, context_sufficiency: no judge is asked here (mrag-eval judge answers, mrag-eval judge passages)"
)


def log_lines(found: Survey, names: Sequence[str], *, asked: bool, width: int | None = None) -> list[str]:
    """Return what was recognised in a log, what is scored, and what is left out, by its reason, within a width.

    ``asked``: the metrics are the user's choice, so that none is left out.
    """
    lines = [f"{head:<15} {text}" for head, text in _lines(found, names, asked)]
    if width is None:
        return lines
    cut = (wrap(line, width, subsequent_indent=" " * 16, break_on_hyphens=False) for line in lines)
    return [part for parts in cut for part in parts]


def _lines(found: Survey, names: Sequence[str], asked: bool) -> Iterator[tuple[str, str]]:
    log, rows = found.log, len(found.docs)
    mapped = ", ".join(f"{path} → {name}" for name, path in log.mapping.items() if path != name)
    bad = f", {len(found.unread):,} of them not read" if found.unread else ""
    yield log.name, number_of(rows, "row") + bad + (f": {mapped}" if mapped else "")
    yield from unread_lines(found)
    known = [doc for doc in found.docs.values() if doc.id not in found.unread]
    langs = Counter(doc.query_lang for doc in known)
    more = f" and {len(langs) - _MOST} more" if len(langs) > _MOST else ""
    by = f" ({found.counts['detected']:,} detected)" if found.counts["detected"] else ""
    yield "questions", ", ".join(f"{code} {n:,}" for code, n in langs.most_common(_MOST)) + more + by
    unsure = Counter(str(doc.extra[UNSURE_LANGUAGE]) for doc in known if UNSURE_LANGUAGE in doc.extra)
    for why, n in unsure.most_common(_MOST):
        yield "", f"{n:,} not relied on: {why}"
    for what, said in (("answer", "no answer: unscored, and counted"), ("context", "no context")):
        if 0 < (n := rows - found.counts[what]) < rows:
            yield "", f"{number_of(n, 'row')} {'has' if n == 1 else 'have'} {said}"
    if found.benchmark is not None:
        joined = f"{found.counts['joined']:,} of {number_of(rows, 'row')}"
        yield "references", f"of {found.benchmark}: {joined}, by id and language"
        for what, said in (
            ("other language", "not joined: their id is known, a question of their language is not"),
            ("other words", "asked in other words; the benchmark's question is taken"),
        ):
            if n := found.counts[what]:
                yield "", f"{number_of(n, 'row')} {said}"
    yield "scored", ", ".join(names)
    if not asked:
        left = [f"{', '.join(metrics)}: no {missing}" for missing, metrics in found.default_metrics()[1].items()]
        yield "left out", " · ".join([*left, _JUDGED])


def all_cut(results: Results) -> bool:
    """Return whether every reply of a log ends within its thinking, so that there is no answer to score."""
    (file,) = read_results([results.path])
    return all(leaf.scores.outcomes.get("thinking cut") == leaf.scores.rows for leaf in file.leaves.values())


def unread_lines(found: Survey) -> Iterator[tuple[str, str]]:
    """Yield what is not read of a log: columns, and rows with the first error."""
    if found.log.unread:
        yield "not read", ", ".join(found.log.unread)
    if found.unread:
        yield "rows not read", f"{len(found.unread):,}, the first: {next(iter(found.unread.values())).message}"
