"""Loading models of the hub or of a folder: the libraries, one error for all faults, and what identifies a model."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

from mrag_eval.platform import ConfigError, missing_extra

_SMALL_FILE = 1 << 20
# The first release whose cross-encoders accept tokenizer settings per call, and whose sparse encoders are supported.
_OLDEST = 6
_LOOK_AT = "check the name and the network, or give the path of a downloaded model"


def model_class(name: str) -> Any:
    """Return a class of sentence-transformers; raise MissingExtraError if the library is missing or too old."""
    try:
        import sentence_transformers
    except ImportError:
        raise missing_extra("rerank", "sentence-transformers") from None
    if int(sentence_transformers.__version__.split(".")[0]) < _OLDEST:
        raise missing_extra("rerank", f"sentence-transformers>={_OLDEST}")
    return getattr(sentence_transformers, name)


def transformers() -> Any:
    """Return the library transformers; raise MissingExtraError if it or torch is missing."""
    try:
        import torch  # noqa: F401
        import transformers
    except ImportError as error:
        raise missing_extra("rerank", error.name or "transformers") from None
    return transformers


@contextmanager
def loading(what: str, fix: str = _LOOK_AT) -> Iterator[None]:
    """Raise ConfigError, naming the model (``reranker x``), for whatever a library raises that cannot load it."""
    try:
        yield
    except (OSError, ValueError, RuntimeError, ImportError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise ConfigError(f"{what} cannot be loaded: {reason}", fix) from error


def offline() -> bool:
    """Return whether models are only looked for on this machine."""
    return os.environ.get("HF_HUB_OFFLINE", "").lower() in ("1", "true", "yes", "on")


def commit_of(config: Any) -> str | None:
    """Return the commit that a model was loaded from, by its configuration; None for a folder."""
    commit = getattr(config, "_commit_hash", None)
    return str(commit) if commit else None


def with_settings(identity: str, settings: Any) -> str:
    """Return a model's identity with a hash of all settings that change what it gives."""
    return f"{identity}/{hashlib.sha256(json.dumps(settings).encode()).hexdigest()[:8]}"


def files_hash(folder: Path) -> str:
    """Return a hash of names and sizes of a model's files and the content of small ones; weights count by size only."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.name.startswith("."):
            size = path.stat().st_size
            digest.update(f"{path.relative_to(folder).as_posix()}\0{size}\0".encode())
            if size <= _SMALL_FILE:
                digest.update(path.read_bytes())
    return f"files-{digest.hexdigest()[:16]}"


def folder_identity(folder: Path) -> str:
    """Return a hash of the files (weights by size) and of the weights' modification times."""
    times = sorted(path.stat().st_mtime_ns for path in chain(folder.glob("*.safetensors"), folder.glob("*.bin")))
    return f"{files_hash(folder)}-{hashlib.sha256(json.dumps(times).encode()).hexdigest()[:8]}"
