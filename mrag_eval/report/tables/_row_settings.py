"""The settings that a row of a paper's table states, and those in which a run differs from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePath
from typing import Any

from mrag_eval.config import is_named, mode_named, reranker_name
from mrag_eval.planning import deviations
from mrag_eval.report.files._results import LeafResult
from mrag_eval.report.files._task_config import TaskConfig

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
# Keys of a record that a stated setting decides, where it is not the key itself.
_DECIDES: Mapping[str, Sequence[str]] = {
    "english_share": ("data.imbalance",),
    "judges": ("judge.panel", "judge.repeats"),
    "kind": ("retrieval.kind",),
    "pool": ("retrieval.pool",),
    "prompt.system": ("prompt.system", "texts.prompt"),
    "prompt.template": ("prompt.template", "texts.prompt"),
    "reranker": ("retrieval.rerank", "retrieval.depth", "texts.rerank"),
    "retriever": ("retrieval.embedder", "retrieval.kind"),
    "scored_by": ("output_type",),
}


class _Missing:
    """The value of a setting that a result file does not record."""


_MISSING = _Missing()
# Defaults of keys of the data block of which some rows state another value.
_DEFAULTS = {"data.documents": "all", "data.persona": "plain"}


def fit(leaf: LeafResult, stated: Mapping[str, Any]) -> tuple[str, ...]:
    """Return how a run differs from a row of a paper's table, as texts; empty for "this run".

    A row is the task as shipped, over all of the published rows, but for the settings that it states itself.
    """
    config = leaf.config
    decided = [key for name in stated for key in _DECIDES.get(name, (name,))]
    differs = [found.text for found in deviations(leaf.measurement) if not is_named(found.key, decided)]
    for key, wanted in stated.items():
        if wanted is None or not _applies(key, config):
            continue
        found = _found(leaf, key)
        if found is _MISSING:
            found = _DEFAULTS.get(key)
        if not _same(key, found, wanted):
            differs.append(f"{key}={_text(found)}, not {_text(wanted)}")
    return tuple(dict.fromkeys(differs))


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


def _judges(leaf: LeafResult) -> Any:
    """Return the number of different judges, by what they are; missing where nobody judged."""
    record = leaf.measurement
    seats = {} if record is None else record.instrument.get("judges") or {}
    return len({name.partition("#")[0] for name in seats}) or _MISSING


# Settings that are not a single key of the configuration.
_NAMED: Mapping[str, Callable[[TaskConfig], Any]] = {
    "retriever": _retriever,
    "kind": lambda config: _or_missing(config.kind),
    "reranker": _reranker,
    "english_share": _english_share,
    "pool": _pool,
    "retrieval.depth": lambda config: config.depth or _MISSING,
}


def _found(leaf: LeafResult, key: str) -> Any:
    if key == "judges":
        return _judges(leaf)
    if key in _NAMED:
        return _NAMED[key](leaf.config)
    value: Any = leaf.config.raw
    for part in key.split("."):
        if not isinstance(value, Mapping) or part not in value:
            return _MISSING
        value = value[part]
    return value


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
