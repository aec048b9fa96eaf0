"""Settings that decide a task's retrieval; by these a run folder is matched with a task.

File paths, devices and the transport of requests do not change the results, and are left out. Indexes, rows, runs and
models are identified by their content.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mrag_eval.config import Retrieval, TaskBlocks, dotted
from mrag_eval.core import Retrieved, bare_address, content_key, failed_in
from mrag_eval.datasets import Benchmark, validate_data
from mrag_eval.models import Translator, named_spec, portable_identity
from mrag_eval.retrieval.saved._records import dataset_hash, row_hash

# Below the harness's logger, so that its command shows our lines as it shows its own.
log = logging.getLogger(f"lm_eval.{__name__}")

# Keys of the block 'retrieval' that do not decide the results; corpus, run and translator are identified separately.
_ASIDE = {"corpus", "run", "run_folder", "run_may_differ", "device", "query_vectors", "translator"}
# Keys of any block that only open the door of an endpoint, as the secrets in an address do.
_KEYS = {"api_key_env", "header"}
_RERANK_ASIDE = {"device", "batch_size", "max_in_flight", "timeout", "retries", "api_key_env"}


def settings_of_retrieval(
    blocks: TaskBlocks, benchmark: Benchmark, source: Mapping[str, Any], translator: Translator | None
) -> dict[str, Any]:
    """Return the settings as nested keys and values; ``source`` are those of the source of the passages."""
    retrieval = blocks.retrieval
    chosen = retrieval.model_dump(mode="json", exclude=_ASIDE | {"rerank"})
    chosen["depth"] = retrieval.search_depth
    if retrieval.rerank is not None:
        block = retrieval.rerank.model_dump(mode="json", exclude=_RERANK_ASIDE)
        chosen["rerank"] = {**block, "name": retrieval.rerank.name}
        if retrieval.rerank.kind == "listwise":
            chosen["rerank"]["prompt"] = prompt_identity(retrieval.rerank.prompt)
            chosen["rerank"]["asked"] = reranker_identity(retrieval)
    data = validate_data(blocks.data).model_dump()
    out: dict[str, Any] = {
        "retrieval": chosen,
        "data": {key: value for key, value in data.items() if not isinstance(value, Path)},
        "rows": {"sha256": dataset_hash([row_hash(doc) for doc in benchmark.docs]), "n": len(benchmark.docs)},
    }
    if translator is not None:
        out["translator"] = translator.as_dict()["identity"]
    return {**out, **source}


def reranker_identity(retrieval: Retrieval) -> dict[str, Any] | None:
    """Return what the model of a listwise reranker is; None for any other, whose block says it."""
    rerank = retrieval.rerank
    if rerank is None or rerank.kind != "listwise":
        return None
    return portable_identity(named_spec(rerank.model))


def prompt_identity(name: str) -> str:
    """Return a prompt's name; for a file of the user's, the hash of its text."""
    path = Path(name).expanduser()
    return content_key(path.read_bytes().decode("utf-8", "replace"))[:16] if path.is_file() else name


def fingerprint_of(settings: Mapping[str, Any]) -> str:
    """Return one hash over all settings; unset ones do not count, so that a new key leaves it unchanged."""
    return content_key(dotted(settings))


def seeds_of(blocks: TaskBlocks) -> dict[str, Any]:
    """Return every seed used by retrieval or the choice of rows; None if nothing is drawn."""
    retrieval = blocks.retrieval
    return {"retrieval": retrieval.seed, "shuffle": retrieval.shuffle, "data": validate_data(blocks.data).seed}


def differing_settings(here: Mapping[str, Any], there: Mapping[str, Any]) -> dict[str, str]:
    """Return dotted key -> ``here | there`` of every setting that differs, whatever the keys of their endpoints."""
    a, b = _without_keys(here), _without_keys(there)
    return {
        key: f"{a.get(key, 'not set')} | {b.get(key, 'not set')}"
        for key in sorted({*a, *b})
        if a.get(key) != b.get(key)
    }


def _without_keys(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return dotted settings without what only opens the door of an endpoint."""
    return {
        key: bare_address(value) if isinstance(value, str) else value
        for key, value in dotted(settings).items()
        if not _KEYS & {*key.split(".")}
    }


def not_accepted(differing: Mapping[str, str], accepted: Sequence[str]) -> dict[str, str]:
    """Return the differing settings that ``accepted`` does not name, by key or by block."""
    return {
        key: value
        for key, value in differing.items()
        if not any(key == name or key.startswith(f"{name}.") for name in accepted)
    }


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
