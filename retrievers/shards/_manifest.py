"""The manifest of an index: contents, settings and checksums of files."""

from __future__ import annotations

import hashlib
import json
import os
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from threading import Event
from typing import Any, Literal

from pydantic import BaseModel, Field, ValidationError, model_validator

import mrag_eval
from mrag_eval.platform import (
    CorpusError,
    Wait,
    is_plain_language,
    json_value,
    links_out,
    path_fault,
    regular,
    write_whole,
)

FORMAT = 1
# of indexes whose vectors are coded: releases that know only format 1 must not read them as float32
CODED_FORMAT = 2
MANIFEST = "manifest.json"

Store = Literal["float32", "float16", "int8"]
Kind = Literal["dense", "bm25", "hybrid", "sparse"]
KINDS: tuple[str, ...] = ("dense", "bm25", "hybrid", "sparse")
DENSE_KINDS: tuple[str, ...] = ("dense", "hybrid")

# Their bytes depend on library releases; their content is elsewhere in the index, too.
_BY_RELEASE = (".parquet", "params.index.json")
# Smaller files are read and compared whenever an index is opened.
_SMALL = 1 << 20
# bytes hashed at a time: many, since other threads may keep the interpreter for milliseconds in between
_HASHED = 4 << 20
_REBUILD = "rebuild it: mrag-eval index build --overwrite ..."
_LINK = "copy the index with its files (cp -rL), if you know what the link leads to"
_FOREIGN = "mrag-eval did not write this index so; do not use it"


def approximate_name(lang: str) -> str:
    """Return the file name of a language's approximate index."""
    return f"dense/{lang}.approximate.faiss"


class EmbedderRecord(BaseModel, frozen=True):
    """The embedder of an index; ``spec`` loads it again, None for a caller's object."""

    name: str
    revision: str
    dim: int
    spec: dict[str, Any] | None = None


class ApproximateRecord(BaseModel, frozen=True):
    """Approximation of a dense shard and its recall.

    ``parameter`` (``nprobe`` or ``efSearch``) has the value ``value``; ``rescore`` candidates per hit are scored
    exactly. ``recall`` is the mean share of the exact ``k`` best that are found, over ``queries`` queries not used for
    tuning: given texts, or stored vectors drawn with ``seed``, each excluding itself. ``mapped`` tells whether FAISS
    maps the file or reads it into memory.
    """

    factory: str
    parameter: str | None
    value: int | None
    rescore: int
    mapped: bool
    trained_on: int
    recall: float
    k: int
    aimed_at: float
    queries: int
    queries_from: str
    seed: int


class SelectionRecord(BaseModel, frozen=True):
    """The part of its source that a corpus holds.

    Attributes:
        rule: how documents were chosen.
        preset: the starter corpus that they were chosen for; None for the first ones of a source.
        chosen, read: chosen pages, and those chosen from; None for a whole edition, and for the first documents.
        nearness: the chosen ones, from the nearest to the topics of the preset to the rest.
    """

    rule: str
    preset: str | None = None
    chosen: int | None = None
    read: int | None = None
    nearness: dict[str, int] = Field(default_factory=dict)


class ImportRecord(BaseModel, frozen=True):
    """Vectors that were read instead of computed, and what a check of them found.

    Of ``drawn`` passages, drawn with ``seed`` and embedded again, ``agree`` have the vector that was read, if their
    text is fed as ``form``; ``least`` is the smallest cosine. These are None if no embedder could be run. With
    ``scaled`` the vectors were normalised here; ``left_out`` rows had no text.
    """

    source: str
    revision: str | None
    preset: str | None
    column: str | None
    passages: int
    languages: tuple[str, ...]
    agree: int | None
    drawn: int
    form: str | None
    least: float | None
    seed: int
    scaled: bool = False
    left_out: int = 0

    @property
    def is_verified(self) -> bool:
        """Return whether all passages that were embedded again have the vector that was read."""
        return self.agree is not None and self.agree == self.drawn > 0

    @property
    def status(self) -> str:
        """Return the outcome in words: ``verified 100 of 100 (title in front)``."""
        if self.agree is None:
            return "imported, not verified (no embedder)"
        if not self.is_verified:
            return f"imported, not verified ({self.agree} of {self.drawn} agree)"
        return f"verified {self.agree} of {self.drawn} ({self.form})"


class StoredRecord(BaseModel, frozen=True):
    """What the coding of a dense shard costs: ``recall`` of its ``k`` best against those of the float32 vectors.

    It is the mean share found, over ``queries`` queries: given texts, or stored vectors drawn with ``seed``, each
    excluding itself. Both searches are exact, among ``among`` vectors spread evenly over the language.
    """

    recall: float
    k: int
    queries: int
    queries_from: str
    among: int
    seed: int


class LanguageRecord(BaseModel, frozen=True):
    """One language; ``max_norm`` is the largest Euclidean norm of its vectors, ``approximate`` None if exact.

    ``selection`` is None for documents that are no part of a larger source.
    ``stored`` is None for float32 vectors, and where there were no float32 vectors to compare with (a merged language).
    """

    passages: int = Field(ge=0)
    documents: int = Field(ge=0)
    max_norm: float | None = None
    stored: StoredRecord | None = None
    approximate: ApproximateRecord | None = None
    selection: SelectionRecord | None = None


class FileRecord(BaseModel, frozen=True):
    bytes: int = Field(ge=0)
    sha256: str


class Manifest(BaseModel, frozen=True):
    """The content of ``manifest.json``. ``content_hash`` covers ids, languages, titles and texts of all passages.

    ``sources`` is the origin of a language's documents (a dump and its date), if known; ``approximation`` the requested
    kind of dense shards, None for exact ones; ``store`` how their vectors are stored; ``imported`` the sources of
    vectors that were read.
    """

    format: int
    kind: Kind
    store: Store = "float32"
    joint: bool
    content_hash: str
    passages: int = Field(ge=0)
    languages: dict[str, LanguageRecord]
    embedder: EmbedderRecord | None
    chunker: dict[str, Any] | None
    tokenizer: dict[str, Any] | None
    bm25: dict[str, float] | None
    versions: dict[str, str]
    sources: dict[str, str] = Field(default_factory=dict)
    approximation: dict[str, Any] | None = None
    imported: tuple[ImportRecord, ...] = ()
    files: dict[str, FileRecord]

    @model_validator(mode="after")
    def _fits_its_kind(self) -> Manifest:
        if self.coded and (self.kind not in DENSE_KINDS or self.format < CODED_FORMAT):
            raise ValueError("its store does not fit its kind or format")
        has = {"embedder": self.embedder is not None, "bm25": self.bm25 is not None}
        needs = {"embedder": self.kind != "bm25", "bm25": self.kind in ("bm25", "hybrid")}
        if has != needs:
            raise ValueError("its kind and its settings do not fit together")
        return self

    @property
    def coded(self) -> str | None:
        """Return ``store`` where it is not float32, so that hits may differ from those of the embedder's vectors."""
        return None if self.store == "float32" else self.store

    def settings(self) -> dict[str, Any]:
        """Return the settings that must be equal to continue an interrupted build."""
        return self.model_dump(include={"format", "kind", "store", "joint", "embedder", "chunker", "tokenizer", "bm25"})

    def approximate(self) -> dict[str, dict[str, Any]]:
        """Return the settings of approximate shards by language; empty for an exact index.

        They include the SHA-256 of the FAISS file, as a graph built by several threads differs each time.
        """
        out: dict[str, dict[str, Any]] = {}
        for lang, record in self.languages.items():
            if record.approximate is not None:
                file = self.files.get(approximate_name(lang))
                chosen = record.approximate.model_dump(include={"factory", "parameter", "value", "rescore"})
                out[lang] = {**chosen, "sha256": file.sha256 if file else None}
        return out

    def vector_hashes(self) -> list[str]:
        """Return the SHA-256 of the dense shards if any of their vectors were imported; otherwise nothing.

        Vectors that were computed follow from passages and embedder.
        """
        if not self.imported:
            return []
        return [record.sha256 for name, record in sorted(self.files.items()) if name.startswith("dense/")]

    @property
    def fingerprint(self) -> str:
        """Return a hash of the index; indexes with the same fingerprint return the same hits.

        It covers the settings, ``content_hash``, passages and documents by language, and the SHA-256 of every file used
        in search, but not sources, versions of libraries, or files whose bytes depend on those versions (the Parquet
        copies, bm25s's parameters). The order of the corpus matters; batches, workers, engine and interruptions do not.
        """
        searched = {name: record.sha256 for name, record in self.files.items() if not name.endswith(_BY_RELEASE)}
        settings = self.settings()
        if not self.coded:
            # as before there were other stores
            del settings["store"]
        covered = {
            "settings": settings,
            "content": self.content_hash,
            "languages": {lang: [record.passages, record.documents] for lang, record in self.languages.items()},
            "files": searched,
        }
        if approximate := self.approximate():
            covered["approximate"] = approximate
        canonical = json.dumps(covered, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()


def library_versions() -> dict[str, str]:
    """Return the versions of the libraries that write an index."""
    found = {"mrag-eval": mrag_eval.__version__}
    for package in ("faiss-cpu", "bm25s", "numpy", "pyarrow"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def file_record(path: Path, stop: Event | None = None) -> FileRecord:
    """Return size and SHA-256 of a file; once ``stop`` is set, of its beginning, for callers that have given up."""
    digest = hashlib.sha256()
    size = 0
    with path.open("rb", buffering=0) as file:
        block = memoryview(bytearray(min(_HASHED, max(1, os.fstat(file.fileno()).st_size))))
        while (read := file.readinto(block)) and not (stop is not None and stop.is_set()):
            digest.update(block[:read])
            size += read
    return FileRecord(bytes=size, sha256=digest.hexdigest())


def write_manifest(folder: Path, manifest: Manifest) -> None:
    write_whole(folder / MANIFEST, json.dumps(manifest.model_dump(), indent=1, ensure_ascii=False) + "\n")


def manifest_bytes(path: Path) -> bytes:
    """Return the raw manifest; raise CorpusError if there is no index."""
    if not path.exists():
        if path.with_name(path.name + ".replaced").exists():
            raise CorpusError(
                f"index {path} was moved away to be replaced, and the new one is not there yet",
                "wait for it; if that process was killed, give its command once more (index build: with --resume)",
            )
        building = path.with_name(path.name + ".building")
        if building.exists():
            raise CorpusError(
                f"index {path} was never finished (an interrupted build exists)",
                "finish it: give the command that began it once more, with --resume",
            )
        raise CorpusError(f"index {path} does not exist", "build it: mrag-eval index build ...")
    try:
        return regular(path / MANIFEST).read_bytes()
    except OSError as error:
        raise CorpusError(f"{path} is not an index: it has no readable {MANIFEST}", _REBUILD) from error


def parse_manifest(path: Path, raw: bytes) -> Manifest:
    """Return the validated manifest; raise CorpusError for a damaged or a newer one, and for names of files outside."""
    try:
        content = json_value(raw)
        written = content["format"]
        if isinstance(written, int) and written > CODED_FORMAT:
            raise CorpusError(
                f"index {path} has format {written}, this mrag-eval {mrag_eval.__version__} reads up to {CODED_FORMAT}",
                "pip install -U mrag-eval, or rebuild the index with this version",
            )
        manifest = Manifest.model_validate(content)
    except (ValueError, KeyError, TypeError, RecursionError, ValidationError) as error:
        raise CorpusError(f"index {path}: {MANIFEST} is damaged", _REBUILD) from error
    embedder = manifest.embedder
    if embedder is not None and embedder.spec is not None and str(embedder.spec.get("model")) not in embedder.name:
        raise CorpusError(f"index {path}: {MANIFEST} is damaged: its embedder's name and model differ", _REBUILD)
    for name in manifest.files:
        if fault := path_fault(path, name):
            raise CorpusError(
                f"index {path}: {MANIFEST}, files: {name!r} {fault}", _LINK if "link" in fault else _FOREIGN
            )
    for lang in manifest.languages:
        if not is_plain_language(lang):
            raise CorpusError(f"index {path}: {MANIFEST}, languages: {lang!r} is not the code of a language", _FOREIGN)
    if manifest.passages != sum(language.passages for language in manifest.languages.values()):
        raise CorpusError(f"index {path}: {MANIFEST} is damaged: its languages have other passages", _REBUILD)
    return manifest


def check_files(path: Path, manifest: Manifest, *, verify: bool = False) -> None:
    """Raise CorpusError for a manifest without files, and for one that is missing or has another size or SHA-256.

    The SHA-256 of files of 1 MiB or more is compared only with ``verify``, which reads them all.
    """
    for link in links_out(path):
        raise CorpusError(f"index {path}: {link.relative_to(path)} is a link out of the folder", _LINK)
    if not manifest.files:
        raise CorpusError(f"index {path}: {MANIFEST} names no files", _REBUILD)
    size = sum(record.bytes for record in manifest.files.values())
    with Wait(f"reading the files of {path.name}", size >> 20, "MB", shown=verify) as wait:
        for name, record in manifest.files.items():
            file = path / name
            try:
                size = file.stat().st_size
            except OSError as error:
                raise CorpusError(f"index {path}: file {name} is missing", _REBUILD) from error
            if size != record.bytes:
                problem = "truncated" if size < record.bytes else "too long"
                raise CorpusError(f"index {path}: file {name} is {problem} ({size} of {record.bytes} bytes)", _REBUILD)
            if (verify or size < _SMALL) and file_record(file).sha256 != record.sha256:
                raise CorpusError(f"index {path}: file {name} is damaged (its SHA-256 has changed)", _REBUILD)
            wait.add(record.bytes >> 20)
