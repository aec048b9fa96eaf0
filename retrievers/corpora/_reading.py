"""How far a reader has got in its sources, so that a build can say when it will be done."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import IO, Any, Generic, TypeVar

T = TypeVar("T")


class Reading:
    """What has been read of a known whole, in units of the reader's choice (bytes, rows, files)."""

    def __init__(self) -> None:
        self.whole = 0.0
        self._before = 0.0
        self._within: Callable[[], float] | None = None

    @property
    def share(self) -> float | None:
        """Between 0 and 1; None where the whole is not known."""
        if not self.whole:
            return None
        within = self._within
        try:
            read = self._before + (within() if within is not None else 0.0)
        except ValueError:  # closed since, by the thread that reads
            read = self._before
        return min(1.0, read / self.whole)

    def expect(self, paths: Iterable[Path]) -> None:
        """The whole is the bytes of these files."""
        self.whole = float(sum(path.stat().st_size for path in paths))

    def count(self, whole: int, done: Callable[[], int]) -> None:
        """The whole is ``whole`` rows, of which ``done`` says how many are read."""
        self.whole, self._within = float(whole), done

    @contextmanager
    def part(self, size: float, within: Callable[[], float]) -> Iterator[None]:
        """A part of the whole; ``within`` says how much of it is read."""
        self._within = within
        try:
            yield
        finally:
            self._within = None
            self._before += size

    def rows_of(self, path: Path, rows: int, done: Callable[[], int]) -> AbstractContextManager[None]:
        """A file as a part in bytes, of whose ``rows`` rows ``done`` are read."""
        size = path.stat().st_size
        return self.part(size, lambda: size * done() / max(rows, 1))

    @contextmanager
    def binary(self, path: Path, opener: Callable[[IO[bytes]], Any] | None = None) -> Iterator[Any]:
        """A file opened as bytes, through ``opener`` where it is compressed; counts the bytes on disk."""
        with path.open("rb") as raw, self.part(path.stat().st_size, raw.tell):
            if opener is None:
                yield raw
            else:
                with opener(raw) as file:
                    yield file


def gunzipped(raw: IO[bytes]) -> gzip.GzipFile:
    """An ``opener`` for :meth:`Reading.binary`."""
    return gzip.GzipFile(fileobj=raw)


class Stream(Generic[T]):
    """An iterator that knows which share of its source it has read.

    ``read`` is called once, when the first item is asked for.
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
        """Between 0 and 1; None where the size of the source is not known."""
        return self._reading.share


class Share:
    """The share of a source that the passages taken in stand for.

    It is what the source says, unless somebody reads ahead of them: who does calls :meth:`follow`.
    """

    def __init__(self, read: Callable[[], float | None] = lambda: None) -> None:
        self.read = read
        self._followed: float | None = None
        self._is_followed = False

    def follow(self, share: float | None) -> None:
        """The passages taken in from now on stand for this share."""
        self._followed, self._is_followed = share, True

    def __call__(self) -> float | None:
        return self._followed if self._is_followed else self.read()


def counted(items: Iterable[T], count: int) -> Stream[T]:
    """``items``, of which there are ``count``."""

    def read(reading: Reading) -> Iterator[T]:
        done = 0
        reading.count(count, lambda: done)
        for item in items:
            done += 1
            yield item

    return Stream(read)
