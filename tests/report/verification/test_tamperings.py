"""Tamperings with finished runs and the finding that names each; most are made with all that follows from them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mrag_eval.cli import main
from mrag_eval.report import verify
from tests.worlds.finished_runs import RUNS
from tests.worlds.forged_runs import Run

Forged = Callable[[str], Run]
Rows = list[dict[str, Any]]
Edit = Callable[[Rows], Any]

# The task that is tampered with.
TASKS = {
    "small": "wide",
    "xquad": "xquad_rag_de",
    "bordirlines": "bordirlines_swap_docs_citation_openai",
    "likelihood": "bordirlines_no_ir_likelihood",
    "judged": "xrag_multi_de",
    "labelled": "xlcost_travel",
    "looped": "looped",
    "answered": "asked",
    "translated": "xquad_rag_de",
    "choices": "blend_norag_am",
}


def each(change: Callable[[dict[str, Any]], Any]) -> Edit:
    return lambda rows: [change(row) for row in rows]


def set_values(**values: float) -> Edit:
    return each(lambda row: row["rows"]["values"].update(values))


def to_first(row: dict[str, Any]) -> None:
    row["rows"]["concurrence"]["claimant_ind"] = 0
    row["rows"]["values"].update(option_read=1.0, option_refused=0.0, option_unread=0.0)


def other_controller(row: dict[str, Any]) -> None:
    for facts in (row["rows"]["concurrence"], *row["rows"].get("skipped", ())):
        facts |= {"controller": facts["claimants"][0], "controller_lang": facts["claimant_langs"][0]}


def answer_is_reply(row: dict[str, Any]) -> None:
    """Edit the reference answer, the target, and every value to suit the reply."""
    row["doc"]["answers"] = [row["filtered_resps"][0]]
    row["target"] = row["filtered_resps"][0]
    row["rows"]["values"] |= {"char3gram_recall": 1.0, "match": 1.0}


def call_it_failed(row: dict[str, Any]) -> None:
    """Take a wrong answer for a call that failed, so that no score counts it."""
    values = row["rows"]["values"]
    lost = [name for name in ("char3gram_recall", "match", "correct_language") if name in values]
    if values["match"] == 0.0:
        row["rows"]["failures"] = [{"stage": "answer", "model": "some-model", "reason": "timeout"}]
        row["rows"].setdefault("unscored", {}).update(dict.fromkeys(lost, "answer failed (timeout)"))
        row["metrics"] = [name for name in row["metrics"] if name not in lost]
        for name in lost:
            del values[name]


def flip_votes(row: dict[str, Any]) -> None:
    """Change verdicts in short and the values, but not the votes in full."""
    row["rows"]["judge"] |= {"verdict": True, "outcome": "unanimous", "disagreement": 0.0}
    row["rows"]["judge"]["votes"] = dict.fromkeys(row["rows"]["judge"]["votes"], True)
    row["rows"]["values"] |= {"judge_correct": 1.0}


def replace_passage(row: dict[str, Any]) -> None:
    """Put the answer into a passage, and that passage into the prompt."""
    passage = row["doc"]["passages"][0]
    old, passage["text"] = passage["text"], f"It was {row['doc']['answers'][0]}. {passage['text']}"
    first = row["arguments"]["gen_args_0"]
    first["arg_0"] = first["arg_0"].replace(old, passage["text"])


def replace_question(row: dict[str, Any]) -> None:
    old, row["doc"]["query"] = row["doc"]["query"], "How much is one and one?"
    first = row["arguments"]["gen_args_0"]
    first["arg_0"] = first["arg_0"].replace(old, row["doc"]["query"])


def lead_with_relevant(row: dict[str, Any]) -> None:
    """Put a relevant passage first in the ranking, leaving what was shown."""
    row["doc"]["ranking"]["ids"][0] = row["doc"]["relevant_ids"][0]
    row["doc"]["ranking"]["doc_ids"][0] = row["doc"]["relevant_ids"][0]
    row["rows"]["values"] |= {name: 1.0 for name in row["rows"]["values"] if "@" in name}


def arg(row: dict[str, Any]) -> Any:
    return row["arguments"]["gen_args_0"]


# run: (what is done to the rows, whether everything that follows is made to agree, the finding)
SAMPLES: dict[str, tuple[str, Edit, bool, str]] = {
    "hit@20 and mrr@20 set to 1": ("xquad", set_values(**{"hit@20": 1.0, "mrr@20": 1.0}), True, "mrr@20 of"),
    "a relevant passage moved to the front": ("small", each(lead_with_relevant), True, "doc.ranking.langs of"),
    "scores of a ranking changed": (
        "small", lambda r: r[0]["doc"]["ranking"].update(scores=[0.1, 0.9]), True, "doc.passages.score of"
    ),
    "passages shown in another order": (
        "small", lambda r: r[0]["doc"]["passages"].reverse(), True, "doc.passages of"
    ),
    "option indices forged": ("bordirlines", each(to_first), True, "concurrence.claimant_ind of"),
    "a refusal turned into an option": (
        "bordirlines", each(lambda r: r["rows"]["concurrence"].update(outcome="chosen")), True, "concurrence.outcome of"
    ),
    "citations rewritten": (
        "bordirlines", lambda r: r[0]["rows"]["citations"].update(answer="because <doc0>"), True, "citations.answer of"
    ),
    "another controller": (
        "bordirlines", each(other_controller), True,
        "concurrence.controller of",
    ),
    "a skipped question hidden": (
        "bordirlines", lambda r: r[0]["rows"].pop("skipped", None), True, "the skipped questions are not those"
    ),
    "a document replaced by another": (
        "bordirlines", lambda r: r[0]["doc"]["passages"][0].update(text="It is so."), True, "doc.passages.text of"
    ),
    "likelihoods changed in the record": (
        "likelihood", lambda r: r[0]["rows"]["answer"].update(loglikelihoods=[-9.0, -1.0]), True,
        "answer.loglikelihoods of",
    ),
    "reference answers edited to suit the replies": ("small", each(answer_is_reply), True, "doc.answers of"),
    "a right option edited": ("choices", each(lambda r: r["doc"].update(gold_choice=0)), True, "doc.gold_choice of"),
    "options swapped": ("choices", lambda r: r[0]["doc"]["choices"].reverse(), True, "doc.choices of"),
    "a question replaced": ("small", lambda r: replace_question(r[0]), True, "doc.query of"),
    "a passage replaced": ("small", lambda r: replace_passage(r[0]), True, "doc.passages.text of"),
    "a group of rows renamed": ("small", lambda r: r[0]["rows"].update(group="other"), True, "group of"),
    "a row in another cell": ("small", lambda r: r[0]["rows"]["cell"].update(query_lang="fr"), True, "cell.query_lang"),
    "a relevant id added": (
        "small", lambda r: r[0]["doc"]["relevant_ids"].append(r[0]["doc"]["ranking"]["ids"][0]), True,
        "doc.relevant_ids of",
    ),
    "a relevant document called absent": (
        "small", lambda r: r[0]["doc"].update(absent_ids=list(r[0]["doc"]["relevant_ids"])), True, "doc.absent_ids of",
    ),
    "a hint in the prompt": (
        "small", lambda r: arg(r[0]).update(arg_0=arg(r[0])["arg_0"] + f"Hint: {r[0]['target']}\n"), True,
        "1 prompt of 15 not what the row renders to",
    ),
    "a hint in a shortened prompt": (
        "judged", lambda r: arg(r[0]).update(arg_0=arg(r[0])["arg_0"] + "Hint"), True,
        "1 prompt of 6 not what the row renders to",
    ),
    "other arguments of generation": (
        "small", lambda r: arg(r[0])["arg_1"].update(temperature=1.0), True, "arguments.gen_args_0.arg_1.temperature"
    ),
    "fewer shortened prompts": (
        "judged", lambda r: r[0]["rows"]["prompts"].update(shortened=0), True, "0 prompts shortened in the samples"
    ),
    "a reply changed": ("small", lambda r: r[0].update(filtered_resps=["1842"]), True, "filtered_resps of"),
    "wrong answers called failures": ("small", each(call_it_failed), True, "match of 3 of 15 rows"),
    "the answer read as another": (
        "judged", lambda r: r[0]["rows"]["answer"].update(text="Varga"), True, "answer.text of"
    ),
    "votes in short flipped": ("judged", each(flip_votes), True, "against the votes"),
    "a vote in full flipped": (
        "judged", lambda r: r[0]["votes"]["j1"].update(verdict=not r[0]["votes"]["j1"]["verdict"]), True,
        "judge.votes.j1 of",
    ),
    "a verdict on passages flipped": (
        "judged", lambda r: r[0]["rows"]["sufficiency"].update(verdict=False), True, "sufficiency.verdict of"
    ),
    "another language found": (
        "judged", set_values(language_check=1.0, judged_accuracy=1.0), True, "judged_accuracy of"
    ),
    "a judge exchanged": (
        "judged", lambda r: r[0]["rows"]["panel"]["models"].update(j1="acme/other"), True,
        "panel.models are not the judges of the results",
    ),
    "failed calls hidden": (
        "judged", lambda r: r[0]["rows"]["panel"]["ledger"]["j2"].update(failures={}), True,
        "did not fail as often as it abstained",
    ),
    "labels of a ranking changed": (
        "labelled", lambda r: r[0]["rows"]["relevance"].update(relevant=[2]), True, "relevance.relevant of"
    ),
    "rounds of a loop hidden": ("looped", lambda r: r[0]["rows"]["loop"].update(rounds=2), True, "loop.rounds of"),
    "another document claimed as shown": (
        "looped", lambda r: r[0]["doc"]["trace"].update(shown=["ferry-en"]), True, "doc.passages.id of"
    ),
    "a wrong row dropped": ("small", lambda r: r.pop(), True, "1 of 15 rows are missing, 'q-ferry-zh' first"),
    "rows in place of others": (
        "small", lambda r: r[0]["rows"].update(row="mine") or r[0]["doc"].update(id="mine"), True,
        "1 row that the benchmark does not have, 'mine' first",
    ),
    "a row twice": ("small", lambda r: r.__setitem__(1, r[0]), True, "1 repeated row"),
    "a row under another number": ("small", lambda r: r[0].update(doc_id=7), False, "doc_id of"),
    "a row's hash": ("small", lambda r: r[0].update(doc_hash="0" * 64), False, "doc_hash of"),
    "a prompt's hash": ("small", lambda r: r[0].update(prompt_hash="0" * 64), False, "prompt_hash of"),
    "a target's hash": ("small", lambda r: r[0].update(target_hash="0" * 64), False, "target_hash of"),
    "a target": ("small", lambda r: r[0].update(target="1842"), True, "target of"),
    "the harness's column": ("small", lambda r: r[0].update(match=0.5), False, "match of"),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("what", SAMPLES)
def test_a_tampering_with_rows_is_named(what: str, forged: Forged) -> None:
    name, edit, careful, expected = SAMPLES[what]
    run, task = forged(name), TASKS[name]
    edit(run.samples[task])
    if careful:
        assert run.agree(task)
    assert any(line.startswith(f"{task}: ") and expected in line for line in run.blamed()), run.blamed()


def at(*path: str, value: Any) -> Callable[[dict[str, Any]], None]:
    """Return a change of one value of the results."""

    def change(content: dict[str, Any]) -> None:
        for part in path[:-1]:
            content = content[part]
        content[path[-1]] = value

    return change


WIDE = ("configs", "wide")
RESULTS: dict[str, tuple[str, Callable[[dict[str, Any]], None], str]] = {
    "a standard error": (
        "small", at("results", "wide", "match_stderr,none", value=0.0), "wide: results.match_stderr,none is 0, "
    ),
    "the share of unscored rows": (
        "small", at("results", "wide", "unscored,none", value=0.5), "wide: results.unscored,none is 0.5, "
    ),
    "a score that no row has": ("small", at("results", "wide", "f1,none", value=1.0), "wide: results.f1,none is 1, "),
    "a direction": ("small", at("higher_is_better", "wide", "match", value=False), "wide: higher_is_better.match is "),
    "the number of rows": (
        "small", at("n-samples", "wide", "original", value=16),
        "wide: 16 rows of the task in the results, 15 in its data",
    ),
    "an outer group": ("small", at("results", "outer", "match,none", value=0.9), "outer: match is 0.9, "),
    "an inner group": ("small", at("results", "lower", "match,none", value=0.9), "lower: match is 0.9, "),
    "a group's table": ("small", at("groups", "outer", "match,none", value=0.9), "outer: its scores under 'groups' "),
    "a group's error": ("small", at("results", "outer", "match_stderr,none", value=0.0), "outer: match_stderr is 0, "),
    "a group without a task": ("small", at("group_subtasks", "outer", value=["wide"]), "outer: match is "),
    "a task's hash": ("small", at("task_hashes", "wide", value="0"), "wide: task_hashes: "),
    "rows left out": (
        "small", at(*WIDE, "measurement", "data", "left_out", "skipped_by_mode", value=3), "wide: left_out is "
    ),
    "a system instruction": ("small", at("system_instruction", value="Be brief."), "wide: 15 prompts of 15 not what"),
    "another template": (
        "small",
        at(*WIDE, "measurement", "setting", "texts", "prompt", value="0"),
        "wide: the prompts follow 'short_answer', whose",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", RESULTS)
def test_a_tampering_with_results_is_named(what: str, forged: Forged) -> None:
    name, edit, expected = RESULTS[what]
    run = forged(name)
    edit(run.content)
    assert any(line.startswith(expected) for line in run.blamed()), run.blamed()


@pytest.mark.slow
def test_groups_in_groups_of_unequal_sizes(forged: Forged) -> None:
    """The harness averages the 13 tasks, not the three tiers; a plain mean is no weighted one."""
    run = forged("whole_benchmark")
    sizes = {run.content["n-samples"][task]["effective"] for task in run.samples}
    assert len(sizes) > 5
    # the rows are a part of the published ones
    known = [line for line in run.blamed() if ": source is " in line and "a local copy of " in line]
    assert run.blamed() == known
    tiers = [run.content["results"][f"blend_norag_{tier}"]["acc,none"] for tier in ("low", "mid", "high")]
    whole = run.content["results"]["blend_norag"]
    for name, other in (("acc", sum(tiers) / 3), ("acc", whole["acc_micro,none"]), ("acc_micro", whole["acc,none"])):
        run.restore()
        run.content["results"]["blend_norag"][f"{name},none"] = other
        run.content["groups"]["blend_norag"][f"{name},none"] = other
        assert [line.partition(" is ")[0] for line in run.blamed() if line not in known] == [f"blend_norag: {name}"]


def test_data_that_are_not_here_are_named_and_a_copy_is_compared(forged: Forged) -> None:
    run = forged("small")
    copy = run.tasks / "questions.jsonl"
    for config in run.content["configs"].values():
        config["measurement"]["setting"]["data"]["path"] = "/gone/questions.jsonl"
    rows = run.samples["wide"]
    for row in rows:
        answer_is_reply(row)
    assert run.agree("wide")
    run.write()
    (found,) = verify([run.path], run.tasks)
    assert [finding for finding in found.of("fault") if finding.task == "wide"] == []
    assert {finding.text for finding in found.of("open")} == {
        "the data of jsonl are not on this machine (data.path=/gone/questions.jsonl is not on this machine), so "
        "questions and reference answers were not compared: verify --data PATH reads a copy",
        "the corpus is not on this machine, so that the texts of passages were not compared",
    }
    assert "questions, reference answers, and which rows there are" in found.unchecked
    (found,) = verify([run.path], run.tasks, [copy])
    faults = [finding.text.partition(" of ")[0] for finding in found.of("fault") if finding.task == "wide"]
    assert faults == ["char3gram_recall", "match", "doc.answers", "target"]
    assert "questions, reference answers, and which rows there are" not in found.unchecked


def test_the_command_reads_a_copy_and_prints_what_is_not_checked(
    forged: Forged, test_data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = forged("choices")
    for config in run.content["configs"].values():
        config["measurement"]["setting"]["data"]["path"] = "/gone/blend.csv"
    run.write()

    def said(*more: str) -> str:
        with pytest.raises(SystemExit) as done:
            main(["verify", str(run.path), "--own-settings", *more])
        assert done.value.code == (0 if "--data" in more else 3)
        return capsys.readouterr().out

    assert "open: the data of blend are not on this machine" in said()
    shown = said("--data", str(test_data / "blend" / "mcq_derived_sample.csv"))
    assert "open:" not in shown
    assert "note:" not in shown
    assert shown.count("    not checked: ") == 7
    assert "that the replies are the model's" in json.loads(said("--json"))[0]["unchecked"]


def test_runs_are_made_of_every_kind() -> None:
    assert {*TASKS, "whole_benchmark"} == {*RUNS}
    assert len(SAMPLES) + len(RESULTS) > 50
