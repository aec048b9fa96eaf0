"""What our wraps of the harness's functions, and what is read from its calls, stand on; from the harness's source.

By default that is the installed release. ``MRAG_HARNESS_SOURCE`` names the folder of another one, such as an unpacked
wheel of the next: each test that fails there names a thing to change before it can be supported.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

from mrag_eval import harness as _room


def _source() -> Path:
    folder = os.environ.get("MRAG_HARNESS_SOURCE")
    if folder is None:
        found = find_spec("lm_eval")
        assert found is not None
        assert found.origin is not None
        folder = str(Path(found.origin).parents[1])
    return Path(folder)


@cache
def _module(name: str) -> ast.Module:
    return ast.parse((_source() / "lm_eval" / f"{name}.py").read_text("utf-8"))


def _function(name: str, module: str = "evaluator") -> ast.FunctionDef:
    return next(node for node in ast.walk(_module(module)) if isinstance(node, ast.FunctionDef) and node.name == name)


def _call() -> ast.Call:
    """Return the call of ``evaluate`` in ``simple_evaluate``."""
    calls = [node for node in ast.walk(_function("simple_evaluate")) if isinstance(node, ast.Call)]
    (found,) = [call for call in calls if isinstance(call.func, ast.Name) and call.func.id == "evaluate"]
    return found


def test_simple_evaluate_calls_evaluate_once_as_a_global_of_its_module() -> None:
    local = {node.id for node in ast.walk(_function("simple_evaluate")) if isinstance(node, ast.Name)
             and isinstance(node.ctx, ast.Store)}  # fmt: skip
    assert _call()
    assert "evaluate" not in local


def test_evaluate_is_given_the_model_and_the_tasks_by_name() -> None:
    assert {"lm", "task_dict"} <= {keyword.arg for keyword in _call().keywords}


def test_evaluate_takes_the_flags_that_change_replies() -> None:
    arguments = {argument.arg for argument in _function("evaluate").args.args}
    assert {"limit", "samples", "system_instruction", "apply_chat_template"} <= arguments


def test_tasks_are_loaded_before_evaluate_is_called() -> None:
    loads = [node.lineno for node in ast.walk(_function("simple_evaluate")) if isinstance(node, ast.Call)
             and isinstance(node.func, ast.Attribute) and node.func.attr == "load"]  # fmt: skip
    assert loads
    assert max(loads) < _call().lineno


def test_calls_on_the_stack_name_the_manager_what_it_loads_and_the_tracker() -> None:
    assert _function("load", "tasks/manager").args.args[0].arg == "self"
    # a name alone becomes a list under the name of the argument
    asked = _function("load", "tasks/manager").args.args[1].arg
    stored = [node.id for node in ast.walk(_function("load", "tasks/manager")) if isinstance(node, ast.Name)
              and isinstance(node.ctx, ast.Store)]  # fmt: skip
    assert asked in stored
    assert "evaluation_tracker" in {argument.arg for argument in _function("simple_evaluate").args.args}


def test_a_tracker_writes_by_two_methods_and_names_its_files_by_one_time() -> None:
    given = {name: _function(name, "loggers/evaluation_tracker").args.args for name in
             ("save_results_aggregated", "save_results_samples")}  # fmt: skip
    assert [argument.arg for argument in given["save_results_aggregated"]] == ["self", "results", "samples"]
    assert [argument.arg for argument in given["save_results_samples"]] == ["self", "task_name", "samples"]
    stored = {node.attr for node in ast.walk(_function("save_results_aggregated", "loggers/evaluation_tracker"))
              if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)}  # fmt: skip
    assert stored == {"date_id"}


def test_the_commit_is_asked_for_by_a_global_of_the_evaluator() -> None:
    called = {node.func.id for node in ast.walk(_function("simple_evaluate")) if isinstance(node, ast.Call)
              and isinstance(node.func, ast.Name)}  # fmt: skip
    assert "get_git_commit_hash" in called
    assert _function("get_git_commit_hash", "loggers/utils").args.args == []


def test_the_settings_of_a_run_have_types_that_a_config_file_is_checked_by() -> None:
    found = next(node for node in ast.walk(_module("config/evaluate_config")) if isinstance(node, ast.ClassDef)
                 and node.name == "EvaluatorConfig")  # fmt: skip
    types = {ast.unparse(node.annotation) for node in found.body if isinstance(node, ast.AnnAssign)}
    assert {"bool", "dict", "str | None"} <= types


def _imported() -> Iterator[tuple[str, str]]:
    """Yield each name that the room imports from the harness, after its module."""
    for path in Path(_room.__path__[0]).glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "lm_eval":
                yield from ((str(node.module), alias.name) for alias in node.names)


@pytest.mark.parametrize(("module", "name"), sorted({*_imported()}))
def test_what_is_imported_from_the_harness_is_there(module: str, name: str) -> None:
    place = _source().joinpath(*module.split("."))
    files = [found for found in (place.with_suffix(".py"), place / "__init__.py") if found.is_file()]
    known = any(re.search(rf"\b{name}\b", found.read_text("utf-8")) for found in files)
    assert known or (place / f"{name}.py").is_file()


def test_a_manager_shows_what_it_has_indexed() -> None:
    assert _function("task_index", "tasks/manager")


def test_a_task_loads_its_rows_while_it_is_built() -> None:
    (task,) = [node for node in _module("api/task").body if isinstance(node, ast.ClassDef)
               and node.name == "ConfigurableTask"]  # fmt: skip
    built = next(node for node in task.body if isinstance(node, ast.FunctionDef) and node.name == "__init__")
    assert "self.download" in {ast.unparse(node.func) for node in ast.walk(built) if isinstance(node, ast.Call)}


def test_metadata_is_given_as_keys_and_values() -> None:
    (flag,) = [node for node in ast.walk(_module("_cli/run")) if isinstance(node, ast.Call) and node.args
               and isinstance(node.args[0], ast.Constant) and node.args[0].value == "--metadata"]  # fmt: skip
    assert "MergeDictAction" in {ast.unparse(keyword.value) for keyword in flag.keywords}
