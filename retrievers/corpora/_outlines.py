"""What a starter corpus chooses pages by: title, categories, links and length, without the page's text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from mrag_eval.core import NO_SPACES, base_language

# Where text that a reader does not see begins and ends: templates, tables, notes, comments.
_MARK = re.compile(r"\{\{|\}\}|\{\||\|\}(?!\})|<ref\b[^<>]*/>|<ref\b|</ref>|<!--|-->", re.IGNORECASE)
_OPENS = {"{{": "}}", "{|": "|}", "<ref": "</ref>", "<!--": "-->"}
_LINK = re.compile(r"\[\[([^\[\]|#<>{}\n]+)")
# The text form of a page ends with its categories, one on a line, after a blank line.
_TAIL, _LONGEST_NAME = 3_000, 120


@dataclass(frozen=True, slots=True)
class Outline:
    """A page as a starter sees it.

    ``categories`` is text with one category on a line. ``length`` counts words, or characters in languages written
    without spaces; for markup both are estimates. ``links`` returns the titles of linked pages; none are known where
    only texts are read.
    """

    page: str
    title: str
    categories: str
    length: int
    links: Callable[[], Iterable[str]] = tuple


def outline_of_text(page: str, title: str, text: str, lang: str) -> Outline:
    """Return the outline of a plain text, as in the hub's ``wikimedia/wikipedia``.

    Its last block of short lines are the page's categories without their prefix: the dataset's script leaves them in.
    """
    tail = text[-_TAIL:].rstrip().rpartition("\n\n")[2].split("\n")
    names = "\n".join(line for line in tail if len(line) <= _LONGEST_NAME)
    return Outline(page, title, names, _length(text, _is_spaced(lang), 0, len(text)))


def outline_of_markup(page: str, title: str, markup: str, lang: str, spaces: Iterable[str]) -> Outline:
    """Return the outline of a page of a dump; ``spaces`` are the wiki's names of its category namespace."""
    targets = _LINK.findall(markup)
    prefixes = tuple(f"{space.lower()}:" for space in spaces)
    names = [target.partition(":")[2].strip() for target in targets if target.strip().lower().startswith(prefixes)]
    linked = [target for target in targets if ":" not in target]
    spaced = _is_spaced(lang)
    length = sum(_length(markup, spaced, start, end) for start, end in _seen(markup))
    return Outline(page, title, "\n".join(names), length, lambda: map(page_title, linked))


def _seen(markup: str) -> Iterator[tuple[int, int]]:
    """Yield the spans outside templates, tables, notes and comments, in one pass over any markup."""
    depth = dict.fromkeys(_OPENS.values(), 0)
    start, hidden = 0, 0
    for mark in _MARK.finditer(markup):
        said = mark[0].lower()
        if said in _OPENS:
            if not hidden:
                yield start, mark.start()
            depth[_OPENS[said]] += 1
            hidden += 1
        elif depth.get(said):
            depth[said] -= 1
            hidden -= 1
            start = mark.end()
    if not hidden:
        yield start, len(markup)


def page_title(target: str) -> str:
    """Return the title that a link leads to: spaces for underscores, and a capital first letter."""
    title = " ".join(target.replace("_", " ").split())
    return title[:1].upper() + title[1:]


def _is_spaced(lang: str) -> bool:
    return base_language(lang) not in NO_SPACES


def _length(text: str, spaced: bool, start: int, end: int) -> int:
    between = text.count(" ", start, end) + text.count("\n", start, end)
    return between if spaced else end - start - between
