"""Faults of any task of a run, and of the model, which are found before anything is retrieved for the first task."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import huggingface_hub
import pytest
from huggingface_hub import errors

from mrag_eval import evaluate
from mrag_eval.cli import main
from mrag_eval.platform import ConfigError, MragError, check_weights
from mrag_eval.retrieval import TaskRows
from tests.attacks.bad_inputs.place import own_tasks_in
from tests.task.test_hook import run
from tests.worlds.small import BASE, write_task, write_world

_SEARCH = {"mode": "all", "k": 2, "kind": "bm25"}
_API = {"kind": "api", "url": "http://127.0.0.1:9/rerank", "model": "m", "api_key_env": "NO_SUCH_KEY"}
_TEMPLATES = {
    "passage.jinja": "{% block user %}{% for p in passages %}{{ p.titel }}{% endfor %}{% endblock %}",
    "query.jinja": "{% block user %}{{ queri }}{% endblock %}",
    "german.jinja": "{% block user %}{{ {'de': 'Frage'}[lang] }}{% endblock %}",
    "half.jinja": "{% block user %}{% if query %}{% endblock %}",
}
_CONFIG = {
    "models": {
        "paid": {"model": "openai-chat-completions", "model_args": {"model": "m"}},
        "gone": {"model": "hf", "model_args": {"pretrained": "./gone"}},
        "odd": {"model": "no-such-type"},
        "near": {
            "model": "local-chat-completions",
            "model_args": {"model": "m", "base_url": "http://127.0.0.1:9/v1/chat/completions"},
        },
    }
}
# Keys of the second task, and words of the message.
FAULTS: list[tuple[dict[str, Any], Sequence[str]]] = [
    ({"metrics": ["matchh"]}, ["metrics", "matchh", "match"]),
    ({"metrics": ["hit@0"]}, ["metrics", "hit@0"]),
    ({"prompt": {"template": "short_anser"}}, ["prompt.template", "short_answer"]),
    ({"prompt": {"template": "./half.jinja"}}, ["half.jinja"]),
    ({"prompt": {"template": "./query.jinja"}}, ["query.jinja", "queri"]),
    ({"prompt": {"template": "./passage.jinja"}}, ["passage.jinja", "titel"]),
    ({"prompt": {"template": "./german.jinja"}}, ["german.jinja"]),
    ({"output_type": "multiple_choice"}, ["no choices"]),
    ({"retrieval": {**_SEARCH, "mode": "coral"}}, ["planner"]),
    ({"retrieval": {**_SEARCH, "mode": "coral"}, "agent": {"planner": "nobody"}}, ["nobody"]),
    ({"retrieval": {**_SEARCH, "mode": "coral"}, "agent": {"planner": "paid"}}, ["OPENAI_API_KEY"]),
    ({"retrieval": {**_SEARCH, "mode": "coral"}, "agent": {"planner": "gone"}}, ["gone", "./gone"]),
    (
        {"retrieval": {**_SEARCH, "mode": "coral"}, "agent": {"planner": "near", "prompts": {"plan": "pln"}}},
        ["agent.prompt", "pln"],
    ),
    ({"retrieval": {**_SEARCH, "rerank": {"kind": "listwise", "model": "nobody"}}}, ["nobody"]),
    ({"retrieval": {**_SEARCH, "rerank": {"kind": "listwise", "model": "near", "prompt": "lst"}}}, ["rerank", "lst"]),
    ({"retrieval": {**_SEARCH, "rerank": {"kind": "listwise", "model": "paid"}}}, ["OPENAI_API_KEY"]),
    ({"retrieval": {**_SEARCH, "rerank": _API}}, ["NO_SUCH_KEY"]),
    (
        {"retrieval": {**_SEARCH, "mode": "trag", "translator": {"backend": "lm", "model": "nobody"}}},
        ["nobody"],
    ),
    ({"retrieval": {**_SEARCH, "corpus": "wikipedia"}}, ["wikipedia"]),
    ({"data": {"benchmark": "jsonl", "path": "gone.jsonl"}}, ["gone.jsonl"]),
]
# The same where somebody judges.
JUDGED: list[tuple[dict[str, Any], Sequence[str]]] = [
    ({"judge": {"panel": ["nobody"]}}, ["nobody"]),
    ({"judge": {"panel": ["paid"]}}, ["OPENAI_API_KEY"]),
    ({"judge": {"panel": ["gone"]}}, ["gone", "./gone"]),
    ({"judge": {"panel": ["odd"]}}, ["no-such-type"]),
    ({"judge": {"required": True}}, ["judge.required"]),
    ({"judge": {"panel": ["near"], "prompt": "correctnes"}}, ["judge.prompt", "correctness"]),
]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the task ``mine``, in which nothing may be retrieved."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MRAG_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("MRAG_CONFIG", "models.json")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    write_world(tmp_path)
    (tmp_path / "models.json").write_text(json.dumps(_CONFIG), "utf-8")
    for name, text in _TEMPLATES.items():
        (tmp_path / name).write_text(text, "utf-8")
    write_task(tmp_path, "mine", **BASE, data=_data(tmp_path), retrieval=_SEARCH)
    (tmp_path / "own").mkdir()
    own_tasks_in(tmp_path, monkeypatch)

    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("something was retrieved")

    monkeypatch.setattr(TaskRows, "retrieved", refuse)
    monkeypatch.setattr("mrag_eval.retrieval.retrieved_apart", refuse)
    return tmp_path


def _data(folder: Path) -> dict[str, str]:
    return {"benchmark": "jsonl", "path": str(folder / "questions.jsonl"), "corpus": str(folder / "corpus.jsonl")}


def _said(arguments: str, capsys: pytest.CaptureFixture[str]) -> list[str]:
    with pytest.raises(SystemExit) as done:
        main(arguments.split())
    assert done.value.code == 2
    lines = capsys.readouterr().err.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("mrag-eval: "))
    assert len(lines) > start + 1, "no next step"
    return lines[start:]


def _write_later(place: Path, keys: dict[str, Any]) -> None:
    judged = {"metrics": ["judged_accuracy"]} if "judge" in keys else {}
    write_task(place, "later", **{**BASE, "data": _data(place), "retrieval": _SEARCH, **judged, **keys})


@pytest.mark.parametrize(("keys", "named"), [*FAULTS, *JUDGED], ids=str)
def test_the_harness_finds_a_fault_of_a_later_task_before_the_first_retrieves(
    keys: dict[str, Any], named: Sequence[str], place: Path
) -> None:
    _write_later(place, keys)
    with pytest.raises(MragError) as caught:
        run(place, ["mine", "later"])
    for word in named:
        assert word in caught.value.message


_SLOW = [pytest.param(*case, marks=pytest.mark.slow, id=str(case[0])) for case in [*FAULTS, *JUDGED]]


@pytest.mark.parametrize(("keys", "named"), [FAULTS[5], JUDGED[1], *_SLOW])
def test_a_command_finds_a_fault_of_a_later_task_before_the_first_retrieves(
    keys: dict[str, Any], named: Sequence[str], place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _write_later(place, keys)
    flags = "--tasks mine,later --include_path ."
    commands = [f"run --model oracle_answer {flags}", f"run --model oracle_answer {flags} --no-retrieve-first"]
    for command in [*commands, *([] if "judge" in keys else [f"retrieve {flags} -o out"])]:
        said = _said(command, capsys)
        for word in named:
            assert word in said[0], command


def test_a_task_of_two_groups_is_named(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("north", "south"):
        (place / f"{name}.yaml").write_text(f"group: {name}\ntask: [mine]\n", encoding="utf-8")
    said = _said("run --model dummy --tasks north,south --include_path .", capsys)
    assert said[0] == "mrag-eval: --tasks: mine belongs to north and to south, and a run asks a task once"


MODELS = [
    ("hff", "", ["hff", "did you mean 'hf'"]),
    ("hf", "", ["hf", "pretrained"]),
    ("hf", "pretrained=./nowhere", ["pretrained", "no folder ./nowhere"]),
    ("hf", "pretrained=/no/where", ["pretrained", "no folder /no/where"]),
    ("hf", "pretrained=own", ["pretrained", "own", "config.json"]),
    ("hf", "pretrained=no-such/model", ["no-such/model", "HF_HUB_OFFLINE"]),
    ("hf-greedy-path", "pretrained=no-such/model", ["no-such/model", "HF_HUB_OFFLINE"]),
    ("local-chat-completions", "model=m", ["base_url"]),
    ("openai-chat-completions", "model=m", ["OPENAI_API_KEY"]),
]


@pytest.mark.parametrize(("model", "args", "named"), MODELS)
def test_a_model_that_will_not_do_is_found_before_anything_is_retrieved(
    model: str,
    args: str,
    named: Sequence[str],
    place: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    said = _said(f"run --model {model} {args and '--model_args'} {args} --tasks mine --include_path .", capsys)
    with pytest.raises(ConfigError) as caught:
        evaluate(model, "mine", model_args=args, include=place)
    for word in named:
        assert word in said[0]
        assert word in caught.value.message


def test_what_the_model_lacks_is_listed_with_what_the_tasks_lack(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    command = "run --model openai-chat-completions --model_args model=m --include_path . --tasks mine"
    said = "\n".join(_said(f"{command} --metadata retrieval.corpus=nowhere", capsys))
    assert "2 things are missing for mine" in said
    assert "no corpus named 'nowhere'" in said
    assert "export OPENAI_API_KEY=..." in said


def test_weights_are_looked_for_and_not_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "config.json").write_text("{}", "utf-8")
    check_weights(str(tmp_path), "model")
    check_weights("s3://bucket/model", "model")
    for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    # only the hub knows, and is asked once
    answers: list[Any] = [None, errors.EntryNotFoundError("no")]
    monkeypatch.setattr(huggingface_hub, "get_hf_file_metadata", lambda url: _raised(answers.pop()))
    check_weights("no-such/model", "model")
    check_weights("no-such/model", "model")
    for answer, said in (
        (ConnectionError("no route"), r"cannot be reached \(ConnectionError\)"),
        (_answered(errors.RepositoryNotFoundError, 401), "has no such model, or it needs a token"),
        (_answered(errors.GatedRepoError, 403), "it is gated"),
        (_answered(errors.RevisionNotFoundError, 404), "it has no revision 'v9'"),
    ):
        answers.append(answer)
        with pytest.raises(ConfigError, match=f"model: no-such/model .*{said}") as caught:
            check_weights("no-such/model", "model", "v9")
        assert "\n" not in caught.value.message
        assert answers == []
    monkeypatch.setenv("TRANSFORMERS_OFFLINE", "1")
    with pytest.raises(ConfigError, match=r"model: no-such/model .* TRANSFORMERS_OFFLINE is set"):
        check_weights("no-such/model", "model")


def _answered(kind: type[Exception], status: int) -> Exception:
    """Return an error of the hub's client, whose request has another class from version to version."""
    response = SimpleNamespace(status_code=status, headers={}, request=SimpleNamespace(url="", method="HEAD"))
    return kind("no", response=response)  # type: ignore[call-arg]


def _raised(answer: Exception | None) -> None:
    if answer is not None:
        raise answer
