"""Lengths of an index's passages in characters (RAG in multilingual settings, Table 4)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mrag_eval.retrievers.index._load import index_info
from mrag_eval.retrievers.index._passages import FIELDS, offsets_path, text_path

# Passages read at a time.
_BLOCK = 1 << 13
# The bits of a byte of UTF-8 that are 10 in all but the first byte of a character.
_HEAD, _WITHIN = 0xC0, 0x80


def median_lengths(path: str | Path) -> dict[str, float]:
    """Return the median length of passages in Unicode characters, by language.

    A passage is what is searched and shown: with its title in front, if the chunker put it there. Reads all passages.
    Raises as :func:`load_index`.
    """
    info = index_info(path)
    folder, counts = Path(info["path"]), {lang: record["passages"] for lang, record in info["languages"].items()}
    return {lang: float(np.median(_lengths(folder, lang))) for lang in sorted(counts) if counts[lang]}


def _lengths(folder: Path, lang: str) -> NDArray[np.int64]:
    """Return the number of code points of every passage's text: its bytes that begin one."""
    text = np.memmap(text_path(folder, lang), dtype=np.uint8, mode="r")
    ends = np.memmap(offsets_path(folder, lang), dtype="<i8", mode="r").reshape(-1, FIELDS)
    lengths = np.empty(len(ends), dtype=np.int64)
    for first in range(0, len(ends), _BLOCK):
        # a text begins where the title before it ends
        bounds = np.asarray(ends[first : first + _BLOCK, -2:])
        start = int(bounds[0, 0])
        begun = (np.asarray(text[start : int(bounds[-1, 1])]) & _HEAD) != _WITHIN
        before = np.concatenate([[0], np.cumsum(begun)])
        lengths[first : first + _BLOCK] = np.diff(before[bounds - start], axis=1)[:, 0]
    return lengths
