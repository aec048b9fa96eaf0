"""The place of corpora on this machine, and the commands that build them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mrag_eval.core import CORAL_POOL, cache_dir

# A sample of a corpus of Wikipedia that a laptop builds, for tasks that search no other languages than its own.
_SMALL = {CORAL_POOL: "mrag-eval corpus wikipedia --preset coral-small"}


def corpora_folder() -> Path:
    """Return the folder in which ``mrag-eval corpus`` builds, and in which corpora are found by folder name."""
    return cache_dir() / "corpora"


def how_to_build(corpus: str, languages: Sequence[str] = ()) -> str:
    """Return the command that builds a corpus, with all the ``languages`` that tasks search in it."""
    if corpus == "wikipedia":
        whole = set(languages) == set(CORAL_POOL)
        return "mrag-eval corpus wikipedia " + ("--preset coral" if whole else f"--langs {_codes(languages)}")
    if corpus == "bordirlines":
        return "mrag-eval corpus bordirlines"
    if corpus == "wikipedia_splade":
        return (
            "mrag-eval corpus kilt --from kilt_knowledgesource.json --name wikipedia_splade --kind sparse "
            "--embedder naver/splade-v3   (see docs/mrag.md)"
        )
    return f"mrag-eval index build DOCUMENTS {corpus if '/' in corpus else corpora_folder() / corpus}"


def how_to_add(corpus: str, languages: Sequence[str]) -> str:
    """Return the command that adds languages to a corpus."""
    if corpus == "wikipedia":
        return f"mrag-eval corpus wikipedia --langs {_codes(languages)} --add"
    return f"mrag-eval index build   again, with documents in {_codes(languages)}"


def small_corpus(corpus: str, languages: Sequence[str]) -> str | None:
    """Return the command for a small corpus of these languages; None where there is no such preset."""
    if corpus != "wikipedia" or not languages:
        return None
    return next((command for pool, command in _SMALL.items() if {*languages} <= {*pool}), None)


def _codes(languages: Sequence[str]) -> str:
    return ",".join(languages) or "en,ko"
