"""Adding documents to an index, without embedding its passages again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from mrag_eval.core import Passage
from mrag_eval.platform import CorpusError, DataError, build_lock
from mrag_eval.retrievers.build._build import build_unlocked
from mrag_eval.retrievers.build._merging import merge_indexes
from mrag_eval.retrievers.build._replacing import (
    check_replaceable,
    discard,
    finish_removal,
    recover,
    remove_unfinished,
)
from mrag_eval.retrievers.build._settings import BuildSettings
from mrag_eval.retrievers.corpora._corpus import Document
from mrag_eval.retrievers.embedding._allowed import Spec, allowed_spec
from mrag_eval.retrievers.embedding._embedders import Embedder
from mrag_eval.retrievers.embedding._sparse_encoders import SparseEncoder
from mrag_eval.retrievers.index._index import Index
from mrag_eval.retrievers.index._load import load_index
from mrag_eval.retrievers.shards._manifest import check_files, manifest_bytes, parse_manifest


def add_documents(
    path: str | Path,
    corpus: Iterable[Passage | Document],
    *,
    embedder: Embedder | SparseEncoder | None = None,
    embedders: Sequence[Spec] = (),
    batch_size: int = 256,
    resume: bool = False,
    progress: bool = True,
    device: str = "cpu",
    source: str | None = None,
) -> Index:
    """Add passages or documents to the index at ``path``, and open it.

    They are cut and embedded with the settings of the index, into ``<path>.adding``, and merged with it
    (:func:`merge_indexes`); only their languages are rewritten. The existing index can be searched until the new one
    replaces it, and stays unchanged if anything fails.

    Args:
        path: an index folder.
        corpus: as in ``build_index``; a passage id that the index already holds is an error.
        embedder: the object the index was built with, if it cannot be loaded by name.
        embedders: as in ``load_index``.
        batch_size, resume, progress, device, source: as in ``build_index``. With ``resume`` the work of an
            interrupted call is reused.
    """
    target = Path(path).resolve()
    new = target.with_name(target.name + ".adding")
    recover(target)
    finish_removal(new)
    manifest = parse_manifest(target, manifest_bytes(target))
    check_files(target, manifest)
    record = manifest.embedder
    if record is not None and record.spec is None and embedder is None:
        raise CorpusError(
            f"index {target} was built with an embedder '{record.name}' that cannot be loaded by name",
            "pass it: add_documents(path, corpus, embedder=...)",
        )
    own: Any = embedder or BuildSettings.embedder
    if record is not None and record.spec is not None:
        own = allowed_spec(record.spec, embedders, f"index {target}")
    settings = BuildSettings.like(
        manifest,
        embedder=own,
        batch_size=batch_size,
        resume=resume,
        progress=progress,
        device=device,
        source=source,
    )
    # held until the merge is done: another call would take the finished documents away from it
    with build_lock(new):
        if new.exists():
            # what a killed call finished but did not merge: resuming compares its documents with the ones given
            half_made = new.with_name(new.name + ".building")
            check_replaceable(new)
            remove_unfinished(half_made)
            new.rename(half_made)
        build_unlocked(corpus, new, settings)
        try:
            merged = merge_indexes([target, new], target, overwrite=True)
        except DataError as error:
            # the documents must change, so their vectors cannot be reused
            discard(new)
            said = error.message.replace(f"indexes {target} and {new}", f"index {target} and the documents to add")
            raise DataError(said, "leave them out of the documents; the index is unchanged") from None
        discard(new)
    if embedder is None and not embedders:
        return merged
    return load_index(target, device=device, embedder=embedder, embedders=embedders)
