"""Approximate shards at build time: train, add the stored vectors, tune and measure.

The vectors are read in blocks, so memory holds the sample, one block and the index under construction.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from mrag_eval.platform import ConfigError, CorpusError, save_faiss
from mrag_eval.retrievers.build._dense_files import vectors_name
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
from mrag_eval.retrievers.shards._codes import FLOAT32, Vectors
from mrag_eval.retrievers.shards._faiss_shard import FaissShard
from mrag_eval.retrievers.shards._manifest import (
    DENSE_KINDS,
    ApproximateRecord,
    approximate_name,
    manifest_bytes,
    parse_manifest,
)
from mrag_eval.retrievers.shards._ordering import Rows
from mrag_eval.retrievers.shards._recall import K, QuerySample, likely_at_least

logger = logging.getLogger(__name__)

# stored vectors in each half of the sample, the one that tunes and the one that measures
_HALF = 256
_DEPTHS = (2, 4, 6, 8, 12, 16, 24, 32)
_BLOCK_BYTES = 64 << 20
# cost of reading a vector at random, relative to reading its bytes sequentially
_RANDOM_READ = 8
_LEAST_TRAINED = 65_536


def check_wanted(wanted: Approximation | None, kind: str, dimension: int) -> None:
    """Raise ConfigError for a factory string that FAISS refuses, or for an index without vectors."""
    if wanted is None:
        return
    if kind not in DENSE_KINDS:
        raise ConfigError(
            f"factory '{wanted.factory}' requires dense shards; an index of kind '{kind}' has none",
            "leave --factory out, or build a dense or hybrid index",
        )
    if wanted.factory != AUTO:
        new_index(wanted.factory, dimension)


def check_same_wanted(folder: Path, wanted: Approximation | None) -> None:
    """Raise CorpusError if the finished index in ``folder`` has other approximation settings."""
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
    given: Vectors | None = None,
    *,
    store: str = FLOAT32,
) -> dict[str, ApproximateRecord]:
    """Write an approximate index for every dense shard that is large enough; the others stay exact.

    Args:
        folder: an index folder with finished dense shards and passages.
        counts: vectors by language.
        dimension: of the vectors.
        wanted: the requested approximation.
        given: the vectors of ``wanted.queries``; None tunes with stored vectors.
        store: how the shards store their vectors.

    Returns the manifest record of each language that has one. A warning names the languages that stay exact, and those
    whose recall misses the target.
    """
    large = {lang: count for lang, count in counts.items() if count >= FEW}
    chosen: dict[str, str] = {}
    for lang, count in sorted(counts.items()):
        factory = wanted.factory
        if factory == AUTO:
            factory = choose(count, sum(large.values()), dimension, wanted.memory)
            if factory == EXACT:
                logger.info("%s: %s stays exact: only %d vectors", folder, lang, count)
        elif count < max(least_vectors(factory), 2 * K):
            logger.warning(
                "%s: %s stays exact, its %d vectors are fewer than the %d that training %s requires",
                folder, lang, count, max(least_vectors(factory), 2 * K), factory,
            )  # fmt: skip
            factory = EXACT
        if factory != EXACT:
            chosen[lang] = factory
    passages = PassageStore(folder, counts)
    records = {}
    for lang, factory in chosen.items():
        stored = FaissShard(folder / vectors_name(lang), counts[lang], dimension, store=store)
        shard = _Shard(stored, folder / approximate_name(lang), wanted, given)
        shard.make(factory)
        low, _ = passages.span(lang)
        records[lang] = record = shard.tune(factory, low, passages.ids)
        if record.recall < wanted.recall:
            logger.warning(
                "%s: %s finds %.1f %% of the exact %d best with %s, below the target of %.1f %%; "
                "choose a finer factory, or allow more memory for auto",
                folder, lang, 100 * record.recall, K, factory, 100 * wanted.recall,
            )  # fmt: skip
    return records


class _Shard:
    """Build the approximate index of one language."""

    def __init__(self, stored: FaissShard, file: Path, wanted: Approximation, given: Vectors | None) -> None:
        self.stored, self.codes, self.file = stored, stored.codes, file
        self.count, self.dimension, self.wanted = stored.count, stored.dimension, wanted
        self.offset = stored.path.stat().st_size - self.codes.width * self.count
        self.generator = np.random.default_rng([wanted.seed, self.count])
        if given is None:
            own = self._draw(2 * _HALF)
            self.sample = QuerySample(self._rows(own), self.count, own)
        else:
            self.sample = QuerySample(given, self.count)
        # given queries may be sorted by topic, so the halves that tune and measure are drawn at random
        self.shuffled = self.generator.permutation(len(self.sample.queries))
        self.trained = 0
        self.index: Any = None

    def _draw(self, most: int) -> Rows:
        size = min(most, self.count)
        return np.sort(self.generator.choice(self.count, size, replace=False, shuffle=False)).astype(np.int64)

    def _rows(self, rows: Rows) -> Vectors:
        """Return vectors by single reads; mapping the file would count all its pages as memory of this process."""
        width = self.codes.width
        raw = np.empty((len(rows), width), dtype=np.uint8)
        descriptor = os.open(self.stored.path, os.O_RDONLY)
        try:
            for place, row in enumerate(rows.tolist()):
                raw[place] = np.frombuffer(os.pread(descriptor, width, self.offset + row * width), dtype=np.uint8)
        finally:
            os.close(descriptor)
        return self.codes.decode(raw)

    def _blocks(self) -> Iterator[tuple[int, Vectors]]:
        step = max(1, _BLOCK_BYTES // (4 * self.dimension))
        with self.stored.path.open("rb") as file:
            file.seek(self.offset)
            for first in range(0, self.count, step):
                number = min(step, self.count - first)
                raw = np.frombuffer(file.read(self.codes.width * number), dtype=np.uint8)
                yield first, self.codes.decode(raw.reshape(number, self.codes.width))

    def make(self, factory: str) -> None:
        """Train, add every vector and write the index; the same pass finds the exact best of the sample.

        Inverted lists hold vectors minus the mean of the sample. This lowers all scores of a query by the same amount,
        so the ranking is unchanged. Embeddings share a large mean (multilingual-e5 above all); without it, the
        centroids of the lists differ more clearly.
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
        """Return the cheapest search parameters that reach the target recall, and the recall measured with them.

        One half of the sample tunes (:func:`likely_at_least`), the other measures. If the measured recall misses the
        target, the next more expensive setting is tried.
        """
        right = self.sample.right()
        half = len(self.sample.queries) // 2
        tuning, measuring = self.shuffled[:half], self.shuffled[half:]
        settings = self._by_cost(factory, tuning, right)
        self.index = None
        parameter = parameter_of(factory)
        good = [setting for setting in settings if setting[3] >= self.wanted.recall]
        # no setting reached the target: take the best one, and the cheapest among equals
        good = good or [max(settings, key=lambda setting: (setting[3], -setting[0]))]
        best: ApproximateRecord | None = None
        for _, value, depth, _ in good:
            record = ApproximateRecord(
                factory=factory, parameter=parameter, value=value, rescore=depth, mapped=is_mapped(factory),
                trained_on=self.trained, recall=0.0, k=K, aimed_at=self.wanted.recall, queries=len(measuring),
                queries_from="stored vectors" if self.sample.own is not None else "given", seed=self.wanted.seed,
            )  # fmt: skip
            shard = ApproximateShard(
                self.stored.path, self.file, record, self.count, self.dimension,
                first_row=first_row, store=self.stored.store,
            )  # fmt: skip
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
        """Return (cost, parameter, rescoring depth, recall of the tuning half), cheapest first.

        The cost is a number of bytes, not a time, so that the same vectors always give the same parameters: codes
        scanned, plus vectors read at random to score candidates exactly. Re-scoring ranks the exact best first, so
        recall is their share among the candidates.
        """
        import faiss

        parameter, lists = parameter_of(factory), lists_of(factory)
        code = _code_size(self.index)
        vector = self.codes.width
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
            # try a few more settings: less re-scoring may pay, or the other half may need more
            if reached >= 5:
                break
        return sorted(out, key=lambda setting: (setting[0], setting[1] or 0, setting[2]))


def _steps(first: int, most: int) -> list[int]:
    """Return doubling values and three steps in between: 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, …, up to ``most``."""
    steps, value = [], first
    while value < most:
        steps += [value + value * quarter // 4 for quarter in range(4)]
        value *= 2
    return sorted({step for step in steps if step < most} | {most})


def _code_size(index: Any) -> int:
    """Return the bytes of one vector's code in the innermost index."""
    import faiss

    inner = faiss.downcast_index(index)
    while hasattr(inner, "index") and not hasattr(inner, "code_size"):
        inner = faiss.downcast_index(inner.index)
    return int(getattr(inner, "code_size", 0)) or 4 * int(index.d)
