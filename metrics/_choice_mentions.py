"""Options that a text mentions, and which of them it proposes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

from mrag_eval.metrics._choice_texts import occurrences
from mrag_eval.metrics._choice_words import (
    BARE,
    CORRECTED,
    JOINED,
    LISTED,
    LOCAL_LABELS,
    MARKED,
    NOT,
    RIGHT,
    WRONG,
    compiled,
)

# More characters than a negation or a connective has, with the spaces around it.
_REACH: Final = 48
# Letters that are words in some language: an article, a preposition, a pronoun.
_WORDS: Final = frozenset("AEIOUYАОЯИУВСКأبدद")
_WORD_FOLLOWS: Final = re.compile(r"\s+[^\W\d_]")
_NO_WORDS: Final = re.compile(r"[\W_]*")


@dataclass(frozen=True, slots=True)
class Mention:
    """An option named in a text: its index and place, and how: by its text, or by a label with a mark of its own.

    ``joined``: with the mention before it; ``by_word``: by a word such as "or", not only a comma. ``out``: ruled out,
    or taken back.
    """

    index: int
    start: int
    end: int
    is_text: bool = False
    marked: bool = False
    joined: bool = False
    by_word: bool = False
    out: bool = False


def index_of(label: str) -> int:
    """Return the 0-based index of a label: a Latin letter, a number or a letter of another script."""
    if label in LOCAL_LABELS:
        return LOCAL_LABELS[label]
    return int(label) - 1 if label.isdecimal() else ord(label.upper()) - ord("A")


def mentions(text: str, n: int, texts: Sequence[str], lead: Mention | None = None) -> list[Mention]:
    """Return the options that a text mentions, in their order, with those ruled out marked as such.

    ``lead`` is a label already read at the start of the text.
    """
    found = sorted(_found(text, n, texts, lead), key=lambda mention: (mention.start, -mention.end))
    return _ruled_out(text, _connected(text, found))


def _found(text: str, n: int, texts: Sequence[str], lead: Mention | None) -> Iterable[Mention]:
    named = occurrences(text, texts)
    hidden = bytearray(len(text))
    for _, start, end in named:
        hidden[start:end] = b"\1" * (end - start)
    first = 0
    if lead is not None:
        yield lead
        first = lead.end
    yield from (Mention(i, start, end, is_text=True) for i, start, end in named if start >= first)
    for match in MARKED.finditer(text, first):
        group = next(number for number, label in enumerate(match.groups(), 1) if label)
        if match[group] != "0" and not (match[group].isdecimal() and hidden[match.start(group)]):
            yield Mention(index_of(match[group]), match.start(), match.end(group), marked=True)
            hidden[match.start() : match.end(group)] = b"\1" * (match.end(group) - match.start())
    for match in BARE.finditer(text, first):
        index = index_of(match[0])
        if index < n and not hidden[match.start()]:
            yield Mention(index, match.start(), match.end())


def _connected(text: str, found: list[Mention]) -> list[Mention]:
    """Return the mentions with their connections; a label and its option's text next to each other are one mention."""
    out: list[Mention] = []
    for mention in found:
        if not out:
            out.append(mention)
            continue
        last = out[-1]
        if mention.start < last.end:
            continue
        gap = text[last.end : mention.start] if mention.start - last.end <= _REACH else None
        if gap is not None and mention.index == last.index and _NO_WORDS.fullmatch(gap):
            out[-1] = replace(last, end=mention.end, marked=last.marked or mention.marked)
            continue
        by_word, by_comma = (False, False) if gap is None else _connection(gap)
        by_nothing = last.is_text and mention.is_text and gap is not None and _NO_WORDS.fullmatch(gap) is not None
        out.append(replace(mention, joined=by_word or by_comma or by_nothing, by_word=by_word))
    return out


def _ruled_out(text: str, found: list[Mention]) -> list[Mention]:
    """Return the mentions with those marked that the words around them rule out, and without letters that are words."""
    n = len(found)
    forward = [_rules_out_behind(text[max(0, m.start - _REACH) : m.start]) for m in found]
    backward = [_rules_out_before(text[m.end : m.end + _REACH]) for m in found]
    for i in range(1, n):
        forward[i] = forward[i] or (found[i].by_word and forward[i - 1])
    for i in range(n - 2, -1, -1):
        backward[i] = backward[i] or (found[i + 1].by_word and backward[i + 1])
    out = [a or b for a, b in zip(forward, backward, strict=True)]
    for i in range(n - 2, -1, -1):
        here, behind = found[i], found[i + 1]
        if not out[i] and not out[i + 1] and here.index != behind.index and behind.start - here.end <= _REACH:
            out[i] = _takes_back(text[here.end : behind.start])
    kept = []
    for i, mention in enumerate(found):
        follows = i + 1 < n and found[i + 1].joined
        context = out[i] or follows or mention.joined or mention.marked or mention.is_text
        if context or not _is_word(text, mention) or says_right(text, mention):
            kept.append(replace(mention, out=out[i]))
    return kept


def _is_word(text: str, mention: Mention) -> bool:
    return text[mention.start] in _WORDS and _WORD_FOLLOWS.match(text, mention.end) is not None


def says_right(text: str, mention: Mention) -> bool:
    """Return whether the words behind a mention say that it is right."""
    return _says_right(text[mention.end : mention.end + _REACH])


# The same few words surround the labels of a degenerate reply.
@lru_cache(maxsize=1024)
def _connection(gap: str) -> tuple[bool, bool]:
    """Return whether the text between two mentions connects them by a word, and by a comma."""
    return compiled(JOINED).fullmatch(gap) is not None, compiled(LISTED).fullmatch(gap) is not None


@lru_cache(maxsize=1024)
def _rules_out_behind(before: str) -> bool:
    return compiled(NOT).search(before) is not None


@lru_cache(maxsize=1024)
def _rules_out_before(behind: str) -> bool:
    return compiled(WRONG).match(behind) is not None


@lru_cache(maxsize=1024)
def _takes_back(gap: str) -> bool:
    return compiled(CORRECTED).fullmatch(gap) is not None


@lru_cache(maxsize=1024)
def _says_right(behind: str) -> bool:
    return compiled(RIGHT).match(behind) is not None


def first_proposed(found: Sequence[Mention]) -> Mention | None:
    """Return the first mention that is not ruled out, or None, also if another one is proposed together with it."""
    for at, mention in enumerate(found):
        if not mention.out:
            for other in found[at + 1 :]:
                if not other.joined:
                    break
                if not other.out and other.index != mention.index:
                    return None
            return mention
    return None
