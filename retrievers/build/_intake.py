"""Input of a build: documents cut into passages, checked and batched."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from mrag_eval.core import Passage, check_id, normalize_language
from mrag_eval.platform import ConfigError, DataError
from mrag_eval.retrievers.build._chunk_workers import cut_by_workers
from mrag_eval.retrievers.chunking._chunking import ChunkConfig, TokenCounter, chunk_documents
from mrag_eval.retrievers.corpora._corpus import Document
from mrag_eval.retrievers.corpora._reading import Share
from mrag_eval.retrievers.index._hashing import SeenIds


def checked_passages(
    corpus: Iterable[Passage | Document],
    chunking: ChunkConfig,
    count: TokenCounter,
    workers: int = 0,
    share: Share | None = None,
    *,
    size: int = 256,
) -> Iterator[Passage]:
    """Yield checked passages with normalised languages; ``workers`` processes cut documents (0: this one).

    ``size`` passages are checked at a time.
    """
    seen = SeenIds()
    if workers and chunking.method != "none":
        cut: Iterable[Passage] = cut_by_workers(corpus, chunking, workers, count, share)
    else:
        cut = (passage for item in corpus for passage in _pieces(item, chunking, count))
    for held in batches(cut, size):
        yield from checked_batch(held, seen)


def _pieces(item: Passage | Document, chunking: ChunkConfig, count: TokenCounter) -> Iterable[Passage]:
    return chunk_documents([item], chunking, token_counter=count) if isinstance(item, Document) else (item,)


def checked_batch(passages: Iterable[Passage], seen: SeenIds) -> list[Passage]:
    """Return passages with their languages normalised; raise DataError for one that cannot be indexed."""
    checked = [_checked(passage) for passage in passages]
    if (twice := seen.add_many([passage.id for passage in checked])) is not None:
        raise DataError(f"passage id '{twice}' appears a second time", "ids must be unique in the whole index")
    return checked


def checked_passage(passage: Passage, seen: SeenIds) -> Passage:
    """Return one passage as :func:`checked_batch` does, which is faster for many."""
    return checked_batch([passage], seen)[0]


def _checked(passage: Passage) -> Passage:
    if not passage.id:
        raise DataError(f"a passage of document '{passage.doc_id}' has no id", "give every passage a unique id")
    check_id(passage.id, "passage")
    check_id(passage.doc_id, f"passage '{passage.id}', doc_id")
    if not passage.text.strip():
        raise DataError(f"passage '{passage.id}' has no text", "leave passages without text out of the corpus")
    try:
        for field in (passage.id, passage.doc_id, passage.title, passage.text):
            if not field.isascii():
                field.encode("utf-8")
    except UnicodeEncodeError as error:
        raise DataError(
            f"passage '{passage.id}' holds half a surrogate pair, which is not text",
            "correct the text: it was cut inside a character",
        ) from error
    try:
        lang = normalize_language(passage.lang)
    except ConfigError as error:
        raise DataError(f"passage '{passage.id}': unknown language '{passage.lang}'", error.next_step) from error
    return passage if lang == passage.lang else replace(passage, lang=lang)


def batches(passages: Iterable[Passage], size: int) -> Iterator[list[Passage]]:
    """Yield lists of ``size`` passages; the last one may be shorter."""
    batch: list[Passage] = []
    for passage in passages:
        batch.append(passage)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch
