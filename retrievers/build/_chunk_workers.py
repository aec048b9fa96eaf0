"""Cutting documents in worker processes, in the order of the corpus."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool

from mrag_eval.core import Passage
from mrag_eval.platform import CorpusError
from mrag_eval.retrievers.chunking._chunking import ChunkConfig, TokenCounter, chunk_documents, count_tokens
from mrag_eval.retrievers.corpora._corpus import Document
from mrag_eval.retrievers.corpora._reading import Share

Item = Passage | Document

# Size of a batch for a worker: large enough to pay for the transfer, small enough to bound memory.
_MOST_ITEMS = 256
_MOST_CHARACTERS = 500_000


def item_batches(
    items: Iterable[Item], most: int = _MOST_ITEMS, characters: int = _MOST_CHARACTERS
) -> Iterator[list[Item]]:
    """Yield lists of up to ``most`` items; a list ends early once it has ``characters`` characters."""
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
    """Return the passages of documents; passages stay unchanged."""
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
    """Cut like :func:`cut`, in ``workers`` processes, with a few batches per worker in memory.

    ``share`` follows the passages yielded. Workers are started, not forked: threads of FAISS and torch do not survive a
    fork. They are loky's, since those of the standard library would run the caller's script again. Raises CorpusError
    if a worker dies.
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
