"""The actor that Ray Data reads a corpus from, filled by a thread of the build in numbered batches."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from typing import Any

from mrag_eval.platform import CorpusError
from mrag_eval.retrievers.build._chunk_workers import Item, item_batches
from mrag_eval.retrievers.build._ray_work import COLUMNS, RESUME
from mrag_eval.retrievers.corpora._corpus import Document
from mrag_eval.retrievers.corpora._reading import Share


class Feed:
    """Actor that holds each batch until the next one is requested.

    After losing a worker or a node, Ray reads again from the start. Batches dropped by then cannot be sent again, so
    the build ends with an error: half a corpus must not look complete.
    """

    def __init__(self, most: int) -> None:
        import asyncio

        self._most = most
        self._held: dict[int, list[Any]] = {}
        self._next, self._first = 0, 0
        self._closed = False
        self._changed = asyncio.Condition()

    async def put(self, rows: list[Any]) -> int:
        """Add a batch once there is room, and return its number."""
        async with self._changed:
            await self._changed.wait_for(lambda: len(self._held) < self._most)
            number = self._next
            self._held[number] = rows
            self._next += 1
            self._changed.notify_all()
            return number

    async def close(self) -> None:
        async with self._changed:
            self._closed = True
            self._changed.notify_all()

    async def get(self, number: int) -> list[Any] | None:
        """Return a batch once it has arrived, or None after the last one."""
        if number < self._first:
            raise CorpusError("Ray lost a worker that read documents", RESUME)
        async with self._changed:
            for taken in range(self._first, number):
                self._held.pop(taken, None)
            self._first = number
            self._changed.notify_all()
            await self._changed.wait_for(lambda: number in self._held or self._closed)
            return self._held.get(number)


class Reader:
    """The thread that fills the feed; it keeps an error of the corpus for the build."""

    def __init__(self, items: Iterable[Item], feed: Any, share: Share) -> None:
        self._items, self._feed, self._share = items, feed, share
        self._stopped = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.shares: dict[int, float | None] = {}

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Stop reading and discard waiting batches."""
        import ray

        self._stopped.set()
        ray.kill(self._feed)
        self._thread.join()

    def check(self) -> None:
        """Raise the error that stopped reading, if any."""
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        import ray

        try:
            for batch in item_batches(self._items):
                if self._stopped.is_set():
                    return
                read = self._share.read()
                number = ray.get(self._feed.put.remote([_row(item) for item in batch]))
                self.shares[number] = read
        except BaseException as error:  # raised again in the build's thread
            if not self._stopped.is_set():
                self._error = error
        finally:
            if not self._stopped.is_set():
                ray.get(self._feed.close.remote())


def _row(item: Item) -> tuple[bool, str, str, str, str, str]:
    is_document = isinstance(item, Document)
    doc_id = "" if isinstance(item, Document) else item.doc_id
    return is_document, item.id, doc_id, item.lang, item.title, item.text


def datasource(feed: Any) -> Any:
    """Return the feed as a Ray datasource: one task that yields its blocks in order."""
    import pyarrow as pa
    from ray.data import Datasource
    from ray.data.block import BlockMetadata
    from ray.data.datasource import ReadTask

    def read() -> Iterator[Any]:
        import ray

        number = 0
        while (rows := ray.get(feed.get.remote(number))) is not None:
            names = ("is_document", *COLUMNS)
            columns = dict(zip(names, (list(column) for column in zip(*rows, strict=True)), strict=True))
            yield pa.table({"batch": pa.array([number] * len(rows), pa.int64()), **columns})
            number += 1

    class Fed(Datasource):
        def estimate_inmemory_data_size(self) -> int | None:
            return None

        def get_read_tasks(self, *_: Any, **__: Any) -> list[Any]:
            return [ReadTask(read, BlockMetadata(num_rows=None, size_bytes=None, exec_stats=None))]

    return Fed()
