"""The visible text of a wiki page's markup: paragraphs, headings and list items, one per line.

Templates, tables, references, formulas, pictures and headings of empty sections are left out. The output of templates
(converted units, names of people) is lost: expanding them requires a whole wiki.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Any

from mrag_eval.platform import missing_extra

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
