"""Batches: order, cache, budget, thinking, concurrency, and in-process models."""

from __future__ import annotations

import asyncio
import random
import stat
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from mrag_eval.config import ModelBudget, ModelSpec
from mrag_eval.core import split_thinking
from mrag_eval.harness import model_class
from mrag_eval.models import AuxModel, CallCounts, Reply, came_back_line, get, total
from mrag_eval.platform import ConfigError, MissingExtraError, Store, at_once, cache_dir
from tests.models.conftest import ask
from tests.worlds.model_server import Answer, ModelServer, asked, echo, said

Start = Callable[..., ModelServer]
ModelOf = Callable[..., AuxModel]


def test_replies_keep_the_order_whatever_arrives_first(start: Start, model_of: ModelOf) -> None:
    delays = random.Random(0)

    def script(body: dict[str, Any], attempt: int) -> Answer:
        answer = echo(body, attempt)
        return Answer(body=answer.body, delay=delays.uniform(0, 0.03))

    server = start(script)
    replies = model_of(server, max_in_flight=16).seat().generate(ask(*(f"q{i}" for i in range(200))))
    assert [r.text for r in replies] == [f"re: q{i}" for i in range(200)]
    assert 2 <= server.most_at_once <= 16


def test_batches_asked_at_once_share_the_slots_and_pay_once(start: Start, model_of: ModelOf, store: Store) -> None:
    server = start(lambda body, attempt: replace(echo(body, attempt), delay=0.02))
    model = model_of(server, cache=store, max_in_flight=4)
    batches = {"a": ask(*(f"q{i}" for i in range(20))), "b": ask(*(f"q{i}" for i in range(10, 30)))}
    found = at_once({name: partial(model.seat().generate, batch) for name, batch in batches.items()})
    assert [reply.text for reply in found["a"]] == [f"re: q{i}" for i in range(20)]
    assert [reply.text for reply in found["b"]] == [f"re: q{i}" for i in range(10, 30)]
    assert (server.most_at_once, len(server.requests)) == (4, 30)
    assert (model.ledger.calls, model.ledger.cached) == (30, 10)


def test_first_of_two_batches_is_sent_whole_before_the_second(start: Start, model_of: ModelOf) -> None:
    begun = threading.Event()

    def script(body: dict[str, Any], attempt: int) -> Answer:
        begun.set()
        return replace(echo(body, attempt), delay=0.02)

    server = start(script)
    model = model_of(server, max_in_flight=4)

    def second() -> list[Any]:
        begun.wait(10)
        return model.seat().generate(ask(*(f"second {i}" for i in range(10))))

    at_once({"first": partial(model.seat().generate, ask(*(f"first {i}" for i in range(40)))), "second": second})
    sent = [asked(body).split()[0] for _, _, body in server.requests]
    # requests that are on their way together arrive in any order
    assert sent[:37] == ["first"] * 37
    assert sorted(sent) == ["first"] * 40 + ["second"] * 10


def test_batch_ends_with_its_own_last_reply_while_another_has_slots(start: Start, model_of: ModelOf) -> None:
    ended = threading.Event()
    waited: list[bool] = []

    def script(body: dict[str, Any], attempt: int) -> Answer:
        if asked(body).startswith("slow"):
            waited.append(ended.wait(10))
        return echo(body, attempt)

    model = model_of(start(script), max_in_flight=4)

    def short() -> list[Any]:
        replies = model.seat().generate(ask(*(f"q{i}" for i in range(12))))
        ended.set()
        return replies

    found = at_once({"long": partial(model.seat().generate, ask("slow 1", "slow 2", "slow 3")), "short": short})
    assert [len(replies) for replies in found.values()] == [3, 12]
    assert waited == [True] * 3


def test_in_flight_limit_is_used_and_kept(start: Start, model_of: ModelOf) -> None:
    server = start(lambda body, n: Answer(body=echo(body, n).body, delay=0.2))
    model_of(server).seat().generate(ask(*(f"q{i}" for i in range(64))))
    assert 16 <= server.most_at_once <= 32


def test_reply_says_what_it_cost(start: Start, model_of: ModelOf) -> None:
    model = model_of(start())
    (reply,) = model.seat().generate(ask("q"))
    assert (reply.finish_reason, reply.tokens_in, reply.tokens_out) == ("stop", 11, 7)
    assert (reply.cached, reply.attempts, reply.error) == (False, 1, None)
    assert reply.seconds > 0
    assert model.ledger.as_dict() == {
        "calls": 1, "cached": 0, "retries": 0, "tokens_in": 11, "tokens_out": 7, "failures": {},
        "seconds": model.ledger.seconds,
    }  # fmt: skip
    assert model.ledger.line() == "1 call, 0 from cache, 0 retries"


def test_the_request_contains_exactly_the_given_values(start: Start, model_of: ModelOf) -> None:
    server = start()
    model = model_of(server, generation={"temperature": 0.5, "max_tokens": 33, "seed": 4, "stop": "END"})
    conversation = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "q"}]
    model.seat(asked={"top_p": 0.9, "extra": {"reasoning_effort": "low"}}).generate([conversation])
    assert server.requests[0][2] == {
        "model": "m", "messages": conversation, "temperature": 0.5, "max_tokens": 33, "seed": 4, "stop": ["END"],
        "top_p": 0.9, "reasoning_effort": "low",
    }  # fmt: skip
    model.seat(asked={"seed": None, "stop": ()}).generate([conversation])
    assert not {"seed", "stop"} & set(server.requests[1][2])


def test_no_conversations_no_calls(start: Start, model_of: ModelOf) -> None:
    server = start()
    assert model_of(server).seat().generate([]) == []
    assert server.requests == []


def test_runs_inside_an_event_loop(start: Start, model_of: ModelOf) -> None:
    model = model_of(start())

    async def notebook() -> list[Reply]:
        return model.seat().generate(ask("a", "b"))

    assert [r.text for r in asyncio.run(notebook())] == ["re: a", "re: b"]


def test_every_reply_is_reported_as_it_arrives(start: Start, model_of: ModelOf, store: Store) -> None:
    model = model_of(start(), store)
    model.seat().generate(ask("b"))
    told: list[tuple[int, str]] = []
    model.seat().generate(ask("a", "b", "a"), on_reply=lambda position, reply: told.append((position, reply.text)))
    assert sorted(told) == [(0, "re: a"), (1, "re: b"), (2, "re: a")]


class TestCache:
    def test_second_run_asks_nothing(self, start: Start, model_of: ModelOf, store: Store) -> None:
        server = start()
        conversations = ask(*(f"q{i}" for i in range(50)))
        first = model_of(server, store).seat().generate(conversations)
        again = model_of(server, store)
        second = again.seat().generate(conversations)
        assert [r.text for r in second] == [r.text for r in first]
        assert all(r.cached and r.attempts == 0 and r.tokens_in == 11 for r in second)
        assert len(server.requests) == 50
        assert (again.ledger.calls, again.ledger.cached, again.ledger.tokens_in) == (0, 50, 0)

    def test_equal_conversations_are_asked_once(self, start: Start, model_of: ModelOf) -> None:
        server = start()
        model = model_of(server)
        replies = model.seat().generate(ask("a", "b", "a", "a"))
        assert [r.text for r in replies] == ["re: a", "re: b", "re: a", "re: a"]
        assert [r.cached for r in replies] == [False, False, True, True]
        assert len(server.requests) == 2

    @pytest.mark.parametrize(
        "change",
        [{"temperature": 0.7}, {"max_tokens": 5}, {"seed": 1}, {"stop": "x"}, {"extra": {"x": 1}}, {}],
        ids=str,
    )
    def test_settings_that_change_the_answer_cause_a_new_call(
        self, start: Start, model_of: ModelOf, store: Store, change: dict[str, Any]
    ) -> None:
        server = start()
        model = model_of(server, store)
        model.seat().generate(ask("q"))
        other = model.seat("" if change else "2", asked=change)
        other.generate(ask("q"))
        other.generate(ask("q"))
        assert len(server.requests) == 2

    def test_another_model_is_asked_for_itself(self, start: Start, model_of: ModelOf, store: Store) -> None:
        server = start()
        model_of(server, store).seat().generate(ask("q"))
        model_of(server, store, model_args={"model": "other"}).seat().generate(ask("q"))
        assert len(server.requests) == 2

    def test_how_requests_travel_does_not_matter(self, start: Start, model_of: ModelOf, store: Store) -> None:
        server = start()
        model_of(server, store).seat().generate(ask("q"))
        model_of(
            server, store, max_in_flight=3, retries=1, timeout=5, budget={"max_calls": 9}, model_args={"timeout": 7}
        ).seat().generate(ask("q"))
        assert len(server.requests) == 1

    def test_failures_are_not_kept(self, start: Start, model_of: ModelOf, store: Store) -> None:
        broken = True
        server = start(lambda body, n: Answer(400) if broken else echo(body, n))
        (first,) = model_of(server, store).seat().generate(ask("q"))
        broken = False
        (second,) = model_of(server, store).seat().generate(ask("q"))
        assert (first.reason, second.text, second.cached) == ("rejected", "re: q", False)

    def test_new_weights_in_the_same_folder_are_another_model(self, tmp_path: Path) -> None:
        (tmp_path / "model.safetensors").write_bytes(b"1")
        spec = ModelSpec(model="hf", model_args={"pretrained": str(tmp_path)})
        before = AuxModel(spec).seat().identity
        assert AuxModel(spec).seat().identity == before
        (tmp_path / "model.safetensors").write_bytes(b"22")
        assert AuxModel(spec).seat().identity != before

    def test_unusable_cache_is_done_without(
        self, start: Start, model_of: ModelOf, store: Store, caplog: pytest.LogCaptureFixture
    ) -> None:
        store.close()
        replies = model_of(start(), store).seat().generate(ask("a", "b"))
        assert [r.text for r in replies] == ["re: a", "re: b"]
        assert "going on without it" in caplog.text

    def test_lone_surrogate_can_be_kept(self, start: Start, model_of: ModelOf, store: Store) -> None:
        body = '{"choices": [{"index": 0, "message": {"content": "a\\ud800b \\ud83d\\ude00"}}]}'
        server = start(lambda _, n: Answer(body=body))
        first, second = (model_of(server, store).seat().generate(ask("q"))[0] for _ in range(2))
        assert first.text == second.text == "a\N{REPLACEMENT CHARACTER}b \N{GRINNING FACE}"
        assert second.cached

    def test_shared_cache_is_private_to_its_owner(
        self, start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        server = start()
        config = tmp_path / "mrag.yaml"
        config.write_text(
            f"models: {{tiny: {{model: local-chat-completions, model_args: {{model: m, base_url: '{server.url}'}}}}}}"
        )
        monkeypatch.setenv("MRAG_CONFIG", str(config))
        monkeypatch.setenv("MRAG_CACHE", str(tmp_path / "cache"))
        model = get("tiny")
        assert model.seat().generate(ask("q"))[0].text == "re: q"
        files = list(cache_dir().glob("models.sqlite*"))
        assert {file.name for file in files} >= {"models.sqlite"}
        assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}


class TestBudget:
    def test_calls(self, start: Start, model_of: ModelOf, store: Store) -> None:
        server = start()
        model = model_of(server, store, budget={"max_calls": 10})
        replies = model.seat().generate(ask(*(f"q{i}" for i in range(40))))
        assert len(server.requests) == 10
        assert [r.error is None for r in replies] == [True] * 10 + [False] * 30
        assert replies[10].error == "budget: not sent, max_calls 10 is reached"
        assert model.ledger.failures == {"budget": 30}
        # paid answers are cached: a second budget of 10 takes the run to 20
        replies = model_of(server, store, budget={"max_calls": 10}).seat().generate(ask(*(f"q{i}" for i in range(40))))
        assert [r.error is None for r in replies] == [True] * 20 + [False] * 20
        assert len(server.requests) == 20

    def test_retries_of_a_call_are_not_further_calls(self, start: Start, model_of: ModelOf) -> None:
        server = start(lambda body, n: Answer(500) if n == 1 else echo(body, n))
        replies = model_of(server, budget={"max_calls": 3}).seat().generate(ask("a", "b", "c"))
        assert all(r.error is None for r in replies)

    @pytest.mark.parametrize("usage", [True, False])
    def test_tokens(self, start: Start, model_of: ModelOf, usage: bool) -> None:
        # 18 tokens per call as reported; without a report 'qqq' counts as 1 and 'aaaaaa' as 2
        server = start(lambda body, n: said("aaaaaa", usage=usage))
        limit = 36 if usage else 6
        model = model_of(server, max_in_flight=1, budget={"max_tokens": limit})
        replies = model.seat().generate(ask("qqq", "qq", "q", "qqqq"))
        assert [r.error is None for r in replies] == [True, True, False, False]
        assert replies[2].error == f"budget: not sent, max_tokens {limit} is reached ({limit} spent)"

    def test_budget_is_the_models_and_not_the_batchs(self, start: Start, model_of: ModelOf) -> None:
        model = model_of(start(), budget={"max_calls": 2})
        assert all(r.error is None for r in model.seat().generate(ask("a", "b")))
        assert model.seat().generate(ask("c"))[0].reason == "budget"


class TestThinking:
    @pytest.mark.parametrize(
        ("text", "answer", "thinking"),
        [
            ("plain", "plain", ""),
            ("<think>a\nb</think>\n\nyes", "yes", "a\nb"),
            ("\n<THINK>a</THINK>yes", "yes", "a"),
            ("<thinking>a</thinking> yes", "yes", "a"),
            ("<think></think>yes", "yes", ""),
            ("<think>cut off", "", "cut off"),
            ("opened by the template\n</think>\n\nyes", "yes", "opened by the template"),
            # an answer that only quotes the tag is left whole
            ("it says </think> in the middle", "it says </think> in the middle", ""),
            ('{"answer": "no", "why": "it wrote\n</think>\n"}',) * 2 + ("",),
            ("yes <think>later</think>", "yes <think>later</think>", ""),
        ],
    )
    def test_is_kept_separate(self, text: str, answer: str, thinking: str) -> None:
        assert split_thinking(text, quotes=True)[:2] == (answer, thinking)

    def test_in_the_text_and_next_to_it(self, start: Start, model_of: ModelOf, store: Store) -> None:
        server = start(lambda body, n: said("<think>inner</think>yes", reasoning_content="outer"))
        first, second = (model_of(server, store).seat().generate(ask("q"))[0] for _ in range(2))
        assert (first.text, first.thinking) == ("yes", "outer\ninner") == (second.text, second.thinking)

    def test_anthropic_blocks(self, start: Start, model_of: ModelOf, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("ANTHROPIC_API_KEY", "planted-key-0123456789")
        blocks = [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "ye"}, {"type": "text", "text": "s"}]
        server = start(
            lambda body, n: Answer(
                body={
                    "content": blocks, "stop_reason": "end_turn", "usage": {"input_tokens": 5, "output_tokens": 2}
                }
            )
        )  # fmt: skip
        model = model_of(server, model="anthropic-chat-completions", api_key_env="ANTHROPIC_API_KEY")
        (reply,) = model.seat().generate([[{"role": "system", "content": "s"}, {"role": "user", "content": "q"}]])
        assert (reply.text, reply.thinking, reply.finish_reason) == ("yes", "hm", "end_turn")
        assert (reply.tokens_in, reply.tokens_out) == (5, 2)
        _, headers, body = server.requests[0]
        assert headers["x-api-key"] == "planted-key-0123456789"
        assert (body["system"], body["max_tokens"]) == ("s", 1024)
        assert "stop_sequences" not in body


def test_text_completions_get_the_conversation_as_text(start: Start, model_of: ModelOf) -> None:
    server = start(lambda body, n: Answer(body={"choices": [{"index": 0, "text": "yes", "finish_reason": "length"}]}))
    model = model_of(server, model="local-completions")
    (reply,) = model.seat().generate([[{"role": "system", "content": "Be brief."}, {"role": "user", "content": "q"}]])
    assert (reply.text, reply.finish_reason) == ("yes", "length")
    assert server.requests[0][2]["prompt"] == "Be brief.\n\nq"


def test_its_own_key(start: Start, model_of: ModelOf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "everyones-key-0123456789")
    monkeypatch.setenv("SECOND_KEY", "its-own-key-0123456789")
    server = start()
    model_of(server, api_key_env="OPENAI_API_KEY").seat().generate(ask("a"))
    model_of(server, api_key_env="SECOND_KEY").seat().generate(ask("b"))
    sent = [headers["Authorization"] for _, headers, _ in server.requests]
    assert sent == ["Bearer everyones-key-0123456789", "Bearer its-own-key-0123456789"]


def test_no_key_no_header(start: Start, model_of: ModelOf) -> None:
    server = start()
    model_of(server).seat().generate(ask("a"))
    assert "Authorization" not in server.requests[0][1]


def test_the_harness_tells_of_the_evaluated_model_alone(
    start: Start, model_of: ModelOf, caplog: pytest.LogCaptureFixture
) -> None:
    server = start()
    with caplog.at_level("INFO", logger="lm_eval"):
        model_of(server).seat().generate(ask("a"))
        assert "Using max length" not in caplog.text
        model_class("local-chat-completions")(model="m", base_url=server.url)
    assert "Using max length" in caplog.text


class TestImpossibleModels:
    @pytest.mark.parametrize(
        ("spec", "message"),
        [
            ({"model": "openai-chat-completion"}, "unknown model type 'openai-chat-completion'; did you mean"),
            ({"model": "local-chat-completions", "model_args": {"model": "m"}}, "model_args lacks base_url"),
            ({"model": "local-chat-completions", "model_args": {"base_ulr": "x"}}, "did you mean 'base_url'?"),
            ({"model": "openai-chat-completions", "model_args": {"model": "m"}}, "OPENAI_API_KEY"),
            ({"model": "openai-chat-completions", "api_key_env": "NOT_SET_ANYWHERE"}, "NOT_SET_ANYWHERE is not set"),
        ],
        ids=lambda value: "" if isinstance(value, str) else str(value)[:60],
    )
    def test_check_reports_the_fault_and_a_batch_abstains(self, spec: dict[str, Any], message: str) -> None:
        model = AuxModel(ModelSpec(**spec), name="judge")
        with pytest.raises(ConfigError) as caught:
            model.check()
        assert caught.value.message.startswith("model 'judge': ")
        assert message in str(caught.value)
        replies = model.seat().generate(ask("a", "b"))
        assert [r.reason for r in replies] == ["model", "model"]
        assert (model.ledger.calls, model.ledger.failures) == (0, {"model": 2})

    def test_missing_packages_name_the_extra(
        self, start: Start, model_of: ModelOf, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("lm_eval.models.api_models.find_spec", lambda name: None)
        with pytest.raises(MissingExtraError, match=r"mrag-eval\[api\]"):
            model_of(start()).check()
        assert model_of(start()).seat().generate(ask("q"))[0].reason == "model"

    def test_answers_in_the_cache_need_no_key(
        self, start: Start, model_of: ModelOf, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        server = start()
        monkeypatch.setenv("ITS_KEY", "planted-key-0123456789")
        model_of(server, store, api_key_env="ITS_KEY").seat().generate(ask("q"))
        monkeypatch.delenv("ITS_KEY")
        replies = model_of(server, store, api_key_env="ITS_KEY").seat().generate(ask("q", "new"))
        assert [r.reason for r in replies] == [None, "model"]

    def test_unknown_setting(self, start: Start, model_of: ModelOf) -> None:
        with pytest.raises(
            ConfigError, match="judge, generation: unknown key 'temprature'; did you mean 'temperature'"
        ):
            model_of(start()).seat(asked={"temprature": 1})

    def test_message_that_no_request_can_be_made_of(self, start: Start, model_of: ModelOf) -> None:
        bad = [{"role": "user", "content": {1, 2}}]
        replies = model_of(start()).seat().generate([*ask("a"), bad])  # type: ignore[list-item]
        assert [r.reason for r in replies] == [None, "rejected"]


class FakeLM:
    """A model of the harness that is not an HTTP client; it breaks after ``fails_after`` answers."""

    max_length = 2048

    def __init__(self, fails_after: int = 10**9, hook: bool = True, system: bool = True) -> None:
        self.cache_hook: Any = None
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.threads: set[str] = set()
        self.fails_after, self.hook, self.system = fails_after, hook, system

    @classmethod
    def create_from_arg_obj(cls, args: dict[str, Any]) -> FakeLM:
        return cls(**args)

    def set_cache_hook(self, hook: Any) -> None:
        self.cache_hook = hook

    def apply_chat_template(self, turns: list[dict[str, str]], add_generation_prompt: bool = True) -> str:
        shown = [t for t in turns if self.system or t["role"] != "system"]
        return "".join(f"<{t['role']}>{t['content']}" for t in shown) + "<assistant>"

    def generate_until(self, requests: list[Any]) -> list[str]:
        self.threads.add(threading.current_thread().name)
        out: dict[str, str] = {}
        for request in sorted(requests, key=lambda r: r.args[0], reverse=True):
            self.asked.append(request.args)
            if len(self.asked) > self.fails_after:
                raise RuntimeError("out of memory")
            out[request.args[0]] = f"re: {request.args[0]}"
            if self.hook:
                self.cache_hook.add_partial("generate_until", request.args, out[request.args[0]])
        return [out[request.args[0]] for request in requests]


class TestLocalModels:
    @pytest.fixture
    def local(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., tuple[AuxModel, FakeLM]]]:
        from lm_eval.api import registry

        from mrag_eval.models import _local

        made: list[FakeLM] = []

        class Fake(FakeLM):
            def __init__(self, **args: Any) -> None:
                super().__init__(**args)
                made.append(self)

        known = registry.get_model
        monkeypatch.setattr(registry, "get_model", lambda name: Fake if name == "fake" else known(name))
        _local._loaded.cache_clear()

        def make(cache: Store | None = None, **spec: Any) -> tuple[AuxModel, FakeLM]:
            model = AuxModel(ModelSpec(model="fake", **spec), name="local", cache=cache)
            model.check()
            return model, made[-1]

        yield make
        _local._loaded.cache_clear()

    @pytest.mark.parametrize("hook", [True, False])
    def test_replies_in_order_through_the_template(self, local: Any, store: Store, hook: bool) -> None:
        model, lm = local(store, model_args={"hook": hook}, generation={"max_tokens": 9, "stop": ["x"]})
        assert [r.text for r in model.seat().generate(ask("b", "c", "a", "b"))] == [
            f"re: <user>{c}<assistant>" for c in "bcab"
        ]
        assert [prompt for prompt, _ in lm.asked] == ["<user>c<assistant>", "<user>b<assistant>", "<user>a<assistant>"]
        assert lm.asked[0][1] == {"until": ["x"], "max_gen_toks": 9, "do_sample": False}
        assert threading.main_thread().name not in lm.threads
        model.seat().generate(ask("a", "b", "c"))
        assert len(lm.asked) == 3

    def test_system_text_is_folded_in_where_the_template_has_no_such_role(self, local: Any) -> None:
        model, _ = local(model_args={"system": False})
        turns = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "q"}]
        assert model.seat().generate([turns])[0].text == "re: <user>Be brief.\n\nq<assistant>"

    def test_answers_before_a_failure_are_kept(self, local: Any, store: Store) -> None:
        model, _ = local(store, model_args={"fails_after": 2})
        replies = model.seat().generate(ask("a", "b", "c", "d"))
        assert [r.reason for r in replies] == ["model", "model", None, None]
        assert replies[0].error == "model: RuntimeError: out of memory"
        model, lm = local(store, model_args={"fails_after": 2})
        assert [r.cached for r in model.seat().generate(ask("c", "d"))] == [True, True]
        assert len(lm.asked) == 3

    def test_budget(self, local: Any) -> None:
        model, lm = local(budget={"max_calls": 2})
        assert [r.reason for r in model.seat().generate(ask("a", "b", "c"))] == [None, None, "budget"]
        assert len(lm.asked) == 2

    def test_two_settings_of_the_same_weights_load_them_once(self, local: Any) -> None:
        (first, lm), (second, same) = local(), local(generation={"temperature": 0.7, "top_p": 0.9})
        assert lm is same
        at_once({"a": lambda: first.seat().generate(ask("q")), "b": lambda: second.seat().generate(ask("q"))})
        assert sorted(wanted["do_sample"] for _, wanted in lm.asked) == [False, True]
        assert {"temperature": 0.7, "top_p": 0.9}.items() <= next(w for _, w in lm.asked if w["do_sample"]).items()


def test_panel_runs_at_the_same_time(start: Start, model_of: ModelOf) -> None:
    """Each of the three servers answers only after all three have been called."""
    gate = threading.Barrier(3)

    def script(body: dict[str, Any], attempt: int) -> Answer:
        gate.wait(timeout=30)
        return echo(body, attempt)

    seats = {f"judge {i}": model_of(start(script)).seat() for i in range(3)}
    panel = {name: partial(seat.generate, ask(f"q{i}")) for i, (name, seat) in enumerate(seats.items())}
    replies = at_once(panel)
    assert {seat: [r.text for r in rs] for seat, rs in replies.items()} == {
        f"judge {i}": [f"re: q{i}"] for i in range(3)
    }
    assert list(replies) == list(panel)


def test_one_model_on_two_seats_answers_each_and_keeps_its_limit(start: Start, model_of: ModelOf) -> None:
    server = start(lambda body, n: Answer(body=echo(body, n).body, delay=0.05))
    model = model_of(server, max_in_flight=4)
    at_once({role: partial(model.seat(role).generate, ask(*"abcdef")) for role in ("first", "second")})
    assert len(server.requests) == 12
    assert server.most_at_once <= 4


def test_counts_of_calls_add_up() -> None:
    one = CallCounts(2, 1, 3, {"timeout": 1}, 1.5)
    two = CallCounts(5, 0, 0, {"timeout": 2, "auth": 1}, 0.5)
    both = CallCounts(7, 1, 3, {"auth": 1, "timeout": 3}, 2.0)
    assert total([one, two]) == both
    assert one == CallCounts(2, 1, 3, {"timeout": 1}, 1.5)
    assert total([]) == CallCounts()
    assert both.line() == "7 calls, 1 from cache, 3 retries · 4 unanswered (1 auth, 3 timeout)"


def test_what_came_back_is_one_line() -> None:
    counts = {"answered_by": {"m-2026": 9}, "ends": {"stop": 8, "length": 1}, "tokens_in": 1234, "tokens_out": 56}
    silent = {"answered_by": {}, "ends": {"stop": 1}, "tokens_in": 0, "tokens_out": 0}
    assert came_back_line({}) == ""
    assert came_back_line({"j1": counts, "j2": silent}) == (
        "j1 (m-2026): 8 stop, 1 length, 1,234 tokens in, 56 out · j2: 1 stop"
    )


def test_budget_of_nothing_is_a_budget() -> None:
    assert ModelBudget(max_calls=0).max_calls == 0
