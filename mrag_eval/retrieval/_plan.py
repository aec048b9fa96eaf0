"""Search plans: the query and the languages of each row, by IR mode.

In every mode the generator sees the original question; only the retriever may see another one (``swap_docs`` searches
with the sibling's, others with a translation).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from mrag_eval import models
from mrag_eval.config import Retrieval
from mrag_eval.core import (
    KEPT_LANGS,
    Failure,
    RagDoc,
    is_language,
    matching_languages,
    normalize_language,
    same_language,
)
from mrag_eval.platform import DataError


@dataclass(frozen=True, slots=True)
class RowPlan:
    """The search for one row; if ``languages`` is None, every language of the corpus is searched.

    ``versions`` are further texts for the same scope: the query in other languages. ``langs`` are the languages of the
    text and of these. ``row`` and ``row_lang`` are id and language of the row whose question is the text; empty for a
    text that no row has. ``failures`` are the reasons for which a version, or an English text, is not there.
    """

    text: str
    languages: tuple[str, ...] | None = None
    candidates: tuple[str, ...] | None = None
    versions: tuple[str, ...] = ()
    row: str = ""
    row_lang: str = ""
    failures: tuple[Failure, ...] = ()
    langs: tuple[str, ...] = ()

    @property
    def texts(self) -> tuple[str, ...]:
        """Return all texts that are searched."""
        return (self.text, *self.versions)


@dataclass(frozen=True)
class Selection:
    """The rows that can be served.

    ``skipped`` rows lack a field that the mode needs (``why``). ``without_documents`` counts rows without published
    documents.
    """

    docs: list[RagDoc]
    skipped: list[RagDoc] = field(default_factory=list)
    why: str = ""
    without_documents: int = 0


def query_text(doc: RagDoc, retrieval: Retrieval) -> str:
    """Return the text that is embedded: the question, with its lettered options if the block asks for them."""
    if retrieval.query_text == "question" or not doc.choices:
        return doc.query
    return "\n".join([doc.query, *(f"{chr(65 + i)}. {choice}" for i, choice in enumerate(doc.choices))])


def swap_partners(docs: Sequence[RagDoc]) -> dict[str, RagDoc]:
    """Return, for ``swap_docs``, row id → the sibling whose documents it gets (BordIRlines, section 6.2).

    Siblings share ``group_id``. The partner is the row of the next claimant language, in claimant order and circular,
    leaving out languages without a row. Rows whose group has one such language, and control queries (a language of no
    claimant), have no partner and are absent from the result.
    """
    groups: dict[str, list[RagDoc]] = defaultdict(list)
    for doc in docs:
        if doc.group_id is None:
            raise DataError(
                f"row '{doc.id}' has no group_id, which mode swap_docs needs to find its sibling queries",
                "add group_id to the rows, or choose another retrieval.mode",
            )
        groups[doc.group_id].append(doc)
    partners: dict[str, RagDoc] = {}
    for members in groups.values():
        for doc in members:
            ring = _sibling_ring(doc, members)
            # scripts count: simplified and traditional Chinese belong to two claimants
            own = next(
                (
                    i
                    for i, d in enumerate(ring)
                    if normalize_language(d.query_lang) == normalize_language(doc.query_lang)
                ),
                None,
            )
            if own is not None and len(ring) > 1:
                partners[doc.id] = ring[(own + 1) % len(ring)]
    return partners


def _sibling_ring(doc: RagDoc, members: Sequence[RagDoc]) -> list[RagDoc]:
    order = doc.extra.get("claimant_langs") or doc.relevant_langs
    by_lang = {normalize_language(m.query_lang): m for m in members}
    by_lang[normalize_language(doc.query_lang)] = doc
    codes = dict.fromkeys(normalize_language(code) for code in order if code and is_language(code))
    return [by_lang[code] for code in codes if code in by_lang]


def plan_rows(docs: Sequence[RagDoc], retrieval: Retrieval, siblings: Sequence[RagDoc] | None = None) -> list[RowPlan]:
    """Return one :class:`RowPlan` per row.

    ``siblings`` are the rows among which ``swap_docs`` looks for partners (the whole benchmark; default ``docs``).
    Raises DataError naming the row and the field if a row lacks one that the mode needs.
    """
    plans = []
    for doc, asker in zip(docs, askers(docs, retrieval, siblings), strict=True):
        candidates = _candidates(doc) if retrieval.candidates == "row" else None
        scope = _scope(doc, retrieval.roles, asker, retrieval.mode, retrieval.pool)
        lang = asker.query_lang
        plans.append(
            RowPlan(query_text(asker, retrieval), scope, candidates, row=asker.id, row_lang=lang, langs=(lang,))
        )
    return plans


def askers(docs: Sequence[RagDoc], retrieval: Retrieval, siblings: Sequence[RagDoc] | None = None) -> list[RagDoc]:
    """Return the rows whose questions are searched: each row itself, or its partner (``swap_docs``)."""
    partners = swap_partners(siblings or docs) if retrieval.preset.swaps else {}
    return [partners.get(doc.id, doc) for doc in docs]


def with_partner(docs: Sequence[RagDoc], retrieval: Retrieval) -> Selection:
    """Return the rows that have a sibling, if the mode searches with its question; else all of them."""
    if not retrieval.preset.swaps:
        return Selection(list(docs))
    partners = swap_partners(docs)
    return Selection(
        [doc for doc in docs if doc.id in partners],
        [doc for doc in docs if doc.id not in partners],
        "no sibling in another language",
    )


def refuse_empty(docs: Sequence[RagDoc], plans: Sequence[RowPlan]) -> None:
    """Raise DataError for the first row without a text to search for."""
    for doc, plan in zip(docs, plans, strict=True):
        if not plan.text.strip():
            raise DataError(
                f"row '{doc.id}' has an empty query, which cannot be searched for", "correct the row, or leave it out"
            )


def scope_of(doc: RagDoc, roles: Sequence[str], mode: str) -> tuple[str, ...] | None:
    """Return the languages that ``roles`` (see ``LANGUAGE_ROLES``) name in one row; None is all.

    Raises DataError naming the row and a missing field that a role needs; ``mode`` is the name in the message.
    """
    return _scope(doc, roles, doc, mode)


def _candidates(doc: RagDoc) -> tuple[str, ...]:
    found = doc.extra.get("candidates")
    if not found:
        raise DataError(
            f"row '{doc.id}' names no candidate documents, which retrieval.candidates=row needs",
            "give the rows a list 'candidates' of document ids, or use retrieval.candidates=all",
        )
    return tuple(str(c) for c in found)


def _scope(
    doc: RagDoc, roles: Sequence[str], asker: RagDoc, mode: str, pool: tuple[str, ...] | None = None
) -> tuple[str, ...] | None:
    if "all" in roles:
        return pool
    codes: list[str] = []
    for role in roles:
        if role == "query":
            codes.append(doc.query_lang)
        elif role == "sibling":
            codes.append(asker.query_lang)
        elif role == "culture":
            codes.append(_needed(doc, doc.culture_lang, "culture_lang", mode))
        elif role == "gold":
            codes.append(_needed(doc, _drawn_gold(doc, mode), "gold_doc_lang", mode))
        elif role == "relevant":
            _needed(doc, doc.relevant_langs[0] if doc.relevant_langs else None, "relevant_langs", mode)
            codes.extend(doc.relevant_langs)
        else:
            codes.append(role)
    return tuple(dict.fromkeys(normalize_language(code) for code in codes))


def _drawn_gold(doc: RagDoc, mode: str) -> str | None:
    """Return the row's gold language. Raise DataError if ``data.imbalance``, which decides it, gave it none."""
    if doc.gold_doc_lang or KEPT_LANGS not in doc.extra:
        return doc.gold_doc_lang
    kept = doc.extra[KEPT_LANGS]
    another = "or run a task of another mode: mrag-eval tasks BENCHMARK"
    if not kept:
        raise DataError(
            f"row '{doc.id}' names no relevant document, so data.imbalance knows no gold_doc_lang for it, "
            f"which retrieval mode '{mode}' needs",
            f"add relevant_ids to the row, {another}",
        )
    raise DataError(
        f"row '{doc.id}' has relevant documents that data.imbalance kept in {' and '.join(kept)}, "
        f"and retrieval mode '{mode}' needs one language",
        f"take the row out of the questions' file, {another}",
    )


def _needed(doc: RagDoc, value: str | None, field: str, mode: str) -> str:
    if not value:
        raise DataError(
            f"row '{doc.id}' has no {field}, which retrieval mode '{mode}' needs",
            f"add {field} to the rows, or choose another retrieval.mode",
        )
    return value


def translated_plans(
    plans: Sequence[RowPlan],
    asked: Sequence[RagDoc],
    retrieval: Retrieval,
    held: Sequence[str],
    translator: models.Translator,
) -> list[RowPlan]:
    """Return the plans with queries translated as ``retrieval.query_translation`` says; aligned with ``plans``.

    ``en``: the English query takes the place of the original. ``each``: the original, and its translation into every
    language in the plan's scope (of those ``held`` by the corpus); a text that two languages share is searched once.
    Question and options are translated one by one and put together as in the original. All of it is one batch. A
    version of which a part has no translation is not searched, and the plan has its failure.
    """
    targets = [_targets(plan, doc, retrieval, held) for plan, doc in zip(plans, asked, strict=True)]
    asked_for = [
        (text, doc.query_lang, target)
        for doc, goals in zip(asked, targets, strict=True)
        for target in goals
        for text in _parts(doc, retrieval)
    ]
    texts, sources, goals = ([part[i] for part in asked_for] for i in range(3))
    done = iter(translator.translate(texts, sources, goals, kind="queries"))
    out = []
    for plan, doc, languages in zip(plans, asked, targets, strict=True):
        versions: dict[str, str] = {}
        failures: dict[Failure, None] = {}
        for language in languages:
            parts = [next(done) for _ in _parts(doc, retrieval)]
            failed = [part.failure for part in parts if part.failure is not None]
            failures |= dict.fromkeys(failed)
            if not failed:
                question, *options = (part.text for part in parts)
                version = replace(doc, query=question, choices=tuple(options) if options else doc.choices)
                versions.setdefault(query_text(version, retrieval), language)
        found = replace(plan, failures=tuple(failures))
        if retrieval.queries_in != "en":
            versions.pop(plan.text, None)
            out.append(replace(found, versions=tuple(versions), langs=(*plan.langs, *versions.values())))
        elif versions:
            ((text, language),) = versions.items()
            out.append(replace(found, text=text, langs=(language,)))
        else:
            out.append(found)
    return out


def _targets(plan: RowPlan, doc: RagDoc, retrieval: Retrieval, held: Sequence[str]) -> list[str]:
    if retrieval.queries_in == "en":
        return ["en"]
    scope = (
        held
        if plan.languages is None
        else sorted({c for code in plan.languages for c in matching_languages(code, held)})
    )
    return [code for code in scope if not same_language(code, doc.query_lang)]


def _parts(doc: RagDoc, retrieval: Retrieval) -> tuple[str, ...]:
    with_options = retrieval.query_text == "question+options" and doc.choices
    return (doc.query, *(doc.choices or ())) if with_options else (doc.query,)
