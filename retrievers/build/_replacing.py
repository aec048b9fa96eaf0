"""Replacement and removal of indexes: only of ours, and so that a process may be killed at any moment."""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path

from mrag_eval.platform import CorpusError, build_lock
from mrag_eval.retrievers.build._progress import log
from mrag_eval.retrievers.index._means import MEANS
from mrag_eval.retrievers.shards._manifest import MANIFEST, manifest_bytes, parse_manifest

# A file in a folder of ours that was begun, or is being removed: nothing in it is used.
UNFINISHED = ".mrag_eval-unfinished"
_BY_HAND = "choose another path, or remove it yourself"


def check_target(target: Path, *, overwrite: bool) -> None:
    """Raise CorpusError unless an index may be written to ``target``; the caller holds its lock.

    What a killed replacement of ``target`` left is put right first.
    """
    _recover(target)
    if target.exists():
        if not overwrite:
            raise CorpusError(f"{target} exists already", "choose another path, or replace it: --overwrite")
        check_replaceable(target)


def check_replaceable(target: Path) -> None:
    """Raise CorpusError unless ``target`` is an index and holds nothing else, so that it can be removed."""
    if target.is_symlink() or not target.is_dir():
        raise CorpusError(f"{target} is not an index, but a {'link' if target.is_symlink() else 'file'}", _BY_HAND)
    try:
        manifest = parse_manifest(target, manifest_bytes(target))
    except CorpusError:
        raise CorpusError(f"{target} is not replaced: it has no {MANIFEST} of an index", _BY_HAND) from None
    _check_holds_only(target, {MANIFEST, MEANS, UNFINISHED, *manifest.files})


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


def is_void(folder: Path) -> bool:
    """Return whether nothing in ``folder`` is used: it is empty, or a killed process began it or was removing it."""
    if folder.is_symlink() or not folder.is_dir():
        return False
    return (folder / UNFINISHED).is_file() or not any(folder.iterdir())


def begin(folder: Path) -> None:
    """Make the folder of a new index, marked as unfinished; an unfinished index that is there is removed."""
    remove_unfinished(folder)
    folder.mkdir()
    (folder / UNFINISHED).touch()


def remove_index(folder: Path) -> None:
    """Remove the index in ``folder``, or what is left of it; raise CorpusError for anything else."""
    if folder.exists():
        if not is_void(folder):
            check_replaceable(folder)
        _remove(folder)


def remove_unfinished(folder: Path) -> None:
    """Remove the unfinished index in ``folder``, if there is one; raise CorpusError for anything else."""
    check_unfinished(folder)
    if folder.exists():
        _remove(folder)


def discard(folder: Path) -> None:
    """Remove what can be removed of a folder of ours; no error is raised.

    Its mark comes first and goes last, so that the next command finishes a removal that is killed.
    """
    if folder.is_symlink():
        return
    # no room for the mark is no reason to keep the rest
    with suppress(OSError):
        (folder / UNFINISHED).touch()
    with suppress(OSError):
        for path in folder.iterdir():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            elif path.name != UNFINISHED:
                with suppress(OSError):
                    path.unlink()
        if not any(path.name != UNFINISHED for path in folder.iterdir()):
            (folder / UNFINISHED).unlink(missing_ok=True)
            folder.rmdir()


def finish_removal(folder: Path) -> None:
    """Remove what a killed removal left of ``folder``; raise CorpusError if that cannot be done."""
    if is_void(folder):
        with build_lock(folder):
            if is_void(folder):
                _remove(folder)


def recover(target: Path) -> None:
    """Put right what a killed replacement of ``target`` left."""
    target = target.resolve()
    replaced = _replaced(target)
    if is_void(replaced) or (replaced.exists() and not target.exists()):
        with build_lock(target):
            _recover(target)


def _recover(target: Path) -> None:
    replaced = _replaced(target)
    if is_void(replaced):
        _remove(replaced)
    # killed between the two renames: the old index was moved away, and the new one is not there yet
    if replaced.exists() and not target.exists():
        check_replaceable(replaced)
        replaced.rename(target)
        log.warning("put back %s, which a killed process had moved away to replace it", target)


def _remove(folder: Path) -> None:
    discard(folder)
    if folder.exists():
        left = next((path.name for path in folder.iterdir() if path.name != UNFINISHED), "")
        raise CorpusError(f"{folder} cannot be removed ({left})", "look at its permissions, or remove it yourself")


def move_into_place(folder: Path, target: Path) -> None:
    """Rename a finished folder to ``target``; an index that is there is removed afterwards."""
    replaced = _replaced(target)
    if target.exists():
        check_replaceable(target)
        remove_index(replaced)
        target.rename(replaced)
    folder.rename(target)
    remove_index(replaced)


def _replaced(target: Path) -> Path:
    return target.with_name(target.name + ".replaced")


def _check_holds_only(folder: Path, ours: set[str]) -> None:
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if not (path.is_dir() and not path.is_symlink()) and name not in ours:
            raise CorpusError(
                f"{folder} is not replaced: {name!r} is not a file of the index", "move it to another folder"
            )
