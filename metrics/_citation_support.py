"""Support of a reply's statements by the passages that it cites, told by the character sequences they share."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import chain, groupby

from mrag_eval.metrics._citations import CitationMarks, citation_marks, cites_unread, parse_citations
from mrag_eval.metrics._numbers import FORM, numbers_apart, readings, spaced_digits, spaces_joined
from mrag_eval.metrics._verbatim import is_character, plain_words
from mrag_eval.text import sentence_spans

# Share of a statement's character sequences that a passage has to hold. Chosen on half of XQuAD's articles
# (scripts/citation_support.py).
LEAST_SHARED = 0.40
# Length of the sequences, in characters; in scripts without spaces.
_SPACED, _UNSPACED = 4, 2
_DIGIT = re.compile("[^\\D0-9]")
_SPACE = re.compile(r"[\s*_`]*")


@dataclass(frozen=True, slots=True)
class CitationSupport:
    """The statements and citations of a reply, as counts.

    Attributes:
        statements: its sentences.
        supported: those that their cited passages support together.
        citations: its citations, one for each passage that a sentence cites.
        needed: those of supported sentences, without which the support would be less.
        cited: the passages shown that are cited, from 0.
        unread: whether the reply also cites in a form that is not counted (``[1-3]``, ``[^1]``), so
            that its shares are not known.
    """

    statements: int
    supported: int
    citations: int
    needed: int
    cited: frozenset[int]
    unread: bool = False

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
    explained, marks = reply.partition("Explanation:")[2] or reply, citation_marks(lang)
    if (listed := marks.sources.search(explained)) is not None:
        explained = explained[: listed.start() + 1]
    found: list[tuple[str, tuple[int, ...]]] = []
    for start, end in sentence_spans(explained, lang):
        sentence = explained[start:end]
        leading = len(sentence) - len(sentence.lstrip("*_`"))
        while (mark := marks.read.match(sentence, leading)) is not None:
            leading = _SPACE.match(sentence, mark.end()).end()  # type: ignore[union-attr]
        if leading and found:
            text, cited = found[-1]
            found[-1] = (text, (*cited, *_cited(sentence[:leading], marks)))
            sentence = sentence[leading:]
        text = " ".join(marks.read.sub(" ", sentence).split())
        if plain_words(text):
            found.append((text, _cited(sentence, marks)))
    return [(text, tuple(dict.fromkeys(cited))) for text, cited in found]


def citation_support(reply: str, passages: Sequence[str], lang: str) -> CitationSupport:
    """Return how far the passages that a reply cites support it (Gao et al., 2023, section 3: ALCE).

    ALCE asks a model of entailment. Here passages support a statement if together they hold 40% of its character
    sequences (4 characters; 2 in scripts without spaces) and all its numbers, which needs no model in any language, as
    long as statement and passage are in one. It tells whether a citation leads to a passage on what the statement says.
    It does not tell whether the statement is true of it: another name from the same passage is supported as well.

    A statement without a citation is not supported. A citation is needed if its sentence is supported, and either its
    passage alone supports it or the other ones do not.

    Args:
        reply: the model's answer, with citations ``[1]``, ``【١】``, ``[Dokument 1]`` (from 1) or ``<doc0>`` (from 0).
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
    unread = cites_unread(reply.partition("Explanation:")[2] or reply, lang)
    return CitationSupport(len(statements), supported, citations, needed, frozenset(held), unread)


def shared_content(statement: str, passage: str) -> float:
    """Return the share of a statement's character sequences that a passage holds, in 0..1; 0 if it lacks a number."""
    return _Content.of(statement).share([_Content.of(passage)])


@dataclass(frozen=True, slots=True)
class _Content:
    """The parts of a text that are compared: its character sequences, and its numbers by value.

    A number is the set of values that it may have: 1,500 is 1500 or 1.5, and 3,5 is 3.5. Digits between spaces (12 000)
    are one number in one of the ``forms`` of a text, and several in the other.
    """

    sequences: frozenset[str]
    forms: tuple[frozenset[frozenset[str]], ...]

    @classmethod
    def of(cls, text: str) -> _Content:
        sequences: set[str] = set()
        for unspaced, words in groupby(plain_words(text), is_character):
            run = ("" if unspaced else " ").join(["", *words, ""])
            size = min(_UNSPACED if unspaced else _SPACED, len(run))
            sequences.update(run[at : at + size] for at in range(len(run) - size + 1))
        plain = unicodedata.normalize("NFKC", spaced_digits(text))
        plain = _DIGIT.sub(lambda digit: str(unicodedata.decimal(digit[0])), plain)
        joined = spaces_joined(plain, None)
        return cls(frozenset(sequences), tuple(_values(form) for form in (plain, joined) if form is not None))

    def share(self, passages: Collection[_Content]) -> float:
        held = frozenset(chain.from_iterable(passage.sequences for passage in passages))
        values = frozenset(
            value for passage in passages for form in passage.forms for number in form for value in number
        )
        there = any(all(number & values for number in form) for form in self.forms)
        return len(self.sequences & held) / len(self.sequences) if there and self.sequences else 0.0

    def within(self, passages: Collection[_Content]) -> bool:
        return self.share(passages) >= LEAST_SHARED


def _values(text: str) -> frozenset[frozenset[str]]:
    """Return the numbers of a text with ASCII digits, each as the values that it may have, without sign and unit."""
    numbers = {number for piece in numbers_apart(text, None)[1::2] for number in FORM.findall(piece)}
    return frozenset(frozenset(value.lstrip("-0") for value in readings(number)) for number in numbers)


def _cited(text: str, marks: CitationMarks) -> tuple[int, ...]:
    """Return the passages that a text cites, from 0."""
    found = [mark[0] for mark in marks.read.finditer(text)]
    from_one = (
        int(digits) - 1 for mark in found if mark[0] != "<" for digits in re.findall(r"\d+", mark.split("](")[0])
    )
    from_zero = parse_citations(text, whole_response=True).inline
    return (*(number for number in from_one if number >= 0), *from_zero)
