"""The settings of an index build: one record gives arguments, documentation and options."""

from __future__ import annotations

from dataclasses import fields
from inspect import signature
from typing import Any

import pytest
import typer

from mrag_eval.cli import app
from mrag_eval.platform import ConfigError, settings_of
from mrag_eval.retrievers import BuildSettings, build_index

SETTINGS = settings_of(BuildSettings)
# Settings whose options have other names or types, and those without an option.
_OTHERWISE = ("memory_budget", "recall_queries", "engine")
_IN_PYTHON = ("progress", "bm25", "token_counter", "source", "selection", "name")


def options() -> dict[str, Any]:
    index: Any = typer.main.get_command(app).commands["index"]  # type: ignore[attr-defined]
    return {each.name: each for each in index.commands["build"].params if each.param_type_name == "option"}


@pytest.mark.parametrize("each", SETTINGS, ids=lambda each: each.name)
def test_every_setting_is_documented_and_an_argument_of_the_function(each: Any) -> None:
    assert each.help.endswith(".")
    assert signature(build_index).parameters[each.name].default == each.default
    assert f"{each.name}: " in (build_index.__doc__ or "")


def test_the_record_declares_every_field() -> None:
    assert [each.name for each in SETTINGS] == [field.name for field in fields(BuildSettings)]


@pytest.mark.parametrize("each", SETTINGS, ids=lambda each: each.name)
def test_every_setting_is_an_option_with_the_same_default_unless_it_is_named_as_none(each: Any) -> None:
    found = options().get(each.name)
    if each.name in _IN_PYTHON:
        assert found is None
    elif each.name not in _OTHERWISE:
        assert found is not None
        assert (found.default, found.help) == (each.default, each.help)


@pytest.mark.parametrize("each", SETTINGS, ids=lambda each: each.name)
def test_a_value_outside_its_bounds_is_an_error_that_names_the_setting(each: Any) -> None:
    allowed = each.allowed
    wrong: list[Any] = ["nonsense"] * bool(allowed.one_of)
    wrong += [] if allowed.least is None else [allowed.least - 1]
    wrong += [] if allowed.most is None else [allowed.most + 1]
    for value in wrong:
        with pytest.raises(ConfigError, match=each.name):
            BuildSettings(**{each.name: value})


def test_an_unknown_setting_is_refused() -> None:
    with pytest.raises(TypeError, match="kidn"):
        build_index([], "i", kidn="bm25")
