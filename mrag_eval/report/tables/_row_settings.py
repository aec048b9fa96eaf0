"""The settings of a row of a paper's table, and those in which a run differs from them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby, product
from pathlib import PurePath
from typing import Any, NamedTuple

from mrag_eval.config import Differs, Measurement, harmless, is_named, mode_named, reranker_name
from mrag_eval.planning import deviations, shipped
from mrag_eval.report.files._results import LeafResult
from mrag_eval.report.files._task_config import TaskConfig

# A stated value of null allows any; this one allows those of a list.
_ANY = "any"
# What changes only how the passages found are used.
OF_THE_ANSWER = (
    *("prompt", "generation_kwargs", "num_fewshot", "output_type", "run", "seeds"),
    *("texts.prompt", "texts.judge", "texts.sufficiency", "judge.prompt", "judge.reply", "judge.tie"),
    *("judge.language_check", "judge.languages", "judge.sufficiency", "judge.correct_language"),
)
# What changes no question and no reference answer.
OF_A_RUN = (
    *(*OF_THE_ANSWER, "retrieval", "agent", "judge", "texts", "index"),
    *("judges", "planner", "critic", "translator", "reranker"),
)
# Keys of the data that the comparison with the task as shipped covers.
_OF_THE_ROWS = ("source", "ran")
# Points between the share of English documents and the share that a table names.
_NEAR = 10
# From this many keys on, a block that one side lacks is said once.
_A_BLOCK = 3
# Keys that name what a block sets.
_NAMING = ("model", "name", "kind")
_UNKNOWN = "not recorded"
_DUMP = re.compile(r"(?:, |wiki-)(\d{8})[.-]")


def fit(leaf: LeafResult, stated: Mapping[str, Any], ignoring: Sequence[str] = ()) -> tuple[str, ...]:
    """Return how a run differs from a row of a paper's table, as texts; empty for "this run".

    A row is the task as shipped, over all of the published rows, with the settings that it states. What the task leaves
    open, such as its judges, is as the row requires it (:data:`REQUIRED`). ``ignoring`` names keys, or blocks of them,
    that do not change the row's figures.
    """
    required = {name: wanted for name, wanted in stated.items() if name in REQUIRED}
    settings = {name: wanted for name, wanted in stated.items() if name not in REQUIRED}
    free = [name for name, wanted in settings.items() if wanted is None]
    decided = (*ignoring, *free, *(key for name in required for key in REQUIRED[name].decides))
    texts = min((_nearest(leaf, changes, decided) for changes in _choices(settings)), key=len)
    for name, wanted in required.items():
        value = REQUIRED[name].found(leaf)
        if leaf.measurement is not None and None not in (value, wanted) and not _same(name, value, wanted):
            texts.append(f"{name}={_text(value)}, not {_text(wanted)}")
    return tuple(dict.fromkeys(texts))


def unlike(
    record: Measurement | None, ignoring: Sequence[str] = (), changes: Mapping[str, Any] | None = None
) -> list[str]:
    """Return how a run differs from its task as shipped with ``changes``, as texts, and what it says of other data."""
    found = deviations(record, changes=changes)
    if record is not None:
        found += _undeclared(record)
    return said([one for one in found if not is_named(one.key, ignoring)])


def _choices(settings: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield each combination of the values that a row allows."""
    named = {name: _allowed(wanted) for name, wanted in settings.items() if wanted is not None}
    for values in product(*named.values()):
        yield dict(zip(named, values, strict=True))


def _allowed(wanted: Any) -> Sequence[Any]:
    return list(wanted[_ANY]) if isinstance(wanted, Mapping) and _ANY in wanted else [wanted]


def unlike_shipped(leaf: LeafResult, ignoring: Sequence[str] = ()) -> list[str]:
    """Return how a run of any task differs from the package's; empty for a task of the user's own, which has none."""
    record = leaf.measurement
    return [] if record is not None and shipped(record.task) is None else unlike(record, ignoring)


def _nearest(leaf: LeafResult, changes: Mapping[str, Any], ignoring: Sequence[str]) -> list[str]:
    found = unlike(leaf.measurement, ignoring, changes)
    task = None if leaf.measurement is not None else shipped(leaf.task, changes=changes)
    # the settings in the results say at least which row an older run is nearest to
    there = {} if task is None else task.measurement.flat(["setting"])
    known = ((key, leaf.config.setting(key), wanted) for key, (_, wanted) in there.items() if harmless(key) is None)
    return found + [
        Differs("setting", key, value, wanted).text
        for key, value, wanted in known
        if value not in (None, wanted) and not is_named(key, ignoring)
    ]


def _undeclared(record: Measurement) -> list[Differs]:
    """Return what a run says of its data beyond its rows: a task as shipped says nothing of it."""
    return [
        Differs(role, key, value, None)
        for key, (role, value) in record.flat(["data"]).items()
        if not is_named(key, _OF_THE_ROWS) and harmless(key) is None
    ]


def source_of(differs: Iterable[str], source: str = "this run") -> str:
    """Return what a row of ours is from, with the settings in which its runs differ from the table's."""
    listed = "; ".join(dict.fromkeys(differs))
    return f"{source}, other settings: {listed}" if listed else source


def said(found: Sequence[Differs], other: str = "the task") -> list[str]:
    """Return differences from ``other`` as texts; a block that one side lacks as a whole is named once."""
    out = []
    for (block, missing), group in groupby(found, key=lambda one: (one.key.rpartition(".")[0], _missing(one))):
        keys = list(group)
        if missing is None or len(keys) < _A_BLOCK or ("." not in block and keys[0].role == "setting"):
            out += [one.against(other) for one in keys]
            continue
        names = {one.key.rpartition(".")[2]: one for one in keys}
        name = next((names[end] for end in _NAMING if end in names), keys[0])
        out.append(Differs(name.role, block, name.first, name.second).against(other))
    return out


def _missing(one: Differs) -> str | None:
    return "first" if one.first is None else "second" if one.second is None else None


# ------------------------------------------------------------------------------------------- what a task leaves open


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


def model_of(leaf: LeafResult, role: str) -> str | None:
    """Return planner or critic as the provider names it, else its type; without a record, its name in the task."""
    found = None if leaf.measurement is None else leaf.measurement.instrument.get(role)
    if not found:
        return leaf.config.agent.get(role)
    args = found.get("args") or {}
    return str(args.get("model") or args.get("pretrained") or found.get("model"))


def _searching(found: Callable[[TaskConfig], Any]) -> Callable[[LeafResult], Any]:
    """Return a reader of results that search a corpus, and for which it says if something is not recorded."""

    def value(leaf: LeafResult) -> Any:
        return (found(leaf.config) or _UNKNOWN) if leaf.config.searches else None

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
        return _UNKNOWN if leaf.config.searches else None
    found = {(lang, one) for lang, source in sources.items() for one in source.split("; ") if one != "own"}
    return sorted({_edition(lang, one) for lang, one in found}) or None


def _edition(lang: str, source: str) -> str:
    dump = _DUMP.search(source)
    return f"Wikipedia {dump[1]}{' (en)' if lang == 'en' else ''}" if dump else source.partition(",")[0]


def _languages(leaf: LeafResult) -> str | None:
    """Return the languages of the index, where a run searches all of them."""
    if "all" not in mode_named(leaf.config.mode).languages:
        return None
    return " ".join(sorted(leaf.config.index.get("passages") or ())) or _UNKNOWN


def _chunker(config: TaskConfig) -> str | None:
    found = config.index.get("chunker") or {}
    return " ".join(str(found[key]) for key in ("method", "size") if found.get(key) is not None) or None


def _judges(leaf: LeafResult) -> int | None:
    """Return the number of different judges, by what they are; None where nobody judged."""
    seats = {} if leaf.measurement is None else leaf.measurement.instrument.get("judges") or {}
    return len({name.partition("#")[0] for name in seats}) or None


def _agents(leaf: LeafResult) -> int | None:
    """Return the number of different models that plan and criticise; None without agents."""
    return len({model_of(leaf, role) for role in ("planner", "critic")}) if leaf.config.agent else None


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
    "chunker": Requirement(_searching(_chunker), ("index.chunker",)),
    "corpus": Requirement(_corpus, ("index.content_hash", "index.passages")),
    "english_share": Requirement(_searching(_english_share), ("data.imbalance",)),
    "judges": Requirement(_judges, ("judges",)),
    "languages": Requirement(_languages, ("index.passages",)),
    "kind": Requirement(_searching(lambda config: config.kind), ("retrieval.kind", "index.kind")),
    "retriever": Requirement(
        _searching(first_stage),
        ("retrieval.embedder", "index.embedder", "index.revision", "index.imported", "index.sha256", "index.tag"),
    ),
    "scored_by": Requirement(lambda leaf: leaf.config.scored_by or _UNKNOWN, ()),
    "translator": Requirement(lambda leaf: None, ("translator",)),
}
# What says which index is searched.
OF_THE_INDEX = tuple(key for name in ("retriever", "kind", "corpus", "chunker") for key in REQUIRED[name].decides)


def _same(name: str, found: Any, wanted: Any) -> bool:
    if isinstance(wanted, Mapping) and _ANY in wanted:
        allowed = wanted[_ANY]
        return set(found) <= set(allowed) if isinstance(found, list) else any(_same(name, found, o) for o in allowed)
    if name == "retriever":
        return PurePath(found).name.lower() == PurePath(wanted).name.lower()
    return bool(found == ([wanted] if isinstance(found, list) else wanted))


def _text(value: Any) -> str:
    if isinstance(value, Mapping) and _ANY in value:
        return " or ".join(map(str, value[_ANY]))
    return ", ".join(value) if isinstance(value, list) else str(value)
