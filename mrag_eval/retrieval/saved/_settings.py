"""Settings that decide a task's retrieval; by these a run folder is matched with a task.

File paths, devices and the transport of requests do not change the results, and are left out. Indexes, rows, runs and
models are identified by their content.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mrag_eval.config import Differs, TaskBlocks, by_content, differences, harmless
from mrag_eval.core import Retrieved, failed_in
from mrag_eval.datasets import Benchmark, validate_data
from mrag_eval.retrieval.saved._manifest import SEATS, ManifestEntry, recorded
from mrag_eval.retrieval.saved._records import dataset_hash, row_hash

# Below the harness's logger, so that its command shows our lines as it shows its own.
log = logging.getLogger(f"lm_eval.{__name__}")

# Says what may differ from a folder's own settings, and is none of these.
_OF_THE_READER = ("retrieval.run_may_differ",)
# Places that are no places of this machine.
_ADDRESSES = ("base_url", "uri", "url")


def settings_of_retrieval(
    blocks: TaskBlocks, benchmark: Benchmark, source: Mapping[str, Any], asked: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the settings as nested keys and values.

    ``source`` are those of the source of the passages, ``asked`` the identities of the models by role.
    """
    retrieval = blocks.retrieval
    chosen = retrieval.model_dump(mode="json")
    chosen["depth"] = retrieval.search_depth
    if retrieval.rerank is not None:
        chosen["rerank"]["name"] = retrieval.rerank.name
        if retrieval.rerank.kind == "listwise":
            del chosen["rerank"]["prompt"]
            chosen["rerank"]["asked"] = asked["reranker"]
    out: dict[str, Any] = {
        "retrieval": chosen,
        "data": validate_data(blocks.data).model_dump(mode="json"),
        "rows": {"sha256": dataset_hash([row_hash(doc) for doc in benchmark.docs]), "n": len(benchmark.docs)},
    }
    if "translator" in asked:
        out["translator"] = asked["translator"]
    return by_content(_portable({**out, **source}))


def _portable(settings: Mapping[str, Any], block: str = "") -> dict[str, Any]:
    """Return settings without harmless ones, which may be places of this machine; addresses of services stay."""
    out: dict[str, Any] = {}
    for name, value in settings.items():
        key = f"{block}{name}"
        if isinstance(value, Mapping):
            out[name] = _portable(value, f"{key}.")
        elif harmless(key) is None or name in _ADDRESSES:
            out[name] = value
    return out


def fingerprint_of(settings: Mapping[str, Any]) -> str:
    """Return one hash over all settings; harmless and unset ones do not count, so a new key leaves it unchanged."""
    return recorded(settings).sha256


def seeds_of(blocks: TaskBlocks) -> dict[str, Any]:
    """Return every seed used by retrieval or the choice of rows; None if nothing is drawn."""
    retrieval = blocks.retrieval
    return {"retrieval": retrieval.seed, "shuffle": retrieval.shuffle, "data": validate_data(blocks.data).seed}


def differing_settings(
    here: Mapping[str, Any], there: Mapping[str, Any], accepted: Sequence[str] = ()
) -> list[Differs]:
    """Return every setting that differs and that ``accepted`` does not name, by key or by block."""
    return differences(recorded(here), recorded(there), ["setting"], (*accepted, *_OF_THE_READER))


def differing_rows(here: Mapping[str, Any], entry: ManifestEntry, accepted: Sequence[str] = ()) -> list[Differs]:
    """Return what differs from the settings of any row of a folder, whose seats are those that were asked."""
    found: list[Differs] = []
    for turn in range(max([1, *map(len, entry.models.values())])):
        there = entry.settings
        for role, seats in entry.models.items():
            there = _with(there, SEATS[role], [*seats.values()][turn % len(seats)])
        there = by_content(_portable(there))
        found += [one for one in differing_settings(here, there, accepted) if one not in found]
    return found


def _with(settings: Mapping[str, Any], place: Sequence[str], seat: Any) -> dict[str, Any]:
    """Return settings with a seat at its place."""
    key, *below = place
    return {**settings, key: _with(settings.get(key) or {}, below, seat) if below else seat}


def faults_of(found: Iterable[Retrieved]) -> dict[str, int]:
    """Return failures of rows that have a record all the same, counted by reason."""
    counts: dict[str, int] = {}
    for row in found:
        reasons = [failure.why for failure in row.failures]
        if row.reranked is not None and row.reranked.fault and failed_in(row.failures, {"rerank"}) is None:
            reasons.append(f"reranker: {row.reranked.fault}")
        for reason in dict.fromkeys(reasons):
            counts[reason] = counts.get(reason, 0) + 1
    return counts
