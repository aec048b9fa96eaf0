"""The place of corpora on this machine, and the commands that build them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from mrag_eval import retrievers
from mrag_eval.core import CORAL_POOL
from mrag_eval.platform import cache_dir


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
            "--embedder naver/splade-v3   (see docs/papers.md)"
        )
    return f"mrag-eval index build DOCUMENTS {corpus if '/' in corpus else corpora_folder() / corpus}"


def how_to_add(corpus: str, languages: Sequence[str]) -> str:
    """Return the command that adds languages to a corpus."""
    if corpus == "wikipedia":
        return f"mrag-eval corpus wikipedia --langs {_codes(languages)} --add"
    if corpus in retrievers.starters() and {*languages} <= retrievers.starters()[corpus].passages.keys():
        return f"mrag-eval corpus wikipedia --preset {corpus} --langs {_codes(languages)} --add"
    return f"mrag-eval index build DOCUMENTS INDEX --add   (documents in {_codes(languages)})"


def small_corpus(corpus: str, languages: Sequence[str], there: Collection[str]) -> str | None:
    """Return the line for a part of a corpus in these languages, one that is ``there`` or to be built; or None."""
    fitting = [name for name, starter in retrievers.starters().items() if {*languages} <= starter.passages.keys()]
    if corpus != "wikipedia" or not fitting:
        return None
    built = next((name for name in fitting if name in there), None)
    if built is not None:
        return f"--metadata retrieval.corpus={built}   (a part of it, which you have)"
    name = fitting[0]
    return (
        f"mrag-eval corpus wikipedia --preset {name}   (a part of it that a laptop builds: docs/corpora.md; "
        f"then --metadata retrieval.corpus={name})"
    )


def _codes(languages: Sequence[str]) -> str:
    return ",".join(languages) or "en,ko"
