"""What a seat records, against what its requests hold: each seat, each key of decoding, each level that sets it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from mrag_eval.config import Agent, Generation, Judge, LmSpec, Measurement, Retrieval, differences
from mrag_eval.judging import Case, build_panel, relevance_rubric, sufficiency_rubric, support_rubric, verdict_rubric
from mrag_eval.models import AuxModel, Seat, answering, asked_with, build_translator, get
from mrag_eval.platform import Store, content_key
from mrag_eval.report.labels._documents import Shown, annotate
from mrag_eval.report.labels._rewrites import label_rewrites
from mrag_eval.retrieval.agents._seats import agents_for
from mrag_eval.retrieval.rerank import open_reranker
from mrag_eval.retrieval.rerank._listwise import ListQuery
from mrag_eval.retrievers import load_embedder, parse_spec
from tests.models.conftest import ask
from tests.models.test_answering import rows
from tests.worlds.embedding_server import serving
from tests.worlds.model_server import Answer, ModelServer

# A recognisable value of each setting.
VALUES: dict[str, Any] = {
    "temperature": 0.37,
    "max_tokens": 777,
    "seed": 4711,
    "top_p": 0.83,
    "stop": ["STOP-MARK"],
    "extra": {"marked": "EXTRA-MARK"},
}
# Settings that no list of the package or of the harness has.
UNLISTED: dict[str, Any] = {
    "frequency_penalty": 0.31, "presence_penalty": 0.29, "repetition_penalty": 1.07, "min_p": 0.051, "top_k": 41,
    "typical_p": 0.93, "logit_bias": {"50": -3}, "reasoning_effort": "medium-mark", "response_format": {"type": "text"},
    "service_tier": "flex-mark", "user": "user-mark", "min_tokens": 3, "length_penalty": 1.3, "ignore_eos": False,
    "skip_special_tokens": True, "guided_regex": "[a-z]+", "verbosity": "low-mark", "store": True,
    "chat_template_kwargs": {"enable_thinking": False}, "no_repeat_ngram_size": 7,
}  # fmt: skip
# Names by which the harness's classes know a setting of ours, and names that replace one in `extra`.
ALIASES: dict[str, Any] = {"max_tokens": 771, "max_gen_toks": 773, "temperature": 0.41, "seed": 4713, "top_p": 0.79,
                           "stop": ["OTHER-MARK"], "until": ["UNTIL-MARK"], "do_sample": True}  # fmt: skip
OWN = [(key, {key: value}) for key, value in VALUES.items()]
EXTRA = [(f"extra.{key}", {"extra": {key: value}}) for key, value in {**UNLISTED, **ALIASES}.items()]
API_TYPES = ("local-chat-completions", "openai-chat-completions", "local-completions", "openai-completions",
             "anthropic-chat-completions")  # fmt: skip
CASE = Case("r", "Who?", "en", ("He",), "He did.", ({"text": "He.", "lang": "en", "title": "", "date": ""},),
            claim="He did.")  # fmt: skip
DOC = Shown("r", "p", "Whose?", "en", "A text.", "en", 1, ("A", "B"), "T", ("A", "B"))
# What a body holds besides the settings.
CONVERSATION = ("messages", "prompt", "model", "system")
Recorded = tuple[dict[str, Any], Callable[[], Any]]


def answer(body: dict[str, Any], attempt: int) -> Answer:
    """Return a reply that each class of the harness reads."""
    text = "Yes"
    choice = {"index": 0, "finish_reason": "stop", "text": text, "message": {"role": "assistant", "content": text}}
    usage = {"prompt_tokens": 3, "completion_tokens": 1}
    return Answer(body={"choices": [choice], "content": [{"type": "text", "text": text}], "model": "m", "usage": usage})


@pytest.fixture
def server(start: Callable[..., ModelServer]) -> ModelServer:
    return start(answer)


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: ModelServer) -> Callable[..., None]:
    """Return a function that writes a config file with the model ``m`` behind the server, for every role."""
    monkeypatch.setenv("OPENAI_API_KEY", "planted-key-0123456789")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "planted-key-9876543210")
    monkeypatch.setenv("MRAG_CONFIG", str(tmp_path / "mrag.yaml"))

    def write(generation: Mapping[str, Any], kind: str = API_TYPES[0], cache: str = "", **args: Any) -> None:
        # each cell has a cache of its own: nothing is found that another one was answered
        monkeypatch.setenv("MRAG_CACHE", str(tmp_path / (cache or f"cache{len(server.requests)}")))
        entry = {"model": kind, "model_args": {"model": "m", "base_url": server.url, **args}, "generation": generation}
        found = {"models": {"m": entry}, "planner": "m", "critic": "m", "judges": ["m"]}
        (tmp_path / "mrag.yaml").write_text(json.dumps(found), "utf-8")

    return write


def _judge(rubric: Callable[[], Any], seat: str = "m", **block: Any) -> Recorded:
    panel = build_panel(Judge(**block))
    assert panel is not None
    return panel.identities[seat], lambda: panel.ask(rubric(), [CASE])


def _agent(name: str, round: int | None = None, **block: Any) -> Recorded:
    agents = agents_for(Agent(**block))
    seat: Seat = getattr(agents, name)
    return agents.identities.get(name, agents.critic.identity), lambda: seat.generate(ask(name), round=round)


def _translator(kind: Any, **block: Any) -> Recorded:
    made = build_translator(LmSpec(backend="lm", model="m", **block))
    return made.identity, lambda: made.translate([f"Ein Satz: {kind}."], ["de"], "en", kind=kind)


def _reranker() -> Recorded:
    block = Retrieval(mode="all", rerank={"kind": "listwise", "model": "m"})
    made: Any = open_reranker(block)
    passages = [{"text": text, "title": "", "lang": "en"} for text in "ab"]
    return made.seat.identity, lambda: made.order([ListQuery("Who?", "en", passages)])


# Each seat that the config file's models take: what results record of it, and how it is asked.
SEATS: dict[str, Callable[[], Recorded]] = {
    "planner": lambda: _agent("planner", 1),
    "critic": lambda: _agent("critic"),
    "sufficiency of the loop": lambda: _agent("sufficiency"),
    "translator of queries": lambda: _translator("queries"),
    "translator of documents": lambda: _translator("documents"),
    "translator of answers": lambda: _translator("answers"),
    "listwise reranker": _reranker,
    "judge of answers": lambda: _judge(verdict_rubric),
    "judge of sufficiency": lambda: _judge(sufficiency_rubric),
    "judge of claims": lambda: _judge(support_rubric),
    "judge of relevance": lambda: _judge(relevance_rubric),
    "labeller of documents": lambda: (get("m").seat().identity, lambda: annotate([DOC], get("m"))),
    "labeller of rewritten queries": lambda: (
        get("m").seat().identity,
        lambda: label_rewrites([("a", "b")], get("m")),
    ),
}


def sent(server: ModelServer, since: int = 0) -> dict[str, Any]:
    """Return the settings in the bodies of all requests, which must agree."""
    bodies = [body for _, _, body in server.requests[since:]]
    settings = [{key: value for key, value in body.items() if key not in CONVERSATION} for body in bodies]
    assert settings, "nothing was sent"
    assert all(one == settings[0] for one in settings)
    return settings[0]


def holds(settings: Mapping[str, Any], value: Any) -> bool:
    """Return whether a value, or of a mapping each of its values, is in these settings."""
    wanted = value.values() if isinstance(value, Mapping) else [value]
    return {json.dumps(each) for each in wanted} <= {json.dumps(each) for each in settings.values()}


def walked(server: ModelServer, cells: Iterator[tuple[str, Any, Recorded]]) -> tuple[int, list[str], list[str]]:
    """Return the number of cells, those whose record is not the request, and those whose value did not arrive."""
    count, false, lost = 0, [], []
    for name, value, (record, call) in cells:
        since = len(server.requests)
        call()
        count += 1
        body, recorded = sent(server, since), record["generation"]
        if recorded != body:
            false.append(f"{name}: recorded {recorded}, sent {body}")
        if not holds(body, value):
            lost.append(name)
    return count, false, lost


def test_each_seat_records_what_each_of_its_models_settings_makes_of_a_request(
    server: ModelServer, config: Callable[..., None]
) -> None:
    """The level is the model's entry in the config file: 13 seats, and all keys of decoding with one unlisted one."""
    assert {key for key, _ in OWN} == {*Generation.model_fields}

    def cells() -> Iterator[tuple[str, Any, Recorded]]:
        for seat, make in SEATS.items():
            for key, generation in OWN:
                config(generation)
                yield f"{seat} {key}", generation[key], make()

    count, false, lost = walked(server, cells())
    assert (count, false, lost) == (13 * 6, [], [])


@pytest.mark.slow
def test_each_seat_records_settings_that_nobody_lists(server: ModelServer, config: Callable[..., None]) -> None:
    def cells() -> Iterator[tuple[str, Any, Recorded]]:
        for seat, make in SEATS.items():
            for key, generation in EXTRA:
                config(generation)
                yield f"{seat} {key}", generation["extra"], make()

    count, false, lost = walked(server, cells())
    assert (count, false) == (13 * 28, [])
    # the harness's classes leave it out of bodies, and take the longest reply by its other name
    assert {name.rpartition(" ")[2] for name in lost} == {"extra.do_sample"}


@pytest.mark.parametrize("settings", [OWN, pytest.param(EXTRA, marks=pytest.mark.slow)], ids=["own", "extra"])
@pytest.mark.parametrize("kind", API_TYPES)
def test_each_type_of_api_records_its_own_names(
    server: ModelServer, config: Callable[..., None], kind: str, settings: list[tuple[str, dict[str, Any]]]
) -> None:
    def cells() -> Iterator[tuple[str, Any, Recorded]]:
        for key, generation in settings:
            config(generation, kind)
            yield key, generation[key] if key in generation else generation["extra"], SEATS["judge of answers"]()

    count, false, lost = walked(server, cells())
    assert (count, false) == (len(settings), [])
    # Anthropic's bodies have no seed and know the longest reply by one name
    assert {*lost} - {"extra.do_sample"} <= ({"seed"} if kind.startswith("anthropic") else set())


def test_a_model_that_the_harness_decodes_in_its_own_way_is_recorded_so(
    server: ModelServer, config: Callable[..., None]
) -> None:
    """Of names with a 5, o1, o3 or o4 the harness's class sends temperature 1 and no stop sequences."""
    config({"temperature": 0.37, "stop": ["STOP-MARK"]}, "openai-chat-completions", model="gpt-5")
    record, call = SEATS["judge of answers"]()
    call()
    assert record["generation"] == sent(server) == {"max_completion_tokens": 1024, "temperature": 1, "seed": 0}


def test_what_a_task_demands_comes_before_what_its_model_has(server: ModelServer, config: Callable[..., None]) -> None:
    """The levels are the block of the task, alone and over the model's entry, and the paper's settings below both."""
    blocks = {key: VALUES[key] for key in type(Agent().generation).model_fields}
    seats: dict[str, Callable[..., Recorded]] = {
        "planner": lambda **keys: _agent("planner", 1, generation=keys),
        "critic": lambda **keys: _agent("critic", generation=keys),
        "sufficiency": lambda **keys: _agent("sufficiency", generation=keys),
    }

    def cells() -> Iterator[tuple[str, Any, Recorded]]:
        for below in ({}, {"temperature": 0.11, "max_tokens": 99, "seed": 3}):
            for seat, make in seats.items():
                for key, value in blocks.items():
                    config(below)
                    yield f"{seat} {key}", value, make(**{key: value})
            for kind in ("queries", "documents", "answers"):
                config(below)
                yield f"translator {kind}", 777, _translator(kind, max_tokens=777)
        # nobody says anything: the paper's
        config({})
        yield "planner", 32_768, _agent("planner", 1)
        config({})
        yield "critic", 0.6, _agent("critic")

    count, false, lost = walked(server, cells())
    assert (count, false, lost) == (2 * (3 * 2 + 3) + 2, [], [])


def test_a_round_and_a_further_vote_have_seeds_of_their_own(server: ModelServer, config: Callable[..., None]) -> None:
    config({"seed": 4711})
    for round in (1, 2, 3):
        record, call = _agent("planner", round)
        call()
        assert sent(server, round - 1)["seed"] == record["generation"]["seed"] + round - 1 == 4711 + round - 1
    panel = build_panel(Judge(repeats=3))
    assert panel is not None
    config({"seed": 4711}, cache="votes")
    since = len(server.requests)
    panel.ask(verdict_rubric(), [CASE])
    seeds = {body["seed"] for _, _, body in server.requests[since:]}
    assert seeds == {one["generation"]["seed"] for one in panel.identities.values()} == {4711, 4712, 4713}


def test_replies_of_two_rounds_are_kept_apart_though_no_seed_tells_them_apart(
    server: ModelServer, config: Callable[..., None]
) -> None:
    config({"seed": None}, cache="rounds")
    for _ in range(2):
        planner = agents_for(Agent()).planner
        assert planner.decoding.seed is None
        for round in (1, 2):
            planner.generate(ask("the same"), round=round)
        assert len(server.requests) == 2


@pytest.mark.parametrize("key", ["seed", "max_gen_toks", "batch_size", "num_concurrent", "timeout"])
def test_arguments_that_decide_nothing_for_a_seat_are_in_neither(
    server: ModelServer, config: Callable[..., None], key: str
) -> None:
    config({}, **{key: 3})
    record, call = SEATS["judge of answers"]()
    call()
    assert record["generation"] == sent(server)
    assert key not in record["args"]
    assert 3 not in record["generation"].values()


def test_a_setting_is_declared_or_a_type_error(config: Callable[..., None]) -> None:
    config({})
    agents = agents_for(Agent())
    ask_planner: Any = agents.planner.generate
    for wrong in ({"temperature": 1}, {"seed": 1}, {"max_tokens": 5}, {"seat": "x"}, {}):
        with pytest.raises(TypeError):
            ask_planner(ask("q"), **wrong)
    with pytest.raises(TypeError):
        agents.critic.generate(ask("q"), round=1)
    assert not hasattr(get("m"), "generate")


# ------------------------------------------------------------------ the evaluated model


@pytest.mark.parametrize("kind", API_TYPES)
@pytest.mark.parametrize("concurrent", [1, 2])
def test_the_evaluated_model_behind_an_api(
    server: ModelServer, build: Callable[..., Any], kind: str, concurrent: int
) -> None:
    """The levels are the task's settings, with --gen_kwargs merged into them, and --model_args."""
    wanted = {**UNLISTED, "temperature": 0.37, "max_gen_toks": 777, "max_tokens": 771, "top_p": 0.83, "seed": 4711,
              "until": ["STOP-MARK"], "do_sample": True, "model": "another"}  # fmt: skip
    made: dict[str, Any] = {"seed": 4713, "max_gen_toks": 773, "eos_string": "EOS-MARK", "tokenized_requests": False}
    cells: list[tuple[dict[str, Any], dict[str, Any]]] = [({key: value}, {}) for key, value in wanted.items()]
    cells += [({}, {key: value}) for key, value in made.items()]
    for cell, (settings, arguments) in enumerate(cells):
        lm = build(kind, server, num_concurrent=concurrent, tokenizer_backend=None, **arguments)
        requests = _requests(lm, kind, f"question {cell}", settings)
        since = len(server.requests)
        with answering(lm, {"task"}):
            lm.generate_until(requests)
        ours = requests[0].args[1]
        body = {key: v for key, v in server.requests[since][2].items() if key not in ("messages", "prompt", "system")}
        recorded = asked_with(lm, ours)
        assert {"model": lm.model, **recorded} == body, (settings, arguments)
    assert len(cells) == 28 + 4


def _requests(lm: Any, kind: str, text: str, settings: Mapping[str, Any]) -> list[Any]:
    from lm_eval.api.instance import Instance

    if "chat" in kind:
        return rows(lm, text, **settings)
    wanted = {"until": ["\n"], **settings}
    return [Instance("generate_until", {"id": "r"}, (text, wanted), 0, ("task", 0, 1))]


class _Weights:
    """An HFLM with a stand-in for its weights: it keeps what is handed to them."""

    @staticmethod
    def made(tokenizer: str) -> tuple[Any, list[dict[str, Any]]]:
        import torch
        import transformers
        from lm_eval.models.huggingface import HFLM

        config = transformers.GPT2Config(n_layer=1, n_head=1, n_embd=4, vocab_size=300, n_positions=1024)
        torch.manual_seed(0)
        loaded = transformers.AutoTokenizer.from_pretrained(tokenizer)
        lm = HFLM(transformers.GPT2LMHeadModel(config), tokenizer=loaded, batch_size=1, max_length=4096)
        kept: list[dict[str, Any]] = []

        def generate(context: Any, max_length: int, stop: list[str], **settings: Any) -> Any:
            seed = torch.initial_seed()
            settings.pop("attention_mask")
            kept.append({**settings, "until": stop, "max_gen_toks": max_length - context.shape[1], "torch": seed})
            return torch.cat([context, context[:, :1]], dim=1)

        lm._model_generate = generate
        return lm, kept


HF_KEYS: dict[str, Any] = {"temperature": 0.37, "max_tokens": 77, "top_p": 0.83, "seed": 4711, "stop": ["STOP-MARK"]}


def test_weights_of_the_harness(tokenizer: str) -> None:
    """What is handed to ``_model_generate``, for a seat and for the evaluated model; the levels are the same."""
    from mrag_eval.config import ModelSpec
    from mrag_eval.models._local import around

    lm, kept = _Weights.made(tokenizer)
    cells: list[dict[str, Any]] = [{key: value} for key, value in HF_KEYS.items()]
    cells += [{"temperature": 0.5, key: value} for key, value in HF_KEYS.items() if key != "temperature"]
    cells += [{"extra": {key: value}} for key, value in UNLISTED.items()]
    cells += [{"extra": {key: value}} for key, value in {"max_new_tokens": 71, "temperature": 0.41}.items()]
    for generation in cells:
        model = AuxModel(ModelSpec(model="hf", model_args={"pretrained": "m"}, generation=generation))
        model._backend = around(lm)
        seat = model.seat("judge")
        seat.generate(ask("q"))
        handed = kept.pop()
        assert handed.pop("until")[: len(seat.decoding.stop)] == list(seat.decoding.stop)
        record = {key: value for key, value in seat.identity["generation"].items() if key != "until"}
        torch_seed = handed.pop("torch")
        if "seed" in record:
            assert record.pop("seed") == torch_seed
        assert record == handed, generation
    for wanted in ({"temperature": 0.37}, {"do_sample": True, "temperature": 0.5}, {"max_new_tokens": 71}, UNLISTED,
                   {"until": ["STOP-MARK"], "max_gen_toks": 77}):  # fmt: skip
        from lm_eval.api.instance import Instance

        request = Instance("generate_until", {"id": "r"}, ("q", dict(wanted)), 0, ("task", 0, 1))
        lm.generate_until([request], disable_tqdm=True)
        handed = kept.pop()
        del handed["torch"]
        assert asked_with(lm, wanted) == handed
    assert len(cells) == 5 + 4 + 20 + 2


# ------------------------------------------------------------------ endpoints of other kinds


def test_an_endpoint_of_embeddings_records_what_it_is_asked() -> None:
    """A key of an embedder is in the request, in its texts or beside them, if and only if it is in the record."""
    values: dict[str, Any] = {"dimensions": 6, "query_prefix": "QUERY-MARK ", "batch_size": 7919}
    for key, value in values.items():
        with serving() as endpoint:
            given = {"model": "enc", "kind": "openai", "base_url": endpoint.url, key: value}
            load_embedder(given).embed_queries(["a question"])
            bodies = json.dumps([body for *_, body in endpoint.requests])
        recorded = json.dumps(parse_spec(given).identity())
        mark = str(value).strip()
        assert (mark in bodies) == (mark in recorded), key


@pytest.mark.parametrize("shape", ["cohere", "tei"])
def test_a_reranker_behind_an_endpoint_records_what_it_is_sent(start: Callable[..., ModelServer], shape: str) -> None:
    """Each key of ``extra``, listed or not, is in the body, makes another cache key, and is a difference of runs."""

    def scored(body: dict[str, Any], attempt: int) -> Answer:
        return Answer(body={"results": [{"index": 0, "relevance_score": 1}]} if "documents" in body else
                      [{"index": 0, "score": 1}])  # fmt: skip

    def made(extra: Mapping[str, Any]) -> tuple[str, Measurement]:
        rerank = {"kind": "api", "model": "r", "url": server.url, "shape": shape, "extra": extra}
        block = Retrieval(mode="all", rerank=rerank)
        reranker: Any = open_reranker(block)
        reranker.scores(["Who?"], [["a"]])
        return reranker.revision, Measurement("", setting={"retrieval": block.model_dump(mode="json")})

    server = start(scored)
    plain, without = made({})
    cells = {**UNLISTED, **ALIASES}
    for key, value in cells.items():
        revision, record = made({key: value})
        assert server.requests[-1][2][key] == value
        assert revision != plain
        found = {
            one.key.removeprefix("retrieval.rerank.extra.").partition(".")[0] for one in differences(record, without)
        }
        assert found == {key}
    assert len(cells) == 28


# ------------------------------------------------------------------ replies that were kept before

# The part of a key of the format models/1 that said what a reply was for.
FORMER = {
    "planner": "coral planner 1",
    "critic": "coral critic",
    "sufficiency of the loop": "coral sufficiency",
    **dict.fromkeys(("translator of queries", "translator of documents", "translator of answers"), "translator"),
    "listwise reranker": "reranker",
    **dict.fromkeys(("judge of answers", "judge of sufficiency", "judge of claims", "judge of relevance"), "m"),
    "labeller of documents": "annotate relevance",
    "labeller of rewritten queries": "label rewrites",
}


def former_key(body: Mapping[str, Any], url: str, purpose: str) -> str:
    """Return the key of a request as the format models/1 made it; frozen, as stores of that format exist."""
    who = {"model": "local-chat-completions", "args": {"model": "m", "base_url": url}}
    how = {key: body[key] for key in ("temperature", "max_tokens", "seed")} | {"top_p": None, "stop": [], "extra": {}}
    return content_key("models/1", who, body["messages"], how, purpose)


@pytest.mark.parametrize("seat", SEATS)
def test_replies_kept_under_keys_of_the_former_format_are_not_paid_for_again(
    server: ModelServer, config: Callable[..., None], seat: str, tmp_path: Path
) -> None:
    def asked() -> list[str]:
        since = len(server.requests)
        SEATS[seat]()[1]()
        purposes = (FORMER[seat], "annotate viewpoint")
        bodies = [body for _, _, body in server.requests[since:]]
        return [former_key(body, server.url, purpose) for body in bodies for purpose in purposes]

    config({"max_tokens": 512, "seed": 5}, cache="first")
    known = asked()
    assert known
    config({"max_tokens": 512, "seed": 5}, cache="kept")
    reply = {"text": "Yes", "thinking": "", "finish_reason": "stop", "tokens_in": 3, "tokens_out": 1}
    with closing(Store(tmp_path / "kept" / "models.sqlite")) as store:
        store.put_many(dict.fromkeys(known, reply))
    assert asked() == []
    assert get("m").ledger.calls == 0
    assert get("m").ledger.cached
    assert not get("m").ledger.failures
