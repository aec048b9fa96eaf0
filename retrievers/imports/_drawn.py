"""A sample of passages with their vectors, drawn while they pass by, which survives interruptions."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mrag_eval.core import CorpusError, Passage, json_value, write_whole

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


class Sample:
    """The ``count`` passages with the smallest random numbers, one number a passage, in order.

    They are a uniform draw of all that pass by. The sample is saved at ``path`` whenever it changes, before the
    passages are written: those of an unfinished block come by once more, with the same numbers.
    """

    def __init__(self, path: Path, done: int, count: int = COUNT, seed: int = SEED) -> None:
        self._path, self._count = path, count
        bits = np.random.PCG64(seed)
        bits.advance(done)
        self._random = np.random.Generator(bits)
        self._next = done
        self._held: dict[int, tuple[float, Drawn]] = {}
        if done:
            self._held = {drawn.number: (key, drawn) for key, drawn in _read(path)}

    @property
    def drawn(self) -> list[Drawn]:
        """Return the sample, in the order of the passages."""
        return [self._held[number][1] for number in sorted(self._held)]

    def add(self, passages: list[Passage], vectors: NDArray[np.float32]) -> None:
        """Let a block pass by."""
        keys = self._random.random(len(passages))
        bound = max((key for key, _ in self._held.values()), default=1.0) if len(self._held) == self._count else 1.0
        near = np.flatnonzero(keys < bound)
        for row in near[np.argsort(keys[near])][: self._count].tolist():
            number = self._next + row
            self._held[number] = (float(keys[row]), Drawn(number, passages[row], np.array(vectors[row])))
        self._next += len(passages)
        if len(near):
            kept = sorted(self._held.values(), key=lambda one: one[0])[: self._count]
            self._held = {drawn.number: (key, drawn) for key, drawn in kept}
            self._save()

    def _save(self) -> None:
        lines = [
            {
                "key": key,
                "number": drawn.number,
                "passage": [getattr(drawn.passage, name) for name in _FIELDS],
                "vector": base64.b64encode(drawn.vector.astype("<f4").tobytes()).decode("ascii"),
            }
            for key, drawn in self._held.values()
        ]
        self._path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(self._path, json.dumps(lines))


def _read(path: Path) -> list[tuple[float, Drawn]]:
    try:
        return [
            (
                float(line["key"]),
                Drawn(
                    int(line["number"]),
                    Passage(**dict(zip(_FIELDS, line["passage"], strict=True))),
                    np.frombuffer(base64.b64decode(line["vector"]), "<f4"),
                ),
            )
            for line in json_value(path.read_bytes())
        ]
    except (OSError, ValueError, KeyError, TypeError):
        raise CorpusError(f"{path} is missing or damaged", "import again without --resume") from None
