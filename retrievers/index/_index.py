"""Search in an index: shard by shard, merged over languages, with one order of ties."""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from mrag_eval.core import Hit, Passage, language_name, matching_languages, normalize_language
from mrag_eval.platform import ConfigError, CorpusError, DataError
from mrag_eval.retrievers.embedding._allowed import Spec
from mrag_eval.retrievers.embedding._embedders import Embedder, Vectors
from mrag_eval.retrievers.embedding._sparse_encoders import SparseEncoder, sparse_query_vectors
from mrag_eval.retrievers.index._folder_shards import FolderShards, Lists
from mrag_eval.retrievers.index._fusion import query_turn
from mrag_eval.retrievers.index._means import LanguageMeans, means_of
from mrag_eval.retrievers.index._passages import PassageRows, PassageStore, Record
from mrag_eval.retrievers.index._query_encoder import QueryEncoder
from mrag_eval.retrievers.shards._faiss_shard import FaissShard
from mrag_eval.retrievers.shards._manifest import Manifest
from mrag_eval.retrievers.shards._ordering import (
    Rows,
    Scores,
    fuse_reciprocal,
    language_places,
    reciprocal_ranks,
    top_k,
)

# Depth of fused lists in a hybrid search; a fixed one makes results of a small k prefixes of larger ones
FUSION_DEPTH = 100


class Index:
    """Passages of several languages, one shard each; made by ``build_index``, opened by :func:`load_index`.

    :class:`~mrag_eval.retrievers.MilvusIndex` has them in Milvus. ``path`` is the location, for messages.

    ``kind`` is ``dense`` (inner products of one embedder), ``bm25``, ``hybrid`` (both, by reciprocal rank fusion) or
    ``sparse`` (inner products of learned sparse vectors; a hit shares at least one term with its query). Files are
    opened on first use. Hits are ordered by score, descending, then, of several languages, by a hash of query and
    language, then by passage id, ascending, everywhere.
    """

    _means: LanguageMeans | None = None

    def __init__(
        self,
        path: Path,
        manifest: Manifest,
        *,
        mmap: bool = True,
        device: str = "cpu",
        embedder: Embedder | SparseEncoder | None = None,
        own: Sequence[Spec] = (),
    ) -> None:
        self.path: Path | str = path
        self.manifest = manifest
        self.languages: tuple[str, ...] = tuple(sorted(manifest.languages))
        self._store: PassageRows = PassageStore(
            path, {lang: manifest.languages[lang].passages for lang in self.languages}
        )
        self._encoder = QueryEncoder(path, manifest, device, embedder, own)
        self._shards = FolderShards(path, manifest, self._store, mmap=mmap)

    def __len__(self) -> int:
        return len(self._store)

    def __repr__(self) -> str:
        return f"Index({str(self.path)!r}, {self.kind}, {len(self)} passages, {', '.join(self.languages)})"

    @property
    def kind(self) -> str:
        return self.manifest.kind

    @property
    def settings(self) -> dict[str, Any]:
        """Return settings besides the manifest that affect search, for cache keys of results: none here."""
        return {}

    @property
    def queries_at_once(self) -> int | None:
        """Return the recommended number of queries per search; None means all, which reads every shard once."""
        return None

    @property
    def counts(self) -> dict[str, int]:
        """Return the number of passages per language."""
        return {lang: record.passages for lang, record in self.manifest.languages.items()}

    @property
    def documents(self) -> dict[str, int]:
        """Return the number of documents per language."""
        return {lang: record.documents for lang, record in self.manifest.languages.items()}

    @property
    def merges_by_score(self) -> bool:
        """Return whether scores of different languages in :meth:`search_by_language` are comparable.

        Inner products (dense or sparse) and scores of a joint lexical shard are; scores of separate lexical shards and
        the fused ranks of a hybrid index are not.
        """
        return self.kind in ("dense", "sparse") or (self.kind == "bm25" and self.manifest.joint)

    @property
    def means(self) -> LanguageMeans:
        """Return the mean vector of each language; raise CorpusError if the index does not hold them."""
        if self._means is None:
            self._means = self._read_means()
        return self._means

    def _read_means(self) -> LanguageMeans:
        means = means_of(Path(self.path), self.manifest)
        if means is None:
            raise CorpusError(
                f"index {self.path} has no means of its languages' vectors",
                f"compute them, nothing is embedded: mrag-eval index center {self.path}",
            )
        return means

    def shard(self, language: str) -> FaissShard:
        """Return the dense shard of one language; its ``.index`` is the FAISS index."""
        (lang,) = self.resolve([language])
        if lang not in self._shards.dense:
            raise CorpusError(
                f"index {self.path} is lexical, it has no dense shards", "search it as it is, or build a dense index"
            )
        return self._shards.dense[lang]

    def passages(self, ids: Sequence[str]) -> list[Passage]:
        """Return the passages with these ids, in this order; raise CorpusError for an unknown id."""
        return self._store.passages(self._store.rows_of_passages(ids))

    def first_passages(self, n: int) -> list[Passage]:
        """Return the first ``n`` passages of the corpus."""
        return self._store.passages(np.arange(min(n, len(self))))

    def passages_named(self, names: Collection[str]) -> dict[str, list[Passage]]:
        """Return passages by passage or document id, in corpus order; an unknown id has none."""
        found = self._store.rows_named(names)
        return {name: self._store.passages(np.sort(rows)) if len(rows) else [] for name, rows in found.items()}

    def counts_named(self, candidates: Sequence[Collection[str]]) -> list[dict[str, int]]:
        """Count the passages per language in each collection of passage or document ids; unknown ids count zero."""
        return candidate_counts(self._store, candidates)

    def resolve(self, languages: Sequence[str] | None) -> tuple[str, ...]:
        """Return the sorted shards of a scope; None means all.

        Codes may have any spelling. A language without a shard is replaced by its scripts: ``zh`` finds ``zh-Hans`` and
        ``zh-Hant``, and each of those finds ``zh``. Raises CorpusError for a language without a shard.
        """
        return resolve(self.path, self.languages, languages)

    def search(
        self,
        queries: Sequence[str],
        k: int,
        *,
        languages: Scope = None,
        candidates: Candidates = None,
        embeddings: Vectors | None = None,
    ) -> list[list[Hit]]:
        """Return up to ``k`` best passages per query; one list per query, in order.

        Over several languages: inner products are merged by score, which is exact; lexical lists by reciprocal rank,
        because their scores are not comparable, unless the index was built with ``joint=True``. A hybrid search fuses
        the dense ranking over the scope with the lexical list of every language (or the joint one) by reciprocal rank.
        A lexical hit shares at least one token with its query.

        Args:
            queries: texts.
            k: maximum number of hits, at least 1.
            languages: None (all), codes for all queries, or one collection of codes (or None) per query;
                see :meth:`resolve`.
            candidates: per query the document or passage ids to restrict the search to, or None. Unknown ids are
                ignored with a warning.
            embeddings: vectors of the queries (queries × dimensions); None embeds them.

        Raises DataError for an empty query (naming its position) or arguments of different
        lengths, CorpusError for a language without a shard.
        """
        scopes, rows, vectors = self._prepare(queries, k, languages, candidates, embeddings)
        if not len(queries):
            return []
        return hits_of(self._store, *self._ranking(queries, k, scopes, rows, vectors))

    def search_by_language(
        self,
        queries: Sequence[str],
        k: int,
        *,
        languages: Scope = None,
        candidates: Candidates = None,
        embeddings: Vectors | None = None,
    ) -> list[dict[str, list[Hit]]]:
        """Return, per query, up to ``k`` hits for every language in scope; arguments and errors as :meth:`search`.

        Keys are the codes of the shards (:attr:`languages`). Every shard is searched once for all its queries.
        """
        scopes, rows, vectors = self._prepare(queries, k, languages, candidates, embeddings)
        out: list[dict[str, list[Hit]]] = [{} for _ in queries]
        if not len(queries):
            return out
        for lang, (positions, scores, found) in self._lists(queries, k, scopes, rows, vectors).items():
            for position, hits in zip(positions.tolist(), hits_of(self._store, scores, found), strict=True):
                out[position][lang] = hits
        return out

    # --- arguments --------------------------------------------------------------------------------------------------

    def _prepare(
        self, queries: Sequence[str], k: int, languages: Scope, candidates: Candidates, embeddings: Vectors | None
    ) -> tuple[dict[str, Rows], list[Rows | None] | None, Vectors | None]:
        """Check the arguments; return query positions per language, rows of candidates, and query vectors."""
        if isinstance(queries, str):
            raise DataError("queries is one text, expected a list of them", "wrap it: [query]")
        if k < 1:
            raise ConfigError(f"k is {k}, it must be at least 1", "e.g. k=5")
        for position, query in enumerate(queries):
            if not query.strip():
                raise DataError(f"query {position} is empty", "leave it out, or give it text")
        scopes = queries_by_language(self.path, self.languages, languages, len(queries))
        rows = None if candidates is None else candidate_rows(self._store, candidates, len(queries))
        return scopes, rows, self._encoder.vectors(queries, embeddings)

    @property
    def embedder(self) -> Embedder:
        """Return the index's embedder, loaded on first use; raise CorpusError if the installed one differs."""
        return self._encoder.embedder

    @property
    def sparse_encoder(self) -> SparseEncoder:
        """Return the index's sparse encoder, like :attr:`embedder`."""
        return self._encoder.sparse_encoder

    def check_encoder(self) -> None:
        """Raise CorpusError if the model of queries needs a setting of the user's; nothing is loaded."""
        self._encoder.check()

    # --- ranking ----------------------------------------------------------------------------------------------------

    def _ranking(
        self,
        queries: Sequence[str],
        k: int,
        scopes: dict[str, Rows],
        rows: list[Rows | None] | None,
        vectors: Vectors | None,
    ) -> tuple[Scores, Rows]:
        if self.kind == "hybrid":
            depth = max(k, FUSION_DEPTH)
            places = self._places(queries)
            _, dense = self._merge(self._dense_lists(depth, scopes, rows, vectors), len(queries), depth, places)
            lexical = self._lexical_lists(queries, depth, scopes, rows)
            if self.manifest.joint:
                by_score = self._merge(lexical, len(queries), depth, places)
                lexical = {"joint": (np.arange(len(queries)), *by_score)}
            ranked = [(None, dense), *((p, r) for p, _, r in lexical.values())]
            return fuse_reciprocal(len(queries), ranked, k, self._store.ids, places)
        return self._merge(self._lists(queries, k, scopes, rows, vectors), len(queries), k, self._places(queries))

    def _places(self, queries: Sequence[str]) -> Callable[[Rows], Rows]:
        """Return a function for the order of languages where hits of several tie."""
        turns, codes = list(map(query_turn, queries)), sorted(self.counts)
        return lambda rows: language_places(self._store.language_numbers(rows), turns, codes)

    def _lists(
        self,
        queries: Sequence[str],
        k: int,
        scopes: dict[str, Rows],
        rows: list[Rows | None] | None,
        vectors: Vectors | None,
    ) -> Lists:
        if self.kind == "dense":
            return self._dense_lists(k, scopes, rows, vectors)
        if self.kind in ("bm25", "sparse"):
            return self._lexical_lists(queries, k, scopes, rows)
        depth = max(k, FUSION_DEPTH)
        dense = self._dense_lists(depth, scopes, rows, vectors)
        lexical = self._lexical_lists(queries, depth, scopes, rows)
        fused: Lists = {}
        for lang, positions in scopes.items():
            ranked = [(None, dense[lang][2]), (None, lexical[lang][2])]
            fused[lang] = (positions, *fuse_reciprocal(len(positions), ranked, k, self._store.ids))
        return fused

    def _dense_lists(
        self, k: int, scopes: dict[str, Rows], rows: list[Rows | None] | None, vectors: Vectors | None
    ) -> Lists:
        assert vectors is not None
        return self._shards.dense_lists(vectors, k, scopes, rows)

    def _lexical_lists(
        self, queries: Sequence[str], k: int, scopes: dict[str, Rows], rows: list[Rows | None] | None
    ) -> Lists:
        asked: Sequence[Any] = queries
        if self.kind == "sparse":
            asked = sparse_query_vectors(self.sparse_encoder, queries)
        return self._shards.lexical_lists(asked, k, scopes, rows)

    def _merge(self, lists: Lists, count: int, k: int, places_of: Callable[[Rows], Rows]) -> tuple[Scores, Rows]:
        if len(lists) == 1:
            ((positions, scores, rows),) = lists.values()
            if len(positions) == count:
                return scores, rows
        all_scores = np.full((count, k * len(lists)), -np.inf)
        all_rows = np.full((count, k * len(lists)), -1, dtype=np.int64)
        in_scope = np.zeros(count, dtype=np.int64)
        for positions, _, _ in lists.values():
            in_scope[positions] += 1
        for place, (positions, scores, rows) in enumerate(lists.values()):
            columns = slice(place * k, place * k + scores.shape[1])
            if self.kind == "bm25" and not self.manifest.joint:
                # lists of different languages are disjoint, so fusing them means using 1 / (c + rank) as score
                several = (in_scope[positions] > 1)[:, None]
                scores = np.where(several, reciprocal_ranks(rows), scores)
            all_scores[positions, columns] = scores
            all_rows[positions, columns] = rows
        return top_k(all_scores, all_rows, k, self._store.ids, places_of(all_rows))


def hits_of(store: PassageRows, scores: Scores, rows: Rows) -> list[list[Hit]]:
    """Return the hits of every list (queries × k); row -1 is an empty place. Each passage is read once."""
    present = rows >= 0
    unique, where = np.unique(rows[present], return_inverse=True)
    places = iter(where.reshape(-1).tolist())
    values = iter(scores[present].tolist())
    with _no_collection():
        known: list[tuple[str, Record]] = [("", ("", "", "", ""))] * len(unique)
        for lang, positions, records in store.records(unique):
            for position, record in zip(positions.tolist(), records, strict=True):
                known[position] = (lang, record)
        out: list[list[Hit]] = []
        for number in present.sum(axis=1).tolist():
            hits: list[Hit] = []
            for rank in range(1, number + 1):
                lang, (identifier, doc_id, title, text) = known[next(places)]
                hits.append(Hit(identifier, lang, text, next(values), rank, title, doc_id))
            out.append(hits)
    return out


@contextmanager
def _no_collection() -> Iterator[None]:
    """Pause the garbage collector, which would scan tens of thousands of new hits repeatedly."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


logger = logging.getLogger(__name__)

Scope = Sequence[str] | Sequence[Sequence[str] | None] | None
"""None (all languages), codes for all queries, or one collection of codes (or None) per query."""

Candidates = Sequence[Collection[str] | None] | None
"""Per query the document or passage ids to search in, or None."""


def resolve(path: Path | str, shards: tuple[str, ...], languages: Sequence[str] | None) -> tuple[str, ...]:
    """Return the sorted shards of a scope; see ``Index.resolve``."""
    if languages is None:
        return shards
    found: set[str] = set()
    for language in [languages] if isinstance(languages, str) else languages:
        code = normalize_language(language)
        matches = matching_languages(code, shards)
        if not matches:
            raise CorpusError(
                f"index {path} has no {language_name(code)} shard '{code}' (it holds: {', '.join(shards)})",
                f"build one with {code} passages: mrag-eval index build ...   or choose another retrieval.mode",
            )
        found |= matches
    if not found:
        raise ConfigError("the scope names no language", "languages=None searches all of them")
    return tuple(sorted(found))


def queries_by_language(path: Path | str, shards: tuple[str, ...], languages: Scope, count: int) -> dict[str, Rows]:
    """Return, for every shard in scope, the positions of its queries."""
    if languages is None or isinstance(languages, str):
        return dict.fromkeys(resolve(path, shards, languages), np.arange(count))
    codes = [code for code in languages if isinstance(code, str)]
    if codes and len(codes) == len(languages):
        return dict.fromkeys(resolve(path, shards, codes), np.arange(count))
    _same_length("languages", languages, count)
    resolved: dict[tuple[str, ...] | None, tuple[str, ...]] = {}
    members: dict[str, list[int]] = {}
    for position, scope in enumerate(languages):
        key = None if scope is None else (scope,) if isinstance(scope, str) else tuple(scope)
        if key not in resolved:
            resolved[key] = resolve(path, shards, key)
        for shard in resolved[key]:
            members.setdefault(shard, []).append(position)
    return {shard: np.asarray(members[shard], dtype=np.int64) for shard in sorted(members)}


def candidate_rows(store: PassageRows, candidates: Sequence[Collection[str] | None], count: int) -> list[Rows | None]:
    """Return the rows of every query's candidates; unknown ids are ignored with a warning."""
    _same_length("candidates", candidates, count)
    if any(isinstance(ids, str) for ids in candidates):
        raise DataError(
            "candidates holds a text, expected one collection of ids (or None) per query",
            "candidates=[['id1', 'id2'], None]",
        )
    named = store.rows_named(dict.fromkeys(i for ids in candidates if ids is not None for i in ids))
    unknown = [identifier for identifier, rows in named.items() if not len(rows)]
    if unknown:
        what = "%s: %d of %d candidate ids are not in the index, '%s' among them"
        logger.warning(what, store.folder, len(unknown), len(named), unknown[0])
    return [None if ids is None else _together(named, ids) for ids in candidates]


def candidate_counts(store: PassageRows, candidates: Sequence[Collection[str]]) -> list[dict[str, int]]:
    """Count distinct passages per language in each collection of ids; unknown ids count zero."""
    named = store.rows_named(dict.fromkeys(i for ids in candidates for i in ids))
    return [store.counts_of(_together(named, ids)) for ids in candidates]


def _together(named: Mapping[str, Rows], ids: Collection[str]) -> Rows:
    nothing = np.empty(0, dtype=np.int64)
    return np.unique(np.concatenate([nothing, *(named[identifier] for identifier in ids)]))


def _same_length(what: str, values: Sequence[Any], count: int) -> None:
    if len(values) != count:
        raise DataError(f"{what} has {len(values)} entries for {count} queries", "give one entry per query")
