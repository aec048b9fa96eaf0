"""Loading models of the hub or of a folder: the libraries, one error for all faults, and what identifies a model."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

from mrag_eval.platform import ConfigError, MragError, missing_extra, number_of, said_by, visible

_SMALL_FILE = 1 << 20
# The first release whose cross-encoders accept tokenizer settings per call, and whose sparse encoders are supported.
_OLDEST = 6
_NUMBER = re.compile(r"(?<=\.)\d+(?=\.)")
# Model types that look positions up in a table, and how many of its places are no token's.
_TABLES = {"bert": 0, "distilbert": 0, "electra": 0, "roberta": 2, "xlm-roberta": 2, "camembert": 2, "mpnet": 2}
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
    logger = logging.getLogger("transformers")
    level = logger.level
    # its table of missing weights, of which we tell
    logger.setLevel(logging.ERROR)
    try:
        yield
    except (MragError, MemoryError):
        raise
    except Exception as error:  # safetensors, pickle, tokenizers and torch have errors of their own
        told = isinstance(error, OSError | ValueError | RuntimeError | ImportError)
        reason = (str(error) if told else said_by(error)).strip().splitlines() or [type(error).__name__]
        raise ConfigError(f"{what} cannot be loaded: {visible(reason[0]):.300}", fix) from error
    finally:
        logger.setLevel(level)


def with_weights(kind: Any, place: str, what: str, **options: Any) -> Any:
    """Return a model that a class of transformers loads, with all of its weights.

    Raises ConfigError, naming the keys, for weights that are missing, of another size or of layers that its
    configuration does not have: these would be random numbers, or left out.
    """
    with loading(what):
        found, info = kind.from_pretrained(place, output_loading_info=True, ignore_mismatched_sizes=True, **options)
    _check_keys(found, info, what)
    return found.eval()


def check_modules(model: Any, what: str, revision: str | None = None) -> None:
    """Raise ConfigError, as :func:`with_weights` does, for a model of sentence-transformers, which does not tell.

    Its transformers are loaded once more, without their numbers.
    """
    from transformers import PreTrainedModel

    for module in model:
        inner = getattr(module, "auto_model", None)
        if not isinstance(inner, PreTrainedModel) or getattr(inner, "peft_config", None):
            continue
        # code of a repository may load its weights in its own way
        if type(inner).from_pretrained.__func__ is PreTrainedModel.from_pretrained.__func__:
            options = {"revision": commit_of(inner.config) or revision, "local_files_only": offline()}
            with loading(what):
                empty, info = type(inner).from_pretrained(
                    inner.name_or_path, output_loading_info=True, device_map="meta", **options
                )
            _check_keys(empty, info, what)


def _check_keys(model: Any, info: Mapping[str, Any], what: str) -> None:
    """Raise ConfigError for a model that has weights of no file, or lacks layers that the file has."""
    headless = "For" not in type(model).__name__
    # what reads the hidden states of a model without a head does not read its pooler
    missing = {key for key in info["missing_keys"] if not (headless and "pooler." in key)}
    missing |= {key if isinstance(key, str) else key[0] for key in info["mismatched_keys"]}
    own = {_NUMBER.sub("#", key) for key in model.state_dict()}
    layers = {key: _NUMBER.sub("#", key) for key in info["unexpected_keys"]}
    # the head of another task is not read, one more layer of the same kind is
    extra = {key for key, kind in layers.items() if "#" in kind and {kind, kind.partition(".")[2]} & own}
    for keys, fault in ((missing, "lacks, or holds in another size,"), (extra, "holds, beyond its configuration,")):
        if keys:
            named = f"{', '.join(sorted(keys)[:3])}{', ...' if len(keys) > 3 else ''}"
            raise ConfigError(
                f"{what} cannot be used: its file {fault} {number_of(len(keys), 'weight')} ({named})",
                "name a model that was trained for this, with all files of its folder",
            )


def check_length(what: str, asked: int | None, config: Mapping[str, Any]) -> None:
    """Raise ConfigError for more tokens than the positions that a model has by its ``config.json``."""
    spare = _TABLES.get(str(config.get("model_type")))
    if asked is None or spare is None or config.get("position_embedding_type", "absolute") != "absolute":
        return
    most = int(config.get("max_position_embeddings") or asked + spare) - spare
    if asked > most:
        what = f"{what}: max_tokens = {asked:,}, and the model reads {most:,} at most"
        raise ConfigError(what, f"set max_tokens to {most} or less, or leave it out")


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
