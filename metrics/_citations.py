"""Documents cited by a response, and the languages of all citations as counts."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mrag_eval.core import is_language, normalize_language, suggestion
from mrag_eval.languages import Files, files_of_languages, language
from mrag_eval.metrics._resampling import Array
from mrag_eval.platform import MetricError, did_you_mean

CitationSource = Literal["inline", "listed"]

_MOST_DIGITS = 18
_INLINE = re.compile(r"<doc([0-9]+(?:,[0-9]+)*)>")
_LISTED = re.compile(r"Cited Documents:([^\n]*)")


@dataclass(frozen=True, slots=True)
class Citations:
    """The document numbers (0-based, with repeats) that a response cites.

    ``listed_line`` is the raw content of the ``Cited Documents:`` line, None without such a line.
    """

    inline: tuple[int, ...]
    listed: tuple[int, ...]
    listed_line: str | None


def parse_citations(response: str, *, whole_response: bool = False) -> Citations:
    """Parse the citations of a response, from the inline marks and from the line that lists them.

    Inline marks are ``<docN>`` and ``<docN,M>`` without spaces, read after the first ``Explanation:``, or anywhere if
    ``whole_response``. The listed ones are the numbers on the first ``Cited Documents:`` line.

    Raises:
        MetricError: the response is not a string.

    Source: BordIRlines, section 4.1 and its citation prompt.
    """
    if not isinstance(response, str):
        raise MetricError(f"response must be a string, got {type(response).__name__}")
    explained = response if whole_response else response.partition("Explanation:")[2]
    inline = tuple(_number(digits) for group in _INLINE.findall(explained) for digits in group.split(","))
    line = _LISTED.search(response)
    listed = tuple(map(_number, re.findall(r"[0-9]+", line[1]))) if line else ()
    return Citations(inline, listed, line[1].strip() if line else None)


def _number(digits: str) -> int:
    """Return the number; Python refuses thousands of digits, and no prompt has a document of such a number anyway."""
    return int(digits) if len(digits) <= _MOST_DIGITS else sys.maxsize


@dataclass(frozen=True)
class CitationCounts:
    """Documents and citations of N queries in each of L languages.

    Attributes:
        columns: language -> its column.
        asked: (N,) the column of each query's language; None if they are not given.
        documents, citations: (N, L) counts, all 0 for a query without a response or without documents.
        out_of_range: citations of documents that were not in the prompt (dropped).
    """

    columns: Mapping[str, int]
    asked: NDArray[np.int64] | None
    documents: Array
    citations: Array
    out_of_range: int


def count_citations(
    responses: Sequence[str | Citations | None],
    document_languages: Sequence[Sequence[str]],
    query_languages: Sequence[str] | None,
    *,
    source: CitationSource = "inline",
    repeats: bool = True,
) -> CitationCounts:
    """Return documents and citations by language, with arguments and errors as in
    :func:`~mrag_eval.metrics.citation_rates`.
    """
    _same_length(responses, document_languages, "lists of document languages")
    columns: dict[str, int] = {}
    # the same for every spelling of a code
    known: dict[str, int] = {}

    def columns_of(codes: Sequence[str], where: str, row: int) -> list[int]:
        for code in codes:
            if code not in known:
                known[code] = columns.setdefault(_language(code, f"{where}[{row}]"), len(columns))
        return [known[code] for code in codes]

    asked = None
    if query_languages is not None:
        _same_length(responses, query_languages, "query languages")
        asked = np.array(
            [columns_of([code], "query_languages", row)[0] for row, code in enumerate(query_languages)], dtype=np.int64
        )
    shown: list[list[int]] = []
    cited: list[list[int]] = []
    out_of_range = 0
    for row, (response, found) in enumerate(zip(responses, document_languages, strict=True)):
        documents = [] if response is None else columns_of(found, "document_languages", row)
        numbers = () if response is None or not documents else _numbers(response, source, repeats)
        shown.append(documents)
        cited.append([documents[number] for number in numbers if number < len(documents)])
        out_of_range += len(numbers) - len(cited[-1])
    return CitationCounts(columns, asked, _counts(shown, len(columns)), _counts(cited, len(columns)), out_of_range)


def _counts(rows: Sequence[Sequence[int]], n_columns: int) -> Array:
    """Return how often each column is in each row, (N, L)."""
    first = np.repeat(np.arange(len(rows)) * n_columns, [len(row) for row in rows])
    cells = first + np.fromiter(chain.from_iterable(rows), dtype=np.int64, count=len(first))
    return np.bincount(cells, minlength=len(rows) * n_columns).reshape(len(rows), n_columns).astype(np.float64)


def _numbers(response: str | Citations, source: str, repeats: bool) -> tuple[int, ...]:
    cited = response if isinstance(response, Citations) else parse_citations(response)
    if source not in ("inline", "listed"):
        raise MetricError(f"unknown source of citations '{source}'" + did_you_mean(source, ("inline", "listed")))
    numbers = cited.inline if source == "inline" else cited.listed
    return numbers if repeats else tuple(dict.fromkeys(numbers))


def _language(code: str, where: str) -> str:
    if not isinstance(code, str) or not is_language(code):
        raise MetricError(f"{where}: unknown language {code!r}", suggestion(str(code)))
    return normalize_language(code)


def _same_length(responses: Sequence[object], other: Sequence[object], what: str) -> None:
    if len(responses) != len(other):
        raise MetricError(f"{len(responses)} responses but {len(other)} {what}")


# Digits of any script between brackets of any width count passages from 1, also behind a word for a passage;
# ``<doc0>`` counts from 0.
_SEPARATOR: Final = "[,;،؛、，；]"
_SUPERSCRIPT: Final = "[¹²³⁴⁵⁶⁷⁸⁹⁰]"
# A citation of any form has one of these; most texts have none and are not searched for its forms.
_COUNTING: Final = re.compile(r"[\d¹²³⁴⁵⁶⁷⁸⁹⁰†]")
# What may be a citation: between brackets of any form numbers, with a word that no file knows, or words alone; numbers
# raised, circled, between tags, behind a mark.
# Each number ends where its digits do, and what is between two has letters at one place: a text has one reading.
_BETWEEN: Final = r"[ .,;:#&@~〜–—/*`^$'\"_-]{0,3}"
_NUMBERS: Final = rf"\d{{1,2}}(?!\d)(?:{_BETWEEN}(?:[^\W\d_]{{1,4}}{_BETWEEN})?\d{{1,2}}(?!\d)){{0,20}}"
_MAYBE: Final = (
    rf"[\[［【(（{{「《〔〈⟦|]{_BETWEEN}(?:[^\W\d_]{{1,20}}{_BETWEEN})?{_NUMBERS}{_BETWEEN}[\]］】)）}}」》〕〉⟧|]"
    r"|[\[［【][^\W\d][^\]］】\n]{0,80}[\]］】]|<(?P<tag>\w{1,20})>\W{0,2}\d{1,2}\W{0,2}</(?P=tag)>"
    rf"|[\^#]\W{{0,2}}\d{{1,2}}(?!\d)|\\cite|(?<!\b\w)(?<!\b[ckd]m)(?<!\b\d\d){_SUPERSCRIPT}|(?<=[^\n])[①-⑩]"
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
            rf"(?<![^\W_])(?:{word})[^\d\n]{{0,8}}\d{{1,3}}(?!\d)|(?<!\d)\d{{1,3}}(?:[^\W\d_]{{1,3}})?"
            rf"[^\w\n]{{0,3}}(?:{word})|[(（](?:{word})\b[^()\n]{{0,80}}[)）]|{_MAYBE}",
            re.IGNORECASE,
        ),
        re.compile(rf"(?:^|[.!?。] )[\W_]{{0,10}}(?:{word})[\s*_]{{0,10}}(?:[:：]|\n)", re.IGNORECASE | re.MULTILINE),
    )


def without_citations(reply: str, lang: str | None = None) -> str:
    """Return a reply with spaces in place of its citations of any form, so that the places in it stay the same."""
    if _COUNTING.search(reply) is None:
        return reply
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
