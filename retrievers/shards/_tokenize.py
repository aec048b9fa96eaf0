"""Script-aware tokens for lexical search, the same for documents and queries.

The text is normalised (NFKC, case folded), then cut into runs by script:

- **Han and Kana**: overlapping pairs of characters (``日本語`` → ``日本 本語``); a run of one character is a token.
- **Thai, Lao, Khmer, Burmese**: overlapping pairs of letters, each with its combining vowels and tones.
- **Hangul**: the word as written, and the pairs of syllables in words longer than two, because particles are
  attached to nouns (``한국의`` also gives ``한국``).
- **every other script** (Latin, Cyrillic, Greek, Arabic, Hebrew, Devanagari, Ethiopic, ...): runs of letters, digits
  and combining marks. (Tibetan has no spaces but a mark between syllables: its tokens are syllables.)

Beyond NFKC and case folding: optional vowel points of Arabic and Hebrew and the tatweel are dropped, so that vocalised
text matches plain text; the dot that case folding leaves on a Turkish ``İ`` is dropped; a zero-width non-joiner
separates words in Arabic script (Persian affixes) and is ignored elsewhere; decimal digits of every script become
ASCII digits, so that a year is found in any script. There is no stemming and no stop words: they do not exist for
all languages, and must not put some at a disadvantage.

The rules have a name and a version, stored in every lexical index. An index is queried only with the tokenizer it was
built with (:func:`tokenizer`).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from functools import lru_cache
from itertools import pairwise

from mrag_eval.core import CorpusError
from mrag_eval.retrievers.shards._scripts import HAN_KANA, HANGUL, marks, unspaced_letters

TOKENIZER_NAME = "unicode-scripts"
TOKENIZER_VERSION = 1

Tokenizer = Callable[[str], list[str]]

_HEBREW_POINTS = "\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7"
_ARABIC_POINTS = "\u0610-\u061a\u0640\u064b-\u065f\u0670"
_OPTIONAL_POINTS = re.compile(f"[{_HEBREW_POINTS}{_ARABIC_POINTS}]")
_IGNORED = re.compile("[\u00ad\u200b\u200d\u2060\ufeff\ufe00-\ufe0f]")
_NON_JOINER_IN_ARABIC = re.compile("(?<=[\u0600-\u06ff\u0750-\u077f])\u200c")
_DIGIT = re.compile(r"[^\D0-9]")
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


def _ascii_digit(match: re.Match[str]) -> str:
    return str(unicodedata.decimal(match.group()))


def normalize_text(text: str) -> str:
    """Return NFKC, case-folded text with ASCII digits, without optional vowel points or invisible characters."""
    text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    text = _NON_JOINER_IN_ARABIC.sub(" ", text).replace("\u200c", "").replace("i\u0307", "i")
    return _DIGIT.sub(_ascii_digit, _OPTIONAL_POINTS.sub("", _IGNORED.sub("", text)))


def tokenize(text: str) -> list[str]:
    """Return the tokens of a text in order, with repetitions; ``[]`` for a text without letters and digits."""
    if text.isascii():
        return _ASCII_WORD.findall(text.lower())
    runs, letter = _patterns()
    tokens: list[str] = []
    for match in runs.finditer(normalize_text(text)):
        run, script = match.group(), match.lastgroup
        if script == "word":
            tokens.append(run)
        elif script == "hangul":
            tokens.append(run)
            if len(run) > 2:
                tokens.extend(run[i : i + 2] for i in range(len(run) - 1))
        else:
            letters = letter.findall(run)
            if len(letters) == 1:
                tokens.append(run)
            else:
                tokens.extend(a + b for a, b in pairwise(letters))
    return tokens


def tokenizer(name: str, version: int) -> Tokenizer:
    """Return an index's tokenizer; raise :class:`~mrag_eval.core.CorpusError` if this version lacks it."""
    if (name, version) != (TOKENIZER_NAME, TOKENIZER_VERSION):
        raise CorpusError(
            f"the index was tokenised with '{name}' version {version}, this mrag-eval has "
            f"'{TOKENIZER_NAME}' version {TOKENIZER_VERSION}",
            "rebuild the index: mrag-eval index build --overwrite ...",
        )
    return tokenize
