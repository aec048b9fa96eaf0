"""Runs of lm-evaluation-harness with its own flags and with our tasks."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mrag_eval.cli._first import First
from mrag_eval.config import load_config
from mrag_eval.core import (
    ConfigError,
    check_address,
    check_header,
    check_output,
    did_you_mean,
    json_value,
    keep_secrets_of,
    tasks_folder,
    visible_to_harness,
)
from mrag_eval.models import register_model_types

if TYPE_CHECKING:
    from argparse import Namespace

    from mrag_eval.harness import TaskManager
    from mrag_eval.task import RagTask

_NOT_FIRST = ("--no-retrieve-first", "--no_retrieve_first")
# The variable with the key of an evaluated model, by the beginning of its type.
_KEYS = {"openai": "OPENAI_API_KEY", "local-": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}
# Flags that only the harness's own command implements: with them it runs as a whole.
_STOCK_ONLY = ("wandb_args", "wandb_config_args", "trackio_args", "hf_hub_log_args", "show_config")


def run(arguments: Sequence[str], *, debug: bool = False) -> None:
    """Run ``lm_eval run`` with the same flags, and ``--no-retrieve-first``.

    Our task folder is added if the harness does not hold it already. If every requested task is ours (or in the given
    ``--include_path``), the built-in tasks are not indexed, which takes the harness over ten seconds. A separate
    process retrieves for our tasks before the evaluated model is loaded (:mod:`mrag_eval.retrieval.ahead._process`).
    """
    from mrag_eval.harness import check_model_type, setup_logging

    setup_logging()
    register_model_types()
    first = First(debug, not {*_NOT_FIRST} & {*arguments} and load_config().retrieve_first)
    args = _parse([argument for argument in arguments if argument not in _NOT_FIRST])
    asked = _settings(args)
    if isinstance(asked.get("model"), str):
        check_model_type(asked["model"], "e.g. --model hf --model_args pretrained=Qwen/Qwen3-1.7B")
    if asked.get("output_path"):
        check_output(Path(str(asked["output_path"])), "--output_path")
    wanted = [name for name in _names(asked.get("tasks")) if name]
    own = tasks_folder()
    extra = [str(own)] if not visible_to_harness(own) else []
    given = _paths(asked.get("include_path"))
    if wanted and not any(asked.get(flag) for flag in _STOCK_ONLY):
        manager = _manager([str(own), *given], asked)
        if _all_in(wanted, manager):
            _evaluate(args, manager, [*extra, *given], first)
            return
    args.include_path = [*extra, *given] or None
    ours = _ours(wanted, _manager([str(own), *given], asked)) if first.wanted else {}
    try:
        with first.rows_for(ours, asked.get("limit"), _samples(asked)):
            args.func(args)
    except ValueError as error:
        raise _unknown_tasks(error, given) from error


def built_tasks(arguments: Sequence[str]) -> tuple[dict[str, RagTask], dict[str, list[int]] | None]:
    """Return the requested tasks of our class, by name, and the rows that ``--samples`` names.

    Raises ConfigError for a name that is not one of our tasks or those in ``--include_path``.
    """
    from mrag_eval.harness import setup_logging

    setup_logging()
    asked = _settings(_parse(arguments))
    manager = _manager([str(tasks_folder()), *_paths(asked.get("include_path"))], asked)
    wanted = [name for name in _names(asked.get("tasks")) if name]
    unknown = next((name for name in wanted if not _all_in([name], manager) and not _matching(name, manager)), None)
    if unknown is not None:
        raise _unknown_tasks(ValueError(f"Tasks not found: {unknown}"), _paths(asked.get("include_path")))
    return _ours(wanted, manager), _samples(asked)


def _matching(name: str, manager: TaskManager) -> list[str]:
    """Return the tasks that match a name with a wildcard."""
    from fnmatch import fnmatch

    return [known for known in manager.all_tasks if fnmatch(known, name)] if "*" in name else []


def _ours(wanted: Sequence[str], manager: TaskManager) -> dict[str, RagTask]:
    """Return the requested tasks of our class, built."""
    from mrag_eval.task import RagTask

    names = dict.fromkeys(
        found
        for name in wanted
        for found in ([str(Path(name).absolute())] if name.endswith(".yaml") else _matching(name, manager) or [name])
        if _all_in([found], manager)
    )
    tasks = manager.load(list(names))["tasks"] if names else {}
    return {name: task for name, task in tasks.items() if isinstance(task, RagTask)}


def _samples(asked: Mapping[str, Any]) -> dict[str, list[int]] | None:
    """Return the value of ``--samples``, from its JSON or a file of it."""
    value = asked.get("samples")
    if isinstance(value, str):
        path = Path(value)
        try:
            value = json_value(path.read_bytes() if path.is_file() else value)
        except (OSError, ValueError):
            raise ConfigError(
                f"--samples {value}: neither JSON nor a file of it",
                """--samples '{"task": [0, 1]}'   or a file that says so""",
            ) from None
    if value and not (isinstance(value, Mapping) and all(isinstance(rows, list) for rows in value.values())):
        raise ConfigError("--samples: expected lists of row numbers by task", """--samples '{"task": [0, 1]}'""")
    return None if not value else {str(task): list(rows) for task, rows in value.items()}


def _parse(arguments: Sequence[str]) -> Namespace:
    from mrag_eval.harness import run_parser

    return run_parser().parse_args(["run", *arguments])


def _settings(args: Namespace) -> dict[str, Any]:
    """Return the settings of the flags, which override those of the ``--config`` file."""
    from mrag_eval.harness import config_file_settings

    named = getattr(args, "config", None)
    base = config_file_settings(named) if named else {}
    asked = base | {key: value for key, value in vars(args).items() if value is not None}
    _check_evaluated(asked)
    return asked


def _check_evaluated(asked: Mapping[str, Any]) -> None:
    """Hide the secrets among the arguments; raise ConfigError for an address or a key that no request can carry."""
    args = _pairs(asked.get("model_args"))
    keep_secrets_of([args, _pairs(asked.get("metadata"))])
    if isinstance(args.get("base_url"), str):
        check_address(args["base_url"], "--model_args base_url")
    headers = args.get("header")
    for name, value in headers.items() if isinstance(headers, Mapping) else ():
        check_header(str(value), f"--model_args header {name}")
    for start, variable in _KEYS.items():
        if str(asked.get("model")).startswith(start) and variable in os.environ:
            check_header(os.environ[variable], f"the environment variable {variable}")


def _pairs(value: Any) -> Mapping[str, Any]:
    """Return arguments as keys and values; none if they cannot be read, which is reported where they are used."""
    if isinstance(value, str):
        from mrag_eval.harness import parse_arguments

        try:
            return parse_arguments(value)
        except ValueError:
            return {}
    return value if isinstance(value, Mapping) else {}


def _names(tasks: Any) -> list[str]:
    parts = [tasks] if isinstance(tasks, str) else tasks or []
    return [name.strip() for part in parts for name in (part.split(",") if isinstance(part, str) else [""])]


def _paths(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else [str(path) for path in value or ()]


def _manager(folders: Sequence[str], asked: dict[str, Any]) -> TaskManager:
    for folder in folders:
        if not Path(folder).is_dir():
            raise ConfigError(
                f"--include_path {folder} is not a folder", "name the folder that holds the task's YAML file"
            )
    from mrag_eval.harness import parse_arguments, task_manager

    merged: dict[str, Any] = {}
    for key in ("model_args", "metadata"):
        value = asked.get(key)
        if isinstance(value, str):
            value = parse_arguments(value)
        merged |= value or {}
    return task_manager(folders, merged)


def _all_in(wanted: Sequence[str], manager: TaskManager) -> bool:
    """Return whether all tasks are ours. A wildcard may match built-in tasks too, so it counts as not ours."""
    known = set(manager.all_tasks)
    return all(name in known or (name.endswith(".yaml") and Path(name).is_file()) for name in wanted)


def _evaluate(args: Namespace, manager: TaskManager, include: Sequence[str], first: First) -> None:
    from mrag_eval.harness import evaluate, load_tasks, run_settings, score_table

    args.include_path = list(include) or None
    settings, config = run_settings(args)
    names = dict.fromkeys(str(Path(n).absolute()) if n.endswith(".yaml") else n for n in _names(config.tasks))
    # a wrong setting, file or corpus is reported before the model is loaded
    settings["tasks"], built = load_tasks(manager, list(names))
    first.rows_of(built, config.limit, settings["samples"])
    results = evaluate(settings, manager, config.output_path)
    if results is None:
        return
    print(f"{config.model}, gen_kwargs: {config.gen_kwargs}, limit: {config.limit}, batch_size: {config.batch_size}")
    print(score_table(results))


def _unknown_tasks(error: ValueError, folders: Sequence[str]) -> Exception:
    message = str(error)
    if not message.startswith("Tasks not found"):
        return error
    from mrag_eval.cli._catalog import list_tasks

    missing = message.partition(":")[2].split(",")[0].strip()
    known = [name for folder in (None, *map(Path, folders)) for e in list_tasks(folder) for name in (e.name, *e.tags)]
    close = did_you_mean(missing, known)
    return ConfigError(
        f"no task '{missing}'{close if 'did you mean' in close else ''}",
        "mrag-eval tasks   lists our benchmarks and tags, lm_eval ls tasks the harness's tasks",
    )
