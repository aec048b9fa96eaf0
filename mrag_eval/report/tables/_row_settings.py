"""The settings that a row of a paper's table states, and those in which a run differs from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from mrag_eval.config import mode_named, reranker_name
from mrag_eval.datasets import declaration_of
from mrag_eval.report.files._task_config import TaskConfig

# Every row of every paper, unless a layout says otherwise.
STATED: Mapping[str, Any] = {"data.split": "test", "rows": "all", "revision": "pinned"}
# An expected value of null allows any setting; this one allows the settings of a list.
_ANY = "any"
# An expected value that a run fits if the setting is off.
_NONE = "none"
# Settings of a search: without one they change nothing.
_OF_A_SEARCH = (
    *("retriever", "kind", "reranker", "english_share"),
    *("retrieval.k", "retrieval.depth", "retrieval.query_text"),
)
# Points between the share of English documents and the share that a table names.
_NEAR = 10
# Models, which are compared without the folder or organisation in front of their names.
_MODELS = ("retriever", "reranker")


class _Missing:
    """The value of a setting that a result file does not record."""


_MISSING = _Missing()
# Defaults of keys of the data block of which some rows state another value.
_DEFAULTS = {"data.documents": "all", "data.persona": "plain"}


@dataclass(frozen=True, slots=True)
class Fit:
    """Hold the settings in which a run differs from a row, as text, and those that its results do not record."""

    differs: tuple[str, ...] = ()
    unrecorded: tuple[str, ...] = ()


def fit(config: TaskConfig, stated: Mapping[str, Any]) -> Fit:
    """Return how a run's settings compare with those that a row states."""
    differs, unrecorded = [], []
    for key, wanted in stated.items():
        if wanted is None or not _applies(key, config):
            continue
        found = _found(config, key)
        if found is _MISSING:
            # a key of the data block is recorded only if it was set
            if not key.startswith("data."):
                unrecorded.append(key)
            elif key in _DEFAULTS and not _same(key, _DEFAULTS[key], wanted):
                differs.append(f"{key}={_DEFAULTS[key]}, not {_text(wanted)}")
        elif wanted == "pinned":
            if (pinned := _pinned(config)) not in (None, found):
                differs.append(f"{key}={found}, not {pinned}")
        elif not _same(key, found, wanted):
            differs.append(f"{key}={_text(found)}, not {_text(wanted)}")
    return Fit(tuple(differs), tuple(unrecorded))


def _applies(key: str, config: TaskConfig) -> bool:
    if key.startswith("agent."):
        return bool(config.agent)
    if key == "pool":
        return bool(config.agent) or "all" in mode_named(config.mode).languages
    return config.searches or key not in _OF_A_SEARCH


def first_stage(config: TaskConfig) -> str:
    """Return the name of a run's retriever: its embedder or sparse encoder, ``bm25``, or another system's run."""
    if config.kind == "precomputed":
        name, content = config.searched_run
        return " ".join(["run", *([name] if name else []), *([f"({content[:8]})"] if content else [])])
    if config.kind == "bm25":
        return "bm25"
    embedder = config.embedder_name or f"index '{config.corpus}'"
    embedder += " (imported, not verified)" if config.is_unverified else ""
    return f"hybrid, bm25 and {embedder}" if config.kind == "hybrid" else embedder


def retriever_name(config: TaskConfig) -> str | None:
    """Return first stage and reranker of a run; None if nothing is searched.

    A run of another system is named by its tag (else the name of its file) with the beginning of its hash.
    """
    if not config.searches:
        return None
    first = first_stage(config)
    return f"{first} + {reranker_name(config.rerank)}" if config.rerank else f"{first}, not reranked"


def _retriever(config: TaskConfig) -> Any:
    if config.kind is None and not {"corpus", "embedder"} & config.retrieval.keys():
        return _MISSING
    return first_stage(config) if config.embedder_name or config.kind in ("bm25", "precomputed") else _MISSING


def _reranker(config: TaskConfig) -> Any:
    if config.rerank:
        return reranker_name(config.rerank)
    return None if "rerank" in config.retrieval else _MISSING


def _rows(config: TaskConfig) -> str:
    if config.limit is not None:
        return f"--limit {config.limit:g}"
    return f"{len(config.samples)} chosen" if config.samples else "all"


def _pool(config: TaskConfig) -> Any:
    return (config.retrieval["pool"] or "every language") if "pool" in config.retrieval else _MISSING


def _english_share(config: TaskConfig) -> Any:
    """Return the quarter that the share of English documents is nearest to; the exact share if it is 10 points away.

    Documents are drawn with a probability, so that a corpus of 25% may hold 27%.
    """
    corpus = config.source.get("corpus")
    counts = corpus.get("languages") if isinstance(corpus, Mapping) else None
    if not counts:
        return _MISSING
    share = 100 * counts.get("en", 0) / sum(counts.values())
    near = round(share / 25) * 25
    return f"{near if abs(share - near) < _NEAR else round(share)}%"


def _or_missing(value: Any) -> Any:
    return _MISSING if value is None else value


# Settings that are not a single key of the configuration.
_NAMED: Mapping[str, Callable[[TaskConfig], Any]] = {
    "rows": _rows,
    "revision": lambda config: _or_missing(config.revision),
    "retriever": _retriever,
    "kind": lambda config: _or_missing(config.kind),
    "reranker": _reranker,
    "english_share": _english_share,
    "pool": _pool,
    "retrieval.depth": lambda config: config.depth or _MISSING,
}


def _found(config: TaskConfig, key: str) -> Any:
    if key in _NAMED:
        return _NAMED[key](config)
    value: Any = config.raw
    for part in key.split("."):
        if not isinstance(value, Mapping) or part not in value:
            return _MISSING
        value = value[part]
    return value


def _pinned(config: TaskConfig) -> str | None:
    """Return the revision that the benchmark's loader reads, None if it pins none."""
    declared = declaration_of(config.data)
    found = [getattr(source, "revision", None) for source in (declared.sources if declared else ())]
    return next((revision for revision in found if revision), None)


def _same(key: str, found: Any, wanted: Any) -> bool:
    if isinstance(wanted, Mapping) and _ANY in wanted:
        return any(_same(key, found, one) for one in wanted[_ANY])
    if wanted == _NONE:
        return found in (None, _NONE)
    if key in _MODELS and isinstance(found, str):
        return PurePath(found).name.lower() == PurePath(wanted).name.lower()
    if isinstance(wanted, list) and isinstance(found, list):
        return sorted(map(str, found)) == sorted(map(str, wanted))
    return bool(found == wanted)


def _text(value: Any) -> str:
    if isinstance(value, Mapping) and _ANY in value:
        return " or ".join(_text(one) for one in value[_ANY])
    if isinstance(value, list):
        return " ".join(map(str, value)) or "[]"
    return _NONE if value is None else str(value)
