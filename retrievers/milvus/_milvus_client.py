"""The connection to Milvus: a local file (``milvus-lite``) or a server, with the same calls."""

from __future__ import annotations

import logging
import os
import re
import time
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from mrag_eval.platform import ConfigError, CorpusError, keep_address, keep_pair, missing_extra, write_whole

# A child of the harness's logger, so that the harness shows these lines like its own.
log = logging.getLogger(f"lm_eval.{__name__}")

TOKEN_ENV = "MILVUS_TOKEN"
PATIENCE = 120.0
# seconds before the first retry, doubled each time, and their maximum
_FIRST_PAUSE, _LONGEST_PAUSE = 0.25, 8.0
_CONNECT = 10.0
# Calls have a time limit, so no pings are needed; small servers disconnect clients that ping often.
_GRPC = {"grpc.keepalive_time_ms": 600_000, "grpc.keepalive_permit_without_calls": False}
_SERVER = re.compile(r"(?:https?|tcp)://", re.IGNORECASE)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,199}")
# errors of a server that is not reachable
_GONE = re.compile(
    r"UNAVAILABLE|DEADLINE_EXCEEDED|CANCELLED|Fail connecting|Retry timeout|Retry run out|closed channel", re.IGNORECASE
)
_AGAIN = "start it and give the same command again; finished work is kept"

_RELEASED = re.compile(r"'released'|not.{0,3}loaded", re.IGNORECASE)


def is_server(uri: str) -> bool:
    """Return whether ``uri`` names a server; otherwise it is a local file."""
    return _SERVER.match(uri) is not None


def checked_uri(uri: str) -> str:
    """Return ``uri`` with an absolute path for a local file.

    Raises ConfigError for one that is neither a server nor a file ending in ``.db``, and for
    one with a password, which would be written wherever the setting is.
    """
    if is_server(keep_address(uri)):
        if "@" in uri:
            raise ConfigError(
                "a Milvus uri must not contain a user or a password",
                f"put USER:PASSWORD (or a token) into the environment: export {TOKEN_ENV}=...",
            )
        return uri
    if not uri.endswith(".db") or "://" in uri:
        raise ConfigError(
            f"'{uri}' is not a Milvus uri", "name a server (http://HOST:19530), or a local file that ends in .db"
        )
    return str(Path(uri).expanduser().resolve())


def checked_name(collection: str) -> str:
    """Return ``collection``; raise ConfigError if it is not a valid name in Milvus."""
    if not _NAME.fullmatch(collection):
        raise ConfigError(f"'{collection}' cannot name a Milvus collection", "letters, digits and _, no digit first")
    return collection


class Connection:
    """Calls to one Milvus, retried for ``patience`` seconds before a CorpusError is raised.

    Retries have growing pauses and are logged once. The token is read from the environment variable ``token_env`` and
    stored nowhere.
    """

    def __init__(self, uri: str, *, token_env: str = TOKEN_ENV, patience: float = PATIENCE) -> None:
        self.uri, self.patience, self._token_env = uri, patience, token_env
        self._connect()

    def _connect(self) -> None:
        token = os.environ.get(self._token_env, "")
        keep_pair(token, f"Milvus at {self.uri}: the environment variable {self._token_env}")
        self._client = _connected(self.uri, token, self._token_env)

    def call(self, name: str, /, *args: Any, **kwargs: Any) -> Any:
        """Call ``MilvusClient.<name>``."""
        import grpc
        from pymilvus.exceptions import MilvusException

        started = time.monotonic()
        pause, loaded = _FIRST_PAUSE, False
        while True:
            left = self.patience - (time.monotonic() - started)
            try:
                return getattr(self._client, name)(*args, timeout=max(left, 1.0), **kwargs)
            except (MilvusException, grpc.RpcError, ValueError) as error:
                said = _one_line(error)
                if _RELEASED.search(said) and not loaded:  # the server was restarted
                    loaded = True
                    self.call("load_collection", args[0])
                    continue
                if not _GONE.search(f"{said} {getattr(error, 'code', '')}"):
                    raise CorpusError(
                        f"Milvus at {self.uri} refuses '{name}': {said}",
                        "check the address, the token and the log of Milvus",
                    ) from None
                left = self.patience - (time.monotonic() - started)
                if left <= pause:
                    raise CorpusError(
                        f"Milvus at {self.uri} did not answer within {self.patience:g} s ({name})", _AGAIN
                    ) from None
                if pause == _FIRST_PAUSE:
                    log.warning("Milvus at %s does not answer (%s): retrying for %.0f s", self.uri, name, left)
            if not is_server(self.uri):  # the process that served the file has ended: this one may open it now
                with suppress(CorpusError):
                    self._connect()
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    def create(self, collection: str, schema: Any, indexes: Any, **options: Any) -> None:
        """Create an empty collection, not loaded, whose indexes grow with its rows."""
        self.call("create_collection", collection, schema=schema, consistency_level="Strong", **options)
        # waiting for an empty index would take half a second each
        self.call("create_index", collection, indexes, sync=False)


def _connected(uri: str, token: str, token_env: str) -> Any:
    try:
        from pymilvus import MilvusClient
        from pymilvus.exceptions import MilvusException
    except ImportError:
        raise missing_extra("milvus", "pymilvus") from None
    _quiet()
    address = uri if is_server(uri) else serving_address(uri)
    try:
        return MilvusClient(address, token=token, timeout=_CONNECT, grpc_options=_GRPC)
    except (MilvusException, OSError) as error:
        if not is_server(uri):
            raise unopened(uri) from None
        said = _one_line(error)
        if re.search("auth|permission|token|password", said, re.IGNORECASE):
            raise CorpusError(f"Milvus at {uri} denies access", f"check the token: export {token_env}=...") from None
        raise CorpusError(f"Milvus at {uri} does not answer: {said}", _AGAIN) from None


@lru_cache(maxsize=1)
def _quiet() -> None:
    """Silence the libraries' loggers, which log every failed call with a traceback."""
    for name in ("pymilvus", "milvus_lite", "milvus_lite.server_manager"):
        logging.getLogger(name).setLevel(logging.CRITICAL)


def _one_line(error: Exception) -> str:
    return " ".join(str(getattr(error, "message", None) or error).split())[:300]


def serving_address(path: str) -> str:
    """Return the address at which the Milvus file ``path`` is served, by this process or the one that has it open.

    Raises CorpusError for a file that another program has open or that is not a Milvus database, and MissingExtraError
    if milvus-lite is not installed.
    """
    try:
        from milvus_lite.server_manager import server_manager_instance
    except ImportError:
        raise missing_extra("milvus", "milvus-lite") from None
    said = Path(f"{path}.serving")
    try:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        address: str | None = server_manager_instance.start_and_get_uri(path)
        if address is None:
            return said.read_text(encoding="utf-8").strip()
        write_whole(said, f"{address}\n")
    except OSError:
        raise unopened(path) from None
    return address


def unopened(path: str) -> CorpusError:
    """Return the error for a file that this process cannot open and no other one serves."""
    return CorpusError(
        f"{path} cannot be opened: another program has it open, or it is not a Milvus database",
        f"end that program, or serve the file to both: milvus-lite server --data-dir {path} --port 19530",
    )
