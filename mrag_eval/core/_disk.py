"""Writing where there may be no room: arrays whose space is reserved first, and one error for every full disk."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mrag_eval.core._errors import CorpusError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import DTypeLike, NDArray

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
# how libraries that lose the number of the error put it (FAISS in a RuntimeError, pyarrow in an OSError)
_SAID = tuple(os.strerror(number) for number in _FULL)


class NoRoomError(CorpusError):
    """The disk is full."""


def is_full(error: BaseException) -> bool:
    """Whether an error means that a disk, a quota or the limit of a file's size is exhausted."""
    if isinstance(error, OSError) and error.errno in _FULL:
        return True
    return isinstance(error, OSError | RuntimeError) and any(said in str(error) for said in _SAID)


@contextmanager
def room_on_disk(folder: Path, next_step: str) -> Iterator[None]:
    """Within the block a full disk is a CorpusError that says how much is left where ``folder`` lies.

    Of two blocks one within the other, the outer one says what to do next.
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
    """``np.save``, of a contiguous array, whose errors say why they failed."""
    import numpy as np

    header = np.lib.format.header_data_from_array_1_0(array)
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        file.write(array.data)


def save_faiss(path: Path, index: Any) -> None:
    """``faiss.write_index``, which says nothing where the end of a file finds no room.

    It closes its file without looking at the result, so the last bytes may be lost; here Python writes them.
    """
    import faiss

    with path.open("wb") as file:
        module: Any = faiss  # its types leave the writer out
        faiss.write_index(index, module.PyCallbackIOWriter(file.write))


def mapped_array(path: Path, dtype: DTypeLike, shape: tuple[int, ...]) -> np.memmap[Any, np.dtype[Any]]:
    """A new ``.npy`` file, memory-mapped to be written, with its space reserved.

    Writing to a mapped file whose blocks are not reserved kills the process where the disk is full (SIGBUS).
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
