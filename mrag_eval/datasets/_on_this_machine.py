"""Benchmarks read from what is on this machine: nothing is downloaded."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

from mrag_eval.core import MragError, content_key
from mrag_eval.datasets._base import Benchmark
from mrag_eval.datasets._registry import load_benchmark

_OFFLINE = "HF_HUB_OFFLINE"
# Modules that read it once, when they are imported.
_CLIENTS = ("huggingface_hub.constants", "datasets.config")


def local_benchmark(data: Mapping[str, Any], copies: Sequence[Path] = ()) -> Benchmark | None:
    """Return the benchmark of a recorded ``data:`` block; None if its files are not on this machine.

    Looked at in this order: each of ``copies`` (the benchmark's files, or a folder that holds them under its name), the
    places that the block names, and the caches of the hub and of GitHub.
    """
    places = [place for copy in copies for place in (copy, copy / str(data.get("benchmark")))]
    blocks = [{**data, "path": str(place)} for place in places if place.exists()]
    without_place = {key: value for key, value in data.items() if key != "path"}
    for block in [*blocks, data, *([without_place] if "path" in data else [])]:
        found = _found(_Block(block))
        if found is not None:
            return found
    return None


class _Block(dict[str, Any]):
    """A block that can be the key of a cache."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(content_key(dict(self)))


# a file that is missing is looked for once, not for every task of a group
@lru_cache(maxsize=256)
def _found(block: _Block) -> Benchmark | None:
    try:
        with offline():
            return load_benchmark(block)
    except MragError:
        return None


@contextmanager
def offline() -> Iterator[None]:
    """Keep the clients of the hub, of datasets and of GitHub from asking for files inside this block.

    A client that is imported inside the block reads the variable then, and is set back, too.
    """
    given = os.environ.get(_OFFLINE)
    asked = (given or "0").lower() in ("1", "true", "yes", "on")
    before = {name: getattr(sys.modules.get(name), _OFFLINE, asked) for name in _CLIENTS}
    os.environ[_OFFLINE] = "1"
    _set_clients(dict.fromkeys(_CLIENTS, True))
    try:
        yield
    finally:
        os.environ.pop(_OFFLINE)
        if given is not None:
            os.environ[_OFFLINE] = given
        _set_clients(before)


def _set_clients(offline: Mapping[str, bool]) -> None:
    for name, value in offline.items():
        module = sys.modules.get(name)
        if module is not None:
            setattr(module, _OFFLINE, value)
