"""Passages as columns: Arrow arrays that are checked, hashed and written without an object per passage."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np

from mrag_eval.core import Passage
from mrag_eval.retrievers.index._hashing import joined_rows


@dataclass(frozen=True, eq=False)
class PassageColumns(Sequence[Passage]):
    """Passages, each made when it is asked for: a code of a language a row, and Arrow arrays of strings without
    nulls.
    """

    langs: Sequence[str]
    ids: Any
    doc_ids: Any
    titles: Any
    texts: Any

    @classmethod
    def of(cls, passages: Sequence[Passage]) -> PassageColumns:
        """Return passages as columns; those that are columns already, as they are."""
        import pyarrow as pa

        if isinstance(passages, PassageColumns):
            return passages
        columns = (
            [passage.id for passage in passages],
            [passage.doc_id for passage in passages],
            [passage.title for passage in passages],
            [passage.text for passage in passages],
        )
        return cls([passage.lang for passage in passages], *(pa.array(column, pa.large_string()) for column in columns))

    def __len__(self) -> int:
        return len(self.langs)

    @overload
    def __getitem__(self, row: int) -> Passage: ...

    @overload
    def __getitem__(self, row: slice) -> PassageColumns: ...

    def __getitem__(self, row: int | slice) -> Passage | PassageColumns:
        if isinstance(row, slice):
            return self.take(range(len(self))[row])
        at = range(len(self))[row]
        identifier, document, title, text = (column[at].as_py() for column in self._fields)
        return Passage(identifier, self.langs[at], text, title, document)

    def __iter__(self) -> Iterator[Passage]:
        identifiers, documents, titles, texts = (column.to_pylist() for column in self._fields)
        yield from map(Passage, identifiers, self.langs, texts, titles, documents)

    @property
    def _fields(self) -> tuple[Any, Any, Any, Any]:
        return self.ids, self.doc_ids, self.titles, self.texts

    def take(self, rows: Sequence[int]) -> PassageColumns:
        """Return some of the rows, in the given order."""
        import pyarrow as pa

        places = pa.array(rows, pa.int64())
        return PassageColumns([self.langs[row] for row in rows], *(column.take(places) for column in self._fields))

    def by_language(self) -> Iterator[tuple[str, Sequence[int], PassageColumns]]:
        """Yield every language, in the order of its first row, with its rows and their numbers."""
        if len(set(self.langs)) == 1:
            yield self.langs[0], range(len(self)), self
            return
        places: dict[str, list[int]] = {}
        for row, lang in enumerate(self.langs):
            places.setdefault(lang, []).append(row)
        for lang, rows in places.items():
            yield lang, rows, self.take(rows)

    def encoded(self) -> list[Any]:
        """Return ids, document ids, titles and texts in UTF-8, as four Arrow arrays of bytes."""
        import pyarrow as pa

        return [column.cast(pa.large_binary()) for column in self._fields]


def joined(fields: Sequence[Any], start: int) -> tuple[memoryview, bytes]:
    """Return the bytes to append to the two files of a language, whose text file has ``start`` bytes.

    ``fields`` are those of :meth:`PassageColumns.encoded`.
    """
    import pyarrow.compute as pc

    lengths = np.stack([pc.binary_length(field).to_numpy() for field in fields], axis=1)
    text, _ = joined_rows(fields)
    return text, (lengths.ravel().cumsum() + start).astype("<i8").tobytes()
