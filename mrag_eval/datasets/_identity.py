"""Identity of rows, by their content and not by the place where they lie, and which of them are as published."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, get_args

import yaml

from mrag_eval.datasets._content import Part, combined_content

# official: the content is the declared one. revision: read from the publisher at the declared revision, as many rows as
# published. other: known to differ. local: a copy of which nothing can be said. own: a user's rows. unknown: results
# that record no identity.
Status = Literal["official", "revision", "other", "local", "own", "unknown"]
# Keys that name a publisher's place, and the one of a file or folder on this machine.
_REMOTE = ("hub", "repository", "url")
_LOCAL = "path"
_SHORT = 12


@dataclass(frozen=True, slots=True)
class DataIdentity:
    """What rows are, as results record it.

    Attributes:
        content: SHA-256 over the published rows that were read; empty where the results record none.
        rows: their number, before anything is drawn or left out, or that of the passages; None if it is not recorded.
        status: what they are, compared with the published ones.
        reason: the same in a line for people.
        revision: commit that they were read at; None for local files, and where none is known.
    """

    content: str = ""
    rows: int | None = None
    status: Status = "unknown"
    reason: str = "the results record no identity of their rows"
    revision: str | None = None

    @property
    def is_published(self) -> bool:
        """Return whether these are the published rows, by content or by revision and number."""
        return self.status in ("official", "revision")


def identity_of(source: Mapping[str, Any]) -> DataIdentity:
    """Return the identity that the block ``source`` of a task's results records, or its block ``source.corpus``."""
    published, content = source.get("published"), source.get("content")
    if not isinstance(published, Mapping) or not isinstance(content, str):
        return DataIdentity()
    revision, rows = published.get("revision"), source.get("rows", source.get("passages"))
    status = next((known for known in get_args(Status) if known == published.get("status")), None)
    if status is None:
        return DataIdentity()
    return DataIdentity(
        content,
        rows if isinstance(rows, int) else None,
        status,
        str(published.get("reason") or ""),
        None if revision is None else str(revision),
    )


def published_record(
    parts: Mapping[str, Part], known: PublishedRows | None, place: Mapping[str, Any], pins: Mapping[str, str | None]
) -> dict[str, Any]:
    """Return what rows are, compared with the published ones, for ``source.published``.

    Args:
        parts: the rows that were read.
        known: those that were published; None if nothing is known of them.
        place: where they were read; further places may be nested in it.
        pins: id of a declared source -> its declared revision.
    """
    places = list(_places(place))
    local = read_locally(place)
    revision = None if local else next((_revision(one) for one in places), None)
    compared = _compared(parts, known, local)
    if compared is not None and compared[0] == "other" and not local and not any(map(pins.get, map(_name, places))):
        # the newest revision may be another than that of the copy whose content is declared
        compared = None
    status, reason = compared or _by_revision(parts, known, places, pins)
    return {
        "status": status,
        "reason": reason,
        **({} if revision is None else {"revision": revision}),
        **({} if known is None else {"rows": known.rows}),
    }


def read_locally(place: Mapping[str, Any]) -> bool:
    """Return whether the block ``source.place`` names a file or folder of a machine."""
    return any(_LOCAL in one for one in _places(place))


def own_record() -> dict[str, Any]:
    """Return the record of rows of the user's own."""
    return {"status": "own", "reason": "rows of the user's own"}


def other_counts(parts: Mapping[str, Part], known: PublishedRows | None) -> list[str]:
    """Return a text such as ``law 197 of 219`` for every part with another number of rows than published."""
    if known is None:
        return []
    counts = {name: parts[name].rows if name in parts else 0 for name in known.parts}
    return [f"{name} {counts[name]:,} of {part.rows:,}" for name, part in known.parts.items()
            if counts[name] != part.rows]  # fmt: skip


def _compared(parts: Mapping[str, Part], known: PublishedRows | None, local: bool) -> tuple[Status, str] | None:
    """Return what the contents and numbers of the rows tell; None where only their revision can tell."""
    rows = sum(part.rows for part in parts.values())
    declared = {} if known is None else {name: one for name, one in known.parts.items() if one.content is not None}
    differing = [name for name, one in declared.items() if name not in parts or parts[name].content != one.content]
    counts = f"{rows:,} rows, not the published {known.rows:,}" if known and known.rows != rows else ""
    if differing:
        what = ", ".join(name for name in differing if len(declared) > 1)
        said = f"of {counts}" if counts else f"whose rows differ from the published{f': {what}' if what else ''}"
        return "other", f"a copy {said}"
    if declared and known and declared.keys() == known.parts.keys() == parts.keys():
        return "official", "the published rows"
    if local:
        return "local", f"a local copy{f' of {counts}' if counts else ', with nothing declared to compare it with'}"
    return None


def _by_revision(
    parts: Mapping[str, Part],
    known: PublishedRows | None,
    places: list[Mapping[str, Any]],
    pins: Mapping[str, str | None],
) -> tuple[Status, str]:
    for place in places:
        found, pin = _revision(place), pins.get(_name(place))
        if found != pin and (pin is not None or place.get("revision") is not None):
            return "other", f"revision {str(found)[:_SHORT]}, not the declared {(pin or 'newest one')[:_SHORT]}"
    if found_counts := other_counts(parts, known):
        rows = sum(part.rows for part in parts.values())
        parted = f": {', '.join(found_counts)}" if known is not None and len(known.parts) > 1 else ""
        return "other", f"{rows:,} rows, not the published {known.rows if known else 0:,}{parted}"
    revision = _revision(places[0]) if places else None
    where = (
        "address"
        if places and "url" in places[0]
        else "revision"
        if revision is None
        else f"revision {revision[:_SHORT]}"
    )
    return "revision", f"by {where}, {'number and ' if known is None else ''}content not verified"


def _name(place: Mapping[str, Any]) -> str:
    return str(next((place[key] for key in _REMOTE if key in place), None))


def _revision(place: Mapping[str, Any]) -> str | None:
    """Return the commit that a place was read at; as it was asked for, where the commit is not known."""
    found = place.get("commit") or place.get("revision")
    return None if found is None else str(found)


def _places(place: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield a place and those nested in it."""
    if any(key in place for key in (*_REMOTE, _LOCAL)):
        yield place
    for value in place.values():
        if isinstance(value, Mapping):
            yield from _places(value)


# Written by scripts/published_rows.py.
FILE = Path(__file__).resolve().parent / "published_rows.yaml"


@dataclass(frozen=True, slots=True)
class PublishedPart:
    """A part of the published rows: a language, a country, a subject.

    Attributes:
        rows: number of its rows.
        content: SHA-256 over them (:class:`~mrag_eval.datasets._content.Part`); None where it is not declared.
    """

    rows: int
    content: str | None = None


@dataclass(frozen=True, slots=True)
class PublishedRows:
    """The rows that were published for a ``data:`` block, before anything is drawn from them.

    Attributes:
        parts: name of a part -> its rows.
    """

    parts: Mapping[str, PublishedPart]

    @property
    def rows(self) -> int:
        """Return the number of all rows."""
        return sum(part.rows for part in self.parts.values())

    @property
    def content(self) -> str | None:
        """Return the hash over all rows; None where that of a part is not declared."""
        known = {name: part.content for name, part in self.parts.items() if part.content is not None}
        return combined_content(known) if known and len(known) == len(self.parts) else None


@lru_cache(maxsize=1)
def declared_contents() -> Mapping[str, Mapping[str, Mapping[str, str]]]:
    """Return what the file declares: ``rows`` or ``documents`` -> benchmark -> part -> SHA-256."""
    content: Any = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    return {kind: content.get(kind) or {} for kind in ("rows", "documents")}


def published(kind: str, benchmark: str, counts: Mapping[str, int]) -> PublishedRows:
    """Return published numbers (part -> rows, or documents) with the hashes that are declared for them."""
    known = declared_contents()[kind].get(benchmark, {})
    return PublishedRows({name: PublishedPart(rows, known.get(name)) for name, rows in counts.items()})
