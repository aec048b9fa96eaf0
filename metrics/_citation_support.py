"""Support of a reply's statements by the passages that it cites, told by the character sequences they share."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import chain, groupby

from mrag_eval.metrics._citations import parse_citations
from mrag_eval.metrics._verbatim import is_character, plain_words
from mrag_eval.text import sentence_spans

# Share of a statement's character sequences that a passage has to hold. Chosen on half of XQuAD's articles
# (scripts/citation_support.py).
LEAST_SHARED = 0.40
# Length of the sequences, in characters; in scripts without spaces.
_SPACED, _UNSPACED = 4, 2
# Citations: ``[2]`` and ``[1, 3]`` count passages from 1, ``<doc0>`` from 0.
_MARK = re.compile(r"\[[0-9]{1,4}(?:[,;] ?[0-9]{1,4})*\]|<doc[0-9]+(?:,[0-9]+)*>")
# The forms that replies have beside these: digits and brackets of other scripts, ranges, footnotes, and names of
# passages. No metric counts them, since what they count from is not known.
_CITED = r"(?:\^|(?:doc(?:ument)?|passage|source|context|ref(?:erence)?)s?[ _#-]?)?\d{1,4}"
_LIST = rf"{_CITED}(?: ?[,;،؛、，；–—~-] ?{_CITED})*"
_ANY_MARK = re.compile(rf"{_MARK.pattern}|[\[［【] ?{_LIST} ?[\]］】]|< ?doc ?{_LIST} ?>", re.IGNORECASE)
_LEADING = re.compile(rf"(?:\s*(?:{_MARK.pattern}))+\s*")
_NUMBER = re.compile(r"\d+(?:[.,٫٬]\d+)*")


@dataclass(frozen=True, slots=True)
class CitationSupport:
    """The statements and citations of a reply, as counts.

    Attributes:
        statements: its sentences.
        supported: those that their cited passages support together.
        citations: its citations, one for each passage that a sentence cites.
        needed: those of supported sentences, without which the support would be less.
        cited: the passages shown that are cited, from 0.
    """

    statements: int
    supported: int
    citations: int
    needed: int
    cited: frozenset[int]

    @property
    def recall(self) -> float | None:
        """Return the share of statements that are supported, in 0..1; None without a statement."""
        return self.supported / self.statements if self.statements else None

    @property
    def precision(self) -> float | None:
        """Return the share of citations that are needed, in 0..1; None without a citation."""
        return self.needed / self.citations if self.citations else None


def cited_statements(reply: str, lang: str) -> list[tuple[str, tuple[int, ...]]]:
    """Return the sentences of a reply without their citations, each with the passages that it cites (from 0).

    A citation behind the full stop belongs to the sentence before it. Of a reply in BordIRlines' three parts the
    explanation is read.
    """
    explained = reply.partition("Explanation:")[2] or reply
    found: list[tuple[str, tuple[int, ...]]] = []
    for start, end in sentence_spans(explained, lang):
        sentence = explained[start:end]
        leading = _LEADING.match(sentence)
        if leading is not None and found:
            text, cited = found[-1]
            found[-1] = (text, (*cited, *_cited(leading[0])))
            sentence = sentence[leading.end() :]
        text = " ".join(_MARK.sub(" ", sentence).split())
        if plain_words(text):
            found.append((text, _cited(sentence)))
    return [(text, tuple(dict.fromkeys(cited))) for text, cited in found]


def without_citations(reply: str) -> str:
    """Return a reply with spaces in place of its citations of any form, so that the places in it stay the same."""
    return _ANY_MARK.sub(lambda mark: " " * len(mark[0]), reply)


def citation_support(reply: str, passages: Sequence[str], lang: str) -> CitationSupport:
    """Return how far the passages that a reply cites support it (Gao et al., 2023, section 3: ALCE).

    ALCE asks a model of entailment. Here passages support a statement if together they hold 40% of its character
    sequences (4 characters; 2 in scripts without spaces) and all its numbers, which needs no model in any language, as
    long as statement and passage are in one. It tells whether a citation leads to a passage on what the statement says.
    It does not tell whether the statement is true of it: another name from the same passage is supported as well.

    A statement without a citation is not supported. A citation is needed if its sentence is supported, and either its
    passage alone supports it or the other ones do not.

    Args:
        reply: the model's answer, with citations ``[1]`` (from 1) or ``<doc0>`` (from 0).
        passages: the texts shown, in prompt order. A citation of another passage supports nothing.
        lang: the language of reply and passages (BCP 47), for its sentences.
    """
    statements = cited_statements(reply, lang)
    supported = needed = 0
    held: dict[int, _Content] = {}
    for text, cited in statements:
        for number in cited:
            if number < len(passages) and number not in held:
                held[number] = _Content.of(passages[number])
        statement = _Content.of(text)
        there = [number for number in cited if number in held]
        if not there or not statement.within([held[number] for number in there]):
            continue
        supported += 1
        needed += sum(
            statement.within([held[number]])
            or not statement.within([held[other] for other in there if other != number])
            for number in there
        )
    citations = sum(len(cited) for _, cited in statements)
    return CitationSupport(len(statements), supported, citations, needed, frozenset(held))


def shared_content(statement: str, passage: str) -> float:
    """Return the share of a statement's character sequences that a passage holds, in 0..1; 0 if it lacks a number."""
    return _Content.of(statement).share([_Content.of(passage)])


@dataclass(frozen=True, slots=True)
class _Content:
    """What is compared of a text: its character sequences, and its numbers as digits."""

    sequences: frozenset[str]
    numbers: frozenset[str]

    @classmethod
    def of(cls, text: str) -> _Content:
        sequences: set[str] = set()
        for unspaced, words in groupby(plain_words(text), is_character):
            run = ("" if unspaced else " ").join(["", *words, ""])
            size = min(_UNSPACED if unspaced else _SPACED, len(run))
            sequences.update(run[at : at + size] for at in range(len(run) - size + 1))
        numbers = _NUMBER.findall(unicodedata.normalize("NFKC", text))
        digits = ("".join(str(unicodedata.digit(char)) for char in number if char.isdigit()) for number in numbers)
        return cls(frozenset(sequences), frozenset(digits))

    def share(self, passages: Collection[_Content]) -> float:
        held = frozenset(chain.from_iterable(passage.sequences for passage in passages))
        numbers = frozenset(chain.from_iterable(passage.numbers for passage in passages))
        return len(self.sequences & held) / len(self.sequences) if self.numbers <= numbers and self.sequences else 0.0

    def within(self, passages: Collection[_Content]) -> bool:
        return self.share(passages) >= LEAST_SHARED


def _cited(text: str) -> tuple[int, ...]:
    """Return the passages that a text cites, from 0."""
    marks = [found[0] for found in _MARK.finditer(text)]
    from_one = (int(digits) - 1 for mark in marks if mark[0] == "[" for digits in re.findall("[0-9]+", mark))
    from_zero = parse_citations(text, whole_response=True).inline
    return (*(number for number in from_one if number >= 0), *from_zero)
