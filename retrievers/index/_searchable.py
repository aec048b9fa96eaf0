"""The interface of a searchable index."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from mrag_eval.core import Hit, Passage
from mrag_eval.retrievers.embedding._embedders import Embedder, Vectors
from mrag_eval.retrievers.index._scope import Candidates, Scope
from mrag_eval.retrievers.shards._manifest import Manifest


class Searchable(Protocol):
    """An index in a folder (:class:`~mrag_eval.retrievers.Index`) or in Milvus.

    ``path`` is the location, for messages. ``settings`` affect search besides the manifest and belong in every cache
    key of results. ``queries_at_once`` is the recommended number of queries per search (None: all). ``merges_by_score``
    tells whether scores of different languages are comparable.
    """

    manifest: Manifest
    languages: tuple[str, ...]
    path: Path | str

    @property
    def kind(self) -> str: ...

    @property
    def counts(self) -> dict[str, int]: ...

    @property
    def settings(self) -> Mapping[str, Any]: ...

    @property
    def queries_at_once(self) -> int | None: ...

    @property
    def merges_by_score(self) -> bool: ...

    @property
    def embedder(self) -> Embedder: ...

    def resolve(self, languages: Sequence[str] | None) -> tuple[str, ...]: ...

    def search(
        self,
        queries: Sequence[str],
        k: int,
        *,
        languages: Scope = None,
        candidates: Candidates = None,
        embeddings: Vectors | None = None,
    ) -> list[list[Hit]]: ...

    def search_by_language(
        self,
        queries: Sequence[str],
        k: int,
        *,
        languages: Scope = None,
        candidates: Candidates = None,
        embeddings: Vectors | None = None,
    ) -> list[dict[str, list[Hit]]]: ...

    def passages(self, ids: Sequence[str]) -> list[Passage]: ...

    def passages_named(self, names: Collection[str]) -> dict[str, list[Passage]]: ...

    def counts_named(self, candidates: Sequence[Collection[str]]) -> list[dict[str, int]]: ...
