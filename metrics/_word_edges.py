"""Edges of words: whether a text contains an answer as words, not within one, and whether two answers are the same."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

from mrag_eval.core import base_language
from mrag_eval.metrics._numbers import FORM, same_number
from mrag_eval.text import NO_SPACE_SCRIPTS, script, stemmer

# Prefixes that a script writes with the word, in folded letters: and, in, as, to, the (Arabic); and, the, in, as,
# to, from, that (Hebrew); of, in, from, to, about, until, like (Amharic)
PREFIXES = {
    "Arab": re.compile("[وف]?(?:[بكل]?(?:ال)?|لل)"),
    "Hebr": re.compile("[והבכלמש]{1,3}"),
    "Ethi": re.compile("[የበከለ]|ስለ|እስከ|እንደ"),
}
# Languages that attach case endings or articles to the end of a name, and whose endings Snowball removes
_WITH_STEMS = frozenset(["cs", "el", "fi", "hu", "hy", "lt", "ne", "pl", "ro", "ru", "sr", "ta", "tr"])
# ... that it lacks, or does not remove from names (Estonian, Basque)
_WITH_ENDINGS = frozenset({
    "am", "as", "az", "ba", "bn", "ckb", "et", "eu", "gu", "is", "ka", "kk", "kn", "ky", "lv", "ml", "mn", "mr",
    "or", "qu", "si", "so", "sq", "te", "tg", "ti", "tk", "tt", "ug", "uz",
})  # fmt: skip
# ... in which an ending after a consonant begins with a vowel, and after a vowel takes its place; Bulgarian and
# Macedonian have articles, too
_WITH_VOWELS = frozenset(["be", "bg", "bs", "hr", "mk", "sk", "sl", "uk"])
_VOWELS = frozenset("аеёиіїоуыэюяєѐѝaeiouyáéíóúýäôěů")
_ARTICLE = re.compile("т[аоеъ]|[вн][аои]|ът|те")
# Particles of Korean, and forms of its copula (Standard Korean Language Dictionary, parts of speech "josa" and "ida"),
# behind the plural; a noun takes several
_PARTICLE = (
    "은|는|이|가|을|를|의|에|에서|에게|에게서|께|께서|한테|더러|보고|와|과|랑|이랑|하고|로|으로|로서|으로서|로써|으로써|도|만|까지|마저|"
    "조차|부터|보다|처럼|같이|만큼|대로|밖에|마다|나|이나|라도|이라도|야|이야|여|이여|뿐|치고|커녕|요"
)
_COPULA = (
    "이?(?:다|며|고|자|라|라고|라는|라며|란|지만|므로|니까|죠|지요|었다|었고|었으며|었던|었습니다)|입니다|이에요|예요|였다|였고|였으며|"
    "였던|였습니다|임|인데|일|이었(?:다|고|으며|던|습니다)"
)
_KOREAN = re.compile(f"들?(?:{_PARTICLE}){{0,3}}(?:{_COPULA})?")
# Where a space between Hangul, or Hangul and a number, is a matter of style
_HANGUL_GAP = re.compile("(?<=[\uac00-\ud7a3]) ?(?=[\uac00-\ud7a30-9])|(?<=[0-9]) ?(?=[\uac00-\ud7a3])")
_LONGEST_BEFORE, _LONGEST_ENDING = 5, 4
# Shorter answers are whole words
_SHORTEST = 3
_SHORTEST_HANGUL = 2
# Characters of a number in the form of answers
_IN_NUMBER = frozenset("0123456789,\u066b")


def equal(text: str, answer: str) -> bool:
    """Return whether two normalised answers are the same: spaces between Hangul, and readings of numbers, aside."""
    return text == answer or _met(_pattern(answer).fullmatch(text), answer)


def contains(text: str, answer: str, lang: str | None) -> bool:
    """Return whether a normalised text contains a normalised answer (an empty one always).

    In scripts with spaces the answer begins and ends with words. Where a language attaches prepositions, articles,
    particles or endings to words, they may precede or follow an answer of three letters and more (in Korean, two
    syllables). Where Snowball knows the endings of the language, it must remove them from the word; elsewhere an
    ending is shorter than the answer. In scripts without spaces an answer begins and ends anywhere between two
    graphemes. A number is never part of another.
    """
    return any(_begins(text, at, answer) and _ends(text, end, answer, lang) for at, end in _places(text, answer))


def _places(text: str, answer: str) -> Iterator[tuple[int, int]]:
    """Yield where a text has the answer, within a word or not."""
    if not any(char.isdigit() or "\uac00" <= char <= "\ud7a3" for char in answer):
        at = text.find(answer)
        while at >= 0:
            yield at, at + len(answer)
            at = text.find(answer, at + 1)
        return
    pattern = _pattern(answer)
    found = pattern.search(text)
    while found is not None:
        if _met(found, answer):
            yield found.span()
        found = pattern.search(text, found.start() + 1)


@lru_cache(maxsize=1024)
def _pattern(answer: str) -> re.Pattern[str]:
    """Return a pattern with a group for each number of the answer, and optional spaces between Hangul and digits."""
    words = (f"({FORM.pattern})".join(map(re.escape, FORM.split(text))) for text in _HANGUL_GAP.split(answer))
    return re.compile(" ?".join(words))


def _met(found: re.Match[str] | None, answer: str) -> bool:
    return found is not None and all(map(same_number, found.groups(), FORM.findall(answer)))


def _begins(text: str, start: int, answer: str) -> bool:
    if not within(text, start):
        return True
    before = PREFIXES.get(script(answer[0]) or "")
    if before is None or len(answer) < _SHORTEST:
        return False
    word = text.rfind(" ", max(0, start - _LONGEST_BEFORE - 1), start) + 1
    return start - word <= _LONGEST_BEFORE and before.fullmatch(text, word, start) is not None


def _ends(text: str, end: int, answer: str, lang: str | None) -> bool:
    if not within(text, end):
        return True
    last = answer[-1]
    if unicodedata.category(text[end])[0] == "M" or last in _IN_NUMBER:
        return False
    ending = text[end:].partition(" ")[0]
    if script(last) == "Hang":
        return len(answer) >= _SHORTEST_HANGUL and _KOREAN.fullmatch(ending) is not None
    base = None if lang is None else base_language(lang)
    if base == "en":
        return ending == "s"
    if base is None or len(answer) < _SHORTEST or len(ending) > _LONGEST_ENDING:
        return False
    if base in _WITH_STEMS:
        return _is_ending(ending, answer.rpartition(" ")[2], base)
    if base in _WITH_VOWELS:
        return (ending[0] in _VOWELS and last not in _VOWELS) or _ARTICLE.fullmatch(ending) is not None
    return base in _WITH_ENDINGS and len(ending) < len(answer)


def _is_ending(ending: str, word: str, lang: str) -> bool:
    """Return whether Snowball removes the ending from the word, or gives both the same stem."""
    stem = stemmer(lang)
    if stem is None:
        return False
    found = stem(word + ending)
    return word.startswith(found) or found == stem(word)


def within(text: str, at: int) -> bool:
    """Return whether a position is between two characters of one word or number."""
    return 0 < at < len(text) and _one_word(text[at - 1], text[at])


@lru_cache(maxsize=1 << 14)
def _one_word(left: str, right: str) -> bool:
    if unicodedata.category(right)[0] == "M":
        return True
    if left in _IN_NUMBER or right in _IN_NUMBER:
        return left in _IN_NUMBER and right in _IN_NUMBER
    if left.isspace() or right.isspace():
        return False
    # C++ is not C
    if right in "+#":
        return True
    # a mark belongs to the script of its letter
    scripts = script(left), script(right)
    return scripts[0] == scripts[1] and scripts[0] not in NO_SPACE_SCRIPTS
