"""Cutting and embedding on Ray Data, on this machine or a cluster.

The build reads the corpus and sends batches of documents to a feed, an actor that Ray Data reads from. A pool of actors
cuts and embeds them; with GPUs, CPU tasks cut and actors with one GPU each embed. The build itself writes the results
in the order of the corpus, so the index equals that of the built-in engine.
"""

from __future__ import annotations

import logging
import os
import socket
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import mrag_eval
from mrag_eval.platform import ConfigError, CorpusError, MragError, missing_extra
from mrag_eval.retrievers.build._chunk_workers import Item
from mrag_eval.retrievers.build._ray_feed import Feed, Reader, datasource
from mrag_eval.retrievers.build._ray_work import (
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
