"""Files that are written completely or not at all."""

from __future__ import annotations

import errno
import os
import zlib
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from glob import escape as glob_escape
from pathlib import Path
from tempfile import mkstemp
from typing import Any, Protocol, TypeVar

from mrag_eval.platform._disk import is_full
from mrag_eval.platform._errors import DataError, beside
from mrag_eval.platform._locking import try_lock
from mrag_eval.platform._visible import is_one_line

# The most that is read of one line, and of a file that is read whole, after decompression: a small compressed file may
# hold gigabytes.
LONGEST_LINE = 64 << 20
LONGEST_FILE = 256 << 20
# The most empty lines one after the other: a compressed megabyte may hold a thousand million of them.
_MOST_EMPTY = 1_000_000


Text = TypeVar("Text", bytes, str)
Text_co = TypeVar("Text_co", bytes, str, covariant=True)


class _Lines(Protocol[Text_co]):
    def readline(self, size: int, /) -> Text_co: ...


class _Bytes(Protocol):
    def read(self, size: int, /) -> bytes: ...


def lines_of(file: _Lines[Text], path: Path) -> Iterator[Text]:
    """Yield the lines of an open file.

    Raises DataError for a line longer than :data:`LONGEST_LINE`, and for more than a million empty ones in a row.
    """
    number = filled = 0
    while line := file.readline(LONGEST_LINE + 1):
        number += 1
        if len(line) > 2:
            filled = number
        elif number - filled > _MOST_EMPTY:
            raise DataError(
                f"{path}, line {filled + 1:,}: more than {_MOST_EMPTY:,} empty lines follow",
                "the file may be damaged: copy it again, or remove them",
            )
        if len(line) > LONGEST_LINE:
            raise DataError(
                f"{path}, line {number}: longer than {LONGEST_LINE >> 20} MiB",
                "split the text into several lines; if the file is compressed, it may be damaged",
            )
        yield line


CUT_OFF = "the file may be cut short: copy it or download it again"


def filled_lines(
    opened: AbstractContextManager[_Lines[bytes]], path: Path, digest: Any = None
) -> Iterator[tuple[int, bytes]]:
    """Yield number and bytes of each line that is not blank, and add all to ``digest``; DataError for a cut file."""
    number = 0
    try:
        with opened as file:
            for number, raw in enumerate(lines_of(file, path), start=1):
                if digest is not None:
                    digest.update(raw)
                if raw.strip():
                    yield number, raw
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path}: cannot be read after line {number:,}: {error}", CUT_OFF) from None


def whole(file: _Bytes, path: Path) -> bytes:
    """Return the content of an open file; raise DataError for more than :data:`LONGEST_FILE`."""
    content = file.read(LONGEST_FILE + 1)
    if len(content) > LONGEST_FILE:
        raise DataError(
            f"{path}: holds more than {LONGEST_FILE >> 20} MiB", "split it; if it is compressed, it may be damaged"
        )
    return content


def part_files(path: Path, part: str) -> list[Path]:
    """Return the files of a part (``corpus``, ``queries``, ``qrels``) of a folder as BEIR and MTEB have it, if any.

    It is one file, such as ``corpus.jsonl``, or those in a folder of this name. A file is itself.
    """
    if not path.is_dir():
        return [path]
    if one := [file for ending in _RECORDS if (file := path / f"{part}{ending}").is_file()]:
        return one[:1]
    # what is the default on the hub
    inside = (path / part, *((path / "default", path / "data") if part == "qrels" else ()))
    folder = next((each for each in inside if each.is_dir()), None)
    listed = () if folder is None else sorted(folder.rglob("*"))
    return [file for file in listed if file.name.endswith(_RECORDS) or (part == "qrels" and file.suffix == ".tsv")]


_RECORDS = (".jsonl", ".jsonl.gz", ".parquet")


def regular(path: Path) -> Path:
    """Return ``path``; raise OSError for a pipe or a device, which a file from elsewhere may be, and never ends.

    Likewise for a path that is not one printable line.
    """
    if not is_one_line(str(path)):
        raise OSError(errno.EINVAL, "a path with a character that ends a line, or that a terminal obeys", str(path))
    if path.exists() and not path.is_file() and not path.is_dir():
        raise OSError(errno.EINVAL, "a pipe or a device, not a file", str(path))
    return path


@contextmanager
def replaced(path: Path, family: str | None = None) -> Iterator[Path]:
    """Yield a temporary path in the folder of ``path``; at the end of the block that file replaces ``path``.

    It is on disk when the block is left, and so is its name: a power failure leaves the old file or the new one. If the
    block raises, the temporary file is removed and ``path`` is unchanged. The folder is created if needed.
    Temporary files that killed processes left for the same path are removed, and those for all names of a ``family``,
    a pattern.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    # the lock of a living process keeps its file; without locks, all files stay
    for left in path.parent.glob(f"{family or glob_escape(path.name)}.*{_SUFFIX}"):
        with suppress(OSError), left.open("r+b") as file:
            if try_lock(file.fileno()):
                left.unlink()
    descriptor, name = mkstemp(prefix=f"{path.name}.", suffix=_SUFFIX, dir=path.parent)
    part = Path(name)
    try:
        try_lock(descriptor)
        part.chmod(0o666 & ~_UMASK)
        yield part
        os.fsync(descriptor)
        part.replace(path)
        _sync_folder(path.parent)
    except OSError as error:
        if is_full(error) and error.filename is None:
            error.filename = str(path)
        raise
    finally:
        part.unlink(missing_ok=True)
        os.close(descriptor)


_SUFFIX = ".part"
# can only be read by setting it, which would affect other threads later
_UMASK = os.umask(0o022)
os.umask(_UMASK)


def _sync_folder(folder: Path) -> None:
    with suppress(OSError):  # some file systems cannot, and keep names by themselves
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextmanager
def readable(path: Path, next_step: str) -> Iterator[None]:
    """Turn a failure to read ``path`` within the block into a DataError that names it; a pipe is none to read."""
    try:
        regular(path)
        yield
    except UnicodeDecodeError:
        raise DataError(f"{path}: not UTF-8 text", next_step) from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror or error}){beside(path)}", next_step) from None


def write_whole(path: Path, text: str, errors: str = "strict") -> Path:
    """Write ``text`` as UTF-8 to ``path``, completely or not at all; return ``path``."""
    with replaced(path) as part:
        part.write_text(text, encoding="utf-8", errors=errors)
    return path
