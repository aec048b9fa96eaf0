"""The shards of an index in a folder, and the ranked lists of each language."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mrag_eval.retrievers.embedding._embedders import Vectors
from mrag_eval.retrievers.index._passages import PassageRows
from mrag_eval.retrievers.shards._approximate_shard import open_dense
from mrag_eval.retrievers.shards._bm25_shard import Bm25Shard
from mrag_eval.retrievers.shards._faiss_shard import FaissShard
from mrag_eval.retrievers.shards._manifest import Manifest
from mrag_eval.retrievers.shards._ordering import Rows, Scores, top_k_line
from mrag_eval.retrievers.shards._sparse_shard import SparseShard
from mrag_eval.text import Analyzer

# language -> (positions of the queries that have it in scope, scores, rows); both queries × depth
Lists = dict[str, tuple[Rows, Scores, Rows]]


class FolderShards:
    """The shards by language, ``dense`` and ``lexical``; a joint lexical shard is that of every language."""

    def __init__(self, path: Path, manifest: Manifest, store: PassageRows, *, mmap: bool) -> None:
        self.dense: dict[str, FaissShard] = {}
        self.lexical: dict[str, Bm25Shard | SparseShard] = {}
        self._store = store
        languages = sorted(manifest.languages)
        if manifest.embedder is not None and manifest.kind == "sparse":
            for lang in languages:
                low, high = store.span(lang)
                folder = path / "sparse" / lang
                self.lexical[lang] = SparseShard(folder, high - low, manifest.embedder.dim, first_row=low, mmap=mmap)
        elif manifest.embedder is not None:
            for lang in languages:
                self.dense[lang] = open_dense(path, manifest, lang, first_row=store.span(lang)[0], mmap=mmap)
        if manifest.tokenizer is not None:
            analyzer = Analyzer.of(manifest.tokenizer)
            if manifest.joint:
                joint = Bm25Shard(path / "bm25" / "joint", len(store), analyzer.tokenizer(None), mmap=mmap)
                self.lexical = dict.fromkeys(languages, joint)
            else:
                for lang in languages:
                    low, high = store.span(lang)
                    folder = path / "bm25" / lang
                    words = analyzer.tokenizer(lang)
                    self.lexical[lang] = Bm25Shard(folder, high - low, words, first_row=low, mmap=mmap)

    def dense_lists(self, vectors: Vectors, k: int, scopes: dict[str, Rows], rows: list[Rows | None] | None) -> Lists:
        """Return the lists of the dense shards for these query vectors."""
        lists: Lists = {}
        for lang, positions in scopes.items():
            batch = vectors if len(positions) == len(vectors) else vectors[positions]
            own = None if rows is None else [rows[position] for position in positions.tolist()]
            lists[lang] = (positions, *self.dense[lang].search(batch, k, self._store.ids, own))
        return lists

    def lexical_lists(
        self, queries: Sequence[Any], k: int, scopes: dict[str, Rows], rows: list[Rows | None] | None
    ) -> Lists:
        """Return the lists of the lexical shards for these texts, or for sparse vectors."""
        lists: Lists = {
            lang: (positions, np.full((len(positions), k), -np.inf), np.full((len(positions), k), -1, dtype=np.int64))
            for lang, positions in scopes.items()
        }
        wanted: dict[int, list[tuple[str, int]]] = {}
        for lang, positions in scopes.items():
            for line, position in enumerate(positions.tolist()):
                wanted.setdefault(position, []).append((lang, line))
        for position, places in wanted.items():
            restricted = None if rows is None else rows[position]
            scored: dict[Bm25Shard | SparseShard, Any] = {}
            for lang, line in places:
                shard = self.lexical[lang]
                if shard not in scored:
                    scored[shard] = shard.scores(queries[position])
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
