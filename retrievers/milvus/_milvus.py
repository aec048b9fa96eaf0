"""An index that lies in Milvus, searched as one in a folder is."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from typing import Any

from mrag_eval.core import CorpusError
from mrag_eval.retrievers.embedding._embedders import Embedder, Vectors
from mrag_eval.retrievers.embedding._sparse_encoders import SparseEncoder, checked_sparse
from mrag_eval.retrievers.index._index import Index
from mrag_eval.retrievers.milvus._milvus_client import PATIENCE, TOKEN_ENV, Connection, checked_name, checked_uri
from mrag_eval.retrievers.milvus._milvus_notes import Notes
from mrag_eval.retrievers.milvus._milvus_passages import MilvusPassages
from mrag_eval.retrievers.milvus._milvus_shard import DENSE, SPARSE, MilvusShard
from mrag_eval.retrievers.shards._manifest import Manifest, parse_manifest
from mrag_eval.retrievers.shards._ordering import Rows
from mrag_eval.retrievers.shards._tokenize import tokenizer

# queries of one batch: what is found is kept batch by batch, so that little is lost where the server goes away
BATCH = 256

_FORMAT = 1
_Lists = dict[str, tuple[Rows, Any, Rows]]


@dataclass(frozen=True)
class MilvusPlace:
    """Where an index lies in Milvus.

    Args:
        uri: a server (``http://HOST:19530``), or a local file ending in ``.db`` for ``milvus-lite``.
        collection: its name there.
        token_env: the environment variable that holds the token (or ``USER:PASSWORD``).
        patience: seconds that a call is tried for while the server does not answer.
        search: parameters of the vector index for searching, such as ``ef`` of HNSW; over those that were stored with
            the collection.
    """

    uri: str
    collection: str
    token_env: str = TOKEN_ENV
    patience: float = PATIENCE
    search: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"'{self.collection}' in {self.uri}"

    def connect(self) -> Connection:
        checked_name(self.collection)
        return Connection(checked_uri(self.uri), token_env=self.token_env, patience=self.patience)


class MilvusIndex(Index):
    """Passages of several languages in a Milvus collection, with the interface of :class:`Index`.

    What is searched where is the same as there: one shard a language, merged, fused and put in order by the same code;
    only the lists of a shard come from Milvus. Made by :func:`~mrag_eval.retrievers.load_into_milvus`.
    """

    def __init__(
        self,
        place: MilvusPlace,
        connection: Connection,
        manifest: Manifest,
        built: Mapping[str, Any],
        *,
        device: str = "cpu",
        embedder: Embedder | SparseEncoder | None = None,
    ) -> None:
        self.path = f"'{place.collection}' in {connection.uri}"
        self.manifest, self._device, self._embedder = manifest, device, embedder
        self.languages = tuple(sorted(manifest.languages))
        self._collection, self._connection, self._built = place.collection, connection, dict(built)
        self._search_params = {**built.get("search", {}), **place.search}
        self._max_norm = max((record.max_norm or 1.0 for record in manifest.languages.values()), default=1.0)
        self._store = MilvusPassages(connection, place.collection, self.counts)
        self._shards = {lang: self._shard(lang) for lang in self.languages}
        self._vocabularies: dict[str, dict[str, int]] = {}

    def _shard(self, lang: str) -> MilvusShard:
        low, high = self._store.span(lang)
        return MilvusShard(
            self._connection, self._collection, lang, low, high - low, self._max_norm, self._search_params
        )

    @property
    def settings(self) -> dict[str, Any]:
        """What beside the content decides which passages are found."""
        return {"engine": "milvus", "index": self._built["index"], "search": self._search_params}

    @property
    def made_of(self) -> str:
        """The fingerprint of the index that was loaded."""
        return str(self._built["made_of"])

    @property
    def queries_at_once(self) -> int:
        return BATCH

    def shard(self, language: str) -> Any:
        raise CorpusError(f"index {self.path} lies in Milvus, it has no FAISS shards", "open the index it was made of")

    # --- the lists of every language --------------------------------------------------------------------------------

    def _dense_lists(
        self, k: int, scopes: dict[str, Rows], rows: list[Rows | None] | None, vectors: Vectors | None
    ) -> _Lists:
        assert vectors is not None
        return {lang: self._found(DENSE, lang, vectors, k, at, rows) for lang, at in scopes.items()}

    def _lexical_lists(
        self, queries: Sequence[str], k: int, scopes: dict[str, Rows], rows: list[Rows | None] | None
    ) -> _Lists:
        if self.kind == "sparse":
            encoded = checked_sparse(self.sparse_encoder, self.sparse_encoder.encode_queries(queries), len(queries))
            terms = [dict(zip(v.terms.tolist(), v.weights.tolist(), strict=True)) for v in encoded]
            return {lang: self._found(SPARSE, lang, terms, k, at, rows) for lang, at in scopes.items()}
        record = self.manifest.tokenizer or {}
        tokenize = tokenizer(str(record.get("name")), int(record.get("version", 0)))
        counted = [Counter(tokenize(query)) for query in queries]
        lists: _Lists = {}
        for lang, positions in scopes.items():
            numbers = self._vocabulary("joint" if self.manifest.joint else lang)
            asked = {
                int(p): {numbers[token]: float(n) for token, n in counted[p].items() if token in numbers}
                for p in positions.tolist()
            }
            lists[lang] = self._found(SPARSE, lang, asked, k, positions, rows)
        return lists

    def _found(
        self, where: str, lang: str, vectors: Any, k: int, positions: Rows, rows: list[Rows | None] | None
    ) -> tuple[Rows, Any, Rows]:
        at = positions.tolist()
        own = None if rows is None else [rows[position] for position in at]
        return (positions, *self._shards[lang].search(where, [vectors[p] for p in at], k, self._store.ids, own))

    def _vocabulary(self, shard: str) -> dict[str, int]:
        if shard not in self._vocabularies:
            tokens = Notes(self._connection, self._collection).read(f"vocabulary/{shard}")
            if tokens is None:
                raise CorpusError(f"index {self.path} has lost its vocabulary '{shard}'", _ANEW)
            self._vocabularies[shard] = {token: number for number, token in enumerate(tokens)}
        return self._vocabularies[shard]


def open_milvus(
    place: MilvusPlace, *, device: str = "cpu", embedder: Embedder | SparseEncoder | None = None
) -> MilvusIndex:
    """The index in a Milvus collection, opened once per process.

    ``embedder`` is an embedder object for queries, where the index was built with one that has no name to load it by.

    Raises:
        ConfigError: for a uri or a name that cannot be one.
        CorpusError: where Milvus does not answer, and for a collection that is missing, unfinished or not ours.
        MissingExtraError: where the extra ``milvus`` is not installed.
    """
    described = json.dumps(asdict(place), sort_keys=True)
    return _opened(described, device) if embedder is None else _open(place, device, embedder)


@lru_cache(maxsize=8)
def _opened(described: str, device: str) -> MilvusIndex:
    return _open(MilvusPlace(**json.loads(described)), device, None)


def forget_opened() -> None:
    """Open collections anew from now on: one of them was replaced."""
    _opened.cache_clear()


def _open(place: MilvusPlace, device: str, embedder: Embedder | SparseEncoder | None) -> MilvusIndex:
    connection = place.connect()
    notes = Notes(connection, place.collection)
    if not notes.exist() or not connection.call("has_collection", place.collection):
        raise CorpusError(f"there is no index '{place.collection}' in Milvus at {connection.uri}", _LOAD)
    notes.load()
    written = notes.read("index")
    if written is None:
        raise CorpusError(
            f"loading index '{place.collection}' into Milvus at {connection.uri} was never finished",
            "give the command that began it again: mrag-eval index milvus ...",
        )
    connection.call("load_collection", place.collection)
    return MilvusIndex(place, connection, *described_index(place, written), device=device, embedder=embedder)


def milvus_info(place: MilvusPlace) -> dict[str, Any]:
    """What an index in Milvus holds and how it was made; errors as :func:`open_milvus`."""
    index = open_milvus(place)
    return {
        "path": str(index.path),
        **index.manifest.model_dump(exclude={"files"}),
        "settings": index.settings,
        "fingerprint": index.made_of,
    }


def verify_milvus(place: MilvusPlace) -> int:
    """Count the passages of every language in Milvus; returns how many there are.

    Raises CorpusError for the first language with another number than the index that was loaded.
    """
    index = open_milvus(place)
    check_counts(place.connect(), place, index.counts)
    return len(index)


def check_counts(connection: Connection, place: MilvusPlace, expected: Mapping[str, int]) -> None:
    """Raise CorpusError where a collection holds another number of passages in a language."""
    for lang, count in expected.items():
        (answer,) = connection.call(
            "query",
            place.collection,
            filter=f"lang == {json.dumps(lang)}",
            output_fields=["count(*)"],
            consistency_level="Strong",
        )
        if answer["count(*)"] != count:
            raise CorpusError(
                f"collection '{place.collection}' in Milvus at {connection.uri} holds {answer['count(*)']:,} passages "
                f"in '{lang}', the index {count:,}",
                _ANEW,
            )


def index_note(manifest: Manifest, built: Mapping[str, Any]) -> dict[str, Any]:
    """What is written beside a collection that is whole."""
    return {"format": _FORMAT, "manifest": manifest.model_dump(), "built": dict(built)}


def described_index(place: MilvusPlace, note: Mapping[str, Any]) -> tuple[Manifest, dict[str, Any]]:
    """The manifest of a collection, and how its vectors are indexed and searched."""
    if note.get("format") != _FORMAT:
        raise CorpusError(
            f"index '{place.collection}' in Milvus has format {note.get('format')}, this version reads {_FORMAT}",
            "pip install -U mrag-eval, or load the index again",
        )
    from pathlib import Path

    return parse_manifest(Path(place.collection), json.dumps(note["manifest"]).encode()), dict(note["built"])


_ANEW = "load the index again: mrag-eval index milvus --overwrite ..."
_LOAD = "load one: mrag-eval index milvus INDEX --uri ... --collection ..."
