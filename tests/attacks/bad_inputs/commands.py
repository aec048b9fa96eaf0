"""Flags without a value, numbers that are words or below 0, unknown flags: one case for every flag of the parser."""

from __future__ import annotations

from collections.abc import Iterator
from inspect import unwrap
from typing import Any, get_args, get_type_hints

import typer

from mrag_eval.cli import app
from tests.attacks.bad_inputs.case import Case


def leaves(command: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield every command with its words."""
    inner = getattr(command, "commands", None)
    if inner is None:
        yield words, command
    for name, below in (inner or {}).items():
        yield from leaves(below, (*words, name))


COMMANDS: dict[tuple[str, ...], Any] = dict(leaves(typer.main.get_command(app)))


def _cases() -> Iterator[Case]:
    for words, command in COMMANDS.items():
        yield Case([*words, "--nonsense-flag"], ["--nonsense-flag"])
        types = get_type_hints(unwrap(command.callback))
        for parameter in command.params:
            kinds = {types.get(parameter.name), *get_args(types.get(parameter.name))}
            if parameter.param_type_name == "argument" or bool in kinds or parameter.name not in types:
                continue
            for flag in parameter.opts:
                yield Case([*words, flag], [flag])
            if kinds & {int, float}:
                yield Case([*words, parameter.opts[0], "many"], [parameter.opts[0], "many"])
                yield Case([*words, parameter.opts[0], ""], [parameter.opts[0]])
                yield Case([*words, parameter.opts[0], "-1"], [parameter.opts[0], "-1"])


CASES = list(_cases())
