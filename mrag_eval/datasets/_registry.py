"""Registry of all benchmarks: every module of this folder that defines a ``LOADER`` is one, by the module's name."""

from __future__ import annotations

import json
import pkgutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any

from mrag_eval.config import check_keys, load_config
from mrag_eval.core import RagDoc
from mrag_eval.datasets._base import Benchmark, DataBlock, LoaderSpec, validate_block
from mrag_eval.datasets._declaration import OWN_ROWS, Declaration
from mrag_eval.datasets._identity import PublishedRows, other_counts, published
from mrag_eval.datasets._imbalance import refuse_imbalance
from mrag_eval.datasets._origin import Declared, parts_of
from mrag_eval.datasets._share import shared
from mrag_eval.platform import ConfigError, DataError, config_path, did_you_mean, number_of, suggesting

_LIST = "mrag-eval tasks   lists the benchmarks"


class _Loaders(Mapping[str, LoaderSpec]):
    """The loaders by the names of their benchmarks: ``xquad`` is ``LOADER`` of ``_xquad.py``, then imported."""

    def __getitem__(self, name: str) -> LoaderSpec:
        if name not in _modules():
            raise KeyError(name)
        loader = getattr(import_module(f"{__package__}._{name}"), "LOADER", None)
        if not isinstance(loader, LoaderSpec):
            raise KeyError(name)
        return loader

    def __iter__(self) -> Iterator[str]:
        return (name for name in _modules() if name in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)


@cache
def _modules() -> list[str]:
    return sorted(module.name.removeprefix("_") for module in pkgutil.iter_modules([str(Path(__file__).parent)]))


LOADERS: Mapping[str, LoaderSpec] = _Loaders()


def declaration_of(data: Mapping[str, Any]) -> Declaration | None:
    """Return the declaration of the benchmark of a task's ``data:`` block; None for an unknown one."""
    loader = LOADERS.get(str(data.get("benchmark")))
    return None if loader is None else loader.declaration


def known_of(data: Mapping[str, Any]) -> Declaration:
    """Return the declaration that holds for the rows of a ``data:`` block, :data:`OWN_ROWS` for a user's own."""
    declared = declaration_of(data)
    return OWN_ROWS if declared is None or declared.is_own(data) else declared


def default_split(data: Mapping[str, Any]) -> str | None:
    """Return the split that the rows of a ``data:`` block without one are of; None if its benchmark has no splits."""
    loader = LOADERS.get(str(data.get("benchmark")))
    found = None if loader is None else loader.block.model_fields["split"].default
    return None if found is None else str(found)


def data_of_config() -> Mapping[str, Mapping[str, Any]]:
    """Return the settings that the config file has for benchmarks: benchmark -> keys of its ``data:`` block.

    Raises ConfigError that names the file and the key.
    """
    found, where = load_config().data, f"{config_path()}, data"
    for name, block in found.items():
        if name not in LOADERS:
            raise ConfigError(f"{where}: unknown benchmark '{name}'{did_you_mean(name, LOADERS)}", _LIST)
        if "benchmark" in block:
            raise ConfigError(f"{where}.{name}.benchmark: the settings are under its name", "leave this key out")
        check_keys(LOADERS[name].block, {"benchmark": name, **block}, f"{where}.{name}")
    return found


def validate_data(data: Mapping[str, Any]) -> DataBlock:
    """Return the validated ``data:`` block of a task, with defaults filled in.

    Raises ConfigError for an unknown benchmark, an unknown key or an invalid value.
    """
    name = data.get("benchmark")
    if name is None:
        raise ConfigError("data: the key 'benchmark' is missing", f"allowed: {', '.join(LOADERS)}")
    if not isinstance(name, str) or name not in LOADERS:
        raise ConfigError(f"data: unknown benchmark '{name}'{did_you_mean(str(name), LOADERS)}")
    block = validate_block(LOADERS[name].block, data)
    if block.imbalance is not None and not LOADERS[name].versions:
        raise refuse_imbalance(str(name))
    return block


def published_rows(data: Mapping[str, Any]) -> PublishedRows | None:
    """Return the rows that were published for a ``data:`` block; None for a user's own rows, or if nothing is known.

    Raises ConfigError for a wrong block.
    """
    return _declared(validate_data(data)).rows


def _declared(block: DataBlock) -> Declared:
    """Return what the benchmark's declaration tells of the rows of a block."""
    loader = LOADERS[block.benchmark]
    declaration = loader.declaration
    own = declaration.is_own(block.model_dump(include={"benchmark", *(declaration.own or ())}))
    counts = {"rows": loader.published, "documents": loader.documents}
    known = {
        kind: published(kind, block.benchmark, found)
        for kind, tell in counts.items()
        if not own and tell is not None and (found := tell(block)) is not None
    }
    pins = {getattr(source, "id", source.url): getattr(source, "revision", None) for source in declaration.sources}
    return Declared(declaration.title, known.get("rows"), known.get("documents"), pins, own)


def load_benchmark(data: Mapping[str, Any]) -> Benchmark:
    """Load the benchmark of a ``data:`` block; once per process for equal blocks.

    The result is shared: do not change its lists. Raises ConfigError for a wrong block and
    DataError for missing or invalid files.
    """
    block = validate_data(data)
    benchmark = _load(block.model_dump_json())
    if block.breakdowns is None:
        return benchmark
    check_breakdowns(block.breakdowns, benchmark.docs)
    return replace(benchmark, breakdowns=block.breakdowns)


# Leaves of one group and the ranks of one process request the same block several times.
@lru_cache(maxsize=32)
def _load(block_json: str) -> Benchmark:
    data = json.loads(block_json)
    loader = LOADERS[data["benchmark"]]
    block = loader.block.model_validate_json(block_json)
    with suggesting(_next_step(loader.declaration, block)):
        loaded = loader.load(block)
    declared = _declared(block)
    notes = loaded.notes
    if block.share is not None:
        # what was read are the rows of the whole
        origin = replace(loaded.origin, parts=parts_of(loaded.origin, loaded.docs))
        loaded = replace(loaded, docs=shared(loaded.docs, block.share, block.seed), origin=origin)
        notes += (f"{number_of(len(loaded.docs), 'row')} left by data.share {block.share:g}",)
    if not loaded.origin.own and (counts := other_counts(parts_of(loaded.origin, loaded.docs), declared.rows)):
        notes += (f"this copy differs from the published counts: {', '.join(counts)}",)
    return replace(loaded, notes=notes, declared=declared, breakdowns=loader.declaration.breakdowns_of(data))


def _next_step(declaration: Declaration, block: DataBlock) -> str:
    """Return the next step for wrong or missing rows, depending on the owner of the files."""
    keys = ", ".join(key for key in type(block).model_fields if key not in ("benchmark", "breakdowns"))
    if not declaration.sources:
        return f"correct the file, or choose other rows by the keys of the block 'data': {keys}"
    if block.path is not None:
        return f"compare your copy with the published files, or leave data.path out; keys that choose rows: {keys}"
    return f"--metadata data.path=FOLDER reads your own copy; keys of the block 'data' that choose rows: {keys}"


def check_breakdowns(names: Sequence[str], docs: Sequence[RagDoc]) -> None:
    """Raise ConfigError for a key that no row has, and DataError for a row whose value is a list or an object."""
    known = {key: None for doc in docs for key, value in doc.extra.items() if value is not None}
    for name in names:
        if name not in known:
            raise ConfigError(
                f"data: breakdowns: no row has the key '{name}'{did_you_mean(name, known)}",
                f"keys of these rows: {', '.join(known) or 'none beyond those that every benchmark has'}",
            )
        for doc in docs:
            value = doc.extra.get(name)
            if isinstance(value, list | tuple | dict):
                raise DataError(
                    f"data: breakdowns: '{name}' of row '{doc.id}' is a list or an object: {value!s:.60}",
                    "a breakdown takes one text, number or true/false a row",
                )
