"""Disk writes with reserved space, and one error for every full disk."""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from mrag_eval.platform._errors import CorpusError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import DTypeLike, NDArray

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
# messages of libraries that drop the error number (FAISS in a RuntimeError, pyarrow in an OSError)
_FULL_MESSAGES = tuple(os.strerror(number) for number in _FULL)


class NoRoomError(CorpusError):
    """The disk is full."""


def is_full(error: BaseException) -> bool:
    """Return whether an error means that a disk, a quota or the limit of a file's size is exhausted."""
    if isinstance(error, OSError) and error.errno in _FULL:
        return True
    if isinstance(error, sqlite3.Error):
        return "disk is full" in str(error)
    return isinstance(error, OSError | RuntimeError) and any(said in str(error) for said in _FULL_MESSAGES)


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an error means that the memory of this machine or of a GPU is exhausted."""
    # torch's error for a GPU; its error for this machine's memory has no class of its own
    named = type(error).__name__ == "OutOfMemoryError"
    return isinstance(error, MemoryError) or named or "DefaultCPUAllocator: can't allocate" in str(error)


@contextmanager
def room_on_disk(folder: Path, next_step: str) -> Iterator[None]:
    """Turn a full disk within the block into a CorpusError with the space left on the disk of ``folder``.

    In nested blocks the outer one decides the next step.
    """
    try:
        yield
    except NoRoomError as error:
        raise NoRoomError(error.message, next_step) from None
    except (OSError, RuntimeError) as error:
        if not is_full(error):
            raise
        home = next(parent for parent in (folder, *folder.parents) if parent.exists())
        free = shutil.disk_usage(home).free
        number = error.errno if isinstance(error, OSError) else None
        what = {errno.EDQUOT: "the disk quota is used up", errno.EFBIG: "the limit on the size of files is reached"}
        raise NoRoomError(
            f"{what.get(number or 0, 'the disk is full')} ({free / 1e9:,.1f} GB left at {home})", next_step
        ) from None


def save_array(path: Path, array: NDArray[Any]) -> None:
    """Save a contiguous array as ``np.save`` does, with errors that name the cause."""
    import numpy as np

    header = np.lib.format.header_data_from_array_1_0(array)
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        file.write(array.data)


def read_array(path: Path, mode: Literal["r"] | None = "r") -> NDArray[Any]:
    """Open an array of numbers, mapped or (None) in memory; raise CorpusError for anything else, such as a pickle."""
    import numpy as np

    try:
        found: NDArray[Any] = np.load(path, mmap_mode=mode, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise CorpusError(f"{path} is not an array of numbers ({error})", "rebuild the index") from None
    return found


def save_faiss(path: Path, index: Any) -> None:
    """Save an index as ``faiss.write_index`` does, but report a full disk.

    FAISS closes its file without checking the result, so the last bytes may be lost; here Python writes them.
    """
    import faiss

    with path.open("wb") as file:
        module: Any = faiss  # its types omit the writer
        faiss.write_index(index, module.PyCallbackIOWriter(file.write))


def mapped_array(path: Path, dtype: DTypeLike, shape: tuple[int, ...]) -> np.memmap[Any, np.dtype[Any]]:
    """Create a ``.npy`` file with its space reserved, and return it as a writable memory map.

    Writing to a mapped file without reserved blocks kills the process if the disk is full (SIGBUS).
    """
    import numpy as np

    array = np.lib.format.open_memmap(path, mode="w+", dtype=np.dtype(dtype), shape=shape)
    if hasattr(os, "posix_fallocate"):
        with path.open("r+b") as file:
            try:
                os.posix_fallocate(file.fileno(), 0, path.stat().st_size)
            except OSError as error:
                # a file system that cannot reserve space
                if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL):
                    raise
    return array
