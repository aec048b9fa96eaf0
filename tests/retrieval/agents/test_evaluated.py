"""The evaluated model as its own planner and critic: behind an API, loaded by the harness, and where it cannot be."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lm_eval
import pytest
import yaml
from lm_eval.tasks import TaskManager

import mrag_eval
from mrag_eval.cli import main
from mrag_eval.cli._doctor import examine
from mrag_eval.cli._first import First
from mrag_eval.config import load_config
from mrag_eval.harness import register_model_type
from mrag_eval.models import evaluating
from mrag_eval.platform import ConfigError
from mrag_eval.report import rerun
from mrag_eval.retrieval import find_trace, open_folder, retrieve_into, shown_trace
from mrag_eval.retrieval.ahead import _process as ahead
from tests.programs import Programs
from tests.retrieval.agents.scripted import GOOD, enough, plan
from tests.task.test_hook import build, run_ranks
from tests.worlds.model_server import Answer, ModelServer, said
from tests.worlds.small import BASE, ScriptedLM, write_task

SECRET = "sk-planted-0123456789abcdef"
EVALUATED = {"agent": {"planner": "evaluated"}}


def role_of(prompt: str) -> str:
    marks = {"enough_documents": "sufficiency", "clarity_specificity": "critic", "language_names": "planner"}
    return next((role for mark, role in marks.items() if mark in prompt), "answer")


def reply(prompt: str) -> str:
    return {"planner": plan("en", "de"), "critic": GOOD, "sufficiency": enough(True), "answer": "1841"}[role_of(prompt)]


class Loaded(ScriptedLM):
    """A model type with arguments, whose objects and requests are remembered."""

    made: list[Loaded]
    template = "one"

    def __init__(self, **arguments: Any) -> None:
        super().__init__(reply)
        self.requests: list[tuple[str, dict[str, Any]]] = []
        self.made.append(self)

    @classmethod
    def create_from_arg_obj(cls, arguments: Any, additional: Any = None) -> Loaded:
        return cls(**arguments)

    @property
    def tokenizer(self) -> Any:
        return type("Tokenizer", (), {"chat_template": self.template})

    def generate_until(self, requests: list[Any], disable_tqdm: bool = False) -> list[str]:
        self.requests += [request.args for request in requests]
        return super().generate_until(requests)

    def asked(self) -> Counter[str]:
        return Counter(role_of(prompt) for prompt, _ in self.requests)


@pytest.fixture
def looped(tasks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder with the task ``looped``, a cache of its own, and the model type ``scripted``."""
    monkeypatch.setenv("MRAG_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Loaded, "made", [], raising=False)
    register_model_type("scripted", f"{__name__}:Loaded")
    data = {"benchmark": "jsonl", "path": str(tasks / "questions.jsonl"), "corpus": str(tasks / "corpus.jsonl")}
    agent = {"k": 2, "max_rounds": 2, "generation": {"max_tokens": 96}}
    write_task(tasks, "looped", **BASE, data=data, agent=agent, retrieval={"mode": "coral", "k": 2, "kind": "bm25"})
    return tasks


@pytest.fixture
def server(start: Callable[..., ModelServer]) -> ModelServer:
    return start(lambda body, attempt: said(reply(_text(body))))


def _text(body: dict[str, Any]) -> str:
    return "\n".join(str(turn["content"]) for turn in body["messages"])


def asked(server: ModelServer) -> Counter[str]:
    return Counter(role_of(_text(body)) for _, _, body in server.requests)


def run(folder: Path, model: Any, args: Any = None, metadata: Any = None, **more: Any) -> Any:
    """Run as the harness's own command does: the tasks are built once the model is loaded."""
    manager = TaskManager(include_path=str(folder), include_defaults=False, metadata=metadata or EVALUATED)
    more = {"limit": 3, "bootstrap_iters": 10} | more
    return lm_eval.simple_evaluate(model=model, model_args=args, tasks=["looped"], task_manager=manager, **more)


def run_known(folder: Path, model: str, args: Any, metadata: Any = None, **more: Any) -> Any:
    """Run as ``mrag-eval run`` does, which knows the model's arguments."""
    with evaluating(model, args):
        return run(folder, model, args, metadata, **more)


def api(server: ModelServer) -> dict[str, Any]:
    return {"model": "m", "base_url": server.url}


# ------------------------------------------------------------------ behind an API


def test_one_server_plans_criticises_and_answers(looped: Path, server: ModelServer) -> None:
    results = run(looped, "local-chat-completions", api(server), apply_chat_template=True)
    calls = asked(server)
    assert (calls["planner"], calls["sufficiency"], calls["answer"]) == (3, 3, 3)
    # the loop counts the same calls, by role, and none of the answers
    counted: Counter[str] = Counter()
    for sample in results["samples"]["looped"]:
        for each in sample["doc"]["trace"]["rounds"]:
            counted.update({role: usage["calls"] for role, usage in each["usage"].items()})
    assert counted + Counter(answer=3) == calls
    config = results["configs"]["looped"]
    # planner and critic are asked by the agents' settings, the answers by the task's
    kinds = {(role_of(_text(b)) == "answer", b["temperature"], b["max_tokens"]) for _, _, b in server.requests}
    assert kinds == {(True, 0, 16), (False, 0.6, 96)}
    assert (
        config["measurement"]["setting"]["agent"]["planner"],
        config["measurement"]["setting"]["agent"]["critic"],
    ) == ("evaluated", "evaluated")
    for role in ("planner", "critic"):
        identity = config["measurement"]["instrument"][role]
        assert (identity["model"], identity["args"]) == ("local-chat-completions", {"model": "m"})
    # a second run may be that of another checkpoint, and asks for everything
    run(looped, "local-chat-completions", api(server), apply_chat_template=True)
    assert asked(server) == calls + calls


def test_each_evaluated_model_is_the_planner_of_its_own_rows_alone(
    looped: Path, server: ModelServer, tmp_path: Path
) -> None:
    """Rows that one planned for itself are another's only where that is said, and name the one that planned."""
    kind, folder = "local-chat-completions", tmp_path / "rows"
    one, other = ({**api(server), "model": name} for name in ("one", "other"))
    with evaluating(kind, one):
        task = build(looped, "looped", EVALUATED)
        retrieve_into(open_folder(folder), "looped", task.supply, task.rows_to_run()[:3])
    before = asked(server)
    assert before["planner"] == 3
    taken: dict[str, Any] = {**EVALUATED, "retrieval": {"run_folder": str(folder)}}
    with pytest.raises(ConfigError, match=r"other settings .*agent\.critic\.args\.model \(other \| one\)"):
        run_known(looped, kind, other, taken, apply_chat_template=True)
    differ = {**taken, "retrieval": {**taken["retrieval"], "run_may_differ": ["agent.planner", "agent.critic"]}}
    for args, metadata, names in ((one, taken, []), (other, differ, ["agent.critic", "agent.planner"])):
        record = run_known(looped, kind, args, metadata, apply_chat_template=True)["configs"]["looped"]["measurement"]
        assert [record["instrument"][role]["args"]["model"] for role in ("planner", "critic")] == ["one", "one"]
        assert [*record["data"]["retrieved"].get("differs", ())] == [f"{name}.args.model" for name in names]
        assert record["subject"]["model_args"]["model"] == args["model"] if "model_args" in record["subject"] else True
    # nobody planned since
    assert asked(server) - before == Counter(answer=6)


def test_settings_of_the_answers_reach_neither_planner_nor_critic(looped: Path, server: ModelServer) -> None:
    """What ``--gen_kwargs`` says is recorded of the model's answers, and what its agents are asked with of them."""
    given = {"temperature": 0.41, "max_gen_toks": 23, "top_p": 0.83, "seed": 4711, "until": ["STOP-MARK"], "top_k": 41}
    for args in (api(server), {**api(server), "seed": 7, "max_gen_toks": 29}):
        since = len(server.requests)
        results = run_known(
            looped, "local-chat-completions", args, gen_kwargs=dict(given), apply_chat_template=True, limit=1
        )
        record = results["configs"]["looped"]["measurement"]
        seats = {**record["instrument"], "sufficiency": record["instrument"]["critic"], "answer": record["subject"]}
        roles = set()
        for _, _, body in server.requests[since:]:
            role = role_of(_text(body))
            sent = {key: value for key, value in body.items() if key not in ("model", "messages")}
            assert sent == seats[role]["generation"], role
            roles.add(role)
            marks = [given["temperature"], given["max_gen_toks"], given["top_p"], given["seed"], given["until"], 41]
            assert [mark in sent.values() for mark in marks] == [role == "answer"] * 6, role
        assert roles == {"planner", "critic", "sufficiency", "answer"}


def test_the_harnesss_own_object_plans_with_its_headers(looped: Path, server: ModelServer) -> None:
    header = {"Authorization": f"Bearer {SECRET}", "X-Route": "b"}
    run(looped, "local-chat-completions", {**api(server), "header": header}, apply_chat_template=True)
    assert {(h["Authorization"], h["X-Route"]) for _, h, _ in server.requests} == {(f"Bearer {SECRET}", "b")}
    assert asked(server)["planner"] == 3


@pytest.mark.parametrize("key", [{"api_key_env": "MINE"}, {"api_key": SECRET}], ids=["named", "typed"])
def test_the_key_of_a_run_of_the_harness_is_that_of_its_planner(
    looped: Path, server: ModelServer, monkeypatch: pytest.MonkeyPatch, key: dict[str, str]
) -> None:
    """The harness's command tells its tasks the arguments of the model, and the model knows none of a key."""
    monkeypatch.setenv("MINE", SECRET)
    run(looped, "local-chat-completions", api(server), {**EVALUATED, **key}, apply_chat_template=True)
    assert {headers.get("Authorization") for _, headers, _ in server.requests} == {f"Bearer {SECRET}"}
    assert asked(server).keys() == {"planner", "critic", "sufficiency", "answer"}


def test_a_route_is_part_of_a_model_and_a_key_is_not(looped: Path, server: ModelServer) -> None:
    """A run in which an answer fails is repeated: its plans serve the same model alone."""
    plans, down = server.script, ["answer"]
    server.script = lambda body, n: Answer(500, "down") if role_of(_text(body)) in down else plans(body, n)
    header = {"Authorization": f"Bearer {SECRET}", "X-Route": "b"}

    def planned(**changes: str) -> int:
        args = {**api(server), "max_retries": 0, "header": {**header, **changes}}
        run(looped, "local-chat-completions", args, apply_chat_template=True)
        return asked(server)["planner"]

    assert planned() == 3
    assert planned(**{"X-Route": "c"}) == 6
    assert planned(Authorization="Bearer sk-planted-9876543210fedcba") == 6
    down.clear()
    assert planned() == 6


def test_limits_of_the_run_hold_for_its_planner(looped: Path, server: ModelServer) -> None:
    with evaluating("local-chat-completions", {**api(server), "num_concurrent": 2, "timeout": 7, "max_retries": 1}):
        model = build(looped, "looped", EVALUATED).supply.evaluated
    assert model is not None
    assert (model.spec.max_in_flight, model.spec.timeout, model.spec.retries) == (2, 7, 1)


@pytest.fixture
def command(looped: Path, server: ModelServer) -> list[str]:
    args = [
        "--model",
        "local-chat-completions",
        "--model_args",
        f"model=m,base_url={server.url},api_key_env=OPENAI_API_KEY",
    ]
    args += ["--tasks", "looped", "--include_path", str(looped), "--apply_chat_template", "--limit", "3"]
    return ["run", *args, "--metadata", "agent.planner=evaluated", "--log_samples", "--output_path", "out"]


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "OPENAI_API_KEY": SECRET, **more}


@pytest.mark.slow
def test_the_process_that_retrieves_first_asks_the_same_server_by_the_same_key(
    command: list[str], server: ModelServer, programs: Programs
) -> None:
    done = subprocess.run([programs / "mrag-eval", *command], capture_output=True, text=True, env=environment())
    assert done.returncode == 0, done.stderr
    assert "in a separate process, before the model is loaded" in done.stderr
    assert asked(server)["planner"] == 3
    assert {headers["Authorization"] for _, headers, _ in server.requests} == {f"Bearer {SECRET}"}
    assert SECRET not in done.stderr + done.stdout
    assert "planner: evaluated · critic: evaluated" in shown_trace(find_trace([Path("out")], "q-lighthouse-en"))
    found = rerun(Path("out"), Path("again"), Path("tasks"))
    assert "agent.planner=evaluated" in found.command or '"planner": "evaluated"' in found.command
    assert not any("mrag.yaml" in note for note in found.notes)


@pytest.mark.slow
def test_a_killed_run_asks_nothing_twice(
    command: list[str], start: Callable[..., ModelServer], server: ModelServer
) -> None:
    slow = start(lambda body, attempt: Answer(body=said(reply(_text(body))).body, delay=0.15))
    command[command.index("--model_args") + 1] = f"model=m,base_url={slow.url},num_concurrent=1"
    program = [sys.executable, "-m", "mrag_eval.cli", *command]
    first = subprocess.Popen(program, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 90
    while len(slow.requests) < 6 and time.monotonic() < deadline:
        time.sleep(0.02)
    first.kill()
    first.wait()
    time.sleep(1)  # the process that retrieves notices, too
    answered = [json.dumps(body) for _, _, body in slow.requests][:-1]  # the last was under way
    assert 5 <= len(answered) < 12
    done = subprocess.run(program, env=environment(), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    sent = Counter(json.dumps(body) for _, _, body in slow.requests)
    assert [sent[body] for body in answered] == [1] * len(answered)


# ------------------------------------------------------------------ loaded by the harness


def test_the_loaded_model_is_asked_and_not_loaded_again(looped: Path) -> None:
    results = run_known(looped, "scripted", {"name": "a"}, gen_kwargs="temperature=0.9")
    (lm,) = Loaded.made
    calls = lm.asked()
    assert (calls["planner"], calls["sufficiency"], calls["answer"]) == (3, 3, 3)
    settings = {(role_of(p) == "answer", g["max_gen_toks"], g.get("temperature")) for p, g in lm.requests}
    assert settings == {(True, 16, 0.9), (False, 96, 0.6)}
    assert results["configs"]["looped"]["measurement"]["instrument"]["planner"]["args"] == {"name": "a"}


def test_a_loaded_model_whose_arguments_are_not_told_is_asked_again(looped: Path) -> None:
    for _ in range(2):
        results = run(looped, "scripted", {"name": "a"})
        assert Loaded.made[-1].asked()["planner"] == 3
        identity = results["configs"]["looped"]["measurement"]["instrument"]["planner"]
        assert (identity["model"], identity["args"]) == ("scripted", {})


def test_replies_are_kept_by_everything_that_changes_them(looped: Path, tmp_path: Path) -> None:
    weights = tmp_path / "weights"
    weights.mkdir()
    (weights / "model.bin").write_bytes(b"1")

    def planned(**arguments: Any) -> int:
        run_known(looped, "scripted", {"pretrained": str(weights), **arguments})
        return Loaded.made[-1].asked()["planner"]

    assert planned() == 3
    assert planned() == 0
    assert planned(batch_size=4, token="hf_0123456789") == 0
    assert planned(dtype="float16") == 3
    (weights / "model.bin").write_bytes(b"22")
    assert planned() == 3
    adapter = tmp_path / "adapter"
    adapter.mkdir()
    assert planned(peft=str(adapter)) == 3
    (adapter / "adapter.bin").write_bytes(b"1")
    assert planned(peft=str(adapter)) == 3
    assert planned(peft=str(adapter)) == 0


def test_another_chat_template_is_another_model(looped: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for expected in (3, 0):
        run_known(looped, "scripted", {"name": "a"})
        assert Loaded.made[-1].asked()["planner"] == expected
    monkeypatch.setattr(Loaded, "template", "another")
    run_known(looped, "scripted", {"name": "a"})
    assert Loaded.made[-1].asked()["planner"] == 3


def test_an_object_from_python_is_asked_without_a_cache(looped: Path) -> None:
    for _ in range(2):
        lm = Loaded()
        results = mrag_eval.evaluate(
            lm, "looped", include=looped, limit=2, agent=EVALUATED["agent"], apply_chat_template=False
        )
        assert lm.asked()["planner"] == 2
    assert results is not None


def test_nothing_is_retrieved_before_the_model_is_loaded(
    looped: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "lm_eval")
    monkeypatch.setattr(ahead, "_run", None)
    with evaluating("scripted", {}):
        task = build(looped, "looped", EVALUATED)
    First().rows_of({"looped": task}, 3, None)
    said_ = [record.getMessage() for record in caplog.records if "evaluated model itself" in record.getMessage()]
    assert said_ == [
        "the evaluated model itself plans for looped: retrieved in the process of the run, once it is loaded"
    ]
    assert not task.supply.taken


@pytest.mark.slow
@pytest.mark.model
@pytest.mark.timeout(900)
def test_a_real_model_plans_for_itself(looped: Path) -> None:
    from mrag_eval.cli._demo import MODEL_FILE, find_model

    model = ["--model", "hf", "--model_args", f"pretrained={find_model()},gguf_file={MODEL_FILE}", "--device", "cpu"]
    flags = [*model, "--tasks", "looped", "--include_path", str(looped), "--limit", "1", "--apply_chat_template"]
    small = "agent.planner=evaluated,agent.max_rounds=1,agent.k=1,agent.generation.max_tokens=32"
    for _ in range(2):
        with pytest.raises(SystemExit) as done:
            main(["run", *flags, "--metadata", small, "--log_samples", "--output_path", "out"])
        assert done.value.code == 0
    first, second = (
        json.loads(path.read_text("utf-8"))["configs"]["looped"] for path in sorted(Path("out").rglob("results_*.json"))
    )
    one, two = first["scores"]["loop"], second["scores"]["loop"]
    assert one["rows"] == 1
    assert first["measurement"]["instrument"]["planner"]["args"]["gguf_file"] == MODEL_FILE
    # the second run is answered from the cache
    assert (one["cached"], two["cached"]) == (0, two["per_question"]["calls"])
    assert two["per_question"]["calls"] == one["per_question"]["calls"] > 1


# ------------------------------------------------------------------ refused


@pytest.mark.parametrize(
    ("model", "args", "agent", "message"),
    [
        ("dummy", {}, {}, r"task looped: planner 'evaluated': --model dummy cannot plan"),
        ("scripted", {}, {"generation": {"max_tokens": 4096}},
         r"agent\.generation\.max_tokens=4096 leaves no room for a prompt: .* has 2048 tokens"),
        ("local-chat-completions", {"model": "m", "base_url": "http://127.0.0.1:9/v1", "timeout": -1}, {},
         r"task looped: --model_args.timeout: "),
        ("local-chat-completions",
         {"model": "m", "base_url": "http://127.0.0.1:9/v1", "header": {"Authorization": f"Bearer {SECRET}"}}, {},
         r"planner 'evaluated': --model_args header\.Authorization holds a secret"),
    ],
)  # fmt: skip
def test_what_cannot_plan_is_one_line_before_anything_is_asked(
    looped: Path, monkeypatch: pytest.MonkeyPatch, model: str, args: Any, agent: Any, message: str
) -> None:
    monkeypatch.setattr(Loaded, "max_length", 2048, raising=False)
    with pytest.raises(ConfigError, match=message) as caught:
        run_known(looped, model, args, {"agent": {**EVALUATED["agent"], **agent}})
    assert "\n" not in caught.value.message
    assert caught.value.next_step
    assert SECRET not in str(caught.value)
    assert not any(lm.requests for lm in Loaded.made)


def test_a_dummy_cannot_plan_in_the_harnesss_own_run_either(looped: Path) -> None:
    with pytest.raises(ConfigError, match="task looped: planner 'evaluated': --model dummy cannot plan"):
        run(looped, "dummy")


def test_ranks_that_each_load_the_model_are_refused(looped: Path) -> None:
    with pytest.raises(ConfigError, match="the evaluated model cannot plan on 2 ranks"):
        run_ranks(looped, reply, name="looped", metadata=EVALUATED)


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Write the active config file."""
    monkeypatch.setenv("MRAG_CONFIG", str(tmp_path / "mrag.yaml"))

    def to_file(**keys: Any) -> None:
        (tmp_path / "mrag.yaml").write_text(yaml.safe_dump(keys), encoding="utf-8")

    return to_file


def test_the_config_file_may_name_it(looped: Path, write: Callable[..., None]) -> None:
    write(planner="evaluated", models={"other": {"model": "dummy"}}, critic="other")
    with pytest.raises(ConfigError, match="planner 'evaluated': no model is evaluated here"):
        build(looped, "looped").check()
    with evaluating("scripted", {}):
        assert (
            build(looped, "looped").supply.as_record()["agent"].items()
            >= {"planner": "evaluated", "critic": "other"}.items()
        )
    found = [finding.what for finding in examine() if finding.topic == "agents"]
    assert found == ["planner: the evaluated model", "critic other: dummy"]
    write(planner="other", models={"other": {"model": "dummy"}}, critic="evaluated")
    with pytest.raises(ConfigError, match="critic 'evaluated': no model is evaluated here"):
        build(looped, "looped").check()
    write(models={"evaluated": {"model": "dummy"}})
    with pytest.raises(ConfigError, match="models: 'evaluated' is the evaluated model itself; choose another name"):
        load_config()
