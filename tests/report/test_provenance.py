"""Provenance in the results, and the command that repeats a run."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from lm_eval.utils import handle_non_serializable

from mrag_eval.cli import _harness as harness
from mrag_eval.cli import main
from mrag_eval.config import _provenance as provenance_module
from mrag_eval.report import compare, repeated, rerun
from tests.task.test_hook import run
from tests.worlds.small import BASE, write_task

HEX = "0123456789abcdef"


def record_of(tasks: Path, name: str = "small", **kwargs: Any) -> dict[str, Any]:
    found: dict[str, Any] = run(tasks, name, **kwargs)["configs"][name]["provenance"]
    return found


def differing(one: dict[str, Any], other: dict[str, Any]) -> set[str]:
    a, b = one["fingerprints"], other["fingerprints"]
    return {name for name in a if a[name] != b[name]}


# ------------------------------------------------------------------ the record


def test_a_run_records_its_inputs(tasks: Path) -> None:
    record = record_of(tasks, metadata={"retrieval.k": 1}, limit=4)
    prints = record["fingerprints"]
    assert list(prints) == ["data", "retrieval", "prompt", "judge", "rows", "task"]
    assert prints["judge"] is None
    assert all(len(p) == 64 and set(p) <= set(HEX) for p in prints.values() if p is not None)
    assert record["rows"] == 4
    assert record["samples"] is None
    assert record["overrides"] == {"retrieval": {"k": 1}}
    assert record["seeds"] == {"retrieval": 0}
    assert {"python", "mrag-eval", "lm-eval", "numpy", "bm25s"} <= set(record["versions"])
    assert record["file"] == str(tasks / "small.yaml")
    json.dumps(record, allow_nan=False)


def test_the_same_task_has_the_same_fingerprints_wherever_its_files_are(tasks: Path, tmp_path: Path) -> None:
    before = record_of(tasks)
    assert differing(before, record_of(tasks)) == set()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for name in ("questions.jsonl", "corpus.jsonl"):
        (elsewhere / name).write_bytes((tasks / name).read_bytes())
    data = {
        "benchmark": "jsonl",
        "path": str(elsewhere / "questions.jsonl"),
        "corpus": str(elsewhere / "corpus.jsonl"),
    }
    write_task(elsewhere, "small", **BASE, data=data, retrieval={"mode": "all", "k": 2, "kind": "bm25"})
    assert differing(before, record_of(elsewhere)) == set()


@pytest.mark.parametrize(
    ("metadata", "changed"),
    [
        ({"retrieval.k": 1}, {"retrieval", "task"}),
        ({"retrieval.mode": "qlang"}, {"retrieval", "task"}),
        ({"retrieval.device": "auto"}, set()),
        ({"prompt.template": "short_answer_line"}, {"prompt", "task"}),
        ({"prompt.system": "en"}, {"prompt", "task"}),
        ({"metrics": ["match"]}, {"task"}),
        ({"judge.tie": "abstain"}, set()),
    ],
)
def test_a_setting_moves_its_own_fingerprint(tasks: Path, metadata: dict[str, Any], changed: set[str]) -> None:
    assert differing(record_of(tasks), record_of(tasks, metadata=metadata)) == changed


def test_rows_data_and_decoding_move_theirs(tasks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = record_of(tasks)
    assert differing(whole, record_of(tasks, limit=3)) == {"rows", "task"}
    chosen = record_of(tasks, samples={"small": [2, 0]})
    assert chosen["samples"] == [2, 0]
    assert differing(whole, chosen) == {"rows", "task"}
    assert differing(whole, record_of(tasks, gen_kwargs="max_gen_toks=7")) == {"prompt", "task"}
    with monkeypatch.context() as patch:
        patch.setattr(provenance_module, "package_versions", lambda: {"mrag-eval": "9"})
        assert differing(whole, record_of(tasks)) == {"task"}
    other = tasks / "other" / "questions.jsonl"
    other.parent.mkdir()
    other.write_text((tasks / "questions.jsonl").read_text("utf-8").replace("1841", "1842"), "utf-8")
    assert differing(whole, record_of(tasks, metadata={"data.path": str(other)})) == {"data", "task"}


def test_a_prompt_is_identified_by_its_text(tasks: Path) -> None:
    template = tasks / "own.jinja"
    records = []
    for text in ("Answer: {{ query }}", "Reply: {{ query }}"):
        template.write_text(f"{{% block user %}}{text}{{% endblock %}}", "utf-8")
        from mrag_eval.prompts import load_template

        load_template.cache_clear()
        records.append(record_of(tasks, metadata={"prompt.template": str(template)}))
    assert differing(*records) == {"prompt", "task"}
    assert records[0]["texts"]["prompt"] != records[1]["texts"]["prompt"]


def test_without_scores_the_rows_are_not_known(tasks: Path) -> None:
    record = record_of(tasks, predict_only=True)
    assert record["rows"] is None
    assert record["fingerprints"]["rows"] is None


def test_a_judge_has_a_fingerprint_without_its_address_and_key(tasks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The model, its settings and the prompt identify a vote; the address of the server does not."""
    data = {"benchmark": "jsonl", "path": str(tasks / "questions.jsonl")}
    write_task(tasks, "judged", **{**BASE, "metrics": ["judged_accuracy"]}, data=data)
    config = tasks / "mrag.yaml"
    monkeypatch.setenv("MRAG_CONFIG", str(config))
    found = []
    for model, port in (("a/b", 1), ("a/b", 2), ("a/c", 1)):
        config.write_text(
            "judges:\n  - model: local-chat-completions\n    max_in_flight: " + str(port) + "\n"
            f"    model_args: {{model: {model}, base_url: 'http://localhost:{port}/v1/chat/completions'}}\n",
            "utf-8",
        )
        from tests.task.test_hook import build

        found.append(build(tasks, "judged").dump_config()["provenance"])
    assert found[0]["fingerprints"]["judge"] is not None
    assert differing(found[0], found[1]) == set()
    assert differing(found[0], found[2]) == {"judge", "task"}
    assert "localhost" not in json.dumps(found[0])
    assert found[0]["models"]["judges"]["b"]["args"] == {"model": "a/b"}


# ------------------------------------------------------------------ comparisons


def test_runs_with_other_texts_under_one_prompt_s_name_are_not_comparable(tmp_path: Path) -> None:
    from mrag_eval.core import DataError
    from tests.report.runs import row, write_run

    rows = {"qa": [row(i, acc=1.0) for i in range(3)]}
    a = write_run(tmp_path / "a", rows, config={"provenance": {"texts": {"prompt": "one"}}})
    b = write_run(tmp_path / "b", rows, config={"provenance": {"texts": {"prompt": "two", "judge": "x"}}})
    before = write_run(tmp_path / "c", rows)
    with pytest.raises(DataError, match=r"prompt\.text"):
        compare([a], [b])
    assert compare([a], [b], differs=["prompt"]).differences
    # a run from before texts were recorded has no information about them
    assert compare([a], [before]).differences


# ------------------------------------------------------------------ the command


def results_file(folder: Path, **changes: Any) -> Path:
    """Write a result file with one of our tasks, as a run does."""
    record = {
        "fingerprints": {"task": "0"},
        "overrides": {},
        "samples": None,
        "file": "/there/site-packages/lm_eval/tasks/mrag_eval/xquad/xquad_rag.yaml",
        "models": {},
        "versions": provenance_module.package_versions(),
    }
    config = {
        "scores": {"metrics": {"match": {"value": 0.5, "n": 2}}},
        "metadata": {"version": 1.0},
        "provenance": record | changes.pop("record", {}),
    }
    content: dict[str, Any] = {
        "configs": {"xquad_rag": config},
        "group_subtasks": {"xquad_rag": []},
        "n-shot": {"xquad_rag": 0},
        "config": {"model": "hf", "model_args": {"pretrained": "org/model"}, "batch_size": 1},
    }
    for key, value in changes.items():
        content[key] = {**content[key], **value} if isinstance(content.get(key), dict) else value
    path = folder / "results_2026-01-01T00-00-00.json"
    path.write_text(json.dumps(content), "utf-8")
    return path


@pytest.fixture
def own(tmp_path: Path) -> Path:
    folder = tmp_path / "own"
    (folder / "xquad").mkdir(parents=True)
    (folder / "xquad" / "xquad_rag.yaml").write_text("", "utf-8")
    return folder


def test_the_command_of_a_plain_run(tmp_path: Path, own: Path) -> None:
    found = rerun(results_file(tmp_path), Path("again"), own)
    expected = "mrag-eval run --model hf --model_args pretrained=org/model --tasks xquad_rag --output_path again"
    assert found.command == expected
    assert found.notes == ()


def test_everything_a_run_was_asked_for_reads_back_the_same(tmp_path: Path, own: Path) -> None:
    run_config = {
        "model": "hf",
        "model_args": {"pretrained": "org/a, b's", "dtype": "float16", "parallelize": True},
        "gen_kwargs": {"temperature": 0.7, "do_sample": True},
        "batch_size": "auto",
        "device": "cpu",
        "limit": 25.0,
        "random_seed": 1,
        "numpy_seed": None,
        "torch_seed": 3,
        "fewshot_seed": 4,
    }
    path = results_file(
        tmp_path,
        config=run_config,
        record={"overrides": {"retrieval": {"mode": "all", "k": 3}, "prompt": {"system": 'Say "yes" & $HOME'}}},
        chat_template="{{ messages }}",
        system_instruction="Be brief; it's late.",
    )
    found = rerun(path, tmp_path / "a folder", own)
    program, command, *arguments = shlex.split(found.command)
    assert (program, command) == ("mrag-eval", "run")
    asked = harness._settings(harness._parse(arguments))
    assert asked["model_args"] == run_config["model_args"]
    assert asked["gen_kwargs"] == run_config["gen_kwargs"]
    assert asked["metadata"] == {
        "retrieval": {"mode": "all", "k": 3},
        "prompt": {"system": 'Say "yes" & $HOME'},
    }
    assert (asked["limit"], asked["batch_size"], asked["device"]) == (25, "auto", "cpu")
    assert asked["seed"] == [1, None, 3, 4]
    assert asked["system_instruction"] == "Be brief; it's late."
    assert asked["apply_chat_template"] is True
    assert asked["output_path"] == str(tmp_path / "a folder")
    assert any("chat template" in note for note in found.notes)


@pytest.mark.parametrize(
    "args",
    [
        {"model": "m", "api_key": "sk-aaaaaaaaaaaaaaaaaaaaaaaa"},
        {"model": "m", "base_url": "https://user:sk-aaaaaaaaaaaaaaaaaaaaaaaa@host/v1"},
        "model=m,token=sk-aaaaaaaaaaaaaaaaaaaaaaaa",
    ],
)
def test_secrets_are_never_part_of_it(tmp_path: Path, own: Path, args: Any) -> None:
    content = json.loads(results_file(tmp_path).read_text("utf-8"))
    content["config"]["model_args"] = args
    path = tmp_path / "results_2027.json"
    path.write_text(json.dumps(content), "utf-8")
    found = rerun(path, Path("again"), own)
    assert "sk-aaaa" not in found.command + "".join(found.notes)
    assert "--model_args model=m " in found.command
    assert any("secret" in note for note in found.notes)


def test_missing_information_is_reported(tmp_path: Path, own: Path) -> None:
    judges = {"gpt": {"model": "openai-chat-completions", "args": {"model": "gpt-x"}}}
    versions = {**provenance_module.package_versions(), "numpy": "0.1"}
    record = {"file": "/gone/mine.yaml", "models": {"judges": judges}, "versions": versions, "samples": [4, 2]}
    found = rerun(results_file(tmp_path, record=record), Path("again"), own)
    notes = "\n".join(found.notes)
    assert "--include_path /gone" in found.command
    assert "/gone/mine.yaml, which is not there" in notes
    assert "gpt (openai-chat-completions gpt-x)" in notes
    assert "numpy 0.1 (here" in notes
    assert """--samples '{"xquad_rag": [4, 2]}'""" in found.command


def test_a_run_and_its_repetition_give_equal_numbers(
    tasks: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Run a command with overrides and a limit, then the command that its results give."""
    monkeypatch.chdir(tasks)
    (tasks / "both.yaml").write_text("group: both\ntask: [small, other]\n", "utf-8")
    data = {"benchmark": "jsonl", "path": str(tasks / "questions.jsonl")}
    write_task(tasks, "other", **{**BASE, "metrics": ["char3gram_recall"]}, data=data)
    with pytest.raises(SystemExit) as done:
        main(
            shlex.split(
                "run --model oracle_answer --tasks both --include_path . --output_path one --log_samples "
                "--limit 7 --metadata retrieval.k=1,small.prompt.max_tokens=900 --seed 5"
            )
        )
    assert done.value.code == 0
    capsys.readouterr()
    with pytest.raises(SystemExit) as done:
        main(["rerun", "one", "--output", "two", "--run", "--trust"])
    out = capsys.readouterr().out
    assert done.value.code == 0, out
    first, second = (next(Path(name).rglob("results_*.json")) for name in ("one", "two"))
    before, after = (json.loads(path.read_text("utf-8"))["configs"] for path in (first, second))
    for task in ("small", "other"):
        assert before[task]["scores"] == after[task]["scores"]
        assert before[task]["provenance"]["fingerprints"] == after[task]["provenance"]["fingerprints"]
        assert f"{task}: same fingerprints, all " in out
    assert list(Path("two").rglob("samples_small_*.jsonl"))


def test_numbers_that_moved_are_named(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    a = results_file(tmp_path)
    content = json.loads(a.read_text("utf-8"))
    content["configs"]["xquad_rag"]["scores"]["metrics"]["match"]["value"] = 0.25
    content["configs"]["xquad_rag"]["provenance"]["fingerprints"]["task"] = "1"
    b = tmp_path / "b" / "results_x.json"
    b.write_text(json.dumps(content), "utf-8")
    (found,) = repeated(a, b)
    assert found.other == {"match.value": (0.5, 0.25)}
    assert found.line == "xquad_rag: other fingerprints: task, 1 of 2 numbers differ: match.value 0.5, now 0.25"


def test_the_record_is_what_the_harness_can_write(tasks: Path) -> None:
    json.dumps(run(tasks, limit=2)["configs"], default=handle_non_serializable)
