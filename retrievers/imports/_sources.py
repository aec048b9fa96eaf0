"""From the SOURCE of the command to a source of blocks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mrag_eval.core import Passage, normalize_language
from mrag_eval.platform import ConfigError, DataError
from mrag_eval.retrievers.corpora._reading import Reading
from mrag_eval.retrievers.imports._arrays import BesideSource, rows_of
from mrag_eval.retrievers.imports._blocks import VectorSource
from mrag_eval.retrievers.imports._columns import ColumnLayout
from mrag_eval.retrievers.imports._hub_files import HubSnapshot
from mrag_eval.retrievers.imports._presets import preset_of
from mrag_eval.retrievers.imports._tables import ParquetSource, hub_tables, local_tables
from mrag_eval.retrievers.imports._texts import LINES, hundred_words, passage_lines

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
