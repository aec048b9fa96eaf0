"""Codes of the vectors in a dense shard: float32, float16 or int8, in FAISS's file layout.

``float32`` shards are FAISS's flat indexes, the others its scalar quantisers (``QT_fp16``, ``QT_8bit``), so FAISS maps
and searches all three.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mrag_eval.platform import replaced, save_faiss

Vectors = NDArray[np.float32]

FLOAT32, FLOAT16, INT8 = "float32", "float16", "int8"
STORES: tuple[str, ...] = (FLOAT32, FLOAT16, INT8)
# the largest finite float16
FLOAT16_MAX = 65_504.0

_BYTES = {FLOAT32: 4, FLOAT16: 2, INT8: 1}
# FAISS's numbers of QT_fp16 and QT_8bit
_QUANTIZERS = {FLOAT16: 4, INT8: 0}
# the highest code of int8; FAISS's are unsigned
_HIGHEST = 255
# Layout of a serialised index, little-endian: tag, dimension, vectors, two unused counters, is_trained, metric (0:
# inner product). A quantiser follows with its type, its statistic and one argument, dimension, bytes of a code, and the
# trained values with their number in front. Then comes the number of codes (in a flat index: of floats).
_INDEX = struct.Struct("<4siqqqBi")
_QUANTIZER = struct.Struct("<iifQQ")
_NUMBER = struct.Struct("<Q")
_UNUSED = 1 << 20
_BLOCK = 16_384


@dataclass(frozen=True)
class Codes:
    """How the vectors of one shard are coded.

    - ``store``: ``float32``, ``float16`` or ``int8``.
    - ``dimension``: of the vectors.
    - ``ranges``: for ``int8``, the lowest value of every dimension and the distance from there to the highest
      (2 × dimension). The 256 codes of a dimension divide its range evenly and include both ends.
    """

    store: str
    dimension: int
    ranges: Vectors | None = None

    @property
    def width(self) -> int:
        """Return the bytes of one vector."""
        return _BYTES[self.store] * self.dimension

    @property
    def header_size(self) -> int:
        """Return the bytes in front of the codes in a file."""
        if self.store == FLOAT32:
            return _INDEX.size + _NUMBER.size
        trained = 2 * 4 * self.dimension if self.store == INT8 else 0
        return _INDEX.size + _QUANTIZER.size + 2 * _NUMBER.size + trained

    @cached_property
    def _steps(self) -> Vectors:
        assert self.ranges is not None
        steps: Vectors = self.ranges[1] / np.float32(_HIGHEST)
        return steps

    def encode(self, vectors: Vectors) -> memoryview:
        """Return the bytes of vectors (rows × dimension); values outside the range of ``int8`` get its ends.

        Values that ``float16`` cannot hold become infinite: check them before (:data:`FLOAT16_MAX`).
        """
        if self.store != INT8:
            with np.errstate(over="ignore"):
                numbers = np.ascontiguousarray(vectors, dtype="<f2" if self.store == FLOAT16 else "<f4")
            return numbers.view(np.uint8).reshape(-1).data
        assert self.ranges is not None
        places = vectors - self.ranges[0]
        places /= np.where(self._steps > 0, self._steps, np.float32(1))
        np.rint(places, out=places)
        np.clip(places, 0, _HIGHEST, out=places)
        coded: NDArray[np.uint8] = places.astype(np.uint8).reshape(-1)
        return coded.data

    def decode(self, raw: NDArray[np.uint8]) -> Vectors:
        """Return the vectors of codes (… × width bytes)."""
        if self.store == FLOAT32:
            return raw.view("<f4")
        if self.store == FLOAT16:
            return raw.view("<f2").astype(np.float32, subok=False)
        assert self.ranges is not None
        vectors = raw.astype(np.float32, subok=False)
        vectors *= self._steps
        vectors += self.ranges[0]
        return vectors

    def largest(self, max_norm: float) -> float:
        """Return a length that bounds rounding errors of scores, given the largest norm of the vectors.

        Decoding int8 adds two numbers of each dimension, which may both be larger than their sum.
        """
        if self.ranges is None:
            return max_norm
        return max(max_norm, float(np.linalg.norm(np.abs(self.ranges).sum(axis=0, dtype=np.float64))))

    # --- the file ---------------------------------------------------------------------------------------------------

    @property
    def _trained(self) -> Vectors:
        """Return FAISS's two values per dimension: it decodes ``low + (code + ½) / 255 · width``."""
        if self.ranges is None:
            return np.empty(0, dtype=np.float32)
        low, width = self.ranges
        return np.concatenate([low - self._steps / 2, width]).astype("<f4")

    def header(self, count: int) -> bytes:
        """Return what FAISS writes in front of ``count`` codes, so that a build can append codes after it."""
        tag = b"IxFI" if self.store == FLOAT32 else b"IxSQ"
        head = _INDEX.pack(tag, self.dimension, count, _UNUSED, _UNUSED, 1, 0)
        if self.store == FLOAT32:
            return head + _NUMBER.pack(self.dimension * count)
        trained = self._trained
        quantizer = _QUANTIZER.pack(_QUANTIZERS[self.store], 0, 0.0, self.dimension, self.width)
        return head + quantizer + _NUMBER.pack(len(trained)) + trained.tobytes() + _NUMBER.pack(self.width * count)

    def new_index(self) -> Any:
        """Return an empty FAISS index for these codes."""
        import faiss

        if self.store == FLOAT32:
            return faiss.IndexFlatIP(self.dimension)
        index = faiss.IndexScalarQuantizer(self.dimension, _QUANTIZERS[self.store], faiss.METRIC_INNER_PRODUCT)
        faiss.copy_array_to_vector(self._trained, index.sq.trained)
        index.is_trained = True
        return index

    def layout_is_known(self) -> bool:
        """Return whether the installed FAISS uses the layout of :meth:`header`."""
        import faiss

        probe = np.arange(3 * self.width, dtype=np.uint8).reshape(3, self.width)
        index = self.new_index()
        index.add_sa_codes(probe)
        return bool(faiss.serialize_index(index).tobytes() == self.header(3) + probe.tobytes())

    def finish(self, path: Path, count: int) -> None:
        """Turn a reserved header and ``count`` appended codes into a FAISS file, in place if the layout is known."""
        if self.layout_is_known():
            with path.open("r+b") as file:
                file.write(self.header(count))
            return
        index = self.new_index()
        with path.open("rb") as file:
            file.seek(self.header_size)
            while block := file.read(self.width * _BLOCK):
                index.add_sa_codes(np.frombuffer(block, dtype=np.uint8).reshape(-1, self.width))
        with replaced(path) as part:
            save_faiss(part, index)


def codes_of(index: Any) -> Codes | None:
    """Return the codes of an open FAISS index; None if it is not one of ours."""
    import faiss

    if isinstance(index, faiss.IndexFlatIP):
        return Codes(FLOAT32, index.d)
    if not isinstance(index, faiss.IndexScalarQuantizer):
        return None
    store = {number: name for name, number in _QUANTIZERS.items()}.get(index.sq.qtype)
    if store != INT8:
        return None if store is None else Codes(store, index.d)
    trained = faiss.vector_to_array(index.sq.trained).astype(np.float32)
    if len(trained) != 2 * index.d:
        return None
    low, width = trained.reshape(2, index.d)
    return Codes(INT8, index.d, np.stack([low + width / np.float32(_HIGHEST) / 2, width]))


def ranges_of(low: Vectors, high: Vectors) -> Vectors:
    """Return the ``ranges`` of vectors whose values lie between ``low`` and ``high`` in every dimension."""
    return np.stack([low, high - low]).astype(np.float32)
