"""Words of a text for lexical search, the same for documents and queries.

A text is folded, then cut into runs by script:

- **Han and Kana**: overlapping pairs of characters (``日本語`` → ``日本 本語``), and each Han character.
- **Thai, Lao, Khmer, Burmese**: overlapping pairs of letters, each with its combining vowels and tones.
- **Hangul**: the word as written, its syllables, and pairs of them in words longer than two, because particles are
  attached to nouns (``한국의`` also gives ``한국``, ``강은`` also ``강``).
- **every other script** (Latin, Cyrillic, Greek, Arabic, Hebrew, Devanagari, Ethiopic, ...): runs of letters, digits
  and combining marks. (Tibetan has no spaces but a mark between syllables: its tokens are syllables.) A word of Arabic
  script with a zero-width non-joiner (Persian affixes) is a token, and so are its parts.

Dictionaries may cut the first three into words instead, and words may be reduced to stems: see
:class:`~mrag_eval.text.Analyzer`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise

from mrag_eval.text._letters import HAN_KANA, HANGUL, marks, unspaced_letters

Tokenizer = Callable[[str], list[str]]

_NON_JOINER = "\u200c"
_PARTED_WORD = re.compile("[\u0600-\u06ff\u0750-\u077f]+(?:\u200c[\u0600-\u06ff\u0750-\u077f]+)+")
_HAN_CHARACTER = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U0003fffd]")
_ASCII_WORD = re.compile("[a-z0-9]+")


@lru_cache(maxsize=1)
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return a pattern for runs by script, and one for a letter with its marks."""

    def run(script: str, letter: str) -> str:
        return f"(?P<{script}>{letter}+(?:[{marks()}]+{letter}*)*)"

    # the classes are disjoint, so the order of alternatives only affects speed
    word = rf"[^\W_{HAN_KANA}{HANGUL}{unspaced_letters()}]"
    alternatives = (run("word", word), run("han", f"[{HAN_KANA}]"), f"(?P<hangul>[{HANGUL}]+)")
    runs = re.compile("|".join((*alternatives, run("unspaced", f"[{unspaced_letters()}]"))))
    return runs, re.compile(f".[{marks()}]*", re.DOTALL)


def run_pattern() -> re.Pattern[str]:
    """Return the pattern of the runs of letters and digits, whose group names their kind; see :func:`runs`."""
    return _patterns()[0]


def runs(text: str) -> Iterator[tuple[str, str]]:
    """Yield the runs of letters and digits of a text: ``word``, ``han``, ``hangul`` or ``unspaced``, and the run."""
    for match in run_pattern().finditer(text):
        yield match.lastgroup or "", match.group()


def ascii_words(text: str) -> list[str]:
    """Return the lower-case words of a text in ASCII, a short way to the same result."""
    return _ASCII_WORD.findall(text.lower())


def pairs(run: str) -> list[str]:
    """Return the overlapping pairs of letters with their marks; a run of one letter is a word."""
    letters = _patterns()[1].findall(run)
    return letters if len(letters) == 1 else [a + b for a, b in pairwise(letters)]


def pairs_and_characters(run: str) -> list[str]:
    """Return the overlapping pairs, and each Han character of a longer run."""
    found = pairs(run)
    return [*found, *_HAN_CHARACTER.findall(run)] if len(run) > 1 else found


def word_and_pairs(run: str) -> list[str]:
    """Return a word of Hangul and, of a longer one, the pairs of its syllables."""
    return [run, *(run[i : i + 2] for i in range(len(run) - 1))] if len(run) > 2 else [run]


def word_pairs_and_syllables(run: str) -> list[str]:
    """Return a word of Hangul, the pairs of its syllables, and the syllables of a longer one."""
    return [*word_and_pairs(run), *run] if len(run) > 1 else [run]


def with_parts(text: str) -> str:
    """Return the text with the parts of each word of Arabic script that has a zero-width non-joiner after the word."""
    if _NON_JOINER not in text:
        return text
    return _PARTED_WORD.sub(lambda match: f"{match.group()} {match.group().replace(_NON_JOINER, ' ')}", text)


def cut(text: str, hangul: Callable[[str], Sequence[str]], unspaced: Callable[[str], Sequence[str]]) -> list[str]:
    """Return the words of a folded text in order, with repetitions; the two functions cut a run of their scripts."""
    words: list[str] = []
    for script, run in runs(text):
        if script == "word":
            words.append(run)
        else:
            words += (hangul if script == "hangul" else unspaced)(run)
    return words
