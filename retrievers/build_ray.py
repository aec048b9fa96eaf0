"""Cutting and embedding on Ray Data, on this machine or a cluster; reading, checking and writing stay with the build.

The build reads the corpus and hands batches of documents to a feed, an actor that Ray Data reads from; a pool of actors
cuts and embeds them (where there are GPUs, tasks on CPUs cut and actors with a GPU each embed); what comes back, in the
order of the corpus, is written by the build itself. So the index is that of the built-in engine.
"""

from __future__ import annotations

import logging
import os
import pickle
import socket
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import numpy as np

import mrag_eval
from mrag_eval.errors import ConfigError, CorpusError, MragError, missing_extra
from mrag_eval.retrievers import sparse_shard
from mrag_eval.retrievers._chunk_workers import Item, cut, item_batches
from mrag_eval.retrievers._embedder_spec import EmbedderSpec
from mrag_eval.retrievers._reading import Share
from mrag_eval.retrievers._windows import Made, made
from mrag_eval.retrievers.chunking import ChunkConfig, TokenCounter
from mrag_eval.retrievers.corpus import Document
from mrag_eval.retrievers.embedders import Embedder, load_embedder
from mrag_eval.retrievers.sparse_encoders import SparseEncoder, load_sparse_encoder
from mrag_eval.schema import Passage

# batches of documents that wait for Ray to take them
_WAITING = 16
# seconds until a cluster that does not answer counts as absent
_PATIENCE = 10.0
_RESUME = "give the same command again with --resume"
_COLUMNS = ("id", "doc_id", "lang", "title", "text")


@dataclass(frozen=True)
class RayEngine:
    """Where a build cuts and embeds.

    - ``address`` of a running cluster (``auto``: the one this machine belongs to); None starts Ray on this machine for
      the build, unless the process has done so, and stops it afterwards.
    - ``actors`` that embed; by default one a GPU, else one a CPU.
    - ``block_bytes`` of text make what an actor gets at a time, within which texts are sorted by length.
    """

    address: str | None = None
    actors: int | None = None
    block_bytes: int = 1 << 20

    def __post_init__(self) -> None:
        if self.actors is not None and self.actors < 1:
            raise ConfigError(f"actors is {self.actors}, it must be at least 1", "leave it out for the default")


@dataclass(frozen=True)
class Loading:
    """How an actor comes by its model: it loads what ``model`` specifies on its device, or takes the object itself."""

    model: EmbedderSpec | Embedder | SparseEncoder
    sparse: bool

    def load(self, device: str) -> Embedder | SparseEncoder:
        if not isinstance(self.model, EmbedderSpec):
            return self.model
        load: Callable[..., Embedder | SparseEncoder] = load_sparse_encoder if self.sparse else load_embedder
        return load(self.model, device=device)


class RayCluster:
    """A running Ray, and what of it a build takes."""

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
        """Name, revision, dimension and commit of a model, which is loaded where the actors will load it."""
        import ray

        with _said_by_ray():
            version, *found = ray.get(ray.remote(**self._of_an_actor)(_described).remote(loading, self.device))
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
        chunking: ChunkConfig,
        loading: Loading | None,
        batch_size: int,
        count: TokenCounter,
        share: Share,
    ) -> Iterator[Made]:
        """The passages of ``items`` with their vectors, in their order."""
        import ray
        from ray.data import ActorPoolStrategy, TaskPoolStrategy

        feed = ray.remote(num_cpus=0, max_restarts=0)(_Feed).remote(_WAITING)
        reader = _Reader(items, feed, share)
        with _context(self.block_bytes), _said_by_ray():
            fed = ray.data.read_datasource(_datasource(feed), override_num_blocks=1, num_cpus=0)
            cutter = _Cutter(chunking, count)
            whole: dict[str, Any] = {"batch_size": None, "batch_format": "pyarrow"}
            pool = ActorPoolStrategy(size=self.actors)
            if loading is None:
                out = fed.map_batches(cutter, compute=TaskPoolStrategy(self.actors), num_cpus=1, **whole)
            else:
                first = None if self.on_gpu else cutter
                if self.on_gpu:
                    fed = fed.map_batches(cutter, num_cpus=1, **whole)
                arguments = (loading, self.device, batch_size, first)
                out = fed.map_batches(
                    _Embedding, compute=pool, fn_constructor_args=arguments, **self._of_an_actor, **whole
                )
            reader.start()
            try:
                last = -1
                for table in out.iter_batches(batch_size=None, batch_format="pyarrow", prefetch_batches=2):
                    _raise_carried(table)
                    numbers = table["batch"].to_numpy()
                    if len(numbers) and (numbers[0] < last or (numbers[1:] < numbers[:-1]).any()):
                        raise CorpusError("Ray Data handed passages back out of order", _RESUME)
                    if len(numbers):
                        last = int(numbers[-1])
                        share.follow(reader.shares.get(last))
                        yield _from_table(table, loading)
            finally:
                reader.stop()
        reader.check()


@contextmanager
def ray_cluster(engine: RayEngine, device: str = "auto") -> Iterator[RayCluster]:
    """Ray, connected to or started on this machine, quiet.

    ``device``: ``auto`` takes GPUs if there are any. MissingExtraError without Ray; ConfigError where there is no
    cluster at the address, or it has fewer CPUs or GPUs than actors are asked for.
    """
    # before Ray's libraries are loaded, which read it then; Ray does not report to its makers what is run
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
    """ConfigError where nobody listens at an address: Ray itself would try for minutes."""
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
    """Nothing reaches standard error, not even from C++; what goes wrong is raised as well."""
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
    """Ray Data's settings while a pipeline is set up and run; as they were afterwards."""
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
    """Errors that Ray carries from its workers, as they were raised there; Ray's own as a CorpusError."""
    from ray.exceptions import RayError

    try:
        yield
    except RayError as error:
        ours = _ours_within(error)
        if ours is not None:
            raise ours from None
        lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
        raise CorpusError(f"Ray failed: {lines[-1]}", _RESUME) from error


def _ours_within(error: BaseException | None) -> MragError | None:
    while error is not None:
        if isinstance(error, MragError):
            return type(error)(error.message, error.next_step) if hasattr(error, "message") else error
        error = getattr(error, "cause", None) or error.__cause__
    return None


# ---------------------------------------------------------------- what feeds Ray


class _Feed:
    """An actor that holds the batches which wait to be taken, each until the next one is asked for.

    Batches are numbered. Ray reads again from the start where it lost a worker or a node; what is gone by then cannot
    be given a second time, and saying so ends the build: half a corpus must not look whole.
    """

    def __init__(self, most: int) -> None:
        import asyncio

        self._most = most
        self._held: dict[int, list[Any]] = {}
        self._next, self._first = 0, 0
        self._closed = False
        self._changed = asyncio.Condition()

    async def put(self, rows: list[Any]) -> int:
        """Add a batch, once there is room; its number."""
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
        """A batch, once it is there; None behind the last one."""
        if number < self._first:
            raise CorpusError("Ray lost a worker that read documents", _RESUME)
        async with self._changed:
            for taken in range(self._first, number):
                self._held.pop(taken, None)
            self._first = number
            self._changed.notify_all()
            await self._changed.wait_for(lambda: number in self._held or self._closed)
            return self._held.get(number)


class _Reader:
    """The thread of the build that fills the feed; an error of the corpus is kept for it."""

    def __init__(self, items: Iterable[Item], feed: Any, share: Share) -> None:
        self._items, self._feed, self._share = items, feed, share
        self._stopped = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.shares: dict[int, float | None] = {}

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Read no more; what waits is thrown away with the feed."""
        import ray

        self._stopped.set()
        ray.kill(self._feed)
        self._thread.join()

    def check(self) -> None:
        """Raise what ended the reading before the end of the corpus."""
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
        except BaseException as error:  # raised in the build's thread
            if not self._stopped.is_set():
                self._error = error
        finally:
            if not self._stopped.is_set():
                ray.get(self._feed.close.remote())


def _row(item: Item) -> tuple[bool, str, str, str, str, str]:
    is_document = isinstance(item, Document)
    doc_id = "" if isinstance(item, Document) else item.doc_id
    return is_document, item.id, doc_id, item.lang, item.title, item.text


def _datasource(feed: Any) -> Any:
    """The feed as Ray Data reads it: one task, whose blocks come one after the other."""
    import pyarrow as pa
    from ray.data import Datasource
    from ray.data.block import BlockMetadata
    from ray.data.datasource import ReadTask

    def read() -> Iterator[Any]:
        import ray

        number = 0
        while (rows := ray.get(feed.get.remote(number))) is not None:
            names = ("is_document", *_COLUMNS)
            columns = dict(zip(names, (list(column) for column in zip(*rows, strict=True)), strict=True))
            yield pa.table({"batch": pa.array([number] * len(rows), pa.int64()), **columns})
            number += 1

    class Fed(Datasource):
        def estimate_inmemory_data_size(self) -> int | None:
            return None

        def get_read_tasks(self, *_: Any, **__: Any) -> list[Any]:
            return [ReadTask(read, BlockMetadata(num_rows=None, size_bytes=None, exec_stats=None))]

    return Fed()


# ---------------------------------------------------------------- what runs on Ray


def _described(loading: Loading, device: str) -> tuple[str, str, str, int, str | None]:
    model = loading.load(device)
    return mrag_eval.__version__, model.name, model.revision, model.dim, getattr(model, "commit", None)


def _or_error(work: Callable[[Any], Any], table: Any) -> Any:
    """``work(table)``, or a table of one row that carries the error: Ray would hand on its text alone."""
    import pyarrow as pa

    try:
        return work(table)
    except Exception as error:  # whatever an embedder raises is raised again where the build is
        number = table["batch"][0].as_py() if len(table) else 0
        told = error if isinstance(error, MragError) else CorpusError(f"on Ray: {_named(error)}", _RESUME)
        return pa.table(
            {
                "batch": pa.array([number], pa.int64()),
                **{name: pa.array([""], pa.string()) for name in _COLUMNS},
                "vector": pa.array([b""], pa.binary()),
                "error": pa.array([pickle.dumps(told)], pa.binary()),
            }
        )


def _named(error: Exception) -> str:
    return f"{type(error).__name__}: {(str(error).splitlines() or ['no reason given'])[0]}"


def _raise_carried(table: Any) -> None:
    for carried in table["error"].drop_null().to_pylist():
        raise pickle.loads(carried)


class _Cutter:
    """Documents to passages, table to table."""

    def __init__(self, chunking: ChunkConfig, count: TokenCounter) -> None:
        self._chunking, self._count = chunking, count

    def __call__(self, table: Any) -> Any:
        return _or_error(self.cut, table)

    def cut(self, table: Any) -> Any:
        """Without vectors and without an error, whose columns are empty."""
        import pyarrow as pa

        numbers: list[int] = []
        passages: list[Passage] = []
        for row in table.to_pylist():
            lang, title, text = row["lang"], row["title"], row["text"]
            item: Item = Passage(id=row["id"], lang=lang, text=text, title=title, doc_id=row["doc_id"])
            if row["is_document"]:
                item = Document(id=row["id"], lang=lang, text=text, title=title)
            own = cut([item], self._chunking, self._count)
            passages += own
            numbers += [row["batch"]] * len(own)
        columns = {name: pa.array([getattr(p, name) for p in passages], pa.string()) for name in _COLUMNS}
        empty = {name: pa.nulls(len(passages), pa.binary()) for name in ("vector", "error")}
        return pa.table({"batch": pa.array(numbers, pa.int64()), **columns, **empty})


class _Embedding:
    """An actor: passages to passages with vectors, table to table; it cuts first where it is given documents."""

    def __init__(self, loading: Loading, device: str, batch_size: int, cutter: _Cutter | None) -> None:
        self._model, self._batch_size, self._cutter = loading.load(device), batch_size, cutter

    def __call__(self, table: Any) -> Any:
        if "error" in table.column_names and table["error"].null_count < len(table):
            return table
        return _or_error(self._embed, table)

    def _embed(self, table: Any) -> Any:
        import pyarrow as pa

        if self._cutter is not None:
            table = self._cutter.cut(table)
        passages = _passages(table)
        vectors: list[bytes] = []
        if passages:
            found = made(passages, self._model, self._batch_size)
            if found.vectors is not None:
                vectors = [vector.tobytes() for vector in found.vectors.astype("<f4", copy=False)]
            else:
                vectors = [b"".join(sparse_shard.encode([vector])) for vector in found.sparse or ()]
        return table.set_column(table.column_names.index("vector"), "vector", pa.array(vectors, pa.binary()))


def _passages(table: Any) -> list[Passage]:
    columns: Mapping[str, list[str]] = {name: table[name].to_pylist() for name in _COLUMNS}
    return [Passage(**dict(zip(_COLUMNS, fields, strict=True))) for fields in zip(*columns.values(), strict=True)]


def _from_table(table: Any, loading: Loading | None) -> Made:
    passages = _passages(table)
    if loading is None:
        return Made(passages)
    raw = table["vector"].to_pylist()
    if loading.sparse:
        return Made(passages, sparse=[sparse_shard.decode(one, 1)[0] for one in raw])
    return Made(passages, np.frombuffer(b"".join(raw), "<f4").reshape(len(passages), -1))
