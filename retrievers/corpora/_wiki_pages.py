"""Pages of a Wikimedia XML dump (``pages-articles``), read one at a time, and the text of their markup."""

from __future__ import annotations

import bz2
import re
import zlib
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any
from xml.etree import ElementTree

from mrag_eval.platform import LONGEST_LINE, DataError, missing_extra
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


# Tags whose content is not running text.
_DROPPED = frozenset(
    {
        "ref", "references", "table", "gallery", "imagemap", "math", "chem", "timeline", "score", "graph", "mapframe",
        "maplink", "syntaxhighlight", "source", "templatestyles", "templatedata", "style", "inputbox", "hiero", "hr",
        "section", "indicator",
    }
)  # fmt: skip
# List marks of the wiki, which precede their text.
_MARKS = frozenset({"li", "dd", "dt"})
# Dumps list the current names of namespaces but not older ones, so files are recognised by suffix, too.
_FILE = re.compile(
    r"\.(jpe?g|png|gif|svg|tiff?|webp|xcf|pdf|djvu|og[gva]|opus|wav|flac|midi?|mp[34]|web[mp]|stl)$", re.IGNORECASE
)
_LANGUAGE_LINK = re.compile(r"[a-z]{2,3}(-[a-z-]+)?")
_MAGIC_WORD = re.compile(r"__[^\W\d_]{3,}__")
# -{zh-hans:...; zh-hant:...}-: a word as each script or region has it; -{...}-: a word not to be converted
_VARIANTS = re.compile(r"-\{([^{}]*)\}-")
_FLAGS = re.compile(r"^[A-Z](?:;[A-Z])*\|")
_HEADING = "\0"


class MarkupError(ValueError):
    """Markup that the parser cannot handle."""


def plain_text(source: str, hidden: Collection[str] = ()) -> str:
    """Return the text of a page.

    Links into the namespaces ``hidden`` (lower-case names of files and categories) are dropped. Raises MarkupError for
    markup that cannot be parsed, MissingExtraError without the extra ``wikipedia``.
    """
    try:
        import mwparserfromhell
    except ModuleNotFoundError as error:
        raise missing_extra("wikipedia", "mwparserfromhell") from error
    try:
        code = mwparserfromhell.parse(_VARIANTS.sub(_one_variant, source.replace(_HEADING, "")))
    except (mwparserfromhell.parser.ParserError, RecursionError) as error:
        raise MarkupError(str(error).splitlines()[0] if str(error) else type(error).__name__) from None
    text = _MAGIC_WORD.sub("", "".join(_shown(code, frozenset(hidden))))
    return "\n".join(_without_empty_sections([" ".join(line.split()) for line in text.split("\n")]))


def _one_variant(found: re.Match[str]) -> str:
    """Return the first of several variants, or nothing for a rule without output."""
    text = found[1]
    flags = _FLAGS.match(text)
    if flags is not None:
        if "H" in flags[0] or "T" in flags[0]:
            return ""
        text = text[flags.end() :]
    first = text.split(";", 1)[0]
    return first.partition(":")[2] if re.match(r"\s*zh(-[a-z]+)?\s*:", first) else text


def _shown(code: Any, hidden: frozenset[str]) -> Iterator[str]:
    from mwparserfromhell import nodes

    for node in code.nodes:
        if isinstance(node, nodes.Text):
            yield node.value
        elif isinstance(node, nodes.Wikilink):
            if not _is_hidden(str(node.title), node.text is not None, hidden):
                yield from _shown(node.title if node.text is None else node.text, hidden)
        elif isinstance(node, nodes.Tag):
            name = str(node.tag).strip().lower()
            if name == "br":
                yield "\n"
            elif name not in _DROPPED and not (name in _MARKS and node.wiki_markup) and node.contents is not None:
                yield from _shown(node.contents, hidden)
        elif isinstance(node, nodes.Heading):
            title = " ".join("".join(_shown(node.title, hidden)).split())
            yield f"\n{_HEADING}{node.level}{title}\n"
        elif isinstance(node, nodes.ExternalLink):
            if node.title is not None:
                yield from _shown(node.title, hidden)
        elif isinstance(node, nodes.HTMLEntity):
            yield _character(node)


def _character(node: Any) -> str:
    try:
        return str(node.normalize())
    except (ValueError, OverflowError):
        return ""


def _is_hidden(target: str, named: bool, hidden: frozenset[str]) -> bool:
    target = target.strip()
    prefix, colon, _ = target.partition(":")
    if not colon or not prefix:  # [[:File:x]] is a visible link
        return False
    prefix = prefix.strip().lower().replace("_", " ")
    if prefix in hidden or prefix in ("file", "image", "media", "category"):
        return True
    return bool(_FILE.search(target)) or (not named and bool(_LANGUAGE_LINK.fullmatch(prefix)))


def _without_empty_sections(lines: list[str]) -> list[str]:
    """Return lines with text, and headings followed by text or by a kept heading of lower rank."""
    kept: list[str] = []
    below = 0  # rank of what follows: 7 for text, a kept heading's own rank, 0 for nothing
    for line in reversed(lines):
        if not line.startswith(_HEADING):
            if line:
                kept.append(line)
                below = 7
            continue
        level, title = int(line[1]), line[2:]
        if below > level and title:
            kept.append(title)
            below = level
    return kept[::-1]
