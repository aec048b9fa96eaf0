"""From the SOURCE of the command to a source of blocks, and rows of numbers in a file that another file describes."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mrag_eval.core import Passage, normalize_language
from mrag_eval.platform import ConfigError, DataError, missing_extra
from mrag_eval.retrievers.corpora._reading import Reading
from mrag_eval.retrievers.imports._blocks import BLOCK, PassageBlock, VectorSource
from mrag_eval.retrievers.imports._columns import ColumnLayout
from mrag_eval.retrievers.imports._hub_files import HubSnapshot
from mrag_eval.retrievers.imports._presets import preset_of
from mrag_eval.retrievers.imports._tables import ParquetSource, hub_tables, local_tables
from mrag_eval.retrievers.imports._texts import LINES, hundred_words, passage_lines
from mrag_eval.retrievers.index._passage_columns import PassageColumns

_BERGEN = "bergen:"
_ARRAYS = (".npy", ".f16bin")


@dataclass(frozen=True)
class ImportRequest:
    """What the user asked to import: the arguments of ``import_vectors`` that say where vectors and passages are."""

    source: str | None = None
    preset: str | None = None
    vectors: str = ""
    keys: Mapping[str, str] = field(default_factory=dict)
    texts: str | None = None
    langs: tuple[str, ...] = ()
    lang: str | None = None
    limit: int | None = None

    def __post_init__(self) -> None:
        if self.limit is not None and self.limit < 1:
            raise ConfigError(f"--limit is {self.limit}, it must be at least 1", "leave it out to take all")
        object.__setattr__(self, "langs", tuple(normalize_language(code) for code in self.langs))
        if self.lang is not None:
            object.__setattr__(self, "lang", normalize_language(self.lang))

    @property
    def place(self) -> str:
        """Return the SOURCE: the user's, else the preset's; raise ConfigError if there is none."""
        place = self.source or (preset_of(self.preset).source if self.preset else None)
        if not place:
            raise ConfigError("SOURCE is missing", "name a folder, a file, or hub:ORG/NAME")
        return place

    @property
    def layout(self) -> ColumnLayout:
        """Return the places of the fields: the user's, then the preset's."""
        if self.preset is None:
            return ColumnLayout(self.vectors, dict(self.keys), lang=self.lang)
        preset = preset_of(self.preset)
        keys = {**preset.keys, **self.keys}
        return ColumnLayout(self.vectors or preset.vectors, keys, preset.page, preset.ids_by_language, self.lang)


@dataclass(frozen=True)
class Opened:
    """A source that can be read; ``hundred_words``: its passages are cut from documents."""

    source: VectorSource
    layout: ColumnLayout
    hundred_words: bool = False


def open_source(asked: ImportRequest) -> Opened:
    """Open the source of an import; raise DataError or ConfigError if there is none of that name."""
    place, layout = asked.place, asked.layout
    if place.startswith("hub:"):
        dataset = HubSnapshot.named(place)
        tables = hub_tables(dataset, asked.langs, asked.lang)
        name = f"hub:{dataset.name}"
        revision = dataset.commit
        found = ParquetSource(tables, layout, name=name, revision=revision, langs=asked.langs, limit=asked.limit)
        return Opened(found, layout)
    path = Path(place.removeprefix(_BERGEN)).expanduser()
    if not path.exists():
        raise DataError(f"{path} does not exist", "name a folder, a file, or hub:ORG/NAME")
    if place.startswith(_BERGEN) or asked.preset == "bergen" or (path / "embedding_chunk_0.pt").exists():
        return Opened(_chunks(asked, path), layout, hundred_words=True)
    if path.suffix in _ARRAYS:
        return Opened(_beside_lines(asked, layout, path), layout)
    if path.is_file() and path.suffix != ".parquet":
        raise DataError(f"{path}: unknown kind of file", f"use Parquet or {' or '.join(_ARRAYS)}, or a folder")
    tables = local_tables(path, asked.langs, asked.lang)
    return Opened(ParquetSource(tables, layout, name=str(path), langs=asked.langs, limit=asked.limit), layout)


def _beside_lines(asked: ImportRequest, layout: ColumnLayout, path: Path) -> VectorSource:
    beside = [path.with_suffix(ending) for ending in LINES]
    texts = Path(asked.texts).expanduser() if asked.texts else next((one for one in beside if one.exists()), beside[0])
    if not texts.is_file():
        raise DataError(f"{texts} does not exist", "name the passages, one JSON object a row: --texts FILE.jsonl")

    def passages(reading: Reading) -> Iterator[Passage]:
        return passage_lines(texts, layout, reading)

    if asked.langs:
        raise ConfigError("--langs does not choose rows of an array", "import all, or write the files by language")
    return BesideSource(rows_of(path), passages, str(texts), limit=asked.limit)


def _chunks(asked: ImportRequest, path: Path) -> VectorSource:
    lang = asked.lang or (asked.langs[0] if len(asked.langs) == 1 else None)
    if asked.texts is None or lang is None:
        missing = "--texts COPY" if asked.texts is None else "--lang CODE"
        raise ConfigError(
            f"{path} holds vectors without texts: the 100-word passages of one language are cut from a copy of its "
            f"documents, and {missing} is missing",
            "e.g. --lang ko --texts COPY   (COPY/20231101.ko/*.parquet of wikimedia/wikipedia); merge the languages "
            "later: mrag-eval index merge",
        )
    texts = asked.texts
    return BesideSource(rows_of(path), lambda reading: hundred_words(texts, lang, reading), texts, limit=asked.limit)


_CHUNK = re.compile(r"embedding_chunk_(\d+)\.pt")


class Rows(ABC):
    """Rows of vectors in one or several files; ``name`` is for messages."""

    name: str

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def part(self, start: int, end: int) -> NDArray[Any]:
        """Return the rows from ``start`` to before ``end``."""


class ArrayRows(Rows):
    """One mapped array: a ``.npy`` file, or ``.f16bin`` (rows and columns as little-endian u32, then float16)."""

    def __init__(self, path: Path) -> None:
        self.name = str(path)
        self._array = _f16bin(path) if path.suffix == ".f16bin" else _npy(path)

    def __len__(self) -> int:
        return len(self._array)

    def part(self, start: int, end: int) -> NDArray[Any]:
        return np.asarray(self._array[start:end])


class TorchRows(Rows):
    """The tensors ``embedding_chunk_<i>.pt`` of a folder, in the order of their numbers; one is open at a time."""

    def __init__(self, folder: Path) -> None:
        self.name = str(folder)
        found = {int(match[1]): path for path in folder.iterdir() if (match := _CHUNK.fullmatch(path.name))}
        self._paths = [found[number] for number in sorted(found)]
        gap = next((number for number in range(len(found)) if number not in found), None)
        if not found or gap is not None:
            missing = f"embedding_chunk_{gap or 0}.pt"
            raise DataError(f"{folder}: there is no {missing}", "copy all chunks: rows are counted through them")
        self._open: tuple[int, NDArray[Any]] | None = None
        self._sizes = [len(self._chunk(number)) for number in range(len(self._paths))]
        self._starts = np.concatenate([[0], np.cumsum(self._sizes)])

    def __len__(self) -> int:
        return int(self._starts[-1])

    def part(self, start: int, end: int) -> NDArray[Any]:
        parts = []
        while start < end:
            number = int(np.searchsorted(self._starts, start, side="right")) - 1
            first = int(self._starts[number])
            last = min(end, int(self._starts[number + 1]))
            parts.append(self._chunk(number)[start - first : last - first])
            start = last
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _chunk(self, number: int) -> NDArray[Any]:
        if self._open is None or self._open[0] != number:
            self._open = None
            self._open = (number, _tensor(self._paths[number]))
        return self._open[1]


def rows_of(path: Path) -> Rows:
    """Return the rows of a file of vectors, or of a folder of torch chunks; raise DataError for anything else."""
    return TorchRows(path) if path.is_dir() else ArrayRows(path)


class BesideSource:
    """Passages of one stream, and the vector of the same row for each.

    ``limit`` rows are taken; otherwise there must be as many passages as rows.
    """

    def __init__(
        self, rows: Rows, passages: Callable[[Reading], Iterator[Passage]], texts: str, *, limit: int | None = None
    ) -> None:
        self.name = rows.name
        self.revision: str | None = None
        self._rows, self._passages, self._texts, self._limit = rows, passages, texts, limit

    def blocks(self, done: int, reading: Reading) -> Iterator[PassageBlock]:
        """Yield the blocks; see :class:`VectorSource`. Raises DataError if the numbers of passages and rows differ."""
        passages = self._passages(reading)
        end = len(self._rows) if self._limit is None else min(self._limit, len(self._rows))
        for start in range(0, end, BLOCK):
            last = min(start + BLOCK, end)
            held = list(islice(passages, last - start))
            if len(held) < last - start:
                raise self._other_count(f"{start + len(held):,}")
            vectors = None if last <= done else self._rows.part(start, last)
            yield PassageBlock(PassageColumns.of(held), vectors, self._texts, range(start + 1, last + 1))
        if self._limit is None and next(passages, None) is not None:
            raise self._other_count(f"more than {end:,}")

    def _other_count(self, passages: str) -> DataError:
        return DataError(
            f"{self.name} has {len(self._rows):,} rows, {self._texts} {passages} passages",
            "row i must be the vector of passage i: name the passages that were embedded with --texts",
        )


def _npy(path: Path) -> NDArray[Any]:
    try:
        array: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise DataError(f"{path}: no whole array of numbers ({error})", "it may be cut off: copy it again") from None
    if array.ndim != 2 or array.dtype.kind not in "fi" or not array.size:
        raise DataError(
            f"{path}: an array of shape {array.shape} and type {array.dtype}, expected rows of numbers",
            "save one row for each passage",
        )
    return array


def _f16bin(path: Path) -> NDArray[Any]:
    size = path.stat().st_size
    rows, columns = np.fromfile(path, "<u4", 2).tolist() if size >= 8 else (0, 0)
    if not rows or not columns or size != 8 + 2 * rows * columns:
        raise DataError(
            f"{path}: {size:,} bytes do not fit its header ({rows:,} rows × {columns:,} of float16)",
            "it may be cut off: copy it again",
        )
    return np.memmap(path, "<f2", mode="r", offset=8, shape=(rows, columns))


def _tensor(path: Path) -> NDArray[Any]:
    """Return a saved tensor as rows of numbers; nothing else in the file is read."""
    try:
        import torch
    except ImportError:
        raise missing_extra("hf", "torch") from None
    try:
        # only numbers: no pickled object is made, and large chunks stay on disk
        found: Any = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    except Exception as error:  # pickle's and torch's own errors
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise DataError(f"{path}: no tensor that can be read safely ({reason})", "copy the file again") from None
    if not isinstance(found, torch.Tensor) or found.ndim != 2 or not found.numel():
        raise DataError(f"{path}: no tensor of rows and columns", "name a folder of embedding_chunk_<i>.pt")
    found = found.detach()
    return np.asarray((found.float() if found.dtype == torch.bfloat16 else found).numpy())
