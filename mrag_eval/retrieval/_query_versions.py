"""Queries in other languages: search plans with translated queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mrag_eval import models
from mrag_eval.config import Retrieval
from mrag_eval.core import Failure, RagDoc, matching_languages, same_language
from mrag_eval.retrieval._plan import RowPlan, query_text


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
