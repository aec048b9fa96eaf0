"""What the wrap of the harness's ``evaluate`` stands on, read from the harness's source.

By default that is the installed release. ``MRAG_HARNESS_SOURCE`` names the folder of another one, such as an unpacked
wheel of the next: each test that fails there names a thing to change before it can be supported.
"""

from __future__ import annotations

import ast
import os
from functools import cache
from importlib.util import find_spec
from pathlib import Path


@cache
def _evaluator() -> ast.Module:
    folder = os.environ.get("MRAG_HARNESS_SOURCE")
    if folder is None:
        found = find_spec("lm_eval")
        assert found is not None
        assert found.origin is not None
        folder = str(Path(found.origin).parents[1])
    return ast.parse((Path(folder) / "lm_eval" / "evaluator.py").read_text("utf-8"))


def _function(name: str) -> ast.FunctionDef:
    return next(node for node in _evaluator().body if isinstance(node, ast.FunctionDef) and node.name == name)


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
