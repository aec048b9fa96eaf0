"""Published sets of vectors, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from mrag_eval.platform import ConfigError, did_you_mean

# Fields of a passage, and the columns each is looked for in.
FIELDS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "id": ("id", "_id"),
        "doc_id": ("doc_id", "page_id", "url"),
        "title": ("title",),
        "text": ("text", "content", "contents"),
        "lang": ("lang", "language"),
    }
)
VECTORS = ("embedding", "emb", "embeddings", "vector", "vectors")


@dataclass(frozen=True)
class Preset:
    """One published set of vectors.

    Args:
        source: the SOURCE of the command, None where the user names a folder.
        embedder: the model that made the vectors, as in ``load_embedder``.
        vectors: the column of the vectors.
        keys: the columns of the fields, as ``--key``.
        page: a pattern whose first group is the number of the page, in an id.
        ids_by_language: whether every language counts its ids from the start, so that ours need the language in front.
    """

    embedder: str
    source: str | None = None
    vectors: str = ""
    keys: Mapping[str, str] = field(default_factory=dict)
    page: str = ""
    ids_by_language: bool = False


PRESETS: Mapping[str, Preset] = MappingProxyType(
    {
        "upstash-bge-m3": Preset(
            source="hub:Upstash/wikipedia-2024-06-bge-m3",
            embedder="BAAI/bge-m3",
            vectors="embedding",
            ids_by_language=True,
        ),
        "cohere-v3": Preset(
            source="hub:CohereLabs/wikipedia-2023-11-embed-multilingual-v3",
            embedder="cohere:embed-multilingual-v3.0",
            vectors="emb",
            keys={"id": "_id"},
            page=r"\d{8}\.[\w-]+?_(\d+)_\d+",
        ),
        "cohere-v3-int8": Preset(
            source="hub:CohereLabs/wikipedia-2023-11-embed-multilingual-v3-int8-binary",
            embedder="cohere:embed-multilingual-v3.0",
            vectors="emb_int8",
            keys={"id": "_id"},
            page=r"\d{8}\.[\w-]+?_(\d+)_\d+",
        ),
        "bergen": Preset(embedder="BAAI/bge-m3"),
    }
)


def preset_of(name: str) -> Preset:
    """Return a preset; raise ConfigError for an unknown name."""
    if name not in PRESETS:
        raise ConfigError(f"unknown preset '{name}'{did_you_mean(name, PRESETS)}")
    return PRESETS[name]
