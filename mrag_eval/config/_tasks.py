"""Tasks, groups and tags: the files that define them, and the tasks that the names of ``--tasks`` stand for."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from mrag_eval.config._includes import BLOCKS, benchmark_of, include_chain
from mrag_eval.config._overrides import TaskNames
from mrag_eval.config._task_yaml import read_task_yaml
from mrag_eval.config._validation import deep_merge
from mrag_eval.platform import ConfigError, beside, close_match

if TYPE_CHECKING:
    from mrag_eval.harness import TaskLoading, TaskManager

# Keys of a group that are its own; any other is a setting of its tasks.
_OF_GROUP = frozenset({"group", "group_alias", "task", "aggregate_metric_list", "metadata"})


class Listed(NamedTuple):
    """A task or group: its file, None for one without, and the content of that file."""

    path: Path | None
    config: Mapping[str, Any]

    @property
    def is_group(self) -> bool:
        return "group" in self.config and "class" not in self.config

    @property
    def tags(self) -> tuple[str, ...]:
        tags = self.config.get("tag") or ()
        return (tags,) if isinstance(tags, str) else tuple(map(str, tags))

    @property
    def members(self) -> list[tuple[str, Mapping[str, Any]]]:
        """Return what a group holds: names, each with the member as it is written, settings of its own included."""
        written = self.config.get("task")
        given = [
            member if isinstance(member, Mapping) else {"task": member}
            for member in (written if isinstance(written, list) else ())
        ]
        named = [(member.get("group", member.get("task")), member) for member in given]
        return [(name, member) for name, member in named if isinstance(name, str)]


def listed_in(folders: Sequence[Path]) -> dict[str, Listed]:
    """Return the tasks and groups in these folders by name; files that cannot be read are left out."""
    from yaml import YAMLError

    found: dict[str, Listed] = {}
    for path in (path for folder in folders for path in sorted(folder.rglob("*.yaml"))):
        try:
            listed = Listed(path, read_task_yaml(path))
        except (OSError, ValueError, TypeError, YAMLError, RecursionError):
            continue
        name = listed.config.get("group" if listed.is_group else "task")
        if isinstance(name, str):
            found[name] = listed
    return found


def listed_by(manager: TaskManager) -> Mapping[str, Listed]:
    """Return the tasks and groups that the harness's task manager knows, by name."""
    from mrag_eval.harness import listed_tasks

    return listed_tasks(manager, Listed)


class RunTasks:
    """The tasks of one run, and the names that mean each; both are found when they are first asked for.

    Args:
        asked: names of tasks, groups and tags, wildcards, files, or configurations of tasks.
        known: the tasks and groups that exist. Other names are left out: they may be tasks of the harness.
    """

    def __init__(self, asked: Sequence[str | Mapping[str, Any]], known: Mapping[str, Listed]) -> None:
        self._asked, self._known = asked, known

    @cached_property
    def configs(self) -> dict[str, dict[str, Any]]:
        """Return the raw configuration of each task by name."""
        found = (config for name in self._asked for config in _configs(name, self._known, {}, ()))
        return {str(config.get("task")): config for config in found}

    @cached_property
    def names(self) -> dict[str, TaskNames]:
        """Return the names of each task of a class of its own that names a benchmark, as ours do."""
        ours = {name: Listed(None, config) for name, config in self.configs.items() if "class" in config}
        holders = _holders(self._known, {name: task.tags for name, task in ours.items()})
        found = {name: TaskNames(name, _benchmark(task.config), holders[name]) for name, task in ours.items()}
        return {name: names for name, names in found.items() if names.benchmark is not None}


def tasks_being_loaded() -> RunTasks | None:
    """Return the tasks that the harness loads now; None while it loads none."""
    from mrag_eval.harness import loading

    now = loading()
    return None if now is None else _tasks_of(now)


# Each task that is loaded asks for all of them.
@lru_cache(maxsize=1)
def _tasks_of(now: TaskLoading) -> RunTasks:
    return RunTasks(now.asked, listed_by(now.manager))


def unknown_name(asked: Sequence[str], known: Mapping[str, Listed]) -> ConfigError | None:
    """Return the error for the first name that stands for no task; None if there is none."""
    for name in asked:
        if next(_configs(name, known, {}, ()), None) is None:
            tags = {tag for listed in known.values() for tag in listed.tags}
            return ConfigError(
                f"no task '{name}'{closest_task(name, {*known, *tags})}",
                "mrag-eval tasks   lists our benchmarks and tags, lm_eval ls tasks the harness's tasks",
            )
    return None


def closest_task(name: str, known: Iterable[str]) -> str:
    """Return ``"; did you mean 'x'?"`` for the closest of the known names, of a file for that of one beside it."""
    if not name.endswith((".yml", ".yaml")):
        return close_match(name, known)
    return "; the name of a task's file ends in .yaml" if Path(name).is_file() else beside(Path(name))


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
        if fits or any(fnmatchcase(tag, asked) for tag in listed.tags):
            yield from _of_file(listed, known, changes, above)


def _of_file(
    listed: Listed, known: Mapping[str, Listed], changes: Mapping[str, Any], above: tuple[str, ...]
) -> Iterator[dict[str, Any]]:
    config = listed.config
    if listed.is_group:
        yield from _members(config, known, changes, above)
        return
    metadata = {**_mapping(config.get("metadata")), "config_source": "" if listed.path is None else str(listed.path)}
    yield {**config, **changes, "metadata": {**metadata, **_mapping(changes.get("metadata"))}}


def _members(
    group: Mapping[str, Any], known: Mapping[str, Listed], changes: Mapping[str, Any], above: tuple[str, ...]
) -> Iterator[dict[str, Any]]:
    name = str(group.get("group"))
    if name in above:
        return
    changes = {**{key: value for key, value in group.items() if key not in _OF_GROUP}, **changes}
    for named, member in Listed(None, group).members:
        if "group" in member and named not in known:
            # a group that is written within another
            yield from _members(member, known, changes, (*above, name))
        else:
            own = {key: value for key, value in member.items() if key not in ("task", "group")}
            yield from _configs(named, known, {**changes, **own}, (*above, name))


def _holders(known: Mapping[str, Listed], tags: Mapping[str, Iterable[str]]) -> dict[str, frozenset[str]]:
    """Return the groups and tags that hold each of some tasks, given their tags.

    Found from the tasks upwards: the harness knows a thousand groups, and each task is in a few.
    """
    holding: dict[str, set[str]] = defaultdict(set)
    for name, listed in known.items():
        for member in _named_in(listed) if listed.is_group else ():
            holding[member].add(name)
    wildcards = [member for member in holding if "*" in member]
    found: dict[str, frozenset[str]] = {}
    for task, own in tags.items():
        held = set(own)
        waiting = [task, *held]
        while waiting:
            one = waiting.pop()
            written = (one, *(each for each in wildcards if fnmatchcase(one, each)))
            above = {group for each in written for group in holding.get(each, ())} - held
            held |= above
            waiting += above
        found[task] = frozenset(held)
    return found


def _named_in(group: Listed) -> Iterator[str]:
    """Yield the names of a group's members, and those of groups that are written within it."""
    for name, member in group.members:
        yield name
        if "group" in member:
            yield from _named_in(Listed(None, member))


def _benchmark(config: Mapping[str, Any]) -> str | None:
    """Return the benchmark that a task's files name; None if they name none."""
    own = {key: config[key] for key in BLOCKS if key in config}
    return benchmark_of(deep_merge(*include_chain(_mapping(config.get("metadata")).get("config_source")), own))


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
