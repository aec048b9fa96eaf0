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
        languages: how many, for the page of presets.
        size: bytes and rows, as published or estimated.
        licence: of vectors and texts.
    """

    embedder: str
    languages: str
    size: str
    licence: str
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
            languages="11: de en es fa fr it ja pt ru tr zh",
            size="130 M passages, 633 GB",
            licence="Apache-2.0; texts CC BY-SA",
        ),
        "cohere-v3": Preset(
            source="hub:CohereLabs/wikipedia-2023-11-embed-multilingual-v3",
            embedder="cohere:embed-multilingual-v3.0",
            vectors="emb",
            keys={"id": "_id"},
            page=r"\d{8}\.[\w-]+?_(\d+)_\d+",
            languages="300+",
            size="247 M passages, about 1 TB",
            licence="not stated; texts CC BY-SA",
        ),
        "cohere-v3-int8": Preset(
            source="hub:CohereLabs/wikipedia-2023-11-embed-multilingual-v3-int8-binary",
            embedder="cohere:embed-multilingual-v3.0",
            vectors="emb_int8",
            keys={"id": "_id"},
            page=r"\d{8}\.[\w-]+?_(\d+)_\d+",
            languages="300+",
            size="247 M passages, 253 GB of vectors",
            licence="not stated; texts CC BY-SA",
        ),
        "bergen": Preset(
            embedder="BAAI/bge-m3",
            languages="12: ar de es fi fr it ja ko pt ru th zh",
            size="107 M passages, 220 GB in float16",
            licence="not stated; texts CC BY-SA",
        ),
    }
)


def preset_of(name: str) -> Preset:
    """Return a preset; raise ConfigError for an unknown name."""
    if name not in PRESETS:
        raise ConfigError(f"unknown preset '{name}'{did_you_mean(name, PRESETS)}")
    return PRESETS[name]
