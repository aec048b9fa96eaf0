"""Commands made of functions and records that declare their options; checks that only the command line has."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from importlib import import_module
from inspect import Parameter, Signature, getdoc
from pathlib import Path
from shutil import get_terminal_size
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import typer
from typer.core import TyperCommand
from typer.models import OptionInfo

from mrag_eval.platform import Allowed, Setting, check_output_file, listed, settings_of, write_whole

Stub = Callable[[], None]
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

    Raises BadParameter for a text that is not of the ``form``, and for a key with two values.
    """
    found: dict[str, str] = {}
    for text in given or ():
        if not (pair := re.fullmatch(f"([^=]+)=({value})", text, re.DOTALL)):
            raise typer.BadParameter(f"'{text}' is not of the form {form}", param_hint=flag)
        if found.setdefault(pair[1], pair[2]) != pair[2]:
            raise typer.BadParameter(f"'{pair[1]}' is given twice: the last would count", param_hint=flag)
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


Limit = Annotated[float, Allowed(least=0)]
NewFile = Annotated[Path, typer.Option(callback=writable_file)]


# Options that several commands have.
_SHARED = listed(
    """
    metadata (--metadata): Settings of the tasks, as in `mrag-eval run --help`. May be repeated.
    limit (-L): Number (or, below 1, the fraction) of rows of each task.
    include_path (--include_path --include-path): A folder of your own task files.
    device: Where the embedder runs: cpu, cuda, cuda:N, mps or auto.
    kind: The kind of index: dense, bm25 or hybrid.
    embedder: The embedder of the index, as in `mrag-eval index build`.
    memory (SIZE): With --factory auto: the memory that the index may use, such as 2GB.
    path (INDEX): The folder of an index.
    uri: Look in Milvus (http://HOST:19530, or a local file ending in .db). INDEX is then the collection's name.
    places (PLACE...): Output folders or sample files of runs (--log_samples).
    samples (SAMPLES): Output folders of runs, or their samples_*.jsonl.
    panel (NAME): A judge: a model of the config file. Repeat the option, or separate names by commas.
    prompt: The rubric: a prompt that docs/judges.md names, or the path of your own template.
    """
)


class App(typer.Typer):
    """A group of commands whose options are declared."""

    def command(self, *arguments: Any, **known: Any) -> Callable[[Stub], Stub]:  # type: ignore[override]
        """Return a decorator that adds a command."""
        return super().command(*arguments, **{"cls": DeclaredCommand, **known})


class DeclaredCommand(TyperCommand):
    """A command whose options are made of their declarations when they are needed, as reading them takes time."""

    def __init__(self, *arguments: Any, **known: Any) -> None:
        super().__init__(*arguments, **known)
        self._made: Any = vars(self.callback)["made"]
        del self.params, self.callback

    def __getattr__(self, name: str) -> Any:
        if name not in ("params", "callback"):
            raise AttributeError(name)
        whole = typer.Typer(add_completion=False)
        whole.command()(self._made())
        made = typer.main.get_command(whole)
        self.params, self.callback = made.params, made.callback
        return getattr(self, name)


def command(names: str = "", *owners: str) -> Callable[[Callable[..., None]], Stub]:
    """Return a decorator for the function of a command of an :class:`App`.

    Its parameters are the arguments of the command, its keyword-only parameters the options, and its docstring has
    their help in a list, ``Args:``. An entry may name flags and what stands for the value in brackets: ``seed (-s N):
    the help``. What the list does not explain is explained by an owner, or for several commands in ``_SHARED``.

    Args:
        names: All options in the order of the help, if some are those of ``owners``, with flags in brackets behind
            them. The function takes those as ``**settings``.
        owners: Functions or records with more options, as MODULE:NAME.
    """

    def registered(function: Callable[..., None]) -> Stub:
        def stub() -> None: ...

        stub.__name__, stub.__doc__ = function.__name__, (getdoc(function) or "").partition("Args:\n")[0]
        vars(stub)["made"] = lambda: _with_options(function, names, owners)
        return stub

    return registered


def _with_options(function: Callable[..., None], names: str, owners: Sequence[str]) -> Callable[..., None]:
    """Return a function with the arguments and options of a command as typer reads them."""
    known: dict[str, Setting] = {}
    for owner in owners:
        module, _, name = owner.partition(":")
        known |= {each.name: replace(each, leads=False) for each in settings_of(getattr(import_module(module), name))}
    own = {each.name: each for each in settings_of(function)}
    asked = {name: "" for name, each in own.items() if not names or each.type is typer.Context}
    asked |= dict(re.findall(r"(\w+)(?:\(([^)]*)\))?", names))
    unset = {name: each.default for name, each in known.items() if name not in own}
    parameters = []
    for name, words in asked.items():
        each = own.get(name) or known[name]
        if each.type is typer.Context:
            parameters.append(Parameter(name, Parameter.KEYWORD_ONLY, annotation=typer.Context))
            continue
        if not each.help and name in known:
            each = replace(each, words=known[name].words, help=known[name].help)
        if not each.help:
            each = replace(each, words=_SHARED[name][0], help=_SHARED[name][1])
        parameters.append(_parameter(replace(each, words=words or each.words)))

    def run(**values: Any) -> None:
        for name, value in values.items():
            # typer has None for a list that is not given
            if name in unset and isinstance(value, list | None):
                values[name] = unset[name] if value is None else tuple(value)
        function(**values)

    made: Any = run
    made.__signature__ = Signature(parameters)
    made.__annotations__ = {each.name: each.annotation for each in parameters}
    return run


def _parameter(each: Setting) -> Parameter:
    """Return the parameter that typer makes an argument or an option of."""
    members = get_args(each.type) if get_origin(each.type) in (Union, UnionType) else (each.type,)
    kind: Any = next((simple for simple in (bool, Path, str, int, float) if simple in members), None)
    if kind is None:
        kind = next(member for member in members if member is not NoneType)
        if get_origin(kind) is not tuple or Ellipsis in get_args(kind):
            kind = list[get_args(kind)[0]]  # type: ignore[misc]
    words = each.words.split()
    flags = [word for word in words if word.startswith("-")]
    default = None if get_origin(kind) is list and each.default == () else each.default
    option: Any = next((copy(n) for n in each.notes if isinstance(n, OptionInfo)), typer.Option())
    if each.leads:
        option = typer.Argument()
    elif not any(word.startswith("--") or word == f"-{each.name}" for word in flags):
        flag = f"--{each.name.replace('_', '-')}"
        flags.insert(0, f"{flag}/--no-{flag[2:]}" if kind is bool and default is not False else flag)
    option.param_decls, option.help = flags or None, each.help
    option.metavar = " ".join(word for word in words if not word.startswith("-")) or None
    option.min, option.max = each.allowed.least, each.allowed.most
    typed: Any = kind | None if default is None or NoneType in members else kind
    return Parameter(each.name, Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[typed, option])


def screen_width() -> int:
    """Return the columns of the terminal, 100 where there is none."""
    return get_terminal_size((100, 24)).columns


def write_or_print(text: str, output: Path | None) -> None:
    """Write ``text`` to the file ``output``, or print it if no file is named."""
    if output is None:
        typer.echo(text)
    else:
        write_whole(output, f"{text}\n")


@contextmanager
def warned_of_unsupported(paths: Sequence[Path | None]) -> Iterator[None]:
    """Print afterwards, to standard error, every score of the runs at ``paths`` that does not follow from its samples.

    Sample files that the command reads inside are read once.
    """
    from mrag_eval.report import read_once, unsupported

    with read_once():
        yield
        for line in unsupported([path for path in paths if path is not None]):
            typer.echo(f"warning: {line}", err=True)
