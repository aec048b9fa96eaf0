"""Labelled rankings: a panel reads every retrieved passage, or n-grams or the page replace the panel.

If no document is known to answer a question (``judge.relevance.labels``), the ranking measures and the sources of
errors depend on these labels.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from mrag_eval import judging, models
from mrag_eval.config import Judge
from mrag_eval.core import Failure, Labels, LabelSource, Passage, Scored, failed_in, way_to
from mrag_eval.judging._recount import GRAM, OTHER_LANGUAGE, Answers, Decided, Recount, by_ngrams, ids_of, own_answers
from mrag_eval.platform import ConfigError
from mrag_eval.scoring import LabellingShare

# Below the harness's logger, so that its command shows our lines as it shows its own.
log = logging.getLogger(f"lm_eval.{__name__}")

NO_TRANSLATION = "no translation of the answer"
_SEARCHED = way_to("search")


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
    said = [Labels(labeller.by) for _ in rows]
    share = LabellingShare(labeller.by, block.threshold, GRAM)
    if labeller.panel is not None:
        said, share = _asked(rows, texts, labeller, labeller.panel)
    elif labeller.by == "page":
        share = LabellingShare(labeller.by)
    elif labeller.by == "translated":
        answers = map(own_answers, rows) if translator is None else _translated_answers(rows, translator)
        said = [
            by_ngrams(row, labeller.by, texts, own, block.threshold) for row, own in zip(rows, answers, strict=True)
        ]
    by = "" if translator is None else translator.label
    decided = [
        Decided(labels=labels, failures=[Failure("label", by, NO_TRANSLATION)] * (labels.fault == NO_TRANSLATION))
        for labels in said
    ]
    return Recount(labeller.block, texts).of(rows, decided), share


def _asked(
    rows: Sequence[Scored], texts: Mapping[str, Passage], labeller: Labeller, panel: judging.Panel
) -> tuple[list[Labels], LabellingShare]:
    """Return the panel's votes on rankings, uncounted, and one rank's share of the table of labels."""
    asked = [
        i
        for i, row in enumerate(rows)
        if row.doc.answers and row.ranking and failed_in(row.failures, _SEARCHED) is None
    ]
    shown = [[texts[name] for name in ids_of(rows[i])] for i in asked]
    cases = [judging.Case.of(rows[i].doc, rows[i].doc.answers, passages=p) for i, p in zip(asked, shown, strict=True)]
    found = panel.ask(judging.relevance_rubric(labeller.block.relevance.prompt), cases)
    said = [Labels("judge") for _ in rows]
    for place, i in enumerate(asked):
        votes = {seat: replies[place] for seat, replies in found.answers.items()}
        said[i] = Labels(
            "judge", votes={seat: str(v.error) if v.value is None else tuple(v.value) for seat, v in votes.items()}
        )
    return said, LabellingShare("judge", None, None, panel.model_names, found.ledgers, panel.take())


def _translated_answers(rows: Sequence[Scored], translator: models.Translator) -> list[Answers]:
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
