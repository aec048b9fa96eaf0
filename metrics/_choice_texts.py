"""Texts of options inside a reply: their spelling and their edges."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache

from mrag_eval.metrics._choice_words import continues, fold, starts_word
from mrag_eval.text import NO_SPACE_SCRIPTS, marks, script

# The Turkic copula, written together with the noun: "çörəkdir".
_COPULA = re.compile(r"[dt][ıiuü]r(?!\w)")

# The fewest letters of an option that is also found with an ending, and the most letters of an ending.
_INFLECTED, _LONGEST_ENDING = 4, 4


@lru_cache(maxsize=1)
def _word() -> re.Pattern[str]:
    return re.compile(rf"[\w{marks()}]+")


@lru_cache(maxsize=4096)
def plain_text(text: str) -> str:
    """Return the text in NFKC, case folded, with every run of punctuation, symbols and spaces as one space."""
    return " ".join(_word().findall(fold(unicodedata.normalize("NFKC", text)).replace("_", " ")))


def occurrences(folded: str, options: Sequence[str]) -> list[tuple[int, int, int]]:
    """Return each option found in a text, with its start and end; a longer option hides shorter ones inside it.

    ``options`` as :func:`plain_text` gives them; the text in NFKC, folded.
    """
    if not any(option and _stem(option).partition(" ")[0] in folded for option in options):
        return []
    words = [(match[0], match.start()) for match in _word().finditer(folded.replace("_", " "))]
    plain = " ".join(word for word, _ in words)
    starts = [0]
    for word, _ in words:
        starts.append(starts[-1] + len(word) + 1)

    def origin(at: int) -> int:
        word = bisect_right(starts, at) - 1
        return words[word][1] + at - starts[word]

    found: list[tuple[int, int, int]] = []
    for option in sorted(dict.fromkeys(filter(None, options)), key=len, reverse=True):
        indices = [i for i, other in enumerate(options) if other == option]
        spans = []
        stem = _stem(option)
        at = plain.find(stem)
        while at >= 0:
            end = _word_end(plain, at + len(stem))
            end = at + len(option) if plain.startswith(option, at) and _ends_word(plain, at + len(option)) else end
            ending = end - at - len(stem)
            if (
                starts_word(plain, at)
                and ending <= _LONGEST_ENDING
                and (ending == 0 or stem != option or _inflects(option))
                and not _single(option)
            ):
                spans.append((at, end))
                found.extend((i, origin(at), origin(end - 1) + 1) for i in indices)
            at = plain.find(stem, at + len(stem))
        if spans:
            # what an option covers is hidden from shorter ones
            parts, last = [], 0
            for at, end in spans:
                parts += [plain[last:at], "\n" * (end - at)]
                last = end
            plain = "".join(parts) + plain[last:]
    return found


def _inflects(option: str) -> bool:
    """Return whether an option is long enough, and in a script, to be found with an ending: "Xəzərə" for "Xəzər"."""
    return len(option) >= _INFLECTED and script(option[-1]) not in {None, "Hang", *NO_SPACE_SCRIPTS}


def _stem(option: str) -> str:
    """Return an option without its last letter, which declension may change, if it is long enough."""
    return option[:-1] if len(option) > _INFLECTED + 1 and _inflects(option) and option[-2] != " " else option


def _word_end(plain: str, at: int) -> int:
    """Return the end of a word, or a position behind the longest ending."""
    stop = at + _LONGEST_ENDING + 1
    while at < min(stop, len(plain)) and continues(plain, at):
        at += 1
    return at


def _single(option: str) -> bool:
    """Return whether an option is one letter or digit, which many texts hold by chance."""
    return len(option) == 1 and script(option) not in {"Hang", *NO_SPACE_SCRIPTS}


def _ends_word(plain: str, end: int) -> bool:
    # Korean attaches particles to the noun
    return not continues(plain, end) or script(plain[end - 1]) == "Hang" or _COPULA.match(plain, end) is not None
