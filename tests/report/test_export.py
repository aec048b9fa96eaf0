"""Results in other formats: figures with intervals and n, existing content kept, no text without a licence."""

from __future__ import annotations

import csv
import hashlib
import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jsonschema
import pytest
import yaml
from huggingface_hub import parse_eval_result_entries
from huggingface_hub.repocard import metadata_load
from huggingface_hub.repocard_data import model_index_to_eval_results

from mrag_eval.config import deep_merge
from mrag_eval.platform import ConfigError, DataError
from mrag_eval.report import EXPORTS, Options, TaskConfig, export, read_results, render, score_tables
from mrag_eval.report.exports import _push as push
from mrag_eval.report.exports._latex import escaped, latex_table
from mrag_eval.report.exports._licences import source_of
from mrag_eval.report.exports._runs import runs_of
from tests.report.eee_schema import RECORD, ROW
from tests.worlds.measured import with_all_records

DATE = "2026-01-01T00-00-00.000000"
SECRET_TEXTS = ("Which town", "Varga", "Harbour master", "lighthouse of")


def cell(value: float | None, n: int = 4, **more: Any) -> dict[str, Any]:
    interval = {} if value is None else {"low": max(0.0, value - 0.1), "high": min(1.0, value + 0.1)}
    return {"value": value, **interval, "n": n, "method": "Wilson", **more}


def write_run(
    folder: Path, model: str = "org/model", benchmark: str = "xquad", shift: float = 0.0, **changes: Any
) -> Path:
    """A run of two tasks in a group: one in German, one in Arabic and English, with a metric that has no scores."""
    home = folder / model.replace("/", "__")
    home.mkdir(parents=True, exist_ok=True)
    answers = {"rag_de": [1.0, 0.0, 1.0, 1.0], "rag_multi": [0.0, 0.0, 1.0, 0.0]}
    configs: dict[str, Any] = {}
    for task, rows in answers.items():
        mean = sum(rows) / 4 + shift
        langs = {"de": 4} if task == "rag_de" else {"ar": 2, "en": 2}
        by = {} if task == "rag_de" else {"by": {"query_lang": {"ar": cell(0.0, 2), "en": cell(0.5, 2)}}}
        scores = {
            "rows": 4,
            "query_langs": langs,
            "metrics": {"match": cell(mean, **by), "language_mix": cell(0.25, 3)},
            "unscored": {"language_mix": {"too short": 1}, "judged_accuracy": {"timeout": 4}},
        }
        configs[task] = deep_merge(
            {
                "task": task,
                "metrics": ["match", "language_mix", "judged_accuracy"],
                "data": {"benchmark": benchmark, "split": "validation"},
                "source": {"place": {"hub": "google/xquad", "revision": "abc123"}},
                "retrieval": {"mode": "qlang", "k": 3, "corpus": "benchmark"},
                "prompt": {"template": "short_answer"},
                "metadata": {"version": 1.0},
                "generation_kwargs": {"max_gen_toks": 16, "temperature": 0.0},
                "scores": scores,
            },
            changes,
        )  # fmt: skip
        found = {name: score["value"] for name, score in configs[task]["scores"]["metrics"].items()}
        values = values_of_rows(found, {"match": rows})
        lines = [sample(task, i, own, list(langs)[i % len(langs)]) for i, own in enumerate(values)]
        text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
        (home / f"samples_{task}_{DATE}.jsonl").write_text(text, "utf-8")
    # the harness's mean over the tasks, unless the test gives another
    means = [config["scores"]["metrics"]["match"]["value"] for config in configs.values()
             if config["scores"]["metrics"].get("match", {}).get("value") is not None]  # fmt: skip
    mean = sum(means) / len(means) if means else 0.5
    results = {
        "results": {"rag": {"match,none": mean, "match_stderr,none": 0.18, "alias": "rag", "unscored,none": 0.25}},
        "configs": configs,
        "group_subtasks": {"rag": list(answers)},
        "higher_is_better": {task: {"match": True, "language_mix": False} for task in answers},
        "model_name": model,
        "lm_eval_version": "0.4.13",
        "date": 1_767_225_600.0,
        "config": {"model": "hf", "model_args": {"pretrained": model}},
        "total_evaluation_time_seconds": "12.5",
    }
    (home / f"results_{DATE}.json").write_text(json.dumps(with_all_records(results)), "utf-8")
    return folder


def values_of_rows(means: dict[str, float | None], rows: dict[str, list[float]]) -> list[dict[str, float]]:
    """Return the values of four rows whose means are these: those of ``rows`` if they have them, else all alike."""
    columns = {
        name: own if (own := rows.get(name, [])) and sum(own) / len(own) == mean else [mean] * 4
        for name, mean in means.items()
        if mean is not None
    }
    return [{name: column[i] for name, column in columns.items()} for i in range(4)]


def fingerprint(run: Path) -> str:
    """Return the hash of what the German task measures."""
    (file,) = read_results([run])
    record = file.measurement("rag_de")
    assert record is not None
    return record.sha256


def sample(task: str, i: int, values: dict[str, float], lang: str) -> dict[str, Any]:
    passage = {"id": "p", "lang": lang, "title": "Harbour master", "text": "The lighthouse of Varga is old."}
    doc = {"id": f"{task}-{i}", "query": "Which town is it?", "query_lang": lang, "answers": ["Varga"]}
    return {
        "doc": {**doc, "passages": [passage]},
        "arguments": {"gen_args_0": {"arg_0": "The lighthouse of Varga is old. Which town is it?", "arg_1": "{}"}},
        "filtered_resps": ["some town"],
        "rows": {"row": doc["id"], "cell": {"query_lang": lang}, "values": values},
    }


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return write_run(tmp_path / "run")


def options(tmp_path: Path, **more: Any) -> Options:
    return Options(output=tmp_path / "out", **more)


# ------------------------------------------------------------------ what is exported


def test_tasks_groups_cells_and_reasons_are_all_there(run: Path) -> None:
    (found,) = runs_of([run])[0]
    assert (found.file.model, found.file.time.isoformat()) == ("org/model", "2026-01-01T00:00:00+00:00")
    group, one, multi = found.tasks
    assert (group.name, group.leaf, group.scores[0].tasks) == ("rag", None, "rag_de, rag_multi")
    assert [s.metric for s in one.overall] == ["match", "language_mix", "judged_accuracy"]
    assert {s.cell: s.value for s in multi.scores if s.dimension == "query_lang"} == {"ar": 0.0, "en": 0.5}
    blank = one.overall[-1]
    assert (blank.value, blank.reason, blank.unscored_reasons) == (None, "timeout", {"timeout": 4})
    assert [s.metric for s in one.overall if s.lower_is_better] == ["language_mix"]


def test_a_group_s_interval_belongs_to_the_mean_it_reports(run: Path) -> None:
    """The mean of (3/4, 1/4) is 1/2, as the harness says; the interval of a weighted mean is unknown."""
    (found,) = runs_of([run])[0]
    (match,) = found.tasks[0].overall
    assert (match.value, match.n, match.stderr) == (0.5, 8, 0.18)
    assert match.low is not None
    assert match.high is not None
    assert match.low < 0.5 < match.high
    path = next(run.rglob("results_*.json"))
    content = json.loads(path.read_text("utf-8"))
    content["results"]["rag"]["match,none"] = 0.6
    path.write_text(json.dumps(content), "utf-8")
    (match,) = runs_of([run])[0][0].tasks[0].overall
    assert (match.value, match.n, match.stderr, match.mean) == (None, None, None, None)
    assert match.reason == "lm-eval's mean is neither that of its tasks nor weighted by their rows"


@pytest.mark.parametrize(
    ("reported", "mean", "weights"),
    [
        # .9 on 90 of 100 rows and .5 on 10 of 20: (100 x .9 + 20 x .5) / 120, as lm-eval weights
        (100 / 120, "mean weighted by rows of 2 tasks", "rag_de 100, rag_multi 20"),
        (0.7, "unweighted mean of 2 tasks", "rag_de 1, rag_multi 1"),
        # over the scored rows: (81 + 5) / 100, which lm-eval never reports
        (0.86, None, None),
    ],
)
def test_a_group_says_which_mean_it_is(
    reported: float, mean: str | None, weights: str | None, run: Path, tmp_path: Path
) -> None:
    path = next(run.rglob("results_*.json"))
    content = json.loads(path.read_text("utf-8"))
    for task, value, n, rows in (("rag_de", 0.9, 90, 100), ("rag_multi", 0.5, 10, 20)):
        content["configs"][task]["scores"]["metrics"]["match"] = {"value": value, "n": n}
        content["results"][task] = {"match,none": value, "sample_len": rows}
    content["results"]["rag"]["match,none"] = reported
    path.write_text(json.dumps(content), "utf-8")
    # of other rows than these
    for samples in run.rglob("samples_*"):
        samples.unlink()
    match = next(score for score in runs_of([run])[0][0].tasks[0].overall if score.metric == "match")
    assert (match.mean, match.weights, match.tasks) == (mean, weights, "rag_de, rag_multi")
    assert (match.value, match.n) == ((None, None) if mean is None else (reported, 100))
    notes = [
        entry["notes"] for entry in yaml.safe_load(_entries(run, tmp_path)) if "rag" in entry["dataset"]["task_id"]
    ]
    assert any(f"mean: {mean}, weights: {weights}" in note for note in notes) == (mean is not None)


def _entries(run: Path, tmp_path: Path) -> str:
    (file,) = export([run], "eval-results", options(tmp_path)).files
    return file.read_text("utf-8")


def test_one_metric_may_be_chosen_and_an_unknown_one_is_named(run: Path) -> None:
    (found,) = runs_of([run], ["language_mix"])[0]
    assert {s.metric for task in found.tasks for s in task.scores} == {"language_mix"}
    with pytest.raises(DataError, match="did you mean 'match'"):
        runs_of([run], ["matsch"])


def test_every_export_is_found_and_writes_to_its_own_place(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert {*EXPORTS} == {"model-index", "eval-results", "eee", "mteb", "latex", "csv"}
    monkeypatch.chdir(tmp_path)
    for name, declared in EXPORTS.items():
        files = export([run], name, Options()).files
        assert all(file.parts[0] == "export" and file.is_file() for file in files)
        if declared.file is not None:
            assert files == (Path("export", declared.file),)


# ------------------------------------------------------------------ model card


def test_a_new_card_reads_back_with_intervals(run: Path, tmp_path: Path) -> None:
    written = export([run], "model-index", options(tmp_path, source_url="https://example.org/run"))
    (card,) = written.files
    metadata = metadata_load(card)
    assert metadata is not None
    name, results = model_index_to_eval_results(metadata["model-index"])
    assert name == "org/model"
    by = {(r.dataset_config, r.metric_type): r for r in results}
    one = by["rag_de", "match"]
    assert (one.metric_value, one.dataset_type, one.dataset_revision) == (0.75, "google/xquad", "abc123")
    assert (one.dataset_split, one.source_url) == ("validation", "https://example.org/run")
    assert one.metric_args == {
        "n": 4, "low": 0.65, "high": 0.85, "interval": "Wilson", "unit": "share", "better": "higher"
    }  # fmt: skip
    assert one.dataset_args is not None
    assert (one.dataset_args["retrieval_mode"], one.dataset_args["passages"]) == ("qlang", "3")
    assert by["rag_de", "language_mix"].metric_args["unscored"] == {"too short": 1}  # type: ignore[index]
    assert by["rag", "match"].metric_value == 0.5
    assert ("rag_de", "judged_accuracy") not in by
    assert "rag_de, judged_accuracy: no figure (timeout)" in written.notes


def test_other_content_of_a_card_stays(run: Path, tmp_path: Path) -> None:
    card = tmp_path / "README.md"
    other = {
        "task": {"type": "text-generation"},
        "dataset": {"name": "MMLU", "type": "cais/mmlu", "somekey": 1},
        "metrics": [{"type": "acc", "value": 0.4, "verified": True}],
    }
    front = {"license": "apache-2.0", "tags": ["x"], "model-index": [{"name": "My Model", "results": [other]}]}
    card.write_text(f"---\n{yaml.safe_dump(front)}---\n\n# Mine\n\nText with --- in it.\n", "utf-8")
    for _ in range(2):  # the second time nothing is duplicated
        export([run], "model-index", options(tmp_path, card=card))
        metadata = metadata_load(card)
        assert metadata is not None
        (index,) = metadata["model-index"]
        assert (index["name"], metadata["license"], metadata["tags"]) == ("My Model", "apache-2.0", ["x"])
        assert index["results"][0] == other
        assert len(index["results"]) == 4
        assert card.read_text("utf-8").endswith("\n# Mine\n\nText with --- in it.\n")
    # another metric of one of our tasks is kept next to the new ones
    index["results"][1]["metrics"].append({"type": "bleu", "value": 0.1, "name": "bleu"})
    card.write_text(f"---\n{yaml.safe_dump(metadata)}---\n", "utf-8")
    export([run], "model-index", options(tmp_path, card=card))
    kinds = [m["type"] for m in metadata_load(card)["model-index"][0]["results"][1]["metrics"]]  # type: ignore[index]
    assert sorted(kinds) == ["bleu", "match"]


@pytest.mark.parametrize("form", EXPORTS)
def test_no_format_is_written_with_a_key(run: Path, tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mrag_eval.report.exports._formats.hide", lambda line: line.replace("0", "(hidden)"))
    with pytest.raises(DataError, match=r"line \d+: would hold a key of yours") as refused:
        export([run], form, Options(output=tmp_path / "new" / (EXPORTS[form].file or "out")))
    named = Path(refused.value.message.partition(", line")[0])
    assert named.is_relative_to(tmp_path / "new")
    assert not named.exists()


def test_a_card_that_cannot_be_read_is_left_alone(run: Path, tmp_path: Path) -> None:
    card = tmp_path / "README.md"
    card.write_text("---\na: [\n---\ntext\n", "utf-8")
    with pytest.raises(DataError, match="front matter"):
        export([run], "model-index", options(tmp_path, card=card))
    assert card.read_text("utf-8") == "---\na: [\n---\ntext\n"


def test_a_card_belongs_to_one_model(run: Path, tmp_path: Path) -> None:
    write_run(run, "org/other")
    with pytest.raises(ConfigError, match="of 2: org/model, org/other"):
        export([run], "model-index", options(tmp_path))


# ------------------------------------------------------------------ .eval_results


def test_evaluation_files_of_the_hub(run: Path, tmp_path: Path) -> None:
    written = export([run], "eval-results", options(tmp_path, metrics=("match", "language_mix")))
    (path,) = written.files
    assert path.relative_to(tmp_path / "out").as_posix() == ".eval_results/google__xquad.yaml"
    entries = {e.task_id: e for e in parse_eval_result_entries(yaml.safe_load(path.read_text("utf-8")))}
    assert set(entries) == {"rag", "rag_de", "rag_de.language_mix", "rag_multi", "rag_multi.language_mix"}
    one = entries["rag_de"]
    assert (one.dataset_id, one.value, one.dataset_revision) == ("google/xquad", 0.75, "abc123")
    assert one.date == "2026-01-01T00:00:00Z"
    assert one.notes is not None
    for part in (
        "match 0.750",
        "95% [0.650, 0.850]",
        "n = 4",
        "IR mode qlang",
        "3 passages",
        f"fingerprint {fingerprint(run)[:12]}",
    ):
        assert part in one.notes
    assert "1 row unscored (too short)" in str(entries["rag_de.language_mix"].notes)
    assert any("registered as a benchmark" in note for note in written.notes)


def test_entries_of_other_tasks_stay_and_ours_are_replaced(run: Path, tmp_path: Path) -> None:
    path = tmp_path / "out" / ".eval_results" / "me__bench.yaml"
    path.parent.mkdir(parents=True)
    old = [
        {"dataset": {"id": "me/bench", "task_id": "theirs"}, "value": 3},
        {"dataset": {"id": "me/bench", "task_id": "rag_de"}, "value": 0.1},
    ]
    path.write_text(yaml.safe_dump(old), "utf-8")
    export([run], "eval-results", options(tmp_path, dataset="me/bench", metrics=("match",)))
    entries = parse_eval_result_entries(yaml.safe_load(path.read_text("utf-8")))
    assert [(e.task_id, e.value) for e in entries] == [
        ("theirs", 3),
        ("rag", 0.5),
        ("rag_de", 0.75),
        ("rag_multi", 0.25),
    ]
    assert entries[1].dataset_revision is None


def test_your_own_rows_have_no_place_on_the_hub_unless_one_is_named(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", benchmark="jsonl")
    written = export([run], "eval-results", options(tmp_path))
    assert written.files == ()
    assert any("--dataset" in note for note in written.notes)


# ------------------------------------------------------------------ Every Eval Ever


def eee(run: Path, tmp_path: Path, **more: Any) -> tuple[dict[str, Any], list[dict[str, Any]], tuple[str, ...]]:
    written = export([run], "eee", options(tmp_path, command_of=lambda path: f"mrag-eval run {path.name}", **more))
    record_path, rows_path = written.files
    rows = [json.loads(line) for line in rows_path.read_text("utf-8").splitlines()]
    record = json.loads(record_path.read_text("utf-8"))
    assert record_path.relative_to(tmp_path / "out").parts[:4] == ("data", "mrag_eval", "org", "model")
    details = record["detailed_evaluation_results"]
    assert (tmp_path / "out" / details["file_path"]) == rows_path
    assert details["checksum"] == hashlib.sha256(rows_path.read_bytes()).hexdigest()
    assert details["total_rows"] == len(rows)
    return record, rows, written.notes


def test_records_hold_to_the_schema(run: Path, tmp_path: Path) -> None:
    record, rows, notes = eee(run, tmp_path)
    jsonschema.Draft202012Validator.check_schema(RECORD)
    jsonschema.validate(record, RECORD)
    for row in rows:
        jsonschema.validate(row, ROW)
        assert row["evaluation_id"] == record["evaluation_id"]
    known = {result["evaluation_result_id"] for result in record["evaluation_results"]}
    assert {row["evaluation_result_id"] for row in rows} <= known
    assert len(known) == len(record["evaluation_results"])
    assert notes == ()
    # the same run keeps its file
    before = sorted(p.name for p in (tmp_path / "out").rglob("*.json"))
    eee(run, tmp_path)
    assert sorted(p.name for p in (tmp_path / "out").rglob("*.json")) == before


def test_the_schema_would_notice(run: Path, tmp_path: Path) -> None:
    record, rows, _ = eee(run, tmp_path)
    for spoil in (
        lambda r: r.pop("eval_library"),
        lambda r: r.update(extra=1),
        lambda r: r["model_info"]["additional_details"].update(deployment_type="here"),
        lambda r: r["evaluation_results"][0]["score_details"].update(score="0.5"),
        lambda r: r["evaluation_results"][0]["metric_config"].pop("min_score"),
        lambda r: r["detailed_evaluation_results"].update(file_path="samples.jsonl"),
    ):
        broken = json.loads(json.dumps(record))
        spoil(broken)
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(broken, RECORD)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**rows[0], "messages": []}, ROW)


def test_figures_of_a_record(run: Path, tmp_path: Path) -> None:
    record, rows, _ = eee(run, tmp_path)
    by = {result["evaluation_result_id"]: result for result in record["evaluation_results"]}
    one = by["rag_de:match"]
    assert one["score_details"]["score"] == 0.75
    uncertainty = one["score_details"]["uncertainty"]
    assert uncertainty["num_samples"] == 4
    assert uncertainty["confidence_interval"] == {
        "lower": 0.65, "upper": 0.85, "confidence_level": 0.95, "method": "Wilson"
    }  # fmt: skip
    assert one["source_data"]["hf_repo"] == "google/xquad"
    assert one["generation_config"]["generation_args"]["execution_command"].startswith("mrag-eval run results_")
    assert one["generation_config"]["generation_args"]["max_tokens"] == 16
    assert by["rag_de:language_mix"]["metric_config"]["lower_is_better"] is True
    assert by["rag_de:language_mix"]["score_details"]["details"] == {"unscored: too short": "1"}
    assert by["rag_multi[query_lang=en]:match"]["score_details"]["score"] == 0.5
    assert by["rag:match"]["score_details"]["uncertainty"]["standard_error"]["value"] == 0.18
    assert record["source_metadata"]["additional_details"] == {
        "rag_de, judged_accuracy": "timeout",
        "rag_multi, judged_accuracy": "timeout",
    }
    assert record["model_info"]["additional_details"] == {
        "deployment_type": "self_deployed",
        "model_availability": "open_weights",
    }
    first = rows[0]
    assert (first["sample_id"], first["evaluation"]) == ("rag_de-0", {"score": 1.0, "is_correct": True})
    assert first["output"]["raw"] == ["some town"]


def test_judges_are_named_where_they_judged(tmp_path: Path) -> None:
    judge = {"judges": {"a": {"model": "acme/judge"}}}
    metrics = {"judged_accuracy": cell(0.5)}
    run = write_run(tmp_path / "run", scores={"judge": judge, "metrics": metrics}, judge={"prompt": "correctness"})
    record, _, _ = eee(run, tmp_path)
    jsonschema.validate(record, RECORD)
    by = {result["evaluation_result_id"]: result["metric_config"] for result in record["evaluation_results"]}
    scoring = by["rag_de:judged_accuracy"]["llm_scoring"]
    (judge_info,) = (one["model_info"] for one in scoring["judges"])
    assert (judge_info["id"], judge_info["developer"]) == ("acme/judge", "acme")
    assert "llm_scoring" not in by["rag_de:match"]


@pytest.mark.parametrize("form", EXPORTS)
@pytest.mark.parametrize(
    ("about", "metric"),
    [("judge", "judged_accuracy"), ("sufficiency", "context_sufficiency"), ("claims", "grounded")],
)
def test_the_votes_that_failed_are_in_every_format_and_the_text_report(
    form: str, about: str, metric: str, tmp_path: Path
) -> None:
    dead = {"model": "acme/dead", "correct": cell(None, 0), "abstained": {"connection": 3, "stopped": 1}}
    judges = {"alive": {"model": "acme/alive", "correct": cell(1.0, 4)}, "gone": dead}
    run = write_run(tmp_path / "run", scores={about: {"judges": judges}, "metrics": {metric: cell(0.5)}})
    (tmp_path / "out").mkdir()
    made = EXPORTS[form].file
    where = tmp_path / "out" if made is None else tmp_path / "out" / made
    files = export([run], form, Options(output=where, metrics=("match", metric))).files
    text = " ".join(" ".join(file.read_text("utf-8").split()) for file in files)
    assert "gone 4 of 4 (3 connection, 1 stopped)" in text
    assert "no judge of this run: gone" in text
    assert "acme/dead" not in text
    assert ("acme/alive" in text) == (form != "latex")
    assert "gone 4 of 4 (3 connection, 1 stopped)" in render(score_tables([run]))


# ------------------------------------------------------------------ texts


@pytest.mark.parametrize("benchmark", ["xrag", "click", "xor_tydi", "jsonl", "somebody_s_new_one"])
def test_texts_without_a_licence_that_allows_it_stay_here(tmp_path: Path, benchmark: str) -> None:
    run = write_run(tmp_path / "run", benchmark=benchmark)
    _, rows, notes = eee(run, tmp_path)
    whole = "".join(p.read_text("utf-8") for p in (tmp_path / "out").rglob("*") if p.is_file())
    assert not [text for text in SECRET_TEXTS if text in whole]
    assert "some town" in whole  # the model's own words
    assert {row["metadata"]["text"].split(":")[0] for row in rows} == {"withheld"}
    assert any("left out" in note for note in notes)
    for row in rows:
        jsonschema.validate(row, ROW)
    _, rows, notes = eee(run, tmp_path, include_text=True)
    assert rows[0]["input"]["raw"] == "Which town is it?"
    assert "lighthouse" in rows[0]["input"]["formatted"]
    assert notes == ()


def test_a_chat_is_json_and_a_row_is_correct_as_its_metric_says(tmp_path: Path) -> None:
    """A measure of which less is better is right at 0; what it gave as JSON is not quoted again."""
    run = write_run(tmp_path / "run", scores={"metrics": {"language_mix": cell(0.0)}})
    for path in run.rglob("samples_*"):
        lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        for line in lines:
            turns = json.dumps([{"role": "user", "content": "Which town is it?"}])
            line["arguments"]["gen_args_0"]["arg_0"] = [turns]
        path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    _, rows, _ = eee(run, tmp_path, include_text=True)
    assert json.loads(rows[0]["input"]["formatted"]) == [{"role": "user", "content": "Which town is it?"}]
    mixed = [row["evaluation"] for row in rows if row["evaluation_result_id"].endswith(":language_mix")]
    assert mixed
    assert mixed == [{"score": 0.0, "is_correct": True}] * len(mixed)


@pytest.mark.parametrize("form", sorted({*EXPORTS} - {"eee"}))
def test_no_other_format_holds_any_text(run: Path, tmp_path: Path, form: str) -> None:
    written = export([run], form, options(tmp_path))
    assert written.files
    for file in written.files:
        assert not [text for text in SECRET_TEXTS if text in file.read_text("utf-8")]


def test_passages_of_another_corpus_stay_even_where_questions_may_go(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", retrieval={"corpus": "wikipedia"})
    _, rows, _ = eee(run, tmp_path)
    assert rows[0]["input"]["raw"] == "Which town is it?"
    assert rows[0]["input"]["formatted"] is None


def test_every_benchmark_with_a_hub_has_been_looked_at() -> None:
    from mrag_eval.datasets import LOADERS

    known = {name for name in LOADERS if source_of(TaskConfig({"data": {"benchmark": name}})).name != name}
    # the licence of a user's own rows cannot be known here
    assert set(LOADERS) - known <= {"jsonl"}
    assert not source_of(TaskConfig({"data": {"benchmark": "xlcost", "domain": "own"}})).shareable
    assert source_of(TaskConfig({"data": {"benchmark": "xlcost", "domain": "legal"}})).shareable


# ------------------------------------------------------------------ tables


def test_scores_by_language_in_the_shape_of_mteb(run: Path, tmp_path: Path) -> None:
    export([run], "mteb", options(tmp_path, metrics=("match", "language_mix", "judged_accuracy")))
    home = tmp_path / "out" / "results" / "org__model" / "no_revision_available"
    assert json.loads((home / "model_meta.json").read_text("utf-8"))["name"] == "org/model"
    multi = json.loads((home / "rag_multi.json").read_text("utf-8"))
    assert (multi["task_name"], multi["dataset_revision"], multi["run_time"]) == ("rag_multi", "abc123", 12.5)
    arabic, english = multi["scores"]["validation"]
    assert (arabic["hf_subset"], arabic["languages"], arabic["main_score"]) == ("ar", ["ara-Arab"], 0.0)
    assert (english["languages"], english["match_low"], english["match_high"]) == (["eng-Latn"], 0.4, 0.6)
    whole = multi["overall"]
    assert (whole["hf_subset"], whole["main_score"], whole["match_n"]) == ("default", 0.25, 4)
    assert whole["judged_accuracy"] is None
    assert whole["judged_accuracy_reason"] == "timeout"
    assert multi["unscored"]["language_mix"] == {"too short": 1}
    german = json.loads((home / "rag_de.json").read_text("utf-8"))["scores"]["validation"]
    assert [row["hf_subset"] for row in german] == ["de"]


def test_csv_has_a_line_a_figure(run: Path, tmp_path: Path) -> None:
    path = tmp_path / "x" / "scores.csv"
    export([run], "csv", Options(output=path))
    lines = list(csv.DictReader(path.open(encoding="utf-8")))
    one = next(line for line in lines if line["task"] == "rag_de" and line["metric"] == "match")
    assert (one["value"], one["low"], one["n"], one["kind"]) == ("0.75", "0.65", "4", "task")
    assert (one["retrieval_mode"], one["fingerprint"]) == ("qlang", fingerprint(run))
    blank = next(line for line in lines if line["task"] == "rag_de" and line["metric"] == "judged_accuracy")
    assert (blank["value"], blank["reason"], blank["unscored"]) == ("", "timeout", "4 rows unscored (timeout)")
    assert {line["kind"] for line in lines} == {"group", "task"}
    assert {(line["dimension"], line["cell"]) for line in lines} == {
        ("", ""), ("query_lang", "ar"), ("query_lang", "en")
    }  # fmt: skip


def test_a_value_without_a_count_has_no_n(tmp_path: Path) -> None:
    """The count is empty if none is recorded, and 0 if no row could be scored."""
    macro: dict[str, Any] = {
        "same_language": {"value": None, "reason": "no such pair"},
        "cross_language": {"value": None, "n": 0, "method": "stratified bootstrap", "reason": "no scored rows"},
    }
    run = write_run(tmp_path / "run", scores={"metrics": {"match": {"macro": macro}}})
    (path,) = export([run], "csv", Options(output=tmp_path / "scores.csv")).files
    lines = [line for line in csv.DictReader(path.open(encoding="utf-8")) if line["task"] == "rag_de"]
    counts = {line["cell"] or line["metric"]: line["n"] for line in lines}
    scored = {"match": "4", "language_mix": "3", "judged_accuracy": "0"}
    assert counts == {**scored, "same_language": "", "cross_language": "0"}


def test_latex_escapes_marks_the_best_and_says_what_is_blank(run: Path) -> None:
    write_run(run, "org/other_100%", shift=0.2)
    text = latex_table(runs_of([run])[0], bold=True)
    lines = text.splitlines()
    de = [line for line in lines if line.startswith(r"rag\_de &")]
    assert de[0].startswith(r"rag\_de & org/model & 75.0 {\scriptsize [65.0, 85.0]} & \textbf{25.0")
    assert r"org/other\_100\% & \textbf{95.0 {\scriptsize [85.0, 100.0]}}" in de[1]
    blank = r"judged\_accuracy, 4 rows unscored (timeout): rag\_de, org/model; rag\_de, org/other\_100\%;"
    assert blank in lines[-1]
    assert "n from 3 to 8" in lines[-1]
    # every row has the same number of columns
    body = [line for line in lines if line.endswith(r"\\")]
    assert {len(re.findall(r"(?<!\\)&", line)) for line in body} == {4}
    assert text.count("{") - text.count(r"\{") == text.count("}") - text.count(r"\}")
    assert "\\textbf" not in latex_table(runs_of([run])[0])


def test_every_special_character_of_latex_is_escaped() -> None:
    assert escaped(r"a_b & 5% $x #1 {y} ~ ^ \z") == (
        r"a\_b \& 5\% \$x \#1 \{y\} \textasciitilde{} \textasciicircum{} \textbackslash{}z"
    )


# ------------------------------------------------------------------ sending


class Hub:
    """Stands in for the hub; keeps every file it is sent."""

    def __init__(self, card: Path | None = None) -> None:
        self.card, self.commits = card, []

    def hf_hub_download(self, repo_id: str, filename: str) -> str:
        from huggingface_hub.errors import EntryNotFoundError

        assert (repo_id, filename) == ("org/model", "README.md")
        if self.card is None:
            raise EntryNotFoundError("no such file", response=SimpleNamespace(headers={}, request=None))  # type: ignore[arg-type]
        return str(self.card)

    def create_commit(self, **what: Any) -> Any:
        self.commits.append(what)
        return SimpleNamespace(pr_url="https://hub/pr/1", commit_url="https://hub/commit")


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Hub:
    found = Hub()
    monkeypatch.setattr(push, "api_with_token", lambda: found)
    return found


def test_without_push_the_hub_is_never_asked(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def ask() -> None:
        raise AssertionError("asked")

    monkeypatch.setattr(push, "api_with_token", ask)
    for form in ("model-index", "eval-results", "eee", "mteb"):
        assert export([run], form, options(tmp_path)).sent is None


def test_push_opens_a_pull_request_with_the_existing_card(run: Path, tmp_path: Path, hub: Hub) -> None:
    hub.card = tmp_path / "theirs.md"
    hub.card.write_text("---\nlicense: mit\n---\n# Theirs\n", "utf-8")
    written = export([run], "model-index", options(tmp_path, push="org/model"))
    assert written.sent == "https://hub/pr/1"
    (commit,) = hub.commits
    assert (commit["repo_id"], commit["repo_type"], commit["create_pr"]) == ("org/model", "model", True)
    (add,) = commit["operations"]
    assert add.path_in_repo == "README.md"
    sent = Path(add.path_or_fileobj).read_text("utf-8")
    assert "license: mit" in sent
    assert "rag_de" in sent
    assert sent.endswith("# Theirs\n")
    assert hub.card.read_text("utf-8") == "---\nlicense: mit\n---\n# Theirs\n"


def test_push_of_records_goes_to_a_dataset(run: Path, tmp_path: Path, hub: Hub) -> None:
    export([run], "eee", options(tmp_path, push="evaleval/EEE_datastore"))
    (commit,) = hub.commits
    assert commit["repo_type"] == "dataset"
    names = [add.path_in_repo for add in commit["operations"]]
    assert all(name.startswith("data/mrag_eval/org/model/") for name in names)
    assert len(names) == 2


def test_push_of_bound_texts_is_refused(tmp_path: Path, hub: Hub) -> None:
    run = write_run(tmp_path / "run", benchmark="xrag")
    with pytest.raises(ConfigError, match="XRAG may not be passed on"):
        export([run], "eee", options(tmp_path, push="a/b", include_text=True))
    assert hub.commits == []
    assert not (tmp_path / "out").exists()
    with pytest.raises(ConfigError, match="no format of the hub"):
        export([run], "csv", options(tmp_path, push="a/b"))


def test_push_without_a_token_says_how_to_get_one(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub

    monkeypatch.setattr(huggingface_hub, "get_token", lambda: None)
    with pytest.raises(ConfigError, match="no token") as caught:
        export([run], "eee", options(tmp_path, push="a/b"))
    assert "HF_TOKEN" in str(caught.value.next_step)


def test_an_unknown_format_is_named(run: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="did you mean 'latex'"):
        export([run], "latx", options(tmp_path))
