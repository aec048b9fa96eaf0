"""The command that repeats a run, and the comparison of the two runs' numbers."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from lm_eval.utils import handle_non_serializable

import mrag_eval
from mrag_eval.cli import _harness as harness
from mrag_eval.cli import main
from mrag_eval.config import dotted, package_versions
from mrag_eval.platform import DataError
from mrag_eval.report import repeated, rerun
from tests.task.test_hook import run
from tests.worlds.measured import recorded
from tests.worlds.small import BASE, write_task


def results_file(folder: Path, **changes: Any) -> Path:
    """Write a result file with one of our tasks, as a run does."""
    versions = {"versions": package_versions() | changes.pop("versions", {})}
    given, from_file, file = (
        changes.pop("given", {}),
        changes.pop("from_file", {}),
        "/there/site-packages/lm_eval/tasks/mrag_eval/xquad/xquad_rag.yaml",
    )
    config: dict[str, Any] = {
        "scores": {"metrics": {"match": {"value": 0.5, "n": 2}}},
        "metadata": {"version": 1.0, "config_source": changes.pop("file", file)},
        "provenance": {"overrides": list(dotted(given)), "config_file": list(dotted(from_file))},
    }
    roles = {"setting": given | from_file | changes.pop("setting", {}), "instrument": changes.pop("instrument", {})}
    config["measurement"] = recorded("xquad_rag", config, environment=versions, **roles)
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
        "model_args": {"pretrained": "org/a", "eos_string": "a, b's", "dtype": "float16", "parallelize": True},
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
        given={"retrieval": {"mode": "all", "k": 3}, "prompt": {"system": 'Say "yes" & $HOME'}},
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
    record = {"setting": {"run": {"samples": [4, 2]}}, "instrument": {"judges": judges}, "versions": {"numpy": "0.1"}}
    found = rerun(results_file(tmp_path, file="/gone/mine.yaml", **record), Path("again"), own)
    notes = "\n".join(found.notes)
    assert "include_path=/gone" in found.notes[0]
    assert "--include_path" not in found.command
    assert "--include_path /gone" in rerun(found.source, Path("again"), own, trust=True).command
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
        assert f"{task}: the same measurement, all " in out
    assert list(Path("two").rglob("samples_small_*.jsonl"))


def test_numbers_that_moved_are_named(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    a = results_file(tmp_path)
    content = json.loads(a.read_text("utf-8"))
    content["configs"]["xquad_rag"]["scores"]["metrics"]["match"]["value"] = 0.25
    content["configs"]["xquad_rag"]["measurement"]["setting"]["prompt"] = {"template": "mine"}
    b = tmp_path / "b" / "results_x.json"
    b.write_text(json.dumps(content), "utf-8")
    (found,) = repeated(a, b)
    assert found.other == {"match.value": (0.5, 0.25)}
    said = "measured otherwise (prompt.template), 1 of 2 numbers differ: match.value 0.5, now 0.25"
    assert found.line == f"xquad_rag: {said}"


def test_the_record_is_what_the_harness_can_write(tasks: Path) -> None:
    json.dumps(run(tasks, limit=2)["configs"], default=handle_non_serializable)


def test_a_log_that_was_scored_has_no_run_to_repeat(tmp_path: Path, own: Path) -> None:
    """Whatever the log: no command of a model is printed for it."""
    log = tmp_path / "log.jsonl"
    log.write_text(
        json.dumps(
            {"question": "When?", "answer": "1841", "contexts": ["In 1841."], "reference": "1841", "lang": "en"}
        ),
        "utf-8",
    )
    given: list[dict[str, Any]] = [{}, {"hash_texts": True}, {"model": "gpt-5", "task": "mine"}]
    for more in given:
        mrag_eval.score(log, metrics=["match"], output=tmp_path / "out", **more)
        with pytest.raises(
            DataError, match="the replies are those of a log, so that there is no run to repeat"
        ) as caught:
            rerun(tmp_path / "out", tmp_path / "again", own)
        assert str(caught.value.next_step).startswith("score the log again: mrag-eval score LOG")
