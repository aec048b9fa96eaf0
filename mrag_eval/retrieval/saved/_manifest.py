"""The manifest of a run folder: what its tasks were retrieved under, read with suspicion."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from mrag_eval.config import Measurement
from mrag_eval.platform import DataError, fault_in, from_json, json_value, regular, whole, with_names_of_one_line

FORMAT = "mrag_eval retrieved rows/1"
MANIFEST = "manifest.json"
_AGAIN = "retrieve again into another folder"


# Where the settings of a retrieval have the seats that it asks, by role.
SEATS: Mapping[str, tuple[str, ...]] = {
    "planner": ("agent", "planner"),
    "critic": ("agent", "critic"),
    "translator": ("translator",),
    "reranker": ("retrieval", "rerank", "asked"),
}


def recorded(settings: Mapping[str, Any]) -> Measurement:
    """Return settings as they are compared."""
    return Measurement("", setting={name: value for name, value in settings.items() if value is not None})


def marked(seats: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return seats by role and mark: a short hash of what is compared of each."""
    return {role: {recorded({role: seat}).sha256[:12]: seat} for role, seat in seats.items()}


def seats_in(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the seats that settings name, by role."""
    found: dict[str, Any] = {}
    for role, place in SEATS.items():
        at: Any = settings
        for key in place:
            at = at.get(key) if isinstance(at, Mapping) else None
        if at is not None:
            found[role] = at
    return found


@dataclass(frozen=True)
class ManifestEntry:
    """The manifest's entry of one task.

    ``settings`` decided the retrieval, ``fingerprint`` is their hash; ``corpus`` and ``dataset`` are the content hashes
    among them. ``index``, ``agent``, ``models``, ``translation`` and ``came_back`` (what came back from the models, by
    role) are copied into a run's results. ``models`` are the seats that were asked: role -> mark -> identity; each row
    names the marks of its own. ``names`` are those of the config file, of a planner and a critic: role -> mark -> name.
    ``terms`` are the licences of its texts
    (:func:`~mrag_eval.retrieval.saved._terms.terms_of`). ``absent``: row -> relevant ids that the corpus does not hold.
    ``sha256`` is that of the file, and None while it grows.
    """

    file: str
    fingerprint: str
    settings: Mapping[str, Any]
    corpus: str | None
    dataset: str
    seeds: Mapping[str, Any]
    index: Mapping[str, Any] | None = None
    agent: Mapping[str, Any] | None = None
    models: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    names: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    translation: Mapping[str, Any] | None = None
    came_back: Mapping[str, Any] = field(default_factory=dict)
    faults: Mapping[str, int] = field(default_factory=dict)
    rows: int = 0
    sha256: str | None = None
    version: str = ""
    terms: Mapping[str, Any] = field(default_factory=dict)
    absent: Mapping[str, Sequence[str]] = field(default_factory=dict)
    # for from_json: a key of a later version is a fault
    __pydantic_config__: ClassVar = {"extra": "forbid"}


def read_manifest(path: Path, shown: str, fault_of: Callable[[Any], str | None]) -> dict[str, ManifestEntry]:
    """Return the entries of a manifest by task.

    ``shown`` names the manifest in messages. ``fault_of`` says why a task's file is not to be opened. Raises DataError
    for that, and for a file that is no such manifest or of another format.
    """
    try:
        with regular(path).open("rb") as file:
            body = with_names_of_one_line(json_value(whole(file, path).decode("utf-8", "surrogatepass")))
        if body["format"] != FORMAT:
            raise DataError(
                f"{shown}: its format is {body['format']!r:.80}, this version reads {FORMAT!r}",
                "take what was found again: mrag-eval retrieve",
            )
        tasks = from_json(dict[str, ManifestEntry], body["tasks"], f"{shown}, tasks", _AGAIN)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(
            f"{shown} is no manifest of retrieved rows ({fault_in(error)})", "name another folder"
        ) from None
    for name, entry in tasks.items():
        if fault := fault_of(entry.file):
            raise DataError(f"{shown}, tasks: {name}.file: {entry.file!r} {fault}", _AGAIN)
        if entry.rows < 0:
            raise DataError(f"{shown}, tasks: {name}.rows: {entry.rows}", _AGAIN)
        for role in sorted({*seats_in(entry.settings), *entry.models}):
            if role not in SEATS:
                raise DataError(f"{shown}, tasks: {name}.models.{role}: nobody is asked as that", _AGAIN)
            if not entry.models.get(role):
                raise DataError(f"{shown}, tasks: {name}.models.{role}: missing, and the rows name no model", _AGAIN)
            for mark, seat in entry.models[role].items():
                if mark not in marked({role: seat})[role]:
                    text = f"{name}.models.{role}.{mark}: the model is not the one that was asked under this mark"
                    raise DataError(f"{shown}, tasks: {text}", _AGAIN)
    return tasks
