"""An index in Milvus, with the interface of one in a folder."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from typing import Any

from mrag_eval.platform import CorpusError
from mrag_eval.retrievers.embedding._allowed import Spec
from mrag_eval.retrievers.embedding._embedder_spec import SpecKey, parse_spec
from mrag_eval.retrievers.embedding._embedders import Embedder, Vectors
from mrag_eval.retrievers.embedding._sparse_encoders import SparseEncoder, checked_sparse
from mrag_eval.retrievers.index._folder_shards import Lists
from mrag_eval.retrievers.index._index import Index
from mrag_eval.retrievers.index._means import MEANS, LanguageMeans
from mrag_eval.retrievers.index._query_encoder import QueryEncoder
from mrag_eval.retrievers.milvus._milvus_client import PATIENCE, TOKEN_ENV, Connection, checked_name, checked_uri
from mrag_eval.retrievers.milvus._milvus_notes import Notes
from mrag_eval.retrievers.milvus._milvus_passages import MilvusPassages
from mrag_eval.retrievers.milvus._milvus_shard import DENSE, SPARSE, MilvusShard
from mrag_eval.retrievers.shards._manifest import Manifest, parse_manifest
from mrag_eval.retrievers.shards._ordering import Rows
from mrag_eval.text import Analyzer

# queries per batch: results are kept batch by batch, so a lost server costs little
BATCH = 256

_FORMAT = 1


@dataclass(frozen=True)
class MilvusPlace:
    """Location of an index in Milvus.

    Args:
        uri: a server (``http://HOST:19530``), or a local file ending in ``.db`` for ``milvus-lite``.
        collection: its name there.
        token_env: The environment variable that contains the token.
        patience: Seconds to wait for a server that does not answer.
        search: search parameters of the vector index, such as ``ef`` of HNSW; they override those stored with the
            collection.
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

    As there, every language has one shard, and the same code merges, fuses and sorts; only the lists of a shard come
    from Milvus. Made by :func:`~mrag_eval.retrievers.load_into_milvus`.
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
        own: Sequence[Spec] = (),
    ) -> None:
        self.path = f"'{place.collection}' in {connection.uri}"
        self.manifest = manifest
        self.languages = tuple(sorted(manifest.languages))
        self._collection, self._connection, self._built = place.collection, connection, dict(built)
        self._search_params = {**built.get("search", {}), **place.search}
        self._max_norm = max((record.max_norm or 1.0 for record in manifest.languages.values()), default=1.0)
        self._store = MilvusPassages(connection, place.collection, self.counts)
        self._encoder = QueryEncoder(self.path, manifest, device, embedder, own)
        self._milvus_shards = {lang: self._shard(lang) for lang in self.languages}
        self._vocabularies: dict[str, dict[str, int]] = {}

    def _shard(self, lang: str) -> MilvusShard:
        low, high = self._store.span(lang)
        return MilvusShard(
            self._connection, self._collection, lang, low, high - low, self._max_norm, self._search_params
        )

    @property
    def settings(self) -> dict[str, Any]:
        """Return settings besides the content that affect search."""
        return {"engine": "milvus", "index": self._built["index"], "search": self._search_params}

    @property
    def made_of(self) -> str:
        """Return the fingerprint of the index that was loaded into Milvus."""
        return str(self._built["made_of"])

    @property
    def queries_at_once(self) -> int:
        return BATCH

    def shard(self, language: str) -> Any:
        raise CorpusError(
            f"index {self.path} is in Milvus, it has no FAISS shards", "open the index it was loaded from"
        )

    def _read_means(self) -> LanguageMeans:
        means = LanguageMeans.from_json(Notes(self._connection, self._collection).read(MEANS))
        if means is None:
            raise CorpusError(
                f"index {self.path} has no means of its languages' vectors",
                "run `mrag-eval index center` on the folder that it was loaded from, then load it once more",
            )
        return means

    # --- the lists of every language --------------------------------------------------------------------------------

    def _dense_lists(
        self, k: int, scopes: dict[str, Rows], rows: list[Rows | None] | None, vectors: Vectors | None
    ) -> Lists:
        assert vectors is not None
        return {lang: self._found(DENSE, lang, vectors, k, at, rows) for lang, at in scopes.items()}

    def _lexical_lists(
        self, queries: Sequence[str], k: int, scopes: dict[str, Rows], rows: list[Rows | None] | None
    ) -> Lists:
        if self.kind == "sparse":
            encoded = checked_sparse(self.sparse_encoder, self.sparse_encoder.encode_queries(queries), len(queries))
            terms = [dict(zip(v.terms.tolist(), v.weights.tolist(), strict=True)) for v in encoded]
            return {lang: self._found(SPARSE, lang, terms, k, at, rows) for lang, at in scopes.items()}
        analyzer = Analyzer.of(self.manifest.tokenizer or {})
        lists: Lists = {}
        for lang, positions in scopes.items():
            numbers = self._vocabulary("joint" if self.manifest.joint else lang)
            words = analyzer.tokenizer(None if self.manifest.joint else lang)
            asked = {
                int(p): {numbers[word]: float(n) for word, n in Counter(words(queries[p])).items() if word in numbers}
                for p in positions.tolist()
            }
            lists[lang] = self._found(SPARSE, lang, asked, k, positions, rows)
        return lists

    def _found(
        self, where: str, lang: str, vectors: Any, k: int, positions: Rows, rows: list[Rows | None] | None
    ) -> tuple[Rows, Any, Rows]:
        at = positions.tolist()
        own = None if rows is None else [rows[position] for position in at]
        return (positions, *self._milvus_shards[lang].search(where, [vectors[p] for p in at], k, self._store.ids, own))

    def _vocabulary(self, shard: str) -> dict[str, int]:
        if shard not in self._vocabularies:
            tokens = Notes(self._connection, self._collection).read(f"vocabulary/{shard}")
            if tokens is None:
                raise CorpusError(f"index {self.path} lacks its vocabulary '{shard}'", _ANEW)
            self._vocabularies[shard] = {token: number for number, token in enumerate(tokens)}
        return self._vocabularies[shard]


def open_milvus(
    place: MilvusPlace,
    *,
    device: str = "cpu",
    embedder: Embedder | SparseEncoder | None = None,
    embedders: Sequence[Spec] = (),
) -> MilvusIndex:
    """Open the index in a Milvus collection, once per process.

    ``embedder`` is an embedder object for queries, if the index's embedder cannot be loaded by name; ``embedders`` are
    those of :func:`load_index`.

    Raises:
        ConfigError: the uri or the name is invalid.
        CorpusError: Milvus does not answer, or the collection is missing, unfinished or not ours.
        MissingExtraError: the extra ``milvus`` is not installed.
    """
    described = json.dumps(asdict(place), sort_keys=True)
    own = tuple(SpecKey.of(parse_spec(spec)) for spec in embedders)
    return _opened(described, device, own) if embedder is None else _open(place, device, embedder, own)


@lru_cache(maxsize=8)
def _opened(described: str, device: str, own: tuple[SpecKey, ...]) -> MilvusIndex:
    return _open(MilvusPlace(**json.loads(described)), device, None, own)


def forget_opened() -> None:
    """Clear the cache of open collections, after one was replaced."""
    _opened.cache_clear()


def _open(
    place: MilvusPlace, device: str, embedder: Embedder | SparseEncoder | None, own: tuple[SpecKey, ...]
) -> MilvusIndex:
    connection = place.connect()
    notes = Notes(connection, place.collection)
    if not notes.exist() or not connection.call("has_collection", place.collection):
        raise CorpusError(f"there is no index '{place.collection}' in Milvus at {connection.uri}", _LOAD)
    notes.load()
    written = notes.read("index")
    if written is None:
        raise CorpusError(
            f"loading index '{place.collection}' into Milvus at {connection.uri} was never finished",
            "repeat the command that started it: mrag-eval index milvus ...",
        )
    connection.call("load_collection", place.collection)
    specs = [asked.spec for asked in own]
    manifest, built = described_index(place, written)
    return MilvusIndex(place, connection, manifest, built, device=device, embedder=embedder, own=specs)


def milvus_info(place: MilvusPlace) -> dict[str, Any]:
    """Return the manifest, settings and fingerprint of an index in Milvus; errors as :func:`open_milvus`."""
    index = open_milvus(place)
    return {
        "path": str(index.path),
        **index.manifest.model_dump(exclude={"files"}),
        "settings": index.settings,
        "fingerprint": index.made_of,
    }


def verify_milvus(place: MilvusPlace) -> int:
    """Count the passages of every language in Milvus, and return their number.

    Raises CorpusError for the first language whose number differs from the loaded index.
    """
    index = open_milvus(place)
    check_counts(place.connect(), place, index.counts)
    return len(index)


def check_counts(connection: Connection, place: MilvusPlace, expected: Mapping[str, int]) -> None:
    """Raise CorpusError if the collection has another number of passages in a language."""
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
    """Return the note of a complete collection."""
    return {"format": _FORMAT, "manifest": manifest.model_dump(), "built": dict(built)}


def described_index(place: MilvusPlace, note: Mapping[str, Any]) -> tuple[Manifest, dict[str, Any]]:
    """Return the manifest of a collection and its settings for indexing and search."""
    if note.get("format") != _FORMAT:
        raise CorpusError(
            f"index '{place.collection}' in Milvus has format {note.get('format')}, this version reads {_FORMAT}",
            "pip install -U mrag-eval, or load the index again",
        )
    from pathlib import Path

    return parse_manifest(Path(place.collection), json.dumps(note["manifest"]).encode()), dict(note["built"])


_ANEW = "load the index again: mrag-eval index milvus --overwrite ..."
_LOAD = "load one: mrag-eval index milvus INDEX --uri ... --collection ..."
