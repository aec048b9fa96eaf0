"""The evaluated model's answers in a run: kept by call, failing row by row, apart from the harness's own cache."""

from __future__ import annotations

import json
import logging
import pickle
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lm_eval
import pytest
from lm_eval.api.instance import Instance
from lm_eval.api.model import CachingLM
from lm_eval.api.registry import get_model
from lm_eval.filters.selection import TakeFirstFilter
from lm_eval.models.openai_completions import LocalChatCompletion
from lm_eval.tasks import TaskManager
from sqlitedict import SqliteDict

from mrag_eval.core import Failure, ModelReply
from mrag_eval.models import UNKNOWN_MODEL, Answering, answering, evaluating, own_replies, remedy
from mrag_eval.platform import MragError
from mrag_eval.task import RagTask
from tests.models import test_bodies
from tests.models.test_endpoint import BY_ITSELF
from tests.worlds.model_server import Answer, ModelServer, asked, echo, said
from tests.worlds.small import BASE, write_task, write_world

Start = Callable[..., ModelServer]


@pytest.fixture(autouse=True)
def _cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MRAG_CACHE", str(tmp_path / "cache"))


def model(server: ModelServer, **arguments: Any) -> Any:
    made = {"model": "m", "max_retries": 1, "num_concurrent": 4, **arguments}
    return LocalChatCompletion(base_url=server.url, **made)


def rows(lm: Any, *texts: str, task: str = "task", **settings: Any) -> list[Instance]:
    chats = [lm.apply_chat_template([{"role": "user", "content": text}]) for text in texts]
    wanted = {"until": ["\n"], **settings}
    return [
        Instance("generate_until", {"id": f"row {i}"}, (one, dict(wanted)), i, (task, i, 1))
        for i, one in enumerate(chats)
    ]


def ask(outer: Any, requests: list[Instance], tasks: Any = ("task",)) -> tuple[list[Any], Answering]:
    with answering(outer, set(tasks), first_backoff=0.01) as state:
        return outer.generate_until(requests), state


def broken(*numbers: int) -> Callable[[dict[str, Any], int], Answer]:
    return lambda body, n: Answer(500, "broken") if int(asked(body)) in numbers else echo(body, n)


# ------------------------------------------------------------------ kept by call


def test_one_row_that_fails_costs_no_other(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    server = start(broken(20))
    texts = [str(i) for i in range(30)]
    with caplog.at_level(logging.ERROR, "lm_eval"):
        found, state = ask(model(server), rows(model(server), *texts))
    assert [str(reply) for reply in found] == ["" if i == 20 else f"re: {i}" for i in range(30)]
    host = server.url.split("/")[2]
    assert found[20].failure == Failure("answer", "m", "server", f"{host}: HTTP 500, broken")
    lines = [record.getMessage() for record in caplog.records if record.name.endswith("_services")]
    assert lines == [
        f"model 'm' at {host}: 1 of 30 requests without an answer (1 server), the first for row 'row 20' of task: "
        "server: HTTP 500, broken",
        f"    {remedy('server')}",
    ]
    # the same command again asks for the one
    before = len(server.requests)
    server.script = echo
    found, state = ask(model(server), rows(model(server), *texts))
    assert [str(reply) for reply in found] == [f"re: {i}" for i in range(30)]
    assert [asked(body) for _, _, body in server.requests[before:]] == ["20"]
    assert (state.ledger.calls, state.ledger.cached, state.ledger.failures) == (1, 29, {})


def test_repeats_are_asked_for_each_and_kept_each(start: Start) -> None:
    server = start(lambda body, n: said(f"reply {n}"))
    lm = model(server, num_concurrent=1)
    requests = rows(lm, "q", do_sample=True, temperature=1.0) * 3
    first, _ = ask(lm, requests)
    again, state = ask(lm, requests)
    assert [str(one) for one in first] == [str(one) for one in again] == ["reply 1", "reply 2", "reply 3"]
    assert (len(server.requests), state.ledger.cached) == (3, 3)


@pytest.mark.parametrize("change", [{"seed": 7}, {"max_gen_toks": 9}, {"model": "n"}, {"header": {"X-Route": "b"}},
                                    {"think_end_token": "</t>"}])  # fmt: skip
def test_what_changes_replies_is_asked_for_anew(start: Start, change: dict[str, Any]) -> None:
    server = start()
    ask(model(server), rows(model(server), "q"))
    _, state = ask(model(server, **change), rows(model(server), "q"))
    assert (state.ledger.calls, len(server.requests)) == (1, 2)


@pytest.mark.parametrize("change", [{"num_concurrent": 1}, {"timeout": 9}, {"max_retries": 5},
                                    {"header": {"Authorization": "Bearer sk-2f9b1c7d4e8a"}}])  # fmt: skip
def test_what_changes_no_reply_is_not(start: Start, change: dict[str, Any]) -> None:
    server = start()
    ask(model(server, header={"Authorization": "Bearer sk-7c1e5a3b9d2f"}), rows(model(server), "q"))
    _, state = ask(
        model(server, **{"header": {"Authorization": "Bearer sk-7c1e5a3b9d2f"}, **change}), rows(model(server), "q")
    )
    assert (state.ledger.calls, state.ledger.cached) == (0, 1)


def test_everything_of_a_reply_comes_back_from_the_cache(start: Start) -> None:
    answers = {
        "a": Answer(body={**said("42", finish="length").body, "model": "m-2026"}),
        "b": said(None, refusal="No."),
        "c": said("<think>so", finish="length"),
        "d": said(""),
    }
    server = start(lambda body, n: answers[asked(body)])
    found = [ask(model(server), rows(model(server), *answers)) for _ in range(2)]
    told = [[(str(reply), reply.outcome) for reply in replies] for replies, _ in found]
    assert told[0] == told[1]
    assert told[0] == [("42", None), ("No.", "refusal"), ("<think>so", "thinking cut"), ("", "empty")]
    for _, state in found:
        kept = state.as_dict()
        assert kept["outcomes"] == {"refusal": 1, "thinking cut": 1, "empty": 1}
        assert (kept["finish_reasons"], kept["answered_by"]) == ({"length": 2, "stop": 2}, {"m-2026": 1})
    assert len(server.requests) == 4


@pytest.mark.parametrize(
    ("names", "said_of", "level"),
    [
        (("m", "m"), None, None),
        (("m-2026", "m-2026"), "m-2026 (2 of 2 replies)", "INFO"),
        (("m", "tiny"), "m (1 of 2 replies), tiny (1 of 2 replies)", "WARNING"),
    ],
)
def test_other_models_that_replied_are_said_once(
    start: Start, caplog: pytest.LogCaptureFixture, names: tuple[str, str], said_of: str | None, level: str | None
) -> None:
    by = dict(zip("ab", names, strict=True))
    server = start(lambda body, n: Answer(body={**said("42").body, "model": by[asked(body)]}))
    for _ in range(2):
        # from the cache as well
        caplog.clear()
        with caplog.at_level(logging.INFO, logger="lm_eval"):
            ask(model(server, num_concurrent=1), rows(model(server), *by))
        lines = [(one.message, one.levelname) for one in caplog.records if "answered by" in one.message]
        assert lines == ([(f"model 'm': answered by {said_of}", level)] if said_of else [])


# ------------------------------------------------------------------ --use_cache


def test_the_harness_keeps_answers_and_nothing_else(start: Start, tmp_path: Path) -> None:
    answers = {
        "good": said("42"),
        "bad": Answer(500, "broken"),
        "silent": said(""),
        "refusing": said(None, refusal="No."),
    }
    server = start(lambda body, n: answers[asked(body)])
    path = str(tmp_path / "replies.db")

    def run() -> list[Any]:
        lm = model(server)
        outer = CachingLM(lm, path)
        replies, _ = ask(outer, rows(lm, *answers))
        outer.dbdict.close()
        return replies

    first = run()
    with SqliteDict(path) as kept:
        assert [(value, type(value)) for value in kept.values()] == [("42", str)]
    assert (first[1].failure is not None, first[2].outcome, first[3].outcome) == (True, "empty", "refusal")
    answers["bad"] = said("43")
    again = run()
    assert [str(reply) for reply in again] == ["42", "43", "", "No."]
    # what the harness kept comes back as it kept it
    assert type(again[0]) is str
    assert [getattr(reply, "outcome", None) for reply in again] == [None, None, "empty", "refusal"]
    assert Counter(asked(body) for _, _, body in server.requests) == {"good": 1, "bad": 3, "silent": 1, "refusing": 1}


def test_a_reply_of_a_file_that_any_model_may_have_filled_is_of_an_unknown_one(start: Start, tmp_path: Path) -> None:
    server = start(lambda body, n: said(body["model"]))

    def run(name: str, file: str) -> tuple[str, Answering]:
        lm = model(server, model=name)
        outer = CachingLM(lm, f"{file}_rank0.db")
        replies, state = ask(outer, rows(lm, "a"))
        outer.dbdict.close()
        return str(replies[0]), state

    file = str(tmp_path / "shared")
    assert run("one", file)[1].answered_by[UNKNOWN_MODEL] == 0
    reply, state = run("two", file)
    assert (reply, state.answered_by) == ("one", {UNKNOWN_MODEL: 1})
    # a run that names its model has a file for it alone
    found = {}
    for name in ("one", "two", "one"):
        with evaluating("local-chat-completions", {"model": name}):
            reply, state = run(name, own_replies(file))
            assert (reply, state.answered_by[UNKNOWN_MODEL]) == (name, 0)
            assert run(name, file)[1].answered_by[UNKNOWN_MODEL] == 1
            found[own_replies(file)] = name
    assert len(found) == 2


@pytest.mark.parametrize(
    ("changed", "same"),
    [
        ({"model": "n"}, False), ({"base_url": "http://other/v1"}, False), ({"tokenizer": "t"}, False),
        ({"max_gen_toks": 9}, False), ({"num_concurrent": 9}, True), ({"timeout": 9}, True),
    ],
)  # fmt: skip
def test_a_file_of_replies_is_one_per_model_and_settings(changed: dict[str, Any], same: bool) -> None:
    names = []
    for more in ({}, changed):
        with evaluating("local-chat-completions", {"model": "m", "base_url": "http://here/v1", **more}):
            names.append(own_replies("replies"))
    assert (names[0] == names[1]) is same
    assert names[0].startswith("replies-")


# ------------------------------------------------------------------ other models


def test_a_local_model_is_asked_as_ever() -> None:
    lm = get_model("dummy")()
    before = lm.generate_until
    requests = [Instance("generate_until", {"id": name}, (name, {}), i, ("task", i, 1)) for i, name in enumerate("ab")]
    with answering(lm, {"task"}) as state:
        assert lm.generate_until(requests) == ["lol", "lol"]
    assert lm.generate_until == before
    assert (state.transport, state.host, state.ledger.calls) == ("local", None, 0)


@pytest.mark.parametrize("kind", ["loglikelihood", "generate_until"])
def test_no_model_is_asked_in_vain(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    lm = get_model("dummy")()
    asked_for: list[str] = []

    def method(requests: Any, **_: Any) -> list[Any]:
        asked_for.extend(request.doc["id"] for request in requests)
        return [request.doc["id"].upper() for request in requests]

    monkeypatch.setattr(type(lm), kind, staticmethod(method))
    requests = [Instance(kind, {"id": name}, (name, " A"), i, ("task", i, 1)) for i, name in enumerate("abcd")]
    with answering(lm, {"task"}, in_vain=lambda request: request.doc["id"] in "bd"):
        found = getattr(lm, kind)(requests)
    assert (found, asked_for) == (["A", "", "C", ""], ["a", "c"])
    assert [getattr(reply, "asked", True) for reply in found] == [True, False, True, False]
    with answering(lm, {"task"}, in_vain=lambda request: True):
        assert getattr(lm, kind)(requests) == [""] * 4
    assert len(asked_for) == 2
    # ranks take turns on the model, so that each needs its share
    monkeypatch.setattr(type(lm), "world_size", property(lambda self: 2))
    with answering(lm, {"task"}, in_vain=lambda request: True):
        assert getattr(lm, kind)(requests) == list("ABCD")


class OwnClient(LocalChatCompletion):
    """A model type that sends its requests itself."""

    async def amodel_call(self, session: Any, sem: Any, messages: Any, **kwargs: Any) -> Any:
        return ["" for _ in messages]


def test_a_model_with_its_own_client_is_named(start: Start) -> None:
    lm = OwnClient(model="m", base_url=start().url, num_concurrent=2)
    (reply,), state = ask(lm, rows(lm, "q"))
    assert (reply, state.transport) == ("", "not ours (OwnClient)")


# Every type of the harness is one of the three.
HERE = ["dummy", "hf", "vllm", "sglang", "mamba_ssm", "nemo_lm", "onnxruntime", "openvino", "trtllm", "winml"]
THEIRS = ["anthropic-completions", "gguf", "litellm", "textsynth", "watsonx_llm"]
OURS = ["anthropic-chat", "azure-openai-chat-completions", "local-chat-completions", "local-completions",
        "openai-chat-completions", "openai-completions", "sglang-generate"]  # fmt: skip


@pytest.mark.parametrize("kind", [*HERE, *THEIRS, *OURS])
def test_each_type_of_the_harness_says_how_it_is_asked(kind: str) -> None:
    from mrag_eval.harness import model_class, runs_here, sends_by_http

    try:
        cls = model_class(kind)
    except (ImportError, KeyError) as error:
        pytest.skip(f"{kind} cannot be loaded here: {error}")
    assert (runs_here(cls), sends_by_http(cls)) == (kind in HERE, kind in OURS)


# ------------------------------------------------------------------ what a reply survives


def test_a_reply_survives_filters_and_ranks() -> None:
    failed = ModelReply.failed(Failure("answer", "m", "server", "HTTP 500"))
    read = ModelReply("42")
    read.outcome = "refusal"
    for reply in (failed, read):
        for copy in (pickle.loads(pickle.dumps(reply)), next(iter(TakeFirstFilter().apply([[reply]], [{}])))):
            assert (str(copy), vars(copy)) == (str(reply), vars(reply))
            assert isinstance(copy, ModelReply)


# ------------------------------------------------------------------ likelihoods


def test_a_likelihood_that_fails_costs_no_other(
    start: Start, build: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    down = True

    def script(body: dict[str, Any], attempt: int) -> Answer:
        return Answer(500, "broken") if down and len(body["prompt"][0]) > 40 else test_bodies.answer(body, attempt)

    server = start(script)
    lm = build("local-completions", server, tokenizer_backend="huggingface", num_concurrent=4, max_retries=1)
    requests = [
        Instance("loglikelihood", {"id": text}, (text, " A"), i, ("task", i, 1))
        for i, text in enumerate(["short", "x" * 60, "also short"])
    ]
    with caplog.at_level(logging.ERROR, "lm_eval"), answering(lm, {"task"}, first_backoff=0.01):
        one, failed, other = lm.loglikelihood(requests)
    host = server.url.split("/")[2]
    assert failed.failure == Failure("answer", "m", "server", f"{host}: HTTP 500, broken")
    line, step = (record.getMessage() for record in caplog.records if record.name.endswith("_services"))
    assert f"at {host}: 1 of 3 requests without an answer (1 server), the first for row 'xxx" in line
    assert step.strip() == remedy("server")
    down = False
    before = len(server.requests)
    with answering(lm, {"task"}) as state:
        again = lm.loglikelihood(requests)
    assert [(type(value), len(value)) for value in again] == [(tuple, 2)] * 3
    assert (again[0], again[2]) == (one, other)
    assert (len(server.requests) - before, state.ledger.cached) == (1, 2)


def test_a_server_without_likelihoods_says_so(start: Start, build: Callable[..., Any]) -> None:
    server = start(lambda body, n: Answer(body={"choices": [{"index": 0, "text": "x", "logprobs": None}]}))
    lm = build("local-completions", server, tokenizer_backend="huggingface", max_retries=0)
    request = Instance("loglikelihood", {"id": "q"}, ("text", " A"), 0, ("task", 0, 1))
    with answering(lm, {"task"}):
        (value,) = lm.loglikelihood([request])
    assert value.failure.reason == "malformed"
    assert "no log-probabilities of the prompt in the answer" in value.failure.detail


def test_a_prompt_that_is_no_chat_is_one_line(start: Start) -> None:
    lm = model(start())
    request = Instance("generate_until", {}, ("plain text", {}), 0, ("task", 0, 1))
    with pytest.raises(MragError, match="model 'm': no request can be made") as caught:
        ask(lm, [request])
    assert "--apply_chat_template" in str(caught.value.next_step)


@pytest.mark.parametrize(
    "reason", sorted({reason for _, reason in BY_ITSELF.values()} | {"connection", "stopped", None}, key=str)
)
def test_every_reason_has_a_next_step(reason: str | None) -> None:
    lasting = reason in ("content_filter", "too_long")
    assert remedy(reason).endswith("MRAG_CACHE=$(mktemp -d)" if lasting else "only the others are asked for")


def test_a_missing_key_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    lm = get_model("openai-chat-completions")(model="gpt-4o")
    with pytest.raises(MragError, match="model 'gpt-4o': the environment variable OPENAI_API_KEY is not set"):
        ask(lm, rows(lm, "q"))


# ------------------------------------------------------------------ in the harness


@pytest.fixture
def manager(tmp_path: Path) -> TaskManager:
    """Return a manager of two equal tasks with replies, and one with likelihoods."""
    folder = tmp_path / "tasks"
    folder.mkdir()
    write_world(folder)
    row = {"lang": "en", "choices": ["A", "B"], "gold_choice": 0}
    options = [
        json.dumps({"id": f"{topic}-{i}", "query": f"{topic} {i}?", **row})
        for topic in ("lamp", "vase")
        for i in range(4)
    ]
    (folder / "options.jsonl").write_text("\n".join(options) + "\n", "utf-8")
    base = {**BASE, "metrics": ["char3gram_recall"], "retrieval": {"mode": "no_ir"}}
    for name in ("plain", "other"):
        write_task(folder, name, **base, data={"benchmark": "jsonl", "path": str(folder / "questions.jsonl")})
    likely = {key: value for key, value in base.items() if key != "generation_kwargs"}
    likely |= {"output_type": "multiple_choice", "metrics": ["acc"]}
    write_task(folder, "likely", **likely, data={"benchmark": "jsonl", "path": str(folder / "options.jsonl")})
    return TaskManager(include_path=str(folder), include_defaults=False)


def evaluate(manager: TaskManager, kind: str, args: dict[str, Any], *tasks: str, **more: Any) -> Any:
    return lm_eval.simple_evaluate(
        model=kind, model_args=args, tasks=list(tasks), task_manager=manager, bootstrap_iters=0, **more
    )


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Shorten pauses between attempts; return what the harness asks, and the tasks that are ours, of each run."""
    seen: list[Any] = []

    def watched(self: RagTask, outer: Any, tasks: Any) -> Any:
        seen.append((type(outer).__name__, set(tasks)))
        return answering(outer, tasks, first_backoff=0.01)

    monkeypatch.setattr(RagTask, "answering", watched)
    return seen


def test_the_harnesss_own_run_is_answered_by_our_transport(
    start: Start, manager: TaskManager, quick: list[Any], tmp_path: Path
) -> None:
    server = start(lambda body, n: Answer(500, "broken") if "Olm" in asked(body) else said("1841"))
    args = {"model": "m", "base_url": server.url, "max_retries": 1, "num_concurrent": 4}
    for use_cache in (None, str(tmp_path / "replies")):
        results = evaluate(
            manager, "local-chat-completions", args, "plain", "other", apply_chat_template=True, limit=7,
            use_cache=use_cache,
        )  # fmt: skip
        for task in ("plain", "other"):
            scores = results["configs"][task]["scores"]
            assert scores["failures"] == {"answer": {"server": 2}}
            assert results["results"][task]["unscored,none"] == pytest.approx(2 / 7)
    assert quick == [("LocalChatCompletion", {"plain", "other"}), ("CachingLM", {"plain", "other"})]
    # equal prompts of two tasks are asked for once, and what was answered is not asked for again
    assert len([body for _, _, body in server.requests if "Olm" not in asked(body)]) == 5


def test_a_row_without_likelihoods_is_unscored(
    start: Start, manager: TaskManager, quick: list[Any], tokenizer: str
) -> None:
    from transformers import AutoTokenizer

    known = AutoTokenizer.from_pretrained(tokenizer)

    def script(body: dict[str, Any], attempt: int) -> Answer:
        down = "vase" in known.decode(body["prompt"][0])
        return Answer(500, "broken") if down else test_bodies.answer(body, attempt)

    server = start(script)
    args = {"model": "m", "base_url": server.url, "tokenizer": tokenizer, "max_retries": 0, "num_concurrent": 4}
    args |= {"tokenizer_backend": "huggingface"}
    results = evaluate(manager, "local-completions", args, "likely")
    assert results["configs"]["likely"]["scores"]["failures"] == {"answer": {"server": 4}}
    assert results["results"]["likely"]["unscored,none"] == 0.5
