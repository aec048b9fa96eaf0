"""The first rows of a source, compared with its embedder before anything is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mrag_eval.platform import ConfigError, CorpusError, DataError, MissingExtraError
from mrag_eval.retrievers.embedding._embedder_spec import EmbedderSpec, parse_spec
from mrag_eval.retrievers.embedding._embedders import Embedder, load_embedder
from mrag_eval.retrievers.imports._blocks import PassageBlock, checked_vectors
from mrag_eval.retrievers.imports._drawn import Drawn
from mrag_eval.retrievers.imports._verify import VectorCheck, best_form
from mrag_eval.retrievers.shards._manifest import EmbedderRecord

UNVERIFIED = "--unverified"
# Rows that are embedded, spread over the first block.
_ROWS = 8


@dataclass(frozen=True)
class Checked:
    """The embedder and what the first rows say of it.

    ``record`` is for the manifest. ``unit``: vectors must be normalised; ``scaled``: they are not yet. ``form`` is how
    texts are fed, None if the embedder cannot be run.
    """

    model: Embedder
    record: EmbedderRecord
    unit: bool
    scaled: bool
    form: str | None


def checked_first(first: PassageBlock, embedder: Any, *, device: str, unverified: bool) -> Checked:
    """Return what the first block says; ``embedder`` as in ``load_embedder``, or an object.

    Raises DataError for vectors of another dimension and, unless ``unverified``, if none of the rows has the vector
    that the embedder gives it; ConfigError if the embedder cannot be run.
    """
    spec = parse_spec(embedder) if isinstance(embedder, str | Mapping | EmbedderSpec) else None
    model: Embedder = embedder if spec is None else load_embedder(spec, device=device)
    assert first.vectors is not None
    dimension, form = first.vectors.shape[1], None
    unit = bool(getattr(model, "normalize", True))
    try:
        dimension = model.dim
        # another dimension is a fault of the source, which no flag allows
        verdict, unit = best_form(_spread(first, dimension), model)
        form = verdict.form
    except (ConfigError, CorpusError, MissingExtraError) as error:
        if not unverified:
            raise ConfigError(
                f"embedder {model.name} cannot be run, so the vectors cannot be checked: {error.message}",
                f"{error.next_step}; or import them unchecked: {UNVERIFIED}",
            ) from None
    else:
        if not verdict.agree and not unverified:
            raise refused(verdict, model.name, first.file, f"import it all the same: {UNVERIFIED}")
    scaled = checked_vectors(first, dimension, unit=unit)[2]
    identity = None if spec is None else spec.identity()
    if identity is not None and (commit := getattr(model, "commit", None)):
        # queries must be embedded with the commit that was checked
        identity["revision"] = commit
    record = EmbedderRecord(name=model.name, revision=model.revision, dim=dimension, spec=identity)
    return Checked(model, record, unit, scaled, form)


def refused(verdict: VectorCheck, embedder: str, where: str, otherwise: str) -> DataError:
    """Return the error for vectors that are not those of their passages."""
    return DataError(
        f"{where}: {verdict.agree} of {verdict.drawn} passages that were embedded again have the vector that "
        f"{embedder} gives them ({verdict.why})",
        f"correct the source, its columns or the embedder; or {otherwise}",
    )


def _spread(first: PassageBlock, dimension: int) -> list[Drawn]:
    vectors, _, _ = checked_vectors(first, dimension, unit=False)
    rows = np.unique(np.linspace(0, len(first) - 1, _ROWS).astype(int)).tolist()
    return [Drawn(row, first.passages[row], vectors[row]) for row in rows]
