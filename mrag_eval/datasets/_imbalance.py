"""Corpora in which one language dominates: of each document one language version is kept (Cross-Lingual Cost, A.5)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from mrag_eval.core import ConfigError, DataError, base_language


class Imbalance(BaseModel):
    """``keep_english`` is the probability with which a document's English version is kept, else another one of its
    versions is; ``seed`` draws (default: the block's).
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    keep_english: float = Field(ge=0, le=1)
    seed: int | None = Field(default=None, ge=0)


def kept_versions(names: Sequence[str], versions: Sequence[Sequence[str]], block: Imbalance, seed: int) -> list[str]:
    """The language that each document is kept in; ``versions`` (aligned with ``names``) are those it is there in.

    ``rng = numpy.random.default_rng(seed)``; ``u = rng.random(N)`` and ``v = rng.random(N)``, in the documents' order.
    English where ``u < keep_english``, else number ``int(v * n)`` of its n other languages, sorted by code. So a
    document that is English at one probability is so at every higher one, and corpora differ by no more than they must.

    Raises :class:`~mrag_eval.core.DataError` for a document without an English version or without another one.
    """
    rng = np.random.default_rng(seed if block.seed is None else block.seed)
    u, v = rng.random(len(names)), rng.random(len(names))
    kept = []
    for name, languages, first, second in zip(names, versions, u, v, strict=True):
        english = [code for code in languages if base_language(code) == "en"]
        others = sorted(code for code in languages if base_language(code) != "en")
        if not english or not others:
            raise DataError(
                f"imbalance: document '{name}' is there in {', '.join(languages)} alone; it must be there in English "
                "and in another language, of which one is kept",
                "leave out data.imbalance, or give each document both versions",
            )
        kept.append(english[0] if first < block.keep_english else others[int(second * len(others))])
    return kept


def imbalance_note(kept: Sequence[str], block: Imbalance) -> str:
    """For the log: what came of the draw."""
    counts = ", ".join(f"{n} {code}" for code, n in sorted(Counter(kept).items()))
    return f"{len(kept)} documents, in English with probability {block.keep_english:g}: {counts}"


def refuse_imbalance(benchmark: str) -> ConfigError:
    """The error for a benchmark whose documents have one version each, or that brings none."""
    return ConfigError(
        f"data (benchmark '{benchmark}'): imbalance keeps one of several language versions of each document, and this "
        "benchmark has one version of each, or no documents",
        "leave out data.imbalance, or use xquad or a jsonl benchmark whose documents have a 'parallel_id'",
    )
