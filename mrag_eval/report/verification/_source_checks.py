"""The recorded source of a task's rows, against the rows that this machine reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mrag_eval.config import is_named, shown
from mrag_eval.datasets import identity_of, read_locally
from mrag_eval.report.verification._differing import differing
from mrag_eval.report.verification._findings import Finding, Kind
from mrag_eval.report.verification._setting_checks import other_versions
from mrag_eval.report.verification._task_here import TaskHere

# What differs between two copies of the same rows.
_PLACES = ("source.place", "source.corpus.place")
# What rows are, compared with the published ones.
_STANDING = ("source.published", "source.corpus.published", "source.corpus.recipe")
# What no version of this package reads otherwise.
_CONTENT = ("source.content", "source.rows", "source.questions", "source.corpus.content", "source.corpus.passages")


def source_follows(here: TaskHere) -> Iterator[Finding]:
    """Compare the recorded source with that of the rows here: their content is computed again, not believed."""
    leaf = here.leaf
    recorded = leaf.config.source
    if leaf.config.data.get("path") and not read_locally(recorded.get("place") or {}):
        yield Finding(leaf.task, "fault", "source.place names no local copy, and data.path does")
    if here.rows is None:
        if identity_of(recorded).is_published:
            text = "the record says that the rows are the published ones, which was not computed again"
            yield Finding(leaf.task, "note", f"{text}: verify --data PATH reads a copy")
        return
    made = here.rows.source
    for key, one, other in differing(recorded, made, "source"):
        if is_named(key, _PLACES) or (is_named(key, _STANDING) and not _comparable(recorded, made)):
            continue
        text = f"{key} is {shown(one)} in the record, {shown(other)} by the rows here ({_place(made)})"
        yield Finding(leaf.task, _kind(here, key, recorded, made), text)


def _comparable(recorded: Mapping[str, Any], made: Mapping[str, Any]) -> bool:
    """Return whether what two sources are can be compared.

    Without a declared hash, a copy is of unknown standing, and rows of a publisher have that of their revision.
    """
    local = {read_locally(source.get("place") or {}) for source in (recorded, made)}
    return len(local) == 1 or "official" in (identity_of(recorded).status, identity_of(made).status)


def _kind(here: TaskHere, key: str, recorded: Mapping[str, Any], made: Mapping[str, Any]) -> Kind:
    """Return ``note`` for what another version may say of the same rows, as long as it claims no more than they are."""
    claims = identity_of(recorded).is_published and not identity_of(made).is_published
    return "note" if other_versions(here.leaf) and not claims and not is_named(key, _CONTENT) else "fault"


def _place(made: Mapping[str, Any]) -> str:
    place = made.get("place") or {}
    return str(next((place[key] for key in ("path", "hub", "repository", "url") if key in place), "this machine"))
