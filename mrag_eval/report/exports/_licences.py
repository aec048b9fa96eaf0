"""Whose text may be passed on: the licence of every benchmark's questions, references and passages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Source:
    """A benchmark's data: its name, its dataset on the hub, its licence, and whether that lets the texts be passed on.

    ``licence`` None: none is stated, or it is not known.
    """

    name: str
    hub: str | None
    licence: str | None
    shareable: bool


# As stated by the sources (README, Licences). Without a stated licence, or under a non-commercial one, texts stay.
_SOURCES: Mapping[str, Source] = {
    "xquad": Source("XQuAD", "google/xquad", "CC BY-SA 4.0", True),
    "blend": Source("BLEnD", "nayeon212/BLEnD", "CC BY-SA 4.0", True),
    "blend_saq": Source("BLEnD", "nayeon212/BLEnD", "CC BY-SA 4.0", True),
    "click": Source("CLIcK", "EunsuKim/CLIcK", None, False),
    "xrag": Source("XRAG", "AmazonScience/XRAG", "CC BY-NC 4.0", False),
    "mkqa": Source("MKQA", "apple/mkqa", "CC BY-SA 3.0", True),
    "xor_tydi": Source("XOR-TyDi QA", None, None, False),
    "tydiqa": Source("TyDi QA", "google-research-datasets/tydiqa", None, False),
    "xlcost": Source("The Cross-Lingual Cost", None, "CC BY 4.0", True),
    "bordirlines": Source("BordIRlines", "borderlines/bordirlines", "MIT", True),
    "demo": Source("mrag-eval demo", None, "Apache-2.0", True),
}
# Values of ``data.domain`` that stand for a file of the reader's own.
_OWN = "own"
# Passages that belong to the benchmark itself; those of any other corpus have a licence of their own.
_BENCHMARK_PASSAGES = ("benchmark", "published")


def source_of(config: Mapping[str, Any]) -> Source:
    """The source of a task's rows; a file of one's own is under an unknown licence."""
    data = config.get("data") or {}
    name = str(data.get("benchmark", config.get("task", "unknown")))
    if name in _SOURCES and data.get("domain") != _OWN:
        return _SOURCES[name]
    return Source(name, None, None, False)


def passages_shareable(config: Mapping[str, Any]) -> bool:
    """Whether the passages in a task's prompts may be passed on: those of the benchmark, under its licence."""
    retrieval = config.get("retrieval") or {}
    searched = retrieval.get("mode") not in ("no_ir", "given")
    own = not searched or retrieval.get("corpus") in _BENCHMARK_PASSAGES
    return source_of(config).shareable and own
