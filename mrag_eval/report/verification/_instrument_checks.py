"""The recorded models of a run besides the evaluated one, against the settings and rows that need them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mrag_eval.config import DETECTORS, JUDGES, SUFFICIENCY, shown
from mrag_eval.core import ANY_LANGUAGE
from mrag_eval.datasets import sha256_file
from mrag_eval.languages import RELIABILITY_FILE
from mrag_eval.report.verification._differing import differing
from mrag_eval.report.verification._findings import Finding
from mrag_eval.report.verification._task_here import TaskHere
from mrag_eval.scoring import RowRecord, support_by, words_of

# Stands for a model that nothing else in a run describes.
_ANY = "a model"


def instruments_follow(here: TaskHere, records: Sequence[RowRecord]) -> Iterator[Finding]:
    """Compare judges, planner, critic, translator, reranker and detector with what else the results say of them."""
    leaf, found = here.leaf, here.leaf.measurement.instrument
    labelled = any(r.labelling is not None and r.labelling.models for r in records)
    asked = labelled or any(r.panel or r.sufficiency_panel or r.claims_panel for r in records)
    looped = any(r.loop is not None for r in records)
    # without passages nobody is asked whether they suffice
    may_be_there = asked or (SUFFICIENCY in leaf.config.metrics and leaf.config.shows == "nothing" and leaf.seats)
    roles = [*([JUDGES] if may_be_there else []), *(("planner", "critic") if looped else ())]
    wanted = {
        **{role: found.get(role) or _ANY for role in roles},
        **_translator(records),
        **_reranker(here, found),
        **_detector(here, found),
        # in the version of the run, which another machine may lack
        **{key: found.get(key) or version for key, version in words_of(leaf.config.metrics).items()},
        **{key: found.get(key) or _ANY for key in support_by(leaf.config.metrics, {})},
        # where other files are here, what they decide is not computed again
        **({"languages": found["languages"]} if found.get("languages") else {}),
    }
    for key, one, other in differing(found, wanted, "instrument"):
        text = f"{key} is {_text(one)}, {_text(other)} by its settings and rows"
        yield Finding(leaf.task, "fault", text)
    yield from _seats(here, asked=bool(may_be_there))


def _translator(records: Sequence[RowRecord]) -> dict[str, Any]:
    shares = [record.translation for record in records if record.translation is not None]
    return {"translator": shares[0].get("identity")} if shares else {}


def _reranker(here: TaskHere, found: Mapping[str, Any]) -> dict[str, Any]:
    listwise = here.leaf.config.rerank.get("kind") == "listwise"
    return {"reranker": found.get("reranker") or _ANY} if listwise else {}


def _detector(here: TaskHere, found: Mapping[str, Any]) -> dict[str, Any]:
    """Return the detectors that are files, by content where they are here, and what is known of detectors."""
    block = here.leaf.config.judge.get("correct_language") or {}
    given = block.get("detector") or {}
    named = {ANY_LANGUAGE: given} if isinstance(given, str) else dict(given)
    paths = {code: Path(str(name)) for code, name in named.items() if name not in DETECTORS}
    wanted: dict[str, Any] = {}
    if paths and all(path.is_file() for path in paths.values()):
        hashes = {code: {"sha256": sha256_file(path)} for code, path in paths.items()}
        wanted["detector"] = {**hashes.pop(ANY_LANGUAGE, {}), **hashes}
    elif paths:
        wanted["detector"] = found.get("detector") or _ANY
    if block.get("min_recognised") is not None and "correct_language" in here.leaf.config.metrics:
        wanted["reliability"] = {"sha256": sha256_file(RELIABILITY_FILE)}
    return wanted


def _seats(here: TaskHere, *, asked: bool) -> Iterator[Finding]:
    """Compare the seats of the judges with the judge block, and with whether any judge was asked."""
    block, judges = here.judge, here.leaf.seats
    if not judges:
        return
    names = block.panel or tuple(dict.fromkeys(seat.rpartition("#")[0] or seat for seat in judges))
    once = block.repeats == 1
    wanted = {name if once else f"{name}#{nth}" for name in names for nth in range(1, block.repeats + 1)}
    if {*judges} != wanted:
        text = f"the judges are {', '.join(judges)}, {', '.join(sorted(wanted))} by the judge block"
        yield Finding(here.leaf.task, "fault", text)
    if not asked:
        yield Finding(here.leaf.task, "fault", "judges are recorded, and no row has a record of a panel")


def _text(value: Any) -> str:
    if isinstance(value, Mapping):
        args = value.get("args") or {}
        return str(args.get("model") or args.get("pretrained") or value.get("model") or ", ".join(map(str, value)))
    return "nothing" if value is None else shown(value)
