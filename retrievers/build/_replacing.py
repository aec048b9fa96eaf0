"""Replacement of an index: nothing is removed but what a manifest of ours lists."""

from __future__ import annotations

import shutil
from pathlib import Path

from mrag_eval.core import CorpusError
from mrag_eval.retrievers.shards._manifest import MANIFEST, manifest_bytes, parse_manifest

# A file in a folder of ours that is not finished.
UNFINISHED = ".mrag_eval-unfinished"
_BY_HAND = "choose another path, or remove it yourself"


def check_replaceable(target: Path) -> None:
    """Raise CorpusError unless ``target`` is an index and holds nothing else, so that it can be removed."""
    if target.is_symlink() or not target.is_dir():
        raise CorpusError(f"{target} is not an index, but a {'link' if target.is_symlink() else 'file'}", _BY_HAND)
    try:
        manifest = parse_manifest(target, manifest_bytes(target))
    except CorpusError:
        raise CorpusError(f"{target} is not replaced: it has no {MANIFEST} of an index", _BY_HAND) from None
    _check_holds_only(target, {MANIFEST, UNFINISHED, *manifest.files})


def check_unfinished(folder: Path) -> None:
    """Raise CorpusError if ``folder`` is neither missing, nor empty, nor an unfinished or finished index."""
    if not folder.exists() and not folder.is_symlink():
        return
    if folder.is_symlink() or not folder.is_dir():
        raise CorpusError(f"{folder} is not an unfinished index", _BY_HAND)
    marks = (folder / UNFINISHED, folder / "work" / "state.json")
    if any(mark.is_file() for mark in marks) or all(path.is_dir() for path in folder.rglob("*")):
        return
    try:
        parse_manifest(folder, manifest_bytes(folder))
    except CorpusError:
        raise CorpusError(f"{folder} is not an unfinished index, so it is not removed", _BY_HAND) from None


def remove_index(folder: Path) -> None:
    """Remove the index in ``folder``, if there is one; raise CorpusError for anything else."""
    if folder.exists():
        check_replaceable(folder)
        shutil.rmtree(folder)


def remove_unfinished(folder: Path) -> None:
    """Remove the unfinished index in ``folder``, if there is one; raise CorpusError for anything else."""
    check_unfinished(folder)
    shutil.rmtree(folder, ignore_errors=True)


def move_into_place(folder: Path, target: Path) -> None:
    """Rename a finished folder to ``target``; an index that is there is removed afterwards."""
    replaced = target.with_name(target.name + ".replaced")
    if target.exists():
        check_replaceable(target)
        remove_index(replaced)
        target.rename(replaced)
    folder.rename(target)
    remove_index(replaced)


def _check_holds_only(folder: Path, ours: set[str]) -> None:
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if not (path.is_dir() and not path.is_symlink()) and name not in ours:
            raise CorpusError(
                f"{folder} is not replaced: {name!r} is not a file of the index", "move it to another folder"
            )
