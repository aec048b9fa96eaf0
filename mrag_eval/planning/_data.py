"""The data of benchmarks: what is downloaded, what is cached, and what the user must provide."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from mrag_eval.datasets import DataSource, Declaration, GitHubFiles, HubDataset
from mrag_eval.planning._need import Need
from mrag_eval.planning._tasks import PlannedTask, fetched_sources, given_copies
from mrag_eval.platform import cache_dir
from mrag_eval.retrievers import offline


def data_needs(leaves: Sequence[PlannedTask]) -> list[Need]:
    """Return the data of all tasks, each source or local copy once."""
    benchmarks = {leaf.declaration.name for leaf in leaves}
    found: dict[tuple[str, str], tuple[Need, list[str]]] = {}
    for leaf in leaves:
        for need in _of_leaf(leaf, several=len(benchmarks) > 1):
            found.setdefault((need.what, need.fix), (need, []))[1].append(leaf.name)
    return [replace(need, tasks=tuple(dict.fromkeys(names))) for need, names in found.values()]


def source_need(declared: Declaration, source: DataSource, *, several: bool = True) -> Need:
    """Return whether a source is in a cache of this machine; it comes on first use, unless the hub is offline."""
    cached, where = _cached(source)
    name = getattr(source, "id", source.url)
    size = "" if source.megabytes is None else f", ~{source.megabytes:,.0f} MB"
    what = f"{declared.title}: {name}{size}, {'' if cached else 'not '}in the cache of {where}"
    prefix = f"{declared.name}." if several else ""
    local = f"--metadata {prefix}{source.setting}=PATH   (a copy of the files)"
    if cached:
        return Need("data", what, True, needed=True, megabytes=source.megabytes)
    if offline():
        fix = "unset HF_HUB_OFFLINE   (it is downloaded on first use)"
        return Need("data", f"{what}, and HF_HUB_OFFLINE is set", False, fix, True, local, megabytes=source.megabytes)
    fix = "nothing to do: it is downloaded on first use"
    return Need("data", what, False, fix, True, local, comes=True, megabytes=source.megabytes)


def in_hub_cache(kind: str, name: str) -> bool:
    """Return whether files of a repository of the hub (``kind``: datasets or models) are on this machine."""
    from huggingface_hub.constants import HF_HUB_CACHE

    folder = Path(HF_HUB_CACHE) / f"{kind}--{name.replace('/', '--')}" / "snapshots"
    return folder.is_dir() and any(folder.iterdir())


def _of_leaf(leaf: PlannedTask, *, several: bool) -> list[Need]:
    """Return the data of one task."""
    if not leaf.declaration.sources and leaf.data.path is None:
        line = "data: {path: questions.jsonl}   in the file of the task"
        return [Need("data", f"{leaf.declaration.title}: data.path names no file", False, line, needed=True)]
    needs = [_copy(leaf, key) for key in given_copies(leaf)]
    return needs + [source_need(leaf.declaration, one, several=several) for one in fetched_sources(leaf)]


def _copy(leaf: PlannedTask, setting: str) -> Need:
    path: Path = getattr(leaf.data, setting.removeprefix("data."))
    there = path.exists()
    what = f"{leaf.declaration.title}: {setting}={path}" + ("" if there else " does not exist")
    return Need("data", what, there, "" if there else f"--metadata {setting}=PATH   with a path that exists", True)


def _cached(source: DataSource) -> tuple[bool, str]:
    """Return whether the files are in their cache, and whose cache that is."""
    if isinstance(source, HubDataset):
        return in_hub_cache("datasets", source.id), "the hub"
    if isinstance(source, GitHubFiles):
        return (cache_dir() / "github" / source.id).is_dir(), "mrag-eval"
    return _downloaded(source.url), "the library datasets"


def _downloaded(url: str) -> bool:
    """Return whether ``datasets`` has downloaded an address: it notes each one beside the file."""
    home = Path(os.environ.get("HF_HOME") or Path.home() / ".cache" / "huggingface")
    folder = Path(os.environ.get("HF_DATASETS_CACHE") or home / "datasets") / "downloads"
    notes = folder.glob("*.json") if folder.is_dir() else ()
    return any(url in note.read_text("utf-8", "replace") for note in notes)
