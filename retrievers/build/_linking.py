"""An index whose shards are files of other indexes, under a second name."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from mrag_eval.retrievers.build._factory import Approximation
from mrag_eval.retrievers.build._passages_finish import finish_passages
from mrag_eval.retrievers.build._replacing import UNFINISHED, begin
from mrag_eval.retrievers.index._hashing import ContentHash
from mrag_eval.retrievers.shards._manifest import (
    ApproximateRecord,
    FileRecord,
    LanguageRecord,
    Manifest,
    approximate_name,
    file_record,
    library_versions,
    write_manifest,
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
