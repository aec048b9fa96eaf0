"""Parsers of tags in model replies."""

from __future__ import annotations

import re

from mrag_eval.models import Parsed

# Only the end of a longer reply is parsed, since it contains the answer.
_LONGEST = 100_000


def all_tags(text: str, tag: str) -> list[str]:
    """Return the stripped content of every ``<tag>...</tag>``, in order, without empty ones."""
    text = text[-_LONGEST:]
    pattern = re.compile(
        rf"<\s*{re.escape(tag)}\s*>((?:(?!<\s*(?:/\s*)?{re.escape(tag)}\s*>).)*)<\s*/\s*{re.escape(tag)}\s*>",
        re.IGNORECASE | re.DOTALL,
    )
    return [found for match in pattern.finditer(text) if (found := " ".join(match[1].split()))]


def tagged_pairs(text: str, first: str, second: str) -> list[tuple[str, str]]:
    """Return the contents of each ``<first>`` tag directly followed by a ``<second>`` tag, in order; skip unpaired
    tags.
    """
    text = text[-_LONGEST:]
    first, second = re.escape(first), re.escape(second)
    body = rf"((?:(?!<\s*(?:/\s*)?(?:{first}|{second})\s*>).)*)"
    pattern = re.compile(
        rf"<\s*{first}\s*>{body}<\s*/\s*{first}\s*>\s*<\s*{second}\s*>{body}<\s*/\s*{second}\s*>",
        re.IGNORECASE | re.DOTALL,
    )
    pairs = [(" ".join(match[1].split()), " ".join(match[2].split())) for match in pattern.finditer(text)]
    return [(a, b) for a, b in pairs if a and b]


def one_of_words(reply: str, tag: str, words: tuple[str, ...]) -> Parsed[str]:
    """Return the word in the last ``<tag>``, which must be one of ``words`` (case and punctuation aside)."""
    from mrag_eval.models import parse_tag

    parsed = parse_tag(reply, tag)
    if parsed.value is None:
        return Parsed(None, parsed.error)
    word = parsed.value.strip(" \t\r\n.,;:!*_`'\"").casefold()
    if word in words:
        return Parsed(word)
    return Parsed(None, f"<{tag}> holds {parsed.value!r:.60}, which is none of {', '.join(words)}")
