"""Texts of options inside a reply: their spelling and their edges."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache

from mrag_eval.metrics._choice_words import continues, starts_word
from mrag_eval.text import NO_SPACE_SCRIPTS, marks, script

# The Turkic copula, written together with the noun: "çörəkdir".
_COPULA = re.compile(r"[dt][ıiuü]r(?!\w)")


@lru_cache(maxsize=1)
def _word() -> re.Pattern[str]:
    return re.compile(rf"(?:[^\W_]|[{marks()}])+")


def plain_text(text: str) -> str:
    """Return the text in NFKC, case folded, with every run of punctuation, symbols and spaces as one space."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return " ".join(_word().findall(folded))


def occurrences(text: str, options: Sequence[str]) -> list[tuple[int, int, int]]:
    """Return each option found in a text, with its start and end; a longer option hides shorter ones inside it.

    ``options`` as :func:`plain_text` gives them; the text in NFKC.
    """
    words = [(match[0].casefold(), match.start()) for match in _word().finditer(text)]
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
        at = plain.find(option)
        while at >= 0:
            end = at + len(option)
            if starts_word(plain, at) and _ends_word(plain, end) and not _single(option):
                spans.append((at, end))
                found.extend((i, origin(at), origin(end - 1) + 1) for i in indices)
            at = plain.find(option, end)
        if spans:
            # what an option covers is hidden from shorter ones
            parts, last = [], 0
            for at, end in spans:
                parts += [plain[last:at], "\n" * (end - at)]
                last = end
            plain = "".join(parts) + plain[last:]
    return found


def _single(option: str) -> bool:
    """Return whether an option is one letter or digit, which many texts hold by chance."""
    return len(option) == 1 and script(option) not in {"Hang", *NO_SPACE_SCRIPTS}


def _ends_word(plain: str, end: int) -> bool:
    # Korean attaches particles to the noun
    return (
        not continues(plain, end)
        or script(plain[end - 1]) == "Hang"
        or _COPULA.match(plain, end) is not None
    )
