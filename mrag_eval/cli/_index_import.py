"""``mrag-eval index import``: an index from vectors that others have published."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from mrag_eval.cli._index_text import echo_imported, echo_index
from mrag_eval.cli._options import command, pairs_of


@command(
    "words embedder preset vectors(COLUMN) key texts(FILE) store langs lang limit skip_empty unverified resume "
    "overwrite device",
    "mrag_eval.retrievers:import_vectors",
)
def import_(words: list[str], *, key: list[str] | None = None, langs: str | None = None, **settings: Any) -> None:
    """Write an index of passages whose vectors exist already: they are read, not computed.

    100 passages are embedded again and compared. If any of them has another vector, the import ends with the likely
    reason, and nothing is at INDEX. An interrupted import continues with --resume.

    Args:
        words ([SOURCE] INDEX): Where the vectors are: hub:ORG/NAME[@REVISION], a Parquet file or a folder of them, a
            .npy or .f16bin file beside JSON Lines, or bergen:FOLDER; and the folder to make. A preset may know its
            SOURCE.
        key (FIELD=NAME): The column of a field: id, doc_id, title, text or lang. May be repeated. `id=` makes ids.
        langs (CODES): The languages to import, such as en,ko. Others are not read.
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
        keys=pairs_of(key, "FIELD=NAME", "--key", ".*"),
        langs=tuple(code for code in (langs or "").split(",") if code),
        **settings,
    )
    echo_index(Path(path), index)
    echo_imported(index.manifest.model_dump())
    typer.echo(f"use it     retrieval.corpus={path}   or name it in mrag.yaml, under corpora:")
