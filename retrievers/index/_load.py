"""Opening an index, with checks of its manifest, files and embedder."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from mrag_eval.platform import CorpusError
from mrag_eval.retrievers.embedding._allowed import Spec, needs_user
from mrag_eval.retrievers.embedding._embedder_spec import EmbedderSpec, SpecKey, parse_spec
from mrag_eval.retrievers.embedding._embedders import Embedder
from mrag_eval.retrievers.embedding._sparse_encoders import SparseEncoder
from mrag_eval.retrievers.index._index import Index
from mrag_eval.retrievers.index._passages import check_offsets
from mrag_eval.retrievers.shards._manifest import Manifest, check_files, manifest_bytes, parse_manifest


def _check(folder: Path, manifest: Manifest, *, verify: bool = False) -> None:
    check_files(folder, manifest, verify=verify)
    check_offsets(folder, {lang: record.passages for lang, record in manifest.languages.items()})


@lru_cache(maxsize=16)
def _open(path: Path, digest: str, mmap: bool, device: str, own: tuple[SpecKey, ...]) -> Index:
    manifest = parse_manifest(path, manifest_bytes(path))
    _check(path, manifest)
    return Index(path, manifest, mmap=mmap, device=device, own=[asked.spec for asked in own])


def load_index(
    path: str | Path,
    *,
    mmap: bool = True,
    device: str = "cpu",
    expect_embedder: str | Mapping[str, Any] | EmbedderSpec | None = None,
    verify: bool = False,
    embedder: Embedder | SparseEncoder | None = None,
    embedders: Sequence[Spec] = (),
) -> Index:
    """Open an index, once per process for the same folder, manifest and specifications.

    Args:
        path: the folder.
        mmap: map the shards instead of reading them into memory.
        device: device of the embedder.
        expect_embedder: the embedder of the run (as in ``load_embedder``); another one in the index is an error.
        verify: compare the SHA-256 of every file, each time. Otherwise, when the folder is first opened, sizes, the
            SHA-256 of files below 1 MiB and the passages' offsets are checked; a changed byte in a large file goes
            unnoticed.
        embedder: an embedder object for queries, if the index's embedder cannot be loaded by name.
        embedders: specifications of embedders that the index may use although they are behind an address, run code of
            their own or are in a local folder; ``expect_embedder`` is one of them.

    Raises CorpusError for a missing, unfinished, damaged or newer index, or another
    embedder.
    """
    folder = Path(path).resolve()
    raw = manifest_bytes(folder)
    own = [*embedders, *([] if expect_embedder is None else [expect_embedder])]
    record = parse_manifest(folder, raw).embedder
    # for any other model they change nothing, and would open the index once more
    needed = own if record is not None and record.spec is not None and needs_user(record.spec) else []
    index = _open(
        folder, hashlib.sha256(raw).hexdigest(), mmap, device, tuple(SpecKey.of(parse_spec(spec)) for spec in needed)
    )
    if verify:
        check_files(folder, index.manifest, verify=True)
    if expect_embedder is not None:
        check_embedder(index, expect_embedder)
    if embedder is not None:
        record = index.manifest.embedder
        asked = (embedder.name, embedder.revision, embedder.dim)
        if record is None or (record.name, record.revision, record.dim) != asked:
            raise _other_embedder(index, f"{asked[0]} {asked[1]} ({asked[2]} dimensions)", asked[0])
        return Index(folder, index.manifest, mmap=mmap, device=device, embedder=embedder)
    return index


def check_embedder(index: Index, expected: str | Mapping[str, Any] | EmbedderSpec) -> None:
    """Raise CorpusError if an index was built with another embedder than the one the run requires."""
    asked = parse_spec(expected)
    record = index.manifest.embedder
    if record is None or record.name != asked.name:
        raise _other_embedder(index, asked.name, asked.name)
    built = parse_spec(record.spec).identity() if record.spec else {}
    for key, value in asked.identity().items():
        if key not in ("model", "kind", "base_url", "api_key_env", "trust_remote_code") and built.get(key) != value:
            raise CorpusError(
                f"index {index.path} was built with {record.name} and {key} = {built.get(key)!r}, "
                f"this run asks for {value!r}",
                f"leave {key} out, or rebuild the index",
            )


def _other_embedder(index: Index, asked: str, name_asked: str) -> CorpusError:
    record = index.manifest.embedder
    if record is None:
        return CorpusError(
            f"index {index.path} is lexical ({index.kind}), this run asks for the embedder {asked}",
            "leave retrieval.embedder out, or build a dense index",
        )
    return CorpusError(
        f"index {index.path} was built with {record.name} ({record.dim} dimensions), this run asks for {asked}",
        f"use retrieval.embedder={record.name}, or rebuild it: mrag-eval index build --embedder {name_asked} ...",
    )


def index_info(path: str | Path) -> dict[str, Any]:
    """Return manifest, fingerprint and size of an index, without opening its shards; errors as :func:`load_index`."""
    folder = Path(path).resolve()
    manifest = parse_manifest(folder, manifest_bytes(folder))
    _check(folder, manifest)
    content = manifest.model_dump(exclude={"files"})
    return {
        "path": str(folder),
        **content,
        "fingerprint": manifest.fingerprint,
        "bytes": sum(record.bytes for record in manifest.files.values()),
    }


def verify_index(path: str | Path) -> int:
    """Read every file of an index and compare its SHA-256; return the number of files.

    Raises CorpusError for the first one that is missing or damaged.
    """
    folder = Path(path).resolve()
    manifest = parse_manifest(folder, manifest_bytes(folder))
    _check(folder, manifest, verify=True)
    return len(manifest.files)
