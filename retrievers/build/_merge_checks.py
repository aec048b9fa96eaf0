"""Checks that indexes can be merged: same settings, no passage twice."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

import numpy as np

from mrag_eval.platform import ConfigError, DataError, read_array
from mrag_eval.retrievers.index._passages import LOOKUP_HASHES, PassageStore
from mrag_eval.retrievers.shards._manifest import Manifest

_HASHES = f"passages/{LOOKUP_HASHES}"
# hashes compared at a time, and the number of ids an error names
_COMPARED = 65_536
_NAMED = 5


def check_alike(folders: Sequence[Path], manifests: Sequence[Manifest], *, approximation: bool = True) -> None:
    """Raise ConfigError for an index with other settings than the first; ``approximation`` compares that, too."""
    if not manifests:
        raise ConfigError("there is no index to merge", "name at least two index folders")
    first = manifests[0]
    for folder, manifest in zip(folders, manifests, strict=True):
        # the store first, as the format follows from it
        expected, found = {"store": first.store, **first.settings()}, manifest.settings()
        if approximation:
            expected["approximation"], found["approximation"] = first.approximation, manifest.approximation
        for key, value in expected.items():
            if found[key] != value:
                other = key == "approximation"
                raise ConfigError(
                    f"index {folder} has {key} = {found[key]!r}, index {folders[0]} has {value!r}",
                    "choose one: index merge --factory" if other else "build both with the same settings",
                )


def check_disjoint(folders: Sequence[Path], manifests: Sequence[Manifest]) -> None:
    """Raise ConfigError for a language in two indexes, and for a joint lexical shard."""
    holder: dict[str, Path] = {}
    for folder, manifest in zip(folders, manifests, strict=True):
        if manifest.joint:
            raise ConfigError(
                f"index {folder} has one lexical shard over all its languages, which cannot take others",
                "build it without joint, then add languages",
            )
        for lang in manifest.languages:
            if lang in holder:
                raise ConfigError(
                    f"indexes {holder[lang]} and {folder} both hold '{lang}'", "merge them: mrag-eval index merge"
                )
            holder[lang] = folder


def check_ids(folders: Sequence[Path], manifests: Sequence[Manifest]) -> None:
    """Raise DataError naming passage ids that two indexes hold.

    Only ids whose hashes are in both lookups are read. A document may be in several indexes, a passage may not.
    """
    stores = [
        PassageStore(folder, {lang: record.passages for lang, record in manifest.languages.items()})
        for folder, manifest in zip(folders, manifests, strict=True)
    ]
    for (one, a), (other, b) in combinations(zip(folders, stores, strict=True), 2):
        common = np.intersect1d(read_array(one / _HASHES), read_array(other / _HASHES))
        for start in range(0, len(common), _COMPARED):
            some = common[start : start + _COMPARED]
            twice = sorted(set(a.ids_of_hashes(some)) & set(b.ids_of_hashes(some)))
            if twice:
                named = ", ".join(f"'{identifier}'" for identifier in twice[:_NAMED])
                more = f" and {len(twice) - _NAMED:,} more" if len(twice) > _NAMED else ""
                raise DataError(
                    f"indexes {one} and {other} both hold the passages {named}{more}",
                    "ids must be unique in the whole index: leave these passages out of one",
                )
