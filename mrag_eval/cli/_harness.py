"""Runs of lm-evaluation-harness with its own flags and with our tasks."""

from __future__ import annotations

import logging
import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import chain, pairwise
from os.path import relpath
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from mrag_eval.cli._first import First
from mrag_eval.cli._flags import check_flags, check_for_tasks, check_given_once, check_model, pairs_of, samples_of
from mrag_eval.cli._options import screen_width
from mrag_eval.cli._task_files import blaming, expanded, fault_in
from mrag_eval.config import RAG, listed_by, load_config, unknown_name
from mrag_eval.core import points
from mrag_eval.models import evaluating, own_replies, register_model_types, system_arguments, task_settings
from mrag_eval.platform import ConfigError, MragError, check_output, check_output_file, tasks_folder, visible_to_harness

if TYPE_CHECKING:
    from argparse import Namespace

    from mrag_eval.harness import TaskManager
    from mrag_eval.task import RagTask

# Below the harness's logger, so that its command shows our lines as it shows its own.
log = logging.getLogger(f"lm_eval.{__name__}")
_NOT_FIRST = ("--no-retrieve-first", "--no_retrieve_first")
# Flags that only the harness's own command implements: with them it runs as a whole.
_STOCK_ONLY = ("wandb_args", "wandb_config_args", "trackio_args", "hf_hub_log_args", "show_config")


def run(arguments: Sequence[str], *, debug: bool = False) -> None:
    """Run ``lm_eval run`` with the same flags, and ``--no-retrieve-first``.

    Our task folder is added if the harness does not hold it already. If every requested task is ours (or in the given
    ``--include_path``), the built-in tasks are not indexed, which takes the harness over ten seconds. A separate
    process retrieves for our tasks before the evaluated model is loaded (:mod:`mrag_eval.retrieval.ahead._process`).
    """
    from mrag_eval.harness import setup_logging

    setup_logging()
    register_model_types()
    first = First(debug, not {*_NOT_FIRST} & {*arguments} and load_config().retrieve_first)
    args = _parse([argument for argument in arguments if argument not in _NOT_FIRST])
    asked = _settings(args)
    check_flags(asked)
    if asked.get("output_path"):
        # code of the user's may change the folder
        args.output_path = asked["output_path"] = str(Path(asked["output_path"]).absolute())
    if asked.get("model") == RAG:
        args.model_args = asked["model_args"] = system_arguments(pairs_of(asked.get("model_args")))
    check_model(asked)
    samples = samples_of(asked)
    if asked.get("output_path"):
        check_output(Path(asked["output_path"]), "--output_path")
    with evaluating(asked.get("model", "hf"), pairs_of(asked.get("model_args"))):
        if asked.get("use_cache"):
            args.use_cache = asked["use_cache"] = own_replies(asked["use_cache"])
            # the harness adds the rank to the name
            check_output_file(Path(f"{args.use_cache}_rank0.db"), "--use_cache")
        _run(args, asked, samples, first)


def _run(args: Namespace, asked: dict[str, Any], samples: dict[str, list[int]] | None, first: First) -> None:
    """Run with flags that were checked."""
    from mrag_eval.harness import check_tasks

    own = tasks_folder()
    extra = [str(own)] if not visible_to_harness(own) else []
    given = _paths(asked.get("include_path"))
    manager = _manager([str(own), *given], asked)
    args.tasks = wanted = expanded(_names(asked["tasks"]), manager.all_tasks)
    args.samples = samples
    _check_needs(wanted, manager, asked, given)
    known = set(manager.all_tasks)
    # a wildcard may match built-in tasks too, so it counts as not ours
    all_ours = all(name in known or (name.endswith(".yaml") and Path(name).is_file()) for name in wanted)
    if not any(asked.get(flag) for flag in _STOCK_ONLY) and all_ours:
        _evaluate(args, manager, [*extra, *given], first, asked)
        return
    _refuse_faulty(wanted, manager, given)
    args.include_path = [*extra, *given] or None
    ours = _ours(wanted, manager) if first.wanted else {}
    check_tasks(ours.values(), judged=not asked.get("predict_only"))
    try:
        with first.rows_for(ours, asked.get("limit"), samples):
            args.func(args)
    except ValueError as error:
        missing = str(error).partition("Tasks not found:")[2].split(",")[0].strip()
        raise (unknown_name([missing], listed_by(manager)) if missing else None) or error from error


def built_tasks(arguments: Sequence[str]) -> tuple[dict[str, RagTask], dict[str, list[int]] | None]:
    """Return the requested tasks of our class, by name, and the rows that ``--samples`` names.

    Raises ConfigError for a name that is not one of our tasks or those in ``--include_path``.
    """
    from mrag_eval.harness import check_tasks, setup_logging

    setup_logging()
    asked = _settings(_parse(arguments))
    check_flags(asked)
    samples = samples_of(asked)
    given = _paths(asked.get("include_path"))
    manager = _manager([str(tasks_folder()), *given], asked)
    wanted = expanded(_names(asked["tasks"]), manager.all_tasks)
    unknown = unknown_name(wanted, listed_by(manager))
    if unknown is not None:
        _refuse_faulty(wanted, manager, given)
        raise unknown
    _check_needs(wanted, manager, asked, given, ahead=True)
    with blaming(given):
        found = _ours(wanted, manager)
    check_for_tasks(asked, samples, found, manager.all_tasks)
    check_tasks(found.values(), judged=False)
    return found, samples


def _check_needs(
    wanted: Sequence[str], manager: TaskManager, asked: Mapping[str, Any], given: Sequence[str], *, ahead: bool = False
) -> None:
    """Raise MissingError if our tasks or the evaluated model lack something; say in a line how many calls their models
    get.

    ``ahead``: the tasks are only retrieved for, so that no model answers and none judges.
    """
    from mrag_eval.harness import model_faults
    from mrag_eval.planning import plan_for

    model = None if ahead else (asked.get("model", "hf"), pairs_of(asked.get("model_args")))
    faults = [] if model is None else model_faults(*model)
    with blaming(given):
        plan = plan_for(
            wanted,
            listed_by(manager),
            manager.metadata or {},
            limit=asked.get("limit"),
            model=model,
            faults=faults,
            generation=pairs_of(asked.get("gen_kwargs")),
            judged=not (ahead or asked.get("predict_only")),
        )
    plan.check()
    for fault in faults:  # of a run without tasks of ours
        raise fault
    if plan.line:
        log.info("%s", plan.line)


def _refuse_faulty(wanted: Sequence[str], manager: TaskManager, given: Sequence[str]) -> None:
    """Raise the fault of a file in ``given`` that should define a task of ``wanted``, which the harness skips."""
    fault = fault_in(given, [name for name in wanted if name not in manager.all_tasks])
    if fault is not None:
        raise fault


def _ours(wanted: Sequence[str], manager: TaskManager) -> dict[str, RagTask]:
    """Return the requested tasks of our class, built."""
    from mrag_eval.harness import load_tasks
    from mrag_eval.task import RagTask

    found = (
        [str(Path(name).absolute())] if name.endswith(".yaml") and Path(name).is_file() else manager.match_tasks([name])
        for name in wanted
    )
    names = dict.fromkeys(chain.from_iterable(found))
    tasks = load_tasks(manager, list(names))[1] if names else {}
    return {name: task for name, task in tasks.items() if isinstance(task, RagTask)}


def _parse(arguments: Sequence[str]) -> Namespace:
    from mrag_eval.harness import run_parser

    check_given_once(arguments)
    try:
        return run_parser().parse_args(["run", *arguments])
    except ValueError as error:
        # the harness's own types of values raise it without their flag
        flag = next((flag for flag, value in pairwise(arguments) if f": {value}. " in str(error)), "a flag")
        raise ConfigError(f"{flag}: {' '.join(str(error).split())}", "mrag-eval run --help   shows its form") from None


def settings_of(arguments: Sequence[str]) -> dict[str, Any]:
    """Return the settings of these flags of a run."""
    return _settings(_parse(arguments))


def _settings(args: Namespace) -> dict[str, Any]:
    """Return the settings of the flags, which override those of the ``--config`` file."""
    from mrag_eval.harness import config_file_settings

    named = getattr(args, "config", None)
    base = config_file_settings(named) if named else {}
    return base | {key: value for key, value in vars(args).items() if value is not None}


def _names(tasks: str | Sequence[str]) -> list[str]:
    parts = [tasks] if isinstance(tasks, str) else tasks
    return [name.strip() for part in parts for name in part.split(",") if name.strip()]


def _paths(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else [str(path) for path in value or ()]


def _manager(folders: Sequence[str], asked: dict[str, Any]) -> TaskManager:
    for folder in folders:
        if not Path(folder).is_dir():
            raise ConfigError(
                f"--include_path {folder} is not a folder", "name the folder that holds the task's YAML file"
            )
    from mrag_eval.harness import task_manager

    arguments = task_settings(asked.get("model"), pairs_of(asked.get("model_args")))
    merged = {**arguments, **pairs_of(asked.get("metadata"))}
    with blaming(folders):
        return task_manager(folders, merged)


def _opening(results: Mapping[str, Any], tasks: set[str], folder: Path | None) -> str:
    """Return what a run shows first: its findings, short tables, and file in its folder, if it has one."""
    from tempfile import TemporaryDirectory

    from mrag_eval.harness import run_files, score_table
    from mrag_eval.report import opening, read_results

    with TemporaryDirectory() as made:
        if folder is None:
            run_files(made, results["model_name_sanitized"]).write(results, {})
        newest = read_results([folder or Path(made)])[-1]
        own = opening([newest.path], screen_width())
    # tasks that are not the package's have no scores of ours
    others = {task: found for task, found in results["results"].items() if task in tasks - {*newest.leaves}}
    parts = [own, *([score_table({**results, "results": others, "groups": None})] if others else [])]
    return "\n\n".join([*parts, *([] if folder is None else [f"results    {relpath(newest.path)}"])])


def _evaluate(
    args: Namespace, manager: TaskManager, include: Sequence[str], first: First, asked: Mapping[str, Any]
) -> None:
    from mrag_eval.harness import check_tasks, evaluate, load_tasks, run_settings, score_table

    args.include_path = list(include) or None
    settings, config = run_settings(args)
    names = dict.fromkeys(str(Path(n).absolute()) if n.endswith(".yaml") else n for n in args.tasks)
    # a wrong setting, file or corpus is reported before the model is loaded
    with blaming(include):
        settings["tasks"], built = load_tasks(manager, list(names))
    check_for_tasks(asked, settings["samples"], built, manager.all_tasks)
    check_tasks(built.values(), judged=not config.predict_only)
    first.rows_of(built, config.limit, settings["samples"])
    results = evaluate(settings, manager, config.output_path)
    if results is None:
        return
    named = {name: getattr(task, "main_metric", None) for name, task in built.items()}
    table = score_table(results, {name: metric for name, metric in named.items() if metric is not None})
    folder = Path(args.output_path) if config.output_path else None
    folder = folder.parent if folder is not None and not folder.is_dir() else folder
    with suppress(MragError, OSError):  # the run has ended, whatever else is in its folder
        table = _opening(results, {*built}, folder)
    print(table)
    groups = {f"{name} {metric}": found for name, values in (results.get("groups") or {}).items()
              for metric in dict.fromkeys(named.values())
              if isinstance(found := values.get(f"{metric},none"), float)}  # fmt: skip
    if groups:
        print("groups     " + ", ".join(f"{name} {points(value)}" for name, value in groups.items()))
    step = "\nnext       the same with --output_path OUT --log_samples    keeps scores and answers\n"
    if folder is not None:
        step = (
            f"next       mrag-eval report {shlex.quote(relpath(folder))} -o report.html    the answers in a browser\n"
        )
    print(step)
    lost = [f"{name}: no row has its main metric, {task.lost_headline}" for name, task in built.items()
            if getattr(task, "lost_headline", None) is not None]  # fmt: skip
    if lost:
        typer.echo("\n".join(lost), err=True)
        raise typer.Exit(1)
