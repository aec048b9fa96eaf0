"""Frozen dataclasses as JSON in result and sample files, read back as the same records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from mrag_eval.platform._errors import DataError

if TYPE_CHECKING:
    from pydantic import TypeAdapter

T = TypeVar("T")

# Version of the schema of rows and scores on disk. It increases when a key is renamed, moves or changes its meaning,
# but not for a further optional key. Files without a version have the first.
SCHEMA_VERSION = 1
_VERSION_KEY = "schema_version"
_KEY = "optional"
# Values of most leaves, which are JSON already.
_PLAIN = frozenset({str, int, float, bool, type(None)})
# Metadata of a field that is omitted from the JSON while it has its default.
OPTIONAL: Mapping[str, Any] = MappingProxyType({_KEY: True})


def optional_beside(name: str) -> Mapping[str, str]:
    """Return metadata for a field that is omitted from the JSON while the field ``name`` is empty."""
    return {_KEY: name}


def to_json(value: Any) -> Any:
    """Return dataclasses, mappings and sequences as JSON values; :data:`OPTIONAL` fields may be omitted."""
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is not dict and is_dataclass(kind):
        out: dict[str, Any] = {}
        for name, optional in _parts(kind):
            inner = getattr(value, name)
            if optional is None or not _left_out(value, optional, inner):
                out[name] = inner if type(inner) in _PLAIN else to_json(inner)
        return out
    if isinstance(value, Mapping):
        return {key: inner if type(inner) in _PLAIN else to_json(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(inner) for inner in value]
    return value


@cache
def _parts(kind: Any) -> list[tuple[str, Field[Any] | None]]:
    """Return the names of a record's fields, each with the field itself if it may be omitted."""
    return [(part.name, part if _KEY in part.metadata else None) for part in fields(kind)]


def _left_out(record: Any, part: Field[Any], value: Any) -> bool:
    rule = part.metadata[_KEY]
    if isinstance(rule, str):
        return not getattr(record, rule)
    return bool(value == (part.default if part.default_factory is MISSING else part.default_factory()))


def from_json(kind: type[T], value: Any, where: str, fix: str) -> T:
    """Return the record of class ``kind`` that :func:`to_json` wrote.

    Raises DataError with the source of the value (``where``), its first faulty key, and the next step (``fix``).
    """
    from pydantic import ValidationError

    try:
        # mypy does not take a class for hashable
        record: T = _adapter(kind).validate_python(value)  # type: ignore[arg-type]
        return record
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        key = ".".join(map(str, first["loc"])) or "the whole"
        raise DataError(f"{where}: {key}: {first['msg'][:1].lower()}{first['msg'][1:]}", fix) from None


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


def with_version(record: Any) -> dict[str, Any]:
    """Return a record as JSON, preceded by the version of its schema."""
    return {_VERSION_KEY: SCHEMA_VERSION, **to_json(record)}


def check_version(value: Mapping[str, Any], where: str) -> None:
    """Raise DataError for a schema that this version of the package cannot read."""
    found = value.get(_VERSION_KEY, 1)
    if found != SCHEMA_VERSION:
        raise DataError(
            f"{where}: {_VERSION_KEY} is {found!r}, this version of mrag-eval reads {SCHEMA_VERSION}",
            "run again with this version (mrag-eval rerun prints the command), or read it with the one that wrote it",
        )
