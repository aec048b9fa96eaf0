"""The trust boundary: what a file from elsewhere may name, and what only the user's own configuration may say.

Manifests of indexes, run folders and result files are data: they may name a model, its revision, its dimensions and its
prompts. What runs code, which host is asked and which key it is sent are the user's to say, on the command line, in a
task's YAML or in the config file (docs/provenance.md).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from mrag_eval.platform._files import regular

# Settings of a model that change its output and nothing else.
NAMED = frozenset({"model", "kind", "revision", "instruction", "query_prefix", "passage_prefix", "query_task",
                   "passage_task", "pooling", "normalize", "max_tokens", "dimensions"})  # fmt: skip
# Settings that run code, name a host, name a key or are sent along with one.
USERS_ALONE = frozenset({"api_key", "api_key_env", "base_url", "function", "header", "headers", "host", "proxy",
                         "retriever", "token_env", "trust_remote_code", "uri", "url"})  # fmt: skip
_LANGUAGE = re.compile(r"[A-Za-z0-9]+(?:-[A-Za-z0-9]+)*")


def users_alone(settings: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the dotted keys, with their values, in nested settings that only the user's configuration may say."""
    if isinstance(settings, Mapping):
        for key, value in settings.items():
            where = f"{path}.{key}" if path else str(key)
            # keys may be dotted themselves: retrieval.rerank.url
            if str(key).rpartition(".")[2] in USERS_ALONE:
                if value:
                    yield where, value
            else:
                yield from users_alone(value, where)
    elif isinstance(settings, list | tuple):
        for number, value in enumerate(settings):
            yield from users_alone(value, f"{path}[{number}]")


def is_local(model: str) -> bool:
    """Return whether a model's name is a path, or would be read as one here: code in such a folder may be run."""
    return model.startswith(("/", "~", ".")) or "\\" in model or os.path.exists(model)


def path_fault(folder: Path, name: Any) -> str | None:
    """Return why a file that something in ``folder`` names is not to be opened; None for one inside the folder."""
    if fault := name_fault(name):
        return fault
    if leads_out(folder, folder / name):
        return "is a link out of the folder"
    try:
        regular(folder / name)
    except OSError as error:
        return f"is {error.strerror}"
    return None


def name_fault(name: Any) -> str | None:
    """Return why a name is not that of a file inside the folder that names it, wherever that folder is; else None."""
    if not isinstance(name, str) or not name:
        return "is not the name of a file"
    if any(ord(character) < 32 for character in name) or "\\" in name:
        return "holds a character that no file of ours has in its name"
    parts = PurePosixPath(name).parts
    if name.startswith("/") or ".." in parts:
        return "is outside of the folder"
    if not parts:
        return "is the folder itself"
    return None


def leads_out(folder: Path, path: Path) -> bool:
    """Return whether a path below ``folder`` leads out of it through a link."""
    return not path.resolve().is_relative_to(folder.resolve())


def links_out(folder: Path) -> Iterator[Path]:
    """Yield the links below ``folder`` that lead out of it."""
    yield from (path for path in sorted(folder.rglob("*")) if path.is_symlink() and leads_out(folder, path))


def is_plain_language(code: Any) -> bool:
    """Return whether a language code can be part of a file's name."""
    return isinstance(code, str) and _LANGUAGE.fullmatch(code) is not None
