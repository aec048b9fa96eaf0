"""A sample of passages with their vectors, drawn while they pass by, which survives interruptions."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mrag_eval.core import Passage
from mrag_eval.platform import CorpusError, json_value

SEED = 20
# Passages that are embedded again.
COUNT = 100
_FIELDS = ("id", "lang", "text", "title", "doc_id")


@dataclass(frozen=True)
class Drawn:
    """One passage of the sample, its number among those imported, and its vector."""

    number: int
    passage: Passage
    vector: NDArray[np.float32]


class PassageSample:
    """The ``count`` passages with the smallest random numbers, one number a passage, in order.

    A uniform sample of the stream. Its passages are appended to the file ``path`` before the block is written; an
    unfinished block is replayed with the same random numbers.
    """

    def __init__(self, path: Path, done: int, count: int = COUNT, seed: int = SEED) -> None:
        self._path, self._count = path, count
        bits = np.random.PCG64(seed)
        bits.advance(done)
        self._random = np.random.Generator(bits)
        self._next = done
        self._held: dict[int, tuple[float, Drawn]] = {}
        if done:
            self._keep(_read(path))

    @property
    def drawn(self) -> list[Drawn]:
        """Return the sample, in the order of the passages."""
        return [self._held[number][1] for number in sorted(self._held)]

    def add(self, passages: Sequence[Passage], vectors: NDArray[np.float32]) -> None:
        """Let a block pass by."""
        keys = self._random.random(len(passages))
        is_full = len(self._held) == self._count
        bound = max(key for key, _ in self._held.values()) if is_full else 1.0
        near = np.flatnonzero(keys < bound)
        chosen = near[np.argsort(keys[near])][: self._count].tolist()
        found = [(float(keys[row]), Drawn(self._next + row, passages[row], np.array(vectors[row]))) for row in chosen]
        if found:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("a", encoding="utf-8") as file:
                file.writelines(_line(key, drawn) for key, drawn in found)
            self._keep(found)
        self._next += len(passages)

    def _keep(self, found: list[tuple[float, Drawn]]) -> None:
        self._held |= {drawn.number: (key, drawn) for key, drawn in found}
        kept = sorted(self._held.values(), key=lambda one: one[0])[: self._count]
        self._held = {drawn.number: (key, drawn) for key, drawn in kept}


def _line(key: float, drawn: Drawn) -> str:
    record = {
        "key": key,
        "number": drawn.number,
        "passage": [getattr(drawn.passage, name) for name in _FIELDS],
        "vector": base64.b64encode(drawn.vector.astype("<f4").tobytes()).decode("ascii"),
    }
    return json.dumps(record) + "\n"


def _read(path: Path) -> list[tuple[float, Drawn]]:
    """Return what was appended, and cut off a last line that is not whole."""
    try:
        content = path.read_bytes()
        whole = content.rfind(b"\n") + 1
        with path.open("r+b") as file:
            file.truncate(whole)
        return [_drawn(json_value(line)) for line in content[:whole].splitlines()]
    except (OSError, ValueError, KeyError, TypeError):
        raise CorpusError(f"{path} is missing or damaged", "import again without --resume") from None


def _drawn(record: Any) -> tuple[float, Drawn]:
    passage = Passage(**dict(zip(_FIELDS, record["passage"], strict=True)))
    vector = np.frombuffer(base64.b64decode(record["vector"]), "<f4")
    return float(record["key"]), Drawn(int(record["number"]), passage, vector)
