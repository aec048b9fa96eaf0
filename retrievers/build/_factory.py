"""FAISS factory strings: checked, or chosen by number of vectors and memory."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

from mrag_eval.platform import ConfigError, number_of

EXACT = "flat"
AUTO = "auto"
# Below this, exact search in 384 dimensions takes less than a millisecond per query and training is not worth it
FEW = 50_000
DEFAULT_MEMORY = 4 << 30
DEFAULT_RECALL = 0.95
SEED = 0
# Training vectors per centroid: FAISS warns below 39
PER_CENTROID = 50
_LEAST_PER_CENTROID = 39
_MOST_LISTS = 65_536
# bytes of an id in an inverted list
_ID = 8
_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}


@dataclass(frozen=True)
class Approximation:
    """Requested approximation of an index's dense shards.

    Args:
        factory: ``auto`` or a string of FAISS's ``index_factory``.
        memory: for ``auto``, the bytes that unmapped structures may take, all languages together.
        recall: target recall@20 of the search parameters.
        seed: for the training sample and the sample that measures recall.
        queries: texts to measure recall with; empty: stored vectors.
    """

    factory: str
    memory: int = DEFAULT_MEMORY
    recall: float = DEFAULT_RECALL
    seed: int = SEED
    queries: tuple[str, ...] = ()

    def asked(self) -> dict[str, Any]:
        """Return the entry for the manifest."""
        memory = {"memory": self.memory} if self.factory == AUTO else {}
        return {"factory": self.factory, **memory, "recall": self.recall, "seed": self.seed}


def approximation(
    factory: str,
    *,
    memory_budget: int | str | None = None,
    recall: float = DEFAULT_RECALL,
    queries: tuple[str, ...] = (),
    is_coded: bool = False,
) -> Approximation | None:
    """Return the checked settings, or None for an exact index; the vectors need not be known yet.

    ``is_coded``: the vectors are not stored as float32, so the recall of an exact index can be measured, too.
    """
    wanted = factory.strip()
    if memory_budget is not None and wanted.lower() != AUTO:
        raise ConfigError(f"a memory budget requires factory auto, not '{wanted}'", "use --factory auto")
    if not 0.0 < recall <= 1.0:
        raise ConfigError(f"recall is {recall}, it must be above 0 and at most 1", "e.g. 0.95")
    if queries and len(queries) < 20:
        raise ConfigError(
            f"recall cannot be measured on {number_of(len(queries), 'query', 'queries')}: at least 20 are needed",
            "give 20 queries or more",
        )
    if wanted.lower() == EXACT:
        if queries and not is_coded:
            raise ConfigError("an exact index has no recall to measure", "use --factory auto, or --store float16")
        return None
    memory = DEFAULT_MEMORY if memory_budget is None else parse_bytes(memory_budget)
    return Approximation(AUTO if wanted.lower() == AUTO else wanted, memory, recall, queries=queries)


def parse_bytes(size: int | str) -> int:
    """Return the bytes of ``2GB``, ``500 MB`` or a number; units are powers of ten."""
    found = re.fullmatch(r"\s*([0-9]*\.?[0-9]+)\s*([kmgt]?b?)\s*", str(size), re.IGNORECASE)
    unit = found[2].upper() if found else ""
    unit = unit if unit in _UNITS else f"{unit}B"
    if found is None or not float(found[1]):
        raise ConfigError(f"'{size}' is not an amount of memory", "write it as 2GB or 500MB")
    return int(float(found[1]) * _UNITS[unit])


def new_index(factory: str, dimension: int) -> Any:
    """Return an empty FAISS inner-product index; raise ConfigError for a string that does not describe one."""
    import faiss

    if re.search(r"(?:^|,)\s*(?:R(?:Flat|efine)|IDMap)", factory):
        raise ConfigError(
            f"factory '{factory}': the stored vectors re-score the candidates anyway",
            "leave out RFlat, Refine and IDMap",
        )
    try:
        index = faiss.index_factory(dimension, factory, faiss.METRIC_INNER_PRODUCT)
    except RuntimeError as error:
        reason = str(error).rpartition("failed: ")[2].strip() or str(error)
        raise ConfigError(
            f"FAISS cannot make an index of {dimension} dimensions from the factory string '{factory}' ({reason})",
            "write e.g. IVF1024,SQ8, IVF4096,PQ96x4fs, HNSW32,Flat, auto or flat",
        ) from None
    if index.metric_type != faiss.METRIC_INNER_PRODUCT:
        raise ConfigError(
            f"FAISS cannot make an inner-product index from the factory string '{factory}'",
            "e.g. IVF4096,SQ8 or HNSW32   (docs/retrieval.md)",
        )
    return index


def parameter_of(factory: str) -> str | None:
    """Return the parameter to tune: ``nprobe``, ``efSearch``, or None if all codes are compared anyway."""
    if re.search(r"(?:^|,)IVF", factory):
        return "nprobe"
    return "efSearch" if re.search(r"(?:^|,)HNSW", factory) else None


def lists_of(factory: str) -> int | None:
    """Return the number of inverted lists in an IVF factory string (``IVF4096`` or ``IVF65k``)."""
    found = re.search(r"(?:^|,)IVF(\d+)([kM]?)", factory)
    return int(found[1]) * {"": 1, "k": 1 << 10, "M": 1 << 20}[found[2]] if found else None


def least_vectors(factory: str) -> int:
    """Return the minimum number of training vectors, by FAISS's rule of 39 per centroid."""
    bits = [int(bits or 8) for bits in re.findall(r"PQ\d+(?:x(\d+))?", factory)]
    centroids = max([lists_of(factory) or 1, *(1 << b for b in bits)])
    return _LEAST_PER_CENTROID * centroids


def is_mapped(factory: str) -> bool:
    """Return whether FAISS can memory-map the codes; fast-scan codes (``x4fs``) are read into memory."""
    return not re.search(r"fs(?:r|_|,|$)", factory)


def choose(count: int, total: int, dimension: int, memory: int) -> str:
    """Return the factory string of ``auto`` for ``count`` of the ``total`` vectors that are approximated.

    ``flat`` below 50,000. Otherwise about 2 sqrt(count) inverted lists, so that the length and the number of lists grow
    alike. Codes are the finest 4-bit product quantisation that fits the share of ``memory`` (2, 4 or 8 components per
    code; fast scan, which FAISS holds in memory), or 8-bit scalars, which are memory-mapped, if none fits.
    """
    if count < FEW:
        return EXACT
    lists = min(1 << round(1 + math.log2(count) / 2), _MOST_LISTS)
    centroids = 4 * dimension * lists
    for components in (2, 4, 8):
        parts = dimension // components
        if parts >= 2 and dimension % components == 0:
            resident = count * (-(-parts // 2) + _ID) + centroids
            if resident <= memory * count // total:
                return f"IVF{lists},PQ{parts}x4fs"
    return f"IVF{lists},SQ8"
