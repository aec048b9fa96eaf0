"""Cached copies of what the harness computes for every run, and typer for every call; they save seconds per run."""

from __future__ import annotations

from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import typer.main

ROOT = Path(__file__).resolve().parent.parent


# An application's commands and their options, which no call changes.
commands = cache(typer.main.get_command)


@cache
def environment_info() -> str:
    """Return the machine and its installed packages, which the harness writes into the results of every run."""
    from torch.utils.collect_env import get_env_info, pretty_str

    return pretty_str(get_env_info())


def task_file(path: Path, **options: Any) -> dict[str, Any]:
    """Return what the harness's index reads from a task file; ours are parsed once."""
    from lm_eval.tasks import _yaml_loader

    if path.is_relative_to(ROOT / "tasks"):
        return deepcopy(_parsed(path, **options))
    return _yaml_loader.load_yaml(path, **options)


@cache
def _parsed(path: Path, **options: Any) -> dict[str, Any]:
    from lm_eval.tasks import _yaml_loader

    return _yaml_loader.load_yaml(path, **options)
