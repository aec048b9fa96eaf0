"""Marks of citations in a reply: those that are read, and all that are taken out."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

from mrag_eval.languages import Files, files_of_languages, language

# Digits of any script between brackets of any width count passages from 1, also behind a word for a passage;
# ``<doc0>`` counts from 0.
_SEPARATOR: Final = "[,;،؛、，；]"
_SUPERSCRIPT: Final = "[¹²³⁴⁵⁶⁷⁸⁹⁰]"
# What may be a citation: between brackets of any form numbers, with a word that no file knows, or words alone; numbers
# raised, circled, between tags, behind a mark.
# Each number ends where its digits do, and what is between two has letters at one place: a text has one reading.
_BETWEEN: Final = r"[ .,;:#&@~〜–—/*`^$'\"_-]{0,3}"
_NUMBERS: Final = rf"\d{{1,2}}(?!\d)(?:{_BETWEEN}(?:[^\W\d_]{{1,4}}{_BETWEEN})?\d{{1,2}}(?!\d)){{0,20}}"
_MAYBE: Final = (
    rf"[\[［【(（{{「《〔〈⟦|]{_BETWEEN}(?:[^\W\d_]{{1,20}}{_BETWEEN})?{_NUMBERS}{_BETWEEN}[\]］】)）}}」》〕〉⟧|]"
    r"|[\[［【][^\W\d][^\]］】\n]{0,80}[\]］】]|<(?P<tag>\w{1,20})>\W{0,2}\d{1,2}\W{0,2}</(?P=tag)>"
    rf"|[\^#]\W{{0,2}}\d{{1,2}}(?!\d)|\\cite|[\[(⁽]{_SUPERSCRIPT}|(?<=[^\n])[①-⑩]"
)


class CitationMarks(NamedTuple):
    """Patterns of citations in a language.

    Attributes:
        read: those that are counted.
        known: these, and forms that do not tell what they count from: ranges, footnotes.
        said: passages that are named outside brackets, and what may be a citation.
        sources: the heading of a list of sources, which does not tell what they are cited for.
    """

    read: re.Pattern[str]
    known: re.Pattern[str]
    said: re.Pattern[str]
    sources: re.Pattern[str]


def citation_marks(lang: str | None) -> CitationMarks:
    """Return the patterns of citations, with the words for a passage of a language (BCP 47) and of English."""
    return _marks(lang or "en", files_of_languages())


@lru_cache(maxsize=64)
def _marks(lang: str, _files: Files) -> CitationMarks:
    known = [each for code in dict.fromkeys((lang, "en")) if (each := language(code)) is not None]
    words = sorted({word for each in known for word in each.words.passage}, key=len, reverse=True)
    word = "|".join(re.escape(each.rstrip("~")) + r"[^\W\d_]{0,5}" * each.endswith("~") for each in words) or "(?!)"
    name = rf"(?:(?:{word})[ .:：#№_-]{{0,2}})"
    joins = "|".join(re.escape(join) for each in known for join in each.words.joins)
    listed = rf"{name}{{0,2}}\d{{1,4}}(?:(?: ?(?:{_SEPARATOR}|[&/+]|{joins or '(?!)'}) ?| ){name}?\d{{1,4}})*"
    read = (
        rf"[\[［【]{{1,2}} ?{listed} ?[\]］】]{{1,2}}(?:\([^()\s]{{1,200}}\))?"
        rf"|[(（] ?(?={name}){listed} ?[)）]|<doc[0-9]+(?:,[0-9]+)*>"
    )
    cited = rf"(?:\^|{name}{{0,2}})\d{{1,4}}"
    several = rf"{cited}(?: ?(?:{_SEPARATOR}|[–—~〜-]) ?{cited})*"
    other = (
        rf"[\[［【] ?{several} ?[\]］】]|< ?doc ?{several} ?>|【[\d:]{{1,9}}†[^】\n]{{0,80}}】"
        rf"|<sup>\W{{0,2}}\d{{1,3}}(?:, ?\d{{1,3}})*\W{{0,2}}</sup>"
        rf"|(?:(?<=[^\W\d]{{3}})|(?<=[^\W\d]{{3}}[.,;:!?»”\"])|(?<=[.!?] )){_SUPERSCRIPT}+"
    )
    return CitationMarks(
        re.compile(read, re.IGNORECASE),
        re.compile(f"{read}|{other}", re.IGNORECASE),
        re.compile(
            rf"(?<![^\W_])(?:{word})[ .:：#№]{{0,2}}\d{{1,3}}(?!\d)|[(（](?:{word})\b[^()\n]{{0,80}}[)）]|{_MAYBE}",
            re.IGNORECASE,
        ),
        re.compile(rf"(?:^|[.!?。] )[\W_]{{0,10}}(?:{word})[\s*_]{{0,10}}(?:[:：]|\n)", re.IGNORECASE | re.MULTILINE),
    )


def without_citations(reply: str, lang: str | None = None) -> str:
    """Return a reply with spaces in place of its citations of any form, so that the places in it stay the same."""
    return citation_marks(lang).known.sub(lambda mark: " " * len(mark[0]), reply)


def cites_unread(reply: str, lang: str | None = None) -> bool:
    """Return whether a reply has a citation in a form that is not read, so that its citations are not known.

    That is a form that does not tell what it counts from, a passage by name with the number 0, and, where no citation
    is read, a list of sources, a passage named outside brackets, or what may be a citation.
    """
    marks = citation_marks(lang)
    if (listed := marks.sources.search(reply)) is not None:
        reply = reply[: listed.start() + 1]
        if marks.read.search(reply) is None:
            return True
    found = [mark[0] for mark in marks.known.finditer(reply)]
    read = [mark for mark in found if marks.read.fullmatch(mark)]
    if len(read) < len(found) or any(re.search(r"[^\W\d_]\W*0+(?!\d)", mark) for mark in read if mark[0] != "<"):
        return True
    return not read and marks.said.search(reply) is not None
