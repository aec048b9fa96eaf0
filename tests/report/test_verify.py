"""Verification of runs: every way in which a result can stop following from its samples is found and named."""

from __future__ import annotations

import json
import shutil
import sys
import weakref
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import mrag_eval
from mrag_eval.cli import main
from mrag_eval.platform import tasks_folder
from mrag_eval.report import open_samples, read_samples, unsupported, verify, write_report
from tests.worlds.small import BASE, write_task, write_world
from tests.worlds.xlcost import write

Change = Callable[[dict[str, Any]], None]
METRIC = "char3gram_recall"


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a world with a finished run of two tasks and their group, in ``out``."""
    world = write_world(tmp_path_factory.mktemp("world"))
    data = {"benchmark": "jsonl", "path": str(world / "questions.jsonl"), "corpus": str(world / "corpus.jsonl")}
    searched = {"mode": "all", "k": 2, "kind": "bm25"}
    write_task(world, "small", **BASE, data=data, retrieval=searched)
    write_task(world, "plain", **{**BASE, "metrics": [METRIC, "exact_match"]}, data=data)
    group = {"group": "both", "task": ["small", "plain"], "aggregate_metric_list": [{"metric": METRIC}]}
    (world / "both.yaml").write_text(json.dumps(group), "utf-8")
    arguments = ["--tasks", "both", "--include_path", str(world), "--output_path", str(world / "out")]
    with pytest.raises(SystemExit) as done:
        main(["run", "--model", "oracle_answer", "--log_samples", "--limit", "12", *arguments])
    assert done.value.code == 0
    return world


@pytest.fixture
def world(finished: Path, tmp_path: Path) -> Path:
    """A copy of that run, to be tampered with; the task files serve as the official ones."""
    return Path(shutil.copytree(finished, tmp_path / "copy"))


def results_of(world: Path) -> Path:
    return next((world / "out").rglob("results_*.json"))


def change_results(world: Path, change: Change) -> None:
    path = results_of(world)
    content = json.loads(path.read_text("utf-8"))
    change(content)
    path.write_text(json.dumps(content), "utf-8")


def change_samples(world: Path, task: str, change: Callable[[list[dict[str, Any]]], None]) -> None:
    path = next((world / "out").rglob(f"samples_{task}_*.jsonl"))
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    change(rows)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")


def faults(world: Path) -> list[str]:
    (found,) = verify([world / "out"], world)
    return [f"{finding.task}: {finding.text}" for finding in found.of("fault")]


def test_a_run_as_it_was_written_has_no_faults(world: Path) -> None:
    (found,) = verify([world / "out"], world)
    assert found.of("fault") == found.of("note") == []
    assert (found.tasks, found.rows) == (2, 24)
    assert found.numbers > 100


def test_replies_that_may_decline_are_read_as_the_run_read_them(tmp_path: Path) -> None:
    world = write_world(tmp_path)
    data = {"benchmark": "jsonl", "path": str(world / "questions.jsonl")}
    keys = {**BASE, "metrics": ["declined", "answer_tag"]}
    write_task(world, "closed", **keys, data=data, prompt={"template": "articles"})
    arguments = ["--tasks", "closed", "--include_path", str(world), "--output_path", str(world / "out")]
    with pytest.raises(SystemExit) as done:
        main(["run", "--model", "oracle_answer", "--log_samples", "--limit", "2", *arguments])
    assert done.value.code == 0
    assert faults(world) == []


def test_a_part_of_the_rows_is_a_deviation(world: Path) -> None:
    (found,) = verify([world / "out"], world)
    assert {finding.text for finding in found.of("deviation")} == {"12 of 15 rows (--limit 12)"}


def test_another_membership_of_a_group_is_one_deviation(world: Path, tmp_path: Path) -> None:
    """The group's file here is another, with a version of its own: all that follows from it is no fault besides."""
    other = Path(shutil.copytree(world, tmp_path / "other"))
    shutil.rmtree(other / "out")
    listed = [{"metric": METRIC, "weight_by_size": False}]
    group = {"group": "both", "task": ["plain"], "aggregate_metric_list": listed, "metadata": {"version": 9}}
    outer = {"group": "outer", "task": ["both"], "aggregate_metric_list": listed}
    for name, content in (("both", group), ("outer", outer)):
        (other / f"{name}.yaml").write_text(json.dumps(content), "utf-8")
    arguments = ["--tasks", "outer", "--include_path", str(other), "--output_path", str(other / "out")]
    with pytest.raises(SystemExit) as done:
        main(["run", "--model", "oracle_answer", "--log_samples", *arguments])
    assert done.value.code == 0
    (found,) = verify([other / "out"], world)
    text = "its tasks are not those of the group as shipped"
    assert [(one.kind, one.task, one.text, one.key) for one in found.findings] == [
        ("deviation", "both", text, "groups")
    ]
    assert (found.code(), found.code(("groups",))) == (4, 0)


def set_score(content: dict[str, Any]) -> None:
    content["configs"]["small"]["scores"]["metrics"][METRIC]["value"] = 0.99


def set_harness_score(content: dict[str, Any]) -> None:
    content["results"]["small"][f"{METRIC},none"] = 0.99


def set_interval(content: dict[str, Any]) -> None:
    content["configs"]["small"]["scores"]["metrics"]["hit@2"]["low"] = 0.95


def set_cell(content: dict[str, Any]) -> None:
    content["configs"]["small"]["scores"]["metrics"]["hit@2"]["by"]["query_lang"]["de"]["value"] = 0.123


def set_group(content: dict[str, Any]) -> None:
    content["results"]["both"][f"{METRIC},none"] = 0.123


def set_rows(content: dict[str, Any]) -> None:
    content["configs"]["small"]["scores"]["rows"] = 500


def set_setting(content: dict[str, Any]) -> None:
    content["configs"]["small"]["measurement"]["setting"]["retrieval"]["k"] = 5


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (set_score, f"small: {METRIC} is 0.99 in the scores, 1 by the samples"),
        (set_harness_score, f"small: {METRIC} is 0.99 in the harness's results, 1 by the samples"),
        (set_interval, "small: metrics.hit@2.low 0.95, "),
        (set_cell, "small: metrics.hit@2.by.query_lang.de.value 0.123, "),
        (set_group, f"both: {METRIC} is 0.123, "),
        (set_rows, "small: 500 rows in the results, 12 in the samples"),
    ],
)
def test_a_number_changed_by_hand_is_named(world: Path, change: Change, expected: str) -> None:
    change_results(world, change)
    assert any(line.startswith(expected) for line in faults(world)), faults(world)


def test_a_changed_setting_also_differs_from_the_task_s_file(world: Path) -> None:
    change_results(world, set_setting)
    (found,) = verify([world / "out"], world)
    assert "retrieval.k is 5, 2 in the task as shipped" in [finding.text for finding in found.of("deviation")]


def test_rows_and_results_changed_together_are_found_by_the_replies(world: Path) -> None:
    """A score of .5 in the row, the scores and the harness's results still contradicts the reply."""

    def lower(rows: list[dict[str, Any]]) -> None:
        for row in rows:
            row["rows"]["values"][METRIC] = row[METRIC] = 0.5

    change_samples(world, "plain", lower)
    first = f"plain: {METRIC} of 12 of 12 rows, first 'q-lighthouse-en': 0.5, 1 by its reply"
    assert first in faults(world)


def test_a_lost_and_a_doubled_row_are_found(world: Path) -> None:
    change_samples(world, "small", lambda rows: rows.pop())
    change_samples(world, "plain", lambda rows: rows.append(rows[0]))
    found = faults(world)
    assert "small: 12 rows in the results, 11 in the samples" in found
    assert "small: the rows of the record are not those of the samples" in found
    assert "plain: 1 repeated row, 'q-lighthouse-en' first" in found


def test_a_verdict_against_its_votes_is_found(world: Path) -> None:
    votes = {"a": True, "b": False, "c": False}

    def judged(rows: list[dict[str, Any]]) -> None:
        rows[0]["rows"]["judge"] = {"verdict": True, "outcome": "majority", "disagreement": 1 / 3, "votes": votes}

    change_samples(world, "plain", judged)
    assert "plain: 1 verdict against the votes, first on 'q-lighthouse-en'" in faults(world)


def test_without_samples_nothing_is_verified(world: Path) -> None:
    next((world / "out").rglob("samples_small_*.jsonl")).unlink()
    assert "small: no samples next to the results; run with --log_samples" in faults(world)


def prompt_of(content: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = content["configs"]["plain"]["measurement"]["setting"]["prompt"]
    return found


def test_a_task_of_ones_own_is_a_deviation_and_a_missing_prompt_is_open(world: Path) -> None:
    change_results(world, lambda content: prompt_of(content).update(template="/gone/own.jinja"))
    (found,) = verify([world / "out"], world / "out")
    said = {f"{finding.kind}: {finding.task}: {finding.text}" for finding in found.findings}
    assert "deviation: small: not a task of the package, which has no settings of it" in said
    assert "open: plain: replies were not read again: no prompt template '/gone/own.jinja' here" in said
    assert "in the tasks' settings" not in found.lines[0]
    assert "all scores follow" not in found.lines[0]


def test_intervals_of_another_version_are_open_and_scores_still_checked(world: Path) -> None:
    def older(content: dict[str, Any]) -> None:
        for config in content["configs"].values():
            config["measurement"]["environment"]["versions"]["mrag-eval"] = "0.0.1"

    change_results(world, older)
    change_results(world, set_interval)
    (found,) = verify([world / "out"], world)
    notes = [finding.text for finding in found.of("open")]
    assert any(text.startswith("run with mrag-eval 0.0.1, verified with ") for text in notes)
    assert any(text.startswith("metrics.hit@2.low 0.95, ") for text in notes)
    assert found.of("fault") == []
    assert found.code(None) == 3
    change_results(world, set_score)
    assert any(line.startswith(f"small: {METRIC} is 0.99 in the scores") for line in faults(world))


def exit_code(*arguments: str | Path) -> int:
    with pytest.raises(SystemExit) as done:
        main([str(argument) for argument in arguments])
    return int(done.value.code or 0)


def test_the_exit_code_is_that_of_faults_and_deviations(
    world: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("mrag_eval.cli._compare.tasks_folder", lambda: world)
    out = world / "out"
    assert exit_code("verify", out) == 4
    assert "all scores follow from the samples, 2 deviations from the tasks' settings" in capsys.readouterr().out
    assert exit_code("verify", out, "--allow", "retrieval.k") == 4
    assert exit_code("verify", out, "--allow", "retrieval.k, rows") == 0
    assert exit_code("verify", out, "--own-settings", "--strict") == 0
    capsys.readouterr()
    change_results(world, set_score)
    assert exit_code("verify", out, "--own-settings", "--json") == 1
    (found,) = json.loads(capsys.readouterr().out)
    assert {finding["kind"] for finding in found["findings"]} == {"fault", "deviation"}


@pytest.mark.parametrize(
    "command", [["report"], ["export", "--format", "latex", "-o", "table.tex"], ["compare", "--answers"]]
)
def test_commands_that_print_scores_warn(
    world: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    monkeypatch.chdir(world)
    name, *options = command
    exit_code(name, "out", *options)
    assert "warning" not in capsys.readouterr().err
    change_results(world, set_score)
    assert unsupported([world / "out"])
    exit_code(name, "out", *options)
    assert f"warning: small: {METRIC} is 0.99 in the scores, 1 by the samples" in capsys.readouterr().err


def test_metrics_without_a_mean_and_another_detector_follow_from_the_samples(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a judge, questions across languages have no label, so that the ranking measures have no mean."""
    (tmp_path / "mrag.yaml").write_text("{}", "utf-8")
    monkeypatch.setenv("MRAG_CONFIG", str(tmp_path / "mrag.yaml"))
    blocks = {
        "data": {"path": str(write(tmp_path / "data")), "tokenizer": "model_free"},
        "retrieval": {"kind": "bm25", "rerank": None},
        "judge": {"correct_language": {"min_chars": None}},
    }
    arguments = ["--tasks", "xlcost_travel", "--metadata", json.dumps(blocks), "--output_path", str(tmp_path / "out")]
    with pytest.raises(SystemExit) as done:
        main(["run", "--model", "dummy", "--log_samples", *arguments])
    assert done.value.code == 0
    (found,) = verify([tmp_path / "out"], tasks_folder())
    assert found.of("fault") == found.of("note") == []
    # a mean of the other half is no score of the run
    change = json.loads(found.path.read_text("utf-8"))
    change["configs"]["xlcost_travel"]["scores"]["metrics"]["hit@20_proxy"]["value"] = 1.0
    found.path.write_text(json.dumps(change), "utf-8")
    (found,) = verify([tmp_path / "out"], tasks_folder())
    assert "hit@20_proxy is 1 in the scores, nothing by the samples" in [f.text for f in found.of("fault")]


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count the readings of each sample file, by its name."""
    found: Counter[str] = Counter()
    whole = Path.open

    def counting(path: Path, *args: Any, **kwargs: Any) -> Any:
        if path.name.startswith("samples_"):
            found[str(path)] += 1
        return whole(path, *args, **kwargs)

    monkeypatch.setattr(Path, "open", counting)
    return found


def all_rows(content: dict[str, Any]) -> None:
    """Make the run one of a model over all rows, which leaderboards take; and put its group into another one."""
    content["config"] |= {"limit": None, "model": "hf"}
    for size in content["n-samples"].values():
        size["original"] = size["effective"]
    content["group_subtasks"]["outer"] = ["both"]
    content["results"]["outer"] = content["results"]["both"]


@pytest.mark.parametrize(
    "command",
    [
        ["report", "OUT"],
        ["report", "OUT", "-o", "PAGE"],
        ["export", "OUT", "--format", "csv", "-o", "FILE"],
        ["export", "OUT", "--format", "eee", "-o", "FILE"],
        ["compare", "OUT", "COPY"],
        ["compare", "--answers", "OUT"],
        ["gate", "--baseline", "OUT", "--candidate", "COPY", "--rules", "RULES"],
    ],
    ids=" ".join,
)
def test_a_command_that_warns_reads_each_sample_file_once(
    world: Path, tmp_path: Path, command: list[str], opened: Counter[str], capsys: pytest.CaptureFixture[str]
) -> None:
    change_results(world, all_rows)
    shutil.copytree(world / "out", tmp_path / "again")
    rules = tmp_path / "rules.yaml"
    rules.write_text(f"min_n: 2\nrules:\n  - {{metric: {METRIC}, task: plain}}\n", "utf-8")
    places = {
        "OUT": world / "out",
        "COPY": tmp_path / "again",
        "PAGE": tmp_path / "page.html",
        "FILE": tmp_path / "written",
        "RULES": rules,
    }
    with pytest.raises(SystemExit) as done:
        main([str(places.get(word, word)) for word in command])
    # two rows decide no gate
    assert done.value.code == (2 if "gate" in command else 0), capsys.readouterr()
    assert len(opened) == (4 if "COPY" in command else 2)
    assert set(opened.values()) == {1}


def test_texts_of_samples_stay_in_their_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [
        {"id": str(n), "query": "Where?", "lang": "en", "answers": ["harbour"], "reply": "Here"} for n in range(1600)
    ]
    mrag_eval.score(rows, ["match_unicode"], output=tmp_path)
    (path,) = tmp_path.glob("samples_*.jsonl")
    kind = type(open_samples(path))
    there, counts = kind._at, [0]

    def counted(self: Any, at: int, text: str) -> Any:
        found = there(self, at, text)
        counts.append(counts[-1] + 1)
        weakref.finalize(found, lambda: counts.append(counts[-1] - 1))
        return found

    monkeypatch.setattr(kind, "_at", counted)
    # no file is small
    monkeypatch.setattr(sys.modules[open_samples.__module__], "_ROOM", 0)
    (file,) = verify([tmp_path], tasks_folder())
    assert not file.of("fault")
    assert len(counts) > 2 * len(rows)
    # of two parts at most
    assert max(counts) <= 1000
    counts[:] = [0]
    write_report([tmp_path], tmp_path / "page.html")
    assert max(counts) < 10 < len(counts)


def test_samples_are_read_again_as_they_were_read_first(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = next((world / "out").rglob("samples_small_*.jsonl"))
    lines = path.read_text("utf-8").splitlines()
    # blank lines count, and a name of two lines is one of one line at every reading
    named = json.loads(lines[1])
    named["rows"]["cell"]["query_lang"] = "e\nn"
    path.write_text("\n".join([lines[0], "", json.dumps(named), *lines[2:], ""]), "utf-8")
    once = read_samples(path)
    # no file is small
    monkeypatch.setattr(sys.modules[open_samples.__module__], "_ROOM", 0)
    lazily = open_samples(path)
    assert not lazily.held
    assert [one.line for one in lazily] == [one.line for one in once] == [lazily[n].line for n in range(len(lazily))]
    assert [one.record for one in once] == lazily.records
    assert [one.where.rpartition(" ")[2] for one in lazily][:3] == ["1", "3", "4"]
    assert lazily[-1].line["doc_id"] == once[-1].line["doc_id"]
    assert "\n" not in lazily[1].line["rows"]["cell"]["query_lang"]
