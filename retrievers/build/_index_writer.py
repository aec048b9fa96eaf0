"""The files of an index under construction, hashed as they are written, from the first batch to the manifest."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from threading import Event
from types import TracebackType

from mrag_eval.core import Passage
from mrag_eval.platform import CorpusError, DataError
from mrag_eval.retrievers.build._approximating import approximate_shards, check_same_wanted
from mrag_eval.retrievers.build._building import AHEAD, Building, lengths_name, postings_name
from mrag_eval.retrievers.build._centering import write_means
from mrag_eval.retrievers.build._chunk_workers import cut
from mrag_eval.retrievers.build._dense_files import WORK, finish_dense, vectors_name
from mrag_eval.retrievers.build._intake import checked_passage
from mrag_eval.retrievers.build._passages_finish import finish_passages
from mrag_eval.retrievers.build._progress import Progress
from mrag_eval.retrievers.build._replacing import remove_unfinished
from mrag_eval.retrievers.build._settings import BuildSettings
from mrag_eval.retrievers.build._stored_recall import stored_recall
from mrag_eval.retrievers.build._windows import Ahead, Made, made_in_windows
from mrag_eval.retrievers.corpora._corpus import Document
from mrag_eval.retrievers.embedding._embedder_spec import parse_spec
from mrag_eval.retrievers.embedding._embedders import Embedder, Vectors, load_embedder, query_vectors
from mrag_eval.retrievers.embedding._sparse_encoders import SparseEncoder
from mrag_eval.retrievers.index._hashing import ContentHash, SeenIds
from mrag_eval.retrievers.shards import _bm25_shard as bm25_shard
from mrag_eval.retrievers.shards import _sparse_shard as sparse_shard
from mrag_eval.retrievers.shards._codes import FLOAT32
from mrag_eval.retrievers.shards._faiss_shard import FaissShard
from mrag_eval.retrievers.shards._manifest import (
    CODED_FORMAT,
    FORMAT,
    ApproximateRecord,
    EmbedderRecord,
    FileRecord,
    ImportRecord,
    LanguageRecord,
    Manifest,
    StoredRecord,
    file_record,
    library_versions,
    manifest_bytes,
    parse_manifest,
    write_manifest,
)


class IndexWriter:
    """Writes one index into ``<target>.building`` and renames the folder to ``target``; the caller holds the lock.

    Args:
        target: the folder to make.
        settings: how to build it.
        record: the embedder's entry in the manifest; None for a lexical index.
        model: the embedder; None where the vectors come from elsewhere.
    """

    def __init__(
        self,
        target: Path,
        settings: BuildSettings,
        record: EmbedderRecord | None,
        model: Embedder | SparseEncoder | None = None,
    ) -> None:
        self.target, self.settings, self.record, self.model = target, settings, record, model
        # set by a caller whose vectors come from elsewhere, before the last batch is finished
        self.imported: tuple[ImportRecord, ...] = ()
        self.folder = target.with_name(target.name + ".building")
        lexical = settings.is_lexical
        self._recorded = {
            "store": settings.store,
            "format": FORMAT if settings.store == FLOAT32 else CODED_FORMAT,
            "kind": settings.kind,
            "joint": settings.joint,
            "embedder": record.model_dump() if record else None,
            "chunker": settings.chunking.to_dict(),
            "tokenizer": settings.analyzer.record() if lexical else None,
            "bm25": asdict(settings.bm25) if lexical else None,
        }
        self.building = Building(self.folder, self._recorded, settings.analyzer if lexical else None, settings.joint)

    def run(self, produce: Callable[[], Iterator[Made]], progress: Progress) -> None:
        """Write the batches of ``produce``, which follow the passages already written, and finish the index."""
        building = self.building
        building.start(resume=self.settings.resume)
        if building.is_complete:
            check_same_wanted(self.folder, self.settings.approximation)
        with progress:
            for made in produce():
                if building.is_complete:
                    raise _other_corpus(f"the corpus continues after the {building.done} passages", self.folder)
                building.append(made)
            if not building.done:
                remove_unfinished(self.folder)
                raise DataError(
                    "the corpus holds no passages",
                    "look at the documents: one JSON object a line with id, lang and text",
                )
            progress.phase("writing")
            if not building.is_complete:
                self._finish()
            self._publish()

    def write(self, batches: Iterable[Made], *, are_decoded: bool = False) -> None:
        """Write an index of passages whose vectors exist already.

        ``are_decoded``: they come from coded shards, so recall against float32 cannot be measured.
        """
        self.building.keeps_sample &= not are_decoded
        self.building.start(resume=False)
        for made in batches:
            self.building.append(made)
        self._finish()
        self._publish()

    def made(self, passages: Iterator[Passage], progress: Progress) -> Iterator[Made]:
        """Embed the passages that are not written yet, in this process."""
        self.skip(passages)
        progress.start(self.building.done)
        yield from made_in_windows(
            passages,
            self.model,
            batch_size=self.settings.batch_size,
            window=self.settings.window_size,
            ahead=Ahead(self.folder / AHEAD),
            on_batch=progress.add,
        )

    def items_left(self, corpus: Iterable[Passage | Document], seen: SeenIds) -> Iterator[Passage | Document]:
        """Return the items that are not written yet; of a document written in part, its other passages."""
        items = iter(corpus)
        left: list[Passage] = []

        def passages() -> Iterator[Passage]:
            for item in items:
                left.extend(cut([item], self.settings.chunking, self.settings.token_counter))
                while left:
                    yield checked_passage(left.pop(0), seen)

        self.skip(passages())
        return chain(left, items)

    def skip(self, passages: Iterator[Passage]) -> None:
        """Skip the passages already written; raise CorpusError unless the corpus begins with them."""
        content, done = ContentHash(), self.building.done
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
        if self.record is not None and self.settings.kind == "sparse":
            for lang in order:
                files = self.folder / lengths_name(lang), self.folder / postings_name(lang)
                sparse_shard.finish(self.folder / "sparse" / lang, *files, self.record.dim)
        elif self.record is not None:
            for lang in order:
                finish_dense(self.folder, self.settings.store, lang, building.counts[lang], self.record.dim)
        # hashing the vectors takes as long as finishing the passages
        with HashedFiles(self.folder) as hashed:
            hashed.begin(name for name in building.sizes if not name.startswith(f"{WORK}/"))
            documents = finish_passages(self.folder, order)
            if self.settings.is_lexical:
                self._finish_lexical(order)
            write_manifest(self.folder, self._manifest(self._languages(order, documents), hashed.records()))

    def _publish(self) -> None:
        if self.settings.kind == "dense":
            write_means(self.folder, parse_manifest(self.folder, manifest_bytes(self.folder)))
        self.building.publish(self.target)

    def _languages(self, order: Sequence[str], documents: dict[str, int]) -> dict[str, LanguageRecord]:
        building = self.building
        stored, approximate = self._stored(), self._approximate()
        return {
            lang: LanguageRecord(
                passages=building.counts[lang],
                documents=documents[lang],
                max_norm=building.max_norms.get(lang),
                stored=stored.get(lang),
                approximate=approximate.get(lang),
                selection=self.settings.selection,
            )
            for lang in order
        }

    def _stored(self) -> dict[str, StoredRecord]:
        """Return the recall of coded dense shards, by language."""
        if not self.building.keeps_sample or self.record is None:
            return {}
        given = self._embedded(self.settings.recall_queries)
        found = {}
        for lang, count in self.building.counts.items():
            shard = FaissShard(self.folder / vectors_name(lang), count, self.record.dim, store=self.settings.store)
            if (record := stored_recall(self.folder, lang, shard, given)) is not None:
                found[lang] = record
        return found

    def _approximate(self) -> dict[str, ApproximateRecord]:
        wanted = self.settings.approximation
        if wanted is None or self.record is None:
            return {}
        counts, store = self.building.counts, self.settings.store
        return approximate_shards(
            self.folder, counts, self.record.dim, wanted, self._embedded(wanted.queries), store=store
        )

    def _embedded(self, queries: Sequence[str]) -> Vectors | None:
        """Return the vectors of queries that recall is measured with; None if there are none or no model."""
        model = self.model
        if not queries or self.record is None:
            return None
        if model is None and self.record.spec:
            # the passages were embedded elsewhere, so this process has not loaded the model yet
            model = load_embedder(parse_spec(self.record.spec))
        assert not isinstance(model, SparseEncoder)
        return None if model is None else query_vectors(model, queries)

    def _finish_lexical(self, languages: Sequence[str]) -> None:
        shards = {"joint": list(languages)} if self.settings.joint else {lang: [lang] for lang in languages}
        for shard, members in shards.items():
            sources = [(self.folder / lengths_name(lang), self.folder / postings_name(lang)) for lang in members]
            vocabulary = list(self.building.postings[shard].vocabulary)
            bm25_shard.finish(self.folder / "bm25" / shard, sources, vocabulary, self.settings.bm25)

    def _manifest(self, languages: dict[str, LanguageRecord], files: dict[str, FileRecord]) -> Manifest:
        source, wanted = self.settings.source, self.settings.approximation
        return Manifest.model_validate(
            {
                **self._recorded,
                "embedder": self.record,
                "content_hash": self.building.content.hexdigest,
                "passages": sum(record.passages for record in languages.values()),
                "languages": languages,
                "versions": library_versions(),
                "sources": {} if source is None else dict.fromkeys(languages, source),
                "approximation": wanted.asked() if wanted else None,
                "imported": self.imported,
                "files": files,
            }
        )


def _other_corpus(what: str, folder: Path) -> CorpusError:
    return CorpusError(f"{what} of the interrupted build in {folder}", "build again without --resume")


class HashedFiles:
    """The files of ``folder``, each hashed once, and flushed to the disk meanwhile.

    Leaving the block stops them.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._found: dict[str, Future[FileRecord]] = {}
        self._flushed: list[Future[None]] = []
        self._stop = Event()
        # while one waits for the disk, the other hashes
        self._threads = ThreadPoolExecutor(2, "mrag-eval-hash")

    def __enter__(self) -> HashedFiles:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._threads.shutdown(cancel_futures=True)

    def begin(self, names: Iterable[str]) -> None:
        """Hash finished files, which must not change any more."""
        for name in names:
            if name not in self._found:
                self._found[name] = self._threads.submit(file_record, self._folder / name, self._stop)
                self._flushed.append(self._threads.submit(_flush, self._folder / name))

    def records(self) -> dict[str, FileRecord]:
        """Return the record of every file of the index, in the order of their names."""
        files = [path for path in sorted(self._folder.rglob("*")) if path.is_file()]
        names = [path.relative_to(self._folder).as_posix() for path in files]
        names = [name for name in names if not name.startswith(f"{WORK}/")]
        self.begin(names)
        for flushed in self._flushed:
            flushed.result()
        return {name: self._found[name].result() for name in names}


def _flush(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())
