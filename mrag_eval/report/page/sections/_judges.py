"""The section on judges: their leniency and their agreement."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from mrag_eval.core import YES_NO, rounded
from mrag_eval.report.files._leaves import Leaf
from mrag_eval.report.page._points import Point, percent
from mrag_eval.report.page._section import Listing, Section, each_task
from mrag_eval.scoring import PanelTable


def _tables(leaf: Leaf) -> Iterator[tuple[Point, PanelTable]]:
    """Return the tables of the judges of answers and of passages, and the beginning of their points."""
    scores = leaf.result.scores
    for about, table in scores.panels.items():
        yield {"task": leaf.label, "about": "passages suffice" if about == "contexts" else about}, table


def _judge_points(leaf: Leaf, *, yes_no: bool) -> list[Point]:
    """Return the verdicts of every judge: its share of yes, else its mean grade or the share of each label."""
    return [
        base
        | {"judge": seat, "model": judge.model, "label": label}
        | percent(share)
        | {"abstained": sum(judge.abstained.values())}
        for base, table in _tables(leaf)
        if (table.scale == YES_NO) is yes_no
        for seat, judge in table.judges.items()
        for label, share in (judge.labels or {"mean grade": judge.correct}).items()
    ]


def _agreement_points(leaf: Leaf) -> list[Point]:
    """Return the agreement of every pair of judges, and of all."""
    out = []
    for base, table in _tables(leaf):
        if table.agreement is None:
            continue
        every = {name.partition("'")[0] + ", all judges": found for name, found in table.agreement.of_all.items()}
        for name, kappa in {**table.agreement.pairwise, **every}.items():
            if kappa.value is not None:
                limits = {"low": rounded(kappa.low, 3), "high": rounded(kappa.high, 3)}
                out.append(base | {"judges": name, "kappa": rounded(kappa.value, 3), **limits})
    return out


def _no_verdict_points(leaf: Leaf) -> list[Point]:
    """Return the share of answers in each language without a verdict, of the panel and of each judge, if any is."""
    return [
        base | {"judge": seat, "language": language} | percent(share)
        for base, table in _tables(leaf)
        for seat, shares in {"panel": table.no_verdict, **{s: j.no_verdict for s, j in table.judges.items()}}.items()
        for language, share in shares.items()
        if share.value
    ]


SECTION = Section(
    "judges",
    "Judges",
    folded=True,
    blocks=(
        Listing(
            "Share of answers (or passages) that each judge finds correct (or sufficient)",
            {"task": "task", "about": "judged", "judge": "judge", "model": "model", "value": "yes (%)"}
            | {"low": "95% from", "high": "95% to", "n": "n", "abstained": "abstained"},
            each_task(partial(_judge_points, yes_no=True)),
            numbers=range(4, 9),
        ),
        Listing(
            "Mean grade that each judge gives, 0 for the worst and 100 for the best, or its share of each label",
            {"task": "task", "judge": "judge", "model": "model", "label": "of", "value": "%"}
            | {"low": "95% from", "high": "95% to", "n": "n", "abstained": "abstained"},
            each_task(partial(_judge_points, yes_no=False)),
            numbers=range(4, 9),
        ),
        Listing(
            "Answers (or passages) without a verdict, by language; above 10% a comparison marks the language",
            {"task": "task", "about": "judged", "judge": "judge", "language": "language", "value": "no verdict (%)"}
            | {"low": "95% from", "high": "95% to", "n": "n"},
            each_task(_no_verdict_points),
            numbers=range(4, 8),
        ),
        Listing(
            "Agreement between judges",
            {"task": "task", "about": "judged", "judges": "judges", "kappa": "κ", "low": "95% from", "high": "95% to"},
            each_task(_agreement_points),
            numbers=range(3, 6),
        ),
    ),
)
