"""What one row of each rank carries for all of its rows: prompts, skipped rows, judges and their calls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any

from mrag_eval.config import GROUNDED, JUDGES, OWN, SUFFICIENCY, verdict_metrics
from mrag_eval.judging import language_check
from mrag_eval.models import summed, totals
from mrag_eval.platform import to_json
from mrag_eval.report.files._results import LeafResult
from mrag_eval.report.files._samples import Samples
from mrag_eval.report.verification._findings import Remark
from mrag_eval.report.verification._task_here import TaskHere
from mrag_eval.scoring import JudgedRecord, PanelShare, RowRecord, skipped_territories


def rank_shares(here: TaskHere, samples: Samples) -> Iterator[Remark]:
    """Compare the records of ranks with the rows they stand for, with the votes, and with the settings."""
    task, config = here.leaf.task, here.leaf.config
    records = samples.records
    prompts = [record.prompts for record in records if record.prompts is not None]
    counted = sum(share.prompts for share in prompts)
    # with several ranks a row may have been asked twice
    if counted < len(samples) or (counted > len(samples) and len(prompts) == 1):
        yield Remark(task, "fault", f"{counted} prompts for {len(samples)} rows")
    if here.rows is not None and here.rows.repeated is not None and prompts:
        left = to_json(skipped_territories(config.metrics, here.rows.repeated.selection.skipped))
        if any(to_json(record.skipped) != left for record in records if record.prompts is not None):
            yield Remark(task, "fault", "the skipped questions are not those that the mode leaves out")
    both = [
        s.record.row
        for s in (samples if "votes" in samples.keys else ())
        if any((v.get("verdict") is None) != isinstance(v.get("error"), str) for v in s.votes.values())
    ]
    if both:
        yield Remark(task, "fault", f"a vote has both a verdict and an error, or neither, first on '{both[0]}'")
    note = None
    if any(record.panel is not None for record in records):
        check = language_check(here.judge, here.languages([record.query_lang for record in records]))
        note = None if check is None else check.note
    answers = [record.judge for record in records if record.judge is not None]
    passages = [record.sufficiency for record in records if record.sufficiency is not None]
    panels = [record.panel for record in records if record.panel is not None]
    yield from _panel(here, "panel", panels, answers, note)
    contexts = [record.sufficiency_panel for record in records if record.sufficiency_panel is not None]
    yield from _panel(here, "sufficiency_panel", contexts, passages, None)
    groundings = [record.grounding for record in records if record.grounding is not None]
    claims = [JudgedRecord.of(claim.judgement) for found in groundings for claim in found.claims if claim.votes]
    yield from _panel(here, "claims_panel", [r.claims_panel for r in records if r.claims_panel], claims, None)
    labelled = [record.labelling for record in records if record.labelling is not None]
    by = {record.relevance.by for record in records if record.relevance is not None}
    for share in labelled:
        ngrams = (here.judge.relevance.threshold, 3) if share.by in ("proxy", "translated") else (None, None)
        if by - {share.by} or (share.threshold, share.n) != ngrams:
            yield Remark(task, "fault", "labelling is not that of the rows' labels and of the judge block")
        if share.models and not _are_judges(here, "labelling", share.models):
            yield Remark(task, "fault", "labelling.models are not the judges of the results")


def seats_follow(leaf: LeafResult, records: Sequence[RowRecord]) -> Iterator[Remark]:
    """Compare what came back from each seat with the rows, with who is asked, and with the calls to judges."""
    found, told = summed(record.seats for record in records), leaf.measurement.outcome.get("seats") or {}
    # the critic decides whether documents are enough, too
    instrument = leaf.measurement.instrument
    judges = {seat for record in records for share in record.shares for seat in share.models}
    known = {*leaf.seats, *judges, *instrument, *(["sufficiency"] if "critic" in instrument else [])}
    for seat in sorted({*found, *told}):
        if found.get(seat) != told.get(seat):
            text = f"outcome.seats.{seat} is {_counted(told.get(seat))}, {_counted(found.get(seat))} by the rows"
            yield Remark(leaf.task, "fault", text)
        if seat in found and seat not in known:
            yield Remark(leaf.task, "fault", f"outcome.seats.{seat}: nobody is asked as that")
    for model, ledger in totals([share.ledger for record in records for share in record.shares]).items():
        ends = [found[seat].get("ends") or {} for seat in found if seat.partition("#")[0] == model]
        counted, calls = sum(sum(one.values()) for one in ends), ledger.calls + ledger.cached
        if counted > calls:
            text = f"outcome.seats: {counted} replies of '{model}' to {calls} calls by the rows"
            yield Remark(leaf.task, "fault", text)


def _counted(counts: Any) -> str:
    return "nothing" if not isinstance(counts, Mapping) else ", ".join(f"{key} {n}" for key, n in counts.items())


def _panel(
    here: TaskHere, key: str, shares: Sequence[PanelShare], judged: Sequence[JudgedRecord], note: str | None
) -> Iterator[Remark]:
    """Compare panels with the seats that voted, and the calls of each model with its votes."""
    task = here.leaf.task
    # a panel is recorded as well where no row came so far that it was asked
    if bool(judged) and not shares:
        yield Remark(task, "fault", f"{key}: {len(judged)} rows with a verdict, {len(shares)} records of a panel")
    asked = [record.votes for record in judged if record.votes]
    for share in shares:
        seats = next((votes for votes in asked if votes.keys() != share.models.keys()), None)
        if seats is not None:
            yield Remark(task, "fault", f"{key}: votes of {', '.join(seats)}, the panel is {', '.join(share.models)}")
        if not _are_judges(here, key, share.models):
            yield Remark(task, "fault", f"{key}.models are not the judges of the results")
        if key == "panel" and share.scale != here.judge.scale:
            yield Remark(task, "fault", f"{key}.scale is not that of the judge block")
        if share.language_check != note:
            text = f"{key}.language_check is {share.language_check}, {note} by the judge block"
            yield Remark(task, "fault", text)
    ledgers = totals([share.ledger for share in shares])
    for model, ledger in ledgers.items():
        cast = [votes[seat] for votes in asked for seat in votes if seat.partition("#")[0] == model]
        abstained = Counter(vote for vote in cast if isinstance(vote, str) and vote != "unreadable")
        asked_for = ledger.calls + ledger.cached + sum(ledger.failures.values())
        if asked_for < len(cast) or ledger.calls + ledger.cached > 2 * len(cast):
            text = f"{key}: {ledger.calls} calls to '{model}' and {ledger.cached} from cache for {len(cast)} votes"
            yield Remark(task, "fault", text)
        failed = Counter(ledger.failures)
        if abstained - failed or (failed - abstained and len(shares) == 1):
            yield Remark(task, "fault", f"{key}: the calls to '{model}' did not fail as often as it abstained")


def _others(leaf: LeafResult) -> dict[str, list[Mapping[str, Any]]]:
    """Return by share the judges, by what they are, that decide a metric in place of the judges of the results."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for key, own in leaf.measurement.instrument.items():
        if key.startswith(OWN) and isinstance(own, Mapping) and own.get(JUDGES):
            metric = key.removeprefix(OWN)
            share = {SUFFICIENCY: "sufficiency_panel", GROUNDED[0]: "claims_panel"}.get(metric, "labelling")
            found.setdefault("panel" if verdict_metrics([metric]) else share, []).append(own[JUDGES])
    return found


def _are_judges(here: TaskHere, share: str, models: Mapping[str, str]) -> bool:
    """Return whether the models of seats are those whose identities the results record; of a folder, by its name."""
    told, others = {seat: PurePath(model).name for seat, model in models.items()}, _others(here.leaf).get(share)
    if others is None:
        return told == _named(here.leaf.seats)
    return any(sorted(told.values()) == sorted(_named(judges).values()) for judges in others)


def _named(judges: Mapping[str, Any]) -> dict[str, str]:
    """Return the last part of each judge's name, by seat; nothing is one where no settings are."""
    args = {seat: who.get("args") or {} for seat, who in judges.items() if isinstance(who, Mapping)}
    names = {seat: own.get("model") or own.get("pretrained") or seat.partition("#")[0] for seat, own in args.items()}
    return {seat: PurePath(str(name)).name for seat, name in names.items()}
