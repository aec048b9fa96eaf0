"""``mrag-eval index build``: an index from documents, or more documents in an index."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from inspect import Parameter, signature
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer
from typer.core import TyperCommand

from mrag_eval.cli._index_text import echo_index
from mrag_eval.cli._options import Memory, pairs_of, refuse_with, was_given

if TYPE_CHECKING:
    from mrag_eval.retrievers import RayEngine

# The order of the help: options of the command line alone stand beside the settings that they belong to.
_FIRST = ("context", "source", "path", "add", "kind", "store", "embedder", "chunker", "size", "lang", "split", "key")
_LAST = ("memory", "recall", "queries", "engine", "address", "actors")
# Settings whose options have other names or types, and those without an option.
_OTHERWISE = ("memory_budget", "recall_queries", "engine")
_IN_PYTHON = ("progress", "bm25", "token_counter", "source", "selection", "name")
# Options that may be given with --add.
_WITH_ADD = ("source", "path", "add", "embedder", "lang", "split", "key", "device", "batch_size", "resume")


class BuildCommand(TyperCommand):
    """Take the settings of an index as options, read when they are needed, as importing them takes time."""

    def __init__(self, *arguments: Any, **known: Any) -> None:
        super().__init__(*arguments, **known)
        del self.params, self.callback

    def __getattr__(self, name: str) -> Any:
        if name not in ("params", "callback"):
            raise AttributeError(name)
        whole = typer.Typer(add_completion=False)
        whole.command()(_with_options())
        made = typer.main.get_command(whole)
        self.params, self.callback = made.params, made.callback
        return getattr(self, name)


def build() -> None:
    """Build an index from documents. An interrupted build leaves nothing at INDEX; --resume continues it.

    With --add, the documents are cut and embedded like those already in INDEX, which are not embedded again. INDEX can
    be searched until the new one replaces it.

    Progress is shown on a terminal, and otherwise written to standard error every half minute.
    """


@cache
def _with_options() -> Callable[..., None]:
    """Return the command, with an option for each of its ``**settings``."""
    own = signature(_build, eval_str=True)
    parameters = [each for each in own.parameters.values() if each.kind is not Parameter.VAR_KEYWORD] + list(_options())
    order = [*_FIRST, *(p.name for p in parameters if p.name not in (*_FIRST, *_LAST)), *_LAST]
    parameters.sort(key=lambda each: order.index(each.name))
    made: Any = _build
    made.__signature__ = own.replace(parameters=parameters)
    made.__annotations__ = {each.name: each.annotation for each in parameters}
    return _build


def _options() -> Iterator[Parameter]:
    from mrag_eval.retrievers import BuildSettings, settings_of

    for each in settings_of(BuildSettings):
        if each.name in (*_OTHERWISE, *_IN_PYTHON):
            continue
        kinds = get_args(each.type) or (each.type,)
        kind = next(simple for simple in (str, bool, int, float) if simple in kinds)
        flag = f"--{each.name.replace('_', '-')}"
        if kind is bool and NoneType in kinds:
            flag += f"/--no-{each.name}"
        shown, least, most = each.default is not None, each.allowed.least, each.allowed.most
        option = typer.Option(flag, help=each.help, show_default=shown, min=least, max=most)
        typed: Any = Annotated[kind | None if NoneType in kinds else kind, option]
        yield Parameter(each.name, Parameter.KEYWORD_ONLY, default=each.default, annotation=typed)


def _build(
    context: typer.Context,
    source: Annotated[
        str,
        typer.Argument(
            metavar="DOCUMENTS",
            help="A .jsonl, .jsonl.gz or .parquet file; a folder of such files, or of .txt or .md files; or hub:NAME.",
        ),
    ],
    path: Annotated[Path, typer.Argument(metavar="INDEX", help="The folder to make; with --add, the index to add to.")],
    *,
    add: Annotated[
        bool,
        typer.Option("--add", help="Add the documents to the index at INDEX, with its own settings."),
    ] = False,
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
    memory: Memory = None,
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
    **settings: Any,
) -> None:
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
