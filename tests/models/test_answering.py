"""The evaluated model's answers in a run: kept by call, failing row by row, apart from the harness's own cache."""

from __future__ import annotations

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

from mrag_eval.core import Failure, ModelReply, MragError
from mrag_eval.models import Answering, answering
from mrag_eval.models._remedies import remedy
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
    lines = [record.getMessage() for record in caplog.records if record.name.endswith("_answering")]
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
                                    {"header": {"Authorization": "Bearer another-key"}}])  # fmt: skip
def test_what_changes_no_reply_is_not(start: Start, change: dict[str, Any]) -> None:
    server = start()
    ask(model(server, header={"Authorization": "Bearer one-key"}), rows(model(server), "q"))
    _, state = ask(model(server, **{"header": {"Authorization": "Bearer one-key"}, **change}), rows(model(server), "q"))
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
    told = [[(str(r), r.outcome, r.finish_reason, r.answered_by) for r in replies] for replies, _ in found]
    assert told[0] == told[1]
    assert told[0] == [
        ("42", None, "length", "m-2026"), ("No.", "refusal", "stop", None),
        ("<think>so", "thinking cut", "length", None), ("", "empty", "stop", None),
    ]  # fmt: skip
    assert found[1][1].as_dict()["outcomes"] == {"refusal": 1, "thinking cut": 1, "empty": 1}
    assert len(server.requests) == 4


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
    assert [(reply.failure, reply.outcome) for reply in again] == [(None, None)] * 2 + [
        (None, "empty"),
        (None, "refusal"),
    ]
    assert Counter(asked(body) for _, _, body in server.requests) == {"good": 1, "bad": 3, "silent": 1, "refusing": 1}


def test_an_empty_text_that_the_harness_kept_is_no_answer(start: Start, tmp_path: Path) -> None:
    lm = model(start(lambda body, n: said("")))
    outer = CachingLM(lm, str(tmp_path / "replies.db"))
    outer.generate_until(rows(lm, "q"))
    (reply,), state = ask(outer, rows(lm, "q"))
    assert (reply.outcome, state.ledger.calls) == ("empty", 0)


# ------------------------------------------------------------------ other models


def test_a_local_models_replies_are_told_apart() -> None:
    texts = {"a": "42", "b": "", "c": "<think>so", "d": "<think>so</think>"}
    lm = get_model("dummy")()
    lm.generate_until = lambda requests, disable_tqdm=False: [texts[request.args[0]] for request in requests]
    requests = [Instance("generate_until", {}, (text, {}), i, ("task", i, 1)) for i, text in enumerate(texts)]
    replies, state = ask(lm, requests)
    assert [str(reply) for reply in replies] == list(texts.values())
    assert [reply.outcome for reply in replies] == [None, "empty", "thinking cut", "empty"]
    assert (state.transport, state.host, state.ledger.calls) == ("local", None, 0)
    assert state.outcomes == {"empty": 2, "thinking cut": 1}


class OwnClient(LocalChatCompletion):
    """A model type that sends its requests itself."""

    async def amodel_call(self, session: Any, sem: Any, messages: Any, **kwargs: Any) -> Any:
        return ["" for _ in messages]


def test_a_model_with_its_own_client_is_named(start: Start) -> None:
    lm = OwnClient(model="m", base_url=start().url, num_concurrent=2)
    (reply,), state = ask(lm, rows(lm, "q"))
    assert (reply.outcome, state.transport) == ("empty", "not ours (OwnClient)")


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
    read.finish_reason, read.answered_by = "stop", "m-2026"
    for reply in (failed, read):
        for copy in (pickle.loads(pickle.dumps(reply)), next(iter(TakeFirstFilter().apply([[reply]], [{}])))):
            assert (str(copy), vars(copy)) == (str(reply), vars(reply))
            assert isinstance(copy, ModelReply)


# ------------------------------------------------------------------ likelihoods


def test_a_likelihood_that_fails_names_row_host_reason_and_next_step(
    start: Start,
    build: Callable[..., Any],
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
    said_ = r"1 of 3 requests without an answer \(1 server\), the first for row 'x+' of task"
    with answering(lm, {"task"}, first_backoff=0.01), pytest.raises(MragError, match=said_) as caught:
        lm.loglikelihood(requests)
    assert server.url.split("/")[2] in caught.value.message
    assert caught.value.next_step == remedy("server")
    down = False
    before = len(server.requests)
    with answering(lm, {"task"}) as state:
        assert len(lm.loglikelihood(requests)) == 3
    assert (len(server.requests) - before, state.ledger.cached) == (1, 2)


def test_a_server_without_likelihoods_is_one_line(start: Start, build: Callable[..., Any]) -> None:
    server = start(lambda body, n: Answer(body={"choices": [{"index": 0, "text": "x", "logprobs": None}]}))
    lm = build("local-completions", server, tokenizer_backend="huggingface", max_retries=0)
    request = Instance("loglikelihood", {"id": "q"}, ("text", " A"), 0, ("task", 0, 1))
    with answering(lm, {"task"}), pytest.raises(MragError, match="no log-probabilities of the prompt in the answer"):
        lm.loglikelihood([request])


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
    assert remedy(reason).endswith("only the others are asked for")


def test_a_missing_key_is_one_line(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    server = start()
    lm = get_model("openai-chat-completions")(model="gpt-4o", base_url=server.url)
    with pytest.raises(MragError, match="model 'gpt-4o': API key not found"):
        ask(lm, rows(lm, "q"))
    assert server.requests == []


# ------------------------------------------------------------------ in the harness


@pytest.fixture
def manager(tmp_path: Path) -> TaskManager:
    folder = tmp_path / "tasks"
    folder.mkdir()
    write_world(folder)
    data = {"benchmark": "jsonl", "path": str(folder / "questions.jsonl")}
    for name in ("plain", "other"):
        write_task(folder, name, **{**BASE, "metrics": ["char3gram_recall"]}, data=data, retrieval={"mode": "no_ir"})
    return TaskManager(include_path=str(folder), include_defaults=False)


def test_the_harnesss_own_run_is_answered_by_our_transport(
    start: Start, manager: TaskManager, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    seen: list[Any] = []
    read: list[Any] = []
    scored = RagTask.score_replies

    def watched(self: RagTask, outer: Any, tasks: Any) -> Any:
        seen.append((type(outer).__name__, set(tasks)))
        return answering(outer, tasks, first_backoff=0.01)

    def score(self: RagTask, replies: Any) -> Any:
        read.extend((row, given[0]) for row, given in replies.items())
        return scored(self, replies)

    monkeypatch.setattr(RagTask, "answering", watched)
    monkeypatch.setattr(RagTask, "score_replies", score)
    server = start(lambda body, n: Answer(500, "broken") if "Olm" in asked(body) else said("1841"))
    for use_cache in (None, str(tmp_path / "replies")):
        read.clear()
        results = lm_eval.simple_evaluate(
            model="local-chat-completions",
            model_args={"model": "m", "base_url": server.url, "max_retries": 1, "num_concurrent": 4},
            tasks=["plain", "other"],
            task_manager=manager,
            apply_chat_template=True,
            bootstrap_iters=0,
            limit=7,
            use_cache=use_cache,
        )
        assert results is not None
        assert [reply.failure.reason if reply.failure else str(reply) for _, reply in read] == [
            "server" if "bakery" in row else "1841" for row, _ in read
        ]
        assert len(read) == 14
    assert seen == [("LocalChatCompletion", {"plain", "other"}), ("CachingLM", {"plain", "other"})]
    # equal prompts of two tasks are asked for each; the second run asks only for the two that failed, for each task
    good = [body for _, _, body in server.requests if "Olm" not in asked(body)]
    assert len(good) == 10
