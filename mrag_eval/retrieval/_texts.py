"""The texts of passages, looked up by id."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from mrag_eval.core import Hit, Kept, Passage, Retrieved, Searched
from mrag_eval.platform import CorpusError


class PassageSource(Protocol):
    """Look up texts: an index, or anything else that knows passages by id."""

    def passages(self, ids: Sequence[str]) -> list[Passage]: ...


def passages_by_id(ids: Iterable[str], source: PassageSource) -> dict[str, Passage]:
    """Return the passages with these ids, each looked up once."""
    wanted = list(dict.fromkeys(ids))
    if not wanted:
        return {}
    return dict(zip(wanted, source.passages(wanted), strict=True))


def with_texts(found: Sequence[Searched], source: PassageSource) -> list[Retrieved]:
    """Return the rows with texts added to the hits that are kept; the rankings stay without."""
    texts = passages_by_id((kept.id for row in found for kept in row.kept), source)
    return [
        Retrieved(
            tuple(hit_of(texts[kept.id], kept, rank) for rank, kept in enumerate(row.kept, 1)),
            row.ranking,
            row.searchable,
            reranked=row.reranked,
            failures=row.failures,
        )
        for row in found
    ]


def hit_of(p: Passage, kept: Kept, rank: int) -> Hit:
    """Return a passage as it is shown at a rank."""
    return Hit(p.id, p.lang, p.text, kept.score, rank, p.title, p.doc_id, kept.rerank_score)


class PassageTable:
    """Passages in memory, by id."""

    def __init__(self, passages: Iterable[Passage], name: str) -> None:
        self._by_id = {passage.id: passage for passage in passages}
        self.name = name
        self.counts: dict[str, int] = dict(Counter(passage.lang for passage in self._by_id.values()))

    def __iter__(self) -> Iterator[Passage]:
        return iter(self._by_id.values())

    def passages(self, ids: Sequence[str]) -> list[Passage]:
        """Return the passages with these ids, in this order. Raise CorpusError naming one that does not exist."""
        unknown = next((pid for pid in ids if pid not in self._by_id), None)
        if unknown is not None:
            raise CorpusError(
                f"corpus {self.name} holds no passage '{unknown}'",
                "search the corpus that the run was made on: retrieval.corpus",
            )
        return [self._by_id[pid] for pid in ids]
