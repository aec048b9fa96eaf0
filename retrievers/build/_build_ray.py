"""Cutting and embedding on Ray Data, on this machine or a cluster.

The build reads the corpus and sends batches of documents to a feed, an actor that Ray Data reads from. A pool of actors
cuts and embeds them; with GPUs, CPU tasks cut and actors with one GPU each embed. The build itself writes the results
in the order of the corpus, so the index equals that of the built-in engine.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import mrag_eval
from mrag_eval.platform import ConfigError, CorpusError, MragError, missing_extra
from mrag_eval.retrievers.build._chunk_workers import Item, item_batches
from mrag_eval.retrievers.build._ray_work import (
    COLUMNS,
    RESUME,
    Cutter,
    Embedding,
    Loading,
    described,
    from_table,
    raise_carried,
)
from mrag_eval.retrievers.build._settings import BuildSettings, RayEngine
from mrag_eval.retrievers.build._windows import Made
from mrag_eval.retrievers.corpora._corpus import Document
from mrag_eval.retrievers.corpora._reading import Share

# batches of documents waiting for Ray
_WAITING = 16
# seconds to wait for an answer of a cluster
_PATIENCE = 10.0


class RayCluster:
    """A running Ray cluster and the resources a build uses."""

    def __init__(self, engine: RayEngine, device: str) -> None:
        import ray

        resources = ray.cluster_resources()
        cpus, gpus = int(resources.get("CPU", 0)), int(resources.get("GPU", 0))
        self.block_bytes = engine.block_bytes
        self.on_gpu = gpus > 0 if device == "auto" else device.startswith("cuda")
        if self.on_gpu and not gpus:
            raise ConfigError(f"device is {device}, but Ray has no GPU", "leave --device out, or start Ray with GPUs")
        self.device = "cuda" if self.on_gpu else "cpu"
        most, what = (gpus, "GPUs") if self.on_gpu else (cpus, "CPUs")
        self.actors = engine.actors or max(1, most)
        if self.actors > most:
            raise ConfigError(f"actors is {self.actors}, but Ray has {most} {what}", f"--actors {most}, or add nodes")

    @property
    def _of_an_actor(self) -> dict[str, float]:
        # an actor with a GPU leaves the CPUs to the tasks that cut
        return {"num_gpus": 1, "num_cpus": 0} if self.on_gpu else {"num_cpus": 1}

    def described(self, loading: Loading) -> tuple[str, str, int, str | None]:
        """Return name, revision, dimension and commit of a model, loaded on a node of the actors."""
        import ray

        with _said_by_ray():
            version, *found = ray.get(ray.remote(**self._of_an_actor)(described).remote(loading, self.device))
        if version != mrag_eval.__version__:
            raise ConfigError(
                f"Ray's nodes have mrag-eval {version}, this machine has {mrag_eval.__version__}",
                "install the same version on all of them",
            )
        name, revision, dim, commit = found
        return name, revision, dim, commit

    def made(
        self,
        items: Iterable[Item],
        settings: BuildSettings,
        loading: Loading | None,
        share: Share,
    ) -> Iterator[Made]:
        """Yield the passages of ``items`` with their vectors, in order."""
        import ray
        from ray.data import ActorPoolStrategy, TaskPoolStrategy

        # the stream lives as long as the build: on its own node, so that another can be lost
        here = {"ray.io/node-id": ray.get_runtime_context().get_node_id()}
        feed = ray.remote(num_cpus=0, max_restarts=0, label_selector=here)(Feed).remote(_WAITING)
        reader = Reader(items, feed, share)
        with _context(self.block_bytes), _said_by_ray():
            fed = ray.data.read_datasource(datasource(feed), override_num_blocks=1, num_cpus=0, label_selector=here)
            cutter = Cutter(settings.chunking, settings.token_counter)
            whole: dict[str, Any] = {"batch_size": None, "batch_format": "pyarrow"}
            pool = ActorPoolStrategy(size=self.actors)
            if loading is None:
                out = fed.map_batches(cutter, compute=TaskPoolStrategy(self.actors), num_cpus=1, **whole)
            else:
                first = None if self.on_gpu else cutter
                if self.on_gpu:
                    fed = fed.map_batches(cutter, num_cpus=1, **whole)
                arguments = (loading, self.device, settings.batch_size, first)
                out = fed.map_batches(
                    Embedding, compute=pool, fn_constructor_args=arguments, **self._of_an_actor, **whole
                )
            reader.start()
            try:
                last = -1
                for table in out.iter_batches(batch_size=None, batch_format="pyarrow", prefetch_batches=2):
                    raise_carried(table)
                    numbers = table["batch"].to_numpy()
                    if len(numbers) and (numbers[0] < last or (numbers[1:] < numbers[:-1]).any()):
                        raise CorpusError("Ray Data returned passages out of order", RESUME)
                    if len(numbers):
                        last = int(numbers[-1])
                        share.follow(reader.shares.get(last))
                        yield from_table(table, loading)
            finally:
                reader.stop()
        reader.check()


@contextmanager
def ray_cluster(engine: RayEngine, device: str = "auto") -> Iterator[RayCluster]:
    """Connect to Ray, or start it on this machine, without its log output.

    ``device``: ``auto`` uses GPUs if there are any. Raises MissingExtraError without Ray, ConfigError if there is no
    cluster at the address or it has fewer CPUs or GPUs than actors.
    """
    # Ray's libraries read these on import; usage reports to Ray's makers are off
    quiet = {"RAY_BACKEND_LOG_LEVEL": "fatal", "RAY_USAGE_STATS_ENABLED": "0", "RAY_DEDUP_LOGS": "1"}
    quiet["RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"] = "0"
    for name, value in quiet.items():
        os.environ.setdefault(name, value)
    try:
        import ray
        import ray.data
    except ImportError:
        raise missing_extra("ray", "ray") from None
    ours = not ray.is_initialized()
    if ours:
        _check_address(engine.address)
        options: dict[str, Any] = {"logging_level": logging.ERROR, "log_to_driver": False}
        if engine.address is None:
            cpus = max(os.cpu_count() or 1, engine.actors or 1)
            options |= {"num_cpus": cpus, "include_dashboard": False}
        try:
            with _standard_error_closed():
                ray.init(address=engine.address or "local", **options)
        except (ConnectionError, RuntimeError, ValueError, OSError) as error:
            reason = (str(error).splitlines() or [type(error).__name__])[0]
            where = "on this machine" if engine.address is None else f"at {engine.address}"
            raise ConfigError(
                f"no Ray {where}: {reason}", "start one (ray start --head), name it with --address, or leave it out"
            ) from None
    try:
        yield RayCluster(engine, device)
    finally:
        if ours:
            ray.shutdown()


def _check_address(address: str | None) -> None:
    """Raise ConfigError if nothing listens at an address; Ray itself would try for minutes."""
    if address is None or address == "auto":
        return
    parts = urlsplit(f"//{address}")
    if "://" in address or not parts.hostname or parts.port is None:
        raise ConfigError(
            f"address is '{address}', expected auto or HOST:PORT",
            "run the build on a node of the cluster: --address auto",
        )
    try:
        socket.create_connection((parts.hostname, parts.port), timeout=_PATIENCE).close()
    except OSError as error:
        raise ConfigError(
            f"no Ray at {address}: {error.strerror or error}", "start one there: ray start --head --port 6379"
        ) from None


@contextmanager
def _standard_error_closed() -> Iterator[None]:
    """Silence standard error, C++ code included; errors are raised as well."""
    kept = os.dup(2)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


@contextmanager
def _context(block_bytes: int) -> Iterator[None]:
    """Set Ray Data's options for a pipeline and restore them afterwards."""
    from ray.data import DataContext

    context = DataContext.get_current()
    before = (context.target_max_block_size, context.execution_options.preserve_order, context.enable_progress_bars)
    context.target_max_block_size = block_bytes
    context.execution_options.preserve_order = True
    context.enable_progress_bars = False
    loggers = [logging.getLogger(name) for name in ("ray", "ray.data")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", module=r"ray\..*")
            yield
    finally:
        context.target_max_block_size, context.execution_options.preserve_order = before[0], before[1]
        context.enable_progress_bars = before[2]
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


@contextmanager
def _said_by_ray() -> Iterator[None]:
    """Raise our errors from workers unchanged, and Ray's own as CorpusError."""
    from ray.exceptions import RayError

    try:
        yield
    except RayError as error:
        ours = _ours_within(error)
        if ours is not None:
            raise ours from None
        lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
        raise CorpusError(f"Ray failed: {lines[-1]}", RESUME) from error


def _ours_within(error: BaseException | None) -> MragError | None:
    """Return our error that Ray's is about; Ray's own may be of both types, and hold ours as its cause."""
    from ray.exceptions import RayError

    while error is not None:
        if isinstance(error, MragError) and not isinstance(error, RayError):
            return error
        error = getattr(error, "cause", None) or error.__cause__
    return None


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
