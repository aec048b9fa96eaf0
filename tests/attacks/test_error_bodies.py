"""Errors that endpoints send with status 200: our clients name their words and treat them as what they are."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from mrag_eval.models import AuxModel
from mrag_eval.platform import HttpFault, MragError, json_answer
from mrag_eval.retrievers import parse_spec
from mrag_eval.retrievers.embedding._api_embeddings import ApiEmbedder
from tests.models.conftest import ask
from tests.retrieval.test_rerank_api import reranker
from tests.worlds.model_server import Answer, ModelServer

Start = Callable[..., ModelServer]
ModelOf = Callable[..., AuxModel]
WORDS = "the engine ran out of blocks"
# body -> reason
BODIES: dict[str, tuple[Any, str]] = {
    "OpenAI": ({"error": {"message": WORDS, "type": "server_error"}}, "server"),
    "a key": ({"error": {"message": WORDS, "code": "invalid_api_key"}}, "auth"),
    "a rate": ({"error": {"message": WORDS, "code": 429}}, "rate_limit"),
    "a text": ({"error": WORDS}, "server"),
    "vLLM": ({"object": "error", "message": WORDS, "type": "BadRequestError", "code": 400}, "rejected"),
    "TEI": ({"error": WORDS, "error_type": "overloaded"}, "server"),
    "FastAPI": ({"detail": WORDS}, "server"),
    "FastAPI, validation": ({"detail": [{"loc": ["body"], "msg": WORDS, "type": "missing"}]}, "server"),
    "Cohere": ({"message": WORDS, "id": "1"}, "server"),
    "a list": ({"errors": [{"message": WORDS, "code": "insufficient_quota"}]}, "quota"),
    "a filter": ({"error": {"message": WORDS, "code": "content_filter"}}, "content_filter"),
}
# what no other attempt can help
ONCE = {"auth", "quota", "rejected", "content_filter"}


@pytest.mark.parametrize("name", BODIES)
def test_the_reason_of_an_error_body(name: str) -> None:
    body, reason = BODIES[name]
    for text in (json.dumps(body), "\ufeff" + json.dumps(body)):
        with pytest.raises(HttpFault) as fault:
            json_answer(text)
        assert (fault.value.reason, fault.value.detail) == (reason, f"the answer is an error: {WORDS}")
        assert fault.value.again == (0 if reason in ONCE else None)


@pytest.mark.parametrize(
    "answer",
    [
        {"choices": [{"message": {"content": "x"}}], "message": "ok"},
        {"results": [], "message": "ok"},
        {"data": [], "detail": "ok"},
        {"embeddings": [], "errors": ["x"]},
        {"message": {"role": "assistant", "content": "x"}},
        {"error": None, "content": []},
        [{"index": 0}],
    ],
)
def test_an_answer_with_a_note_is_an_answer(answer: Any) -> None:
    assert json_answer("\ufeff" + json.dumps(answer)) == answer


@pytest.mark.parametrize("name", BODIES)
def test_every_client_names_the_words(
    name: str, start: Start, model_of: ModelOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mrag_eval.retrievers.embedding._api_embeddings._ATTEMPTS", 1)
    body, reason = BODIES[name]
    server = start(lambda sent, attempt: Answer(body=body))
    (reply,) = model_of(server).seat().generate(ask("q"))
    assert reply.error == f"{reason}: the answer is an error: {WORDS}"
    tried = len(server.requests)
    assert (tried == 1) is (reason in ONCE)
    with pytest.raises(MragError, match=WORDS):
        reranker(server).scores(["q"], [["a"]])
    with pytest.raises(MragError, match=WORDS):
        ApiEmbedder(parse_spec(f"openai:m@{server.url}")).embed_queries(["q"])


def test_a_byte_order_mark_is_no_fault_for_any_client(start: Start, model_of: ModelOf) -> None:
    def marked(sent: dict[str, Any], attempt: int) -> Answer:
        if "documents" in sent:
            found: Any = {"results": [{"index": 0, "relevance_score": 0.5}]}
        elif "input" in sent:
            found = {"data": [{"index": 0, "embedding": [3.0, 4.0]}]}
        else:
            found = {"choices": [{"index": 0, "message": {"content": "yes"}, "finish_reason": "stop"}]}
        return Answer(body="\ufeff" + json.dumps(found))

    server = start(marked)
    (reply,) = model_of(server).seat().generate(ask("q"))
    assert (reply.text, reply.error) == ("yes", None)
    assert reranker(server).scores(["q"], [["a"]])[0].tolist() == [0.5]
    vectors = ApiEmbedder(parse_spec({"model": f"openai:m@{server.url}", "normalize": True})).embed_queries(["q"])
    assert vectors.tolist() == [pytest.approx([0.6, 0.8])]
