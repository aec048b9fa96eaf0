"""The table of a panel: outcomes of its votes, agreement of its judges, and the leniency of each."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from mrag_eval.core import VOTED, YES_NO, VerdictScale, VerdictValue
from mrag_eval.metrics import Estimate, wilson
from mrag_eval.models import total, totals
from mrag_eval.platform import OPTIONAL, number_of
from mrag_eval.scoring._resamples import RESAMPLES
from mrag_eval.scoring._row_records import JudgedRecord, PanelShare, RowRecord, groups_of
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
    return _table([(r, r.judge) for r in _rows(records) if r.judge is not None], shares, evaluated, seed)


def sufficiency_table(records: Sequence[RowRecord], *, seed: int = 0) -> PanelTable | None:
    """Return the same table on the passages that were shown."""
    shares = [r.sufficiency_panel for r in records if r.sufficiency_panel is not None]
    return _table([(r, r.sufficiency) for r in _rows(records) if r.sufficiency is not None], shares, None, seed)


def claims_table(records: Sequence[RowRecord], *, seed: int = 0) -> PanelTable | None:
    """Return the same table on the claims of answers; those of a row are resampled together."""
    shares = [r.claims_panel for r in records if r.claims_panel is not None]
    found = [(r, r.grounding) for r in _rows(records) if r.grounding is not None]
    judged = [(r, JudgedRecord.of(claim.judgement)) for r, grounding in found for claim in grounding.claims]
    return _table(judged, shares, None, seed)


def _rows(records: Sequence[RowRecord]) -> Iterable[RowRecord]:
    """Return each row once."""
    return {record.row: record for record in records}.values()


# A row and the panel's judgement of it, or of one of its claims.
_Judged = tuple[RowRecord, JudgedRecord]


def _table(
    rows: Sequence[_Judged], shares: Sequence[PanelShare], evaluated: str | None, seed: int
) -> PanelTable | None:
    if not shares:
        return None
    models, scale = shares[0].models, shares[0].scale
    votes = {seat: [verdict.vote(seat) for _, verdict in rows] for seat in models}
    split = [verdict.disagreement for _, verdict in rows if verdict.disagreement is not None]
    abstained = Counter(why for _, verdict in rows for seat in verdict.votes if (why := verdict.why_not(seat)))
    return PanelTable(
        size=len(models),
        outcomes=dict(Counter(verdict.outcome for _, verdict in rows)),
        abstained=dict(abstained),
        disagreement=sum(split) / len(split) if split else None,
        judges={seat: _judge(rows, seat, votes, models, scale, evaluated, seed) for seat in models},
        agreement=_agreement(votes, scale, seed) if len(models) > 1 else None,
        ledger=totals([share.ledger for share in shares]),
        language_check=next((share.language_check for share in shares if share.language_check), None),
        no_verdict=_no_verdict((row.query_lang, verdict.verdict) for row, verdict in rows if verdict.outcome in VOTED),
        scale=scale,
    )


def _no_verdict(asked: Iterable[tuple[str, VerdictValue | None]]) -> dict[str, Estimate]:
    """Return the share of missing verdicts by language, with Wilson intervals."""
    missing: dict[str, list[bool]] = defaultdict(list)
    for language, verdict in asked:
        missing[language].append(verdict is None)
    return {language: wilson(sum(own), len(own)) for language, own in sorted(missing.items())}


def _judge(
    rows: Sequence[_Judged],
    seat: str,
    votes: Mapping[str, Sequence[VerdictValue | None]],
    models: Mapping[str, str],
    scale: VerdictScale,
    evaluated: str | None,
    seed: int,
) -> JudgeColumn:
    reasons = (verdict.why_not(seat) for _, verdict in rows)
    records = [row for row, _ in rows]
    excess = None
    if evaluated is not None and family(models[seat]) == family(evaluated) and scale.worst is not None:
        others = [other for other in models if family(models[other]) != family(evaluated)]
        # differences are between -1 and 1: not proportions, even if they happen to be 0 and 1
        values = {name: _values(scale, said) for name, said in votes.items()}
        excess = share_of_rows(records, _excess(values, seat, others), seed, proportion=False)
    return JudgeColumn(
        model=models[seat],
        correct=_mean(records, votes[seat], scale, seed),
        abstained=dict(Counter(reason for reason in reasons if reason is not None)),
        self_preference=excess,
        no_verdict=_no_verdict((row.query_lang, verdict.vote(seat)) for row, verdict in rows if seat in verdict.votes),
        labels=_labels(records, votes[seat], scale, seed),
    )


def _values(scale: VerdictScale, verdicts: Sequence[VerdictValue | None]) -> list[float | None]:
    return [None if verdict is None else scale.value(verdict) for verdict in verdicts]


def _mean(
    rows: Sequence[RowRecord], verdicts: Sequence[VerdictValue | None], scale: VerdictScale, seed: int
) -> Estimate:
    """Return the share of "correct", or the mean grade; of labels their number alone."""
    if scale.worst is None:
        return Estimate(None, n=sum(verdict is not None for verdict in verdicts), reason="labels have no mean")
    return share_of_rows(rows, _values(scale, verdicts), seed)


def _labels(
    rows: Sequence[RowRecord], verdicts: Sequence[VerdictValue | None], scale: VerdictScale, seed: int
) -> dict[str, Estimate]:
    """Return the share of each label; empty for other verdicts."""
    if scale.worst is not None:
        return {}
    said = {str(label): [None if v is None else v == label for v in verdicts] for label in scale.levels}
    return {label: share_of_rows(rows, values, seed) for label, values in said.items()}


def _excess(votes: Mapping[str, Sequence[float | None]], seat: str, others: Sequence[str]) -> list[float | None]:
    """Return a seat's verdict minus the mean of the others', row by row; None if either side has none."""
    out: list[float | None] = []
    for i, own in enumerate(votes[seat]):
        cast = [vote for other in others if (vote := votes[other][i]) is not None]
        out.append(None if own is None or not cast else own - sum(cast) / len(cast))
    return out


def share_of_rows(
    rows: Sequence[RowRecord], values: Sequence[float | bool | None], seed: int, *, proportion: bool = True
) -> Estimate:
    """Return the mean of the rows' values, each of 0 to 1, or of -1 to 1 without ``proportion``."""
    from mrag_eval.metrics import interval_for

    numbers = [None if value is None else float(value) for value in values]
    together = groups_of(rows)
    kind: Kind = "auto" if proportion else "bootstrap" if together is None else "cluster"
    return interval_for(
        numbers,
        groups=together,
        kind=kind,
        n_resamples=RESAMPLES,
        seed=seed,
        bounds=(0.0, 1.0) if proportion else (-1.0, 1.0),
    )


def _agreement(votes: Mapping[str, Sequence[VerdictValue | None]], scale: VerdictScale, seed: int) -> JudgeAgreement:
    from mrag_eval.metrics import pairwise_kappas

    pairs = pairwise_kappas(votes, order=scale.order, n_resamples=RESAMPLES, seed=seed)
    every = agreement_of_all(list(zip(*votes.values(), strict=True)), scale, seed)
    pairwise = {f"{a} | {b}": kappa for (a, b), kappa in pairs.items()}
    return JudgeAgreement(pairwise, every) if scale == YES_NO else JudgeAgreement(pairwise, alpha=every)


def agreement_of_all(
    ratings: Sequence[Sequence[VerdictValue | None]],
    scale: VerdictScale,
    seed: int,
    groups: Sequence[str] | None = None,
) -> Estimate:
    """Return Fleiss' kappa of yes and no, on the rows that all rated, else Krippendorff's alpha.

    Yes and no may be of rows in ``groups`` that are resampled together.
    """
    from mrag_eval.metrics import fleiss_kappa, krippendorff_alpha

    if scale == YES_NO:
        kept = [i for i, row in enumerate(ratings) if None not in row]
        together = None if groups is None else [groups[i] for i in kept]
        return fleiss_kappa([ratings[i] for i in kept], groups=together, n_resamples=RESAMPLES, seed=seed)
    return krippendorff_alpha(ratings, order=scale.order, n_resamples=RESAMPLES, seed=seed)


def panel_of(seats: Collection[str]) -> str:
    """Return the size of a panel in words: its judges, and the votes of each if it has several."""
    judges = {seat.partition("#")[0] for seat in seats}
    each = len(seats) // max(len(judges), 1)
    return f"a panel of {len(judges)}" + (f", {each} votes each" if each > 1 else "")


def panel_line(table: PanelTable, what: str = "answers") -> str:
    """Return the panel in one line: size, number of items (``what``) judged, outcomes of the votes, cost."""
    outcomes = table.outcomes
    asked = sum(outcomes.get(kind, 0) for kind in VOTED)
    decided = outcomes.get("unanimous", 0) + outcomes.get("majority", 0)
    median = f", {outcomes['median']:,} by their median" if outcomes.get("median") else ""
    unjudged = f"{outcomes.get('unjudged', 0):,} unjudged"
    if outcomes.get("unjudged") and table.abstained:
        unjudged += f" ({', '.join(sorted(table.abstained))})"
    ties = outcomes.get("tie", 0)
    votes = [f"{decided:,} unanimous or majority{median}", number_of(ties, "tie"), unjudged]
    settled = [f"{outcomes[kind]:,} {kind}" for kind in ("declined", "empty", "no reference") if outcomes.get(kind)]
    parts = [
        f"judged by {panel_of(table.judges)}",
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

    Holds Cohen's kappa (of grades with quadratic weights), the share of equal verdicts, and the rater's share of
    verdicts "correct" or its mean grade (leniency); of labels, the share of each.
    """

    kappa: Estimate
    agreement: Estimate
    correct: Estimate
    labels: Mapping[str, Estimate] = field(default_factory=dict, metadata=OPTIONAL)


@dataclass(frozen=True, slots=True)
class Independence:
    """How far the judges of a panel err together; if ``effective_size`` is None, ``reason`` says why."""

    effective_size: float | None
    error_correlation: float | None
    size: int
    n: int
    reason: str | None = field(default=None, metadata=OPTIONAL)


class HumanLabel(NamedTuple):
    """A person's verdict on an answer, and whether one could argue about that."""

    verdict: VerdictValue
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
    ``unjudged`` rows with a label and no verdict, ``split`` rows on which people are a tie. ``human_correct`` is the
    humans' share of "correct" or their mean grade, ``human_labels`` the share of each label. ``between_people`` is
    Fleiss' kappa of ``annotators`` people, on the rows that all of them labelled; on another ``scale`` than yes and no
    Krippendorff's alpha. ``by_language`` holds the panel's agreement by language of the question, and over all (cell
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
    human_labels: Mapping[str, Estimate] = field(default_factory=dict, metadata=OPTIONAL)
    scale: VerdictScale = field(default=YES_NO, metadata=OPTIONAL)


def against_human(
    records: Sequence[RowRecord],
    labels: Mapping[str, Mapping[str, HumanLabel]],
    seed: int = 0,
    scale: VerdictScale = YES_NO,
) -> HumanAgreement:
    """Compare the panel and each judge with people's labels (row id -> annotator -> label), which count as votes do.

    An answer that one annotator calls debatable is debatable.
    """
    from mrag_eval.metrics import effective_panel_size

    judged = list({r.row: (r, r.judge) for r in records if r.judge is not None and r.judge.votes}.values())
    labelled = [(row, verdict) for row, verdict in judged if row.row in labels]
    people = list(dict.fromkeys(name for given in labels.values() for name in given))
    given = {row.row: [found.verdict for found in labels[row.row].values()] for row, _ in labelled}
    by_person = [[*found, *[None] * (len(people) - len(found))] for found in given.values()]
    majorities = {row: scale.vote(found, "abstain")[0] for row, found in given.items()}
    compared = [(row, verdict) for row, verdict in labelled if majorities[row.row] is not None]
    rows = [row for row, _ in compared]
    human = [label for row in rows if (label := majorities[row.row]) is not None]
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
        human_correct=_mean(rows, human, scale, seed),
        panel=rater_of(rows, panel, human, scale, seed),
        judges={seat: rater_of(rows, votes[seat], human, scale, seed) for seat in seats},
        independence=independence,
        split=len(labelled) - len(rows),
        annotators=len(people),
        between_people=agreement_of_all(by_person, scale, seed) if len(people) > 1 else None,
        by_language=_by_language(rows, panel, human, labels, seed),
        human_labels=_labels(rows, human, scale, seed),
        scale=scale,
    )


def language_cells(rows: Sequence[RowRecord]) -> dict[str, list[int]]:
    """Return the places of the rows of each language of questions, after those of all unless there is one language."""
    cells: dict[str, list[int]] = defaultdict(list)
    for i, row in enumerate(rows):
        cells[row.query_lang or "no language"].append(i)
    every = {"all": [*range(len(rows))]} if len(cells) != 1 else {}
    return {**every, **dict(sorted(cells.items()))}


def _by_language(
    rows: Sequence[RowRecord],
    panel: Sequence[VerdictValue | None],
    human: Sequence[VerdictValue],
    labels: Mapping[str, Mapping[str, HumanLabel]],
    seed: int,
) -> dict[str, Debatable]:
    """Return the agreement of each language of questions, after that of all if there are several."""
    marked = [any(label.debatable for label in labels[row.row].values()) for row in rows]
    equal = _equal(panel, human)

    def share(where: Sequence[int], values: Sequence[bool | None]) -> Estimate:
        return share_of_rows([rows[i] for i in where], [values[i] for i in where], seed)

    return {
        cell: Debatable(share(where, marked), share(where, equal), share([i for i in where if not marked[i]], equal))
        for cell, where in language_cells(rows).items()
    }


def _equal(verdicts: Sequence[VerdictValue | None], human: Sequence[VerdictValue]) -> list[bool | None]:
    return [None if verdict is None else verdict == label for verdict, label in zip(verdicts, human, strict=True)]


def rater_of(
    rows: Sequence[RowRecord],
    verdicts: Sequence[VerdictValue | None],
    human: Sequence[VerdictValue],
    scale: VerdictScale,
    seed: int,
) -> Rater:
    """Return how verdicts on rows compare with people's."""
    from mrag_eval.metrics import cohen_kappa

    return Rater(
        kappa=cohen_kappa(verdicts, human, groups=groups_of(rows), order=scale.order, n_resamples=RESAMPLES, seed=seed),
        agreement=share_of_rows(rows, _equal(verdicts, human), seed),
        correct=_mean(rows, verdicts, scale, seed),
        labels=_labels(rows, verdicts, scale, seed),
    )
