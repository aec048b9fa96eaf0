"""``mrag-eval index merge``, ``center``, ``milvus``, ``info`` and ``search``: the commands for a finished index."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mrag_eval.cli._options import command, pairs_of
from mrag_eval.platform import Allowed, Count, number_of

if TYPE_CHECKING:
    from mrag_eval.retrievers import Edition, Index


@command("path parts overwrite factory memory recall", "mrag_eval.retrievers:merge_indexes")
def merge(path: Path, parts: list[Path], *, memory: str | None = None, **settings: Any) -> None:
    """Merge indexes into one without embedding anything again. No passage id may occur twice.

    With a single INDEX and --factory, copy it with another kind of search.

    Args:
        path (OUT): The folder to make.
        parts (INDEX): Indexes built with the same embedder.
    """
    from mrag_eval.retrievers import merge_indexes

    index = merge_indexes(parts, path, memory_budget=memory, **settings)
    echo_index(path, index)


@command()
def center(path: Path) -> None:
    """Compute the mean vector of each language from the stored vectors, for retrieval.merge=centered and turns.

    A new index has them already. Nothing is embedded, and the index keeps its fingerprint. After an interruption, run
    the command again.
    """
    from mrag_eval.retrievers import center_index

    means = center_index(path)
    count = sum(means.counts.values())
    typer.echo(
        f"{path}: means of {number_of(len(means.counts), 'language')}, {number_of(count, 'vector')} · "
        f"fingerprint {means.fingerprint[:8]}"
    )


@command(
    "path uri collection vector_index param search_param token_env patience overwrite",
    "mrag_eval.retrievers:MilvusPlace",
    "mrag_eval.retrievers:load_into_milvus",
)
def milvus(
    path: Path,
    *,
    uri: str,
    collection: str | None = None,
    param: list[str] | None = None,
    search_param: list[str] | None = None,
    token_env: str = "MILVUS_TOKEN",
    patience: Annotated[float, Allowed(least=0)] = 120.0,
    **settings: Any,
) -> None:
    """Load an index into Milvus and count its passages there.

    Run the command again to continue after an interruption.

    Args:
        uri: Milvus: http://HOST:19530, or a local file ending in .db.
        collection: The name of the collection. The default is the folder's name.
        param (NAME=N): A parameter of that index, such as M or nlist. May be repeated.
        search_param (NAME=N): A parameter of its search, such as ef. May be repeated.
    """
    from mrag_eval.retrievers import MilvusPlace, load_index, load_into_milvus

    name = collection or path.resolve().name
    index = load_into_milvus(
        load_index(path),
        MilvusPlace(uri, name, token_env, patience),
        build=_numbers(param, "--param"),
        search=_numbers(search_param, "--search-param"),
        **settings,
    )
    typer.echo(f"{index.path}: {passages_of(index)}, counted there")
    typer.echo(f"use it     retrieval.kind=milvus,retrieval.uri={uri},retrieval.corpus={name}")


@command()
def info(
    path: Path,
    *,
    check: bool = False,
    lengths: bool = False,
    output: Path | None = None,
    as_json: bool = False,
    uri: str | None = None,
) -> None:
    """Show what an index contains and how it was built: kind, embedder, chunker, languages and size.

    Without --verify only the checksums of small files are compared. With --verify the exit code is 1 if any file is
    damaged.

    Args:
        check (--verify): Also read every file and compare its checksum (in Milvus: count the passages).
        lengths: Also read all passages and print their median length in characters.
        output (-o): With --lengths: write them to this folder, for `report --layout mrag`.
        as_json (--json): Print the manifest, without its list of files.
    """
    from mrag_eval.platform import check_output
    from mrag_eval.report import measure_lengths, write_lengths
    from mrag_eval.retrievers import MilvusPlace, index_info, load_index, milvus_info

    if lengths and uri is not None:
        raise typer.BadParameter("reads the folder of an index, not Milvus", param_hint="--lengths")
    if output is not None:
        if not lengths:
            raise typer.BadParameter("needs --lengths", param_hint="--output")
        check_output(output, "--output")
    verified = _verified(path, uri) if check else None
    found = index_info(path) if uri is None else milvus_info(MilvusPlace(uri, str(path)))
    measured = measure_lengths(path) if lengths else None
    if measured is not None and output is not None:
        typer.echo(f"{write_lengths(output, measured)}", err=True)
    if as_json:
        shown = {**found, **({} if verified is None else {"verified": verified})}
        shown |= {} if measured is None else {"median_characters": dict(measured.characters)}
        typer.echo(json.dumps(shown, indent=2, ensure_ascii=False))
        return
    embedder = found["embedder"]
    lines = {
        "index": found["path"],
        "passages": f"{found['passages']:,} · "
        + ", ".join(f"{lang} {record['passages']:,}" for lang, record in found["languages"].items()),
        "kind": f"{found['kind']}{', one joint lexical shard' if found['joint'] else ''}",
        "embedder": f"{embedder['name']} ({embedder['dim']} dimensions)" if embedder else "none",
        "chunker": _chunker(found["chunker"]),
        "lengths": "" if measured is None else _lengths(measured.characters),
        "size": f"{found['bytes'] / 1e6:,.1f} MB" if "bytes" in found else "",
        "milvus": _settings(found["settings"]) if "settings" in found else "",
        "content": found["content_hash"],
        "fingerprint": found["fingerprint"],
        "verified": verified or "",
    }
    for name, value in lines.items():
        if value:
            typer.echo(f"{name:<11} {value}")
    if uri is None:
        echo_ids(load_index(path))
    echo_imported(found)
    echo_stored(found)
    if found["kind"] in ("dense", "hybrid") and uri is None:
        echo_approximate(found, asked=True)


def _lengths(characters: Mapping[str, float]) -> str:
    found = (f"{lang} {length:g}" for lang, length in characters.items())
    return f"{', '.join(found)} (median characters of a passage, its title included if it is in front)"


def _verified(path: Path, uri: str | None) -> str:
    """Return a description of the check; exit with code 1 and a line on standard error if anything is damaged."""
    from mrag_eval.platform import CorpusError
    from mrag_eval.retrievers import MilvusPlace, verify_index, verify_milvus

    try:
        if uri is not None:
            return f"{verify_milvus(MilvusPlace(uri, str(path))):,} passages, as many as were loaded"
        return f"{verify_index(path)} files, all as they were built"
    except CorpusError as error:
        typer.echo(f"mrag-eval: {error}", err=True)
        raise typer.Exit(1) from None


@command()
def search(
    path: Path,
    query: str,
    *,
    k: Count = 5,
    lang: list[str] | None = None,
    as_json: bool = False,
    embedder: str | None = None,
    uri: str | None = None,
) -> None:
    """Search an index and print the best passages: rank, score, language, id, title and the beginning of the text.

    Args:
        query: The query, in any language.
        k (-k): Number of passages to print.
        lang: Search only this language. May be repeated.
        as_json (--json): Print one JSON object per passage.
        embedder: The index's embedder, as in `mrag-eval index build`. Needed if it is behind an address, runs code of
            its own or is in a local folder, and is not in the config file.
    """
    from mrag_eval.config import load_config
    from mrag_eval.retrievers import MilvusPlace, check_embedder, load_index, open_milvus

    own = [*([] if embedder is None else [embedder]), *load_config().embedders]
    if uri is None:
        index = load_index(path, expect_embedder=embedder, embedders=own)
    else:
        index = open_milvus(MilvusPlace(uri, str(path)), embedders=own)
        if embedder is not None:
            check_embedder(index, embedder)
    (hits,) = index.search([query], k, languages=lang or None)
    for hit in hits:
        if as_json:
            typer.echo(json.dumps(hit.to_dict(), ensure_ascii=False))
        else:
            text = " ".join(hit.text.split())
            shown = f"{text[:157]}..." if len(text) > 160 else text
            typer.echo(f"{hit.rank:>2}  {hit.score:.4f}  {hit.lang}  {hit.id}  {hit.title}\n    {shown}")


def _numbers(pairs: list[str] | None, flag: str) -> dict[str, int]:
    return {name: int(value) for name, value in pairs_of(pairs, "NAME=N", flag, r"\d+").items()}


def _settings(settings: dict[str, Any]) -> str:
    index = {key: value for key, value in settings["index"].items() if key != "type"} | settings["search"]
    return " ".join([str(settings["index"]["type"]), *(f"{key}={value}" for key, value in index.items())])


def _chunker(chunker: Any) -> str:
    if isinstance(chunker, dict):
        return ", ".join(f"{key} {value}" for key, value in chunker.items() if value is not None)
    return str(chunker)


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
