"""Files derived from the passages of a finished index: Parquet copies and the lookup from ids to rows.

Files are read sequentially, not mapped, so memory does not grow with the corpus, except for about 50 bytes per passage
while the lookup is sorted.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mrag_eval.core import save_array
from mrag_eval.retrievers.index._hashing import hash64
from mrag_eval.retrievers.index._passages import FIELDS, LOOKUP_HASHES, LOOKUP_ROWS, Record, offsets_path, text_path

_BATCH = 4_096


def read_records(folder: Path, lang: str) -> Iterator[list[Record]]:
    """Yield the passages of a language in order, batch by batch."""
    with text_path(folder, lang).open("rb") as text, offsets_path(folder, lang).open("rb") as offsets:
        last = 0
        while raw := offsets.read(8 * FIELDS * _BATCH):
            ends = np.frombuffer(raw, dtype="<i8")
            bounds = [0, *(ends - last).tolist()]
            content = text.read(bounds[-1])
            fields = [str(content[low:high], "utf-8") for low, high in pairwise(bounds)]
            yield list(zip(*(fields[number::FIELDS] for number in range(FIELDS)), strict=True))
            last = int(ends[-1])


def finish_passages(folder: Path, languages: tuple[str, ...]) -> dict[str, int]:
    """Write ``<lang>.parquet`` for every language, and the lookup; return the number of documents per language."""
    hashes: list[NDArray[np.uint64]] = []
    rows: list[NDArray[np.int64]] = []
    documents: dict[str, int] = {}
    first = 0
    for lang in languages:
        of_documents = _Distinct()
        for records in _written_as_parquet(folder, lang):
            own = np.arange(first, first + len(records))
            of_ids = _hashes([identifier for identifier, _, _, _ in records])
            named = np.asarray([bool(doc_id) and doc_id != identifier for identifier, doc_id, _, _ in records])
            of_named = _hashes([record[1] for record, has_name in zip(records, named, strict=True) if has_name])
            hashes += (of_ids, of_named)
            rows += (own, own[named])
            of_documents.add(of_named)
            of_documents.add(of_ids[~named])
            first += len(records)
        documents[lang] = of_documents.count()
    all_hashes, all_rows = np.concatenate(hashes), np.concatenate(rows)
    hashes.clear()
    rows.clear()
    order = np.argsort(all_hashes, kind="stable")
    save_array(folder / "passages" / LOOKUP_HASHES, all_hashes[order])
    save_array(folder / "passages" / LOOKUP_ROWS, all_rows[order])
    return documents


class _Distinct:
    """Count distinct hashes; they are sorted only when their number has doubled, so the cost stays that of one sort."""

    def __init__(self) -> None:
        self._parts: list[NDArray[np.uint64]] = []
        self._held, self._limit = 0, 1 << 20

    def add(self, hashes: NDArray[np.uint64]) -> None:
        self._parts.append(hashes)
        self._held += len(hashes)
        if self._held > self._limit:
            self._limit = max(self._limit, 2 * self.count())

    def count(self) -> int:
        if self._parts:
            self._parts = [np.unique(np.concatenate(self._parts))]
            self._held = len(self._parts[0])
        return self._held


def _hashes(names: list[str]) -> NDArray[np.uint64]:
    return np.fromiter(map(hash64, names), dtype=np.uint64, count=len(names))


def _written_as_parquet(folder: Path, lang: str) -> Iterator[list[Record]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([(name, pa.string()) for name in ("id", "doc_id", "lang", "title", "text")])
    with pq.ParquetWriter(folder / "passages" / f"{lang}.parquet", schema, compression="zstd") as writer:
        for records in read_records(folder, lang):
            identifiers, doc_ids, titles, texts = (list(field) for field in zip(*records, strict=True))
            columns = (identifiers, doc_ids, [lang] * len(records), titles, texts)
            writer.write_table(pa.table(dict(zip(schema.names, columns, strict=True)), schema=schema))
            yield records
