"""Keys and files that decide how a run is checked: whatever is changed, added or removed among them is found."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from mrag_eval.datasets import sha256_file
from mrag_eval.platform import DataError
from mrag_eval.report import EXPORTS, SWITCHES, Options, export, verify
from tests.worlds.forged_runs import Run, changed

Forged = Callable[[str], Run]
TASK = "wide"
GONE = object()
# What a key that a run does not have may be given, where another value says more than any text.
ADDED: dict[str, list[Any]] = {
    "setting.replies": ["given"],
    "setting.row_texts": ["hashed"],
    "setting.filter_list": [[{"name": "none", "filter": [{"function": "take_first"}]}]],
    "setting.gen_prefix": ["Answer:"],
    "setting.data.share": [0.5],
    "setting.prompt.answer": ["tag"],
    "setting.prompt.max_tokens": [100],
    "setting.retrieval.rerank": [{"model": "m", "depth": 5}],
    "setting.retrieval.run_may_differ": [["retrieval.k"]],
    "setting.retrieval.shuffle": [3],
    "setting.retrieval.unanswerable": [0.5],
    "setting.retrieval.document_translation": ["en"],
    "setting.judge.relevance.labels": ["judge"],
    "setting.judge.language_check": ["lingua"],
    "setting.judge.correct_language.detector": ["lingua"],
    "setting.output_type": ["multiple_choice"],
    "outcome.not_judged": [["match"], ["hit@2"]],
    "unknown": [["the model and the flags of the run"]],
    "shipped": ["0" * 64],
    "setting.metrics": [["char3gram_recall", "correct_language", "hit@2", "mrr@2"]],
    "instrument.normalizer": [{"unicode": "1.0"}],
    "instrument.segmenter": [{"zh": "1.0"}],
    "instrument.languages": [{"en": "0" * 64}],
    # models that nobody asked, and a corpus that nobody built
    "setting.agent.planner": ["m"],
    "setting.agent.critic": ["m"],
    "setting.judge.panel": [["m"]],
    "setting.judge.grounded": ["m"],
    "setting.retrieval.translator": [{"backend": "table"}],
    "data.index.content_hash": ["0" * 64],
}
RECORD = [one.key for one in SWITCHES if not one.key.startswith(("results:", "rows:"))]
# Versions of others: what differs under them is open, and a run in which nothing differs has a note.
NOTED = ("environment.versions.lm-eval", "environment.versions.reading")


def code(run: Run, *, strict: bool = False) -> int:
    """Return the exit code of a verification that accepts nothing; 2 for files that are refused."""
    found = run.verified()
    return 2 if found is None else found.code(strict=strict)


def put(block: dict[str, Any], path: str, value: Any) -> bool:
    """Set or remove the value behind a dotted key; return whether anything changed."""
    *above, last = path.split(".") if not path.startswith("environment") else ["environment", "versions", path[21:]]
    for part in above:
        inner = block.setdefault(part, {})
        if not isinstance(inner, dict):
            return False
        block = inner
    before = block.get(last, GONE)
    if value is GONE:
        block.pop(last, None)
    else:
        block[last] = value
    return before is not value and before != value


def value_at(block: Any, path: str) -> Any:
    for part in ["environment", "versions", path[21:]] if path.startswith("environment") else path.split("."):
        block = block.get(part) if isinstance(block, dict) else None
    return block


@pytest.mark.slow
@pytest.mark.parametrize("key", RECORD)
def test_a_switch_of_the_record_is_compared(key: str, forged: Forged) -> None:
    """It is given another value in the record, removed from it, and written beside it."""
    run = forged("small")
    if key == "setting.data.path":
        copy = run.tasks / "elsewhere.jsonl"
        copy.write_text((run.tasks / "questions.jsonl").read_text("utf-8").replace("1841", "1842"), "utf-8")
    assert code(run) == 0
    before = value_at(run.content["configs"][TASK]["measurement"], key)
    values = [*ADDED.get(key, ())]
    # a further metric changes no other
    values += [] if before is None or key == "setting.metrics" else [changed(before)]
    assert values, key
    if before is not None and key not in ("shipped", "setting.data.path"):
        values.append(GONE)
    for value in values:
        run.restore()
        if put(run.content["configs"][TASK]["measurement"], key, value):
            assert code(run, strict=key in NOTED) != 0, (key, value)
        if key.startswith("setting.") and value is not GONE:
            run.restore()
            if put(run.content["configs"][TASK], key.removeprefix("setting."), value):
                assert code(run) != 0, (key, value, "beside the record")


@pytest.mark.slow
@pytest.mark.parametrize("key", [one.key for one in SWITCHES if one.key.startswith("rows:")])
def test_a_switch_of_rows_is_a_fault_where_no_such_task_has_it(key: str, forged: Forged) -> None:
    run = forged("small")
    added: dict[str, Any] = {"trace": {"rounds": [], "shown": []}, "withheld": True, "votes": {"j": {"verdict": True}}}
    added["original_text"], added["original_lang"] = "another", "fr"
    *above, name = key.removeprefix("rows:").split(".")
    for row in run.samples[TASK]:
        held = row
        for part in above:
            held = held[part]
        for one in held if isinstance(held, list) else [held]:
            one[name] = deepcopy(row["doc"]["ranking"]) if name == "reranked" else added[name]
    run.agree(TASK)
    said = ".".join((*above, name))
    assert any(line.startswith(f"{TASK}: {said} of ") or line == "refused" for line in run.blamed()), run.blamed()


def test_a_record_says_which_version_of_the_packages_task_it_ran(forged: Forged) -> None:
    """Without it, settings that another version of the file has would not be told apart."""
    run = forged("xquad")
    del run.content["configs"]["xquad_rag_de"]["measurement"]["shipped"]
    assert any("does not say which version of the task's file it ran" in line for line in run.blamed())


def as_log(run: Run) -> None:
    """Pass a benchmark's run off as a log, and its questions as having other answers."""
    run.content["configs"][TASK]["measurement"]["setting"]["replies"] = "given"
    for row in run.samples[TASK]:
        row["doc"]["answers"] = [row["filtered_resps"][0]]


def filtered(run: Run) -> None:
    filters = [{"name": "none", "filter": [{"function": "take_first"}]}]
    config = run.content["configs"][TASK]
    config["filter_list"] = config["measurement"]["setting"]["filter_list"] = filters
    for row in run.samples[TASK]:
        row["filtered_resps"] = [row["doc"]["answers"][0]]


def hint_around(run: Run) -> None:
    """Say that a chat template was applied, and put the answer of each row before its prompt."""
    from hashlib import sha256

    run.content["chat_template"] = "{{ turns }}"
    digest = sha256(b"{{ turns }}").hexdigest()
    run.content["chat_template_sha"] = digest
    for config in run.content["configs"].values():
        config["measurement"]["subject"] |= {"chat_template_applied": True, "chat_template_sha256": digest}
    for row in run.samples[TASK]:
        first = row["arguments"]["gen_args_0"]
        first["arg_0"] = f"{row['doc']['answers'][0]}\n{first['arg_0']}"


def older(run: Run, version: str = "0.0.9") -> None:
    for config in run.content["configs"].values():
        config["measurement"]["environment"]["versions"]["mrag-eval"] = version


def cut_otherwise(run: Run) -> None:
    """Say that words were cut by another version, with which no value is computed again."""
    run.content["configs"][TASK]["measurement"]["instrument"]["normalizer"] = {"unicode": "1.0"}
    for row in run.samples[TASK]:
        row["rows"]["values"]["match"] = 1.0


def passages_reranked(run: Run) -> None:
    """Show the relevant passages, as if a reranker had put them first."""
    for row in run.samples[TASK]:
        row["doc"]["reranked"] = deepcopy(row["doc"]["ranking"])


def renamed(run: Run) -> None:
    """Give the run the name of a task that nobody ships, and an own answer to each question."""
    text = json.dumps(run.content).replace('"wide"', '"wider"')
    run.content = json.loads(text)
    old, run.samples["wider"] = run.file("wide"), run.samples.pop("wide")
    old.unlink()


FORGERIES: dict[str, tuple[Callable[[Run], Any], set[int]]] = {
    "another version": (older, {3}),
    "a version that nobody knows": (lambda run: older(run, "9.9.9"), {3}),
    "no version": (
        lambda run: run.content["configs"][TASK]["measurement"]["environment"]["versions"].pop("mrag-eval"), {3}
    ),
    "hashed, though the texts are there": (
        lambda run: run.content["configs"][TASK].update(row_texts="hashed"), {2}
    ),
    "hashed in the record": (
        lambda run: run.content["configs"][TASK]["measurement"]["setting"].update(row_texts="hashed"), {1}
    ),
    "a log beside the record": (lambda run: run.content["configs"][TASK].update(replies="given"), {2}),
    "a log in the record": (as_log, {1}),
    "a filter beside the record": (
        lambda run: run.content["configs"][TASK].update(filter_list=[{"name": "none"}]), {2}
    ),
    "a filter": (filtered, {1, 4}),
    "a chat template": (hint_around, {1}),
    "words cut otherwise": (cut_otherwise, {1}),
    "a reranked list": (passages_reranked, {1}),
    "a date in the future": (lambda run: run.content.update(date=time.time() + 86_400), {1}),
    "a date before the release": (lambda run: run.content.update(date=1_700_000_000), {1}),
    "no date": (lambda run: run.content.pop("date"), {1}),
    "another name of the task": (renamed, {1, 4}),
}  # fmt: skip


@pytest.mark.parametrize("what", FORGERIES)
def test_a_forgery_is_never_in_order(what: str, forged: Forged) -> None:
    run = forged("small")
    edit, codes = FORGERIES[what]
    edit(run)
    if TASK in run.samples:
        run.agree(TASK)
    assert code(run) in codes, run.blamed()


def judged_beside(run: Run, edit: Callable[[dict[str, Any]], Any] = lambda row: None, **later: Any) -> None:
    """Add judged files to a run that nobody judged: its own rows, with whatever is edited in them."""
    from mrag_eval.scoring import RowRecord, summarize

    rows = deepcopy(run.samples[TASK])
    for row in rows:
        edit(row)
    own = run.path.with_name
    stamp = run.path.stem.removeprefix("results_")
    path = own(f"judged_samples_{TASK}_{stamp}.jsonl")
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    scores = summarize([RowRecord.from_dict(row["rows"]) for row in rows], 0, None)
    record = {**deepcopy(run.content["configs"][TASK]["measurement"]), **later}
    whole = {"schema_version": 1, "scores": scores.to_dict(), "samples": sha256_file(path), "measurement": record}
    own(f"judged_scores_{TASK}_{stamp}.json").write_text(json.dumps(whole), "utf-8")


def right(row: dict[str, Any]) -> None:
    row["rows"]["values"]["match"] = row["match"] = 1.0


def other_reply(row: dict[str, Any]) -> None:
    row["filtered_resps"] = [row["doc"]["answers"][0]]
    row["resps"] = [[row["doc"]["answers"][0]]]


def voted(row: dict[str, Any]) -> None:
    """Add a verdict for which nobody voted."""
    row["rows"]["judge"] = {"verdict": True, "outcome": "unanimous", "disagreement": 0.0, "votes": {"j": True}}
    row["rows"]["values"]["judge_correct"] = 1.0


JUDGED: dict[str, Callable[[dict[str, Any]], Any]] = {
    "other values": right,
    "other replies": other_reply,
    "another question": lambda row: row["doc"].update(query="?"),
    "another ranking": lambda row: row["doc"]["ranking"]["ids"].reverse(),
    "another row": lambda row: row["rows"].update(row=row["rows"]["row"] + "x"),
    "a verdict without votes": voted,
}


@pytest.mark.parametrize("what", JUDGED)
def test_files_of_later_verdicts_change_what_judges_decide_alone(what: str, forged: Forged) -> None:
    run = forged("small")
    run.write()
    judged_beside(run, JUDGED[what])
    (found,) = verify([run.path], run.tasks)
    assert found.code(None) == 1, found.lines


@pytest.mark.parametrize("what", JUDGED)
def test_no_leaderboard_takes_verdicts_that_follow_from_no_votes(what: str, forged: Forged, tmp_path: Path) -> None:
    """Scores that are the means of their own samples are refused where these are not the run's, or not of votes."""
    run = forged("small")
    run.write()
    judged_beside(run, JUDGED[what])
    for name in (name for name, declared in EXPORTS.items() if declared.ranked):
        options = Options(output=tmp_path / name, dataset="me/bench")
        with pytest.raises(DataError, match="takes no score that its samples contradict"):
            export([run.path], name, options)


def test_the_record_of_later_verdicts_is_that_of_the_run(forged: Forged) -> None:
    run = forged("small")
    run.write()
    setting = deepcopy(run.content["configs"][TASK]["measurement"]["setting"])
    setting["retrieval"]["k"] = 20
    judged_beside(run, setting=setting)
    (found,) = verify([run.path], run.tasks)
    assert any("setting.retrieval.k is 20, 2 in the run" in one.text for one in found.of("fault"))


def test_what_is_given_as_data_is_read_or_refused(forged: Forged, tmp_path: Path) -> None:
    run = forged("small")
    run.write()
    (other := tmp_path / "other.jsonl").write_text('{"unlike": 1}\n', "utf-8")
    with pytest.raises(DataError, match=r"--data .*other\.jsonl: no task here has its rows there"):
        verify([run.path], run.tasks, [other])
    (found,) = verify([run.path], run.tasks, [run.tasks / "questions.jsonl"])
    assert found.code() == 0


def test_strict_counts_notes(forged: Forged) -> None:
    run = forged("small")
    run.content["configs"][TASK]["measurement"]["environment"]["versions"]["reading"] = "0"
    found = run.verified()
    assert found is not None
    assert found.of("note")
    assert (found.code(), found.code(strict=True)) == (0, 1)
