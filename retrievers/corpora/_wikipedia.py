"""Wikipedia as a stream of documents: the hub's plain texts, a local copy of them, or Wikimedia's XML dumps.

A document's id is its page number, prefixed with the language outside the English edition (``ko:1234``), since every
edition numbers its pages from one. The English pages in KILT are thus found by their ids, and pages of other editions
are never confused with them.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Container, Iterator
from pathlib import Path
from typing import Any

from mrag_eval.core import language_name, normalize_language
from mrag_eval.platform import ConfigError, DataError, did_you_mean
from mrag_eval.retrievers.corpora._corpus import Document
from mrag_eval.retrievers.corpora._editions import Edition, Pages
from mrag_eval.retrievers.corpora._hub_stream import said, stream_rows
from mrag_eval.retrievers.corpora._outlines import Outline, outline_of_markup, outline_of_text
from mrag_eval.retrievers.corpora._reading import Reading, Stream, table_rows
from mrag_eval.retrievers.corpora._wiki_pages import MarkupError, WikiPage, plain_text, read_pages

log = logging.getLogger(__name__)

HUB_ID = "wikimedia/wikipedia"
# The newest known dump in the hub's dataset.
HUB_DUMP = "20231101"
# Editions whose code differs from their language's.
EDITION_CODES = {
    "nb": "no", "fil": "tl", "yue": "zh-yue", "nan": "zh-min-nan", "lzh": "zh-classical", "gsw": "als", "bho": "bh",
    "cbk": "cbk-zam", "nrf": "nrm", "rup": "roa-rup", "sgs": "bat-smg", "vro": "fiu-vro",
}  # fmt: skip
_COLUMNS = ("id", "title", "text")
# Rows of the dataset, each with its place for messages.
_Rows = Callable[[Reading], Iterator[tuple[str, dict[str, Any]]]]


class NoDumpError(DataError):
    """A folder holds no dump of a language."""


def page_document_id(lang: str, page: str) -> str:
    """Return the document id of a page."""
    return page if lang == "en" else f"{lang}:{page}"


def edition_code(lang: str) -> str:
    """Return the code of a language's edition (``no`` for ``nb``); raise ConfigError if there is none."""
    code = normalize_language(lang)
    if "-" in code:
        whole = code.partition("-")[0]
        raise ConfigError(
            f"Wikipedia has one edition for all scripts of {language_name(whole)}, none for '{lang}'",
            f"--langs {whole}",
        )
    return EDITION_CODES.get(code, code)


def wikipedia_edition(lang: str, *, dump: str | None = None, source: Path | None = None) -> Edition:
    """Return the Wikipedia edition of a language.

    Args:
        lang: its code, in any spelling.
        dump: the date of the dump, ``yyyymmdd``; by default :data:`HUB_DUMP`, or that of the XML file.
        source: None for the hub (``wikimedia/wikipedia``, streamed); else a folder that holds a copy of that dataset
            (``<dump>.<lang>/*.parquet``) or XML dumps (``<lang>wiki-<dump>-pages-articles*.xml.bz2``), or such a file.

    Raises ConfigError for an unknown language, DataError if there is no such dump (in a folder: NoDumpError) or the hub
    cannot be reached.
    """
    if dump is not None and not (dump.isdecimal() and len(dump) == 8):
        raise ConfigError(f"--dump {dump}: not the date of a dump", "write it as YYYYMMDD, such as 20231101")
    code, edition = normalize_language(lang), edition_code(lang)
    if source is None:
        return _from_hub(code, f"{dump or HUB_DUMP}.{edition}")
    if not source.exists():
        raise DataError(f"{source} does not exist", "name a folder of dumps, or an XML dump, with --from")
    if source.is_file():
        return _from_xml(code, [source])
    folder = source / f"{dump or HUB_DUMP}.{edition}"
    tables = sorted(folder.glob("*.parquet"))
    if tables:
        return _of_rows(code, f"{HUB_ID}, {folder.name} (local copy)", lambda reading: _rows(tables, reading))
    prefix = f"{edition.replace('-', '_')}wiki-"
    files = source.glob(f"{prefix}{dump or '*'}-pages-articles*.xml*")
    dumps = sorted(file for file in files if file.suffix in (".xml", ".bz2", ".gz"))
    if not dumps:
        raise NoDumpError(
            f"{source}: neither {folder.name}/*.parquet nor {prefix}{dump or 'DATE'}-pages-articles*.xml.bz2",
            _what_is_there(source),
        )
    dates = sorted({file.name.split("-")[1] for file in dumps})
    if len(dates) > 1:
        raise DataError(f"{source} holds dumps of '{edition}' of {', '.join(dates)}", f"choose one: --dump {dates[-1]}")
    return _from_xml(code, _one_copy(dumps))


def _one_copy(dumps: list[Path]) -> list[Path]:
    """Choose one form of a dump: whole before split into files, plain before multistream."""
    for multistream in (False, True):
        form = [file for file in dumps if ("-multistream" in file.name) is multistream]
        whole = [file for file in form if ".xml-p" not in file.name]
        if form:
            return whole[:1] or form
    return dumps


def _what_is_there(folder: Path) -> str:
    names = sorted({entry.name.split("-pages")[0] for entry in folder.iterdir()})
    return (
        f"there: {', '.join(names[:8])}{', ...' if len(names) > 8 else ''}"
        if names
        else "copy the files there, the folder is empty"
    )


# ---------------------------------------------------------------- the hub


def _from_hub(lang: str, config: str) -> Edition:
    revision = _hub_revision(config)
    source = f"{HUB_ID}, {config}, revision {revision}"
    return _of_rows(lang, source, lambda reading: _streamed(config, revision, reading))


def _streamed(config: str, revision: str, reading: Reading) -> Iterator[tuple[str, dict[str, Any]]]:
    for row, record in enumerate(stream_rows(HUB_ID, config, revision=revision, reading=reading), start=1):
        yield f"{HUB_ID}, {config}, row {row}", record


def _hub_revision(config: str) -> str:
    """Return the dataset's commit; raise DataError if the hub cannot be reached or has no such dump."""
    from huggingface_hub import HfApi

    try:
        info = HfApi().dataset_info(HUB_ID)
    except Exception as error:  # network errors depend on the client that the libraries use
        offline = os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "TRUE", "YES", "ON")
        reason = "HF_HUB_OFFLINE is set" if offline else said(error)
        raise DataError(
            f"the hub's {HUB_ID} cannot be reached: {reason}",
            ("unset HF_HUB_OFFLINE, " if offline else "check the network, ")
            + "or read a copy:  --from FOLDER   (see docs/corpora.md)",
        ) from None
    held = sorted({file.rfilename.partition("/")[0] for file in info.siblings or () if "/" in file.rfilename})
    if config not in held:
        dump, _, edition = config.partition(".")
        dates = sorted({entry.partition(".")[0] for entry in held if entry.endswith(f".{edition}")})
        if dates:
            raise DataError(f"{HUB_ID} has no dump {dump} of '{edition}'", f"it has: --dump {', '.join(dates)}")
        raise DataError(f"{HUB_ID} has no '{config}'{did_you_mean(config, held)}")
    return str(info.sha)


# ---------------------------------------------------------------- a copy of the dataset


def _rows(tables: list[Path], reading: Reading) -> Iterator[tuple[str, dict[str, Any]]]:
    reading.expect(tables)
    for path in tables:
        yield from table_rows(path, reading, _COLUMNS, all_of=HUB_ID)


def _of_rows(lang: str, source: str, rows: _Rows) -> Edition:
    """Return the edition in the rows of the dataset."""

    def documents(reading: Reading, wanted: Container[str] | None = None) -> Iterator[Document]:
        for page, title, text in _articles(rows(reading)):
            if wanted is None or page in wanted:
                yield Document(page_document_id(lang, page), lang, text, title)

    def outlines(reading: Reading) -> Iterator[Outline]:
        for page, title, text in _articles(rows(reading)):
            yield outline_of_text(page, title, text, lang)

    pages = Pages(lambda: Stream(outlines), lambda wanted: Stream(lambda reading: documents(reading, wanted)))
    return Edition(lang, source, lambda: Stream(documents), pages)


def _articles(rows: Iterator[tuple[str, dict[str, Any]]]) -> Iterator[tuple[str, str, str]]:
    """Yield number, title and text of every page."""
    for where, record in rows:
        if not record.get("id") or record.get("text") is None:
            raise DataError(
                f"{where}: no id or no text", "the file may not be of wikimedia/wikipedia: columns id, url, title, text"
            )
        yield str(record["id"]), str(record.get("title") or ""), str(record["text"])


# ---------------------------------------------------------------- Wikimedia's dumps


def _from_xml(lang: str, files: list[Path]) -> Edition:
    names = ", ".join(file.name for file in files)
    wiki = f"{edition_code(lang).replace('-', '_')}wiki"

    def pages(reading: Reading) -> Iterator[tuple[Path, WikiPage]]:
        reading.expect(files)
        for file in files:
            for page in read_pages(file, wiki, reading):
                yield file, page

    def documents(reading: Reading, wanted: Container[str] | None = None) -> Iterator[Document]:
        for file, page in pages(reading):
            if wanted is not None and page.id not in wanted:
                continue
            try:
                shown = plain_text(page.text, page.hidden)
            except MarkupError as error:
                log.warning("%s, page '%s' is left out: %s", file.name, page.title, error)
                continue
            if shown:
                yield Document(page_document_id(lang, page.id), lang, shown, page.title)

    def outlines(reading: Reading) -> Iterator[Outline]:
        for _, page in pages(reading):
            yield outline_of_markup(page.id, page.title, page.text, lang, page.categories)

    parts = Pages(lambda: Stream(outlines), lambda wanted: Stream(lambda reading: documents(reading, wanted)))
    return Edition(lang, f"Wikimedia dump, {names}", lambda: Stream(documents), parts)
