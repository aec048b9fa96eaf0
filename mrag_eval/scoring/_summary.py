"""Summary of gathered rows: intervals, cells, language pairs, sources of errors, retrieved passages."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from typing import Any, TypeVar

from mrag_eval.config import CORRECT, HOLDS_ANSWER
from mrag_eval.core import failed_in, same_language, way_to
from mrag_eval.metrics import ErrorAttribution, Estimate
from mrag_eval.models import total_counts
from mrag_eval.platform import Wait
from mrag_eval.scoring._agents_table import loop_table
from mrag_eval.scoring._control_table import control_table
from mrag_eval.scoring._failure_table import bounds_with, failed_rows, failure_counts
from mrag_eval.scoring._metrics import needs_of, scale_of
from mrag_eval.scoring._panel_table import claims_table, panel_table, sufficiency_table
from mrag_eval.scoring._ranking import REORDERED
from mrag_eval.scoring._relevance_table import label_table
from mrag_eval.scoring._resamples import RESAMPLES
from mrag_eval.scoring._row_records import PromptCounts, RowRecord, groups_of, right_language
from mrag_eval.scoring._score_records import (
    AttributionTable,
    LanguageTable,
    MetricScore,
    Preference,
    RerankTable,
    SelectionLinks,
    SelectionTable,
    TaskScores,
    TranslationTable,
)
from mrag_eval.scoring._task_level import ANSWERED, TASK_MEASURES, citation_tables, concurrence_table

T = TypeVar("T")
Chain = TypeVar("Chain", ErrorAttribution, SelectionLinks)
_SEARCHED, _CHOSEN = way_to("search"), way_to("rerank")
# Accuracy -> whether the reply's choice was read. A reply without a readable choice counts as wrong.
READ = {"acc": "choice_parsed", "acc_micro": "choice_parsed"}
# The key of the unweighted mean over languages.
MACRO = "macro"
_CONFIDENCE = 0.95


def summarize(records: Sequence[RowRecord], seed: int = 0, evaluated: str | None = None) -> TaskScores:
    """Return scores with intervals from gathered rows; ``evaluated`` is the name of the model whose answers they are.

    Groups of rows (versions of one question, questions on one document) are resampled together. A row that reached two
    ranks counts once.
    """
    rows = list({r.row: r for r in records}.values())
    scored = dict.fromkeys(name for r in rows for name in r.values)
    # a metric that failed in every row is there, without a value
    lost = (name for r in rows if r.failures for name in r.unscored if name not in scored)
    names = [*scored, *(name for name in dict.fromkeys(lost) if failed_rows(rows, name))]
    unscored: dict[str, Counter[str]] = defaultdict(Counter)
    for r in rows:
        for name, reason in r.unscored.items():
            unscored[name][reason] += 1
    # answers about territories that are in no concurrence score
    lacking = (failed_in(r.failures, ANSWERED) for r in rows if r.unanswered is not None)
    reasons = Counter(failure.why for failure in lacking if failure is not None)
    unscored |= {name: reasons for name, measure in TASK_MEASURES.items() if measure.in_results and reasons}
    translation = total_counts(r.translation for r in records if r.translation is not None)
    with Wait("computing intervals", len(names), "metrics") as wait:
        cells = _cells(rows)
        metrics = {name: _metric(rows, name, cells, seed) for name in wait.over(names)}
    with Wait("computing tables of scores"):
        return TaskScores(
            rows=len(rows),
            metrics=metrics,
            unscored={name: dict(reasons) for name, reasons in unscored.items()},
            query_langs=dict(sorted(Counter(r.query_lang for r in rows).items())),
            **failure_counts(rows),
            concurrence=concurrence_table(rows, seed),
            citations=citation_tables(rows, seed),
            prompts=_prompts(records),
            attribution=_attribution(rows, seed),
            selection=_selection(rows, seed),
            languages=_languages(rows, seed),
            rerank=_rerank(rows),
            translation=None if translation is None else TranslationTable(**translation),
            relevance=label_table(records),
            loop=loop_table(rows, CORRECT, seed),
            judge=panel_table(records, evaluated=evaluated, seed=seed),
            sufficiency=sufficiency_table(records, seed=seed),
            claims=claims_table(records, seed=seed),
            controls=control_table(rows, seed),
        )


def unscored_lines(unscored: Mapping[str, Mapping[str, int]]) -> list[tuple[str, int, str]]:
    """Return ``(metrics, rows, reason)``: metrics that lack as many rows for the same reason are reported together."""
    together: dict[tuple[str, int], list[str]] = {}
    for metric, reasons in unscored.items():
        for reason, count in reasons.items():
            together.setdefault((reason, count), []).append(metric)
    return [(", ".join(metrics), count, reason) for (reason, count), metrics in together.items()]


def _prompts(records: Sequence[RowRecord]) -> PromptCounts | None:
    """Return the ranks' prompts together; see :meth:`mrag_eval.prompts.Budget.fitted`."""
    shares = [r.prompts for r in records if r.prompts is not None]
    if not shares:
        return None
    shortened = [share.shortened for share in shares if share.shortened is not None]
    return replace(
        shares[0],
        prompts=sum(share.prompts for share in shares),
        shortened=sum(shortened) if len(shortened) == len(shares) else None,
    )


def _cells(rows: Sequence[RowRecord]) -> dict[str, dict[str, list[RowRecord]]]:
    """Return the rows of each cell of each breakdown that tells rows apart."""
    found: dict[str, dict[str, list[RowRecord]]] = defaultdict(lambda: defaultdict(list))
    for r in rows:
        for dimension, cell in r.cell.items():
            found[dimension][cell].append(r)
    return {dimension: dict(sorted(cells.items())) for dimension, cells in found.items() if len(cells) > 1}


def _metric(
    rows: Sequence[RowRecord], name: str, cells: Mapping[str, Mapping[str, Sequence[RowRecord]]], seed: int
) -> MetricScore:
    by: dict[str, Mapping[str, Estimate]] = {
        dimension: {cell: _estimate(members, name, seed) for cell, members in own.items()}
        for dimension, own in cells.items()
    }
    whole = _estimate(rows, name, seed)
    failed = failed_rows(rows, name)
    score = MetricScore(
        **{part.name: getattr(whole, part.name) for part in fields(whole)},
        by=by,
        failed=failed,
        # without a scored row the failed ones alone are between its ends
        bounds=bounds_with(whole.or_else(0.0) * whole.n, whole.n, failed, name),
        unread=unread_bounds(rows, name),
    )
    paired = [r for r in rows if "doc_lang" in r.cell]
    if not paired:
        return score
    from mrag_eval.metrics import language_pair_matrix

    matrix = language_pair_matrix(
        [r.values.get(name) for r in paired],
        [r.cell["query_lang"] for r in paired],
        [r.cell["doc_lang"] for r in paired],
        groups=groups_of(paired),
        n_resamples=RESAMPLES,
        seed=seed,
        bounds=scale_of(name).bounds,
    )
    by["pair"] = {f"{query}->{document}": cell for (query, document), cell in matrix.cells.items()}
    return replace(
        score,
        macro={"same_language": matrix.same_language, "cross_language": matrix.cross_language},
        unscored_by_pair={f"{query}->{document}": n for (query, document), n in matrix.unscored.items() if n},
        by=by,
    )


def halved_metrics(rows: Sequence[RowRecord], names: Iterable[str]) -> set[str]:
    """Return the metrics that have no mean over the rows, because one half of them lacks a value."""
    return {name for name in names if _missing_half(rows, name) is not None}


def _missing_half(rows: Sequence[RowRecord], name: str) -> str | None:
    return _half(rows, lambda r: name in r.values)


def _half(rows: Sequence[RowRecord], known: Callable[[RowRecord], bool]) -> str | None:
    """Return why the rows have no mean: of two halves, one in which no row is ``known``; None if there is a mean.

    The halves are the questions on documents in their own language and those on documents in another one. A mean over
    one of them is no mean of both.
    """
    halves: dict[bool, list[bool]] = {True: [], False: []}
    for r in rows:
        if "doc_lang" in r.cell:
            halves[same_language(r.query_lang, r.cell["doc_lang"])].append(known(r))
    for same, found in halves.items():
        if found and not any(found) and any(halves[not same]):
            return f"no question on a document in {'its own' if same else 'another'} language is scored"
    return None


def _estimate(rows: Sequence[RowRecord], name: str, seed: int) -> Estimate:
    from mrag_eval.metrics import interval_for

    values = [r.values.get(name) for r in rows]
    if (reason := _missing_half(rows, name)) is not None:
        return Estimate(None, n=sum(value is not None for value in values), reason=reason)
    return interval_for(values, groups=groups_of(rows), n_resamples=RESAMPLES, seed=seed, bounds=scale_of(name).bounds)


def _attribution(rows: Sequence[RowRecord], seed: int) -> AttributionTable | None:
    """Return retrieval, selection and generation as a chain of conditionals (Cross-Lingual Cost, Tables 1 and 3)."""
    known = [r for r in rows if r.retrieved is not None]
    correct = next((m for m in CORRECT if any(m in r.values for r in known)), None)
    if correct is None:
        return None
    failed = {r.row for r in rows if failed_in(r.failures, needs_of(correct) | REORDERED) is not None}
    counted = [r for r in rows if r.retrieved is not None or r.row in failed]
    part = partial(_part, correct=correct, failed=failed, seed=seed)
    return AttributionTable(correct, _whole(rows, part(counted)), _by_pair(counted, part))


def _selection(rows: Sequence[RowRecord], seed: int) -> SelectionTable | None:
    """Return the first two links of that chain, which need no verdict on the answers."""
    known = [r for r in rows if r.retrieved is not None]
    part = partial(_retrieval_part, seed=seed)
    return SelectionTable(_whole(rows, part(known)), _by_pair(known, part)) if known else None


def _whole(rows: Sequence[RowRecord], found: Chain) -> Chain:
    """Return the links of all rows without their figures, if the retrieval of one half of the rows is not known."""
    reason = _half(rows, lambda r: r.retrieved is not None)
    if reason is None:
        return found
    parts = ((part.name, getattr(found, part.name)) for part in fields(found))
    blank: dict[str, Any] = {
        name: replace(part, value=None, low=None, high=None, reason=reason)
        for name, part in parts
        if isinstance(part, Estimate)
    }
    return replace(found, **blank)


def _by_pair(rows: Sequence[RowRecord], part: Callable[[Sequence[RowRecord]], T]) -> dict[str, T]:
    pairs: dict[str, list[RowRecord]] = defaultdict(list)
    for r in rows:
        if "doc_lang" in r.cell:
            pairs[f"{r.cell['query_lang']}->{r.cell['doc_lang']}"].append(r)
    return {pair: part(members) for pair, members in sorted(pairs.items())} if len(pairs) > 1 else {}


def _part(rows: Sequence[RowRecord], *, correct: str, failed: Collection[str], seed: int) -> ErrorAttribution:
    from mrag_eval.metrics import error_attribution

    return error_attribution(
        [r.retrieved for r in rows],
        [r.kept for r in rows],
        [r.values.get(correct) for r in rows],
        right_language=[right_language(r.values) for r in rows],
        used=[any(r.values.get(name) == 1.0 for name in HOLDS_ANSWER) for r in rows],
        failed=[r.row in failed for r in rows],
        groups=groups_of(rows),
        n_resamples=RESAMPLES,
        seed=seed,
    )


def _retrieval_part(rows: Sequence[RowRecord], *, seed: int) -> SelectionLinks:
    from mrag_eval.metrics import conditional_rate

    found, kept = [r.retrieved for r in rows], [r.kept for r in rows]
    groups = groups_of(rows)
    return SelectionLinks(
        conditional_rate(found, [1] * len(found), groups=groups, n_resamples=RESAMPLES, seed=seed),
        conditional_rate(kept, found, groups=groups, n_resamples=RESAMPLES, seed=seed),
        conditional_rate(kept, [1] * len(found), groups=groups, n_resamples=RESAMPLES, seed=seed),
    )


def _rerank(rows: Sequence[RowRecord]) -> RerankTable | None:
    """Return the outcomes of the replies of a reranker that orders lists."""
    parts = [r.rerank for r in rows if r.rerank is not None]
    if not parts:
        return None
    return RerankTable(
        rows=len(parts),
        lists=sum(part.lists for part in parts),
        repaired=sum(part.repaired for part in parts),
        faults=dict(Counter(part.fault for part in parts if part.fault)),
    )


def _languages(rows: Sequence[RowRecord], seed: int) -> LanguageTable | None:
    """Return the languages of the retrieved passages (BordIRlines, section 6.1)."""
    searched = [(r, r.languages) for r in rows if r.languages is not None]
    if not searched:
        return None
    from mrag_eval.metrics import in_language_preference

    found = in_language_preference(
        [r.query_lang for r, _ in searched],
        [[lang for lang, n in part.retrieved.items() for _ in range(n)] for _, part in searched],
        [part.searchable for _, part in searched],
        groups=groups_of([r for r, _ in searched]),
        n_resamples=RESAMPLES,
        seed=seed,
    )
    return LanguageTable(
        retrieved={f"{query}->{document}": n for (query, document), n in found.counts.items()},
        preference={
            lang: Preference(p.ratio_interval, p.normalised, p.n_queries)
            for lang, p in [*found.by_language.items(), ("overall", found.overall)]
        },
    )


def unread_bounds(rows: Sequence[RowRecord], metric: str) -> dict[str, tuple[float, float]]:
    """Return an accuracy with all unread replies wrong, and right, by language and as mean over languages (``macro``).

    Empty for another metric, and unless the shares of unread replies differ by more than chance: intervals that hold
    for all languages at once (Sidak 1967) leave two of them apart. Then differences between the languages may be those
    of reading, not of answering. The bounds are Manski's (1989).
    """
    read = READ.get(metric)
    scored = [row for row in rows if read in row.values and metric in row.values]
    languages: dict[str, list[RowRecord]] = defaultdict(list)
    for row in scored:
        languages[row.query_lang].append(row)
    if read is None or len(languages) < 2 or not _differ(languages, read):
        return {}
    from mrag_eval.metrics import unscored_range

    def ends(chosen: Sequence[RowRecord]) -> tuple[float, float]:
        values = [row.values[metric] if row.values[read] else None for row in chosen]
        return unscored_range(values, [row.query_lang for row in chosen])

    return {language: ends(own) for language, own in sorted(languages.items())} | {MACRO: ends(scored)}


def _differ(languages: Mapping[str, Sequence[RowRecord]], read: str) -> bool:
    """Return whether the shares of read replies of two languages are apart beyond chance."""
    from mrag_eval.metrics import interval_for

    level = _CONFIDENCE ** (1 / len(languages))
    found = []
    for own in languages.values():
        groups = [row.resampled_with for row in own]
        found.append(
            interval_for(
                [row.values[read] for row in own],
                groups=groups if len(set(groups)) < len(groups) else None,
                confidence=level,
                bounds=(0.0, 1.0),
            )
        )
    lows = [one.low for one in found if one.low is not None]
    highs = [one.high for one in found if one.high is not None]
    return bool(lows) and max(lows) > min(highs)
