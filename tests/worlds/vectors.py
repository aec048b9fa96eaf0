"""Published vectors as files: Parquet in the layouts of the presets, arrays beside JSON Lines, and torch chunks."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from mrag_eval.core import Passage

_WORDS = {
    "en": ("river", "bridge", "museum", "rice", "field", "old", "new", "city", "king", "war", "music", "train"),
    "ko": ("강", "다리", "박물관", "쌀", "들판", "오래된", "새", "도시", "왕", "전쟁", "음악", "기차"),
}


@dataclass
class Rows:
    """Passages of the languages ``en`` and ``ko``, and the vectors of ``<title>. <text>``."""

    passages: list[Passage]
    vectors: np.ndarray = field(repr=False)

    def of(self, lang: str) -> tuple[list[Passage], np.ndarray]:
        rows = [row for row, passage in enumerate(self.passages) if passage.lang == lang]
        return [self.passages[row] for row in rows], self.vectors[rows]


def made(embed: Callable[[Sequence[str]], np.ndarray], count: int, *, fed: str = "{title}. {text}") -> Rows:
    """Return ``count`` passages of each language; every third begins a page."""
    rng = np.random.default_rng(7)
    passages = []
    for lang, words in _WORDS.items():
        for number in range(count):
            page = number // 3
            text = " ".join(rng.choice(words, 20)) + f" {number}."
            passages.append(
                Passage(f"{page}_{number % 3}", lang, text, f"{words[page % len(words)]} {page}", str(page))
            )
    texts = [fed.format(title=passage.title, text=passage.text) for passage in passages]
    return Rows(passages, embed(texts))


def write_upstash(folder: Path, rows: Rows, *, column: str = "embedding", **changed: Any) -> Path:
    """Write ``data/<lang>/0000.parquet`` and ``0001.parquet``, in row groups of ten; return the folder.

    ``changed`` are other values of whole columns by name: ``text=[...]``, or functions of the values.
    """
    for lang in _WORDS:
        passages, vectors = rows.of(lang)
        table = {
            "id": [passage.id for passage in passages],
            "url": [f"https://{lang}.wikipedia.org/wiki?curid={passage.doc_id}" for passage in passages],
            "title": [passage.title for passage in passages],
            "text": [passage.text for passage in passages],
            column: list(vectors),
        }
        for name, change in changed.items():
            table[name] = change(table[name]) if callable(change) else change
        middle = len(passages) * 2 // 3
        for part, (start, end) in enumerate(((0, middle), (middle, len(passages)))):
            write_table(folder / "data" / lang / f"{part:04}.parquet", {k: v[start:end] for k, v in table.items()})
    return folder


def write_table(path: Path, columns: dict[str, Sequence[Any]]) -> Path:
    """Write columns to one Parquet file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(dict(columns)), path, row_group_size=10)
    return path


def write_lines(path: Path, passages: Sequence[Passage]) -> Path:
    """Write passages as JSON Lines with ids of their own."""
    lines = [
        {"id": f"{p.lang}-{p.id}", "doc_id": p.doc_id, "lang": p.lang, "title": p.title, "text": p.text}
        for p in passages
    ]
    path.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), "utf-8")
    return path


def write_f16bin(path: Path, vectors: np.ndarray) -> Path:
    """Write rows and columns as u32, then float16."""
    header = np.asarray(vectors.shape, dtype="<u4")
    path.write_bytes(header.tobytes() + vectors.astype("<f2").tobytes())
    return path
