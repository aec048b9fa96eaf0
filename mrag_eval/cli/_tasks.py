"""``mrag-eval tasks``: the benchmarks and tasks; ``mrag-eval languages``: what is done for a language."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from mrag_eval.cli._options import command
from mrag_eval.core import columns, language_name, pipe_table
from mrag_eval.platform import number_of

if TYPE_CHECKING:
    from mrag_eval.planning import Piece


@command()
def tasks(
    name: str = "",
    *,
    every: bool = False,
    as_json: bool = False,
    path: bool = False,
    check: bool = False,
    folder: Path | None = None,
) -> None:
    """List the benchmarks: what each asks, its languages, its number of tasks, and what you need to run it.

    With the name of a benchmark, print what is known about it and list its groups and tasks. With the name of a tag,
    list its tasks. The exit code is 2 if nothing has that name.

    Args:
        name: A benchmark, a tag, or a part of the names of tasks.
        every (--all): List every task and group by name.
        as_json (--json): Print the list as JSON.
        path: Print the folder of task files and nothing else.
        check: Validate every task file; exit code 1 on a fault.
        folder: List or check another folder of task files.
    """
    from mrag_eval.cli import _catalog as catalog
    from mrag_eval.platform import ConfigError, tasks_folder

    if folder is not None and not folder.is_dir():
        raise ConfigError(f"--folder {folder} is not a folder", "name the folder that holds your task files")
    if path:
        typer.echo(folder or tasks_folder())
        return
    if check:
        faults = catalog.check_tasks(folder)
        for fault in faults:
            typer.echo(fault)
        checked = len(catalog.list_tasks(folder))
        typer.echo(f"{checked} tasks and groups, {number_of(len(faults), 'fault')}")
        raise typer.Exit(1 if faults else 0)
    if folder is None and not every and not name:
        entries = catalog.list_benchmarks()
        typer.echo(catalog.benchmarks_json(entries) if as_json else catalog.benchmarks_text(entries))
        return
    found = None if every or folder is not None else catalog.benchmark_named(name)
    if found is not None:
        own = catalog.tasks_of(found)
        typer.echo(catalog.benchmark_json(found, own) if as_json else catalog.benchmark_text(found, own))
        return
    known = catalog.list_tasks(folder)
    listed = catalog.matching(known, name)
    if name and not listed:
        typer.echo(catalog.nothing_named(name, known), err=True)
        raise typer.Exit(2)
    typer.echo(catalog.tasks_json(listed) if as_json else catalog.tasks_text(listed))


@command()
def languages(
    codes: list[str] | None = None, *, tasks: str | None = None, include_path: str | None = None, as_json: bool = False
) -> None:
    """Show what is done for a language: words for reading replies, the detector and how reliable it is, stems, prompts.

    For everything that is missing, the next step is printed. With several languages, or --tasks, print a table.

    Args:
        codes: Languages, such as ml or zh-Hant.
        tasks (-t): Those of tasks instead: names, groups or tags, as in `mrag-eval plan`.
        as_json (--json): Print everything as JSON.
    """
    from mrag_eval.core import normalize_language
    from mrag_eval.languages import known_languages
    from mrag_eval.planning import language_support

    asked = [normalize_language(code) for code in codes or ()] + (_of_tasks(tasks, include_path) if tasks else [])
    found = {code: language_support(code) for code in dict.fromkeys(asked or known_languages())}
    if as_json:
        content = {code: [asdict(piece) for piece in pieces] for code, pieces in found.items()}
        typer.echo(json.dumps(content, indent=2, ensure_ascii=False))
    elif len(found) == 1:
        typer.echo(one_language(*next(iter(found.items()))))
    else:
        typer.echo(table_of_languages(found))


def _of_tasks(names: str, include_path: str | None) -> list[str]:
    """Return the languages of the questions of tasks, as their files state them."""
    from mrag_eval.config import listed_in, unknown_name
    from mrag_eval.core import is_language, normalize_language
    from mrag_eval.planning import leaves_of
    from mrag_eval.platform import ConfigError, tasks_folder

    folders = [tasks_folder(), *([] if include_path is None else [Path(include_path)])]
    known = listed_in(folders)
    asked = [name.strip() for name in names.split(",") if name.strip()]
    unknown = unknown_name(asked, known)
    if unknown is not None:
        raise unknown
    found: list[str] = []
    for leaf in leaves_of(asked, known, {}):
        named = getattr(leaf.data, "language", None) or getattr(leaf.data, "languages", None)
        own = [named] if isinstance(named, str) else list(named or leaf.declaration.languages)
        found += [normalize_language(code) for code in own if is_language(str(code))]
    if not found:
        raise ConfigError(f"--tasks {names}: the files of these tasks name no language", "name languages instead")
    return sorted(set(found))


_MARKS = {True: "yes", False: "no", None: "not measured"}


def one_language(code: str, pieces: Sequence[Piece]) -> str:
    """Return a line for each piece, with the next step below each that is missing."""
    lines = columns([("", _MARKS[piece.ok], piece.name, piece.what) for piece in pieces])
    out = [f"{language_name(code)} ({code})"]
    for piece, line in zip(pieces, lines, strict=True):
        out += [line, *([f"      {piece.fix}"] if piece.fix else [])]
    return "\n".join(out)


def table_of_languages(found: Mapping[str, Sequence[Piece]]) -> str:
    """Return a row for each language, a column for each piece, and the next steps below."""
    names = list(dict.fromkeys(piece.name for pieces in found.values() for piece in pieces if piece.name != "file"))
    rows = []
    for code, pieces in found.items():
        marks = {piece.name: _MARKS[piece.ok] for piece in pieces}
        rows.append([code, language_name(code), *(marks.get(name, "") for name in names)])
    steps: dict[tuple[str, str], list[str]] = {}
    for code, pieces in found.items():
        for piece in pieces:
            if piece.fix:
                steps.setdefault((piece.name, piece.fix), []).append(code)
    below = [f"{name}: {', '.join(own)}\n      {fix}" for (name, fix), own in steps.items()]
    return "\n".join([pipe_table(["", "language", *names], rows), *(["", *below] if below else [])])
