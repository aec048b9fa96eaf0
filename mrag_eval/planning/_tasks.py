"""The tasks of a plan: their blocks and their rows, from their files alone."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mrag_eval.config import Listed, RunTasks, TaskBlocks, split_config
from mrag_eval.datasets import LOADERS, DataBlock, Declaration, Expected, data_of_config, validate_data
from mrag_eval.platform import limited, naming
from mrag_eval.scoring import METRIC_NAMES

# The harness's own default for the length of a reply.
_LONGEST_REPLY = 256


@dataclass(frozen=True)
class PlannedTask:
    """One task: its validated blocks, its benchmark, and how many of its rows run.

    ``rows`` is None where the number is unknown. ``longest_reply`` bounds the reply of the evaluated model in tokens;
    it is 0 if likelihoods are compared.
    """

    name: str
    blocks: TaskBlocks
    data: DataBlock
    declaration: Declaration
    expected: Expected
    rows: int | None
    longest_reply: int


def leaves_of(
    asked: Sequence[str | Mapping[str, Any]],
    known: Mapping[str, Listed],
    metadata: Mapping[str, Any],
    limit: float | None = None,
) -> list[PlannedTask]:
    """Return the tasks of our class that these names stand for, each once.

    ``asked`` and ``known`` are as in :class:`mrag_eval.config.RunTasks`. Raises ConfigError for an invalid block.
    """
    run = RunTasks(asked, known)
    return [_leaf(name, config, metadata, limit, run) for name, config in run.configs.items() if _is_ours(config)]


def _is_ours(config: Mapping[str, Any]) -> bool:
    named = config.get("class")
    return getattr(named, "__name__", str(named)).rpartition(".")[2] == "RagTask"


def _leaf(
    name: str,
    config: dict[str, Any],
    metadata: Mapping[str, Any],
    limit: float | None,
    run: RunTasks,
) -> PlannedTask:
    config = {**config, "metadata": {**config["metadata"], **metadata}}
    _, blocks = split_config(config, METRIC_NAMES, data_of_config(), run=run)
    with naming(name):
        data = validate_data(blocks.data)
    loader = LOADERS[data.benchmark]
    expected = Expected() if loader.expected is None else loader.expected(data)
    whole = expected.rows
    rows = limited(None if whole is None else math.ceil(whole * (data.share or 1)), limit)
    return PlannedTask(name, blocks, data, loader.declaration, expected, rows, _longest_reply(config))


def _longest_reply(config: Mapping[str, Any]) -> int:
    if config.get("output_type") == "multiple_choice":
        return 0
    given = config.get("generation_kwargs")
    longest = given.get("max_gen_toks", _LONGEST_REPLY) if isinstance(given, Mapping) else _LONGEST_REPLY
    return longest if isinstance(longest, int) else _LONGEST_REPLY
