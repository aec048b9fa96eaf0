"""The lines about a finished index that several commands print."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from mrag_eval.platform import number_of

if TYPE_CHECKING:
    from mrag_eval.retrievers import Edition, Index


def passages_of(index: Index) -> str:
    """Return the number of passages, and by language."""
    by_language = ", ".join(f"{lang} {n:,}" for lang, n in sorted(index.counts.items()))
    return f"{number_of(len(index), 'passage')} ({by_language})"


def echo_part(edition: Edition, index: Index) -> None:
    """Print what an edition gave to the index of its language."""
    record = index.manifest.languages[edition.lang]
    articles, passages = number_of(record.documents, "article"), number_of(record.passages, "passage")
    typer.echo(f"{edition.lang:<8} {articles}, {passages} · {edition.source}")


def echo_index(path: Path, index: Index) -> None:
    """Print the number of passages by language, and how they are searched."""
    typer.echo(f"{path}: {passages_of(index)}")
    echo_ids(index)
    manifest = index.manifest.model_dump()
    echo_stored(manifest)
    echo_approximate(manifest, asked=index.manifest.approximation is not None)


def echo_ids(index: Index) -> None:
    """Print the ids of the first passage and of its document, which a benchmark's relevant_ids name."""
    for passage in index.first_passages(1):
        same = passage.id == passage.doc_id
        ids = f"'{passage.id}'" if same else f"document '{passage.doc_id}', passage '{passage.id}'"
        typer.echo(f"{'ids':<11} {ids} (the first; relevant_ids takes {'it' if same else 'either'})")


def echo_stored(manifest: dict[str, Any]) -> None:
    """Print a line for each language whose vectors are not stored as float32."""
    if manifest["store"] == "float32":
        return
    for lang, record in manifest["languages"].items():
        stored = record["stored"]
        recall = "recall against float32 not measured: the vectors were read from other indexes"
        if stored is not None:
            recall = (
                f"recall@{stored['k']} {stored['recall']:.3f} against float32 "
                f"({stored['queries']} queries, {stored['queries_from']}; among {stored['among']:,} vectors)"
            )
        typer.echo(f"{'stored':<11} {lang}: {manifest['store']} · {recall}")


def echo_approximate(manifest: dict[str, Any], *, asked: bool) -> None:
    """Print a line for each language that is searched approximately, and one for the others if ``asked``."""
    records = {lang: record["approximate"] for lang, record in manifest["languages"].items()}
    for lang, record in records.items():
        if record is not None:
            tuned = f", {record['parameter']} {record['value']}" if record["parameter"] else ""
            parts = (
                f"{lang}: {record['factory']}{tuned}, {record['rescore']} candidates a hit scored exactly",
                f"recall@{record['k']} {record['recall']:.3f} (aim {record['aimed_at']:.2f}; "
                f"{record['queries']} queries, {record['queries_from']})",
                "mapped" if record["mapped"] else "in memory",
            )
            typer.echo(f"{'search':<11} {' · '.join(parts)}")
    exact = [lang for lang, record in records.items() if record is None]
    if asked and exact:
        typer.echo(f"{'search':<11} {', '.join(exact)}: exact")


def echo_imported(manifest: dict[str, Any]) -> None:
    """Print a line for each source of imported vectors: what their check found, and where they are from."""
    from mrag_eval.retrievers import ImportRecord

    for record in (ImportRecord.model_validate(one) for one in manifest.get("imported") or ()):
        source = record.source if record.revision is None else f"{record.source}@{record.revision[:12]}"
        notes = [f"{record.left_out:,} rows without text left out"] if record.left_out else []
        notes += ["scaled to unit length"] if record.scaled else []
        typer.echo(f"{'vectors':<11} {' · '.join([record.status, source, *notes])}")
