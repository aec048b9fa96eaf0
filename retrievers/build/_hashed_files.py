"""Sizes and SHA-256 of an index's files, computed while others are still being written."""

from __future__ import annotations

import os
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from threading import Event
from types import TracebackType

from mrag_eval.retrievers.build._dense_files import WORK
from mrag_eval.retrievers.shards._manifest import FileRecord, file_record


class HashedFiles:
    """The files of ``folder``, each hashed once, and flushed to the disk meanwhile.

    Leaving the block stops them.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._found: dict[str, Future[FileRecord]] = {}
        self._flushed: list[Future[None]] = []
        self._stop = Event()
        # while one waits for the disk, the other hashes
        self._threads = ThreadPoolExecutor(2, "mrag-eval-hash")

    def __enter__(self) -> HashedFiles:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._threads.shutdown(cancel_futures=True)

    def begin(self, names: Iterable[str]) -> None:
        """Hash finished files, which must not change any more."""
        for name in names:
            if name not in self._found:
                self._found[name] = self._threads.submit(file_record, self._folder / name, self._stop)
                self._flushed.append(self._threads.submit(_flush, self._folder / name))

    def records(self) -> dict[str, FileRecord]:
        """Return the record of every file of the index, in the order of their names."""
        files = [path for path in sorted(self._folder.rglob("*")) if path.is_file()]
        names = [path.relative_to(self._folder).as_posix() for path in files]
        names = [name for name in names if not name.startswith(f"{WORK}/")]
        self.begin(names)
        for flushed in self._flushed:
            flushed.result()
        return {name: self._found[name].result() for name in names}


def _flush(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())
