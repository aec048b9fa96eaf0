"""``mrag-eval index import``: an index from vectors that others have published."""

from __future__ import annotations

from pathlib import Path

import typer

from mrag_eval.cli._index_text import echo_imported, echo_index
from mrag_eval.cli._options import Count, command, pairs_of


@command()
def import_(
    words: list[str],
    *,
    embedder: str | None = None,
    preset: str | None = None,
    vectors: str = "",
    key: list[str] | None = None,
    texts: str | None = None,
    store: str = "float32",
    langs: str | None = None,
    lang: str | None = None,
    limit: Count | None = None,
    skip_empty: bool = False,
    unverified: bool = False,
    resume: bool = False,
    overwrite: bool = False,
    device: str = "cpu",
) -> None:
    """Write an index of passages whose vectors exist already: they are read, not computed.

    100 passages are embedded again and compared. If any of them has another vector, the import ends with the likely
    reason, and nothing is at INDEX. An interrupted import continues with --resume.

    Args:
        words ([SOURCE] INDEX): Where the vectors are: hub:ORG/NAME[@REVISION], a Parquet file or a folder of them, a
            .npy or .f16bin file beside JSON Lines, or bergen:FOLDER; and the folder to make. A preset may know its
            SOURCE.
        embedder: The embedder that made the vectors, as in `mrag-eval index build`. A preset knows its own.
        preset: A published set: upstash-bge-m3, cohere-v3, cohere-v3-int8 or bergen (docs/corpora.md).
        vectors (COLUMN): The column of the vectors, if it is not called embedding or emb.
        key (FIELD=NAME): The column of a field: id, doc_id, title, text or lang. May be repeated. `id=` makes ids.
        texts (FILE): The passages of a .npy or .f16bin file (JSON Lines, a row each; by default beside it); for bergen:
            the copy of Wikipedia that its passages are cut from.
        store: The numbers of dense vectors: float32, float16 or int8 (a quarter of the size).
        langs (CODES): The languages to import, such as en,ko. Others are not read.
        lang: The language of all passages, if neither a folder nor a column names it.
        limit: Passages of each language to import; the default is all.
        skip_empty: Leave out rows without text, and count them.
        unverified: Write the index although the embedder does not give the same vectors, or cannot be run. Manifest and
            results then say: not verified.
        resume: Continue an interrupted import.
        overwrite: Replace an index that is already at INDEX.
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
