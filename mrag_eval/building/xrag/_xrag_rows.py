"""Rows in XRAG's file format."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from mrag_eval.building.steps._records import Settle, each, kept
from mrag_eval.building.xrag._articles import Library
from mrag_eval.building.xrag._xrag_records import LinkedQuestion, XragRow
from mrag_eval.platform import replaced, to_json


def make_rows(library: Library, seed: int, items: Sequence[LinkedQuestion], settle: Settle) -> None:
    """Settle every item with its row; draw the order of its articles by seed and id."""
    each(items, lambda item: kept(xrag_row(library, seed, item)), settle)


def xrag_row(library: Library, seed: int, item: LinkedQuestion) -> XragRow:
    """Return the row of an item: supporting articles first, English before the other language, and a display order.

    ``article_order`` never puts both supporting articles first, so that a model cannot profit from trusting the first
    two.
    """
    names = (*item.ends, *(name for found in item.distractors.values() for name in found))
    articles = [library.article(name) for name in names]
    return XragRow(
        item.id,
        item.translated_question,
        item.translated_answer,
        item.question,
        item.answer,
        item.language,
        item.type,
        item.a_type or "original",
        item.crossdoc_type,
        articles=tuple(article.text for article in articles),
        dates=tuple(article.date for article in articles),
        urls=tuple(article.url for article in articles),
        is_support=tuple(int(place < 2) for place in range(len(names))),
        article_order=_order(item.id, len(names), seed),
        article_ids=names,
        article_languages=tuple(article.lang for article in articles),
        setting=item.setting,
    )


def _order(name: str, count: int, seed: int) -> tuple[int, ...]:
    key = int.from_bytes(hashlib.sha256(name.encode("utf-8", "replace")).digest()[:8], "big")
    rng = np.random.default_rng([seed, key])
    while True:
        drawn = tuple(int(place) for place in rng.permutation(count))
        if sorted(drawn[:2]) != [0, 1] or count <= 2:
            return drawn


def write_rows(rows: Iterable[XragRow], path: Path) -> tuple[int, str]:
    """Write the set; return the number of rows and the file's SHA-256."""
    digest = hashlib.sha256()
    count = 0
    with replaced(path) as part, part.open("wb") as handle:
        for row in rows:
            line = json.dumps(to_json(row), ensure_ascii=False).encode() + b"\n"
            digest.update(line)
            handle.write(line)
            count += 1
    return count, digest.hexdigest()
