"""Templates of requests: texts, alone or in a JSON body, in which places such as ``{question}`` are filled in.

In what the user wrote, ``{env:NAME}`` stands for a variable of the environment: in an address, a header or a body.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from mrag_eval.platform._errors import ConfigError
from mrag_eval.platform._functions import refuse_named_by_a_file
from mrag_eval.platform._secrets import is_plain, keep_common, keep_secret

_OF_A_KEY = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD)$", re.IGNORECASE)
VARIABLE = re.compile(r"\{env:([A-Za-z_][A-Za-z0-9_]{0,63})\}")
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


def keep_named_variables() -> None:
    """Hide from now on what the variables hold whose names say that it is a key, but for words that any text may have.

    What leaves this machine is refused with any of them, whether it was read here or not.
    """
    for name, value in os.environ.items():
        if _OF_A_KEY.search(name) and not is_plain(value.strip()):
            keep_secret(value.strip())


def with_variables(value: Any, where: str) -> Any:
    """Return a JSON value with the variables that its texts name in their places; they are hidden from now on.

    What is written shows ``{env:NAME}`` in place of the variable, alone where texts may contain its value by chance
    only where it stands.

    Raises ConfigError, starting with ``where``, for a variable that is not set, and for every one inside
    :func:`reading_back`: a file from elsewhere reads none.
    """

    def read(name: str, key: str) -> str:
        refuse_named_by_a_file(f"{{env:{name}}}", where)
        found = os.environ.get(name, "").strip()
        if not found:
            raise ConfigError(f"{where}: the environment variable {name} is not set", f"export {name}=...")
        if not is_plain(found):
            keep_secret(found, f"{{env:{name}}}")
        elif key:
            keep_common(found, key)
        return found

    return in_texts(value, read)


def in_texts(value: Any, read: Callable[[str, str], str], key: str = "") -> Any:
    """Return a JSON value with what ``read`` gives for each variable that its texts name, and the key of the text."""
    if isinstance(value, Mapping):
        return {name: in_texts(inner, read, str(name)) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [in_texts(inner, read, key) for inner in value]
    return VARIABLE.sub(lambda found: read(found[1], key), value) if isinstance(value, str) else value
