"""Joining indexes of different languages into one, without embedding anything again."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from mrag_eval.errors import ConfigError, CorpusError
from mrag_eval.retrievers._building import move_into_place
from mrag_eval.retrievers._hashing import ContentHash
from mrag_eval.retrievers._locking import build_lock
from mrag_eval.retrievers._manifest import (
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
from mrag_eval.retrievers._passages_finish import finish_passages
from mrag_eval.retrievers.index import Index
from mrag_eval.retrievers.load import load_index


def join_indexes(parts: Sequence[str | Path], path: str | Path, *, overwrite: bool = False) -> Index:
    """One index of the languages of several, and open it; search finds what it would in one built in one go.

    Shards are the same files under a second name (copies, where the file system has no hard links), so joining costs
    little space and the parts stay as they are. ``path`` may be one of them, with ``overwrite``.

    Raises ConfigError for parts that differ in kind, embedder, chunker or tokenizer, have a language in common, or hold
    one joint lexical shard; CorpusError where ``path`` is taken, and for a part that is missing or damaged.
    """
    target = Path(path).resolve()
    folders = [Path(part).resolve() for part in parts]
    with build_lock(target):
        if target.exists() and not overwrite:
            raise CorpusError(f"{target} exists already", "choose another path, or replace it: --overwrite")
        manifests = [parse_manifest(folder, manifest_bytes(folder)) for folder in folders]
        for folder, manifest in zip(folders, manifests, strict=True):
            check_files(folder, manifest)
        _check_alike(folders, manifests)
        building = target.with_name(target.name + ".building")
        shutil.rmtree(building, ignore_errors=True)
        files: dict[str, FileRecord] = {}
        for folder, manifest in zip(folders, manifests, strict=True):
            for name, record in manifest.files.items():
                if not _is_derived(name):
                    _link(folder / name, building / name)
                    files[name] = record
        languages = {lang: record for manifest in manifests for lang, record in manifest.languages.items()}
        finish_passages(building, tuple(sorted(languages)))
        for file in sorted((building / "passages").iterdir()):
            name = file.relative_to(building).as_posix()
            if _is_derived(name):
                with file.open("rb") as handle:
                    os.fsync(handle.fileno())
                files[name] = file_record(file)
        write_manifest(building, _joined(manifests, languages, files))
        move_into_place(building, target)
    return load_index(target)


def _check_alike(folders: Sequence[Path], manifests: Sequence[Manifest]) -> None:
    if not manifests:
        raise ConfigError("there is no index to join")
    first = manifests[0]
    holder: dict[str, Path] = {}
    for folder, manifest in zip(folders, manifests, strict=True):
        if manifest.joint:
            raise ConfigError(f"index {folder} has one lexical shard over all its languages, which takes no other")
        for key, value in first.settings().items():
            found = manifest.settings()[key]
            if found != value:
                raise ConfigError(
                    f"index {folder} has {key} = {found!r}, index {folders[0]} has {value!r}",
                    "build both with the same settings",
                )
        for lang in manifest.languages:
            if lang in holder:
                raise ConfigError(f"indexes {holder[lang]} and {folder} both hold '{lang}'", "leave it out of one")
            holder[lang] = folder


def _is_derived(name: str) -> bool:
    """Files over all languages, or that finishing writes anew: they must not be written through a second name."""
    return name.startswith("passages/") and not name.endswith((".text", ".offsets"))


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
            "sources": {lang: source for manifest in manifests for lang, source in manifest.sources.items()},
            "files": files,
        }
    )
