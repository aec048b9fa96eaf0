"""Options that exclude each other, extensions of output files, and the help of ``run``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, get_args

import pytest
import typer
from typer.testing import CliRunner

from mrag_eval.cli import Session, app
from mrag_eval.cli._options import App, command
from mrag_eval.config import Retrieval
from mrag_eval.platform import Count, Natural


def said(command: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, command.split(), obj=Session(), env={"COLUMNS": "300"})
    return done.exit_code, " ".join(done.output.replace("│", " ").split())


@pytest.mark.parametrize(
    ("command", "fault"),
    [
        ("report out -o x.pdf", "x.pdf: the file's name must end in one of .html, .tex, .md, .csv, .json"),
        ("report out -o x.csv --format md", "md does not fit the name x.csv"),
        ("report out --format xml", "xml is none of md, csv, json, latex"),
        ("report out --format html", "a page has a name: -o FILE.html"),
        ("report out --format csv --metrics match", "CSV and JSON have every metric"),
        ("report out -o x.json --metrics match", "CSV and JSON have every metric"),
        ("report out --territory Ceuta --layout xrag", "--layout: cannot be combined with --territory"),
        ("report out --territory Ceuta -o x.html", "must end in one of .md, .csv, .json"),
        ("compare out", "name two runs"),
        ("compare a b --by group", "--by: cannot be combined with a comparison of two runs"),
        ("compare a b --answers --metric x", "--metric: cannot be combined with --answers"),
        ("compare a b --languages --format csv", "must be md or json"),
        ("compare a --languages --by color", "must be question, group or row"),
        ("gate --baseline a --rules r", "--candidate: is missing"),
        ("gate a", "only --save and --init take runs"),
        ("gate --init f", "--init writes rules for the tasks of runs"),
        ("gate --init f a --save g", "--init: cannot be combined with --save"),
        ("gate --baseline a --candidate b", "--init FILE RUN writes one"),
        ("gate --save f", "--save writes the scores of runs"),
        ("gate --save f a --rules r", "--rules: cannot be combined with --save"),
        ("gate --save f a --html h", "--html: cannot be combined with --save"),
        ("gate --baseline a --candidate b --rules r --answers", "--answers: cannot be combined with a check"),
        ("doctor --config --json", "--json: cannot be combined with --config"),
    ],
)
def test_options_that_do_not_fit_are_named(command: str, fault: str) -> None:
    code, text = said(command)
    assert code == 2
    assert fault in text


def commands(group: Any = None, name: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every command with its words."""
    group = typer.main.get_command(app) if group is None else group
    for key, found in group.commands.items():
        yield from commands(found, f"{name}{key} ") if hasattr(found, "commands") else [(f"{name}{key}", found)]


@pytest.mark.parametrize(("name", "command"), list(commands()), ids=lambda value: str(value)[:40])
def test_every_argument_and_option_is_explained(name: str, command: Any) -> None:
    for each in command.params:
        assert (each.help or "").rstrip("`)").endswith((".", "...")) or each.name == "help", (name, each.name)
    assert "Args:" not in command.help


@command("size tags limit(-L)", "tests.cli.test_options:counted")
def counts(*, limit: Count = 3, **settings: Any) -> None:
    """Count.

    Args:
        limit: The most.
    """
    typer.echo(f"{limit} {settings}")


def counted(*, size: Natural | None = None, tags: Sequence[str] = (), other: bool = False) -> None:
    """Count things.

    Args:
        size: The number
            of things.
        tags (NAME): What they are called.
    """


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("", "3 {'size': None, 'tags': ()}"),
        ("--size 0 -L 1 --tags a --tags b", "1 {'size': 0, 'tags': ('a', 'b')}"),
        ("--size -1", "Invalid value for '--size'"),
        ("--limit 0", "Invalid value for '--limit' / '-L'"),
        ("--other", "No such option"),
        ("--help", "The number of things."),
    ],
)
def test_a_command_has_the_options_that_its_function_and_an_owner_declare(words: str, expected: str) -> None:
    group = App(add_completion=False)
    group.command()(counts)
    done = CliRunner().invoke(group, words.split(), env={"COLUMNS": "300"})
    assert expected in " ".join(done.output.replace("│", " ").split())


@pytest.mark.parametrize("command", ["corpus wikipedia", "corpus kilt", "corpus bordirlines", "index build"])
def test_the_help_names_every_kind_of_index(command: str) -> None:
    kinds = set(get_args(get_args(Retrieval.model_fields["kind"].annotation)[0])) - {"milvus", "precomputed", "own"}
    code, text = said(f"{command} --help")
    told = text.partition("--kind")[2].partition("--")[0]
    assert code == 0
    assert kinds == {kind for kind in kinds if kind in told}


def test_the_help_of_run_is_about_retrieval_and_names_the_harness_s() -> None:
    code, text = said("run --help")
    assert code == 0
    for part in ("retrieval.mode", "retrieval.corpus", "retrieval.run_folder", "--no-retrieve-first", "lm_eval run"):
        assert part in text
