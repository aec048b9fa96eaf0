"""Stages at which answers are lost: not retrieved, not shown, not used, judged wrong, or failed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mrag_eval.metrics import _resampling
from mrag_eval.metrics._intervals import Estimate, interval_for, undefined
from mrag_eval.platform import MetricError

# What is known of a row: 0 or 1; None: nothing.
Mark = bool | int | float | None
Column = Sequence[Mark]

# Not shown: retrieved, and not in the prompt. Not used: shown, and in no form in the reply. Judged wrong: in the reply,
# and yet wrong by the verdict. Failed: a step on the way to the verdict failed.
STAGES = ("not retrieved", "not shown", "wrong language", "not used", "judged wrong", "failed", "correct")


@dataclass(frozen=True)
class ErrorAttribution:
    """The stages of one set of rows, as probabilities with their own n.

    ``product`` is retrieved x kept x correct (retrieved x correct without a reranker). Compared with ``end_to_end`` it
    shows how much the generator answers without the evidence. ``correct_if_not_retrieved`` is that share itself,
    ``correct_if_retrieved`` its counterpart. ``stages`` counts the judged rows by their last stage, and the failed
    ones, in the order of :data:`STAGES`; ``correct`` counts right answers regardless of retrieval. ``unscored`` rows
    lack a retrieval or an answer verdict without a failure.
    """

    retrieved: Estimate
    kept_if_retrieved: Estimate
    correct_if_kept: Estimate
    product: Estimate
    end_to_end: Estimate
    correct_if_not_retrieved: Estimate
    correct_if_retrieved: Estimate
    stages: Mapping[str, int]
    unscored: int


def conditional_rate(
    outcome: Column,
    given: Column,
    *,
    groups: Sequence[Hashable] | None = None,
    confidence: float = 0.95,
    n_resamples: int = 10_000,
    seed: int | np.random.Generator = 0,
) -> Estimate:
    """Return P(outcome | given): the share of ``outcome`` among the rows with ``given``; both (N,), 0 or 1.

    For example the reranker's hit@5 over the questions whose retrieval had hit@20 = 1 (Cross-Lingual Cost, 4.1). Rows
    with ``given`` None, or with ``given`` 1 and ``outcome`` None, are unscored and left out. Undefined if no row meets
    the condition. Raises MetricError on unequal lengths and values other than 0 and 1.
    """
    outcome, given = _checked(outcome=outcome, given=given)
    if groups is not None and len(groups) != len(given):
        raise MetricError(f"{len(given)} rows but {len(groups)} groups")
    rows = [i for i, holds in enumerate(given) if holds and outcome[i] is not None]
    if not rows:
        return undefined("no row meets the condition", "Wilson")
    return interval_for(
        [float(bool(outcome[i])) for i in rows],
        groups=None if groups is None else [groups[i] for i in rows],
        confidence=confidence,
        n_resamples=n_resamples,
        seed=seed,
        bounds=(0.0, 1.0),
    )


def error_attribution(
    retrieved: Column,
    kept: Column | None,
    correct: Column,
    *,
    right_language: Column | None = None,
    used: Column | None = None,
    failed: Column | None = None,
    groups: Sequence[Hashable] | None = None,
    confidence: float = 0.95,
    n_resamples: int = 2_000,
    seed: int | np.random.Generator = 0,
) -> ErrorAttribution:
    """Return P(retrieved), P(kept | retrieved), P(correct | kept), their product, and the rates without retrieval.

    After Cross-Lingual Cost, Tables 1 and 3. All columns are (N,), 0 or 1 per row.

    Args:
        retrieved: a relevant document is among the retrieved (hit@20).
        kept: one remains after reranking (hit@5), that is, in the prompt; None without a reranker, so that all
            retrieved documents are in the prompt.
        correct: the answer is right, end to end.
        right_language: the answer is in the requested language; splits the wrong answers of ``stages`` further.
        used: the reply holds a reference answer, right or wrong as it is; splits them, too.
        failed: a step on the way to the verdict failed; such a row is in ``stages`` alone.
        groups: rows that belong together; intervals then resample groups.

    None in ``retrieved`` (unknown relevance) or ``correct`` (unjudged) leaves the row out of everything and counts it
    as unscored. A conditional that no row meets is undefined, with a reason, and so is a product with such a factor.

    Raises:
        MetricError: unequal lengths, no rows, values other than 0 and 1, a row kept but not retrieved, a retrieved row
            without a value in ``kept``.
    """
    everything_kept = kept is None
    retrieved, correct = _checked(retrieved=retrieved, correct=correct)
    (in_prompt,) = _checked(n_rows=len(retrieved), kept=retrieved if kept is None else kept)
    ones, none = [1] * len(retrieved), [0] * len(retrieved)
    language, held, lost = _checked(
        n_rows=len(retrieved),
        right_language=ones if right_language is None else right_language,
        used=none if used is None else used,
        failed=none if failed is None else failed,
    )
    if groups is not None and len(groups) != len(retrieved):
        raise MetricError(f"{len(retrieved)} rows but {len(groups)} groups")
    if not retrieved:
        raise MetricError("no rows for the error attribution")
    passed = [i for i, gone in enumerate(lost) if not gone]
    rows = [i for i in passed if retrieved[i] is not None and correct[i] is not None]
    for i in rows:
        if retrieved[i] and in_prompt[i] is None:
            raise MetricError(f"kept[{i}] is None although the row was retrieved")
        if in_prompt[i] and not retrieved[i]:
            raise MetricError(f"row {i} is kept but not retrieved", "the reranker only reorders what was retrieved")
    hit = [retrieved[i] for i in rows]
    top = [in_prompt[i] if retrieved[i] else 0 for i in rows]
    right = [correct[i] for i in rows]
    groups = None if groups is None else [groups[i] for i in rows]
    settings: dict[str, Any] = {
        "groups": groups,
        "confidence": confidence,
        "n_resamples": n_resamples,
        "seed": _resampling.generator(seed),
    }
    kept_rate = conditional_rate(top, hit, **settings)
    if everything_kept:
        kept_rate = undefined("no reranker", kept_rate.method)
    # the factors cancel: their product is the share of rows that are both kept and correct
    product = conditional_rate([t and r for t, r in zip(top, right, strict=True)], [1] * len(hit), **settings)
    return ErrorAttribution(
        retrieved=conditional_rate(hit, [1] * len(hit), **settings),
        kept_if_retrieved=kept_rate,
        correct_if_kept=conditional_rate(right, top, **settings),
        product=product if any(top) else undefined("no row was kept: P(correct | kept) is undefined", product.method),
        end_to_end=conditional_rate(right, [1] * len(hit), **settings),
        correct_if_not_retrieved=conditional_rate(right, [not h for h in hit], **settings),
        correct_if_retrieved=conditional_rate(right, hit, **settings),
        stages=_stages(
            hit, top, right, [language[i] for i in rows], [held[i] for i in rows], len(retrieved) - len(passed)
        ),
        unscored=len(passed) - len(rows),
    )


def _stages(
    hit: list[Any], top: list[Any], right: list[Any], language: list[Any], held: list[Any], failed: int
) -> dict[str, int]:
    counts = Counter(map(lost_stage, hit, top, right, language, held))
    return {stage: failed if stage == "failed" else counts[stage] for stage in STAGES}


def lost_stage(found: Mark, kept: Mark, good: Mark, same: Mark, said: Mark) -> str:
    """Return the last stage that a row reached, one of :data:`STAGES`; a row whose step failed has none here.

    Args:
        found: whether a relevant passage was retrieved.
        kept: whether one was shown in the prompt.
        good: whether the answer is right.
        same: whether it is in the language asked for; None if that is not known.
        said: whether the reply holds the reference answer.
    """
    if good:
        return "correct"
    if not found or not kept:
        return "not shown" if found else "not retrieved"
    if same is not None and not same:
        return "wrong language"
    return "judged wrong" if said else "not used"


def _checked(n_rows: int | None = None, **columns: Column) -> list[list[bool | int | float | None]]:
    length = n_rows if n_rows is not None else len(next(iter(columns.values())))
    for name, column in columns.items():
        if len(column) != length:
            sizes = ", ".join(f"{len(c)} {n}" for n, c in columns.items())
            raise MetricError(
                f"columns of unequal length: {sizes}" + (f", {n_rows} rows" if n_rows is not None else "")
            )
        bad = next((i for i, value in enumerate(column) if value is not None and value not in (0, 1)), None)
        if bad is not None:
            raise MetricError(f"{name}[{bad}] is {column[bad]}, not 0 or 1", "an unscored row is None")
    return [list(column) for column in columns.values()]
