"""Blocks whose kind decides which other keys they take: what results record, and what a wrong key is told."""

from __future__ import annotations

import re
from typing import Any

import pytest

from mrag_eval.config import Retrieval, validated
from mrag_eval.config._file import FileConfig
from mrag_eval.platform import ConfigError

# As results have always recorded them, whatever the kind.
RERANK = {
    "kind": "cross-encoder", "model": None, "depth": None, "query": "searched", "revision": None, "instruction": None,
    "max_length": 512, "batch_size": 32, "device": None, "trust_remote_code": False, "weights": [1.0, 0.3, 1.0],
    "url": None, "shape": "cohere", "api_key_env": None, "max_in_flight": 8, "timeout": 120.0, "retries": 6,
    "extra": {}, "window": 20, "step": 10, "prompt": "listwise",
}  # fmt: skip
TRANSLATOR = {
    "backend": "table", "model": None, "revision": None, "path": None, "save": None, "strict": False, "prompt": "plain",
    "max_tokens": None, "num_beams": 1, "batch_size": 16, "device": "cpu", "check_language": True,
}  # fmt: skip
KINDS = [
    ("rerank", RERANK, {}),
    ("rerank", RERANK, {"kind": "bge-m3", "weights": [1.0, 0.0, 2.0]}),
    ("rerank", RERANK, {"kind": "api", "model": "m", "url": "http://x/rerank", "timeout": 3.0}),
    ("rerank", RERANK, {"kind": "listwise", "model": "m", "step": 5}),
    ("translator", TRANSLATOR, {"backend": "lm", "model": "m"}),
    ("translator", TRANSLATOR, {"backend": "nllb", "num_beams": 4}),
    ("translator", TRANSLATOR, {"backend": "google"}),
    ("translator", TRANSLATOR, {"backend": "table", "strict": True}),
]


@pytest.mark.parametrize(
    ("word", "block"),
    [
        ("BAAI/bge-reranker-v2-m3", {"kind": "cross-encoder", "model": "BAAI/bge-reranker-v2-m3"}),
        ("cohere:m@http://x/rerank", {"kind": "api", "shape": "cohere", "model": "m", "url": "http://x/rerank"}),
        ("tei:@http://x/rerank", {"kind": "api", "shape": "tei", "model": None, "url": "http://x/rerank"}),
    ],
)
def test_a_reranker_is_named_in_one_word(word: str, block: dict[str, Any]) -> None:
    found = validated(Retrieval, {"rerank": word}, "retrieval").model_dump(mode="json")["rerank"]
    assert found == RERANK | block


@pytest.mark.parametrize(("key", "all_keys", "block"), KINDS)
def test_the_keys_of_all_kinds_are_recorded_and_can_be_read_again(
    key: str, all_keys: dict[str, Any], block: dict[str, Any]
) -> None:
    retrieval = validated(Retrieval, {key: block}, "retrieval")
    recorded = retrieval.model_dump(mode="json")[key]
    assert recorded == all_keys | block
    assert list(recorded) == list(all_keys)
    assert validated(Retrieval, {key: recorded}, "retrieval").model_dump(mode="json")[key] == recorded
    named = {"rerank": "kind", "translator": "backend"}[key]
    assert retrieval.model_dump(mode="json", exclude_unset=True)[key] == {named: recorded[named]} | block
    assert named not in getattr(retrieval, key).model_dump(exclude={named})


@pytest.mark.parametrize(
    ("block", "message"),
    [
        ({"rerank": {"kind": "apii"}}, r"rerank\.kind: unknown kind 'apii'; did you mean 'api'\?$"),
        ({"rerank": {"kind": "api", "modle": "m"}}, r"rerank: unknown key 'modle'; did you mean 'model'\?$"),
        (
            {"rerank": {"kind": "listwise", "model": None}},
            r"rerank: kind 'listwise' needs 'model', the name of a model",
        ),
        ({"rerank": {"kind": "bge-m3", "weights": [0, 0, 0]}}, r"rerank\.weights: no weight may be negative, and one"),
        ({"rerank": {"kind": "bge-m3", "weights": [1]}}, r"rerank\.weights\[1\]: field required$"),
        ({"rerank": ["x"]}, r"rerank: expected keys and values \(kind, \.\.\.\), got list"),
        ({"translator": {}}, r"translator\.backend: missing; allowed: google, lm, nllb, table$"),
        ({"translator": {"backend": "nllb", "num_beams": 0}}, r"retrieval\.translator\.num_beams: input should be"),
    ],
)
def test_faults_of_a_kind_are_named(block: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        validated(Retrieval, block, "retrieval")
    assert re.search(message, caught.value.message)
    assert "\n" not in caught.value.message


@pytest.mark.parametrize("given", [{"model": "m"}, {"a": 1}, 5, "m"])
def test_what_is_no_list_is_called_so(given: Any) -> None:
    lists = [name for name, field in FileConfig.model_fields.items() if str(field.annotation).startswith("tuple")]
    assert "judges" in lists
    for name in lists:
        with pytest.raises(ConfigError, match=rf"{name}: expected a list, got {type(given).__name__}"):
            validated(FileConfig, {name: given}, "mrag.yaml")


def test_a_key_written_in_place_of_its_variable_is_not_shown() -> None:
    block = {"kind": "api", "model": "m", "url": "http://x/rerank", "api_key_env": "sk-secret"}
    with pytest.raises(ConfigError, match="expected the name of an environment variable") as caught:
        validated(Retrieval, {"rerank": block}, "retrieval")
    assert "sk-secret" not in str(caught.value)
