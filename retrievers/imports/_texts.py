"""The passages beside vectors: JSON Lines, or the 100-word passages of documents."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby, islice
from pathlib import Path
from typing import Any

from mrag_eval.core import Passage, normalize_language
from mrag_eval.platform import DataError, check_keys, json_line
from mrag_eval.retrievers.chunking._chunking import ChunkConfig, chunk_documents
from mrag_eval.retrievers.corpora._corpus import Document, read_corpus
from mrag_eval.retrievers.corpora._reading import Reading
from mrag_eval.retrievers.corpora._wikipedia import wikipedia_edition
from mrag_eval.retrievers.imports._blocks import BLOCK
from mrag_eval.retrievers.imports._columns import ColumnLayout

# The passages of Retrieval-augmented generation in multilingual settings.
HUNDRED_WORDS = ChunkConfig(method="words", size=100)
LINES = (".jsonl", ".jsonl.gz", ".ndjson")


def passage_lines(path: Path, layout: ColumnLayout, reading: Reading) -> Iterator[Passage]:
    """Yield the passages of a JSON Lines file, in order; raise DataError, naming the line, for one that is none."""
    reading.expect([path])
    # one batch has the same fields in every line
    told = ((number, _values(raw, layout, f"{path}, line {number:,}")) for number, raw in reading.lines(path))
    for _, alike in groupby(told, lambda line: line[1].keys()):
        while lines := list(islice(alike, BLOCK)):
            numbers = [number for number, _ in lines]
            values = {field: [line[field] for _, line in lines] for field in lines[0][1]}
            yield from layout.passages(values, layout.lang, numbers, str(path), "line")


def _values(raw: bytes, layout: ColumnLayout, where: str) -> dict[str, Any]:
    record = json_line(raw, where, read=())
    columns = layout.columns({*record, "embedding"}, where)
    check_keys(record, columns.values(), where)
    if layout.lang is None and not isinstance(record.get(columns.get("lang", "")), str):
        raise DataError(f"{where}: no language", "name the language of all passages: --lang CODE")
    values = {field: record[column] for field, column in columns.items() if field != "vectors"}
    if not isinstance(values["text"], str):
        raise DataError(f"{where}: the text is {type(values['text']).__name__}", "correct that line")
    try:
        "".join(map(str, values.values())).encode()
    except UnicodeEncodeError:
        fix = "correct the text: it was cut inside a character"
        raise DataError(f"{where}: holds half a surrogate pair, which is not text", fix) from None
    return values


def hundred_words(texts: str, lang: str, reading: Reading) -> Iterator[Passage]:
    """Yield the 100-word passages of documents, each behind its title.

    ``texts`` is a folder with a copy of ``wikimedia/wikipedia`` (``20231101.<lang>/*.parquet``), or documents as for
    ``index build``.
    """
    folder = Path(texts)
    documents: Iterator[Document]
    if folder.is_dir() and any(folder.glob("*.*/*.parquet")):
        documents = wikipedia_edition(lang, source=folder).documents()
    else:
        documents = read_corpus(texts, lang=normalize_language(lang))
    yield from chunk_documents(documents, HUNDRED_WORDS)
