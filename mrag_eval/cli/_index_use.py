"""``mrag-eval index merge``, ``milvus``, ``info`` and ``search``: the commands for a finished index."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from mrag_eval.cli._index_text import echo_approximate, echo_ids, echo_imported, echo_index, echo_stored, passages_of
from mrag_eval.cli._options import Memory, pairs_of
from mrag_eval.platform import number_of

_Index = Annotated[Path, typer.Argument(metavar="INDEX", help="The folder of an index.")]
_Uri = Annotated[
    str | None,
    typer.Option(
        "--uri",
        help="Look in Milvus (http://HOST:19530, or a local file ending in .db). INDEX is then the collection's name.",
    ),
]


def merge(
    path: Annotated[Path, typer.Argument(metavar="OUT", help="The folder to make.")],
    parts: Annotated[list[Path], typer.Argument(metavar="INDEX", help="Indexes built with the same embedder.")],
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an index that is already at OUT.")] = False,
    factory: Annotated[
        str | None,
        typer.Option(help="Rebuild the dense shards: flat (exact), auto, or a string of FAISS's index_factory."),
    ] = None,
    memory: Memory = None,
    recall: Annotated[
        float, typer.Option(min=0, max=1, help="The recall@20 that an approximate index is tuned to.")
    ] = 0.95,
) -> None:
    """Merge indexes into one without embedding anything again. No passage id may occur twice.

    With a single INDEX and --factory, copy it with another kind of search.
    """
    from mrag_eval.retrievers import merge_indexes

    index = merge_indexes(parts, path, overwrite=overwrite, factory=factory, memory_budget=memory, recall=recall)
    echo_index(path, index)


def center(path: _Index) -> None:
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


def milvus(
    path: _Index,
    uri: Annotated[str, typer.Option(help="Milvus: http://HOST:19530, or a local file ending in .db.")],
    collection: Annotated[
        str | None, typer.Option(help="The name of the collection. The default is the folder's name.")
    ] = None,
    vector_index: Annotated[
        str, typer.Option(help="How Milvus indexes dense vectors: FLAT (exact), IVF_FLAT or HNSW.")
    ] = "FLAT",
    param: Annotated[
        list[str] | None,
        typer.Option(
            "--param", metavar="NAME=N", help="A parameter of that index, such as M or nlist. May be repeated."
        ),
    ] = None,
    search_param: Annotated[
        list[str] | None,
        typer.Option(
            "--search-param", metavar="NAME=N", help="A parameter of its search, such as ef. May be repeated."
        ),
    ] = None,
    token_env: Annotated[str, typer.Option(help="The environment variable that contains the token.")] = "MILVUS_TOKEN",
    patience: Annotated[float, typer.Option(min=0, help="Seconds to wait for a server that does not answer.")] = 120.0,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace another index of that name.")] = False,
) -> None:
    """Load an index into Milvus and count its passages there.

    Run the command again to continue after an interruption.
    """
    from mrag_eval.retrievers import MilvusPlace, load_index, load_into_milvus

    index = load_into_milvus(
        load_index(path),
        MilvusPlace(uri, collection or path.resolve().name, token_env, patience),
        vector_index=vector_index,
        build=_numbers(param, "--param"),
        search=_numbers(search_param, "--search-param"),
        overwrite=overwrite,
    )
    typer.echo(f"{index.path}: {passages_of(index)}, counted there")
    name = collection or path.resolve().name
    typer.echo(f"use it     retrieval.kind=milvus,retrieval.uri={uri},retrieval.corpus={name}")


def info(
    path: _Index,
    check: Annotated[
        bool,
        typer.Option("--verify", help="Also read every file and compare its checksum (in Milvus: count the passages)."),
    ] = False,
    lengths: Annotated[
        bool,
        typer.Option("--lengths", help="Also read all passages and print their median length in characters."),
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="With --lengths: write them to this folder, for `report --layout mrag`."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the manifest, without its list of files.")] = False,
    uri: _Uri = None,
) -> None:
    """Show what an index contains and how it was built: kind, embedder, chunker, languages and size.

    Without --verify only the checksums of small files are compared. With --verify the exit code is 1 if any file is
    damaged.
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


def search(
    path: _Index,
    query: Annotated[str, typer.Argument(help="The query, in any language.")],
    k: Annotated[int, typer.Option("-k", min=1, help="Number of passages to print.")] = 5,
    lang: Annotated[
        list[str] | None, typer.Option("--lang", help="Search only this language. May be repeated.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object per passage.")] = False,
    embedder: Annotated[
        str | None,
        typer.Option(
            help="The index's embedder, as in `mrag-eval index build`. Needed if it is behind an address, runs code of "
            "its own or is in a local folder, and is not in the config file."
        ),
    ] = None,
    uri: _Uri = None,
) -> None:
    """Search an index and print the best passages: rank, score, language, id, title and the beginning of the text."""
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
