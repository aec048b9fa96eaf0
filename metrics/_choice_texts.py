"""Texts of options inside a reply: their spelling and their edges."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache

from mrag_eval.metrics._choice_labels import Mention
from mrag_eval.metrics._choice_words import continues, fold, inside, starts_word
from mrag_eval.text import NO_SPACE_SCRIPTS, marks, script

# The fewest letters of an option that is also found with an ending, and the most letters of an ending.
_INFLECTED, _LONGEST_ENDING = 4, 4


@lru_cache(maxsize=1)
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return the patterns of a word and of what stands between two words."""
    return re.compile(rf"(?:[^\W_]|[{marks()}])+"), re.compile(rf"(?:_|[^\w{marks()}])+")


@lru_cache(maxsize=4096)
def plain_text(text: str) -> str:
    """Return the text in NFKC, case folded, with every run of punctuation, symbols and spaces as one space."""
    return " ".join(_patterns()[0].findall(fold(unicodedata.normalize("NFKC", text))))


def occurrences(folded: str, options: Sequence[str]) -> list[Mention]:
    """Return each option found in a text, with its start and end; a longer option hides shorter ones inside it.

    ``options`` as :func:`plain_text` gives them; the text in NFKC, folded. One letter or digit, which many texts hold
    by chance, is not sought.
    """
    found: list[Mention] = []
    for option in sorted({*options}, key=lambda option: (-len(option), option)):
        if len(option) < 2 and (not option or script(option) not in {"Hang", *NO_SPACE_SCRIPTS}):
            continue
        inflects = len(option) >= _INFLECTED and script(option[-1]) not in {None, "Hang", *NO_SPACE_SCRIPTS}
        # declension may change the last letter
        stem = option[:-1] if inflects and len(option) > _INFLECTED + 1 and option[-2] != " " else option
        first, *rest = stem.split(" ")
        hidden = sorted((m.start, m.end) for m in found)
        at = folded.find(first)
        while at >= 0:
            end = _end(folded, at + len(first), rest)
            if end is not None and not inside(hidden, at) and not inside(hidden, end - 1) and starts_word(folded, at):
                whole = end + len(option) - len(stem)
                ending = _ending(folded, end)
                if folded.startswith(option[len(stem) :], end) and _ends_word(folded, whole):
                    end, ending = whole, 0
                if ending == 0 or (inflects and ending <= _LONGEST_ENDING):
                    found.extend(Mention(i, at, end + ending, label=False) for i, other in enumerate(options) if other == option)
            at = folded.find(first, at + len(first))
    return sorted(found, key=lambda m: m.start)


def _end(folded: str, at: int, rest: Sequence[str]) -> int | None:
    """Return where the words end that follow the first one, which ends at a position; None if they do not follow."""
    for word in rest:
        gap = _patterns()[1].match(folded, at)
        if gap is None or not folded.startswith(word, gap.end()):
            return None
        at = gap.end() + len(word)
    return at


def _ending(folded: str, at: int) -> int:
    """Return how many letters continue a word at a position, no more than one above the longest ending."""
    end = at
    while end - at <= _LONGEST_ENDING and continues(folded, end):
        end += 1
    return end - at


def _ends_word(folded: str, end: int) -> bool:
    # Korean attaches particles to the noun
    return not continues(folded, end) or script(folded[end - 1]) == "Hang"
