"""``mrag-eval retrieve``: the retrieval of tasks as a separate step, without a model to evaluate."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from mrag_eval.cli._options import Limit, command, was_given
from mrag_eval.platform import number_of

if TYPE_CHECKING:
    from mrag_eval.retrieval import Push, RunFolder

# Options that say what is retrieved, and nothing about a push.
_OF_TASKS = ("metadata", "limit", "samples", "include_path", "overwrite")
_OF_PUSH = ("revision", "message", "private", "licence")


@command(
    "output tasks metadata limit samples include_path overwrite push revision message private licence(SPDX)",
    "mrag_eval.retrieval:Push",
)
def retrieve(
    context: typer.Context,
    *,
    output: Path,
    tasks: str | None = None,
    metadata: list[str] | None = None,
    limit: Limit | None = None,
    samples: str | None = None,
    include_path: str | None = None,
    overwrite: bool = False,
    push: str | None = None,
    **sent: Any,
) -> None:
    """Retrieve the passages of every row of the tasks, and keep them in a folder, or share them on the hub.

    Runs of any model can then use them: mrag-eval run ... --metadata retrieval.run_folder=FOLDER

    Args:
        output (-o): The folder to write to. A folder from an earlier call is continued.
        tasks (-t): Names of tasks, groups or tags, separated by commas.
        samples (-E): The rows of each task by number, as JSON or a JSON file.
        overwrite: Retrieve again what the folder already contains of these tasks.
        push (hub:ORG/NAME): Push the folder to this dataset on the hub, which is created if needed. Without --tasks,
            push a finished folder.
    """
    from mrag_eval.retrieval import open_folder, push_folder

    if tasks is None and push is None:
        raise typer.BadParameter("name the tasks to retrieve for", param_hint="--tasks")
    for name in _OF_TASKS if tasks is None else _OF_PUSH if push is None else ():
        if was_given(context, name):
            needed = "--tasks" if tasks is None else "--push"
            raise typer.BadParameter(f"has no meaning without {needed}", param_hint=f"--{name}")
    asked = None if push is None else _asked(push, **sent)
    if str(output).startswith("hub:"):
        raise typer.BadParameter("is a folder; a dataset of the hub is written by --push", param_hint="--output")
    if tasks is None:
        from mrag_eval.retrieval import RunFolder

        folder = RunFolder.existing(output)
    else:
        folder = open_folder(output)
        flags = flags_of(tasks=tasks, metadata=metadata, limit=limit, samples=samples, include_path=include_path)
        if _retrieve(folder, tasks, flags, limit, asked, overwrite=overwrite):
            raise typer.Exit(1)
    if asked is None:
        return
    done = push_folder(folder, asked)
    for note in done.notes:
        typer.echo(f"# {note}", err=True)
    typer.echo(f"pushed {number_of(done.files, 'file')} ({done.size / 1e6:,.1f} MB) to hub:{done.place.repo}")
    typer.echo(
        f"use it   mrag-eval run --tasks {','.join(folder.tasks)} ... --metadata retrieval.run_folder={done.place}"
    )


def _asked(push: str, *, revision: str | None, licence: str | None, **sent: Any) -> Push:
    """Return what is to be pushed; raise, before anything is retrieved, for what cannot be."""
    from mrag_eval.platform import HubPlace
    from mrag_eval.retrieval import Push

    place = HubPlace.named(push, "--push")
    if place is None or place.revision is not None:
        raise typer.BadParameter("write it as hub:ORG/NAME; a branch is named by --revision", param_hint="--push")
    for hint, text, expected in (
        ("--revision", revision, "the name of a branch"),
        ("--licence", licence, "an SPDX identifier, such as CC-BY-4.0"),
    ):
        if text is not None and not re.fullmatch(r"[A-Za-z0-9][\w.+/-]*", text, re.ASCII):
            raise typer.BadParameter(f"'{text}' is not {expected}", param_hint=hint)
    asked = Push(place, revision=revision, licence=licence, **sent)
    asked.check()
    return asked


def _retrieve(
    folder: RunFolder, tasks: str, flags: Sequence[str], limit: float | None, push: Push | None, *, overwrite: bool
) -> bool:
    """Retrieve for each task, and print what became of its rows; return whether a step failed for every row of one."""
    from mrag_eval.cli._harness import built_tasks
    from mrag_eval.models import forget_asked
    from mrag_eval.retrieval import check_terms, repeats_questions, retrieve_into

    found, chosen = built_tasks(flags)
    done = []
    for name, task in found.items():
        retrieval = task.supply.blocks.retrieval
        if retrieval.run_folder is not None:
            raise typer.BadParameter(f"task {name} takes its rows from a run folder", param_hint="--metadata")
        if push is not None and retrieval.retrieves:
            terms = task.supply.entry().terms
            check_terms(name, terms, push.licence, questions=repeats_questions(retrieval))
    for name, task in found.items():
        retrieval = task.supply.blocks.retrieval
        if not retrieval.retrieves:
            typer.echo(f"{name}: mode {retrieval.mode} retrieves nothing")
            continue
        done.append(retrieve_into(folder, name, task.supply, task.rows_to_run(limit, chosen), overwrite=overwrite))
    if not any(one.faults for one in done):
        forget_asked()
    for one in done:
        kept = f", {one.kept:,} of them from before" if one.kept else ""
        faults = "".join(f", {count:,} with a fault ({fault})" for fault, count in one.faults.items())
        typer.echo(f"{one.task}: {number_of(one.rows, 'row')}{kept}{faults}")
    failed = any(one.failed_everywhere for one in done)
    if failed:
        again = "mend what the lines above name, and run the same command again"
        typer.echo(f"a step failed in every row: {again}", err=True)
    elif done and push is None:
        path = folder.path
        typer.echo(f"{path}: use it   mrag-eval run --tasks {tasks} ... --metadata retrieval.run_folder={path}")
    return failed


def flags_of(**given: Any) -> list[str]:
    """Return flags, without those of None, as the harness's command line writes them."""
    values = {f"--{name}": value if isinstance(value, list) else [value] for name, value in given.items()}
    return [word for flag, found in values.items() for one in found if one is not None for word in (flag, str(one))]
