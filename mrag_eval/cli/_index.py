"""The commands for indexes: ``mrag-eval index build``, ``index import``, and those for finished ones."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from mrag_eval.cli._index_use import center, echo_imported, echo_index, info, merge, milvus, search
from mrag_eval.cli._options import App, command, pairs_of, refuse_with, was_given
from mrag_eval.platform import Count

if TYPE_CHECKING:
    from mrag_eval.retrievers import RayEngine

# Options that may be given with --add.
_WITH_ADD = ("source", "path", "add", "embedder", "lang", "split", "key", "device", "batch_size", "resume")


@command(
    "source path add kind store embedder chunker size lang split key joint segment stem simplified device batch_size "
    "window workers resume overwrite factory memory recall queries engine address actors",
    "mrag_eval.retrievers:BuildSettings",
)
def build(
    context: typer.Context,
    source: str,
    path: Path,
    *,
    add: bool = False,
    size: Count = 100,
    lang: str | None = None,
    split: str = "train",
    key: list[str] | None = None,
    memory: str | None = None,
    queries: Path | None = None,
    engine: str = "builtin",
    address: str | None = None,
    actors: Count | None = None,
    **settings: Any,
) -> None:
    """Build an index from documents. An interrupted build leaves nothing at INDEX; --resume continues it.

    With --add, the documents are cut and embedded like those already in INDEX, which are not embedded again. INDEX can
    be searched until the new one replaces it.

    Progress is shown on a terminal, and otherwise written to standard error every half minute.

    Args:
        source (DOCUMENTS): A .jsonl, .jsonl.gz or .parquet file, or SQuAD's .json; a folder of BEIR or MTEB, of such
            files, or of .txt or .md files; or hub:NAME.
        path (INDEX): The folder to make; with --add, the index to add to.
        add: Add the documents to the index at INDEX, with its own settings.
        size: Words or tokens of a passage, for the chunkers words, sentences and llamaindex.
        lang: The language of all documents, if they do not name it themselves.
        split: The split of a hub dataset.
        key (FIELD=NAME): The documents' name of a field: id, text, title or lang. May be repeated.
        queries (FILE): A file of queries to measure recall with, one per line.
        engine: builtin, or ray to cut and embed documents on Ray Data.
        address: Ray's cluster: auto or HOST:PORT. The default starts Ray on this machine.
        actors: Number of Ray's embedding actors. The default is one per GPU, or one per CPU without GPUs.
    """
    from mrag_eval.cli._screen import lines_of_progress
    from mrag_eval.config import load_config
    from mrag_eval.retrievers import ChunkConfig, add_documents, build_index, read_corpus

    documents = read_corpus(source, keys=pairs_of(key, "FIELD=NAME", "--key", ".*"), lang=lang, split=split)
    if add:
        fixed = [each.name for each in context.command.params if each.name and each.name not in _WITH_ADD]
        refuse_with(context, "--add: the settings of the index are used", *fixed)
        given = [settings["embedder"]] if was_given(context, "embedder") else []
        grown = add_documents(
            path,
            documents,
            embedders=[*given, *load_config().embedders],
            device=settings["device"] or "cpu",
            batch_size=settings["batch_size"],
            resume=settings["resume"],
        )
        echo_index(path, grown)
        return
    lines_of_progress()
    settings |= {"chunker": ChunkConfig(method=settings["chunker"], size=size), "memory_budget": memory}
    settings |= {"engine": _engine(engine, address, actors), "recall_queries": _lines(queries)}
    index = build_index(documents, path, **settings)
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
    from mrag_eval.platform import ConfigError, did_you_mean
    from mrag_eval.retrievers import RayEngine

    if engine == "ray":
        return RayEngine(address=address, actors=actors)
    if engine != "builtin":
        raise ConfigError(f"engine: unknown value '{engine}'{did_you_mean(engine, ('builtin', 'ray'))}")
    if address is not None or actors is not None:
        raise ConfigError("--actors and --address belong to --engine ray", "add --engine ray, or leave them out")
    return None


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


index_app = App(help="Build, import, merge, inspect and search the indexes of passages.", no_args_is_help=True)
index_app.command(short_help="Build an index from documents, or add documents to one.")(build)
index_app.command("import", short_help="Make an index from vectors that exist already, and check them.")(import_)
index_app.command(short_help="Merge several indexes into one.")(merge)
index_app.command(short_help="Compute the mean vector of each language of an index.")(center)
index_app.command(short_help="Load an index into Milvus.")(milvus)
index_app.command(short_help="Show what an index contains; --verify checks its files.")(info)
index_app.command(short_help="Search an index and print the passages.")(search)
