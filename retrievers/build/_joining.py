"""Joining indexes of different languages into one, without embedding anything again."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from mrag_eval.core import ConfigError, CorpusError, DataError, build_lock, room_on_disk
from mrag_eval.retrievers.build._building import move_into_place
from mrag_eval.retrievers.build._passages_finish import finish_passages
from mrag_eval.retrievers.index._hashing import ContentHash
from mrag_eval.retrievers.index._index import Index
from mrag_eval.retrievers.index._load import load_index
from mrag_eval.retrievers.index._passages import LOOKUP_HASHES, PassageStore
from mrag_eval.retrievers.shards._manifest import (
    ApproximateRecord,
    FileRecord,
    LanguageRecord,
    Manifest,
    check_files,
    file_record,
    library_versions,
    manifest_bytes,
    parse_manifest,
    write_manifest,
)

_APPROXIMATE = ".approximate.faiss"
_HASHES = f"passages/{LOOKUP_HASHES}"
# hashes compared at a time, and how many ids an error names
_COMPARED = 65_536
_NAMED = 5


def join_indexes(parts: Sequence[str | Path], path: str | Path, *, overwrite: bool = False) -> Index:
    """One index of the languages of several, and open it; search finds what it would in one built in one go.

    Shards are the same files under a second name (copies, where the file system has no hard links), so joining costs
    little space and the parts stay as they are. ``path`` may be one of them, with ``overwrite``.

    Raises ConfigError for parts that differ in kind, embedder, chunker or tokenizer, have a language in common, or hold
    one joint lexical shard; DataError for passages that two parts hold; CorpusError where ``path`` is taken, and for a
    part that is missing or damaged.
    """
    target = Path(path).resolve()
    folders = [Path(part).resolve() for part in parts]
    with build_lock(target):
        if target.exists() and not overwrite:
            raise CorpusError(f"{target} exists already", "choose another path, or replace it: --overwrite")
        manifests = [parse_manifest(folder, manifest_bytes(folder)) for folder in folders]
        for folder, manifest in zip(folders, manifests, strict=True):
            check_files(folder, manifest)
        check_alike(folders, manifests)
        _check_apart(folders, manifests)
        building = target.with_name(target.name + ".building")
        whole = [Part(f, m, tuple(m.languages)) for f, m in zip(folders, manifests, strict=True)]
        with room_on_disk(target, "free some space, then give the same command again; the parts are as they were"):
            link_parts(whole, building, whole=manifests)
            move_into_place(building, target)
    return load_index(target)


@dataclass(frozen=True)
class Part:
    """The languages that are taken from one index."""

    folder: Path
    manifest: Manifest
    languages: tuple[str, ...]


def link_parts(
    parts: Sequence[Part],
    building: Path,
    *,
    whole: Sequence[Manifest],
    approximate: Callable[[Path], dict[str, ApproximateRecord]] | None = None,
    approximation: dict[str, Any] | None = None,
) -> None:
    """Write an index into the folder ``building`` whose shards are those of the parts, by a second name.

    Args:
        parts: no two of them with the same language.
        building: made anew.
        whole: the manifests of all passages that go into it, for its content hash and the sources.
        approximate: makes the approximate shards anew, given the folder; None: those of the parts are kept.
        approximation: what the manifest then says was asked for.
    """
    shutil.rmtree(building, ignore_errors=True)
    files: dict[str, FileRecord] = {}
    languages: dict[str, LanguageRecord] = {}
    for part in parts:
        for name, record in part.manifest.files.items():
            if _is_taken(name, part) and not (approximate and name.endswith(_APPROXIMATE)):
                _link(part.folder / name, building / name)
                files[name] = record
        languages |= {lang: part.manifest.languages[lang] for lang in part.languages}
    finish_passages(building, tuple(sorted(languages)))
    if approximate is not None:
        records = approximate(building)
        languages = {
            lang: record.model_copy(update={"approximate": records.get(lang)}) for lang, record in languages.items()
        }
    for file in sorted(building.rglob("*")):
        name = file.relative_to(building).as_posix()
        if file.is_file() and name not in files:
            with file.open("rb") as handle:
                os.fsync(handle.fileno())
            files[name] = file_record(file)
    manifest = _joined(whole, languages, files)
    if approximate is not None:
        manifest = manifest.model_copy(update={"approximation": approximation})
    write_manifest(building, manifest)


def check_alike(folders: Sequence[Path], manifests: Sequence[Manifest], *, approximation: bool = True) -> None:
    """Raise ConfigError for indexes that were built otherwise than the first; ``approximation``: in that too."""
    if not manifests:
        raise ConfigError("there is no index to join", "name two index folders or more")
    first = manifests[0]
    for folder, manifest in zip(folders, manifests, strict=True):
        expected, found = first.settings(), manifest.settings()
        if approximation:
            expected["approximation"], found["approximation"] = first.approximation, manifest.approximation
        for key, value in expected.items():
            if found[key] != value:
                other = key == "approximation"
                raise ConfigError(
                    f"index {folder} has {key} = {found[key]!r}, index {folders[0]} has {value!r}",
                    "say which it is to be: index merge --factory" if other else "build both with the same settings",
                )


def _check_apart(folders: Sequence[Path], manifests: Sequence[Manifest]) -> None:
    holder: dict[str, Path] = {}
    for folder, manifest in zip(folders, manifests, strict=True):
        if manifest.joint:
            raise ConfigError(
                f"index {folder} has one lexical shard over all its languages, which takes no other",
                "build it without joint, then add languages",
            )
        for lang in manifest.languages:
            if lang in holder:
                raise ConfigError(
                    f"indexes {holder[lang]} and {folder} both hold '{lang}'", "merge them: mrag-eval index merge"
                )
            holder[lang] = folder
    check_ids(folders, manifests)


def check_ids(folders: Sequence[Path], manifests: Sequence[Manifest]) -> None:
    """Raise DataError naming passage ids that two indexes hold.

    Only ids whose hashes two lookups have in common are read; documents may be in several indexes.
    """
    stores = [
        PassageStore(folder, {lang: record.passages for lang, record in manifest.languages.items()})
        for folder, manifest in zip(folders, manifests, strict=True)
    ]
    for (one, a), (other, b) in combinations(zip(folders, stores, strict=True), 2):
        common = np.intersect1d(np.load(one / _HASHES, mmap_mode="r"), np.load(other / _HASHES, mmap_mode="r"))
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


def _is_taken(name: str, part: Part) -> bool:
    """Whether a file belongs to a language that is taken, and is no file over all languages that is written anew."""
    if name.startswith("passages/") and not name.endswith((".text", ".offsets")):
        return False
    shard = name.split("/")[1].partition(".")[0]
    return shard in part.languages or shard == "joint"


def _link(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


def _joined(
    manifests: Sequence[Manifest], languages: dict[str, LanguageRecord], files: dict[str, FileRecord]
) -> Manifest:
    content = ContentHash()
    for manifest in manifests:
        content.add_all(manifest.content_hash)
    return manifests[0].model_copy(
        update={
            "content_hash": content.hexdigest,
            "passages": sum(record.passages for record in languages.values()),
            "languages": languages,
            "versions": library_versions(),
            "sources": _sources(manifests),
            "files": files,
        }
    )


def _sources(manifests: Sequence[Manifest]) -> dict[str, str]:
    """Where each language's documents come from; several sources one after the other, each once."""
    found: dict[str, list[str]] = {}
    for manifest in manifests:
        for lang, source in manifest.sources.items():
            known = found.setdefault(lang, [])
            known += [one for one in source.split("; ") if one not in known]
    return {lang: "; ".join(sources) for lang, sources in found.items()}
