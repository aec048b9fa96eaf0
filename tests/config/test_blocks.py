"""Task blocks with users' mistakes: always one line that names task, block and key."""

from __future__ import annotations

from typing import Any

import pytest

from mrag_eval.config import split_config
from mrag_eval.platform import ConfigError
from mrag_eval.scoring import METRIC_NAMES


def config(**changes: Any) -> dict[str, Any]:
    return {"task": "mine", "data": {"benchmark": "xquad"}, "metrics": ["exact_match"], **changes}


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"metadata": {"retrieval.k": "abc"}}, ("retrieval.k", "'abc'")),
        ({"metadata": {"retrieval": "all"}}, ("retrieval", "'all'")),
        ({"retrieval": ["all"]}, ("retrieval", "list")),
        ({"retrieval": 0}, ("retrieval", "int")),
        ({"prompt": "short_answer"}, ("prompt", "'short_answer'")),
        ({"judge": True}, ("judge", "bool")),
        ({"data": "xquad"}, ("data", "'xquad'")),
        ({"data": None}, ("'data'", "missing")),
        ({"metrics": 5}, ("metrics", "int")),
        ({"metrics": ["exact_match", 5]}, ("metrics", "list")),
        ({"metrics": {"em": 1}}, ("metrics", "dict")),
        ({"metrics": []}, ("'metrics'", "empty")),
        ({"metadata": "version"}, ("metadata", "'version'")),
        ({"retrieval": {"languages": 5}}, ("retrieval.languages", "list")),
        ({"retrieval": {"mode": "all", "languages": {"en": 1}}}, ("retrieval.languages", "list")),
        ({"retrieval": {"given": 3}}, ("retrieval.given", "expected keys and values", "int")),
        ({"retrieval": {"seed": -1}}, ("retrieval.seed", "-1")),
        ({"retrieval": {"depth": "deep"}}, ("retrieval.depth", "'deep'")),
    ],
)
def test_wrong_types_are_named_in_one_line(changes: dict[str, Any], named: tuple[str, ...]) -> None:
    with pytest.raises(ConfigError) as caught:
        split_config(config(**changes), METRIC_NAMES)
    assert "task mine" in caught.value.message
    assert "\n" not in caught.value.message
    for part in named:
        assert part in caught.value.message


@pytest.mark.parametrize("depth", [{}, {"depth": None}])
def test_depth_left_out_is_as_deep_as_the_deepest_metric(depth: dict[str, Any]) -> None:
    _, blocks = split_config(config(metrics=["hit@20"], retrieval={"mode": "all", "k": 5, **depth}), METRIC_NAMES)
    assert blocks.retrieval.search_depth == 20
    _, shallow = split_config(config(metrics=["hit@3"], retrieval={"mode": "all", "k": 5, **depth}), METRIC_NAMES)
    assert shallow.retrieval.search_depth == 5


def test_blocks_left_out_or_left_blank_have_their_defaults() -> None:
    _, absent = split_config(config(), METRIC_NAMES)
    _, blank = split_config(config(retrieval=None, prompt=None, judge=None), METRIC_NAMES)
    assert absent == blank


def test_null_on_the_command_line_takes_a_setting_back() -> None:
    reranked = {"mode": "all", "rerank": "BAAI/bge-reranker-v2-m3"}
    _, blocks = split_config(config(retrieval=reranked, metadata={"retrieval.rerank": "null"}), METRIC_NAMES)
    assert blocks.retrieval.rerank is None
