"""Merging indexes, and adding documents to one, without embedding again what is there."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from mrag_eval.core import ConfigError, CorpusError, DataError, Passage, build_lock, room_on_disk
from mrag_eval.retrievers.build._approximating import approximate_shards, check_wanted
from mrag_eval.retrievers.build._build import build_index, write_index
from mrag_eval.retrievers.build._building import move_into_place
from mrag_eval.retrievers.build._factory import AUTO, DEFAULT_RECALL, FEW, Approximation, approximation
from mrag_eval.retrievers.build._joining import Part, check_alike, check_ids, link_parts
from mrag_eval.retrievers.build._passages_finish import read_records
from mrag_eval.retrievers.build._windows import Made
from mrag_eval.retrievers.corpora._corpus import Document
from mrag_eval.retrievers.embedding._embedders import Embedder
from mrag_eval.retrievers.embedding._sparse_encoders import SparseEncoder
from mrag_eval.retrievers.index._index import Index
from mrag_eval.retrievers.index._load import load_index
from mrag_eval.retrievers.index._passages import Record
from mrag_eval.retrievers.shards._bm25_shard import Bm25Parameters
from mrag_eval.retrievers.shards._manifest import (
    ApproximateRecord,
    Manifest,
    check_files,
    manifest_bytes,
    parse_manifest,
    write_manifest,
)
from mrag_eval.retrievers.shards._sparse_rows import vectors_by_passage


def merge_indexes(
    parts: Sequence[str | Path],
    path: str | Path,
    *,
    overwrite: bool = False,
    factory: str | None = None,
    memory_budget: int | str | None = None,
    recall: float = DEFAULT_RECALL,
) -> Index:
    """One index of all passages of several, and open it; nothing is embedded.

    Languages that one part alone holds are linked, as :func:`join_indexes` does. Those of several parts are written
    anew: passages in the order of the parts, vectors as they are stored. So the result has the fingerprint of an index
    built at once from the parts' passages one after the other. A joint lexical shard is written anew as a whole; there
    words are numbered language by language, so that files differ from a build whose corpus mixed the languages, and
    hits do not.

    Args:
        parts: index folders, of the same kind, embedder, chunker and tokenizer.
        path: the folder to make; may be one of the parts, with ``overwrite``.
        overwrite: replace what is there once the new index is whole.
        factory: another kind of dense shards, as in ``build_index``; None keeps what the parts have. With it a single
            part may be given, to make an exact index approximate or the other way round.
        memory_budget, recall: as in ``build_index``.

    Raises ConfigError for parts that differ, DataError naming passage ids that two parts hold, CorpusError where
    ``path`` is taken, and for a part that is missing or damaged.
    """
    target = Path(path).resolve()
    folders = [Path(part).resolve() for part in parts]
    if len(set(folders)) < len(folders):
        raise ConfigError("an index is named twice among those to merge", "name each once")
    wanted = None if factory is None else approximation(factory, memory_budget=memory_budget, recall=recall)
    if factory is None and memory_budget is not None:
        raise ConfigError("a memory budget goes with a factory", "use --factory auto")
    with build_lock(target):
        if target.exists() and not overwrite:
            raise CorpusError(f"{target} exists already", "choose another path, or replace it: --overwrite")
        manifests = [parse_manifest(folder, manifest_bytes(folder)) for folder in folders]
        for folder, manifest in zip(folders, manifests, strict=True):
            check_files(folder, manifest)
        check_alike(folders, manifests, approximation=factory is None)
        if factory is None and manifests[0].approximation is not None:
            wanted = Approximation(**manifests[0].approximation)
        first = manifests[0]
        check_wanted(wanted, first.kind, first.embedder.dim if first.embedder else 0)
        check_ids(folders, manifests)
        with room_on_disk(target, "free some space, then give the same command again; the parts are as they were"):
            _merge(folders, manifests, target, wanted, keep=factory is None)
    return load_index(target)


def _merge(
    folders: list[Path], manifests: list[Manifest], target: Path, wanted: Approximation | None, *, keep: bool
) -> None:
    """Write the merged index; ``keep``: approximate shards of languages that are linked stay as they are."""
    first = manifests[0]
    counts: dict[str, int] = {}
    shared: set[str] = set()
    for manifest in manifests:
        shared |= counts.keys() & manifest.languages.keys()
        for lang, record in manifest.languages.items():
            counts[lang] = counts.get(lang, 0) + record.passages
    anew = sorted(counts if first.joint and len(folders) > 1 else shared)
    parts = [
        Part(folder, manifest, tuple(lang for lang in manifest.languages if lang not in anew))
        for folder, manifest in zip(folders, manifests, strict=True)
    ]
    building = target.with_name(target.name + ".building")
    written = target.with_name(target.name + ".merging")
    shutil.rmtree(written, ignore_errors=True)
    try:
        if anew:
            batches = (
                batch
                for lang in anew
                for folder, manifest in zip(folders, manifests, strict=True)
                if lang in manifest.languages
                for batch in _stored(folder, manifest, lang, written.with_name(written.name + ".rows"))
            )
            share = _share(wanted, {lang: counts[lang] for lang in anew}, counts) if keep else None
            write_index(written, first, batches, wanted=share)
            parts = [part for part in parts if part.languages]
            parts.append(Part(written, parse_manifest(written, manifest_bytes(written)), tuple(anew)))
        asked = wanted.asked() if wanted else None

        def approximate(folder: Path) -> dict[str, ApproximateRecord]:
            if wanted is None or first.embedder is None:
                return {}
            return approximate_shards(folder, counts, first.embedder.dim, wanted)

        link_parts(parts, building, whole=manifests, approximate=None if keep else approximate, approximation=asked)
        if keep and anew:
            # the languages written anew had a share of the memory: the manifest says what all have together
            manifest = parse_manifest(building, manifest_bytes(building))
            write_manifest(building, manifest.model_copy(update={"approximation": asked}))
        move_into_place(building, target)
    finally:
        shutil.rmtree(written, ignore_errors=True)


def _share(wanted: Approximation | None, anew: dict[str, int], all_of_them: dict[str, int]) -> Approximation | None:
    """What was asked for, with the share of its memory that some languages have."""
    large = sum(count for count in all_of_them.values() if count >= FEW)
    if wanted is None or wanted.factory != AUTO or not large:
        return wanted
    own = sum(count for count in anew.values() if count >= FEW)
    return replace(wanted, memory=max(1, wanted.memory * own // large))


def _stored(folder: Path, manifest: Manifest, lang: str, scratch: Path) -> Iterator[Made]:
    """The passages of one language with their stored vectors, batch by batch; nothing is mapped for long."""
    count = manifest.languages[lang].passages
    dimension = manifest.embedder.dim if manifest.embedder else 0
    records = read_records(folder, lang)
    if manifest.kind == "sparse":
        shutil.rmtree(scratch, ignore_errors=True)
        try:
            for batch, vectors in zip(
                records, vectors_by_passage(folder / "sparse" / lang, count, scratch), strict=True
            ):
                yield Made(_passages(batch, lang), None, vectors)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
        return
    if manifest.embedder is None:
        for batch in records:
            yield Made(_passages(batch, lang), None, None)
        return
    flat = folder / "dense" / f"{lang}.faiss"
    with flat.open("rb") as file:
        file.seek(flat.stat().st_size - 4 * count * dimension)
        for batch in records:
            raw = file.read(4 * dimension * len(batch))
            yield Made(_passages(batch, lang), np.frombuffer(raw, "<f4").reshape(len(batch), dimension), None)


def _passages(records: list[Record], lang: str) -> list[Passage]:
    return [Passage(identifier, lang, text, title, doc_id) for identifier, doc_id, title, text in records]


def add_documents(
    path: str | Path,
    corpus: Iterable[Passage | Document],
    *,
    embedder: Embedder | SparseEncoder | None = None,
    batch_size: int = 256,
    resume: bool = False,
    progress: bool = True,
    device: str = "cpu",
    source: str | None = None,
) -> Index:
    """Add passages or documents to the index at ``path``, and open it.

    They are cut and embedded as those of the index were, into ``<path>.adding``, and merged with it
    (:func:`merge_indexes`); only the languages they are in are written anew. The index that is there can be
    searched until the new one is in its place, and stays as it is when anything fails.

    Args:
        path: an index folder.
        corpus: as in ``build_index``; a passage id that the index holds already is an error.
        embedder: the object it was built with, where that has no name to load it by.
        batch_size, resume, progress, device, source: as in ``build_index``. With ``resume`` what an interrupted call
            embedded is not embedded again.
    """
    target = Path(path).resolve()
    manifest = parse_manifest(target, manifest_bytes(target))
    check_files(target, manifest)
    record = manifest.embedder
    if record is not None and record.spec is None and embedder is None:
        raise CorpusError(
            f"index {target} was built with an embedder '{record.name}' that cannot be loaded by name",
            "pass it: add_documents(path, corpus, embedder=...)",
        )
    new = target.with_name(target.name + ".adding")
    half_made = new.with_name(new.name + ".building")
    if new.exists():
        # finished, and not merged: resuming compares its documents with those given now
        shutil.rmtree(half_made, ignore_errors=True)
        new.rename(half_made)
    options: dict[str, Any] = {} if record is None else {"embedder": embedder if record.spec is None else record.spec}
    if (asked := manifest.approximation) is not None:
        options |= {"factory": asked["factory"], "memory_budget": asked.get("memory"), "recall": asked["recall"]}
    build_index(
        corpus,
        new,
        kind=manifest.kind,
        chunker=manifest.chunker or "none",
        joint=manifest.joint,
        bm25=Bm25Parameters(**manifest.bm25) if manifest.bm25 else None,
        batch_size=batch_size,
        resume=resume,
        progress=progress,
        device=device,
        source=source,
        **options,
    )
    try:
        merged = merge_indexes([target, new], target, overwrite=True)
    except DataError as error:
        # what was embedded is of documents that must change: nothing of it can be used again
        shutil.rmtree(new, ignore_errors=True)
        said = error.message.replace(f"indexes {target} and {new}", f"index {target} and the documents to add")
        raise DataError(said, "leave them out of the documents: what is there stays as it is") from None
    shutil.rmtree(new, ignore_errors=True)
    return merged if embedder is None else load_index(target, device=device, embedder=embedder)
