"""Labelled rankings: a panel reads every retrieved passage, or n-grams or the page replace the panel.

If no document is known to answer a question (``judge.relevance.labels``), the ranking measures and the sources of
errors depend on these labels.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from mrag_eval import judging, metrics, models
from mrag_eval.config import Judge
from mrag_eval.core import (
    PAGE,
    Failure,
    Labels,
    LabelSource,
    Passage,
    Scored,
    failed_in,
    same_language,
    way_to,
    why_undecided,
)
from mrag_eval.platform import ConfigError
from mrag_eval.scoring import NO_ANSWERS, LabellingShare

# Below the harness's logger, so that its command shows our lines as it shows its own.
log = logging.getLogger(f"lm_eval.{__name__}")

OTHER_LANGUAGE = "the lexical proxy compares texts of one language, and answer and document are in two"
NO_PAGE = "the page that answers is not known"
NO_TRANSLATION = "no translation of the answer"
_SEARCHED = way_to("search")
# n of the n-grams by which a passage must contain the answer.
_N = 3


@dataclass(frozen=True)
class Labeller:
    """The labeller of a task's rankings: ``panel`` if ``by`` is ``judge``."""

    by: LabelSource
    block: Judge
    panel: judging.Panel | None = None

    def check(self) -> None:
        """Check the panel as :meth:`mrag_eval.judging.Panel.check` does."""
        if self.panel is not None:
            self.panel.check()


def labeller_for(block: Judge) -> Labeller | None:
    """Return the labeller that a judge block asks for; None if relevance is known by ids.

    ``auto`` takes the panel, and without one, after a warning, the proxy. Raises ConfigError for a prompt that does not
    exist, and if ``judge`` is asked for and none is configured.
    """
    source = block.relevance.labels
    if source == "ids":
        return None
    if source in ("proxy", "translated", "page"):
        return Labeller(source, block)
    judging.relevance_rubric(block.relevance.prompt)
    panel = judging.build_panel(block)
    if panel is not None:
        return Labeller("judge", block, panel)
    if source == "judge":
        raise ConfigError(
            "judge.relevance.labels is 'judge', but no judge is configured: 'judges' in mrag.yaml",
            f"{judging.EXAMPLE}\n    or, a rough guess within one language: --metadata judge.relevance.labels=proxy",
        )
    _warn_once()
    return Labeller("proxy", block)


@lru_cache(maxsize=1)
def _warn_once() -> None:
    """Log a warning once for all the tasks of a run."""
    log.warning(
        "no judge is configured: relevance is guessed by character n-grams, within one language, and the measures that "
        "rest on it end in _proxy; for rows across languages set judge.relevance.labels=translated (with a translator) "
        "or page (xlcost_travel), or name a judge under 'judges' in mrag.yaml (or $MRAG_CONFIG):\n    %s",
        judging.EXAMPLE,
    )


def labelled(
    rows: Sequence[Scored],
    texts: Mapping[str, Passage],
    labeller: Labeller,
    translator: models.Translator | None = None,
) -> tuple[list[Scored], LabellingShare]:
    """Return the rows with labels for their whole ranking, and one rank's share of the table of labels.

    ``texts`` holds every ranked passage by id. Rows without a reference answer stay unlabelled, with that reason. If
    n-grams are compared, so do rows whose document is in another language than their answer, unless the answer is
    translated.
    """
    block = labeller.block.relevance
    if labeller.panel is not None:
        return _by_panel(rows, texts, labeller, labeller.panel)
    if labeller.by == "page":
        found = [by_page(row) for row in rows]
        share = LabellingShare(labeller.by)
    else:
        answers = [own_answers(row) for row in rows]
        if translator is not None and labeller.by == "translated":
            answers = _translated_answers(rows, translator)
        found = [by_ngrams(row, texts, labeller, own) for row, own in zip(rows, answers, strict=True)]
        share = LabellingShare(labeller.by, block.threshold, _N)
    by = "" if translator is None else translator.label
    return [
        replace(row, labels=labels, failures=(*row.failures, *_untranslated(labels, by)))
        for row, labels in zip(rows, found, strict=True)
    ], share


def _untranslated(labels: Labels, translator: str) -> list[Failure]:
    return [Failure("label", translator, NO_TRANSLATION)] if labels.fault == NO_TRANSLATION else []


def _by_panel(
    rows: Sequence[Scored], texts: Mapping[str, Passage], labeller: Labeller, panel: judging.Panel
) -> tuple[list[Scored], LabellingShare]:
    asked = [
        i
        for i, row in enumerate(rows)
        if row.doc.answers and row.ranking and failed_in(row.failures, _SEARCHED) is None
    ]
    answers = panel.ask(
        judging.relevance_rubric(labeller.block.relevance.prompt), [_case(rows[i], texts) for i in asked]
    )
    found = [Labels("judge", _ids(row), fault=None if row.doc.answers else NO_ANSWERS) for row in rows]
    failures = [row.failures for row in rows]
    for place, i in enumerate(asked):
        votes = {seat: replies[place] for seat, replies in answers.answers.items()}
        found[i] = counted_labels(_ids(rows[i]), votes, tie=False if labeller.block.tie == "incorrect" else None)
        if found[i].fault is not None:
            failed = {seat: vote.error for seat, vote in votes.items() if vote.error is not None}
            failures[i] += tuple(Failure.of("label", seat, error) for seat, error in failed.items())
    share = LabellingShare("judge", models=panel.model_names, ledger=answers.ledgers)
    return [
        replace(row, labels=labels, failures=its) for row, labels, its in zip(rows, found, failures, strict=True)
    ], share


def _ids(row: Scored) -> tuple[str, ...]:
    return tuple(place.id for place in row.ranking)


def _case(row: Scored, texts: Mapping[str, Passage]) -> judging.Case:
    return judging.Case.of(row.doc, row.doc.answers, passages=[texts[name] for name in _ids(row)])


def counted_labels(
    ids: tuple[str, ...], votes: Mapping[str, models.Answered[list[int]]], *, tie: bool | None
) -> Labels:
    """Count votes: a passage is relevant if more than half of the panel lists it.

    A passage without a majority for or against it leaves the row unlabelled.
    """
    said = {
        seat: str(vote.reason) if vote.value is None else tuple(sorted(set(vote.value))) for seat, vote in votes.items()
    }
    verdicts = [
        metrics.majority_vote(
            [None if isinstance(listed, str) else number in listed for listed in said.values()], tie=tie
        )
        for number in range(1, len(ids) + 1)
    ]
    if None in verdicts:
        why = why_undecided(sum(isinstance(listed, str) for listed in said.values()), len(said))
        return Labels("judge", ids, fault=f"relevance: {why}", votes=said)
    relevant = frozenset(name for name, verdict in zip(ids, verdicts, strict=True) if verdict)
    return Labels("judge", ids, relevant, votes=said)


def by_page(row: Scored) -> Labels:
    """Label by page: relevant are all passages of the page that the row names."""
    page, ids = row.doc.extra.get(PAGE), _ids(row)
    if page is None:
        return Labels("page", ids, fault=NO_PAGE)
    return Labels("page", ids, frozenset(place.id for place in row.ranking if place.doc_id == page))


# Reference answers to compare with passages, and their language; or the reason why a row has no such answers.
_Answers = tuple[tuple[str, ...], str] | str


def own_answers(row: Scored) -> _Answers:
    """Return the answers that passages in their language may hold, or the reason why there are none."""
    doc = row.doc
    if not doc.answers:
        return NO_ANSWERS
    if doc.gold_doc_lang is not None and not same_language(doc.query_lang, doc.gold_doc_lang):
        return OTHER_LANGUAGE
    return doc.answers, doc.query_lang


def _translated_answers(rows: Sequence[Scored], translator: models.Translator) -> list[_Answers]:
    """Return the answers in the language of the row's document, all translated in one batch."""
    out = [own_answers(row) for row in rows]
    asked = [(i, answer) for i, own in enumerate(out) if own == OTHER_LANGUAGE for answer in rows[i].doc.answers]
    done = translator.translate(
        [answer for _, answer in asked],
        [rows[i].doc.query_lang for i, _ in asked],
        [str(rows[i].doc.gold_doc_lang) for i, _ in asked],
        kind="answers",
    )
    kept: dict[int, list[str]] = {}
    for (i, _), found in zip(asked, done, strict=True):
        kept.setdefault(i, []).extend([found.text] if found.is_translation else [])
    for i, texts in kept.items():
        out[i] = (tuple(texts), str(rows[i].doc.gold_doc_lang)) if texts else NO_TRANSLATION
    return out


def by_ngrams(row: Scored, texts: Mapping[str, Passage], labeller: Labeller, own: _Answers) -> Labels:
    """Label by n-grams: relevant passages are in the answer's language and hold at least that share of its n-grams."""
    from mrag_eval.metrics import char_ngram_recall

    ids = _ids(row)
    if isinstance(own, str):
        return Labels(labeller.by, ids, fault=own)
    answers, lang = own

    def holds(passage: Passage) -> bool:
        recall = char_ngram_recall(passage.text, list(answers), n=_N, normalize="unicode", lang=lang)
        return bool(passage.lang) and same_language(passage.lang, lang) and recall >= labeller.block.relevance.threshold

    return Labels(labeller.by, ids, frozenset(name for name in ids if holds(texts[name])))
