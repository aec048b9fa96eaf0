"""The score of a benchmark in exports, and the run that it is from."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from mrag_eval.platform import DataError
from mrag_eval.report import EXPORTS, Options, TaskConfig, export, load_results
from mrag_eval.report.exports._runs import runs_of
from tests.report.test_export import DATE, cell, write_run
from tests.worlds.measured import blocks_of, with_all_records

# The formats whose figures others rank.
RANKED = ("eval-results", "model-index", "eee", "mteb")


def test_the_formats_of_tables_alone_take_every_figure() -> None:
    assert {name for name, form in EXPORTS.items() if form.ranked} == {*RANKED}


def written(run: Path, form: str, tmp_path: Path, **more: Any) -> tuple[Any, tuple[str, ...]]:
    out = export([run], form, Options(output=tmp_path / "out", **more))
    loaded = [yaml.safe_load(path.read_text("utf-8")) for path in out.files]
    return (loaded[0] if len(loaded) == 1 else loaded), out.notes


def changed(run: Path, change: Any) -> Path:
    """Change the content of the run's result file."""
    (path,) = run.rglob("results_*.json")
    content = json.loads(path.read_text("utf-8"))
    content["configs"] = {task: blocks_of(config) for task, config in content["configs"].items()}
    for config in content["configs"].values():
        config.pop("measurement", None)
    change(content)
    path.write_text(json.dumps(with_all_records(content)), "utf-8")
    return run


def test_the_headline_is_the_benchmark_s_main_metric_not_the_first_of_a_list(tmp_path: Path) -> None:
    """BordIRlines lists option_read and the papers' scores; its main metric is one that silence cannot win."""
    table = {"Cst_CS_all": cell(1.0, 20), "KB_CS": cell(0.5, 20), "controller_share": cell(0.6, 20)}
    scores: dict[str, Any] = {"metrics": {"option_read": cell(1.0)}, "concurrence": {"intervals": table}}
    more = {"metrics": ["concurrence", "option_read"], "source": {"place": {"hub": "borderlines/bordirlines"}}}
    run = write_run(tmp_path / "run", benchmark="bordirlines", scores=scores, **more)
    entries, _ = written(run, "eval-results", tmp_path)
    values = {entry["dataset"]["task_id"]: entry["value"] for entry in entries}
    assert values["rag_de"] == 0.6
    assert values["rag_de.option_read"] == 1.0
    files, _ = written(run, "mteb", tmp_path)
    assert [file["scores"]["validation"][0]["main_score"] for file in files if "scores" in file] == [0.6, 0.6]


def test_without_its_main_metric_a_task_has_no_headline_and_a_note(tmp_path: Path) -> None:
    """XRAG without judges has language_check, which says nothing about right answers."""
    scores = {"metrics": {"language_check": cell(0.9)}, "unscored": {"judged_accuracy": {"no panel judged the row": 4}}}
    run = write_run(tmp_path / "run", benchmark="xrag", scores=scores, source={"place": {"hub": "AmazonScience/XRAG"}})
    entries, notes = written(run, "eval-results", tmp_path, dataset="me/bench")
    ids = {entry["dataset"]["task_id"] for entry in entries}
    assert "rag_de" not in ids
    assert "rag_de.language_check" in ids
    why = "no headline, of its main metric judged_accuracy, there is no figure (no panel judged the row)"
    assert any(note.startswith("rag_de: ") and why.partition(" (")[0] in note for note in notes)
    files, notes = written(run, "mteb", tmp_path)
    assert [file["scores"]["validation"][0]["main_score"] for file in files if "scores" in file] == [None, None]
    assert sum("no headline" in note for note in notes) == 3


@pytest.mark.parametrize(("failed", "why"), [(1, None), (2, "2 of 22 rows failed, more than 5%")])
def test_a_score_with_many_failed_rows_is_no_headline(failed: int, why: str | None, tmp_path: Path) -> None:
    scores = {"metrics": {"match": {**cell(0.9, 20), "failed": failed, "bounds": [0.8, 0.95]}}}
    run = write_run(tmp_path / "run", scores=scores)
    for form in RANKED:
        options = Options(output=tmp_path / form, metrics=("match",), dataset="me/bench")
        if why is None:
            text = "".join(path.read_text("utf-8") for path in export([run], form, options).files)
            assert "more than 5" not in text, form
            continue
        with pytest.raises(DataError) as refused:
            export([run], form, options)
        assert f"results_{DATE}.json, rag_de is left out: match is no headline ({why})" in refused.value.message
        assert not (tmp_path / form).exists() or not [*(tmp_path / form).rglob("*.*")], form
    (table,) = export([run], "csv", Options(output=tmp_path / "csv")).files
    lines = csv.DictReader(table.read_text("utf-8").splitlines())
    told = [line["no_headline"] for line in lines if line["metric"] == "match" and not line["dimension"]]
    # a group names the task
    assert [one.rpartition(": ")[2] for one in told] == [why or ""] * 3
    (table,) = export([run], "latex", Options(output=tmp_path / "latex", metrics=("match",))).files
    text = " ".join(table.read_text("utf-8").split()).replace("\\%", "%")
    assert ((why or "more than 5") in text) == (why is not None)


def test_of_several_figures_those_without_a_headline_are_left_out_by_name(tmp_path: Path) -> None:
    """A task whose main metric has one keeps its place; a group of a task without one has no figure."""
    scores = {"metrics": {"language_mix": {**cell(0.25, 3), "failed": 1}}}
    run = write_run(tmp_path / "run", scores=scores)
    for form in RANKED:
        done = export([run], form, Options(output=tmp_path / form, dataset="me/bench"))
        why = "language_mix is no headline (1 of 4 rows failed, more than 5%)"
        assert f"results_{DATE}.json, rag_de, language_mix is left out: {why}" in done.notes, form
        files = "".join(path.read_text("utf-8") for path in done.files if "samples" not in path.name)
        assert "match" in files, form
        assert "language_mix" not in files or form == "eee", form


@pytest.mark.parametrize("form", RANKED)
def test_scores_that_samples_contradict_and_answers_that_were_known_are_no_entries(form: str, tmp_path: Path) -> None:
    options = Options(output=tmp_path / "out", dataset="me/bench")
    known = changed(write_run(tmp_path / "known"), lambda content: content["config"].update(model="oracle_answer"))
    with pytest.raises(DataError, match=r"rag_de is left out: it is no headline \(upper bound: the model replies"):
        export([known], form, options)

    def raised(content: dict[str, Any]) -> None:
        content["configs"]["rag_multi"]["scores"]["metrics"]["match"]["value"] = 0.5

    false = changed(write_run(tmp_path / "false"), raised)
    with pytest.raises(DataError) as refused:
        export([false], form, options)
    (path,) = false.rglob("results_*.json")
    said = f"rag_multi: match is 0.5 in the scores, 0.25 by the samples (mrag-eval verify {path})"
    assert refused.value.message == f"--format {form} takes no score that its samples contradict: {said}"
    assert not (tmp_path / "out").exists()
    # one that nothing contradicts is written, and says so
    for samples in false.rglob("samples_*"):
        samples.unlink()
    done = export([false], form, options)
    assert "rag_multi (without samples)" in "".join(path.read_text("utf-8") for path in done.files)


def test_a_group_s_mean_needs_every_task(tmp_path: Path) -> None:
    def without(content: dict[str, Any]) -> None:
        found = content["configs"]["rag_de"]["scores"]
        found["unscored"] = {"match": {"judge failed (server)": 4}}
        del found["metrics"]["match"]

    (run, *_), _ = runs_of([changed(write_run(tmp_path / "run"), without)], ["match"])
    (rag,) = (task for task in run.tasks if task.name == "rag")
    (score,) = rag.overall
    assert (score.value, score.reason) == (None, "a mean needs every task, and rag_de has no value")
    assert rag.headline is None


def test_your_own_rows_have_a_headline_if_you_name_it(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", benchmark="jsonl", source={"place": {"hub": None, "path": "rows.jsonl"}})
    entries, notes = written(run, "eval-results", tmp_path, dataset="me/bench")
    assert "rag_de" not in {entry["dataset"]["task_id"] for entry in entries}
    assert "rag_de: no headline, no main metric is declared for its rows: name one with --metric" in notes
    (tmp_path / "out" / ".eval_results" / "me__bench.yaml").unlink()
    entries, notes = written(run, "eval-results", tmp_path, dataset="me/bench", metrics=("match",))
    assert {entry["dataset"]["task_id"] for entry in entries} == {"rag", "rag_de", "rag_multi"}
    assert not any("headline" in note for note in notes)


def test_a_group_carries_its_ir_mode(tmp_path: Path) -> None:
    """The same suite in two modes has two entries, each with its mode."""
    run = write_run(tmp_path / "run")
    write_run(tmp_path / "other", retrieval={"mode": "all"})
    changed(tmp_path / "other", lambda content: content.update(date=1_767_225_601.0))
    groups = {
        task.label: (task.scores[0].retrieval_mode, task.scores[0].passages)
        for found in runs_of([run, tmp_path / "other"])[0]
        for task in found.tasks
        if task.leaf is None
    }
    assert groups == {"rag (qlang)": ("qlang", "3"), "rag (all)": ("all", "3")}
    assert all(score.task == task.label for found in runs_of([run])[0] for task in found.tasks for score in task.scores)
    entries, _ = written(run, "eval-results", tmp_path, metrics=("match",))
    (group,) = (entry for entry in entries if entry["dataset"]["task_id"] == "rag")
    assert "IR mode qlang, 3 passages" in group["notes"]


def limited(content: dict[str, Any]) -> None:
    content["config"]["limit"] = 4
    content["n-samples"] = {task: {"original": 1190, "effective": 4} for task in ("rag_de", "rag_multi")}


@pytest.mark.parametrize("form", ["eval-results", "model-index", "eee"])
def test_a_run_with_a_limit_is_no_leaderboard_entry(form: str, tmp_path: Path) -> None:
    run = changed(write_run(tmp_path / "run"), limited)
    with pytest.raises(DataError, match=r"no task is left .*: 4 of 1,190 rows, and a leaderboard") as caught:
        written(run, form, tmp_path)
    assert "without --limit" in str(caught.value)
    # next to a whole run it is left out, and does not replace it
    whole = write_run(tmp_path / "whole", shift=0.1)
    changed(run, lambda content: content.update(date=1_767_225_601.0))
    result = export([run, whole], form, Options(output=tmp_path / "out"))
    note = f"results_{DATE}.json, rag_de is left out: 4 of 1,190 rows, and a leaderboard takes whole runs only"
    assert note in result.notes
    assert "0.85" in "".join(path.read_text("utf-8") for path in result.files)


def test_a_run_with_a_limit_is_marked_in_other_exports(tmp_path: Path) -> None:
    run = changed(write_run(tmp_path / "run"), limited)
    out = tmp_path / "scores.csv"
    export([run], "csv", Options(output=out))
    parts = {line["task"]: line["part"] for line in csv.DictReader(out.open(encoding="utf-8"))}
    assert parts["rag_de"] == "4 of 1,190 rows"
    assert parts["rag"] == "rag_de: 4 of 1,190 rows; rag_multi: 4 of 1,190 rows"
    export([run], "latex", Options(output=tmp_path / "scores.tex"))
    assert r"run in part, 4 of 1,190 rows: rag\_de; rag\_multi" in (tmp_path / "scores.tex").read_text("utf-8")
    files, _ = written(run, "mteb", tmp_path)
    assert [file["part"] for file in files if "scores" in file] == ["4 of 1,190 rows"] * 2
    assert {file["task_name"] for file in files if "scores" in file} == {
        "rag_de (4 of 1,190 rows)", "rag_multi (4 of 1,190 rows)"
    }  # fmt: skip
    # a later run of a part does not take the place of the whole
    whole = changed(write_run(tmp_path / "whole"), lambda content: content.update(date=1_767_225_600.0))
    changed(run, lambda content: content.update(date=1_767_225_601.0))
    for form in ("csv", "latex", "mteb"):
        result = export([run, whole], form, Options(output=tmp_path / form))
        assert not any("4 of 1,190" in path.read_text("utf-8") for path in result.files)
    frame = load_results(run)
    assert set(frame["part"]) == {"4 of 1,190 rows"}
    # a limit beyond the last row leaves the run whole
    changed(
        run, lambda content: content.update({"n-samples": {"rag_de": {"original": 4}, "rag_multi": {"original": 4}}})
    )
    assert load_results(run)["part"].isna().all()


def test_a_run_that_a_later_one_with_other_settings_replaces_is_named(tmp_path: Path) -> None:
    """With equal settings the later run repeats the earlier one, and no note is needed."""

    def later(content: dict[str, Any]) -> None:
        content["date"] += 1
        content["configs"]["rag_de"]["retrieval"]["k"] = 5
        content["n-samples"] = {"rag_multi": {"original": 1190, "effective": 4}}

    first, second = (write_run(tmp_path / name) for name in ("first", "second"))
    options = Options(output=tmp_path / "scores.csv")
    assert not [note for note in export([first, second], "csv", options).notes if "left out" in note]
    notes = export([first, changed(second, later)], "csv", options).notes
    name = f"results_{DATE}.json"
    assert f"{name}, rag_de is left out: {name} differs in retrieval.k: 3 | 5" in notes
    # a part does not take the place of the whole
    assert f"{name}, rag_multi is left out: {name} differs in ran.of: 1190 | 4" in notes


@pytest.mark.parametrize(
    ("retrieval", "said"),
    [
        ({"mode": "given", "k": 5}, "those of the row"),
        ({"mode": "given", "k": 5, "given": {"subset": "gold", "n": 3}}, "those of the row, the supporting ones"),
        ({"mode": "given", "k": 5, "given": {"subset": "distractors", "n": 3}},
         "those of the row, the supporting ones and 3 distractors"),
        ({"mode": "given", "k": 5, "given": {"subset": "none"}}, None),
        ({"mode": "qlang", "k": 5}, "5"),
        ({"mode": "no_ir", "k": 5}, None),
    ],
)  # fmt: skip
def test_rows_that_bring_their_passages_are_not_said_to_have_five(retrieval: dict[str, Any], said: str | None) -> None:
    assert TaskConfig({"retrieval": retrieval}).passages == said


def test_the_notes_of_an_entry_name_given_passages(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", retrieval={"mode": "given"})
    entries, _ = written(run, "eval-results", tmp_path)
    assert "IR mode given, passages: those of the row" in entries[0]["notes"]


def test_files_in_the_shape_of_mteb_have_the_keys_that_it_reads(tmp_path: Path) -> None:
    """MTEB takes a file without its version for one of an older format."""
    run = write_run(tmp_path / "run")
    files, _ = written(run, "mteb", tmp_path)
    for file in (file for file in files if "scores" in file):
        assert file["mteb_version"] is None
        # 12.5 seconds are those of two tasks
        assert (file["evaluation_time"], file["run_time"]) == (None, 12.5)
    changed(run, lambda content: content["configs"].pop("rag_multi"))
    file = next(file for file in written(run, "mteb", tmp_path)[0] if "scores" in file)
    assert file["evaluation_time"] == 12.5


def test_rows_of_local_files_name_no_split_and_no_revision_of_the_hub(tmp_path: Path) -> None:
    data = {"benchmark": "xquad", "path": "/data/copy", "revision": "abc123", "split": None}
    run = write_run(tmp_path / "run")

    def local(content: dict[str, Any]) -> None:
        for config in content["configs"].values():
            config |= {"data": data, "source": {"place": {"path": "/data/copy"}}}

    changed(run, local)
    out = export([run], "eee", Options(output=tmp_path / "out"))
    record = json.loads(out.files[0].read_text("utf-8"))
    found = record["evaluation_results"][-1]["source_data"]
    assert found["source_type"] == "other"
    assert not {"hf_split", "hf_repo"} & found.keys()
    assert found["additional_details"] == {"licence": "CC-BY-SA-4.0", "copy_of": "google/xquad"}


def test_a_run_with_other_settings_says_so_in_its_name_and_replaces_none_as_shipped(tmp_path: Path) -> None:
    """Fixed schemas have no place for settings, and a later run may be the one that differs."""

    def as_package(content: dict[str, Any]) -> None:
        content["configs"] = {"xquad_rag_de": {**content["configs"]["rag_de"], "task": "xquad_rag_de"}}
        content["group_subtasks"] = {"xquad_rag_de": []}
        for block in ("data", "retrieval", "prompt", "generation_kwargs", "metadata", "metrics"):
            content["configs"]["xquad_rag_de"].pop(block)
        content["configs"]["xquad_rag_de"]["metrics"] = ["match"]

    def names(*runs: Path) -> set[str]:
        export(list(runs), "csv", Options(output=tmp_path / "scores.csv"))
        return {line["task"] for line in csv.DictReader((tmp_path / "scores.csv").open(encoding="utf-8"))}

    shipped = changed(write_run(tmp_path / "shipped"), as_package)
    (path,) = changed(write_run(tmp_path / "other"), as_package).rglob("results_*.json")
    for samples in tmp_path.rglob("samples_rag_de_*"):
        samples.rename(samples.with_name(samples.name.replace("rag_de", "xquad_rag_de")))
    content = json.loads(path.read_text("utf-8"))
    content["date"] += 1
    content["configs"]["xquad_rag_de"]["measurement"]["setting"]["run"] = {"system_instruction": "Lie."}
    path.write_text(json.dumps(content), "utf-8")
    marked = "xquad_rag_de (other settings: run.system_instruction=Lie., not set in the task)"
    assert names(shipped) == {"xquad_rag_de"}
    assert names(path) == {marked}
    assert names(shipped, path) == {"xquad_rag_de"}


def test_a_task_of_one_s_own_names_what_the_command_set(tmp_path: Path) -> None:
    """Its file is the reference, and need not lie here."""
    (path,) = write_run(tmp_path / "run").rglob("results_*.json")
    content = json.loads(path.read_text("utf-8"))
    config = content["configs"]["rag_de"]
    config["measurement"]["setting"]["run"] = {"system_instruction": "Lie.", "limit": 4, "log_samples": True}
    given = {"retrieval": {"k": 1, "device": "cpu"}, "prompt": {"max_tokens": 9}}
    config["measurement"]["setting"] |= given
    config["provenance"] = {"overrides": ["retrieval.k", "retrieval.device", "prompt.max_tokens"]}
    content["config"]["gen_kwargs"] = {"temperature": 0.5}
    path.write_text(json.dumps(content), "utf-8")
    export([path], "csv", Options(output=tmp_path / "scores.csv"))
    names = {line["task"] for line in csv.DictReader((tmp_path / "scores.csv").open(encoding="utf-8"))}
    mine = "rag_de (other settings: gen_kwargs.temperature=0.5; prompt.max_tokens=9; retrieval.k=1 and 1 more)"
    assert mine in names
    assert "rag_multi (other settings: gen_kwargs.temperature=0.5)" in names


@pytest.mark.parametrize(("named", "members"), [("xquad_rag", ["rag_de", "rag_multi"]), ("above", ["xquad_rag"])])
def test_a_group_of_other_tasks_never_bears_the_name_of_the_package_s_alone(
    named: str, members: list[str], tmp_path: Path
) -> None:
    """Nor does a group above it, of which it is a part."""

    def regrouped(content: dict[str, Any]) -> None:
        content["group_subtasks"] = {named: members, "xquad_rag": ["rag_de", "rag_multi"], "mine": ["rag_de"]}
        content["results"] |= dict.fromkeys(content["group_subtasks"], content["results"]["rag"])

    run = changed(write_run(tmp_path / "run"), regrouped)
    labels = {task.name: task.label for found in runs_of([run])[0] for task in found.tasks}
    assert labels[named] == f"{named} (other tasks than those of the group as shipped)"
    assert (labels["mine"], labels["rag_de"]) == ("mine", "rag_de")
    for form in EXPORTS:
        files = export([run], form, Options(output=tmp_path / form, dataset="me/bench")).files
        text = " ".join("".join(path.read_text("utf-8") for path in files).split()).replace("\\_", "_")
        # mteb has no groups
        said = "[1] other tasks than those of the group as shipped" if form == "latex" else labels["xquad_rag"]
        assert (said in text) == (form != "mteb"), form
        # in a table a mark stands for it
        assert not re.search(r"\bxquad_rag(?! \(other)(?! \[1\])\b", text), form
