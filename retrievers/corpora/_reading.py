"""The share of a source that has been read, from which a build estimates the time left."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import IO, Any, Generic, TypeVar

from mrag_eval.platform import CUT_OFF, DataError, filled_lines

T = TypeVar("T")


class Reading:
    """Amount read of a known total, in any unit (bytes, rows, files)."""

    def __init__(self) -> None:
        self.whole = 0.0
        self._before = 0.0
        self._within: Callable[[], float] | None = None

    @property
    def share(self) -> float | None:
        """Return the share read, from 0 to 1, or None if the total is unknown."""
        if not self.whole:
            return None
        within = self._within
        try:
            read = self._before + (within() if within is not None else 0.0)
        except ValueError:  # closed meanwhile by the reading thread
            read = self._before
        return min(1.0, read / self.whole)

    def expect(self, paths: Iterable[Path]) -> None:
        """Set the total to the bytes of these files."""
        self.whole = float(sum(path.stat().st_size for path in paths))

    def count(self, whole: int, done: Callable[[], int]) -> None:
        """Set the total to ``whole`` rows; ``done`` returns the number read."""
        self.whole, self._within = float(whole), done

    @contextmanager
    def part(self, size: float, within: Callable[[], float]) -> Iterator[None]:
        """Read a part of the total; ``within`` returns the amount of it that is read."""
        self._within = within
        try:
            yield
        finally:
            self._within = None
            self._before += size

    def lines(self, path: Path) -> Iterator[tuple[int, bytes]]:
        """Yield the number and the bytes of each line that is not blank."""
        return filled_lines(self.binary(path), path)

    @contextmanager
    def binary(self, path: Path, opener: Callable[[IO[bytes]], Any] | None = None) -> Iterator[Any]:
        """Open a file as bytes, through ``opener`` or that of ``*.gz`` if compressed, and count its bytes on disk."""
        with path.open("rb") as raw, self.part(path.stat().st_size, raw.tell):
            opener = opener or ((lambda raw: gzip.GzipFile(fileobj=raw)) if path.suffix == ".gz" else nullcontext)
            with opener(raw) as file:
                yield file


def table_rows(
    path: Path, reading: Reading, columns: Sequence[str], *, all_of: str = ""
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the place and the record of each row of a Parquet file, of those of ``columns`` that it has.

    Raises DataError where it breaks off, and for a missing column if they are those of ``all_of``.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    row = 0
    try:
        size = path.stat().st_size
        with pq.ParquetFile(path) as file, reading.part(size, lambda: size * row / max(file.metadata.num_rows, 1)):
            there = [name for name in columns if name in file.schema_arrow.names]
            if all_of and (missing := {*columns} - {*there}):
                raise DataError(f"{path}: no column {', '.join(sorted(missing))}", f"the columns of {all_of}")
            for batch in file.iter_batches(batch_size=256, columns=there):
                for record in batch.to_pylist():
                    row += 1
                    yield f"{path}, row {row}", record
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: cannot be read after row {row}: {str(error).splitlines()[0]}", CUT_OFF) from error


class Stream(Generic[T]):
    """Iterator that knows the share of its source it has read.

    ``read`` is called once, on construction.
    """

    def __init__(self, read: Callable[[Reading], Iterator[T]]) -> None:
        self._reading = Reading()
        self._items = read(self._reading)

    def __iter__(self) -> Iterator[T]:
        return self

    def __next__(self) -> T:
        return next(self._items)

    @property
    def share_read(self) -> float | None:
        """Return the share read, from 0 to 1, or None if the size of the source is unknown."""
        return self._reading.share


class Share:
    """The share of a source that the passages taken so far come from.

    By default the source's own share; code that reads ahead calls :meth:`follow` instead.
    """

    def __init__(self, read: Callable[[], float | None] = lambda: None) -> None:
        self.read = read
        self._followed: float | None = None
        self._is_followed = False

    def follow(self, share: float | None) -> None:
        """Set the share that the passages taken from now on correspond to."""
        self._followed, self._is_followed = share, True

    def __call__(self) -> float | None:
        return self._followed if self._is_followed else self.read()


def counted(items: Iterable[T], count: int) -> Stream[T]:
    """Return a stream of ``items``, whose number is ``count``."""

    def read(reading: Reading) -> Iterator[T]:
        done = 0
        reading.count(count, lambda: done)
        for item in items:
            done += 1
            yield item

    return Stream(read)
