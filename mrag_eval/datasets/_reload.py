"""Rows of finished runs, read again where they lie on this machine; nothing is downloaded."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import RLock
from typing import Any

from mrag_eval.datasets._base import Benchmark
from mrag_eval.platform import ConfigError, DataError

# One at a time: whether the hub is asked is a setting of the process.
_LOCK = RLock()
_NAME = "HF_HUB_OFFLINE"


@dataclass(frozen=True)
class Reloaded:
    """A benchmark that was read again.

    Attributes:
        benchmark: None if its rows are not on this machine.
        reason: why, in a line; empty with a benchmark.
    """

    benchmark: Benchmark | None
    reason: str = ""


def reload(data: Mapping[str, Any]) -> Reloaded:
    """Read the rows of a task's ``data:`` block, as results record it, if they are on this machine.

    Files are read at their recorded paths; if they are not there, where the config file says that the benchmark lies;
    else from the caches of the hub and of GitHub. No text of a file gets into the reason, since results may name any.
    """
    # the registry imports every module of this folder
    from mrag_eval.datasets._registry import LOADERS, data_of_config, load_benchmark, validate_data

    try:
        block = validate_data(data)
        recorded = {name: value for name, value in block if isinstance(value, Path)}
        here = {
            name: Path(value) for name, value in data_of_config().get(block.benchmark, {}).items() if name in recorded
        }
    except ConfigError as error:
        return Reloaded(None, error.message)
    # what has a source besides the user's copy of it
    sources = {source.setting.removeprefix("data.") for source in LOADERS[block.benchmark].declaration.sources}
    missing = [name for name, path in recorded.items() if not path.exists()]
    files: dict[str, Path | None] = {name: path for name, path in recorded.items() if name not in missing}
    for name in missing:
        if name in here and here[name].expanduser().exists():
            files[name] = here[name]
        elif name in sources:
            files[name] = None
        else:
            return Reloaded(None, f"data.{name}={recorded[name]} is not on this machine")
    asked = {**data, **{name: None if path is None else str(path) for name, path in files.items()}}
    try:
        with _offline():
            return Reloaded(load_benchmark(asked))
    except (DataError, ConfigError) as error:
        read = ", ".join(str(path) for path in files.values() if path is not None)
        return Reloaded(None, f"{read}: no rows of this block" if read else error.message)


@contextmanager
def _offline() -> Iterator[None]:
    """Keep the hub, and everything else that a loader downloads, from being asked within the block."""
    import datasets.config
    import huggingface_hub.constants

    modules = (datasets.config, huggingface_hub.constants)
    with _LOCK:
        before, named = [module.HF_HUB_OFFLINE for module in modules], os.environ.get(_NAME)
        try:
            os.environ[_NAME] = "1"
            for module in modules:
                module.HF_HUB_OFFLINE = True
            yield
        finally:
            for module, value in zip(modules, before, strict=True):
                module.HF_HUB_OFFLINE = value
            if named is None:
                del os.environ[_NAME]
            else:
                os.environ[_NAME] = named
