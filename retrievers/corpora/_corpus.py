"""Readers of corpora as streams of documents: JSONL, Parquet, SQuAD's JSON, folders of BEIR and of text, hub datasets.

Every reader is a generator that holds one record at a time, and 8 bytes per document id to detect repeated ids.
A file that cannot be read raises DataError naming file and line (or row). Text is passed on
unchanged and never treated as a template.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mrag_eval.core import check_id, is_language, normalize_language, same_language
from mrag_eval.platform import (
    ConfigError,
    DataError,
    check_keys,
    decode,
    did_you_mean,
    json_from,
    json_line,
    part_files,
    whole,
)
from mrag_eval.retrievers.corpora._hub_stream import stream_rows
from mrag_eval.retrievers.corpora._reading import Reading, Stream, table_rows
from mrag_eval.retrievers.index._hashing import SeenIds


@dataclass(frozen=True, slots=True)
class Document:
    """A document before chunking; ``id`` is unique within its language (translations may share one)."""

    id: str
    lang: str
    text: str
    title: str = ""


# Keys of each field, tried in this order unless `keys` names another.
DEFAULT_KEYS: dict[str, tuple[str, ...]] = {
    "id": ("id", "doc_id", "_id", "docid"),
    "text": ("text", "content", "contents"),
    "title": ("title",),
    "lang": ("lang", "language"),
}

_RECORD_SUFFIXES = (".jsonl", ".jsonl.gz", ".ndjson", ".parquet")
_TEXT_SUFFIXES = (".txt", ".md")
_SQUAD_SUFFIXES = (".json", ".json.gz")


def squad_paragraphs(value: Any, where: str) -> Iterator[tuple[str, dict[str, Any], Any]]:
    """Yield the place, the record and the questions of each paragraph of JSON in the shape of SQuAD.

    A paragraph's id is its number: editions in several languages share it. Raises DataError for another shape.
    """
    number = 0
    try:
        for article in value["data"]:
            for paragraph in article["paragraphs"]:
                number += 1
                record = {"id": f"p{number}", "title": article.get("title", ""), "text": paragraph["context"]}
                asked = paragraph["qas"]
                if not isinstance(asked, list) or not all(isinstance(one, Mapping) for one in asked):
                    raise DataError(f"{where}, paragraph {number}: 'qas' is no list of questions", _SQUAD)
                yield f"{where}, paragraph {number}", record, asked
    except (KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{where}: not SQuAD v1.1 JSON (missing {error})", _SQUAD) from None


_SQUAD = "JSON has data, a list of articles with paragraphs, each with context and qas; or give one document a line"


_KEY = "rename a key to '{0}', or say which it is: mrag-eval index build FILE --key {0}=NAME"


class _Records:
    """Turn records into documents; detect repeated ids, also across files."""

    def __init__(
        self,
        keys: Mapping[str, str] | None,
        lang: str | None,
        reading: Reading,
        tell: Callable[[str, str], str] | None = None,
    ) -> None:
        for field in keys or ():
            if field not in DEFAULT_KEYS:
                raise ConfigError(f"keys: unknown field '{field}'{did_you_mean(field, DEFAULT_KEYS)}")
        self.keys = {**DEFAULT_KEYS, **{field: (key,) for field, key in (keys or {}).items()}}
        self.lang = None if lang is None else normalize_language(lang)
        self.seen = SeenIds()
        self.count = 0
        self.reading = reading
        self.tell = tell

    def document(self, record: Mapping[str, Any], where: str) -> Document:
        identifier = self._field(record, "id", where)
        text = self._field(record, "text", where)
        title = self._field(record, "title", where, required=False)
        named = self.lang or self._field(record, "lang", where, required=self.tell is None)
        return self.from_text(identifier, named, text, title, where)

    def from_text(self, identifier: str, named: str, text: str, title: str, where: str) -> Document:
        lang = self.lang or self._language(named or (self.tell(text, where) if self.tell is not None else ""), where)
        self._remember(identifier, lang, where)
        return Document(id=identifier, lang=lang, text=text, title=title)

    def _remember(self, identifier: str, lang: str, where: str) -> None:
        if not self.seen.add(f"{lang}\0{identifier}"):
            raise DataError(
                f"{where}: document id '{identifier}' ({lang}) appears a second time",
                f"ids must be unique within a language: {_KEY.format('id')}",
            )
        self.count += 1

    def _field(self, record: Mapping[str, Any], field: str, where: str, *, required: bool = True) -> str:
        key = next((key for key in self.keys[field] if record.get(key) is not None), "")
        check_keys(record, (key,), where)
        value = record.get(key)
        if value is None:
            if not required:
                return ""
            looked_for = " or ".join(f"'{key}'" for key in self.keys[field])
            present = ", ".join(sorted(map(str, record))[:12]) or "none"
            raise DataError(f"{where}: no {looked_for} (keys present: {present})", _KEY.format(field))
        if field == "id" and isinstance(value, int) and not isinstance(value, bool):
            value = str(value)
        if not isinstance(value, str):
            raise DataError(
                f"{where}: '{field}' is {type(value).__name__}, expected text", "correct that line, or leave it out"
            )
        if field == "id" and not value:
            raise DataError(f"{where}: the document id is empty", "correct that line, or leave it out")
        if field == "id":
            check_id(value, where)
        try:
            value.encode("utf-8")
        except UnicodeEncodeError as error:
            raise DataError(
                f"{where}: '{field}' holds half a surrogate pair, which is not text",
                "correct the text: it was cut inside a character",
            ) from error
        return value

    @staticmethod
    def _language(code: str, where: str) -> str:
        try:
            return normalize_language(code)
        except ConfigError as error:
            raise DataError(f"{where}: unknown language '{code:.40}'", error.next_step) from error

    def check_not_empty(self, source: object) -> None:
        if not self.count:
            raise DataError(
                f"{source} holds no documents",
                "one JSON object a line with id, lang and text; --key FIELD=NAME names other keys",
            )


def _files(root: Path, suffixes: Sequence[str]) -> list[Path]:
    return sorted(path for path in root.rglob("*") if path.is_file() and path.name.lower().endswith(tuple(suffixes)))


def _folder(root: Path, paths: Iterable[Path], records: _Records) -> Iterator[Document]:
    for path in paths:
        with records.reading.part(path.stat().st_size, lambda: 0.0):
            raw = path.read_bytes()
        inside = path.relative_to(root)
        text = decode(raw, str(path))
        name, code = (path.stem, "") if records.lang else _named(inside, text, str(path), records.tell)
        if not (code or records.lang or records.tell):
            raise DataError(
                f"{path}: its language is unknown", "give lang=..., folders named by language code, or names: x.ko.txt"
            )
        yield records.from_text(inside.as_posix(), code, text, name, str(path))


def _named(inside: Path, text: str, where: str, tell: Callable[[str, str], str] | None) -> tuple[str, str]:
    """Return the name of a text file and the code of its language, "" without one, by its folders, else by its name.

    Codes of two letters count before those of three, which words are as often (``new/a.txt``, ``report.bak.txt``). If
    only such are there, or several of two letters, the text decides if it can be told.
    """
    name, _, end = inside.stem.rpartition(".")
    folders = [folder for folder in inside.parts[:-1] if is_language(folder)]
    codes = folders or ([end] if name and is_language(end) else [])
    short = [code for code in codes if len(code.replace("_", "-").partition("-")[0]) == 2]
    code = next(iter(short or codes), inside.parts[0] if len(inside.parts) > 1 else "")
    if tell is not None and codes and len({*short}) != 1:
        try:
            told = tell(text, where)
        except DataError:
            told = ""
        meant = next((each for each in codes if told and same_language(each, told)), None)
        code = meant or code if short or not told else meant or told
    return (name if code == end and not folders else inside.stem), code


def _hub(dataset: str, config: str | None, split: str, revision: str | None, records: _Records) -> Iterator[Document]:
    rows = stream_rows(dataset, config, split=split, revision=revision, reading=records.reading)
    for row, record in enumerate(rows, start=1):
        yield records.document(record, f"dataset {dataset}, row {row}")
    records.check_not_empty(f"dataset {dataset} (split {split})")


def read_corpus(
    source: str | Path,
    *,
    keys: Mapping[str, str] | None = None,
    lang: str | None = None,
    split: str = "train",
    tell: Callable[[str, str], str] | None = None,
) -> Stream[Document]:
    """Return a stream of the documents of ``source``; it knows the share of its source that it has read.

    Args:
        source: a ``.jsonl``, ``.jsonl.gz`` or ``.ndjson`` file (one object per line, blank lines skipped), a
            ``.parquet`` file, or ``.json`` in the shape of SQuAD, whose paragraphs are read; a folder as BEIR and MTEB
            have it, of which the corpus is read; a folder of such files, or else of ``.txt`` and ``.md`` files; or
            ``hub:<dataset>``, ``hub:<dataset>:<config>``, either with ``@<revision>``, of which only the rows read are
            downloaded.
        keys: other names of fields, e.g. ``{"text": "body"}``; the fields are those of :data:`DEFAULT_KEYS`.
        lang: the language of all documents; their own is then ignored. Without it a folder in the path of a text
            file must be a language code (``ko/seoul.txt``), or its name must end in one (``seoul.ko.txt``).
        split: that of a dataset on the hub.
        tell: returns the language of a document that names none, from its text and its place.

    A text file's id is its path within the folder, its title the file name without suffix. Raises DataError for a
    missing key, invalid UTF-8 or JSON, an unknown language or a repeated id, naming file and line or row, and for a
    corpus without documents.
    """
    return Stream(lambda reading: _any(source, split, _Records(keys, lang, reading, tell)))


def _any(source: str | Path, split: str, records: _Records) -> Iterator[Document]:
    if isinstance(source, str) and source.startswith("hub:"):
        name, _, revision = source.removeprefix("hub:").partition("@")
        dataset, _, config = name.partition(":")
        if not dataset:
            raise DataError(f"{source}: the name of a dataset is missing", "write it as hub:ORG/NAME")
        yield from _hub(dataset, config or None, split, revision or None, records)
        return
    root = Path(source)
    if not root.exists():
        raise DataError(f"corpus {root} does not exist", "name a JSON Lines, Parquet or text file, or a folder")
    paths = part_files(root, "corpus") or _files(root, _RECORD_SUFFIXES) if root.is_dir() else [root]
    texts = _files(root, _TEXT_SUFFIXES) if root.is_dir() and not paths else []
    records.reading.expect(paths or texts)
    for path in paths:
        name = path.name.lower()
        if name.endswith(".parquet"):
            keys = [key for names in records.keys.values() for key in names]
            for where, row in table_rows(path, records.reading, [*dict.fromkeys(keys)]):
                yield records.document(row, where)
        elif name.endswith(_RECORD_SUFFIXES):
            for number, raw in records.reading.lines(path):
                where = f"{path}, line {number}"
                yield records.document(json_line(raw, where, read=()), where)
        elif name.endswith(_SQUAD_SUFFIXES):
            with records.reading.binary(path) as file:
                value = json_from(decode(whole(file, path), str(path)), str(path))
            for where, record, _ in squad_paragraphs(value, str(path)):
                yield records.document(record, where)
        else:
            known = ", ".join((*_RECORD_SUFFIXES, ".json"))
            raise DataError(f"corpus {path}: unknown kind of file", f"use {known}, or a folder of text files")
    yield from _folder(root, texts, records)
    records.check_not_empty(root)
