"""Pages of a Wikimedia XML dump (``pages-articles``), read one at a time."""

from __future__ import annotations

import bz2
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any
from xml.etree import ElementTree

from mrag_eval.platform import LONGEST_LINE, DataError
from mrag_eval.retrievers.corpora._reading import Reading

# Namespace numbers, the same in every wiki.
_ARTICLES, _FILES, _CATEGORIES = "0", "6", "14"
_OPENERS: dict[str, Callable[[IO[bytes]], Any]] = {".bz2": bz2.BZ2File}


@dataclass(frozen=True, slots=True)
class WikiPage:
    """An article in wiki markup.

    ``hidden`` holds the wiki's names of the file and category namespaces, ``categories`` those of the second alone.
    """

    id: str
    title: str
    text: str
    hidden: frozenset[str]
    categories: frozenset[str] = frozenset({"category"})


def read_pages(path: Path, wiki: str, reading: Reading | None = None) -> Iterator[WikiPage]:
    """Yield the articles of a dump in order: wikitext pages of the main namespace, without redirects.

    The file may be compressed (``.bz2``, also of several streams, or ``.gz``); memory holds one page, and ``reading``
    is updated. Raises DataError for a dump of another ``wiki`` (``kowiki``) and, naming the last page, for a file that
    is truncated or not a dump.
    """
    title = "none"
    hidden: frozenset[str] = frozenset()
    categories: frozenset[str] = frozenset()
    try:
        with (reading or Reading()).binary(path, _OPENERS.get(path.suffix)) as file:
            bounded = _Bounded(file)
            events = ElementTree.iterparse(bounded, events=("start", "end"))
            _, root = next(events)
            if _name(root) != "mediawiki":
                raise DataError(
                    f"{path} is not a dump of a wiki (its root is '{_name(root)}')", "name a pages-articles dump"
                )
            for event, element in events:
                if event == "start":
                    continue
                if _name(element) == "siteinfo":
                    if (found := _text(element, "dbname")) and found != wiki:
                        what = f"{path} is a dump of '{found}', not of '{wiki}'"
                        raise DataError(what, "name its language with --langs")
                    categories = _named(element, _CATEGORIES) | {"category"}
                    hidden = _named(element, _FILES, _CATEGORIES)
                elif _name(element) == "page":
                    title = _text(element, "title")
                    page = _article(element, hidden, categories)
                    if page is not None:
                        yield page
                    root.clear()  # otherwise all pages read so far would stay in memory
                    bounded.since_page = 0
    except _PageTooLongError:
        raise DataError(
            f"{path}: a page after '{title}' is longer than {LONGEST_LINE >> 20} MiB",
            "the file may be damaged: fetch it again",
        ) from None
    except (OSError, EOFError, zlib.error, ElementTree.ParseError, StopIteration) as error:
        reason = (str(error).splitlines() or [""])[0] or "it is empty"
        raise DataError(f"{path}: cannot be read after page '{title}': {reason}", "fetch the file again") from None


class _PageTooLongError(Exception):
    """More bytes without the end of a page than a page has."""


class _Bounded:
    """The bytes of a dump, of which a parser keeps no more than a page in memory."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.since_page = 0

    def read(self, size: int = -1) -> bytes:
        block = self._file.read(size)
        self.since_page += len(block)
        if self.since_page > LONGEST_LINE:
            raise _PageTooLongError
        return block


def _name(element: ElementTree.Element) -> str:
    """Return the tag without the format's namespace, whose version number changes."""
    return element.tag.rpartition("}")[2]


def _child(element: ElementTree.Element, name: str) -> ElementTree.Element | None:
    return next((child for child in element if _name(child) == name), None)


def _text(element: ElementTree.Element, name: str) -> str:
    child = _child(element, name)
    return "" if child is None else child.text or ""


def _article(page: ElementTree.Element, hidden: frozenset[str], categories: frozenset[str]) -> WikiPage | None:
    revisions = [child for child in page if _name(child) == "revision"]
    if _text(page, "ns") != _ARTICLES or _child(page, "redirect") is not None or not revisions:
        return None
    text = _text(revisions[-1], "text")
    if _text(revisions[-1], "model") not in ("", "wikitext") or not text.strip():
        return None
    return WikiPage(_text(page, "id"), _text(page, "title"), text, hidden, categories)


def _named(siteinfo: ElementTree.Element, *keys: str) -> frozenset[str]:
    """Return the wiki's names of namespaces, in lower case."""
    spaces = _child(siteinfo, "namespaces")
    named = {space.get("key"): space.text or "" for space in (() if spaces is None else spaces)}
    return frozenset(named[key].lower() for key in keys if named.get(key))
