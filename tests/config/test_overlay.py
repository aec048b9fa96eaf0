"""Blocks of a model over a task's: another model brings its own settings, the same one keeps the task's."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import pytest
import yaml

from mrag_eval.config import Rerank, Retrieval, TranslatorSpec, deep_merge, overlaid, split_config, validated
from mrag_eval.platform import ConfigError

BGE = {"model": "BAAI/bge-reranker-v2-m3", "max_length": 256}
API = {"kind": "api", "url": "http://localhost:8000/v1/rerank", "model": "m"}
# The least that a block of each kind needs, with a key that no other kind takes.
KINDS: dict[str, dict[str, dict[str, Any]]] = {
    "rerank": {
        "cross-encoder": {"instruction": "Find it."},
        "bge-m3": {"weights": (1.0, 0.0, 1.0)},
        "api": {"url": "http://localhost:8000/v1/rerank", "shape": "tei"},
        "listwise": {"model": "ranker", "window": 9, "step": 3},
    },
    "translator": {
        "lm": {"model": "m", "prompt": "plain"},
        "nllb": {"num_beams": 4},
        "google": {},
        "table": {"strict": True},
    },
}
TAGS = {"rerank": "kind", "translator": "backend"}
PAIRS = [(key, one, other) for key, kinds in KINDS.items() for one in kinds for other in kinds if one != other]


def test_every_kind_is_walked_over() -> None:
    for key, union in (("rerank", Rerank), ("translator", TranslatorSpec)):
        members = get_args(get_args(union)[0])
        assert {get_args(member.model_fields[TAGS[key]].annotation)[0] for member in members} == set(KINDS[key])


@pytest.mark.parametrize(("key", "below", "above"), PAIRS)
def test_another_kind_replaces_the_whole_block(key: str, below: str, above: str) -> None:
    task = {key: {TAGS[key]: below, **KINDS[key][below]}, "k": 3}
    given = {key: {TAGS[key]: above, **KINDS[key][above]}}
    assert overlaid(task, given) == given | {"k": 3}
    # which is a block that the kind takes
    validated(Retrieval, overlaid(task, given), "retrieval")


@pytest.mark.parametrize(
    ("below", "above", "found"),
    [
        # other weights have a length of their own
        (BGE, {"model": "X"}, {"kind": "cross-encoder", "model": "X"}),
        (BGE, {"model": "X", "batch_size": 8}, {"kind": "cross-encoder", "model": "X", "batch_size": 8}),
        (BGE, {"kind": "cross-encoder", "model": "X"}, {"kind": "cross-encoder", "model": "X"}),
        # the same ones, named or not, keep the task's
        (BGE, {"batch_size": 8}, {**BGE, "batch_size": 8}),
        (BGE, {**BGE, "batch_size": 8}, {**BGE, "batch_size": 8}),
        (BGE, {"kind": "cross-encoder", "max_length": 64}, {**BGE, "kind": "cross-encoder", "max_length": 64}),
        # the model that needs no name
        ({"max_length": 256}, {"model": BGE["model"]}, BGE),
        ({"max_length": 256}, {"model": "X"}, {"kind": "cross-encoder", "model": "X"}),
        ({"kind": "bge-m3", "weights": [1, 1, 1]}, {"model": "Y"}, {"kind": "bge-m3", "model": "Y"}),
        # an address serves several models
        (API, {"model": "n"}, {**API, "model": "n"}),
        (BGE, API, API),
        (API, {"kind": "cross-encoder"}, {"kind": "cross-encoder"}),
        (BGE, {}, BGE),
    ],
)
def test_other_weights_replace_the_settings_of_the_first(
    below: dict[str, Any], above: dict[str, Any], found: dict[str, Any]
) -> None:
    assert overlaid({"rerank": below}, {"rerank": above}) == {"rerank": found}


@pytest.mark.parametrize("value", [None, "X", "BAAI/bge-reranker-v2-m3"])
def test_a_name_alone_or_none_replaces_it_as_ever(value: str | None) -> None:
    assert overlaid({"rerank": BGE}, {"rerank": value}) == {"rerank": value}


def test_other_blocks_are_merged_key_by_key() -> None:
    one, other = {"given": {"subset": "gold", "n": 1}, "kind": "bm25"}, {"given": {"n": 2}, "kind": "dense"}
    assert overlaid({"retrieval": one}, {"retrieval": other}) == deep_merge({"retrieval": one}, {"retrieval": other})


@pytest.mark.parametrize(
    ("metadata", "found"),
    [
        ({"retrieval": {"rerank": API}}, ("api", "m", None)),
        ({"retrieval.rerank.kind": "api", "retrieval.rerank.url": API["url"], "retrieval.rerank.model": "m"},
         ("api", "m", None)),
        ({"retrieval": {"rerank": {"kind": "listwise", "model": "ranker"}}}, ("listwise", "ranker", None)),
        ({"retrieval.rerank.model": "X"}, ("cross-encoder", "X", 512)),
        ({"retrieval.rerank.model": "X", "mine.retrieval.rerank.max_length": 99}, ("cross-encoder", "X", 99)),
        ({"mine.retrieval.rerank.model": "X", "retrieval.rerank.max_length": 99}, ("cross-encoder", "X", 99)),
        ({"retrieval.rerank.max_length": 99}, ("cross-encoder", BGE["model"], 99)),
        ({}, ("cross-encoder", BGE["model"], 256)),
    ],
)  # fmt: skip
def test_the_users_block_over_that_of_the_tasks_file(
    metadata: dict[str, Any], found: tuple[str, str, int | None], tmp_path: Path
) -> None:
    """The file that the task includes names the reranker; settings of the user's own are merged before."""
    base = {"data": {"benchmark": "jsonl"}, "retrieval": {"mode": "all", "depth": 50, "rerank": BGE}}
    (tmp_path / "base_yaml").write_text(yaml.safe_dump(base), "utf-8")
    leaf = {"task": "mine", "retrieval": {"k": 3}, "metrics": ["match"]}
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump({"include": "base_yaml", **leaf}), "utf-8")
    source = str(tmp_path / "mine.yaml")
    _, blocks = split_config({**leaf, "metadata": {"config_source": source, **metadata}}, ("match",))
    rerank = blocks.retrieval.rerank
    assert rerank is not None
    assert (rerank.kind, rerank.model, getattr(rerank, "max_length", None)) == found


def test_a_wrong_key_of_the_users_own_is_still_named() -> None:
    with pytest.raises(ConfigError, match=r"rerank: 'max_length' requires kind 'cross-encoder'"):
        validated(Retrieval, overlaid({"rerank": BGE}, {"rerank": {**API, "max_length": 9}}), "retrieval")
