"""Templates of requests: texts, alone or in a JSON body, in which places such as ``{question}`` are filled in."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from mrag_eval.platform._variables import with_variables

# A place is a name of letters alone, so that JSON, code and formulas within a text are text. Doubled braces quote it.
_PLACE = re.compile(r"\{\{(?P<text>[^\W\d_]+)\}\}|\{(?P<name>[^\W\d_]+)\}")


@dataclass(frozen=True)
class Template:
    """A JSON value with places in its texts, all of them known.

    A place is ``{name}``, of letters alone; ``{query}`` and ``{question}`` are one. ``{{name}}`` is the text
    ``{name}``.

    Attributes:
        value: the value as it was written.
        places: the names of the places in it.
    """

    value: Any
    places: frozenset[str]

    @classmethod
    def of(cls, value: Any, known: Collection[str], needed: str | None = None) -> Template:
        """Return a value as a template with places among ``known``, ``needed`` among them.

        Raises ValueError that names an unknown place with those that are known, for a place in a key, and without the
        needed one.
        """
        names, found = {_same(name) for name in known}, set()

        def check(text: str) -> None:
            for name in _places(text):
                if _same(name) not in names:
                    here = ", ".join(f"{{{place}}}" for place in known)
                    raise ValueError(f"there is no place {{{name}}} here, only {here}; as text it is {{{{{name}}}}}")
                found.add(_same(name))

        _mapped(value, check, lambda key: check_text(str(key), "write the place into a value"))
        if needed is not None and _same(needed) not in found:
            raise ValueError(f"it lacks {{{needed}}}, without which all requests are the same")
        return cls(value, frozenset(found))

    def with_variables(self, where: str) -> Template:
        """Return the template with the variables that its value names (``{env:NAME}``), which are hidden from now on.

        Raises ConfigError, starting with ``where``, for one that is not set.
        """
        return replace(self, value=with_variables(self.value, where))

    def filled(self, values: Mapping[str, Any]) -> Any:
        """Return the value with others in its places.

        A text that is one place alone becomes that value, whatever its type. Within a text a list is joined by commas.
        """

        def fill(text: str) -> Any:
            alone = _PLACE.fullmatch(text)
            if alone is not None and alone["name"]:
                return values[_same(alone["name"])]
            return _PLACE.sub(
                lambda place: f"{{{place['text']}}}" if place["text"] else _within(values[_same(place["name"])]), text
            )

        return _mapped(self.value, fill, str)


def check_text(text: str, advice: str) -> str:
    """Return a text in which nothing is filled in; raise ValueError, with the advice, if a place is in it."""
    for name in _places(text):
        raise ValueError(f"{{{name}}} is not filled in here; {advice}")
    return text


def _places(text: str) -> list[str]:
    return [name for _, name in _PLACE.findall(text) if name]


def _same(name: str) -> str:
    """Return the one name of a place: retrievers are asked a query, systems a question, and it is the same text."""
    return "question" if name == "query" else name


def _mapped(value: Any, change: Callable[[str], Any], key: Callable[[Any], Any]) -> Any:
    """Return a JSON value with its texts and keys changed."""
    if isinstance(value, Mapping):
        return {key(name): _mapped(inner, change, key) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_mapped(inner, change, key) for inner in value]
    return change(value) if isinstance(value, str) else value


def _within(value: Any) -> str:
    return ",".join(value) if isinstance(value, list | tuple) else "" if value is None else str(value)
