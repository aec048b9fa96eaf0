"""Files derived from the passages of a finished index: Parquet copies and the lookup from ids to rows.

Files are read sequentially, not mapped, so memory does not grow with the corpus, except for about 50 bytes per passage
while the lookup is sorted.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mrag_eval.platform import CorpusError, save_array
from mrag_eval.retrievers.index._hashing import hashes64
from mrag_eval.retrievers.index._passage_columns import PassageColumns
from mrag_eval.retrievers.index._passages import FIELDS, LOOKUP_HASHES, LOOKUP_ROWS, offsets_path, text_path

_BATCH = 4_096


def finish_passages(folder: Path, languages: tuple[str, ...]) -> dict[str, int]:
    """Write ``<lang>.parquet`` for every language, and the lookup; return the number of documents per language."""
    import pyarrow.compute as pc

    hashes: list[NDArray[np.uint64]] = []
    rows: list[NDArray[np.int64]] = []
    documents: dict[str, int] = {}
    first = 0
    for lang in languages:
        of_documents = _Distinct()
        for held in _written_as_parquet(folder, lang):
            identifiers, doc_ids = held.ids, held.doc_ids
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

    return hashes64(names.cast(pa.large_binary()).to_pylist())


def read_passages(folder: Path, lang: str) -> Iterator[PassageColumns]:
    """Yield the passages of a language in order, batch by batch."""
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
            columns = [fields.take(pa.array(np.arange(number, len(ends), FIELDS))) for number in range(FIELDS)]
            yield PassageColumns([lang] * len(columns[0]), *columns)
            last = int(ends[-1])


def _written_as_parquet(folder: Path, lang: str) -> Iterator[PassageColumns]:
    """Write the Parquet copy of a language; yield its passages."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([(name, pa.string()) for name in ("id", "doc_id", "lang", "title", "text")])

    def write(held: PassageColumns) -> None:
        langs = pa.repeat(pa.scalar(lang, pa.string()), len(held))
        columns = [column.cast(pa.string()) for column in (held.ids, held.doc_ids, langs, held.titles, held.texts)]
        writer.write_table(pa.Table.from_arrays(columns, schema=schema))

    path = folder / "passages" / f"{lang}.parquet"
    # Arrow compresses without the interpreter, which hashes ids meanwhile
    with (
        pq.ParquetWriter(path, schema, use_dictionary=["doc_id", "lang", "title"]) as writer,
        ThreadPoolExecutor(1, "mrag-eval-copy") as thread,
    ):
        writing: Future[None] | None = None
        for held in read_passages(folder, lang):
            if writing is not None:
                writing.result()
            writing = thread.submit(write, held)
            yield held
        if writing is not None:
            writing.result()
