"""Translated passages: the texts shown if the documents are translated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mrag_eval import models
from mrag_eval.config import Retrieval
from mrag_eval.core import Failure, Hit, RagDoc, Retrieved, titled


def with_translated_passages(
    found: Sequence[Retrieved], docs: Sequence[RagDoc], retrieval: Retrieval, translator: models.Translator
) -> list[Retrieved]:
    """Return the rows with their passages in English or in the row's language; rankings do not change.

    If the block translates no documents, only given passages with ``shown_in`` are translated.
    A translated passage keeps its original in ``original_text`` and ``original_lang``. Each passage is translated once,
    however many rows it is shown for. Without a translation, the passage is shown as it is, and each row that it is
    shown for has the failure.
    """
    shown = [
        (hit, target)
        for row, doc in zip(found, docs, strict=True)
        for hit, target in zip(row.passages, _targets(row, doc, retrieval.documents_in), strict=True)
        if target is not None
    ]
    texts = [part for hit, _ in shown for part in _parts(hit)]
    sources = [hit.lang for hit, _ in shown for _ in _parts(hit)]
    targets = [target for hit, target in shown for _ in _parts(hit)]
    done = iter(translator.translate(texts, sources, targets, kind="documents"))
    out = []
    for row, doc in zip(found, docs, strict=True):
        hits: list[Hit] = []
        failures: dict[Failure, None] = dict.fromkeys(row.failures)
        for hit, target in zip(row.passages, _targets(row, doc, retrieval.documents_in), strict=True):
            parts = [next(done) for _ in _parts(hit)] if target is not None else []
            failed = _failures(parts)
            failures |= dict.fromkeys(failed)
            hits.append(_shown(hit, parts) if parts and not failed else hit)
        out.append(replace(row, passages=tuple(hits), failures=tuple(failures)))
    return out


def _failures(parts: Sequence[models.Translation]) -> list[Failure]:
    """Return why a passage is not translated.

    A title in another language is none: it may be a name, which stays as it is.
    """
    text, title = parts[:1], (part for part in parts[1:] if part.outcome != "wrong_language")
    return [part.failure for part in (*text, *title) if part.failure is not None]


def _targets(row: Retrieved, doc: RagDoc, documents_in: str) -> list[str | None]:
    """Return the language into which each passage is translated, None for one that is shown as it is."""
    if documents_in == "none":
        wanted = {passage.id: passage.shown_in for passage in doc.given_passages}
        return [wanted.get(hit.id) for hit in row.passages]
    return ["en" if documents_in == "en" else doc.query_lang] * len(row.passages)


def _parts(hit: Hit) -> tuple[str, ...]:
    """Return the text, and separately the title, which may also precede the text."""
    return (_body(hit), hit.title) if hit.title else (hit.text,)


def _body(hit: Hit) -> str:
    in_front = titled(hit.title, "")
    return hit.text[len(in_front) :] if hit.title and hit.text.startswith(in_front) else hit.text


def _shown(hit: Hit, parts: Sequence[models.Translation]) -> Hit:
    text, *title = parts
    if not text.is_translation:
        return hit
    heading = title[0].text if title else ""
    return replace(
        hit,
        text=titled(heading, text.text) if _body(hit) != hit.text else text.text,
        title=heading,
        lang=text.lang,
        original_text=hit.text,
        original_lang=hit.original_lang or hit.lang,
    )
