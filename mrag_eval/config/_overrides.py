"""Settings of ``--metadata``, for all tasks of a run or, under a prefix, for some of them.

A prefix is the name of a benchmark, of a group, of a tag, or of a task: ``xrag.data.path=FOLDER``. The narrower name
wins: no prefix, then the benchmark, then groups and tags, then the task itself.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property
from itertools import combinations
from typing import Any, NamedTuple

from mrag_eval.config._agent import Agent
from mrag_eval.config._includes import BLOCKS
from mrag_eval.config._judge import Judge
from mrag_eval.config._prompt import Prompt
from mrag_eval.config._retrieval import Retrieval
from mrag_eval.config._validation import deep_merge, undotted
from mrag_eval.platform import ConfigError, close_match

# Keys of the harness's metadata that bound prompts, and those that name the model.
CONTEXT_METADATA = ("gguf_file", "max_length", "max_model_len")
NAMING_METADATA = ("pretrained", "model")
# Keys kept of that metadata: the harness merges all model arguments, secrets among them, into every task's.
KEPT_METADATA = ("version", "config_source", *NAMING_METADATA, *CONTEXT_METADATA)
# Keys that nobody reads are told with that many that are read.
_NEIGHBOURS = 3
METADATA = """--metadata retrieval.k=3   or   --metadata '{"retrieval": {"k": 3}}'"""


@dataclass(frozen=True)
class TaskNames:
    """The names that mean a task: its own, its benchmark's, and those of the groups and tags that hold it."""

    task: str
    benchmark: str | None = None
    holders: frozenset[str] = frozenset()

    def __iter__(self) -> Iterator[str]:
        yield from (self.task, *([] if self.benchmark is None else [self.benchmark]), *self.holders)

    def level(self, name: str) -> int | None:
        """Return how narrowly a name means the task: 0 is all tasks, 3 this one alone; None if it does not."""
        levels = {self.task: 3} | dict.fromkeys(self.holders, 2)
        # a group may have the name of its benchmark
        return 1 if name == self.benchmark else levels.get(name)


class _Setting(NamedTuple):
    prefix: str
    key: str
    value: Any


def settings_given(
    metadata: Mapping[str, Any], task: str, names: Callable[[], Mapping[str, TaskNames]]
) -> dict[str, Any]:
    """Return the settings of ``--metadata`` for a task, as blocks.

    ``names`` gives the names of every task of the run, this one included. It is asked only if there is a prefix.

    Raises ConfigError for a key of no block, a prefix that no task of the run has, and for two settings of one level
    that contradict each other.
    """
    where = f"task {task}, --metadata"
    named = _Run(task, names)
    by_level: dict[int, dict[str, dict[str, Any]]] = defaultdict(dict)
    for prefix, key, value in _settings(metadata, named, where):
        level = named.level(prefix)
        if level is not None:
            by_level[level].setdefault(prefix, {})[key] = value
        elif prefix not in named:
            raise ConfigError(
                f"--metadata {prefix}.{key}: no task of this run, nor its benchmark, group or tag, is called "
                f"'{prefix}'{close_match(prefix, named)}",
                f"name what is in --tasks, or a benchmark of it: {', '.join(named.benchmarks)}",
            )
    for given in by_level.values():
        for (one, left), (other, right) in combinations(given.items(), 2):
            _check_agreement((one, left), (other, right), where)
    return deep_merge(*(undotted(flat) for _, given in sorted(by_level.items()) for flat in given.values()))


def unread(metadata: Mapping[str, Any], names: Collection[str]) -> dict[str, list[str]]:
    """Return the keys of ``--metadata`` that no task of ours reads, each with the settings whose names are closest.

    ``names`` are those of tasks, groups, tags and benchmarks, under which settings may be.
    """
    wrong = [
        str(key)
        for key, value in metadata.items()
        if key not in (*KEPT_METADATA, *names)
        and not _split(str(key))[1]
        and not (isinstance(value, Mapping) and _holds_blocks(value))
    ]
    return {key: _closest(key) for key in wrong}


def _closest(key: str) -> list[str]:
    blocks = {"retrieval": Retrieval(), "agent": Agent(), "prompt": Prompt(), "judge": Judge()}
    settings = [*_flat({name: block.model_dump() for name, block in blocks.items()}), *NAMING_METADATA]
    settings += CONTEXT_METADATA
    words = {*key.lower().split("_")}

    def alike(setting: str) -> tuple[int, float]:
        name = setting.rpartition(".")[2]
        return len(words & {*name.split("_")}), SequenceMatcher(None, key.lower(), name).ratio()

    found = sorted(settings, key=alike, reverse=True)[:_NEIGHBOURS]
    return [setting for setting in found if alike(setting) > (0, 0.6)]


class _Run:
    """The names that mean a task of this run; they are found only if they are needed."""

    def __init__(self, task: str, names: Callable[[], Mapping[str, TaskNames]]) -> None:
        self._task, self._find = task, names

    @cached_property
    def _names(self) -> Mapping[str, TaskNames]:
        return self._find()

    def level(self, name: str) -> int | None:
        """Return how narrowly a name means the task, as :meth:`TaskNames.level` does."""
        return self._names[self._task].level(name) if name else 0

    @property
    def benchmarks(self) -> list[str]:
        return sorted({names.benchmark for names in self._names.values() if names.benchmark is not None})

    def __iter__(self) -> Iterator[str]:
        return iter({name for names in self._names.values() for name in names})

    def __contains__(self, name: str) -> bool:
        return any(names.level(name) is not None for names in self._names.values())


def _settings(metadata: Mapping[str, Any], run: _Run, where: str) -> Iterator[_Setting]:
    """Yield our settings among the harness's; raise ConfigError for one that is neither."""
    for name, value in metadata.items():
        key = str(name)
        prefix, block = _split(key)
        if block:
            _check_not_null(key, block, value, where)
            # the harness reads key=value pairs and knows true and false, not null
            yield _Setting(prefix, block, None if "." in key and value == "null" else value)
        elif key in KEPT_METADATA:
            continue
        elif isinstance(value, Mapping):
            # an argument of the model may be a mapping, too
            if _holds_blocks(value) or run.level(key) is not None:
                yield from _of_name(key, value, where)
        elif "." in key and key.partition(".")[0] not in KEPT_METADATA:
            raise _no_block(key, run, where)
        elif run.level(key) is not None:
            raise ConfigError(
                f"{where} {key}: expected settings, got {type(value).__name__} ({value!r})",
                f"--metadata {key}.retrieval.k=3",
            )


def _of_name(name: str, inner: Mapping[str, Any], where: str) -> Iterator[_Setting]:
    for key, value in inner.items():
        prefix, block = _split(str(key))
        if prefix or not block:
            raise _no_block(f"{name}.{key}", (name,), where)
        _check_not_null(f"{name}.{key}", block, value, where)
        yield _Setting(name, block, value)


def _check_not_null(key: str, block: str, value: Any, where: str) -> None:
    if value is None and block in BLOCKS:
        raise ConfigError(f"{where} {key}: null is no settings", f"leave it out, or name a key: {key}.KEY=VALUE")


def _split(key: str) -> tuple[str, str]:
    """Return the prefix of a key and the rest, which begins with a block; the rest is empty without a block."""
    parts = key.split(".")
    at = next((i for i, part in enumerate(parts) if part in BLOCKS), len(parts))
    return ".".join(parts[:at]), ".".join(parts[at:])


def _holds_blocks(value: Mapping[str, Any]) -> bool:
    return bool(value) and all(
        _split(str(key))[1]
        and not _split(str(key))[0]
        and ("." in str(key) or isinstance(inner, Mapping | list | None))
        for key, inner in value.items()
    )


def _no_block(key: str, run: Iterable[str], where: str) -> ConfigError:
    head, _, rest = key.partition(".")
    names = set(run)
    if head in names and rest:
        head = rest.partition(".")[0]
    hint = close_match(head, {*BLOCKS, *names}) or f"; allowed: {', '.join(sorted(BLOCKS))}"
    return ConfigError(f"{where} {key}: no block '{head}'{hint}", METADATA)


def _check_agreement(one: tuple[str, dict[str, Any]], other: tuple[str, dict[str, Any]], where: str) -> None:
    """Raise ConfigError if two names of one level set the same key to different values."""
    left, right = _flat(undotted(one[1])), _flat(undotted(other[1]))
    for key, value in left.items():
        for again, found in right.items():
            inside = again.startswith(f"{key}.") or key.startswith(f"{again}.")
            if inside or (key == again and value != found):
                raise ConfigError(
                    f"{where}: {one[0]}.{key}={value} contradicts {other[0]}.{again}={found}",
                    "leave one of them out, or name the task itself, which comes before groups and tags",
                )


def _flat(nested: Mapping[str, Any], start: str = "") -> dict[str, Any]:
    out: dict[str, Any] = {}
    for key, value in nested.items():
        out |= _flat(value, f"{start}{key}.") if isinstance(value, Mapping) else {f"{start}{key}": value}
    return out
