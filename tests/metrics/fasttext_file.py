"""fastText model files of a few words, written byte by byte, with the labels of any publisher."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from pathlib import Path

_MAGIC, _VERSION = 793712314, 12
_SOFTMAX, _SUPERVISED = 3, 3
_WORD, _LABEL = 0, 1


def write_fasttext(path: Path, words: Mapping[str, Sequence[str]]) -> Path:
    """Write a model (label -> its words) that gives a text the label to which most of its words belong."""
    labels = list(words)
    entries = [(word, place) for place, label in enumerate(labels) for word in words[label]]
    # each word points along the axis of its label, and each label along its own
    dim = len(labels)
    axes = [[5.0 if place == axis else 0.0 for axis in range(dim)] for place in range(dim)]
    with path.open("wb") as file:
        file.write(struct.pack("<2i", _MAGIC, _VERSION))
        file.write(struct.pack("<12id", dim, 5, 5, 1, 5, 1, _SOFTMAX, _SUPERVISED, 1, 1, 1, 100, 1e-4))
        file.write(struct.pack("<3i2q", len(entries) + dim, len(entries), dim, len(entries), -1))
        for text, kind in [*((word, _WORD) for word, _ in entries), *((label, _LABEL) for label in labels)]:
            file.write(text.encode() + b"\0" + struct.pack("<qb", 1, kind))
        # letters of unknown words share one bucket, which points nowhere
        for rows in ([*(axes[place] for _, place in entries), [0.0] * dim], axes):
            file.write(struct.pack("<?2q", False, len(rows), dim))
            file.writelines(struct.pack(f"<{dim}f", *row) for row in rows)
    return path
