"""Search of an index for all rows at once: merged over languages, cached on disk.

Results are cached under everything that can change them: the retrieval choices, the index's content and embedder, the
query text, the scope and the candidates.
"""

from __future__ import annotations

import base64
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from mrag_eval.config import CENTERED, Retrieval
from mrag_eval.core import Failure, Hit, Kept, Ranked, Searched
from mrag_eval.platform import ConfigError, Store, Wait, cache_dir, content_key, is_finite, made_once, number_of
from mrag_eval.retrieval._given_vectors import given_vectors, vectors_identity
from mrag_eval.retrieval._merging import depth_of_lists, means_for, merge_version, merged, of_versions
from mrag_eval.retrieval._plan import RowPlan

if TYPE_CHECKING:
    from mrag_eval.retrieval._own_index import OwnIndex
    from mrag_eval.retrievers import FailedBatch, Index, LanguageMeans

# Below the harness's logger, so that its command shows our lines as it shows its own.
log = logging.getLogger(f"lm_eval.{__name__}")
_FORMAT = 2
# queries embedded at a time, and those that one of several processes takes on
_BATCH, _CLAIMED = 64, 512
# Reasons for which an endpoint that is up refuses a text.
_OF_A_TEXT = ("rejected", "malformed", "content_filter", "too_long")


def search_plans(
    index: Index | OwnIndex,
    plans: Sequence[RowPlan],
    retrieval: Retrieval,
    *,
    use_cache: bool = True,
    count_candidates: bool = True,
) -> list[Searched]:
    """Search for every plan in one batch; aligned with ``plans``. Each must have a text.

    Without ``count_candidates`` nothing is counted as searchable for plans that name candidates.

    Every shard is searched once, for all plans and all versions of their queries together; an index that is asked over
    a network is searched a part of the plans at a time, and the results of each part are cached before the next.

    A plan whose query could not be embedded has a failure, and no hits.
    """
    from mrag_eval.retrievers import Index

    if not isinstance(index, Index):
        return index.found(plans, retrieval, use_cache=use_cache)
    merge, means = _merge_for(index, retrieval), means_for(index, retrieval)
    embedder = index.manifest.embedder
    fingerprint = [_FORMAT, index.manifest.content_hash, index.manifest.kind, index.manifest.joint,
                   index.manifest.tokenizer, index.manifest.bm25,
                   embedder and [embedder.name, embedder.revision, embedder.dim],
                   retrieval.k, retrieval.search_depth, merge,
                   retrieval.seed if merge != "score" else None,
                   *([index.settings] if index.settings else [])]  # fmt: skip
    fingerprint += [*merge_version(merge).values(), *([means.fingerprint] if means else [])]
    # rounded vectors or an approximate index may miss hits that an exact one of the same passages finds
    fingerprint += [index.manifest.coded] if index.manifest.coded else []
    fingerprint += [found] if (found := index.manifest.approximate()) else []
    # vectors that were read do not follow from passages and embedder, nor do those of queries
    fingerprint += [*index.manifest.vector_hashes(), *vectors_identity(retrieval).values()]
    keys = [content_key(fingerprint, p.text, p.languages, p.candidates, *p.versions) for p in plans]
    failed: dict[str, FailedBatch] = {}
    with closing(Store(cache_dir() / "retrieval.sqlite")) if use_cache else nullcontext() as store:
        found = store.get_many(keys, _is_found) if store else {}
        missing = {key: plan for key, plan in zip(keys, plans, strict=True) if key not in found}
        if missing:
            queries = number_of(len(missing), "query", "queries")
            log.info("searching '%s': %s, %d from cache", retrieval.corpus, queries, len(keys) - len(missing))

            def search(part: Sequence[str]) -> Iterator[dict[str, Any]]:
                due = {key: missing[key] for key in part}
                vectors = None
                if retrieval.query_vectors is None:
                    vectors = _embedded(index, [text for plan in due.values() for text in plan.texts], store, failed)
                    due = {key: plan for key, plan in due.items() if failed.keys().isdisjoint(plan.texts)}
                if due:
                    yield dict(
                        zip(due, _search(index, list(due.values()), retrieval, merge, means, vectors), strict=True)
                    )

            found |= made_once(missing, search, store, _is_found, at_once=index.queries_at_once or len(missing))
        searchable = _searchable(index, plans, count_candidates, store)
    if failed:
        log.error("%d of %d queries are not embedded: %s", len(failed), len(plans), next(iter(failed.values())).fault)
    out = []
    for key, plan, pool in zip(keys, plans, searchable, strict=True):
        if key in found:
            ranking = tuple(Ranked(*place) for place in found[key]["ranking"])
            out.append(Searched(ranking, tuple(Kept(*chosen) for chosen in found[key]["passages"]), pool))
            continue
        error = next(failed[text].error for text in plan.texts if text in failed)
        name = embedder.name if embedder else retrieval.corpus
        out.append(Searched(searchable=pool, failures=(Failure.of("search", name, error),)))
    return out


def _is_found(value: Any) -> bool:
    """Return whether a value from the cache is the outcome of one search."""
    try:
        ranking = [Ranked(*place) for place in value["ranking"]]
        kept = [Kept(*chosen) for chosen in value["passages"]]
    except (TypeError, KeyError):
        return False
    scores = [*(each.score for each in ranking), *(each.score for each in kept)]
    named = all(isinstance(name, str) for each in ranking for name in (each.id, each.doc_id, each.lang))
    return named and all(isinstance(each.id, str) for each in kept) and all(map(is_finite, scores))


def _is_vector(value: Any, dimension: int) -> bool:
    try:
        vector = _decoded(value)
    except (TypeError, ValueError):
        return False
    return vector.shape == (dimension,) and bool(np.isfinite(vector).all() and vector.any())


def _searchable(
    index: Index, plans: Sequence[RowPlan], count_candidates: bool, store: Store | None
) -> list[Mapping[str, int]]:
    """Return, per plan, the number of searchable passages in each language of its scope: all, or its candidates'.

    Counted once per set of candidates, over all modes and runs.
    """
    scopes = {plan.languages: index.resolve(plan.languages) for plan in plans}
    sets = {plan.candidates for plan in plans if plan.candidates} if count_candidates else set()
    keys = {ids: content_key("candidates by language", index.manifest.content_hash, sorted(ids)) for ids in sets if ids}

    def are_counts(value: Any) -> bool:
        return isinstance(value, dict) and all(type(count) is int for count in value.values())

    known: dict[str, dict[str, int]] = dict(store.get_many(keys.values(), are_counts)) if store else {}
    new = [ids for ids, key in keys.items() if key not in known]
    fresh = {keys[ids]: counts for ids, counts in zip(new, index.counts_named(new), strict=True)} if new else {}
    if store and fresh:
        store.put_many(fresh)
    known |= fresh
    out: list[Mapping[str, int]] = []
    for plan in plans:
        if plan.candidates and plan.candidates not in keys:
            out.append({})
            continue
        counts = known[keys[plan.candidates]] if plan.candidates else index.counts
        out.append({lang: counts.get(lang, 0) for lang in scopes[plan.languages]})
    return out


def _embedded(
    index: Index, queries: Sequence[str], store: Store | None, failed: dict[str, FailedBatch]
) -> dict[str, np.ndarray[Any, Any]] | None:
    """Return the vectors of the queries by text, each embedded once; None for lexical or sparse indexes.

    A text that an endpoint does not embed has none, and is ``failed``.
    """
    from mrag_eval.retrievers import batch_size_for, vectors_arriving

    record = index.manifest.embedder
    if record is None or index.kind == "sparse":
        return None
    texts = {content_key("query vector", record.name, record.revision, record.dim, text): text for text in queries}

    def valid(value: Any) -> bool:
        return _is_vector(value, record.dim)

    known = store.get_many(texts, valid) if store else {}
    new = [key for key in texts if key not in known]
    with Wait(f"embedding queries with {record.name}", len(new)) as wait:

        def embed(keys: Sequence[str]) -> Iterator[dict[str, str]]:
            size = batch_size_for(index.embedder, _BATCH)
            parts = [keys[start : start + size] for start in range(0, len(keys), size)]
            # one text may cost its whole batch, so a batch that fails is halved; but not for an endpoint that is down
            alive = len(parts) == 1
            while parts:
                lost: dict[int, FailedBatch] = {}
                asked = [[texts[key] for key in part] for part in parts]
                for number, vectors in vectors_arriving(index.embedder, asked, queries=True, failed=lost.__setitem__):
                    raw = (np.asarray(vector, dtype="<f4").tobytes() for vector in vectors)
                    yield {k: base64.b64encode(one).decode("ascii") for k, one in zip(parts[number], raw, strict=True)}
                    wait.add(len(parts[number]))
                answered = len(lost) < len(parts)
                alive |= answered
                halves: list[Sequence[str]] = []
                for number, fault in lost.items():
                    part, reason = parts[number], fault.error.partition(":")[0]
                    if len(part) > 1 and (answered or (alive and reason in _OF_A_TEXT)):
                        halves += [part[: len(part) // 2], part[len(part) // 2 :]]
                    else:
                        failed.update(dict.fromkeys(asked[number], fault))
                parts = halves

        known |= made_once(new, embed, store, valid, at_once=_CLAIMED)
    return {text: _decoded(known[key]) for key, text in texts.items() if key in known}


def _decoded(text: str) -> np.ndarray[Any, Any]:
    return np.frombuffer(base64.b64decode(text), dtype="<f4")


def _merge_for(index: Index, retrieval: Retrieval) -> str:
    """Return the merge of several languages' lists.

    The presets' ``score`` leaves it to the index: by score if that is exact, by rank on lexical and hybrid indexes,
    whose scores do not compare across languages.
    """
    if retrieval.merge == "score" and not index.merges_by_score:
        raise ConfigError(
            f"retrieval.merge=score: {index.kind} scores do not compare across languages",
            "use merge=rrf (the default there), or build one joint index (mrag-eval index build --joint)",
        )
    merge = retrieval.merged_by
    # the mean of the only language is one number for all of its passages
    return "score" if merge in CENTERED and len(index.languages) == 1 else merge


def _search(
    index: Index,
    plans: Sequence[RowPlan],
    retrieval: Retrieval,
    merge: str,
    means: LanguageMeans | None,
    vectors: Mapping[str, np.ndarray[Any, Any]] | None,
) -> list[dict[str, Any]]:
    """Return ``{"ranking": [[id, doc_id, lang, score], ...], "passages": [[id, score], ...]}`` per plan.

    ``vectors`` are those of the queries by text; None if the index needs none, or they are given with the plans.
    """
    depth, k = retrieval.search_depth, retrieval.k
    texts = [p.texts for p in plans]
    queries = [text for versions in texts for text in versions]
    embeddings = None if vectors is None else np.stack([vectors[text] for text in queries]).astype(np.float32)
    scope: dict[str, Any] = {
        "languages": [p.languages for p in plans for _ in p.texts],
        "candidates": [p.candidates for p in plans for _ in p.texts] if any(p.candidates for p in plans) else None,
        "embeddings": embeddings if retrieval.query_vectors is None else given_vectors(index, plans, retrieval),
    }
    waiting = f"searching '{retrieval.corpus}' for {len(queries):,} queries"
    if merge == "score":
        with Wait(waiting):
            whole = iter(index.search(queries, depth, **scope))
        by_score = index.merges_by_score
        rankings = [of_versions([next(whole) for _ in each], depth, by_score=by_score, text=each[0]) for each in texts]
        return [_entry(hits, hits[:k]) for hits in rankings]
    deep = depth_of_lists(merge, depth)
    with Wait(waiting):
        found = iter(index.search_by_language(queries, deep, **scope))
    offsets = {} if means is None else {lang: means.offsets(scope["embeddings"], lang) for lang in index.languages}
    out, first = [], 0
    for versions in texts:
        lists = [next(found) for _ in versions]
        by_language = {lang: _of_versions(index, lists, lang, deep, versions[0]) for lang in lists[0]}
        centered = None
        if means is not None:
            for number, one in enumerate(lists, first):
                for lang, hits in one.items():
                    one[lang] = [replace(hit, score=hit.score - float(offsets[lang][number])) for hit in hits]
            centered = {lang: _of_versions(index, lists, lang, deep, versions[0]) for lang in lists[0]}
        first += len(versions)
        out.append(
            _entry(*(merged(merge, by_language, n, index, retrieval.seed, versions[0], centered) for n in (depth, k)))
        )
    return out


def _of_versions(index: Index, lists: Sequence[dict[str, list[Hit]]], lang: str, depth: int, text: str) -> list[Hit]:
    return of_versions([one[lang] for one in lists], depth, by_score=index.merges_by_score, text=text)


def _entry(ranking: Sequence[Hit], passages: Sequence[Hit]) -> dict[str, Any]:
    return {
        "ranking": [[h.id, h.doc_id, h.lang, h.score] for h in ranking],
        "passages": [[h.id, h.score] for h in passages],
    }
