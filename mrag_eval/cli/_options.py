"""Checks of options that only the command line has: which may be combined, and the format of an output file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from mrag_eval.platform import check_output_file, write_whole

TracePlaces = Annotated[
    list[Path], typer.Argument(metavar="PLACE...", help="Output folders or sample files of runs (--log_samples).")
]
# What commands that load tasks take, as `mrag-eval run` does.
Metadata = Annotated[
    list[str] | None,
    typer.Option("--metadata", help="Settings of the tasks, as in `mrag-eval run --help`. May be repeated."),
]
Limit = Annotated[
    float | None,
    typer.Option("--limit", "-L", min=0, help="Number (or, below 1, the fraction) of rows of each task."),
]
IncludePath = Annotated[
    str | None, typer.Option("--include_path", "--include-path", help="A folder of your own task files.")
]
# Options of commands that make an index.
Device = Annotated[str, typer.Option(help="Where the embedder runs: cpu, cuda, cuda:N, mps or auto.")]
IndexKind = Annotated[str, typer.Option(help="The kind of index: dense, bm25 or hybrid.")]
IndexEmbedder = Annotated[str, typer.Option(help="The embedder of the index, as in `mrag-eval index build`.")]
Memory = Annotated[
    str | None,
    typer.Option(metavar="SIZE", help="With --factory auto: the memory that the index may use, such as 2GB."),
]
FORMS = ("md", "csv", "json")


def refuse_with(context: typer.Context, option: str, *names: str) -> None:
    """Raise BadParameter if a parameter among ``names`` was given, as it cannot be combined with ``option``."""
    given = {parameter.name: parameter.opts[0] for parameter in context.command.params if parameter.name in names}
    for name, flag in given.items():
        if was_given(context, name or ""):
            raise typer.BadParameter(f"cannot be combined with {option}", param_hint=flag)


def was_given(context: typer.Context, name: str) -> bool:
    """Return whether a parameter was given on the command line."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def pairs_of(given: Iterable[str] | None, form: str, flag: str, value: str = ".+") -> dict[str, str]:
    """Return what a repeated option such as KEY=VALUE names, with ``value`` a pattern of what follows the sign.

    Raises BadParameter for a text that is not of the ``form``.
    """
    found = {}
    for text in given or ():
        if not (pair := re.fullmatch(f"([^=]+)=({value})", text, re.DOTALL)):
            raise typer.BadParameter(f"'{text}' is not of the form {form}", param_hint=flag)
        found[pair[1]] = pair[2]
    return found


def form_of(form: str | None, output: Path | None, others: Sequence[str] = ()) -> str:
    """Return the format of an output: ``form``, else that of ``output``'s extension, else ``md``.

    Raises BadParameter for an ending that is neither a form nor among ``others``, and for one that contradicts
    ``form``.
    """
    if output is None:
        return form or "md"
    ending = output.suffix.removeprefix(".")
    known = (*others, *FORMS)
    if ending not in known:
        endings = ", ".join(f".{one}" for one in known)
        raise typer.BadParameter(f"{output}: the file's name must end in one of {endings}", param_hint="--output")
    if form is not None and form != ending:
        raise typer.BadParameter(f"{form} does not fit the name {output}; leave one of them out", param_hint="--format")
    return ending


def writable_file(context: typer.Context, parameter: typer.CallbackParam, value: Path | None) -> Path | None:
    """Return the file to write that a flag names; raise ConfigError, before any work is done, if it cannot be."""
    if value is not None and was_given(context, parameter.name or ""):
        check_output_file(value, parameter.opts[0])
    return value


def output_file(*flags: str, **known: Any) -> Any:
    """Return the option of a file to write, with arguments of ``typer.Option``."""
    return typer.Option(*flags, callback=writable_file, **known)


def write_or_print(text: str, output: Path | None) -> None:
    """Write ``text`` to the file ``output``, or print it if no file is named."""
    if output is None:
        typer.echo(text)
    else:
        write_whole(output, f"{text}\n")


@contextmanager
def warned_of_unsupported(paths: Sequence[Path | None], *, texts: bool = False) -> Iterator[None]:
    """Print afterwards, to standard error, every score of the runs at ``paths`` that does not follow from its samples.

    Sample files that the command reads inside are read once, ``texts`` as in :func:`mrag_eval.report.read_once`.
    """
    from mrag_eval.report import read_once, unsupported

    with read_once(texts=texts):
        yield
        for line in unsupported([path for path in paths if path is not None]):
            typer.echo(f"warning: {line}", err=True)
