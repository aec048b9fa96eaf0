"""Retrieval for rows: the source of the block's mode, and the steps that all modes share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from mrag_eval import models
from mrag_eval.config import Agent, Retrieval
from mrag_eval.core import Failure, Hit, Kept, Passage, RagDoc, Retrieved, is_relevant, same_language, titled
from mrag_eval.datasets import Benchmark, Published
from mrag_eval.platform import ConfigError, content_key
from mrag_eval.retrieval._texts import PassageSource, hit_of, passages_by_id
from mrag_eval.retrieval.sources import source_for

# A hash of 16 hex digits as a share.
_WHOLE = 16.0**16


def retrieve(
    docs: Sequence[RagDoc],
    retrieval: Retrieval,
    *,
    corpus: list[Passage] | None = None,
    siblings: Sequence[RagDoc] | None = None,
    published: Published | None = None,
    agent: Agent | None = None,
    translator: models.Translator | None = None,
    use_cache: bool = True,
) -> list[Retrieved]:
    """Retrieve for all rows in one batch; the result is aligned with ``docs``.

    ``corpus`` holds the benchmark's own passages (``retrieval.corpus: benchmark``); ``siblings`` all rows of the
    benchmark, among which ``swap_docs`` finds partners; ``published`` the search results that come with it
    (``retrieval.corpus: published``); ``agent`` is the block of a loop; ``translator`` translates where the mode does
    (default: the one that is configured).
    """
    benchmark = Benchmark("", list(siblings or docs), corpus, published=published)
    source = source_for(retrieval, benchmark, agent, use_cache=use_cache)
    if translator is None:
        translator = translator_for(retrieval, docs)
    check_withholding(docs, retrieval)
    return as_shown(source.retrieve(docs, translator), docs, retrieval, translator, source)


def as_shown(
    found: Sequence[Retrieved],
    docs: Sequence[RagDoc],
    retrieval: Retrieval,
    translator: models.Translator | None,
    source: PassageSource,
) -> list[Retrieved]:
    """Return the rows with their passages as the prompt contains them: withheld, translated and shuffled if the block
    says so.
    """
    found = with_withheld(found, docs, retrieval, source)
    if translator is not None and (retrieval.documents_in != "none" or translates_given(docs)):
        found = with_translated_passages(found, docs, retrieval, translator)
    if retrieval.shuffle is None:
        return found
    out = []
    for row, doc in zip(found, docs, strict=True):
        # another order; the ranks remain those of the search
        rng = np.random.default_rng(int(content_key("order", retrieval.shuffle, doc.id)[:16], 16))
        out.append(replace(row, passages=tuple(row.passages[i] for i in rng.permutation(len(row.passages)))))
    return out


def translates_given(docs: Sequence[RagDoc]) -> bool:
    return any(passage.shown_in is not None for doc in docs for passage in doc.given_passages)


def translator_for(
    retrieval: Retrieval, docs: Sequence[RagDoc], parallel: Sequence[Mapping[str, str]] = ()
) -> models.Translator | None:
    """Return the translator of a block; None if it translates nothing, or only questions in English into English.

    ``parallel`` are the benchmark's own parallel texts. Raises ConfigError if no translator is configured.
    """
    if not retrieval.translates:
        if not translates_given(docs):
            return None
        needed_by = "data.english without a file of translations (data.translations)"
        return models.build_translator(retrieval.translator, needed_by=needed_by, parallel=parallel)
    into_english = retrieval.queries_in == "en" and retrieval.documents_in == "none"
    if docs and into_english and all(same_language(doc.query_lang, "en") for doc in docs):
        return None
    chosen = retrieval.query_translation or retrieval.document_translation
    what = "a choice of retrieval.query_translation or document_translation" if chosen else f"mode '{retrieval.mode}'"
    return models.build_translator(retrieval.translator, needed_by=what, parallel=parallel)


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


def check_withholding(docs: Sequence[RagDoc], retrieval: Retrieval) -> None:
    """Raise ConfigError if passages are to be withheld, and no row says which are relevant."""
    if retrieval.unanswerable is not None and not any(doc.findable for doc in docs):
        raise ConfigError(
            "retrieval.unanswerable: no row says which passages are relevant, so that none can be withheld",
            "give the rows 'relevant_ids', or leave the key out",
        )


def with_withheld(
    found: Sequence[Retrieved], docs: Sequence[RagDoc], retrieval: Retrieval, source: PassageSource
) -> list[Retrieved]:
    """Return the rows, of which a share is shown no relevant passage.

    The places that become free are filled with the next passages of the row's ranking, as far as it goes, so that the
    number of passages does not tell such rows apart. Seed and id decide whether a row is drawn, not the other rows.
    Rows without a known relevant passage are not drawn, nor those of which nothing would be shown.
    """
    if retrieval.unanswerable is None:
        return list(found)
    kept = [_others(row, doc) if _drawn(doc, retrieval) else ((), ()) for row, doc in zip(found, docs, strict=True)]
    texts = passages_by_id((place.id for _, more in kept for place in more), source)
    out = []
    for row, (left, more) in zip(found, kept, strict=True):
        hits = [replace(hit, rank=rank) for rank, hit in enumerate(left, 1)]
        hits += [hit_of(texts[place.id], place, rank) for rank, place in enumerate(more, len(hits) + 1)]
        out.append(replace(row, passages=tuple(hits) or row.passages, withheld=bool(hits)))
    return out


def _drawn(doc: RagDoc, retrieval: Retrieval) -> bool:
    place = int(content_key("withheld", retrieval.seed, doc.id)[:16], 16) / _WHOLE
    return doc.findable and place < (retrieval.unanswerable or 0.0)


def _others(row: Retrieved, doc: RagDoc) -> tuple[Sequence[Hit], Sequence[Kept]]:
    """Return the passages shown that are not relevant, and those of the ranking that take the place of the others."""
    hits = [hit for hit in row.passages if not is_relevant(hit, doc)]
    scores = {place.id: place.score for place in row.ranking}
    second = {} if row.reranked is None else {place.id: place.score for place in row.reranked.ranking}
    order = (row.reranked.ranking if row.reranked is not None else ()) or row.ranking
    shown = {hit.id for hit in row.passages}
    more = [place for place in order if place.id not in shown and not is_relevant(place, doc)]
    free = len(row.passages) - len(hits)
    return hits, [Kept(place.id, scores[place.id], second.get(place.id)) for place in more[:free]]
