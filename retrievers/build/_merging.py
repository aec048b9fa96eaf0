"""Merging indexes, without embedding anything again."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from mrag_eval.platform import Allowed, ConfigError, DataError, Wait, build_lock, read_array, room_on_disk
from mrag_eval.retrievers.build._approximating import approximate_shards, check_wanted
from mrag_eval.retrievers.build._centering import write_means
from mrag_eval.retrievers.build._dense_files import vectors_name
from mrag_eval.retrievers.build._factory import AUTO, DEFAULT_RECALL, EXACT, FEW, Approximation, approximation
from mrag_eval.retrievers.build._index_writer import IndexWriter
from mrag_eval.retrievers.build._passages_finish import finish_passages, read_passages
from mrag_eval.retrievers.build._replacing import (
    UNFINISHED,
    begin,
    check_target,
    discard,
    move_into_place,
    remove_unfinished,
)
from mrag_eval.retrievers.build._settings import BuildSettings
from mrag_eval.retrievers.build._windows import Made
from mrag_eval.retrievers.embedding._sparse_encoders import SparseVector
from mrag_eval.retrievers.index._hashing import ContentHash
from mrag_eval.retrievers.index._index import Index
from mrag_eval.retrievers.index._load import load_index
from mrag_eval.retrievers.index._passages import LOOKUP_HASHES, PassageStore
from mrag_eval.retrievers.shards._codes import FLOAT32
from mrag_eval.retrievers.shards._faiss_shard import FaissShard
from mrag_eval.retrievers.shards._manifest import (
    ApproximateRecord,
    FileRecord,
    LanguageRecord,
    Manifest,
    approximate_name,
    check_files,
    file_record,
    library_versions,
    manifest_bytes,
    parse_manifest,
    write_manifest,
)
from mrag_eval.retrievers.shards._sparse_shard import FILES


def join_indexes(parts: Sequence[str | Path], path: str | Path, *, overwrite: bool = False) -> Index:
    """Merge indexes that have no language in common, and open the result; nothing is embedded.

    Like :func:`merge_indexes`, but refuses what could not be linked, so joining takes little time and space. Search
    finds what it would in an index built in one go.

    Raises ConfigError for parts that differ in kind, embedder, chunker or tokenizer, have a language in common, or hold
    one joint lexical shard; DataError for passages that two parts hold; CorpusError where ``path`` exists, and for a
    part that is missing or damaged.
    """
    return _merge(parts, path, overwrite=overwrite, disjoint=True)


def merge_indexes(
    parts: Sequence[str | Path],
    path: str | Path,
    *,
    overwrite: bool = False,
    factory: str | None = None,
    memory_budget: int | str | None = None,
    recall: Annotated[float, Allowed(least=0, most=1)] = DEFAULT_RECALL,
) -> Index:
    """Merge the passages of several indexes into one, and open it; nothing is embedded.

    Languages of one part only are linked: their shards are the same files under a second name (copies, where the file
    system has no hard links). Languages of several parts are rewritten: passages in the order of the parts, vectors as
    they are stored. So the result has the fingerprint of an index built in one go from the parts' passages, one part
    after the other; int8 vectors, however, are coded again for the range of all parts, and move by up to half a step
    more. A joint lexical shard is rewritten as a whole; its words are numbered language by language, so its
    files differ from a build whose corpus mixed the languages, but its hits do not.

    Args:
        parts: index folders, of the same kind, embedder, chunker and tokenizer; they stay as they are.
        path: the folder to make; may be one of the parts, with ``overwrite``.
        overwrite: Replace an index that is already at OUT.
        factory: Rebuild the dense shards: flat (exact), auto, or a string of FAISS's index_factory.
        memory_budget: as in ``build_index``.
        recall: The recall@20 that an approximate index is tuned to.

    Raises ConfigError for parts that differ, DataError naming passage ids that two parts hold, CorpusError where
    ``path`` exists, and for a part that is missing or damaged.
    """
    if factory is None and memory_budget is not None:
        raise ConfigError("memory_budget requires a factory", "use --factory auto")
    wanted = None if factory is None else approximation(factory, memory_budget=memory_budget, recall=recall)
    return _merge(parts, path, overwrite=overwrite, wanted=wanted, keep=factory is None)


def _merge(
    parts: Sequence[str | Path],
    path: str | Path,
    *,
    overwrite: bool,
    wanted: Approximation | None = None,
    keep: bool = True,
    disjoint: bool = False,
) -> Index:
    """Merge indexes; ``keep``: linked languages keep their approximate shards, ``disjoint``: nothing is rewritten."""
    target = Path(path).resolve()
    folders = [Path(part).resolve() for part in parts]
    if len(set(folders)) < len(folders):
        raise ConfigError("an index is named twice among those to merge", "name each once")
    with build_lock(target):
        check_target(target, overwrite=overwrite)
        manifests = [parse_manifest(folder, manifest_bytes(folder)) for folder in folders]
        for folder, manifest in zip(folders, manifests, strict=True):
            check_files(folder, manifest)
        check_alike(folders, manifests, approximation=keep)
        if disjoint:
            check_disjoint(folders, manifests)
        first = manifests[0]
        if keep:
            wanted = BuildSettings.like(first).approximation
        check_wanted(wanted, first.kind, first.embedder.dim if first.embedder else 0)
        check_ids(folders, manifests)
        with room_on_disk(target, "free some space, then give the same command again; the parts are unchanged"):
            _write(folders, manifests, target, wanted, keep=keep)
    return load_index(target)


def _counted(batches: Iterable[Made], wait: Wait) -> Iterator[Made]:
    for batch in batches:
        yield batch
        wait.add(len(batch.passages))


def _write(
    folders: list[Path], manifests: list[Manifest], target: Path, wanted: Approximation | None, *, keep: bool
) -> None:
    """Write the merged index: link the languages of one part, rewrite those of several."""
    first = manifests[0]
    counts: dict[str, int] = {}
    shared: set[str] = set()
    for manifest in manifests:
        shared |= counts.keys() & manifest.languages.keys()
        for lang, record in manifest.languages.items():
            counts[lang] = counts.get(lang, 0) + record.passages
    rewritten = sorted(counts if first.joint and len(folders) > 1 else shared)
    parts = [
        LinkedPart(folder, manifest, tuple(lang for lang in manifest.languages if lang not in rewritten))
        for folder, manifest in zip(folders, manifests, strict=True)
    ]
    building = target.with_name(target.name + ".building")
    written = target.with_name(target.name + ".merging")
    scratch = written, written.with_name(written.name + ".building")
    for folder in scratch:
        remove_unfinished(folder)
    try:
        if rewritten:
            batches = (
                batch
                for lang in rewritten
                for folder, manifest in zip(folders, manifests, strict=True)
                if lang in manifest.languages
                for batch in _stored(folder, manifest, lang, written.with_name(written.name + ".rows"))
            )
            share = _share(wanted, counts, rewritten) if keep else None
            settings = BuildSettings.like(first, factory=share or EXACT)
            passages = sum(counts[lang] for lang in rewritten)
            with Wait(f"merging into {target.name}", passages, "passages") as wait:
                writer = IndexWriter(written, settings, first.embedder)
                writer.write(_counted(batches, wait), are_decoded=first.store != FLOAT32)
            parts = [part for part in parts if part.languages]
            parts.append(LinkedPart(written, parse_manifest(written, manifest_bytes(written)), tuple(rewritten)))

        def approximate(folder: Path) -> dict[str, ApproximateRecord]:
            if wanted is None or first.embedder is None:
                return {}
            return approximate_shards(folder, counts, first.embedder.dim, wanted, store=first.store)

        # rewritten languages had a share of the memory budget; the manifest records the whole
        link_parts(parts, building, whole=manifests, wanted=wanted, approximate=None if keep else approximate)
    finally:
        for folder in scratch:
            discard(folder)
    if first.kind == "dense":
        write_means(building, parse_manifest(building, manifest_bytes(building)))
    move_into_place(building, target)


def _share(wanted: Approximation | None, counts: dict[str, int], rewritten: Sequence[str]) -> Approximation | None:
    """Return ``wanted`` with the part of its memory budget that the rewritten languages get."""
    large = {lang: count for lang, count in counts.items() if count >= FEW}
    if wanted is None or wanted.factory != AUTO or not large:
        return wanted
    own = sum(large.get(lang, 0) for lang in rewritten)
    return replace(wanted, memory=max(1, wanted.memory * own // sum(large.values())))


def _stored(folder: Path, manifest: Manifest, lang: str, scratch: Path) -> Iterator[Made]:
    """Yield the passages of one language with their stored vectors, batch by batch."""
    count = manifest.languages[lang].passages
    records = read_passages(folder, lang)
    if manifest.kind == "sparse":
        shutil.rmtree(scratch, ignore_errors=True)
        try:
            for batch, vectors in zip(
                records, vectors_by_passage(folder / "sparse" / lang, count, scratch), strict=True
            ):
                yield Made(batch, None, vectors)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
        return
    if manifest.embedder is None:
        for batch in records:
            yield Made(batch, None, None)
        return
    shard = FaissShard(folder / vectors_name(lang), count, manifest.embedder.dim, store=manifest.store)
    width = shard.codes.width
    with shard.path.open("rb") as file:
        file.seek(shard.path.stat().st_size - width * count)
        for batch in records:
            raw = np.frombuffer(file.read(width * len(batch)), dtype=np.uint8)
            yield Made(batch, shard.codes.decode(raw.reshape(len(batch), width)), None)


_HASHES = f"passages/{LOOKUP_HASHES}"
# hashes compared at a time, and the number of ids an error names
_COMPARED = 65_536
_NAMED = 5


def check_alike(folders: Sequence[Path], manifests: Sequence[Manifest], *, approximation: bool = True) -> None:
    """Raise ConfigError for an index with other settings than the first; ``approximation`` compares that, too."""
    if not manifests:
        raise ConfigError("there is no index to merge", "name at least two index folders")
    first = manifests[0]
    for folder, manifest in zip(folders, manifests, strict=True):
        # the store first, as the format follows from it
        expected, found = {"store": first.store, **first.settings()}, manifest.settings()
        if approximation:
            expected["approximation"], found["approximation"] = first.approximation, manifest.approximation
        for key, value in expected.items():
            if found[key] != value:
                other = key == "approximation"
                raise ConfigError(
                    f"index {folder} has {key} = {found[key]!r}, index {folders[0]} has {value!r}",
                    "choose one: index merge --factory" if other else "build both with the same settings",
                )


def check_disjoint(folders: Sequence[Path], manifests: Sequence[Manifest]) -> None:
    """Raise ConfigError for a language in two indexes, and for a joint lexical shard."""
    holder: dict[str, Path] = {}
    for folder, manifest in zip(folders, manifests, strict=True):
        if manifest.joint:
            raise ConfigError(
                f"index {folder} has one lexical shard over all its languages, which cannot take others",
                "build it without joint, then add languages",
            )
        for lang in manifest.languages:
            if lang in holder:
                raise ConfigError(
                    f"indexes {holder[lang]} and {folder} both hold '{lang}'", "merge them: mrag-eval index merge"
                )
            holder[lang] = folder


def check_ids(folders: Sequence[Path], manifests: Sequence[Manifest]) -> None:
    """Raise DataError naming passage ids that two indexes hold.

    Only ids whose hashes are in both lookups are read. A document may be in several indexes, a passage may not.
    """
    stores = [
        PassageStore(folder, {lang: record.passages for lang, record in manifest.languages.items()})
        for folder, manifest in zip(folders, manifests, strict=True)
    ]
    for (one, a), (other, b) in combinations(zip(folders, stores, strict=True), 2):
        common = np.intersect1d(read_array(one / _HASHES), read_array(other / _HASHES))
        for start in range(0, len(common), _COMPARED):
            some = common[start : start + _COMPARED]
            twice = sorted(set(a.ids_of_hashes(some)) & set(b.ids_of_hashes(some)))
            if twice:
                named = ", ".join(f"'{identifier}'" for identifier in twice[:_NAMED])
                more = f" and {len(twice) - _NAMED:,} more" if len(twice) > _NAMED else ""
                raise DataError(
                    f"indexes {one} and {other} both hold the passages {named}{more}",
                    "ids must be unique in the whole index: leave these passages out of one",
                )


@dataclass(frozen=True)
class LinkedPart:
    """The languages to take from one index."""

    folder: Path
    manifest: Manifest
    languages: tuple[str, ...]


def link_parts(
    parts: Sequence[LinkedPart],
    building: Path,
    *,
    whole: Sequence[Manifest],
    wanted: Approximation | None,
    approximate: Callable[[Path], dict[str, ApproximateRecord]] | None = None,
) -> None:
    """Write an index into the folder ``building`` whose shards are those of the parts, under a second name.

    Args:
        parts: no two of them with the same language.
        building: an existing folder is replaced.
        whole: the manifests of all merged indexes, for the content hash and the sources.
        wanted: the approximation to record in the manifest.
        approximate: builds new approximate shards in the folder; None keeps those of the parts.
    """
    begin(building)
    files: dict[str, FileRecord] = {}
    languages: dict[str, LanguageRecord] = {}
    for part in parts:
        replaced = {approximate_name(lang) for lang in part.languages} if approximate else set()
        for name, record in part.manifest.files.items():
            # of a language of the part, and not rewritten for all languages
            is_rewritten = name.startswith("passages/") and not name.endswith((".text", ".offsets"))
            is_of_part = name.split("/")[1].partition(".")[0] in (*part.languages, "joint")
            if is_of_part and not is_rewritten and name not in replaced:
                _link(part.folder / name, building / name)
                files[name] = record
        languages |= {lang: part.manifest.languages[lang] for lang in part.languages}
    finish_passages(building, tuple(sorted(languages)))
    if approximate is not None:
        records = approximate(building)
        languages = {
            lang: record.model_copy(update={"approximate": records.get(lang)}) for lang, record in languages.items()
        }
    for file in sorted(building.rglob("*")):
        name = file.relative_to(building).as_posix()
        if file.is_file() and name not in files and name != UNFINISHED:
            with file.open("rb") as handle:
                os.fsync(handle.fileno())
            files[name] = file_record(file)
    languages = {lang: _marked(record, lang, whole) for lang, record in languages.items()}
    write_manifest(building, _merged_manifest(whole, languages, files, wanted))
    (building / UNFINISHED).unlink()


def _link(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


def _merged_manifest(
    manifests: Sequence[Manifest],
    languages: dict[str, LanguageRecord],
    files: dict[str, FileRecord],
    wanted: Approximation | None,
) -> Manifest:
    content = ContentHash()
    for manifest in manifests:
        content.add_all(manifest.content_hash)
    return manifests[0].model_copy(
        update={
            "content_hash": content.hexdigest,
            "passages": sum(record.passages for record in languages.values()),
            "languages": languages,
            "versions": library_versions(),
            "sources": _sources(manifests),
            "approximation": wanted.asked() if wanted else None,
            "imported": tuple(record for manifest in manifests for record in manifest.imported),
            "files": files,
        }
    )


def _marked(record: LanguageRecord, lang: str, manifests: Sequence[Manifest]) -> LanguageRecord:
    """Return the record with the mark of a starter corpus, if one was merged into the language."""
    held = (manifest.languages[lang].selection for manifest in manifests if lang in manifest.languages)
    return record.model_copy(update={"selection": next((one for one in held if one is not None), None)})


def _sources(manifests: Sequence[Manifest]) -> dict[str, str]:
    """Return the origin of each language's documents; several sources are joined, each once."""
    found: dict[str, list[str]] = {}
    for manifest in manifests:
        for lang, source in manifest.sources.items():
            known = found.setdefault(lang, [])
            known += [one for one in source.split("; ") if one not in known]
    return {lang: "; ".join(sources) for lang, sources in found.items()}


_POSTINGS = 4 << 20
_PASSAGES = 4_096


def vectors_by_passage(shard: Path, count: int, scratch: Path) -> Iterator[list[SparseVector]]:
    """Yield the vectors of ``count`` passages, 4,096 at a time, terms ascending; ``scratch`` is a working folder.

    Two passes over the postings. Memory grows with the vocabulary and the passages (16 bytes each), not with the
    postings.
    """
    starts, rows, weights = (read_array(shard / name) for name in FILES)
    total = int(starts[-1])
    lengths = np.zeros(count, dtype=np.int64)
    for first in range(0, total, _POSTINGS):
        lengths += np.bincount(rows[first : min(first + _POSTINGS, total)], minlength=count)
    begins = np.zeros(count + 1, dtype=np.int64)
    np.cumsum(lengths, out=begins[1:])
    scratch.mkdir(parents=True, exist_ok=True)
    kept = max(total, 1)
    terms: Any = np.memmap(scratch / "terms", dtype="<i4", mode="w+", shape=(kept,))
    values: Any = np.memmap(scratch / "weights", dtype="<f4", mode="w+", shape=(kept,))
    cursor = begins[:-1].copy()
    for first in range(0, total, _POSTINGS):
        last = min(first + _POSTINGS, total)
        passage = np.asarray(rows[first:last])
        term = np.searchsorted(starts, np.arange(first, last), side="right") - 1
        order = np.argsort(passage, kind="stable")
        distinct, at, times = np.unique(passage[order], return_index=True, return_counts=True)
        place = np.repeat(cursor[distinct] - at, times) + np.arange(len(order))
        terms[place] = term[order]
        values[place] = np.asarray(weights[first:last])[order]
        cursor[distinct] += times
    for low in range(0, count, _PASSAGES):
        bounds = begins[low : low + _PASSAGES + 1].tolist()
        yield [
            SparseVector(np.array(terms[a:b], dtype=np.int32), np.array(values[a:b], dtype=np.float32))
            for a, b in pairwise(bounds)
        ]
