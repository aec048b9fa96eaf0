"""Streaming, resumable builds of an index."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sized
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from mrag_eval.core import Passage
from mrag_eval.platform import build_lock, room_on_disk, takes_settings
from mrag_eval.retrievers.build._approximating import check_wanted
from mrag_eval.retrievers.build._build_ray import RayCluster, ray_cluster
from mrag_eval.retrievers.build._index_writer import IndexWriter
from mrag_eval.retrievers.build._intake import checked_batch, checked_passages
from mrag_eval.retrievers.build._progress import Progress
from mrag_eval.retrievers.build._ray_work import Loading
from mrag_eval.retrievers.build._replacing import check_target
from mrag_eval.retrievers.build._settings import BuildSettings, specified
from mrag_eval.retrievers.build._windows import Made
from mrag_eval.retrievers.corpora._corpus import Document
from mrag_eval.retrievers.corpora._reading import Share, Stream, counted
from mrag_eval.retrievers.embedding._embedder_spec import EmbedderSpec, parse_spec
from mrag_eval.retrievers.embedding._embedders import Embedder
from mrag_eval.retrievers.embedding._sparse_encoders import SparseEncoder
from mrag_eval.retrievers.index._hashing import SeenIds
from mrag_eval.retrievers.index._index import Index
from mrag_eval.retrievers.index._load import load_index
from mrag_eval.retrievers.shards._manifest import EmbedderRecord
from mrag_eval.text import warn_without_segmenters


@takes_settings(BuildSettings)
def build_index(corpus: Iterable[Passage | Document], path: str | Path, **settings: Any) -> Index:
    """Build an index from a stream of passages or documents and open it.

    Batches are appended to files in ``<path>.building``, which is renamed to ``path`` at the end, so a killed build
    leaves nothing at ``path``. Memory holds one batch, 8 bytes per passage id and the vocabulary of a lexical index,
    never the corpus or its vectors. Search is exact on the stored vectors, unless ``factory`` says otherwise; the
    manifest has the recall@20 of a coded ``store`` against float32. Vectors are stored in the order of the corpus.

    ``resume`` continues after the last complete batch; the corpus must be the same, in the same order.

    Raises DataError for an empty corpus, repeated passage ids and passages without text,
    CorpusError if the index exists, another process is building it, or it was begun with
    another corpus.

    Args:
        corpus: passages, used unchanged, or documents, cut by ``chunker``.
        path: the folder to make.
    """
    asked = BuildSettings(**settings)
    target = Path(path).resolve()
    with build_lock(target):
        check_target(target, overwrite=asked.overwrite)
        index = build_unlocked(corpus, target, asked)
    if asked.segment is None and asked.is_lexical and not asked.joint:
        warn_without_segmenters(index.languages)
    return index


def build_unlocked(corpus: Iterable[Passage | Document], target: Path, settings: BuildSettings) -> Index:
    """Build an index while the caller holds the lock of ``target``; an existing index is replaced."""
    engine, chunking, device = settings.engine, settings.chunking, settings.place
    with nullcontext() if engine is None else ray_cluster(engine, device) as cluster:
        model: Embedder | SparseEncoder | None = None
        record: EmbedderRecord | None = None
        loading: Loading | None = None
        if settings.kind != "bm25":
            found = settings.embedder
            spec = parse_spec(found) if isinstance(found, str | Mapping | EmbedderSpec) else found
            loading = Loading(spec, settings.kind == "sparse")
            model, record = _described(loading, device, cluster)
        check_wanted(settings.approximation, settings.kind, record.dim if record else 0)
        writer = IndexWriter(target, settings, record, model)
        stream = counted(corpus, len(corpus)) if isinstance(corpus, Sized) else corpus
        share = Share(lambda: stream.share_read) if isinstance(stream, Stream) else Share()
        total = len(corpus) if isinstance(corpus, Sized) and chunking.method == "none" else None
        name = settings.name or f"index {target.name}"
        shown = Progress(name, total, share, shown=settings.progress)
        kept = f"{writer.folder} keeps the finished part"
        again = f"free some space, then give the same command again (index build: with --resume); {kept}"
        with room_on_disk(target, again):
            if cluster is None:
                passages = checked_passages(
                    stream, chunking, settings.token_counter, settings.workers, share, size=settings.batch_size
                )
                writer.run(lambda: writer.made(shown.taking(passages), shown), shown)
            else:
                writer.run(lambda: _made_by_ray(cluster, writer, stream, loading, share, shown), shown)
    custom = model if record is not None and record.spec is None else None
    return load_index(target, device=device, embedder=custom, embedders=specified(settings.embedder))


def _made_by_ray(
    cluster: RayCluster,
    writer: IndexWriter,
    stream: Iterable[Passage | Document],
    loading: Loading | None,
    share: Share,
    shown: Progress,
) -> Iterator[Made]:
    """Embed the items that are not written yet on Ray."""
    settings, seen = writer.settings, SeenIds()
    items = writer.items_left(stream, seen)
    shown.start(writer.building.done)
    for made in cluster.made(items, settings, loading, share):
        passages = checked_batch(shown.taking(made.passages), seen)
        shown.add(len(passages))
        yield replace(made, passages=passages)


def _described(
    loading: Loading, device: str, cluster: RayCluster | None
) -> tuple[Embedder | SparseEncoder | None, EmbedderRecord]:
    """Return the model (None if only Ray's actors load it) and its record for the manifest."""
    if not isinstance(loading.model, EmbedderSpec):
        model: Any = loading.model
        return model, EmbedderRecord(name=model.name, revision=model.revision, dim=model.dim)
    identity = loading.model.identity()
    if cluster is None:
        model = loading.load(device)
        name, revision, dim, commit = model.name, model.revision, model.dim, getattr(model, "commit", None)
    else:
        model = None
        name, revision, dim, commit = cluster.described(loading)
    # queries must be embedded with the same commit as the passages
    if commit:
        identity["revision"] = commit
    return model, EmbedderRecord(name=name, revision=revision, dim=dim, spec=identity)
