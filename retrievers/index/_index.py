"""Search in an index: shard by shard, merged over languages, with one order of ties."""

from __future__ import annotations

import gc
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from mrag_eval.core import ConfigError, CorpusError, DataError, Hit, Passage
from mrag_eval.retrievers.embedding._embedders import Embedder, Vectors, load_embedder, query_vectors
from mrag_eval.retrievers.embedding._sparse_encoders import SparseEncoder, load_sparse_encoder, sparse_query_vectors
from mrag_eval.retrievers.index._passages import PassageRows, PassageStore, Record
from mrag_eval.retrievers.index._scope import (
    Candidates,
    Scope,
    candidate_counts,
    candidate_rows,
    queries_by_language,
    resolve,
)
from mrag_eval.retrievers.shards._approximate_shard import open_dense
from mrag_eval.retrievers.shards._bm25_shard import Bm25Shard
from mrag_eval.retrievers.shards._faiss_shard import FaissShard
from mrag_eval.retrievers.shards._manifest import EmbedderRecord, Manifest
from mrag_eval.retrievers.shards._ordering import Rows, Scores, fuse_reciprocal, reciprocal_ranks, top_k, top_k_line
from mrag_eval.retrievers.shards._sparse_shard import SparseShard
from mrag_eval.retrievers.shards._tokenize import tokenizer

# Depth of fused lists in a hybrid search; a fixed one makes results of a small k prefixes of larger ones
FUSION_DEPTH = 100

# language -> (positions of the queries that have it in scope, scores, rows); both queries × depth
_Lists = dict[str, tuple[Rows, Scores, Rows]]


class Index:
    """Passages of several languages, one shard each; made by ``build_index``, opened by :func:`load_index`.

    :class:`~mrag_eval.retrievers.MilvusIndex` searches the same shards in Milvus. ``path`` is the location, for messages.

    ``kind`` is ``dense`` (inner products of one embedder), ``bm25``, ``hybrid`` (both, by reciprocal rank fusion) or
    ``sparse`` (inner products of learned sparse vectors; a hit shares at least one term with its query). Files are
    opened on first use. Hits are ordered by score, descending, then passage id, ascending, everywhere.
    """

    def __init__(
        self,
        path: Path,
        manifest: Manifest,
        *,
        mmap: bool = True,
        device: str = "cpu",
        embedder: Embedder | SparseEncoder | None = None,
    ) -> None:
        self.path: Path | str = path
        self.manifest, self._device, self._embedder = manifest, device, embedder
        self.languages: tuple[str, ...] = tuple(sorted(manifest.languages))
        self._store: PassageRows = PassageStore(
            path, {lang: manifest.languages[lang].passages for lang in self.languages}
        )
        self._dense: dict[str, FaissShard] = {}
        self._lexical: dict[str, Bm25Shard | SparseShard] = {}
        if manifest.embedder is not None and manifest.kind == "sparse":
            for lang in self.languages:
                low, high = self._store.span(lang)
                folder = path / "sparse" / lang
                self._lexical[lang] = SparseShard(folder, high - low, manifest.embedder.dim, first_row=low, mmap=mmap)
        elif manifest.embedder is not None:
            for lang in self.languages:
                self._dense[lang] = open_dense(path, manifest, lang, first_row=self._store.span(lang)[0], mmap=mmap)
        if manifest.tokenizer is not None:
            tokenize = tokenizer(str(manifest.tokenizer["name"]), int(manifest.tokenizer["version"]))
            if manifest.joint:
                joint = Bm25Shard(path / "bm25" / "joint", len(self._store), tokenize, mmap=mmap)
                self._lexical = dict.fromkeys(self.languages, joint)
            else:
                for lang in self.languages:
                    low, high = self._store.span(lang)
                    folder = path / "bm25" / lang
                    self._lexical[lang] = Bm25Shard(folder, high - low, tokenize, first_row=low, mmap=mmap)

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
    def merges_by_score(self) -> bool:
        """Return whether scores of different languages in :meth:`search_by_language` are comparable.

        Inner products (dense or sparse) and scores of a joint lexical shard are; scores of separate lexical shards and
        the fused ranks of a hybrid index are not.
        """
        return self.kind in ("dense", "sparse") or (self.kind == "bm25" and self.manifest.joint)

    def shard(self, language: str) -> FaissShard:
        """Return the dense shard of one language; its ``.index`` is the FAISS index."""
        (lang,) = self.resolve([language])
        if lang not in self._dense:
            raise CorpusError(
                f"index {self.path} is lexical, it has no dense shards", "search it as it is, or build a dense index"
            )
        return self._dense[lang]

    def passages(self, ids: Sequence[str]) -> list[Passage]:
        """Return the passages with these ids, in this order; raise CorpusError for an unknown id."""
        return self._store.passages(self._store.rows_of_passages(ids))

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

        Raises :class:`~mrag_eval.core.DataError` for an empty query (naming its position) or arguments of different
        lengths, :class:`~mrag_eval.core.CorpusError` for a language without a shard.
        """
        scopes, rows, vectors = self._prepare(queries, k, languages, candidates, embeddings)
        if not len(queries):
            return []
        return self._hits(*self._ranking(queries, k, scopes, rows, vectors))

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
            for position, hits in zip(positions.tolist(), self._hits(scores, found), strict=True):
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
        if self.manifest.embedder is None or self.kind == "sparse" or not len(queries):
            return scopes, rows, None
        if embeddings is None:
            return scopes, rows, query_vectors(self.embedder, queries)
        vectors = np.ascontiguousarray(embeddings, dtype=np.float32)
        expected = (len(queries), self.manifest.embedder.dim)
        if vectors.shape != expected:
            raise CorpusError(
                f"index {self.path} has {expected[1]} dimensions and there are {expected[0]} queries, "
                f"the given embeddings have shape {vectors.shape}",
                f"embed the queries with {self.manifest.embedder.name}",
            )
        if not np.isfinite(vectors).all():
            raise DataError(
                "the given embeddings contain a value that is not finite", "check the embedder that made them"
            )
        return scopes, rows, vectors

    @property
    def embedder(self) -> Embedder:
        """Return the index's embedder, loaded on first use; raise CorpusError if the installed one differs."""
        record = self.manifest.embedder
        if record is None:
            raise CorpusError(f"index {self.path} is lexical, it has no embedder", "search with texts: Index.search")
        if self.kind == "sparse":
            raise CorpusError(
                f"index {self.path} is sparse: it has a sparse encoder, not an embedder",
                "search with texts: Index.search",
            )
        if self._embedder is None:
            self._embedder = load_embedder(_spec(self.path, record), device=self._device)
            _check_revision(self.path, record, self._embedder.revision)
        return self._embedder  # type: ignore[return-value]

    @property
    def sparse_encoder(self) -> SparseEncoder:
        """Return the index's sparse encoder, like :attr:`embedder`."""
        record = self.manifest.embedder
        if record is None or self.kind != "sparse":
            raise CorpusError(
                f"index {self.path} is of kind '{self.kind}', it has no sparse encoder",
                "search with texts: Index.search",
            )
        if self._embedder is None:
            self._embedder = load_sparse_encoder(_spec(self.path, record), device=self._device)
            _check_revision(self.path, record, self._embedder.revision)
        return self._embedder  # type: ignore[return-value]

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
            _, dense = self._merge(self._dense_lists(depth, scopes, rows, vectors), len(queries), depth)
            lexical = self._lexical_lists(queries, depth, scopes, rows)
            if self.manifest.joint:
                by_score = self._merge(lexical, len(queries), depth)
                lexical = {"joint": (np.arange(len(queries)), *by_score)}
            return fuse_reciprocal(
                len(queries), [(None, dense), *((p, r) for p, _, r in lexical.values())], k, self._store.ids
            )
        return self._merge(self._lists(queries, k, scopes, rows, vectors), len(queries), k)

    def _lists(
        self,
        queries: Sequence[str],
        k: int,
        scopes: dict[str, Rows],
        rows: list[Rows | None] | None,
        vectors: Vectors | None,
    ) -> _Lists:
        if self.kind == "dense":
            return self._dense_lists(k, scopes, rows, vectors)
        if self.kind in ("bm25", "sparse"):
            return self._lexical_lists(queries, k, scopes, rows)
        depth = max(k, FUSION_DEPTH)
        dense = self._dense_lists(depth, scopes, rows, vectors)
        lexical = self._lexical_lists(queries, depth, scopes, rows)
        fused: _Lists = {}
        for lang, positions in scopes.items():
            ranked = [(None, dense[lang][2]), (None, lexical[lang][2])]
            fused[lang] = (positions, *fuse_reciprocal(len(positions), ranked, k, self._store.ids))
        return fused

    def _dense_lists(
        self, k: int, scopes: dict[str, Rows], rows: list[Rows | None] | None, vectors: Vectors | None
    ) -> _Lists:
        assert vectors is not None
        lists: _Lists = {}
        for lang, positions in scopes.items():
            batch = vectors if len(positions) == len(vectors) else vectors[positions]
            own = None if rows is None else [rows[position] for position in positions.tolist()]
            lists[lang] = (positions, *self._dense[lang].search(batch, k, self._store.ids, own))
        return lists

    def _lexical_lists(
        self, queries: Sequence[str], k: int, scopes: dict[str, Rows], rows: list[Rows | None] | None
    ) -> _Lists:
        lists: _Lists = {
            lang: (positions, np.full((len(positions), k), -np.inf), np.full((len(positions), k), -1, dtype=np.int64))
            for lang, positions in scopes.items()
        }
        wanted: dict[int, list[tuple[str, int]]] = {}
        for lang, positions in scopes.items():
            for line, position in enumerate(positions.tolist()):
                wanted.setdefault(position, []).append((lang, line))
        asked: Sequence[Any] = queries
        if self.kind == "sparse":
            asked = sparse_query_vectors(self.sparse_encoder, queries)
        for position, places in wanted.items():
            restricted = None if rows is None else rows[position]
            scored: dict[Bm25Shard | SparseShard, Any] = {}
            for lang, line in places:
                shard = self._lexical[lang]
                if shard not in scored:
                    scored[shard] = shard.scores(asked[position])
                scores = scored[shard]
                if scores is None:
                    continue
                low, high = (row - shard.first_row for row in self._store.span(lang))
                if restricted is None:
                    local = np.flatnonzero(scores[low:high] > 0) + low
                else:
                    local = restricted - shard.first_row
                    local = local[(local >= low) & (local < high)]
                    local = local[scores[local] > 0]
                best, found = top_k_line(scores[local], local + shard.first_row, k, self._store.ids)
                lists[lang][1][line, : len(best)] = best
                lists[lang][2][line, : len(found)] = found
        return lists

    def _merge(self, lists: _Lists, count: int, k: int) -> tuple[Scores, Rows]:
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
        return top_k(all_scores, all_rows, k, self._store.ids)

    def _hits(self, scores: Scores, rows: Rows) -> list[list[Hit]]:
        present = rows >= 0
        unique, where = np.unique(rows[present], return_inverse=True)
        places = iter(where.reshape(-1).tolist())
        values = iter(scores[present].tolist())
        with _no_collection():
            known: list[tuple[str, Record]] = [("", ("", "", "", ""))] * len(unique)
            for lang, positions, records in self._store.records(unique):
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


def _spec(path: Path | str, record: EmbedderRecord) -> dict[str, Any]:
    if record.spec is None:
        raise CorpusError(
            f"index {path} was built with an embedder '{record.name}' that cannot be loaded by name",
            "pass it to load_index(path, embedder=...), or search with embeddings=...",
        )
    return record.spec


def _check_revision(path: Path | str, record: EmbedderRecord, here: str) -> None:
    if here != record.revision:
        raise CorpusError(
            f"index {path} was built with {record.name} {record.revision}, the installed one is {here}",
            "install or pin that revision, or rebuild the index",
        )


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
