"""What the rows of a paper's table require of what their tasks leave open: retriever, corpus, judges, agents."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePath
from typing import Any, NamedTuple

from mrag_eval.config import AGENT_DECODING, mode_named, reranker_name
from mrag_eval.report.files._results import LeafResult
from mrag_eval.report.files._task_config import TaskConfig

# A stated value of null allows any; this one allows those of a list.
ANY = "any"
# Points between the share of English documents and the share that a table names.
_NEAR = 10
_UNKNOWN = "not recorded"
# Rounds in which a loop can rewrite a query.
REWRITING = "2 or more"
# Names of the longest reply in requests, by the type of the model.
_LONGEST = ("max_tokens", "max_completion_tokens", "max_gen_toks")
_DUMP = re.compile(r"(?:, |wiki-)(\d{8})[.-]")


def first_stage(config: TaskConfig) -> str:
    """Return the name of a run's retriever: its embedder or sparse encoder, ``bm25``, or another system's run."""
    if config.kind == "precomputed":
        name, content = config.searched_run
        return " ".join(["run", *([name] if name else []), *([f"({content[:8]})"] if content else [])])
    if config.kind == "own":
        own = config.retrieval.get("retriever") or {}
        return str(own.get("name") or own.get("function") or own.get("url"))
    if config.kind == "bm25":
        return "bm25"
    embedder = config.embedder_name or f"index '{config.corpus}'"
    embedder += " (imported, not verified)" if config.is_unverified else ""
    return f"hybrid, bm25 and {embedder}" if config.kind == "hybrid" else embedder


def retriever_name(config: TaskConfig) -> str | None:
    """Return first stage and reranker of a run; None if nothing is searched.

    A run of another system is named by its tag (else the name of its file) with the beginning of its hash. Of BM25 it
    says how words are cut.
    """
    if not config.searches:
        return None
    first = first_stage(config)
    if words := config.index.get("analyzer"):
        first += f" ({words})"
    return f"{first} + {reranker_name(config.rerank)}" if config.rerank else f"{first}, not reranked"


def _searches(config: TaskConfig) -> bool:
    """Return whether an index is searched: the passages known to answer may come without one."""
    return config.searches and (bool(config.index) or mode_named(config.mode).source != "gold")


def _searching(found: Callable[[TaskConfig], Any]) -> Callable[[LeafResult], Any]:
    """Return a reader of results that search a corpus, and for which it says if something is not recorded."""

    def value(leaf: LeafResult) -> Any:
        return (found(leaf.config) or _UNKNOWN) if _searches(leaf.config) else None

    return value


def _english_share(config: TaskConfig) -> str | None:
    """Return the quarter that the share of English documents is nearest to; the exact share if it is 10 points away.

    Documents are drawn with a probability, so that a corpus of 25% may hold 27%.
    """
    corpus = config.source.get("corpus")
    counts = corpus.get("languages") if isinstance(corpus, Mapping) else None
    if not counts:
        return None
    share = 100 * counts.get("en", 0) / sum(counts.values())
    near = round(share / 25) * 25
    return f"{near if abs(share - near) < _NEAR else round(share)}%"


def _corpus(leaf: LeafResult) -> list[str] | str | None:
    """Return the sources of an index: ``Wikipedia 20231101``, of English ``Wikipedia 20231101 (en)``, or ``KILT``.

    Passages of the user's own are none: the comparison with the task names them.
    """
    sources = (leaf.config.index.get("recipe") or {}).get("sources") or {}
    if not sources:
        return _UNKNOWN if _searches(leaf.config) else None
    found = {(lang, one) for lang, source in sources.items() for one in source.split("; ") if one != "own"}
    return sorted({edition(lang, one) for lang, one in found}) or None


def edition(lang: str, source: str) -> str:
    """Return the name by which a row requires a source of documents."""
    dump = _DUMP.search(source)
    return f"Wikipedia {dump[1]}{' (en)' if lang == 'en' else ''}" if dump else source.partition(",")[0]


def _languages(leaf: LeafResult) -> str | None:
    """Return the languages of the index, where a run searches all of them."""
    if "all" not in mode_named(leaf.config.mode).languages:
        return None
    return " ".join(sorted(leaf.config.index.get("passages") or ())) or _UNKNOWN


def chunker_name(block: Mapping[str, Any] | None) -> str | None:
    """Return method and size of a chunker; None without one."""
    found = block or {}
    return " ".join(str(found[key]) for key in ("method", "size") if found.get(key) is not None) or None


def _judges(leaf: LeafResult) -> int | None:
    """Return the number of different judges with a vote, by what they are; None where nobody was to judge."""
    named = {name.partition("#")[0] for name in leaf.measurement.judges}
    voted = {model for table in leaf.scores.panels.values() for model in table.models}
    return len(named - ({judge.model for judge in leaf.scores.silent_judges} - voted)) if named else None


def _agents(leaf: LeafResult) -> int | str | None:
    """Return the number of different models that plan and criticise, and how they decode if not as in the paper.

    None without agents.
    """
    if not leaf.config.agent:
        return None
    roles = ("planner", "critic")
    number, found = len({leaf.model_of(role) for role in roles}), leaf.measurement
    seats = [{} if found is None else found.instrument.get(role) or {} for role in roles]
    other = dict.fromkeys(_decoding(seat["generation"]) for seat in seats if "generation" in seat)
    other.pop(_decoding(AGENT_DECODING), None)
    return f"{number} with {' and '.join(other)}" if other else number


def _rounds(leaf: LeafResult) -> str | None:
    """Return how many rounds a loop that rewrites queries may have: in one, it rewrites none."""
    block = leaf.config.agent
    return None if not block.get("rewrite") else "1" if block.get("max_rounds") == 1 else REWRITING


def _decoding(sent: Mapping[str, Any]) -> str:
    longest = next((sent[name] for name in _LONGEST if name in sent), None)
    return f"temperature {sent.get('temperature')}, {longest} tokens"


class Requirement(NamedTuple):
    """What a row may require of something that its task leaves open.

    Attributes:
        found: what a run has; None if it has no such thing.
        decides: keys of the run's record that the requirement decides.
    """

    found: Callable[[LeafResult], Any]
    decides: Sequence[str]


REQUIRED: Mapping[str, Requirement] = {
    "agents": Requirement(_agents, ("planner", "critic")),
    "chunker": Requirement(_searching(lambda config: chunker_name(config.index.get("chunker"))), ("index.chunker",)),
    "corpus": Requirement(_corpus, ("index.content_hash", "index.passages")),
    "english_share": Requirement(_searching(_english_share), ("data.imbalance",)),
    "judges": Requirement(_judges, ("judges",)),
    "languages": Requirement(_languages, ("index.passages",)),
    "kind": Requirement(_searching(lambda config: config.kind), ("retrieval.kind", "index.kind")),
    "retriever": Requirement(
        _searching(first_stage),
        (
            "retrieval.embedder",
            "index.embedder",
            "index.revision",
            "index.imported",
            "index.sha256",
            "index.tag",
            "index.analyzer",
        ),
    ),
    "scored_by": Requirement(lambda leaf: leaf.config.scored_by, ()),
    "rounds": Requirement(_rounds, ()),
    "translator": Requirement(lambda leaf: leaf.model_of("translator"), ("translator",)),
}
# What says which index is searched.
OF_THE_INDEX = tuple(key for name in ("retriever", "kind", "corpus", "chunker") for key in REQUIRED[name].decides)


def is_met(name: str, found: Any, wanted: Any) -> bool:
    if isinstance(wanted, Mapping) and ANY in wanted:
        allowed = wanted[ANY]
        return set(found) <= set(allowed) if isinstance(found, list) else any(is_met(name, found, o) for o in allowed)
    if name in ("retriever", "translator"):
        # a translator has its backend before it
        parts = found.split() if name == "translator" else [found]
        return PurePath(wanted).name.lower() in {PurePath(part).name.lower() for part in parts}
    return bool(found == ([wanted] if isinstance(found, list) else wanted))


def value_text(value: Any) -> str:
    if isinstance(value, Mapping) and ANY in value:
        return " or ".join(map(str, value[ANY]))
    return ", ".join(value) if isinstance(value, list) else str(value)
