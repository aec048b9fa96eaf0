"""Settings that are declared once, as fields of a dataclass; the signature and the options that take them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cache
from inspect import Parameter, getdoc, signature
from typing import Annotated, Any, TypeVar, get_origin, get_type_hints

from mrag_eval.platform import ConfigError, did_you_mean

F = TypeVar("F", bound=Callable[..., Any])
_LIST = "Attributes:\n"


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


@dataclass(frozen=True)
class Setting:
    """A field of a dataclass of settings; ``help`` is its entry in the list of attributes of the docstring."""

    name: str
    type: Any
    default: Any
    help: str
    allowed: Allowed


@cache
def settings_of(record: Any) -> list[Setting]:
    """Return the settings that a dataclass declares."""
    listed = (getdoc(record) or "").partition(_LIST)[2]
    helps = dict(re.findall(r"^    (\w+): (.+(?:\n {8}.+)*)", listed, re.MULTILINE))
    types = get_type_hints(record, include_extras=True)
    found = []
    for each in fields(record):
        kind, allowed = types[each.name], Allowed()
        if get_origin(kind) is Annotated:
            kind, allowed = kind.__origin__, kind.__metadata__[0]
        found.append(Setting(each.name, kind, each.default, " ".join(helps.get(each.name, "").split()), allowed))
    return found


def takes_settings(record: Any) -> Callable[[F], F]:
    """Return a decorator that gives a function with ``**settings`` their signature and documentation."""

    def documented(function: F) -> F:
        own = signature(function)
        given = [each for each in own.parameters.values() if each.kind is not Parameter.VAR_KEYWORD]
        named = [Parameter(s.name, Parameter.KEYWORD_ONLY, default=s.default) for s in settings_of(record)]
        function.__signature__ = own.replace(parameters=[*given, *named])  # type: ignore[attr-defined]
        function.__doc__ = f"{getdoc(function)}\n{(getdoc(record) or '').partition(_LIST)[2]}"
        return function

    return documented
