"""The task's own configuration blocks, merged from every place in which a user may set them.

The harness merges include files, group overrides and repeated ``--metadata`` flags key by key at the top level only: a
leaf with ``retrieval: {mode: all}`` would lose the base's ``k``. Here they are merged in depth, in this order: the
config file's ``data`` for the benchmark, the include chain from the ground up, the task's YAML or a group's override,
``--metadata`` (JSON or dotted keys, with or without a prefix).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from mrag_eval.config._agent import Agent
from mrag_eval.config._grounded import Grounded
from mrag_eval.config._includes import BLOCKS, benchmark_of, include_chain
from mrag_eval.config._judge import Judge
from mrag_eval.config._measures import (
    GROUNDED,
    RERANKED,
    check_grounded,
    check_metrics,
    deepest_cutoff,
    on_scale,
    rerank_measures,
)
from mrag_eval.config._overlay import overlaid
from mrag_eval.config._overrides import KEPT_METADATA, METADATA, TaskNames, settings_given
from mrag_eval.config._prompt import Prompt
from mrag_eval.config._retrieval import Retrieval
from mrag_eval.config._tasks import Listed, RunTasks, tasks_being_loaded
from mrag_eval.config._validation import deep_merge, validated
from mrag_eval.platform import ConfigError, FunctionName, did_you_mean

# Settings that every task of ours passes to the harness: our metrics instead of its own, and no shots.
_HARNESS_DEFAULTS: dict[str, Any] = {"metric_list": [], "test_split": "test", "num_fewshot": 0}
# Settings of the harness that this class replaces; ignoring them silently would mislead.
_UNUSED = {
    "metric_list": "name metrics in the block 'metrics'",
    "doc_to_text": "write a template and name it in prompt.template",
    "doc_to_target": "the benchmark's loader gives the answers",
    "doc_to_choice": "the benchmark's loader gives the choices",
    "description": "set prompt.system",
    "process_docs": "write the rows as you want them, or use the benchmark's own filters in 'data'",
    "process_results": "name metrics in the block 'metrics'",
    "custom_dataset": "name a benchmark in the block 'data'",
    "dataset_path": "name a benchmark in the block 'data'",
    "use_prompt": "set prompt.template",
}


class KnownMetrics(Collection[str], Protocol):
    """The names that a block ``metrics`` may list."""

    def named(self, entry: Any, where: str) -> str:
        """Return the name of a metric that is a function of the user's, or names one."""


@dataclass(frozen=True)
class TaskBlocks:
    """The validated blocks of one task. ``data`` is validated by its benchmark's loader.

    ``overrides`` are the settings from ``--metadata``, ``from_file`` the keys of ``data`` from the config file.
    """

    retrieval: Retrieval
    agent: Agent
    prompt: Prompt
    judge: Judge
    data: dict[str, Any]
    metrics: tuple[str, ...]
    overrides: Mapping[str, Any] = field(default_factory=dict)
    from_file: Mapping[str, Any] = field(default_factory=dict)

    @property
    def classifier(self) -> Grounded | None:
        """Return the classifier of support; None if no metric needs one, or the panel takes its place."""
        found = self.judge.grounded if {*GROUNDED} & {*self.metrics} else None
        return found if isinstance(found, Grounded) else None

    @property
    def claims_prompt(self) -> str | None:
        """Return the prompt by which the panel is asked about claims; None if no metric needs it."""
        return self.judge.claims_prompt if {*GROUNDED} & {*self.metrics} else None


def split_config(
    config: Mapping[str, Any],
    metrics: KnownMetrics,
    data: Mapping[str, Mapping[str, Any]] | None = None,
    *,
    run: RunTasks | None = None,
) -> tuple[dict[str, Any], TaskBlocks]:
    """Split a task's raw configuration into what the harness's task class gets and our validated blocks.

    ``metrics`` are the names that the block ``metrics`` may list, ranking measures aside. ``data`` holds, by benchmark,
    the config file's values for keys of the block ``data`` that the task's files leave out. ``run`` has every task of
    the run; with it the harness is not imported, and its keys are not checked.

    Raises ConfigError naming the task, the key and the allowed values.
    """
    rest = {key: value for key, value in config.items() if key not in (*BLOCKS, "class")}
    task = str(config.get("task", "?"))
    metadata = config.get("metadata") or {}
    # the harness puts anything but keys and values under a key of its own
    metadata = metadata.get("_metadata", metadata) if isinstance(metadata, Mapping) else metadata
    if not isinstance(metadata, Mapping):
        kind = type(metadata).__name__
        raise ConfigError(
            f"task {task}, metadata: expected keys and values, got {kind} ({metadata!r})",
            METADATA,
        )
    own = {key: config[key] for key in BLOCKS if key in config}
    files = overlaid(*include_chain(metadata.get("config_source")), own)
    overrides = settings_given(metadata, task, lambda: _names(task, files, config, run))
    merged = overlaid(files, overrides)
    defaults = (data or {}).get(benchmark_of(merged) or "", {})
    from_file = {key: value for key, value in defaults.items() if key not in merged["data"]}
    merged = deep_merge(merged, {"data": from_file} if from_file else {})
    rest["metadata"] = {key: metadata[key] for key in KEPT_METADATA if key in metadata}
    if source := rest["metadata"].get("config_source"):
        # results tell from where the task was read
        rest["metadata"]["config_source"] = str(Path(str(source)).absolute())
    for key, value in _HARNESS_DEFAULTS.items():
        rest.setdefault(key, value)
    if run is None:
        _check_harness_keys(rest, task)
    return rest, replace(_validate(merged, metrics, task), overrides=overrides, from_file=from_file)


def _validate(merged: Mapping[str, Any], known: KnownMetrics, task: str) -> TaskBlocks:
    if merged.get("data") is None:
        raise ConfigError(f"task {task}: the block 'data' is missing", "data: {benchmark: ...} names what to load")
    data = merged["data"]
    if not isinstance(data, Mapping):
        raise ConfigError(
            f"task {task}, data: expected keys and values, got {type(data).__name__} ({data!r})",
            "e.g. data: {benchmark: xquad}",
        )
    names = _metric_names(merged.get("metrics"), known, task)
    check_metrics(names, known, f"task {task}, metrics")
    block = _block(merged, "retrieval")
    retrieval = validated(Retrieval, block, f"task {task}, retrieval")
    deepest = deepest_cutoff(names)
    if retrieval.depth is None and deepest > retrieval.k:
        retrieval = validated(Retrieval, {**block, "depth": deepest}, f"task {task}, retrieval")
    if deepest > retrieval.search_depth:
        raise ConfigError(
            f"task {task}, retrieval.depth: {retrieval.search_depth} hits are too few for a metric at {deepest}",
            f"set retrieval.depth={deepest}, or leave depth out",
        )
    reranked = deepest_cutoff([name.removeprefix(RERANKED) for name in rerank_measures(names)])
    if retrieval.rerank is not None and reranked > retrieval.rerank_depth:
        raise ConfigError(
            f"task {task}, retrieval.rerank: {retrieval.rerank_depth} reranked are too few for a metric at {reranked}",
            f"set retrieval.depth={reranked} (and rerank.depth, where that is set)",
        )
    agent = validated(Agent, _block(merged, "agent"), f"task {task}, agent")
    prompt = validated(Prompt, _block(merged, "prompt"), f"task {task}, prompt")
    judge = validated(Judge, _block(merged, "judge"), f"task {task}, judge")
    check_grounded(
        names,
        judge.grounded,
        f"task {task}, metrics",
        "set judge.grounded: {model: a hub name or a folder} or {by: panel}",
    )
    return TaskBlocks(retrieval, agent, prompt, judge, dict(data), on_scale(names, judge.scale, task))


def _block(merged: Mapping[str, Any], key: str) -> Any:
    """Return a block as it was written; empty if it was left out or left blank."""
    value = merged.get(key)
    return {} if value is None else value


def _metric_names(metrics: Any, known: KnownMetrics, task: str) -> tuple[str, ...]:
    given = [metrics] if isinstance(metrics, str) else () if metrics is None else metrics
    if not isinstance(given, list | tuple) or not all(isinstance(name, str) or callable(name) for name in given):
        raise ConfigError(
            f"task {task}, metrics: expected a list of names, got {type(metrics).__name__} ({metrics!r})",
            "e.g. metrics: [char3gram_recall]",
        )
    where = f"task {task}, metrics"
    own = (callable(n) or isinstance(n, FunctionName) or ":" in n or "/" in n for n in given)
    names = [known.named(name, where) if is_own else name for name, is_own in zip(given, own, strict=True)]
    if not names:
        raise ConfigError(f"task {task}: the block 'metrics' is missing or empty", "e.g. metrics: [char3gram_recall]")
    for i, name in enumerate(names):
        if name in names[:i]:
            raise ConfigError(f"task {task}, metrics: '{name}' is named twice", "name every metric once")
    return tuple(names)


def _names(
    task: str, files: Mapping[str, Any], config: Mapping[str, Any], run: RunTasks | None
) -> dict[str, TaskNames]:
    """Return the names of the tasks of a run, and of this one if the harness's task manager does not load it."""
    run = tasks_being_loaded() if run is None else run
    alone = TaskNames(task, benchmark_of(files), frozenset(Listed(None, config).tags))
    return {task: alone, **({} if run is None else run.names)}


def _check_harness_keys(rest: Mapping[str, Any], task: str) -> None:
    from mrag_eval.harness import task_keys

    known = task_keys()
    for key in rest:
        if key not in known:
            raise ConfigError(f"task {task}: unknown key '{key}'{did_you_mean(key, known | set(BLOCKS))}")
    for key, instead in _UNUSED.items():
        if rest.get(key):
            raise ConfigError(f"task {task}: '{key}' does nothing in a task of this class", instead)
    if rest.get("output_type", "generate_until") not in ("generate_until", "multiple_choice"):
        raise ConfigError(
            f"task {task}: output_type '{rest['output_type']}' is not supported",
            "use generate_until, or multiple_choice for the likelihood of a row's options",
        )
    if rest.get("repeats", 1) != 1:
        raise ConfigError(f"task {task}: repeats={rest['repeats']}: every row is asked once", "leave repeats out")
    filters = rest.get("filter_list") or []
    if len(filters) > 1:
        raise ConfigError(
            f"task {task}: filter_list has {len(filters)} filters, one is the most: each further one would score "
            "and log every document again",
            "keep one filter, or none",
        )
