"""Retrieved rows as JSON that reads back unchanged: every score to its last digit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mrag_eval.core import Failure, Hit, RagDoc, Ranked, Reranking, Retrieved, Trace
from mrag_eval.platform import content_key, from_json, to_json

_FIX = "retrieve again with --overwrite"


def row_hash(doc: RagDoc) -> str:
    """Return 16 hex digits over every field of a row that retrieval may read, which excludes its reference answers."""
    given = [
        [p.id, p.lang, p.title, p.text, p.is_gold, p.date, p.original_lang, *filter(None, [p.shown_in])]
        for p in doc.given_passages
    ]
    parts: list[Any] = [
        doc.id,
        doc.query,
        doc.query_lang,
        doc.choices,
        doc.gold_doc_lang,
        doc.culture_lang,
        doc.relevant_langs,
    ]
    parts += [doc.relevant_ids, doc.relevant_documents, doc.group_id, dict(doc.extra), given]
    return content_key(*parts)[:16]


def dataset_hash(hashes: Sequence[str]) -> str:
    """Return one hash over the rows' hashes, whatever their order."""
    return content_key(sorted(hashes))


def as_record(doc: RagDoc, found: Retrieved) -> dict[str, Any]:
    """Return one line of a run folder; empty fields are left out."""
    out: dict[str, Any] = {"id": doc.id, "row": row_hash(doc), "passages": [hit.to_dict() for hit in found.passages]}
    if found.ranking:
        out["ranking"] = _places(found.ranking)
    if found.searchable:
        out["searchable"] = dict(found.searchable)
    if found.queries:
        out["queries"] = list(found.queries)
    if found.reranked is not None:
        second = found.reranked
        out["reranked"] = {"ranking": _places(second.ranking), "windows": second.windows, "repaired": second.repaired}
        if second.fault is not None:
            out["reranked"]["fault"] = second.fault
    if found.trace is not None:
        out["trace"] = found.trace.to_dict()
    if found.failures:
        out["failures"] = to_json(found.failures)
    if found.withheld is not None:
        out["withheld"] = found.withheld
    return out


def from_record(record: Mapping[str, Any]) -> Retrieved:
    """Return the record that :func:`as_record` was given.

    Raises KeyError, TypeError, ValueError or DataError for an invalid line, whoever wrote it.
    """
    reranked = None
    if "reranked" in record:
        second = record["reranked"]
        reranked = Reranking(_ranking(second["ranking"]), second.get("fault"), second["windows"], second["repaired"])
    return Retrieved(
        tuple(_hit(hit) for hit in record["passages"]),
        _ranking(record.get("ranking", ())),
        {_text(lang): int(n) for lang, n in record.get("searchable", {}).items()},
        tuple(_text(query) for query in record.get("queries", ())),
        reranked,
        Trace.from_dict(record["trace"], f"trace of row '{record['id']}'") if "trace" in record else None,
        from_json(tuple[Failure, ...], record.get("failures", ()), f"failures of row '{record['id']}'", _FIX),
        None if record.get("withheld") is None else bool(record["withheld"]),
    )


def _places(ranking: Sequence[Ranked]) -> list[list[Any]]:
    return [[place.id, place.doc_id, place.lang, place.score] for place in ranking]


def _ranking(places: Sequence[Sequence[Any]]) -> tuple[Ranked, ...]:
    return tuple(Ranked(_text(name), _text(doc), _text(lang), _score(score)) for name, doc, lang, score in places)


def _hit(value: Mapping[str, Any]) -> Hit:
    hit = Hit.from_dict(value)
    for text in (
        hit.id,
        hit.lang,
        hit.text,
        hit.title,
        hit.doc_id,
        hit.date,
        hit.original_text or "",
        hit.original_lang or "",
    ):
        _text(text)
    _score(hit.score)
    if hit.rerank_score is not None:
        _score(hit.rerank_score)
    if not isinstance(hit.rank, int):
        raise TypeError(f"a rank is {hit.rank!r:.40}")
    return hit


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r:.40} is no text")
    return value


def _score(value: Any) -> float:
    if not isinstance(value, int | float):
        raise TypeError(f"{value!r:.40} is no score")
    return value
