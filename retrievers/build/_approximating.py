"""Approximate shards at build time: trained on a sample, filled from the stored vectors, tuned, and measured.

All reading is by blocks of the flat file, so that memory holds the sample, one block and the index being made.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from mrag_eval.core import ConfigError, CorpusError, save_faiss
from mrag_eval.retrievers.build._factory import (
    AUTO,
    EXACT,
    FEW,
    PER_CENTROID,
    Approximation,
    choose,
    is_mapped,
    least_vectors,
    lists_of,
    new_index,
    parameter_of,
)
from mrag_eval.retrievers.index._passages import PassageStore
from mrag_eval.retrievers.shards._approximate_shard import ApproximateShard
from mrag_eval.retrievers.shards._faiss_shard import Vectors
from mrag_eval.retrievers.shards._manifest import ApproximateRecord, approximate_name, manifest_bytes, parse_manifest
from mrag_eval.retrievers.shards._ordering import Rows
from mrag_eval.retrievers.shards._recall import K, Sample, likely_at_least

logger = logging.getLogger(__name__)

# stored vectors in each half of the sample, the one that tunes and the one that measures
_HALF = 256
_DEPTHS = (2, 4, 6, 8, 12, 16, 24, 32)
_BLOCK_BYTES = 64 << 20
# a vector read at random costs about this many times its bytes read in a row
_RANDOM_READ = 8
_LEAST_TRAINED = 65_536


def check_wanted(wanted: Approximation | None, kind: str, dimension: int) -> None:
    """Before anything is embedded: ConfigError for a factory string FAISS refuses, or an index without vectors."""
    if wanted is None:
        return
    if kind not in ("dense", "hybrid"):
        raise ConfigError(
            f"factory '{wanted.factory}' makes approximate dense shards, an index of kind '{kind}' has none",
            "leave --factory out, or build a dense or hybrid index",
        )
    if wanted.factory != AUTO:
        new_index(wanted.factory, dimension)


def check_same_wanted(folder: Path, wanted: Approximation | None) -> None:
    """Raise CorpusError where the finished index in ``folder`` was approximated otherwise."""
    held, asked = parse_manifest(folder, manifest_bytes(folder)).approximation, wanted.asked() if wanted else None
    if held != asked:
        raise CorpusError(
            f"the interrupted build in {folder} has factory = {held!r}, this one {asked!r}",
            "give the same settings, or build again without --resume",
        )


def approximate_shards(
    folder: Path,
    counts: dict[str, int],
    dimension: int,
    wanted: Approximation,
    embed: Callable[[tuple[str, ...]], Vectors] | None = None,
) -> dict[str, ApproximateRecord]:
    """Write an approximate index beside every flat shard that is large enough; the rest is left exact.

    Args:
        folder: an index folder with finished flat shards and passages.
        counts: vectors by language.
        dimension: of the vectors.
        wanted: what was asked for.
        embed: makes vectors of ``wanted.queries``.

    Returns what the manifest says of each language that has one. Languages that stay exact, and those whose recall
    misses its aim, are named in a warning.
    """
    given = embed(wanted.queries) if wanted.queries and embed is not None else None
    large = {lang: count for lang, count in counts.items() if count >= FEW}
    chosen: dict[str, str] = {}
    for lang, count in sorted(counts.items()):
        factory = wanted.factory
        if factory == AUTO:
            factory = choose(count, sum(large.values()), dimension, wanted.memory)
            if factory == EXACT:
                logger.info("%s: %s stays exact, %d vectors are few", folder, lang, count)
        elif count < max(least_vectors(factory), 2 * K):
            logger.warning(
                "%s: %s stays exact, its %d vectors are fewer than the %d that training %s takes",
                folder, lang, count, max(least_vectors(factory), 2 * K), factory,
            )  # fmt: skip
            factory = EXACT
        if factory != EXACT:
            chosen[lang] = factory
    store = PassageStore(folder, counts)
    records = {}
    for lang, factory in chosen.items():
        flat, file = folder / "dense" / f"{lang}.faiss", folder / approximate_name(lang)
        shard = _Shard(flat, file, counts[lang], dimension, wanted, given)
        shard.make(factory)
        low, _ = store.span(lang)
        records[lang] = record = shard.tune(factory, low, store.ids)
        if record.recall < wanted.recall:
            logger.warning(
                "%s: %s finds %.1f %% of the exact %d best with %s, below the %.1f %% aimed at; "
                "choose a finer factory, or more memory for auto",
                folder, lang, 100 * record.recall, K, factory, 100 * wanted.recall,
            )  # fmt: skip
    return records


class _Shard:
    """One language while its approximate index is made."""

    def __init__(
        self, flat: Path, file: Path, count: int, dimension: int, wanted: Approximation, given: Vectors | None
    ) -> None:
        self.flat, self.file = flat, file
        self.count, self.dimension, self.wanted = count, dimension, wanted
        self.offset = flat.stat().st_size - 4 * count * dimension
        self.generator = np.random.default_rng([wanted.seed, count])
        if given is None:
            own = self._draw(2 * _HALF)
            self.sample = Sample(self._rows(own), count, own)
        else:
            self.sample = Sample(given, count)
        # which queries tune and which measure must not go by their order: given ones may be sorted by topic
        self.shuffled = self.generator.permutation(len(self.sample.queries))
        self.trained = 0
        self.index: Any = None

    def _draw(self, most: int) -> Rows:
        size = min(most, self.count)
        return np.sort(self.generator.choice(self.count, size, replace=False, shuffle=False)).astype(np.int64)

    def _rows(self, rows: Rows) -> Vectors:
        """Vectors by single reads: mapping the file would count all its pages as memory of this process."""
        width = 4 * self.dimension
        out = np.empty((len(rows), self.dimension), dtype=np.float32)
        descriptor = os.open(self.flat, os.O_RDONLY)
        try:
            for place, row in enumerate(rows.tolist()):
                out[place] = np.frombuffer(os.pread(descriptor, width, self.offset + row * width), dtype="<f4")
        finally:
            os.close(descriptor)
        return out

    def _blocks(self) -> Iterator[tuple[int, Vectors]]:
        step = max(1, _BLOCK_BYTES // (4 * self.dimension))
        with self.flat.open("rb") as file:
            file.seek(self.offset)
            for first in range(0, self.count, step):
                number = min(step, self.count - first)
                raw = file.read(4 * self.dimension * number)
                yield first, np.frombuffer(raw, dtype="<f4").reshape(number, self.dimension)

    def make(self, factory: str) -> None:
        """Train, add every vector, write; the exact best of the sample are found in the same pass.

        Inverted lists hold vectors less the mean of the sample. That takes the same amount from every score of a query,
        so the order stays, and lists are then told apart by what tells vectors apart: embeddings share a large mean
        (multilingual-e5 above all), and beside it the directions of centroids hardly differ.
        """
        self.index = new_index(factory, self.dimension)
        mean = np.float32(0.0)
        if not self.index.is_trained:
            rows = self._draw(max(PER_CENTROID * (lists_of(factory) or 0), least_vectors(factory), _LEAST_TRAINED))
            self.trained = len(rows)
            sample = self._rows(rows)
            if lists_of(factory) is not None:
                mean = sample.mean(axis=0, dtype=np.float64).astype(np.float32)
                sample -= mean
            self.index.train(sample)
        for first, vectors in self._blocks():
            self.index.add(vectors - mean)
            self.sample.show(first, vectors)
        save_faiss(self.file, self.index)

    def tune(self, factory: str, first_row: int, ids_of: Callable[[Rows], list[str]]) -> ApproximateRecord:
        """Search parameters that reach the recall aimed at for the least cost, and the recall that is then measured.

        One half of the sample tunes (:func:`likely_at_least`), the other measures; where the measured half misses the
        aim, the next dearer setting is taken, up to the last.
        """
        right = self.sample.right()
        half = len(self.sample.queries) // 2
        tuning, measuring = self.shuffled[:half], self.shuffled[half:]
        settings = self._by_cost(factory, tuning, right)
        self.index = None
        parameter = parameter_of(factory)
        good = [setting for setting in settings if setting[3] >= self.wanted.recall]
        # nothing reached it: the best there is, and of equals the cheapest
        good = good or [max(settings, key=lambda setting: (setting[3], -setting[0]))]
        best: ApproximateRecord | None = None
        for _, value, depth, _ in good:
            record = ApproximateRecord(
                factory=factory, parameter=parameter, value=value, rescore=depth, mapped=is_mapped(factory),
                trained_on=self.trained, recall=0.0, k=K, aimed_at=self.wanted.recall, queries=len(measuring),
                queries_from="stored vectors" if self.sample.own is not None else "given", seed=self.wanted.seed,
            )  # fmt: skip
            shard = ApproximateShard(self.flat, self.file, record, self.count, self.dimension, first_row=first_row)
            _, rows = shard.search(self.sample.queries[measuring], K + (self.sample.own is not None), ids_of)
            recall = float(self.sample.recalls(rows - first_row, measuring, right).mean())
            record = record.model_copy(update={"recall": round(recall, 4)})
            if best is None or record.recall > best.recall:
                best = record
            if best.recall >= self.wanted.recall:
                break
        assert best is not None
        return best

    def _by_cost(self, factory: str, tuning: Rows, right: list[set[int]]) -> list[tuple[float, int | None, int, float]]:
        """(cost, parameter, rescoring depth, recall by the tuning half), cheapest first.

        The cost is a count of bytes, not a time, so that the same vectors always give the same parameters: codes
        scanned, and vectors read at random to score candidates exactly. The exact best are the best of the candidates
        too, so recall after re-scoring is the share of them among the candidates.
        """
        import faiss

        parameter, lists = parameter_of(factory), lists_of(factory)
        code = _code_size(self.index)
        vector = 4 * self.dimension
        deepest = min(_DEPTHS[-1] * K + 1, self.count)
        most = {"nprobe": lists or 1, "efSearch": 4096}.get(parameter or "", 1)
        values: list[int | None] = [None]
        if parameter is not None:
            first = 1 if parameter == "nprobe" else 16
            values = [v for v in _steps(first, most) if v <= max(first, self.count)]
        space = faiss.ParameterSpace()
        out = []
        reached = 0
        for value in values:
            if parameter is not None and value is not None:
                space.set_index_parameter(self.index, parameter, value)
            _, found = self.index.search(self.sample.queries[tuning], deepest)
            scanned = self.count * code if value is None else value * (
                self.count / lists * code if lists else vector * 32
            )  # fmt: skip
            recalls = []
            for depth in _DEPTHS:
                recalls.append(likely_at_least(self.sample.recalls(found[:, : depth * K + 1], tuning, right)))
                out.append((scanned + _RANDOM_READ * depth * K * vector, value, depth, recalls[-1]))
            reached += recalls[-1] >= self.wanted.recall
            # some settings beyond the first that suffices: a shorter re-scoring may pay, or the other half need more
            if reached >= 5:
                break
        return sorted(out, key=lambda setting: (setting[0], setting[1] or 0, setting[2]))


def _steps(first: int, most: int) -> list[int]:
    """Doubling, with three steps between where there is room: 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, …, up to ``most``."""
    steps, value = [], first
    while value < most:
        steps += [value + value * quarter // 4 for quarter in range(4)]
        value *= 2
    return sorted({step for step in steps if step < most} | {most})


def _code_size(index: Any) -> int:
    """Bytes of one vector's code, of the innermost index."""
    import faiss

    inner = faiss.downcast_index(index)
    while hasattr(inner, "index") and not hasattr(inner, "code_size"):
        inner = faiss.downcast_index(inner.index)
    return int(getattr(inner, "code_size", 0)) or 4 * int(index.d)
