"""Records of an XRAG build: articles, questions on pairs of them, and the rows of the set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from mrag_eval.building.review._review import Holds
from mrag_eval.platform import OPTIONAL

# A simple question, and its answer.
SimplePair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Headline:
    """An article without its text.

    Attributes:
        id, lang, title: of the article; the language is a base code.
        date: the day of its publication (ISO 8601).
        entities: the named entities of its title; None: not looked for yet.
    """

    id: str
    lang: str
    title: str
    date: str
    entities: tuple[str, ...] | None = field(default=None, metadata=OPTIONAL)


@dataclass(frozen=True, slots=True)
class Article:
    """An article; ``words`` is its length (:func:`~mrag_eval.building.steps._words.count_words`)."""

    id: str
    lang: str
    title: str
    text: str
    date: str
    words: int
    url: str = field(default="", metadata=OPTIONAL)


@dataclass(frozen=True, slots=True)
class LinkedQuestion:
    """A pair of articles, and the question on it as far as the steps have come.

    Attributes:
        setting: ``mono`` or ``multi``.
        lang: the language of the second article.
        first, second: ids of the articles; in a pair of two languages the English one is first.
        shared: the entities that connect them, in one language.
        event: the event that connects them, across two.
        days: between them.
        summaries: of both articles.
        copied: the share of each summary's word 4-grams that occur in its article.
        type: the type of question to write.
        pairs: simple pairs on each article, and then those selected for the question.
        question, answer: in English.
        unknown_to: the models that do not answer it without documents.
        holds: how much of the answer each article contains, by a model.
        crossdoc_type: XRAG's label of both.
        people_holds: the reviewers' labels of the articles.
        reviewed: whether people have looked at it.
        a_type: ``original`` or ``corrected``.
        distractors: ids of articles by language, best first.
        distractors_refused: the number that contained the answer.
        language: the language to ask in.
        translated_question, translated_answer: in that language.
    """

    id: str
    setting: str
    lang: str
    first: str
    second: str
    shared: tuple[str, ...] = field(default=(), metadata=OPTIONAL)
    event: str = field(default="", metadata=OPTIONAL)
    days: int = 0
    summaries: tuple[str, ...] = field(default=(), metadata=OPTIONAL)
    copied: tuple[float, ...] = field(default=(), metadata=OPTIONAL)
    type: str = field(default="", metadata=OPTIONAL)
    pairs: tuple[tuple[SimplePair, ...], ...] = field(default=(), metadata=OPTIONAL)
    question: str = field(default="", metadata=OPTIONAL)
    answer: str = field(default="", metadata=OPTIONAL)
    unknown_to: tuple[str, ...] | None = field(default=None, metadata=OPTIONAL)
    holds: tuple[Holds, ...] = field(default=(), metadata=OPTIONAL)
    crossdoc_type: int | None = field(default=None, metadata=OPTIONAL)
    people_holds: tuple[Holds | None, ...] = field(default=(), metadata=OPTIONAL)
    reviewed: bool = field(default=False, metadata=OPTIONAL)
    a_type: str = field(default="", metadata=OPTIONAL)
    distractors: Mapping[str, tuple[str, ...]] = field(default_factory=dict, metadata=OPTIONAL)
    distractors_refused: int | None = field(default=None, metadata=OPTIONAL)
    language: str = field(default="", metadata=OPTIONAL)
    translated_question: str = field(default="", metadata=OPTIONAL)
    translated_answer: str = field(default="", metadata=OPTIONAL)

    @property
    def ends(self) -> tuple[str, str]:
        """Return the ids of both articles."""
        return self.first, self.second


@dataclass(frozen=True, slots=True)
class XragRow:
    """A row in XRAG's file format."""

    id: str
    question: str
    answer: str
    en_question: str
    en_answer: str
    language: str
    q_type: str
    a_type: str
    crossdoc_type: int | None
    articles: tuple[str, ...]
    dates: tuple[str, ...]
    urls: tuple[str, ...]
    is_support: tuple[int, ...]
    article_order: tuple[int, ...]
    article_ids: tuple[str, ...]
    article_languages: tuple[str, ...]
    setting: str
