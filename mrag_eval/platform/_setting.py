"""Settings that are declared once, as fields of a dataclass or parameters of a function, with their words."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from inspect import Parameter, getdoc, signature
from sys import modules
from types import SimpleNamespace, UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints

from mrag_eval.platform._errors import ConfigError, did_you_mean

F = TypeVar("F", bound=Callable[..., Any])
_LIST = r"^(?:Attributes|Args):\n"
_ENTRY = re.compile(r"^    (\w+)(?: \(([^)\n]*)\))?: (.+(?:\n {8}.+)*)", re.MULTILINE)


@dataclass(frozen=True)
class Allowed:
    """The values that a field takes: ``Annotated[int, Allowed(least=1)]``.

    Attributes:
        one_of: all of them; empty: any.
        least: the smallest number.
        most: the largest number.
        kinds: the kinds of index that take another value than the default; empty: all.
        unless: why the other kinds do not, and the next step.
    """

    one_of: tuple[str, ...] = ()
    least: int | None = None
    most: int | None = None
    kinds: tuple[str, ...] = ()
    unless: tuple[str, str] = ("", "")

    def check(self, name: str, value: Any, default: Any, kind: str) -> None:
        """Raise ConfigError for another value."""
        if self.one_of and value not in self.one_of:
            raise ConfigError(f"{name}: unknown value '{value}'{did_you_mean(value, self.one_of)}")
        number = isinstance(value, int | float)
        if number and self.least is not None and value < self.least:
            raise ConfigError(f"{name} is {value}, it must be at least {self.least}", "leave it out for the default")
        if number and self.most is not None and value > self.most:
            raise ConfigError(f"{name} is {value}, it must be at most {self.most}", "leave it out for the default")
        if self.kinds and value and value != default and kind not in self.kinds:
            named = f"{name} '{value}'" if isinstance(value, str) else name
            raise ConfigError(f"{named} cannot be combined with kind '{kind}'{self.unless[0]}", self.unless[1])


Count = Annotated[int, Allowed(least=1)]
Natural = Annotated[int, Allowed(least=0)]


@dataclass(frozen=True)
class Setting:
    """A field of a dataclass, or a parameter of a function, with its entry in the list of the docstring.

    Attributes:
        name: its name.
        type: its type, without what it may be annotated with.
        default: its default; ``Parameter.empty`` if it has to be given.
        help: what the docstring says of it, in one line.
        words: what stands in brackets behind its name there: the flags of its option, and what stands for the value.
        notes: what its type is annotated with.
        leads: whether it is a positional parameter.
    """

    name: str
    type: Any
    default: Any
    help: str
    words: str
    notes: tuple[Any, ...]
    leads: bool

    @property
    def allowed(self) -> Allowed:
        """Return the values that it takes."""
        return next((note for note in self.notes if isinstance(note, Allowed)), Allowed())


def listed(text: str) -> dict[str, tuple[str, str]]:
    """Return name -> what stands in brackets behind it, and its explanation, of a list in a docstring."""
    return {name: (words, " ".join(said.split())) for name, words, said in _ENTRY.findall(text)}


def _listing(owner: Any) -> str:
    """Return the list of attributes or arguments of a docstring."""
    return re.split(_LIST, getdoc(owner) or "", maxsplit=1, flags=re.MULTILINE)[-1]


@cache
def settings_of(owner: Any) -> list[Setting]:
    """Return the settings that a dataclass or a function declares."""
    said = listed(_listing(owner))
    found = []
    for each in signature(owner).parameters.values():
        holder = SimpleNamespace(__annotations__={each.name: each.annotation})
        try:
            kind = get_type_hints(holder, vars(modules[owner.__module__]), include_extras=True)[each.name]
        except NameError:  # of a name that only type checkers import
            kind = Any
        words, text = said.get(each.name, ("", ""))
        plain, notes = _plain(kind)
        leads = each.kind is Parameter.POSITIONAL_OR_KEYWORD
        found.append(Setting(each.name, plain, each.default, text, words, notes, leads))
    return found


def _plain(kind: Any) -> tuple[Any, tuple[Any, ...]]:
    """Return a type without what it, or a member of a union, is annotated with; and these notes."""
    if get_origin(kind) is Annotated:
        return kind.__origin__, kind.__metadata__
    if get_origin(kind) not in (Union, UnionType):
        return kind, ()
    members, notes = zip(*map(_plain, get_args(kind)), strict=True)
    return Union[members], sum(notes, ())  # noqa: UP007


def takes_settings(record: Any) -> Callable[[F], F]:
    """Return a decorator that gives a function with ``**settings`` their signature and documentation."""

    def documented(function: F) -> F:
        own = signature(function)
        given = [each for each in own.parameters.values() if each.kind is not Parameter.VAR_KEYWORD]
        named = [Parameter(s.name, Parameter.KEYWORD_ONLY, default=s.default) for s in settings_of(record)]
        function.__signature__ = own.replace(parameters=[*given, *named])  # type: ignore[attr-defined]
        function.__doc__ = f"{getdoc(function)}\n{_listing(record)}"
        return function

    return documented
