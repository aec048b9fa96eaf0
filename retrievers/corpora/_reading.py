"""The share of a source that has been read, from which a build estimates the time left."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import IO, Any, Generic, TypeVar

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

    def rows_of(self, path: Path, rows: int, done: Callable[[], int]) -> AbstractContextManager[None]:
        """Count a file as a part in bytes, by the share of its ``rows`` that ``done`` returns."""
        size = path.stat().st_size
        return self.part(size, lambda: size * done() / max(rows, 1))

    @contextmanager
    def binary(self, path: Path, opener: Callable[[IO[bytes]], Any] | None = None) -> Iterator[Any]:
        """Open a file as bytes, through ``opener`` if compressed, and count its bytes on disk."""
        with path.open("rb") as raw, self.part(path.stat().st_size, raw.tell):
            if opener is None:
                yield raw
            else:
                with opener(raw) as file:
                    yield file


def gunzipped(raw: IO[bytes]) -> gzip.GzipFile:
    """Open gzipped bytes; an ``opener`` for :meth:`Reading.binary`."""
    return gzip.GzipFile(fileobj=raw)


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
