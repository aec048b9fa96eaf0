"""The mean vector of each language of an index, which a search across languages takes from its scores.

Passages of one language lie close together in the space of a multilingual embedder, and near the questions in that
language. Without their mean, what they have in common no longer ranks them: score - query · mean of the language.

Source: centring by language, Libovický et al., On the Language Neutrality of Pre-trained Multilingual Representations
(Findings of EMNLP 2020). The shrinkage is ours.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mrag_eval.platform import content_key, json_value
from mrag_eval.retrievers.embedding._embedders import Vectors
from mrag_eval.retrievers.index._fusion import SHRINKAGE
from mrag_eval.retrievers.shards._manifest import Manifest

MEANS = "means.json"
_FORMAT = 1

Sum = NDArray[np.float64]


@dataclass(frozen=True)
class LanguageMeans:
    """The sums of the stored vectors of each language.

    Attributes:
        of: what the vectors are (:func:`vectors_key`).
        counts: language -> number of vectors.
        sums: language -> their sum.
    """

    of: str
    counts: Mapping[str, int]
    sums: Mapping[str, Sum]

    @cached_property
    def fingerprint(self) -> str:
        """Return a hash of the means."""
        return content_key("language means", _FORMAT, SHRINKAGE, self.to_json()["sums"], dict(self.counts))

    @cached_property
    def common(self) -> Sum:
        """Return the mean of all vectors."""
        total: Sum = sum((self.sums[lang] for lang in sorted(self.sums)), np.zeros(1))
        return total / sum(self.counts.values())

    def mean(self, lang: str) -> Sum:
        """Return ``n / (n + 3) · mean of the language + 3 / (n + 3) · mean of all``; n is 0 for an unknown language."""
        own = self.sums.get(lang, np.zeros(1))
        return (own + SHRINKAGE * self.common) / (self.counts.get(lang, 0) + SHRINKAGE)

    def offsets(self, queries: Vectors, lang: str) -> Sum:
        """Return the inner product of every query (queries × dimensions) with the mean of a language.

        Each is summed by itself, so that a query has the same offset alone and in a batch.
        """
        products: Sum = np.ascontiguousarray(queries, dtype=np.float64) * self.mean(lang)
        return np.sum(products, axis=1)

    def to_json(self) -> dict[str, Any]:
        """Return the content of the file."""
        sums = {
            lang: base64.b64encode(np.ascontiguousarray(total, dtype="<f8").tobytes()).decode("ascii")
            for lang, total in sorted(self.sums.items())
        }
        return {"format": _FORMAT, "of": self.of, "counts": dict(self.counts), "sums": sums}

    @classmethod
    def from_json(cls, value: Any) -> LanguageMeans | None:
        """Return what :meth:`to_json` returned; None for anything else."""
        try:
            if value["format"] != _FORMAT:
                return None
            sums = {
                str(lang): np.frombuffer(base64.b64decode(text), dtype="<f8") for lang, text in value["sums"].items()
            }
            counts = {str(lang): int(value["counts"][lang]) for lang in sums}
        except (KeyError, TypeError, ValueError, AttributeError):
            return None
        widths = {total.shape for total in sums.values()}
        whole = len(widths) <= 1 and all(np.isfinite(total).all() for total in sums.values())
        return cls(str(value["of"]), counts, sums) if whole else None


def vectors_key(manifest: Manifest) -> str:
    """Return a hash of the stored vectors of an index."""
    files = {f"dense/{lang}.faiss": lang for lang in manifest.languages}
    return content_key({lang: manifest.files[name].sha256 for name, lang in files.items() if name in manifest.files})


def saved_means(path: Path, manifest: Manifest) -> LanguageMeans | None:
    """Return the means in a file, if they are those of this index's vectors; else None."""
    try:
        means = LanguageMeans.from_json(json_value(path.read_bytes()))
    except (OSError, ValueError):
        return None
    return means if means is not None and means.of == vectors_key(manifest) else None


def means_of(folder: Path, manifest: Manifest) -> LanguageMeans | None:
    """Return the means of all languages of an index; None if they are missing, or of other vectors."""
    means = saved_means(folder / MEANS, manifest) if manifest.kind == "dense" else None
    counts = {lang: record.passages for lang, record in manifest.languages.items()}
    return means if means is not None and means.counts == counts else None
