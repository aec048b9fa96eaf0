"""What a starter corpus chooses pages by: title, categories, links and length, without the page's text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from mrag_eval.core import NO_SPACES, base_language

# What a reader does not see: templates, tables, notes, comments. Nested ones are removed from the inside, once.
_UNSEEN = re.compile(
    r"\{\{[^{}]*\}\}|\{\|(?:(?!\|\}).)*\|\}|<ref\b[^>]*?/>|<ref\b.*?</ref>|<!--.*?-->", re.DOTALL | re.IGNORECASE
)
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
    return Outline(page, title, names, length_of(text, lang))


def outline_of_markup(page: str, title: str, markup: str, lang: str, spaces: Iterable[str]) -> Outline:
    """Return the outline of a page of a dump; ``spaces`` are the wiki's names of its category namespace."""
    targets = _LINK.findall(markup)
    prefixes = tuple(f"{space.lower()}:" for space in spaces)
    names = [target.partition(":")[2].strip() for target in targets if target.strip().lower().startswith(prefixes)]
    linked = [target for target in targets if ":" not in target]
    seen = _UNSEEN.sub("", markup)
    return Outline(page, title, "\n".join(names), length_of(seen, lang), lambda: map(page_title, linked))


def page_title(target: str) -> str:
    """Return the title that a link leads to: spaces for underscores, and a capital first letter."""
    title = " ".join(target.replace("_", " ").split())
    return title[:1].upper() + title[1:]


def length_of(text: str, lang: str) -> int:
    """Return the number of words, or of characters in languages written without spaces."""
    if base_language(lang) in NO_SPACES:
        return len(text) - text.count(" ") - text.count("\n")
    return text.count(" ") + text.count("\n") + 1
