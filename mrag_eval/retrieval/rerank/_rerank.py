"""The second stage: the hits of all rows are scored once more, and the best ``k`` are kept.

Scores of query and passage are cached on disk by the model with its settings and both texts, and committed as they are
made, so that neither a second mode of a suite, nor a restarted run, nor another process computes them twice.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import replace
from typing import Any

from mrag_eval import models
from mrag_eval.config import Retrieval
from mrag_eval.core import Failure, Kept, Passage, RagDoc, Ranked, Reranking, Searched, titled
from mrag_eval.platform import Store, Wait, cache_dir, content_key, is_finite, made_once, number_of
from mrag_eval.retrieval._plan import RowPlan
from mrag_eval.retrieval._texts import PassageSource, passages_by_id
from mrag_eval.retrieval.rerank._api import ApiReranker
from mrag_eval.retrieval.rerank._listwise import ListQuery, ListwiseReranker
from mrag_eval.retrievers import Reranker, checked_scores

# Below the harness's logger, so that its command shows our lines as it shows its own.
log = logging.getLogger(f"lm_eval.{__name__}")
_FORMAT = "rerank/1"
# Pairs scored before they are saved: enough for a model to fill its batches with equal lengths.
_CHUNK = 2048
_FIRST_CHUNK = 128
# A row's reranking, and the failure that left it without one.
_Result = tuple[Reranking, Failure | None]


def open_reranker(retrieval: Retrieval) -> Reranker | ListwiseReranker | None:
    """Return the reranker of a block, None if it has none. Raise ConfigError if it is not available."""
    block = retrieval.rerank
    if block is None:
        return None
    if block.kind == "listwise":
        model = models.get(block.model)
        return ListwiseReranker(model, window=block.window, step=block.step, prompt=block.prompt)
    if block.kind == "api":
        return ApiReranker(block)
    from mrag_eval.retrievers import load_bge_m3, load_cross_encoder

    settings: dict[str, Any] = {
        "revision": block.revision,
        "max_length": block.max_length,
        "batch_size": block.batch_size,
        "device": block.device or retrieval.device,
    }
    with Wait(f"loading the reranker {block.name}"):
        if block.kind == "bge-m3":
            return load_bge_m3(block.name, weights=block.weights, **settings)
        return load_cross_encoder(
            block.name, instruction=block.instruction, trust_remote_code=block.trust_remote_code, **settings
        )


def rerank(
    found: Sequence[Searched],
    docs: Sequence[RagDoc],
    plans: Sequence[RowPlan],
    retrieval: Retrieval,
    reranker: Reranker | ListwiseReranker,
    source: PassageSource,
    *,
    use_cache: bool = True,
) -> list[Searched]:
    """Return the rows with :attr:`Searched.reranked` and the best ``k`` kept; the search's ranking does not change.

    The first ``rerank.depth`` hits of every row take part. Equal scores are ordered by passage id. A row without hits
    has nothing to rerank. A row whose calls failed keeps the search's order, with the failure; if no row of any has
    scores, CorpusError is raised.
    """
    from_question = retrieval.rerank is not None and retrieval.rerank.query == "question"
    queries = [doc.query if from_question else plan.text for doc, plan in zip(docs, plans, strict=True)]
    candidates = [row.ranking[: retrieval.rerank_depth] for row in found]
    texts = passages_by_id((place.id for row in candidates for place in row), source)
    if isinstance(reranker, ListwiseReranker):
        results = _by_list(reranker, docs, queries, candidates, texts)
    else:
        results = _by_pair(reranker, queries, candidates, texts, use_cache)
    return [_kept(row, *result, retrieval.k) for row, result in zip(found, results, strict=True)]


def _kept(row: Searched, result: Reranking, failure: Failure | None, k: int) -> Searched:
    failures = row.failures if failure is None else (*row.failures, failure)
    if not result.ranking:
        return replace(row, reranked=result, failures=failures)
    scores = {place.id: place.score for place in row.ranking}
    kept = tuple(Kept(place.id, scores[place.id], place.score) for place in result.ranking[:k])
    return replace(row, kept=kept, reranked=result, failures=failures)


def _ranked(places: Sequence[Ranked], scores: Sequence[float]) -> tuple[Ranked, ...]:
    rescored = [Ranked(p.id, p.doc_id, p.lang, float(score)) for p, score in zip(places, scores, strict=True)]
    return tuple(sorted(rescored, key=lambda place: (-place.score, place.id)))


# --- by query and passage ---------------------------------------------------------------------------------------------


def _by_pair(
    reranker: Reranker,
    queries: Sequence[str],
    candidates: Sequence[Sequence[Ranked]],
    texts: Mapping[str, Passage],
    use_cache: bool,
) -> list[_Result]:
    read = {pid: titled(passage.title, passage.text) for pid, passage in texts.items()}
    # such a model's score depends on the other passages of the list
    lists = getattr(reranker, "reads_lists", False)
    contexts = [[content_key(*(read[place.id] for place in row))] if lists and row else [] for row in candidates]
    keys = [
        [content_key(_FORMAT, reranker.name, reranker.revision, query, *context, read[place.id]) for place in row]
        for query, context, row in zip(queries, contexts, candidates, strict=True)
    ]
    rows: dict[tuple[str, ...], dict[str, str]] = {}
    for query, context, row, row_keys in zip(queries, contexts, candidates, keys, strict=True):
        rows.setdefault((query, *context), {}).update({k: read[p.id] for p, k in zip(row, row_keys, strict=True)})
    row_of = {key: row for row, row_texts in rows.items() for key in row_texts}
    errors: dict[tuple[str, ...], str] = {}
    with closing(Store(cache_dir() / "rerank.sqlite")) if use_cache else nullcontext() as store:
        known: dict[str, float] = store.get_many(row_of, is_finite) if store else {}
        missing = [key for key in row_of if key not in known]
        name, total = reranker.name, len(missing)
        if missing:
            log.info("reranking with %s: %d of %d pairs, the others from cache", name, total, len(row_of))
        with Wait(f"reranking with {name}", total, "pairs") as wait:

            def scored(asked: Sequence[str]) -> Iterator[dict[str, float]]:
                wanted: dict[tuple[str, ...], dict[str, str]] = {}
                for key in asked:
                    row = row_of[key]
                    wanted.setdefault(row, {}).update(rows[row] if lists else {key: rows[row][key]})
                for part in _scored(reranker, wanted, errors):
                    yield part
                    wait.add(len(part))

            known |= made_once(missing, scored, store, is_finite, at_once=_CHUNK)
    if isinstance(reranker, ApiReranker) and errors:
        log.error(
            "%d of %d rankings have no scores: %s", len(errors), len(rows), reranker.fault(next(iter(errors.values())))
        )
    out: list[_Result] = []
    for query, context, row, row_keys in zip(queries, contexts, candidates, keys, strict=True):
        if known.keys() >= set(row_keys):
            out.append((Reranking(_ranked(row, [known[key] for key in row_keys])), None))
            continue
        asked = (query, *context)
        failure = Failure.of("rerank", name, errors[asked])
        out.append((Reranking(fault=f"the reranker gave no scores ({failure.reason})"), failure))
    return out


def _scored(
    reranker: Reranker, rows: Mapping[tuple[str, ...], Mapping[str, str]], errors: dict[tuple[str, ...], str]
) -> Iterator[dict[str, float]]:
    """Yield the scores of texts by their keys, as they are made; the first part of a row's own key is its query.

    ``errors`` gets the row's key and the error where an endpoint does not give all of its scores.
    """
    for chunk in [rows] if isinstance(reranker, ApiReranker) else _chunks(rows):
        queries, keys = [row[0] for row in chunk], [list(texts) for texts in chunk.values()]
        passages = [list(texts.values()) for texts in chunk.values()]
        if isinstance(reranker, ApiReranker):
            failed: dict[int, str] = {}
            for row, start, found in reranker.arriving(queries, passages, failed):
                yield dict(zip(keys[row][start : start + len(found)], found, strict=True))
            errors |= {list(chunk)[row]: error for row, error in failed.items()}
            continue
        scores = checked_scores(reranker, reranker.scores(queries, passages), passages)
        yield {
            key: float(score)
            for row_keys, row_scores in zip(keys, scores, strict=True)
            for key, score in zip(row_keys, row_scores, strict=True)
        }


def _chunks(rows: Mapping[tuple[str, ...], Mapping[str, str]]) -> Iterator[Mapping[tuple[str, ...], Mapping[str, str]]]:
    """Yield the rows in chunks that grow up to :data:`_CHUNK` pairs, so that the time left is soon known."""
    size = min(_FIRST_CHUNK, _CHUNK)
    chunk: dict[tuple[str, ...], Mapping[str, str]] = {}
    pairs = 0
    for row, texts in rows.items():
        chunk[row] = texts
        pairs += len(texts)
        if pairs >= size:
            yield chunk
            chunk, pairs, size = {}, 0, min(2 * size, _CHUNK)
    if chunk:
        yield chunk


# --- by list ----------------------------------------------------------------------------------------------------------


def _by_list(
    reranker: ListwiseReranker,
    docs: Sequence[RagDoc],
    queries: Sequence[str],
    candidates: Sequence[Sequence[Ranked]],
    texts: Mapping[str, Passage],
) -> list[_Result]:
    """Rerank by a listwise model. An order has no scores: the first of n gets n, the last 1."""
    asked = [
        ListQuery(
            query,
            doc.query_lang,
            [{"text": p.text, "title": p.title, "lang": p.lang} for p in (texts[place.id] for place in row)],
        )
        for doc, query, row in zip(docs, queries, candidates, strict=True)
    ]
    ordered = reranker.order(asked)
    faults = Counter(result.fault for result in ordered if result.fault is not None)
    windows, repaired = sum(result.windows for result in ordered), sum(result.repaired for result in ordered)
    log.info("reranked by %s: %s, %d of them repaired", reranker.model.name, number_of(windows, "list"), repaired)
    for fault, count in faults.items():
        log.warning("reranked by %s: %d rows keep the search's order: %s", reranker.model.name, count, fault)
    out: list[_Result] = []
    for row, result in zip(candidates, ordered, strict=True):
        ranking: tuple[Ranked, ...] = ()
        if result.fault is None:
            ranking = _ranked([row[place] for place in result.order], range(len(row), 0, -1))
        out.append((Reranking(ranking, result.fault, result.windows, result.repaired), result.failure))
    return out
