"""Origin of a benchmark's rows, and the record that results keep of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mrag_eval.core import Passage, RagDoc
from mrag_eval.datasets._content import Part, combined_content, passages_hash
from mrag_eval.datasets._identity import PublishedRows, own_record, published_record


@dataclass(frozen=True)
class Origin:
    """What a loader knows of the origin of its rows.

    Attributes:
        place: where they were read: ``hub``, ``repository`` or ``url`` with ``revision`` and ``commit``, or ``path``
            with the SHA-256 of files. It is no part of their identity, nor is that of other files in ``beside``.
        settings: what decides them besides their content: seeds, counts, contents of a user's other files.
        parts: the published rows that were read; empty if they are the benchmark's rows as they are.
        documents: the published documents that the corpus is made of, by part; None if they come with the rows.
        corpus: what decides the corpus besides its content: how it was cut and drawn.
        beside: the places of other files; ``beside["corpus"]`` is that of the documents.
        own: whether the rows are the user's own.
    """

    place: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    parts: Mapping[str, Part] = field(default_factory=dict)
    documents: Mapping[str, Part] | None = None
    corpus: Mapping[str, Any] = field(default_factory=dict)
    beside: Mapping[str, Any] = field(default_factory=dict)
    own: bool = False


@dataclass(frozen=True)
class Declared:
    """What a benchmark's declaration tells of the rows of a ``data:`` block.

    Attributes:
        title: name of the benchmark, for people.
        rows: the published rows; None if nothing is known of them.
        documents: the published documents, likewise.
        pins: id of a source -> its declared revision.
        own: whether the rows are the user's own.
    """

    title: str
    rows: PublishedRows | None = None
    documents: PublishedRows | None = None
    pins: Mapping[str, str | None] = field(default_factory=dict)
    own: bool = False


def parts_of(origin: Origin, docs: Sequence[RagDoc]) -> Mapping[str, Part]:
    """Return the published rows that were read."""
    return origin.parts or {"": Part.of(docs)}


def source_record(
    origin: Origin, declared: Declared, docs: Sequence[RagDoc], corpus: Sequence[Passage] | None
) -> dict[str, Any]:
    """Return the record of rows and documents under ``configs.<task>.source``.

    Returns a JSON object::

        content    SHA-256 over the published rows that were read, before anything is drawn from them
        rows       their number
        questions  number of rows under the ``data:`` block
        published  what they are, compared with the published ones: status, reason, revision, rows
        corpus     the same of the passages that come with them, with the recipe that they were made by
        place      where everything was read; two runs that differ in it alone have measured the same rows

    and the loader's own keys.
    """
    own = declared.own or origin.own
    parts = parts_of(origin, docs)
    published = own_record() if own else published_record(parts, declared.rows, origin.place, declared.pins)
    return {
        "content": combined_content({name: part.content for name, part in parts.items()}),
        "rows": sum(part.rows for part in parts.values()),
        "questions": len(docs),
        "published": published,
        **origin.settings,
        **({"corpus": found} if (found := _corpus(origin, declared, corpus, published)) else {}),
        "place": {**origin.place, **origin.beside},
    }


def _corpus(
    origin: Origin, declared: Declared, corpus: Sequence[Passage] | None, rows: Mapping[str, Any]
) -> dict[str, Any]:
    documents = origin.documents
    if not corpus and documents is None:
        return {}
    if documents is None:
        published = dict(rows)
    else:
        place = origin.beside.get("corpus") or origin.place
        published = (
            own_record()
            if rows["status"] == "own"
            else published_record(documents, declared.documents, place, declared.pins)
        )
    counts = (
        {}
        if corpus is None
        else {"passages": len(corpus), "languages": dict(sorted(Counter(passage.lang for passage in corpus).items()))}
    )
    return {
        "recipe": "own" if published["status"] in ("own", "local") else declared.title,
        "content": passages_hash(corpus)
        if corpus
        else combined_content({k: v.content for k, v in (documents or {}).items()}),
        **counts,
        **origin.corpus,
        "published": published,
    }
