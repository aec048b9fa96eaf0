"""Documents with versions in several languages: parallel texts, and a corpus that keeps one version of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from mrag_eval.core import KEPT_LANGS, Passage, RagDoc
from mrag_eval.datasets._imbalance import Imbalance, imbalance_note, kept_versions
from mrag_eval.platform import DataError


@dataclass(frozen=True)
class Version:
    """A passage, with ``parallel_id`` for the document it is a version of; ``title`` and ``text`` as in the file."""

    document: str | None
    passage: Passage
    title: str
    text: str


def parallel_texts(versions: Sequence[Version]) -> list[dict[str, str]]:
    """Return texts and titles of the documents that have one passage in each of several languages."""
    out = []
    for members in _by_document(versions).values():
        by_language = {v.passage.lang: v for v in members}
        if len(by_language) == len(members) > 1:
            out.append({lang: v.text for lang, v in by_language.items()})
            if all(v.title for v in members):
                out.append({lang: v.title for lang, v in by_language.items()})
    return out


def _by_document(versions: Sequence[Version]) -> dict[str, list[Version]]:
    out: dict[str, list[Version]] = {}
    for version in versions:
        if version.document is not None:
            out.setdefault(version.document, []).append(version)
    return out


def imbalanced(
    docs: Sequence[RagDoc], corpus: Sequence[Passage], versions: Sequence[Version], block: Imbalance, seed: int
) -> tuple[list[RagDoc], list[Passage], str]:
    """Return questions and corpus with one language version of each document, and a note on the draw.

    ``relevant_ids`` of a dropped version are replaced by the document ids of the kept one. ``gold_doc_lang`` becomes
    the language of the kept relevant documents; if these are several or unknown it is None, and ``extra["kept_langs"]``
    lists them. Raises DataError for a document with a single version.
    """
    alone = next((v.passage.id for v in versions if v.document is None), None)
    if alone is not None:
        raise DataError(
            f"imbalance: document '{alone}' has no 'parallel_id', so it has one version and cannot be drawn",
            "give the versions of each document one parallel_id, or leave out data.imbalance",
        )
    members = _by_document(versions)
    languages = [list(dict.fromkeys(v.passage.lang for v in group)) for group in members.values()]
    kept = dict(zip(members, kept_versions(list(members), languages, block, seed), strict=True))
    document = {name: str(v.document) for v in versions for name in (v.passage.doc_id, v.passage.id)}
    stays = {v.passage.id for v in versions if v.passage.lang == kept[str(v.document)]}
    remaining = [passage for passage in corpus if passage.id in stays]
    names = {name for passage in remaining for name in (passage.id, passage.doc_id)}
    own = {
        key: tuple(dict.fromkeys(v.passage.doc_id for v in group if v.passage.id in stays))
        for key, group in members.items()
    }
    moved = []
    for doc in docs:
        relevant = dict.fromkeys(
            name for one in doc.relevant_ids for name in ((one,) if one in names else own[document[one]])
        )
        found = sorted({kept[document[name]] for name in relevant})
        gold = found[0] if len(found) == 1 else None
        extra = doc.extra if gold is not None else {**doc.extra, KEPT_LANGS: found}
        moved.append(replace(doc, relevant_ids=tuple(relevant), gold_doc_lang=gold, extra=extra))
    return moved, remaining, imbalance_note(list(kept.values()), block)
