"""Corpora in which one language dominates: one language version of each document is kept (Cross-Lingual Cost, A.5)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from pydantic import Field

from mrag_eval.config import Block
from mrag_eval.core import base_language
from mrag_eval.platform import ConfigError, DataError


class Imbalance(Block):
    """Settings of the draw. ``keep_english`` is the probability of keeping a document's English version instead of
    another one.

    ``seed`` defaults to the block's.
    """

    keep_english: float = Field(ge=0, le=1)
    seed: int | None = Field(default=None, ge=0)


def kept_versions(names: Sequence[str], versions: Sequence[Sequence[str]], block: Imbalance, seed: int) -> list[str]:
    """Return the language of each kept document version; ``versions`` (aligned with ``names``) are the available
    languages.

    ``rng = numpy.random.default_rng(seed)``; ``u = rng.random(N)`` and ``v = rng.random(N)``, in the documents' order.
    The version is English if ``u < keep_english``, else number ``int(v * n)`` of the n other languages, sorted by code.
    So a document that is English at one probability is English at every higher one, and corpora differ by no more than
    they must.

    Raises DataError for a document without an English version or without another one.
    """
    import numpy as np

    rng = np.random.default_rng(seed if block.seed is None else block.seed)
    u, v = rng.random(len(names)), rng.random(len(names))
    kept = []
    for name, languages, first, second in zip(names, versions, u, v, strict=True):
        english = [code for code in languages if base_language(code) == "en"]
        others = sorted(code for code in languages if base_language(code) != "en")
        if not english or not others:
            raise DataError(
                f"imbalance: document '{name}' exists only in {', '.join(languages)}; it must exist in English "
                "and in another language, of which one is kept",
                "leave out data.imbalance, or give each document both versions",
            )
        kept.append(english[0] if first < block.keep_english else others[int(second * len(others))])
    return kept


def imbalance_note(kept: Sequence[str], block: Imbalance) -> str:
    """Return a log line with the outcome of the draw."""
    counts = ", ".join(f"{n} {code}" for code, n in sorted(Counter(kept).items()))
    return f"{len(kept)} documents, in English with probability {block.keep_english:g}: {counts}"


def refuse_imbalance(benchmark: str) -> ConfigError:
    """Return the error for a benchmark without documents, or with one version of each."""
    return ConfigError(
        f"data (benchmark '{benchmark}'): imbalance keeps one of several language versions of each document, and this "
        "benchmark has one version of each, or no documents",
        "leave out data.imbalance, or use xquad, jsonl or xlcost where versions of a document share a 'parallel_id'",
    )
