"""Content of rows: one hash over what they say, whatever the file, its format and the order of its lines."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cached_property, lru_cache
from typing import Any, TypeVar

from mrag_eval.core import Passage
from mrag_eval.platform import content_key

T = TypeVar("T")


@dataclass(frozen=True)
class Part:
    """Published rows that belong together (a language, a country, a subject), before anything is drawn from them.

    Attributes:
        rows: their number.
        records: returns them, as records or JSON values.
    """

    rows: int
    records: Callable[[], Iterable[Any]]

    @classmethod
    def of(cls, records: Sequence[Any]) -> Part:
        """Return the part that holds these records."""
        return cls(len(records), lambda: records)

    @cached_property
    def content(self) -> str:
        """Return the SHA-256 over the sorted lines of canonical JSON, computed when it is first asked for."""
        lines = sorted(map(_encoded, self.records()))
        return hashlib.sha256("\n".join(lines).encode("utf-8", "surrogatepass")).hexdigest()


def parts_by(records: Iterable[T], key: Callable[[T], Hashable]) -> dict[str, Part]:
    """Return the parts that ``key`` divides the records into, by its text."""
    found: dict[str, list[T]] = {}
    for record in records:
        found.setdefault(str(key(record)), []).append(record)
    return {name: Part.of(members) for name, members in found.items()}


def combined_content(contents: Mapping[str, str]) -> str:
    """Return one hash over those of the parts; that of a single part is its own."""
    return next(iter(contents.values())) if len(contents) == 1 else content_key(sorted(contents.items()))


def passages_hash(passages: Iterable[Passage]) -> str:
    """Return the content hash that an index of these passages has."""
    from mrag_eval.retrievers import ContentHash

    content = ContentHash()
    for passage in passages:
        content.add(passage)
    return content.hexdigest


# a type's fields are asked for once per row
@lru_cache(maxsize=16)
def _fields(kind: type) -> tuple[tuple[str, Any], ...]:
    made = ((each, each.default_factory) for each in fields(kind))
    return tuple((each.name, each.default if make is MISSING else make()) for each, make in made)


def _filled(record: Any) -> dict[str, Any]:
    """Return the fields of a record that differ from their defaults, so that a new field leaves old hashes as is."""
    if not is_dataclass(record) or isinstance(record, type):
        raise TypeError(f"a row holds a value that JSON has no form for: {record!r:.60}")
    return {name: value for name, default in _fields(type(record)) if (value := getattr(record, name)) != default}


_encoded = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":"), default=_filled).encode
