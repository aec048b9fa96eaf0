"""Records of the pipeline: passages, hits and questions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from mrag_eval.core._failures import Failure
from mrag_eval.platform import DataError

# Characters that end a line or a column of a TREC file, and others that no id has.
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def check_id(identifier: str, where: str) -> str:
    """Return an id of a question, passage or document; raise DataError if it holds a control character.

    A tab or a line end in an id would forge columns and lines of the rankings that other tools read.
    """
    if not identifier.isprintable() and CONTROL.search(identifier):
        raise DataError(
            f"{where}: the id {identifier!r} holds a tab, a line end or another control character",
            "give it an id without one",
        )
    return identifier


@dataclass(frozen=True, slots=True)
class Passage:
    """A unit of retrieval.

    ``id`` is unique in its corpus and stable across rebuilds; ``doc_id`` names the document it was cut from;
    ``lang`` is a BCP 47 code.
    """

    id: str
    lang: str
    text: str
    title: str = ""
    doc_id: str = ""


def titled(title: str, text: str) -> str:
    """Return ``text`` as searched and shown: preceded by its title, unless it begins with it or has none."""
    return f"{title}. {text}" if title and not text.startswith(title) else text


@dataclass(frozen=True, slots=True)
class GivenPassage(Passage):
    """A passage supplied with the question (XRAG); ``is_gold`` marks a supporting one.

    ``original_lang`` is set if the text is a translation, ``shown_in`` if the run's translator has to make one, and
    ``failure`` if the benchmark's file should hold a translation and does not.
    """

    is_gold: bool = False
    date: str = ""
    original_lang: str | None = None
    shown_in: str | None = None
    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class Hit:
    """A retrieved passage. ``rank`` counts from 1; a higher ``score`` is better for every retriever.

    ``original_lang`` is set if the text shown is a translation, ``original_text`` if the run translated it. ``critic``
    holds the scores of an agents' loop, their ``total`` and the ``critique``. ``labels`` are the annotators' labels for
    this question.
    """

    id: str
    lang: str
    text: str
    score: float
    rank: int
    title: str = ""
    doc_id: str = ""
    rerank_score: float | None = None
    original_text: str | None = None
    original_lang: str | None = None
    is_gold: bool | None = None
    date: str = ""
    critic: Mapping[str, Any] | None = None
    labels: Mapping[str, str] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form for samples; empty optional fields are left out."""
        out: dict[str, Any] = {
            "id": self.id,
            "lang": self.lang,
            "title": self.title,
            "text": self.text,
            "doc_id": self.doc_id,
            "score": self.score,
            "rank": self.rank,
        }
        for name in ("rerank_score", "original_text", "original_lang", "is_gold", "critic"):
            value = getattr(self, name)
            if value is not None:
                out[name] = value
        if self.date:
            out["date"] = self.date
        if self.labels:
            out["labels"] = dict(self.labels)
        return out

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Hit:
        """Return the hit that :meth:`to_dict` was called on."""
        known = {part.name: value[part.name] for part in fields(cls) if part.name in value}
        return cls(**{"id": "", "lang": "", "text": "", "score": 0.0, "rank": 0, **known})


# Key in ``RagDoc.extra`` for the languages of drawn documents, set if there are several.
KEPT_LANGS = "kept_langs"
# Key in ``RagDoc.extra`` for whether the passages that come with a row answer it; a row without the key leaves it open.
ANSWERABLE = "answerable"
# Key for why the detected language of a question is not relied on.
UNSURE_LANGUAGE = "unsure_language"


@dataclass(frozen=True, slots=True)
class RagDoc:
    """One question of a benchmark, in the schema that every benchmark is read into.

    ``id`` is unique in the benchmark and pairs runs. ``answers`` may be empty (then lexical metrics leave the row
    unscored). ``gold_choice`` indexes ``choices``. ``relevant_ids`` are the document (or passage) ids known to answer
    the question, from a stated grade on; ``grades`` are those of all judged to be of some use, if they differ.
    With ``relevant_documents`` relevant ids are document ids only, and a passage with the same id does not match.
    ``absent_ids`` are those that the searched corpus does not hold, as far as is known.
    ``group_id`` links versions of one question (languages, territories): intervals resample groups, not rows. ``extra``
    holds fields that only this benchmark has; a ``question_id`` there links the versions of one question if the group
    is wider (a paragraph's questions).
    """

    id: str
    query: str
    query_lang: str
    answers: tuple[str, ...] = ()
    choices: tuple[str, ...] | None = None
    gold_choice: int | None = None
    given_passages: tuple[GivenPassage, ...] = ()
    gold_doc_lang: str | None = None
    culture_lang: str | None = None
    relevant_langs: tuple[str, ...] = ()
    relevant_ids: tuple[str, ...] = ()
    grades: Mapping[str, int] = field(default_factory=dict)
    relevant_documents: bool = False
    absent_ids: tuple[str, ...] = ()
    group_id: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def findable(self) -> bool:
        """Return whether a relevant document is known that the corpus may hold."""
        return bool({*self.relevant_ids} - {*self.absent_ids})

    def to_dict(self) -> dict[str, Any]:
        """Return the row as the harness logs it: JSON values, without empty fields and without given passages."""
        row: dict[str, Any] = {
            "id": self.id,
            "query": self.query,
            "query_lang": self.query_lang,
            "answers": list(self.answers),
        }
        if self.choices is not None:
            row |= {"choices": list(self.choices), "gold_choice": self.gold_choice}
        for name in ("gold_doc_lang", "culture_lang", "group_id"):
            if getattr(self, name) is not None:
                row[name] = getattr(self, name)
        for name in ("relevant_langs", "relevant_ids", "absent_ids"):
            if getattr(self, name):
                row[name] = list(getattr(self, name))
        if self.grades:
            row["grades"] = dict(self.grades)
        if self.extra:
            row["extra"] = dict(self.extra)
        return row

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> RagDoc:
        """Return the row that :meth:`to_dict` was called on, without given passages and ``relevant_documents``."""
        known = {part.name: value[part.name] for part in fields(cls) if part.name in value}
        lists = {name: tuple(found) for name, found in known.items() if isinstance(found, list)}
        return cls(**{**known, **lists})
