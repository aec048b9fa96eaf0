"""What kind of FAISS index a dense shard gets: a factory string checked, or one chosen by count and memory."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

from mrag_eval.core import ConfigError

EXACT = "flat"
AUTO = "auto"
# Below this an exact search of 384 dimensions costs less than a millisecond a query and training is not worth it
FEW = 50_000
DEFAULT_MEMORY = 4 << 30
DEFAULT_RECALL = 0.95
SEED = 0
# Vectors a centroid is trained on: FAISS warns below 39
PER_CENTROID = 50
_LEAST_PER_CENTROID = 39
_MOST_LISTS = 65_536
# bytes of an id in an inverted list
_ID = 8
_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}


@dataclass(frozen=True)
class Approximation:
    """How the dense shards of an index are to be approximated.

    Args:
        factory: ``auto`` or a string of FAISS's ``index_factory``.
        memory: for ``auto``, the bytes that structures which cannot be mapped may take, all languages together.
        recall: recall@20 that search parameters are tuned to.
        seed: of the sample trained on and of the sample recall is measured on.
        queries: texts recall is measured with; none: stored vectors.
    """

    factory: str
    memory: int = DEFAULT_MEMORY
    recall: float = DEFAULT_RECALL
    seed: int = SEED
    queries: tuple[str, ...] = ()

    def asked(self) -> dict[str, Any]:
        """What the manifest says was asked for."""
        memory = {"memory": self.memory} if self.factory == AUTO else {}
        return {"factory": self.factory, **memory, "recall": self.recall, "seed": self.seed}


def approximation(
    factory: str,
    *,
    memory_budget: int | str | None = None,
    recall: float = DEFAULT_RECALL,
    queries: tuple[str, ...] = (),
    seed: int = SEED,
) -> Approximation | None:
    """The settings, checked as far as that can be done without knowing the vectors; None for an exact index."""
    wanted = factory.strip()
    if memory_budget is not None and wanted.lower() != AUTO:
        raise ConfigError(f"a memory budget chooses among indexes, and '{wanted}' is one", "use --factory auto")
    if not 0.0 < recall <= 1.0:
        raise ConfigError(f"the recall aimed at is {recall}, it must lie above 0 and not above 1", "e.g. 0.95")
    if queries and len(queries) < 20:
        raise ConfigError(
            f"recall is measured on {len(queries)} queries, that takes at least 20", "give 20 queries or more"
        )
    if wanted.lower() == EXACT:
        if queries:
            raise ConfigError("an exact index has no recall to measure", "use --factory auto")
        return None
    memory = DEFAULT_MEMORY if memory_budget is None else parse_bytes(memory_budget)
    return Approximation(AUTO if wanted.lower() == AUTO else wanted, memory, recall, seed, queries)


def parse_bytes(size: int | str) -> int:
    """``2GB``, ``500 MB`` or a number of bytes; units are powers of ten."""
    found = re.fullmatch(r"\s*([0-9]*\.?[0-9]+)\s*([kmgt]?b?)\s*", str(size), re.IGNORECASE)
    unit = found[2].upper() if found else ""
    unit = unit if unit in _UNITS else f"{unit}B"
    if found is None or not float(found[1]):
        raise ConfigError(f"'{size}' is no amount of memory", "write it as 2GB or 500MB")
    return int(float(found[1]) * _UNITS[unit])


def new_index(factory: str, dimension: int) -> Any:
    """An empty FAISS index of inner products; ConfigError for a string that FAISS does not take or that makes none."""
    import faiss

    if re.search(r"(?:^|,)\s*(?:R(?:Flat|efine)|IDMap)", factory):
        raise ConfigError(
            f"factory '{factory}': the stored vectors score the best candidates anyway",
            "leave out RFlat, Refine and IDMap",
        )
    try:
        index = faiss.index_factory(dimension, factory, faiss.METRIC_INNER_PRODUCT)
    except RuntimeError as error:
        reason = str(error).rpartition("failed: ")[2].strip() or str(error)
        raise ConfigError(
            f"FAISS makes no index of {dimension} dimensions from the factory string '{factory}' ({reason})",
            "write e.g. IVF1024,SQ8, IVF4096,PQ96x4fs, HNSW32,Flat, auto or flat",
        ) from None
    if index.metric_type != faiss.METRIC_INNER_PRODUCT:
        raise ConfigError(
            f"FAISS makes no index of inner products from the factory string '{factory}'",
            "e.g. IVF4096,SQ8 or HNSW32   (docs/retrieval.md)",
        )
    return index


def parameter_of(factory: str) -> str | None:
    """What is tuned: ``nprobe``, ``efSearch``, or nothing where all codes are compared anyway."""
    if re.search(r"(?:^|,)IVF", factory):
        return "nprobe"
    return "efSearch" if re.search(r"(?:^|,)HNSW", factory) else None


def lists_of(factory: str) -> int | None:
    """The inverted lists of an IVF factory string (``IVF4096`` or ``IVF65k``)."""
    found = re.search(r"(?:^|,)IVF(\d+)([kM]?)", factory)
    return int(found[1]) * {"": 1, "k": 1 << 10, "M": 1 << 20}[found[2]] if found else None


def least_vectors(factory: str) -> int:
    """The vectors that training takes at least, by FAISS's own rule of 39 a centroid."""
    bits = [int(bits or 8) for bits in re.findall(r"PQ\d+(?:x(\d+))?", factory)]
    centroids = max([lists_of(factory) or 1, *(1 << b for b in bits)])
    return _LEAST_PER_CENTROID * centroids


def is_mapped(factory: str) -> bool:
    """Whether FAISS can map an index's codes; those of fast scan (``x4fs``) are copied into memory when it is read."""
    return not re.search(r"fs(?:r|_|,|$)", factory)


def choose(count: int, total: int, dimension: int, memory: int) -> str:
    """The factory string of ``auto`` for ``count`` vectors in an index of ``total`` that are approximated.

    ``flat`` below 50,000. Else about 2 sqrt(count) inverted lists, so that a list and the lists to choose among grow
    alike; of codes, the finest of 4-bit product quantisation that the share of ``memory`` suffices for (2, 4 or 8
    components to a code; fast scan, which FAISS holds in memory), and where none does, 8-bit scalars, which are mapped.
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
