"""Rows in XRAG's file format."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mrag_eval.building.steps._records import Outcome, Record, Settle, each, kept
from mrag_eval.building.xrag._articles import Library
from mrag_eval.core import replaced


def make_rows(library: Library, seed: int, items: Sequence[Record], settle: Settle) -> None:
    """Settle every item with its row; draw the order of its articles by seed and id."""

    def make(item: Record) -> Outcome:
        return kept(xrag_row(library, seed, item))

    each(items, make, settle)


def xrag_row(library: Library, seed: int, item: Record) -> dict[str, Any]:
    """Return the row of an item: supporting articles first, English before the other language, and a display order.

    ``article_order`` never puts both supporting articles first, so that a model cannot profit from trusting the first
    two.
    """
    names = [item["first"], item["second"], *(name for found in item["distractors"].values() for name in found)]
    articles = [library.article(name) for name in names]
    return {
        "id": item["id"],
        "question": item["translated_question"],
        "answer": item["translated_answer"],
        "en_question": item["question"],
        "en_answer": item["answer"],
        "language": item["language"],
        "q_type": item["type"],
        "a_type": item.get("a_type", "original"),
        "crossdoc_type": item["crossdoc_type"],
        "articles": [article["text"] for article in articles],
        "dates": [article["date"] for article in articles],
        "urls": [article.get("url", "") for article in articles],
        "is_support": [int(place < 2) for place in range(len(names))],
        "article_order": _order(str(item["id"]), len(names), seed),
        "article_ids": names,
        "article_languages": [article["lang"] for article in articles],
        "setting": item["setting"],
    }


def _order(name: str, count: int, seed: int) -> list[int]:
    key = int.from_bytes(hashlib.sha256(name.encode("utf-8", "replace")).digest()[:8], "big")
    rng = np.random.default_rng([seed, key])
    while True:
        drawn = [int(place) for place in rng.permutation(count)]
        if sorted(drawn[:2]) != [0, 1] or count <= 2:
            return drawn


def write_rows(rows: Iterable[Record], path: Path) -> tuple[int, str]:
    """Write the set; return the number of rows and the file's SHA-256."""
    digest = hashlib.sha256()
    count = 0
    with replaced(path) as part, part.open("wb") as handle:
        for row in rows:
            line = json.dumps(row, ensure_ascii=False).encode() + b"\n"
            digest.update(line)
            handle.write(line)
            count += 1
    return count, digest.hexdigest()
