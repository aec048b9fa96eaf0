"""The tasks behind the names that ``--tasks`` takes, from their files alone."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple

from mrag_eval.config import TaskBlocks, TaskNames, names_of, read_task_yaml, split_config
from mrag_eval.core import ConfigError, close_match, naming
from mrag_eval.datasets import LOADERS, DataBlock, Declaration, Expected, data_of_config, validate_data
from mrag_eval.scoring import METRIC_NAMES

# The harness's own default for the length of a reply.
_LONGEST_REPLY = 256


class Listed(NamedTuple):
    """A task or group that the harness can find: its file, and the content of that file."""

    path: Path | None
    config: Mapping[str, Any]


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


def listed_in(folders: Sequence[Path]) -> dict[str, Listed]:
    """Return the tasks and groups in these folders by name; files that cannot be read are left out."""
    from yaml import YAMLError

    found: dict[str, Listed] = {}
    for path in (path for folder in folders for path in sorted(folder.rglob("*.yaml"))):
        try:
            config = read_task_yaml(path)
        except (OSError, ValueError, TypeError, YAMLError, RecursionError):
            continue
        name = config.get("group" if _is_group(config) else "task")
        if isinstance(name, str):
            found[name] = Listed(path, config)
    return found


def leaves_of(
    asked: Sequence[str | Mapping[str, Any]],
    known: Mapping[str, Listed],
    metadata: Mapping[str, Any],
    limit: float | None = None,
) -> list[PlannedTask]:
    """Return the tasks of our class that these names stand for, each once.

    ``asked`` are names of tasks, groups and tags, wildcards, files, or configurations of tasks. Names that are not
    ``known`` are left out: they may be tasks of the harness. Raises ConfigError for an invalid block.
    """
    raw = {str(config.get("task")): config for name in asked for config in _configs(name, known, {}, ())}
    ours = {name: config for name, config in raw.items() if _is_ours(config)}
    holders = _holders(known, ours)
    named = {name: names_of(name, config, holders[name]) for name, config in ours.items()}
    return [_leaf(name, config, metadata, limit, named) for name, config in ours.items()]


def _holders(known: Mapping[str, Listed], names: Iterable[str]) -> dict[str, set[str]]:
    """Return the groups and tags that hold each of some tasks.

    Found from the tasks upwards: the harness knows a thousand groups, and each task is in a few.
    """
    holding: dict[str, set[str]] = defaultdict(set)
    for name, listed in known.items():
        for member in _named_in(listed.config) if _is_group(listed.config) else ():
            holding[member].add(name)
    wildcards = [member for member in holding if "*" in member]
    found: dict[str, set[str]] = {}
    for task in names:
        held = set(_tags(known[task].config)) if task in known else set()
        waiting = [task, *held]
        while waiting:
            one = waiting.pop()
            written = (one, *(each for each in wildcards if fnmatchcase(one, each)))
            above = {group for each in written for group in holding.get(each, ())} - held
            held |= above
            waiting += above
        found[task] = held
    return found


def unknown_name(asked: Sequence[str], known: Mapping[str, Listed]) -> ConfigError | None:
    """Return the error for the first name that stands for no task; None if there is none."""
    for name in asked:
        if next(_configs(name, known, {}, ()), None) is None:
            tags = {tag for listed in known.values() for tag in _tags(listed.config)}
            return ConfigError(
                f"no task '{name}'{close_match(name, {*known, *tags})}", "mrag-eval tasks   lists our tasks and tags"
            )
    return None


def _configs(
    asked: str | Mapping[str, Any], known: Mapping[str, Listed], changes: Mapping[str, Any], above: tuple[str, ...]
) -> Iterator[dict[str, Any]]:
    """Yield the raw configurations of the tasks of one name, with the ``changes`` that groups make to them."""
    if isinstance(asked, Mapping):
        yield from _members(asked, known, changes, above) if "class" not in asked else [{**asked, **changes}]
        return
    if asked.endswith(".yaml") and "*" not in asked:
        path = Path(asked).absolute()
        if path.is_file():
            yield from _of_file(Listed(path, read_task_yaml(path)), known, changes, above)
        return
    if asked in known:
        yield from _of_file(known[asked], known, changes, above)
        return
    for name, listed in known.items():
        fits = fnmatchcase(name, asked) if "*" in asked else False
        if fits or any(fnmatchcase(tag, asked) for tag in _tags(listed.config)):
            yield from _of_file(listed, known, changes, above)


def _of_file(
    listed: Listed, known: Mapping[str, Listed], changes: Mapping[str, Any], above: tuple[str, ...]
) -> Iterator[dict[str, Any]]:
    config = listed.config
    if _is_group(config):
        yield from _members(config, known, changes, above)
        return
    metadata = {**_mapping(config.get("metadata")), "config_source": "" if listed.path is None else str(listed.path)}
    yield {**config, **changes, "metadata": {**metadata, **_mapping(changes.get("metadata"))}}


def _members(
    group: Mapping[str, Any], known: Mapping[str, Listed], changes: Mapping[str, Any], above: tuple[str, ...]
) -> Iterator[dict[str, Any]]:
    name = str(group.get("group"))
    members = group.get("task")
    if name in above or not isinstance(members, list):
        return
    for member in members:
        inner = {k: v for k, v in member.items() if k not in ("task", "group")} if isinstance(member, Mapping) else {}
        named = member.get("group", member.get("task")) if isinstance(member, Mapping) else member
        if isinstance(named, str):
            yield from _configs(named, known, {**changes, **inner}, (*above, name))


def _is_group(config: Mapping[str, Any]) -> bool:
    return "group" in config and "class" not in config


def _named_in(group: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of a group's members, and those of groups that are written within it."""
    members = group.get("task")
    for member in members if isinstance(members, list) else ():
        named = member.get("group", member.get("task")) if isinstance(member, Mapping) else member
        if isinstance(named, str):
            yield named
        if isinstance(member, Mapping) and "group" in member:
            yield from _named_in(member)


def _tags(config: Mapping[str, Any]) -> tuple[str, ...]:
    tags = config.get("tag") or ()
    return (tags,) if isinstance(tags, str) else tuple(map(str, tags))


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _is_ours(config: Mapping[str, Any]) -> bool:
    named = config.get("class")
    return getattr(named, "__name__", str(named)).rpartition(".")[2] == "RagTask"


def _leaf(
    name: str,
    config: dict[str, Any],
    metadata: Mapping[str, Any],
    limit: float | None,
    run: Mapping[str, TaskNames],
) -> PlannedTask:
    config = {**config, "metadata": {**config["metadata"], **metadata}}
    _, blocks = split_config(config, METRIC_NAMES, data_of_config(), run=run)
    with naming(name):
        data = validate_data(blocks.data)
    loader = LOADERS[data.benchmark]
    expected = Expected() if loader.expected is None else loader.expected(data)
    whole = expected.rows
    rows = _limited(None if whole is None else math.ceil(whole * (data.share or 1)), limit)
    return PlannedTask(name, blocks, data, loader.declaration, expected, rows, _longest_reply(config))


def _limited(rows: int | None, limit: float | None) -> int | None:
    """Return the number of rows that ``--limit`` leaves, as the harness counts."""
    if limit is None or rows is None:
        return rows if limit is None or limit < 1 else int(limit)
    return min(rows, int(limit) if limit >= 1 else math.ceil(rows * limit))


def _longest_reply(config: Mapping[str, Any]) -> int:
    if config.get("output_type") == "multiple_choice":
        return 0
    longest = _mapping(config.get("generation_kwargs")).get("max_gen_toks", _LONGEST_REPLY)
    return longest if isinstance(longest, int) else _LONGEST_REPLY
