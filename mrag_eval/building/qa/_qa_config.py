"""Settings of ``mrag-eval build qa``: question categories with their shares, and the number of questions per document.

The defaults are those of The Cross-Lingual Cost (Appendix A.2).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from mrag_eval.config import Block, validated
from mrag_eval.core import normalize_language
from mrag_eval.platform import OPTIONAL, ConfigError, read_yaml

Balance = Literal["pairs", "documents", "none"]


class Choice(Block):
    """A value of a category: its share, and the instruction to the model when it is drawn (``ask``)."""

    share: float = Field(gt=0)
    ask: str = ""


# The paper's categories: value -> its share, and the instruction to the writer.
_DEFAULTS: Mapping[str, Any] = read_yaml(Path(__file__).with_name("qa_categories.yaml"))
# The category that decides the language of a question.
LANGUAGE = "language"


class Passages(Block):
    """Passage size: ``tokens`` of ``tokenizer``. The index is cut so, and the tasks ``xlcost_own`` cut so, too."""

    tokens: int = Field(default=100, ge=1)
    tokenizer: Literal["cl100k_base", "model_free"] = "model_free"


class QaConfig(Block):
    """The file behind ``--settings``.

    ``categories`` maps a category to its values, each with a share (a number, or ``share`` and ``ask``). The shares of
    a category add up to 100 or to 1. ``language`` lists the languages of the questions; the default is the languages of
    the documents with equal shares. ``formulation``, ``similarity`` and ``question_type`` default to the paper's values
    and shares; ``null`` leaves one out.

    ``sample`` is the number of documents, drawn at random, that questions are written for, ``per_document`` each; all
    documents are indexed. ``keys`` names the fields of a document (id, text, title, lang). Documents with fewer than
    ``min_words`` words are left out. For documents longer than ``excerpt_words``, each question is written from an
    excerpt of whole sentences up to that length.

    ``balance`` selects the groups with equal numbers of questions: every pair of languages (``pairs``), every language
    of documents (``documents``, as in the paper), or nothing (``none``: all questions are kept).
    """

    categories: dict[str, dict[str, Choice]] = Field(default_factory=dict)
    per_document: int = Field(default=1, ge=1)
    sample: int | None = Field(default=None, ge=1)
    min_words: int = Field(default=20, ge=1)
    excerpt_words: int = Field(default=600, ge=20)
    balance: Balance = "pairs"
    seed: int = Field(default=0, ge=0)
    keys: dict[str, str] = Field(default_factory=dict)
    prompts: dict[str, str] = Field(default_factory=dict)
    passages: Passages = Passages()

    @field_validator("categories", mode="before")
    @classmethod
    def _with_defaults(cls, value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        given = {**_DEFAULTS, **value}
        return {name: _choices(name, listed) for name, listed in given.items() if listed is not None}

    @field_validator("categories")
    @classmethod
    def _shares_add_up(cls, value: dict[str, dict[str, Choice]]) -> dict[str, dict[str, Choice]]:
        for name, choices in value.items():
            if not choices:
                raise ValueError(f"{name}: no value is given")
            total = sum(choice.share for choice in choices.values())
            if not any(math.isclose(total, whole, rel_tol=1e-6) for whole in (1.0, 100.0)):
                raise ValueError(f"{name}: the shares add up to {total:g}, not to 100 (or 1)")
            mute = next((label for label, c in choices.items() if not c.ask and name != LANGUAGE), None)
            if mute is not None:
                raise ValueError(f"{name}.{mute}: 'ask', the instruction to the model, is missing")
        return value

    @model_validator(mode="before")
    @classmethod
    def _default_categories(cls, block: Any) -> Any:
        return {"categories": {}, **block} if isinstance(block, Mapping) else block


def _choices(name: str, listed: Any) -> Any:
    """Convert plain shares to choices with the built-in text, and languages to BCP 47."""
    if not isinstance(listed, Mapping):
        raise ValueError(f"{name}: expected values with their shares, got {type(listed).__name__}")
    out: dict[str, Any] = {}
    for label, choice in listed.items():
        key = str(label)
        if name == LANGUAGE:
            try:
                # YAML reads 'no' as false
                key = normalize_language("no" if label is False else key)
            except ConfigError as err:
                raise ValueError(f"{name}: {err.message}") from None
            if key in out:
                raise ValueError(f"{name}: '{key}' is given twice")
        block = dict(choice) if isinstance(choice, Mapping) else {"share": choice}
        known = _DEFAULTS.get(name, {}).get(key)
        out[key] = {"ask": known["ask"], **block} if known else block
    return out


def read_qa_config(path: Path | None) -> QaConfig:
    """Return the validated settings, or the defaults for None. Raises ConfigError naming file and key."""
    return QaConfig() if path is None else validated(QaConfig, read_yaml(path), str(path), joint=", ")


@dataclass(frozen=True, slots=True)
class QaDocument:
    """A document in the language drawn for it; ``versions`` are all that it is available in."""

    id: str
    lang: str
    title: str
    text: str
    versions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class QaQuestion:
    """A question to write on the ``excerpt`` of a document, and its texts once they are written.

    Attributes:
        id: of the question.
        document, doc_lang, title: id, language and title of the document.
        excerpt: the part of it that the question is written from.
        user_lang: the language to ask in.
        categories: the value drawn for each category.
        question, answer: in that language.
        corrected: whether a reviewer corrected the answer; None: not reviewed.
    """

    id: str
    document: str
    doc_lang: str
    title: str
    excerpt: str
    user_lang: str
    categories: Mapping[str, str]
    question: str = field(default="", metadata=OPTIONAL)
    answer: str = field(default="", metadata=OPTIONAL)
    corrected: bool | None = field(default=None, metadata=OPTIONAL)

    @property
    def traits(self) -> dict[str, str]:
        """Return the categories other than the language."""
        return {name: label for name, label in self.categories.items() if name != LANGUAGE}
