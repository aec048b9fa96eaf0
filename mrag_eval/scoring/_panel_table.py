"""The table of a panel: outcomes of its votes, agreement of its judges, and the leniency of each."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from mrag_eval.core import VOTED
from mrag_eval.metrics import Estimate, wilson
from mrag_eval.models import total, totals
from mrag_eval.platform import OPTIONAL
from mrag_eval.scoring._resamples import RESAMPLES
from mrag_eval.scoring._row_records import JudgedRecord, PanelShare, RowRecord
from mrag_eval.scoring._score_records import JudgeAgreement, JudgeColumn, PanelTable

if TYPE_CHECKING:
    from mrag_eval.metrics import Kind

_FAMILIES = {
    "gpt": r"(chat)?gpt|o[1345](-|$)|text-davinci",
    "claude": r"claude",
    "gemini": r"gemini|gemma|palm",
    "mistral": r"(open-)?(mi[sx]tral|ministral|magistral|codestral|pixtral)",
    "qwen": r"qwen|qwq|qvq",
    "command": r"(c4ai-)?(command|aya)",
    "llama": r"(meta-)?llama",
    "nova": r"(amazon\.?)?nova",
}


def family(model: str) -> str:
    """Return the model's family from its name: a known maker's line, else the letters at the start of the name."""
    name = model.rstrip("/").rpartition("/")[2].casefold()
    for known, pattern in _FAMILIES.items():
        if re.match(pattern, name):
            return known
    letters = re.match(r"[^\W\d_]+", name)
    return letters[0] if letters else name


def panel_table(records: Sequence[RowRecord], *, evaluated: str | None = None, seed: int = 0) -> PanelTable | None:
    """Return the panel's table on answers from the rows' records; None if no panel judged them.

    Args:
        records: one per row, as gathered; one of every rank holds its part of the table.
        evaluated: the name of the model whose answers these are.
    """
    shares = [r.panel for r in records if r.panel is not None]
    return _table([(r, r.judge) for r in records if r.judge is not None], shares, evaluated, seed)


def sufficiency_table(records: Sequence[RowRecord], *, seed: int = 0) -> PanelTable | None:
    """Return the same table on the passages that were shown."""
    shares = [r.sufficiency_panel for r in records if r.sufficiency_panel is not None]
    return _table([(r, r.sufficiency) for r in records if r.sufficiency is not None], shares, None, seed)


# A row and the panel's judgement of it.
_Judged = tuple[RowRecord, JudgedRecord]


def _table(
    judged: Sequence[_Judged], shares: Sequence[PanelShare], evaluated: str | None, seed: int
) -> PanelTable | None:
    if not shares:
        return None
    rows = list({row.row: (row, verdict) for row, verdict in judged}.values())
    models = shares[0].models
    votes = {seat: [verdict.vote(seat) for _, verdict in rows] for seat in models}
    split = [verdict.disagreement for _, verdict in rows if verdict.disagreement is not None]
    abstained = Counter(
        vote for _, verdict in rows for vote in verdict.votes.values() if not isinstance(vote, bool) and vote
    )
    return PanelTable(
        size=len(models),
        outcomes=dict(Counter(verdict.outcome for _, verdict in rows)),
        abstained=dict(abstained),
        disagreement=sum(split) / len(split) if split else None,
        judges={seat: _judge(rows, seat, votes, models, evaluated, seed) for seat in models},
        agreement=_agreement(votes, seed) if len(models) > 1 else None,
        ledger=totals([share.ledger for share in shares]),
        language_check=next((share.language_check for share in shares if share.language_check), None),
        no_verdict=_no_verdict((row.query_lang, verdict.verdict) for row, verdict in rows if verdict.outcome in VOTED),
    )


def _no_verdict(asked: Iterable[tuple[str, bool | None]]) -> dict[str, Estimate]:
    """Return the share of missing verdicts by language, with Wilson intervals."""
    missing: dict[str, list[bool]] = defaultdict(list)
    for language, verdict in asked:
        missing[language].append(verdict is None)
    return {language: wilson(sum(own), len(own)) for language, own in sorted(missing.items())}


def _judge(
    rows: Sequence[_Judged],
    seat: str,
    votes: Mapping[str, Sequence[bool | None]],
    models: Mapping[str, str],
    evaluated: str | None,
    seed: int,
) -> JudgeColumn:
    reasons = (verdict.votes.get(seat) for _, verdict in rows)
    records = [row for row, _ in rows]
    excess = None
    if evaluated is not None and family(models[seat]) == family(evaluated):
        others = [other for other in models if family(models[other]) != family(evaluated)]
        # differences are between -1 and 1: not proportions, even if they happen to be 0 and 1
        excess = _share(records, _excess(votes, seat, others), seed, proportion=False)
    return JudgeColumn(
        model=models[seat],
        correct=_share(records, votes[seat], seed),
        abstained=dict(Counter(reason for reason in reasons if isinstance(reason, str))),
        self_preference=excess,
        no_verdict=_no_verdict((row.query_lang, verdict.vote(seat)) for row, verdict in rows if seat in verdict.votes),
    )


def _excess(votes: Mapping[str, Sequence[bool | None]], seat: str, others: Sequence[str]) -> list[float | None]:
    """Return a seat's verdict minus the mean of the others', row by row; None if either side has none."""
    out: list[float | None] = []
    for i, own in enumerate(votes[seat]):
        cast = [vote for other in others if (vote := votes[other][i]) is not None]
        out.append(None if own is None or not cast else float(own) - sum(cast) / len(cast))
    return out


def _share(
    rows: Sequence[RowRecord], values: Sequence[float | bool | None], seed: int, *, proportion: bool = True
) -> Estimate:
    from mrag_eval.metrics import interval_for

    groups = [row.resampled_with for row in rows]
    numbers = [None if value is None else float(value) for value in values]
    together = groups if len(set(groups)) < len(groups) else None
    kind: Kind = "auto" if proportion else "bootstrap" if together is None else "cluster"
    return interval_for(
        numbers,
        groups=together,
        kind=kind,
        n_resamples=RESAMPLES,
        seed=seed,
        bounds=(0.0, 1.0) if proportion else (-1.0, 1.0),
    )


def _agreement(votes: Mapping[str, Sequence[bool | None]], seed: int) -> JudgeAgreement:
    from mrag_eval.metrics import fleiss_kappa, pairwise_kappas

    complete = [list(row) for row in zip(*votes.values(), strict=True) if None not in row]
    pairs = pairwise_kappas(votes, n_resamples=RESAMPLES, seed=seed)
    return JudgeAgreement(
        pairwise={f"{a} | {b}": kappa for (a, b), kappa in pairs.items()},
        fleiss=fleiss_kappa(complete, n_resamples=RESAMPLES, seed=seed),
    )


def panel_line(table: PanelTable, what: str = "answers") -> str:
    """Return the panel in one line: size, number of items (``what``) judged, outcomes of the votes, cost."""
    outcomes = table.outcomes
    asked = sum(outcomes.get(kind, 0) for kind in VOTED)
    decided = outcomes.get("unanimous", 0) + outcomes.get("majority", 0)
    unjudged = f"{outcomes.get('unjudged', 0):,} unjudged"
    if outcomes.get("unjudged") and table.abstained:
        unjudged += f" ({', '.join(sorted(table.abstained))})"
    ties = outcomes.get("tie", 0)
    votes = [f"{decided:,} unanimous or majority", f"{ties:,} {'tie' if ties == 1 else 'ties'}", unjudged]
    settled = [f"{outcomes[kind]:,} {kind}" for kind in ("declined", "empty", "no reference") if outcomes.get(kind)]
    parts = [
        f"judged by a panel of {table.size}",
        f"{asked:,} {what}",
        ", ".join(votes),
        *([f"not asked: {', '.join(settled)}"] if settled else []),
        *([f"failed votes: {table.failed_votes}"] if table.failed_votes else []),
        *([f"many rows without a verdict in {', '.join(table.marked_languages)}"] if table.marked_languages else []),
        total(table.ledger.values()).line(),
        *([table.language_check] if table.language_check else []),
    ]
    return " · ".join(parts)


@dataclass(frozen=True, slots=True)
class Rater:
    """Compare a panel or a judge with people, on the rows that both judged.

    Holds Cohen's kappa, the share of equal verdicts, and the rater's share of verdicts "correct" (leniency).
    """

    kappa: Estimate
    agreement: Estimate
    correct: Estimate


@dataclass(frozen=True, slots=True)
class Independence:
    """How far the judges of a panel err together; if ``effective_size`` is None, ``reason`` says why."""

    effective_size: float | None
    error_correlation: float | None
    size: int
    n: int
    reason: str | None = field(default=None, metadata=OPTIONAL)


class HumanLabel(NamedTuple):
    """A person's label of an answer: whether it is correct, and whether one could argue about that."""

    correct: bool
    debatable: bool = False


@dataclass(frozen=True, slots=True)
class Debatable:
    """The share of answers that a person marked as debatable, and the panel's agreement on all and on the others.

    The Cross-Lingual Cost, Appendix A.1.1.
    """

    share: Estimate
    agreement: Estimate
    clear: Estimate


@dataclass(frozen=True, slots=True)
class HumanAgreement:
    """A panel and its judges against human labels.

    ``rows`` were compared. ``unlabelled`` counts rows of the panel without a label, ``unmatched`` labels without a row,
    ``unjudged`` rows with a label and no verdict, ``split`` rows without a majority of the labels. ``human_correct`` is
    the humans' share of "correct". ``between_people`` is Fleiss' kappa of ``annotators`` people, on the rows that all
    of them labelled. ``by_language`` holds the panel's agreement by language of the question, and over all (cell
    ``all``).
    """

    rows: int
    unlabelled: int
    unmatched: int
    unjudged: int
    human_correct: Estimate
    panel: Rater
    judges: Mapping[str, Rater]
    independence: Independence | None = field(default=None, metadata=OPTIONAL)
    split: int = 0
    annotators: int = 1
    between_people: Estimate | None = field(default=None, metadata=OPTIONAL)
    by_language: Mapping[str, Debatable] = field(default_factory=dict)


def against_human(
    records: Sequence[RowRecord], labels: Mapping[str, Mapping[str, HumanLabel]], seed: int = 0
) -> HumanAgreement:
    """Compare the panel and each judge with the majority of human labels (row id -> annotator -> label).

    An answer that one annotator calls debatable is debatable.
    """
    from mrag_eval.metrics import effective_panel_size, fleiss_kappa

    judged = list({r.row: (r, r.judge) for r in records if r.judge is not None and r.judge.votes}.values())
    labelled = [(row, verdict) for row, verdict in judged if row.row in labels]
    people = list(dict.fromkeys(name for given in labels.values() for name in given))
    given = {row.row: tuple(label.correct for label in labels[row.row].values()) for row, _ in labelled}
    by_all = [found for found in given.values() if len(found) == len(people)]
    majorities = {row: _majority(found) for row, found in given.items()}
    compared = [(row, verdict) for row, verdict in labelled if majorities[row.row] is not None]
    rows = [row for row, _ in compared]
    human = [bool(majorities[row.row]) for row in rows]
    seats = list(dict.fromkeys(seat for _, verdict in compared for seat in verdict.votes))
    votes = {seat: [verdict.vote(seat) for _, verdict in compared] for seat in seats}
    panel = [verdict.verdict for _, verdict in compared]
    known = {row.row for row, _ in judged}
    independence = None
    if len(seats) > 1:
        found = effective_panel_size([list(row) for row in zip(*votes.values(), strict=True)], human)
        independence = Independence(
            found.effective_size, found.error_correlation, found.size, found.n, found.reason or None
        )
    return HumanAgreement(
        rows=len(rows),
        unlabelled=len(judged) - len(labelled),
        unmatched=sum(row not in known for row in labels),
        unjudged=sum(verdict is None for verdict in panel),
        human_correct=_share(rows, human, seed),
        panel=_compared(rows, panel, human, seed),
        judges={seat: _compared(rows, votes[seat], human, seed) for seat in seats},
        independence=independence,
        split=len(labelled) - len(rows),
        annotators=len(people),
        between_people=fleiss_kappa(by_all, n_resamples=RESAMPLES, seed=seed) if len(people) > 1 else None,
        by_language=_by_language(rows, panel, human, labels, seed),
    )


def _by_language(
    rows: Sequence[RowRecord],
    panel: Sequence[bool | None],
    human: Sequence[bool],
    labels: Mapping[str, Mapping[str, HumanLabel]],
    seed: int,
) -> dict[str, Debatable]:
    """Return the agreement of each language of questions, after that of all if there are several."""
    cells: dict[str, list[int]] = defaultdict(list)
    for i, row in enumerate(rows):
        cells[row.query_lang or "no language"].append(i)
    every = {"all": [*range(len(rows))]} if len(cells) != 1 else {}
    marked = [any(label.debatable for label in labels[row.row].values()) for row in rows]
    equal = _equal(panel, human)

    def share(where: Sequence[int], values: Sequence[bool | None]) -> Estimate:
        return _share([rows[i] for i in where], [values[i] for i in where], seed)

    return {
        cell: Debatable(share(where, marked), share(where, equal), share([i for i in where if not marked[i]], equal))
        for cell, where in {**every, **dict(sorted(cells.items()))}.items()
    }


def _equal(verdicts: Sequence[bool | None], human: Sequence[bool]) -> list[bool | None]:
    return [None if verdict is None else verdict == label for verdict, label in zip(verdicts, human, strict=True)]


def _majority(labels: Sequence[bool]) -> bool | None:
    """Return the label of more than half; None for a tie."""
    correct = sum(labels)
    return None if 2 * correct == len(labels) else 2 * correct > len(labels)


def _compared(rows: Sequence[RowRecord], verdicts: Sequence[bool | None], human: Sequence[bool], seed: int) -> Rater:
    from mrag_eval.metrics import cohen_kappa

    groups = [row.resampled_with for row in rows]
    return Rater(
        kappa=cohen_kappa(
            verdicts,
            human,
            groups=groups if len(set(groups)) < len(groups) else None,
            n_resamples=RESAMPLES,
            seed=seed,
        ),
        agreement=_share(rows, _equal(verdicts, human), seed),
        correct=_share(rows, verdicts, seed),
    )
