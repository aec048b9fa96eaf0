"""``mrag-eval plan``: everything that tasks need, at once, and what a run of them costs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from mrag_eval.cli._options import Limit, command

if TYPE_CHECKING:
    from mrag_eval.planning import Pilot, PlannedTask


@command()
def plan(
    context: typer.Context,
    *,
    tasks: str | None = None,
    metadata: list[str] | None = None,
    model: str | None = None,
    model_args: list[str] | None = None,
    include_path: str | None = None,
    limit: Limit | None = None,
    pilot: str | None = None,
    as_json: bool = False,
) -> None:
    """Show what a run of these tasks needs: data, corpora, models, keys and disk, and its calls, tokens and cost.

    For everything that is missing, one command or line that provides it is printed. Rows that lie on this machine are
    read, and a system of yours is imported; no model is loaded, and nothing is downloaded or asked, except by --pilot.
    The exit code is 1 if something is missing without which the tasks do not run.

    Args:
        tasks (-t): Names of tasks, groups or tags, wildcards or files, as in `run`.
        model (-M): The type of the evaluated model.
        model_args (--model_args -a): Its arguments, as in `mrag-eval run`.
        pilot (N|FOLDER): Estimate from rows that ran: run N rows of each task that has a loop or judges (further
            options of `run` are passed on), or read the results of a finished run.
        as_json (--json): Print the plan as JSON.
    """
    from mrag_eval.cli._flags import check_flags
    from mrag_eval.cli._plan_text import plan_text
    from mrag_eval.cli._task_files import expanded
    from mrag_eval.config import RAG, ModelSpec, listed_in, unknown_name
    from mrag_eval.models import behind_api, rag_system, register_model_types, system_arguments, task_settings
    from mrag_eval.planning import leaves_of, plan_for
    from mrag_eval.platform import ConfigError, MragError, tasks_folder

    if context.args and (pilot is None or not pilot.isdecimal()):
        raise typer.BadParameter(f"{context.args[0]}: unknown; options of a run go with --pilot N")
    check_flags({"tasks": tasks, "limit": limit})
    if model is not None:
        register_model_types()
        behind_api(ModelSpec(model=model), model)  # no other type of model exists
    given = None if include_path is None else Path(include_path)
    if given is not None and not given.is_dir():
        raise ConfigError(f"--include_path {given} is not a folder", "name the folder that holds your task files")
    known = listed_in([tasks_folder(), *([] if given is None else [given])])
    names = [name.strip() for name in (tasks or "").split(",") if name.strip()]
    names = expanded(names, known, with_functions=False)
    unknown = unknown_name(names, known)
    if unknown is not None:
        raise unknown
    arguments = pairs_given("--model_args", model_args)
    arguments = system_arguments(arguments) if model == RAG else arguments
    settings = {**task_settings(model, arguments), **pairs_given("--metadata", metadata)}
    measured = None
    if pilot is not None:
        leaves = leaves_of(names, known, settings, limit)
        measured = _measured(context, pilot, leaves, model, model_args or (), metadata or (), include_path)
    asked, faults = None if model is None else (model, arguments), None
    if model == RAG:
        faults = []
        try:
            rag_system(arguments)
        except MragError as fault:
            faults.append(fault)
    found = plan_for(names, known, settings, limit=limit, model=asked, faults=faults, pilot=measured, built=False)
    typer.echo(json.dumps(found.as_dict(), indent=2, ensure_ascii=False) if as_json else plan_text(found))
    if found.missing:
        raise typer.Exit(1)


def pairs_given(flag: str, given: Sequence[str] | None) -> Mapping[str, Any]:
    """Return the keys and values of a repeated flag, as the harness reads them; it is not imported without any."""
    if not given:
        return {}
    from mrag_eval.cli._flags import check_flags, pairs_of
    from mrag_eval.cli._harness import settings_of

    asked = settings_of(["--tasks", "x", *(word for value in given for word in (flag, value))])
    check_flags(asked)
    return pairs_of(asked.get(flag.removeprefix("--")))


def _measured(
    context: typer.Context,
    pilot: str,
    leaves: Sequence[PlannedTask],
    model: str | None,
    model_args: Sequence[str],
    metadata: Sequence[str],
    include_path: str | None,
) -> Pilot | None:
    """Return what a pilot took: the finished run in a folder, or one of N rows that is made now."""
    from mrag_eval.cli._pilot import read_pilot, run_pilot
    from mrag_eval.planning import worth_a_pilot

    if not pilot.isdecimal():
        return read_pilot(Path(pilot))
    chosen = worth_a_pilot(leaves)
    if not chosen:
        return None
    if model is None or int(pilot) < 1:
        raise typer.BadParameter(
            "needs a number of rows from 1, and --model with its --model_args", param_hint="--pilot"
        )
    words = ["--tasks", ",".join(chosen), "--limit", pilot, "--model", model, *context.args]
    for flag, values in (("--model_args", model_args), ("--metadata", metadata)):
        words += [word for value in values for word in (flag, value)]
    if include_path is not None:
        words += ["--include_path", include_path]
    return run_pilot(words, debug=context.obj.debug)
