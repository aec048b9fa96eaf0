"""The records that travel through the pipeline: passages, hits and questions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any


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
    """``text`` as it is searched and shown: behind its title, unless it begins with that or there is none."""
    return f"{title}. {text}" if title and not text.startswith(title) else text


@dataclass(frozen=True, slots=True)
class GivenPassage(Passage):
    """A passage that comes with the question itself (XRAG): ``is_gold`` marks a supporting one.

    ``original_lang`` is set where the text is a translation.
    """

    is_gold: bool = False
    date: str = ""
    original_lang: str | None = None


@dataclass(frozen=True, slots=True)
class Hit:
    """A retrieved passage. ``rank`` counts from 1; ``score`` is higher for better, whatever the retriever.

    ``original_lang`` is set where the text shown is a translation, ``original_text`` where the run translated it.
    ``critic`` holds the scores of an agents' loop, their ``total`` and the ``critique``.
    ``labels`` is what annotators said of it for this question.
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
        """JSON form for samples: optional fields are left out where they say nothing."""
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
        """Return the hit behind :meth:`to_dict`."""
        known = {part.name: value[part.name] for part in fields(cls) if part.name in value}
        return cls(**{"id": "", "lang": "", "text": "", "score": 0.0, "rank": 0, **known})


# In ``RagDoc.extra``, of a row whose documents were drawn: their languages, where these are not one.
KEPT_LANGS = "kept_langs"


@dataclass(frozen=True, slots=True)
class RagDoc:
    """One question of a benchmark, in the one schema every benchmark is read into.

    ``id`` is the row's own id, unique in the benchmark, and what runs are paired by. ``answers`` may be empty (then
    lexical metrics leave the row unscored). ``gold_choice`` indexes ``choices``. ``relevant_ids`` are the document
    (or passage) ids known to answer the question; with ``relevant_documents`` they are documents' alone, and a passage
    that happens to bear one of these ids is not meant. ``group_id`` ties versions of one question together (languages,
    territories): intervals resample groups, not rows. ``extra`` holds what only this benchmark has; a
    ``question_id`` there ties the versions of one question where the group is wider (a paragraph's questions).
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
    relevant_documents: bool = False
    group_id: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """The row as the harness logs it: JSON values only, empty fields left out, given passages not repeated."""
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
        for name in ("relevant_langs", "relevant_ids"):
            if getattr(self, name):
                row[name] = list(getattr(self, name))
        if self.extra:
            row["extra"] = dict(self.extra)
        return row

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> RagDoc:
        """Return the row behind :meth:`to_dict`, which has no given passages."""
        known = {part.name: value[part.name] for part in fields(cls) if part.name in value}
        lists = {name: tuple(found) for name, found in known.items() if isinstance(found, list)}
        return cls(**{**known, **lists})
