"""``mrag-eval index import``: an index from vectors that others have published."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mrag_eval.cli._index_text import echo_imported, echo_index
from mrag_eval.cli._options import Device, pairs_of


def import_(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="[SOURCE] INDEX",
            help="Where the vectors are: hub:ORG/NAME[@REVISION], a Parquet file or a folder of them, a .npy or "
            ".f16bin file beside JSON Lines, or bergen:FOLDER; and the folder to make. A preset may know its SOURCE.",
        ),
    ],
    embedder: Annotated[
        str | None,
        typer.Option(help="The embedder that made the vectors, as in `mrag-eval index build`. A preset knows its own."),
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option(help="A published set: upstash-bge-m3, cohere-v3, cohere-v3-int8 or bergen (docs/corpora.md)."),
    ] = None,
    vectors: Annotated[
        str, typer.Option(metavar="COLUMN", help="The column of the vectors, if it is not called embedding or emb.")
    ] = "",
    key: Annotated[
        list[str] | None,
        typer.Option(
            "--key",
            metavar="FIELD=NAME",
            help="The column of a field: id, doc_id, title, text or lang. May be repeated. `id=` makes ids.",
        ),
    ] = None,
    texts: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="The passages of a .npy or .f16bin file (JSON Lines, a row each; by default beside it); for bergen: "
            "the copy of Wikipedia that its passages are cut from.",
        ),
    ] = None,
    store: Annotated[
        str, typer.Option(help="The numbers of dense vectors: float32, float16 or int8 (a quarter of the size).")
    ] = "float32",
    langs: Annotated[
        str | None, typer.Option(metavar="CODES", help="The languages to import, such as en,ko. Others are not read.")
    ] = None,
    lang: Annotated[
        str | None, typer.Option(help="The language of all passages, if neither a folder nor a column names it.")
    ] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Passages of each language to import; the default is all.")
    ] = None,
    skip_empty: Annotated[
        bool, typer.Option("--skip-empty", help="Leave out rows without text, and count them.")
    ] = False,
    unverified: Annotated[
        bool,
        typer.Option(
            "--unverified",
            help="Write the index although the embedder does not give the same vectors, or cannot be run. Manifest and "
            "results then say: not verified.",
        ),
    ] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Continue an interrupted import.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an index that is already at INDEX.")] = False,
    device: Device = "cpu",
) -> None:
    """Write an index of passages whose vectors exist already: they are read, not computed.

    100 passages are embedded again and compared. If any of them has another vector, the import ends with the likely
    reason, and nothing is at INDEX. An interrupted import continues with --resume.
    """
    from mrag_eval.cli._screen import lines_of_progress
    from mrag_eval.retrievers import import_vectors

    if len(words) > 2:
        raise typer.BadParameter(f"expected SOURCE and INDEX, got {len(words)} words", param_hint="INDEX")
    source, path = (None, words[0]) if len(words) == 1 else words
    lines_of_progress()
    index = import_vectors(
        source,
        Path(path),
        embedder=embedder,
        preset=preset,
        vectors=vectors,
        keys=pairs_of(key, "FIELD=NAME", "--key", ".*"),
        texts=texts,
        store=store,
        langs=tuple(code for code in (langs or "").split(",") if code),
        lang=lang,
        limit=limit,
        skip_empty=skip_empty,
        unverified=unverified,
        resume=resume,
        overwrite=overwrite,
        device=device,
    )
    echo_index(Path(path), index)
    echo_imported(index.manifest.model_dump())
    typer.echo(f"use it     retrieval.corpus={path}   or name it in mrag.yaml, under corpora:")
