"""Files derived from the passages of a finished index: Parquet copies and the lookup from ids to rows.

Files are read sequentially, not mapped, so memory does not grow with the corpus, except for about 50 bytes per passage
while the lookup is sorted.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mrag_eval.core import CorpusError, save_array
from mrag_eval.retrievers.index._hashing import hashes64
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
    import pyarrow.compute as pc

    hashes: list[NDArray[np.uint64]] = []
    rows: list[NDArray[np.int64]] = []
    documents: dict[str, int] = {}
    first = 0
    for lang in languages:
        of_documents = _Distinct()
        for identifiers, doc_ids in _written_as_parquet(folder, lang):
            own = np.arange(first, first + len(identifiers))
            of_ids = _hashes(identifiers)
            named = pc.and_(pc.not_equal(doc_ids, ""), pc.not_equal(doc_ids, identifiers)).to_numpy(
                zero_copy_only=False
            )
            # a document's passages follow one another
            coded = doc_ids.dictionary_encode()
            of_named = _hashes(coded.dictionary)[coded.indices.to_numpy()[named]]
            hashes += (of_ids, of_named)
            rows += (own, own[named])
            of_documents.add(of_named)
            of_documents.add(of_ids[~named])
            first += len(identifiers)
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


def _hashes(names: Any) -> NDArray[np.uint64]:
    """Return the hashes of an Arrow array of texts."""
    import pyarrow as pa

    return hashes64(names.cast(pa.binary()).to_pylist())


def _columns(folder: Path, lang: str) -> Iterator[list[Any]]:
    """Yield ids, document ids, titles and texts as Arrow arrays, batch by batch, without an object per text."""
    import pyarrow as pa

    with text_path(folder, lang).open("rb") as text, offsets_path(folder, lang).open("rb") as offsets:
        last = 0
        while raw := offsets.read(8 * FIELDS * _BATCH):
            ends = np.frombuffer(raw, dtype="<i8")
            bounds = np.concatenate([np.zeros(1, dtype=np.int64), ends - last])
            content = pa.py_buffer(text.read(int(bounds[-1])))
            fields = pa.LargeStringArray.from_buffers(len(ends), pa.py_buffer(bounds), content)
            try:
                fields.validate(full=True)
            except pa.ArrowInvalid:
                raise CorpusError(
                    f"index {folder}: passages/{lang}.text is damaged (it is not UTF-8)", "rebuild the index"
                ) from None
            yield [fields.take(pa.array(np.arange(number, len(ends), FIELDS))).cast(pa.string())
                   for number in range(FIELDS)]  # fmt: skip
            last = int(ends[-1])


def _written_as_parquet(folder: Path, lang: str) -> Iterator[tuple[Any, Any]]:
    """Write the Parquet copy of a language; yield ids and document ids."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([(name, pa.string()) for name in ("id", "doc_id", "lang", "title", "text")])
    with pq.ParquetWriter(folder / "passages" / f"{lang}.parquet", schema, compression="zstd") as writer:
        for identifiers, doc_ids, titles, texts in _columns(folder, lang):
            langs = pa.repeat(pa.scalar(lang, pa.string()), len(identifiers))
            writer.write_table(pa.Table.from_arrays([identifiers, doc_ids, langs, titles, texts], schema=schema))
            yield identifiers, doc_ids
