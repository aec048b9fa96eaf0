"""Cutting documents in worker processes, in the order of the corpus."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool

from mrag_eval.core import CorpusError, Passage
from mrag_eval.retrievers.chunking._chunking import ChunkConfig, TokenCounter, chunk_documents, count_tokens
from mrag_eval.retrievers.corpora._corpus import Document
from mrag_eval.retrievers.corpora._reading import Share

Item = Passage | Document

# What a worker gets at a time: enough to pay for its way there and back, little enough to bound memory.
_MOST_ITEMS = 256
_MOST_CHARACTERS = 500_000


def item_batches(
    items: Iterable[Item], most: int = _MOST_ITEMS, characters: int = _MOST_CHARACTERS
) -> Iterator[list[Item]]:
    """Lists of up to ``most`` items, or of as few as hold ``characters`` characters."""
    held: list[Item] = []
    size = 0
    for item in items:
        held.append(item)
        size += len(item.text)
        if len(held) >= most or size >= characters:
            yield held
            held, size = [], 0
    if held:
        yield held


def cut(items: Iterable[Item], chunking: ChunkConfig, count: TokenCounter = count_tokens) -> list[Passage]:
    """The passages of documents; passages as they are."""
    passages: list[Passage] = []
    for item in items:
        if isinstance(item, Document):
            passages += chunk_documents([item], chunking, token_counter=count)
        else:
            passages.append(item)
    return passages


def cut_by_workers(
    items: Iterable[Item],
    chunking: ChunkConfig,
    workers: int,
    count: TokenCounter = count_tokens,
    share: Share | None = None,
) -> Iterator[Passage]:
    """As :func:`cut`, by ``workers`` processes; memory holds a few batches a worker, and ``share`` follows what comes.

    The workers are started afresh, not forked: threads of FAISS and torch do not survive a fork. They are loky's, which
    do not run the caller's script a second time as those of the standard library do. CorpusError where a worker dies.
    """
    from joblib.externals.loky import ProcessPoolExecutor

    share = share or Share()
    pending: deque[tuple[Future[list[Passage]], float | None]] = deque()

    def first() -> list[Passage]:
        future, read = pending.popleft()
        share.follow(read)
        return future.result()

    pool = ProcessPoolExecutor(workers)
    try:
        for batch in item_batches(items):
            pending.append((pool.submit(cut, batch, chunking, count), share.read()))
            if len(pending) > 2 * workers:
                yield from first()
        while pending:
            yield from first()
    except BrokenProcessPool:
        raise CorpusError(
            "a worker process that cuts documents died (killed, or out of memory)",
            "give the same command again with --resume, and fewer --workers if memory is short",
        ) from None
    finally:
        pool.shutdown(wait=True, kill_workers=True)
