"""The scores of the controls, row by row, by the metrics' own code."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from mrag_eval import models
from mrag_eval.config import TRANSLATED
from mrag_eval.controls._replies import ControlPool, ControlReply, control_replies, in_form
from mrag_eval.core import ModelReply, RagDoc, RowScores, Scored
from mrag_eval.scoring import (
    METRICS,
    ControlRecord,
    Given,
    LanguageRule,
    Rules,
    control_of,
    in_common,
    read,
    row_scores,
)

# Longest texts of a class of lengths, in code points; those over the last are one more.
LENGTHS = (20, 50, 100)
# Rows whose references several controls ask for one after another, so that metrics still know how they read.
_TOGETHER = 500
# Replies that answer the question, and so come in the form that the prompt demands.
_ANSWERS = frozenset({"bare", "sentence", "inflected", "other", "english"})
Verdicts = Callable[[Sequence[Scored]], Sequence[Scored]]


@dataclass(frozen=True)
class ControlRule:
    """What decides the scores of the controls, beside the rows.

    Attributes:
        metrics: the task's metrics.
        form: where the prompt demands the answer (:func:`mrag_eval.scoring.parse_answer`).
        language: the rule of ``correct_language``; its least length is left out, as lengths are told apart.
        verdicts: what is added to rows before they are scored: the language check of the ``judge`` block.
        panel: adds the verdicts of a panel, too; without it judged metrics have no controls.
        checker: tells support; without it that has none.
    """

    metrics: Sequence[str]
    form: str = "plain"
    language: LanguageRule = field(default_factory=LanguageRule)
    verdicts: Verdicts = list
    panel: Verdicts | None = None
    checker: models.Checker | None = None

    def of(self, control: str) -> list[str]:
        """Return the metrics that a control is of."""
        return [
            name
            for name in dict.fromkeys(self.metrics)
            if name in METRICS and control in control_of(name).names and (self.panel is not None or not _judged(name))
        ]

    @property
    def names(self) -> tuple[str, ...]:
        """Return the controls of all metrics."""
        return tuple(dict.fromkeys(name for metric in self.metrics for name in control_of(metric).names))


def reply_controls(docs: Sequence[RagDoc], pool: ControlPool, rule: ControlRule) -> dict[str, ControlRecord]:
    """Return what the controls that are replies score, and an option at random, by row id.

    Every reply is read and scored as a model's would be, for every metric that declares the control.
    """
    found = {doc.id: _Row() for doc in docs}
    controls = control_replies(rule.names, docs, pool, rule.form)
    for start in range(0, len(docs), _TOGETHER):
        part = slice(start, start + _TOGETHER)
        for control, replies in controls.items():
            if metrics := rule.of(control):
                of_languages = {name for name in metrics if control_of(name).kind == "language"}
                scores = _scored(control, metrics, docs[part], replies[part], rule)
                for doc, reply, score in zip(docs[part], replies[part], scores, strict=True):
                    found[doc.id].add(control, reply, score, of_languages)
    if metrics := rule.of("chance"):
        for doc in docs:
            if (chance := _chance(doc)) is not None:
                found[doc.id].values["chance"] = dict.fromkeys(metrics, chance)
    return {
        row: ControlRecord(own.values, in_common(own.unscored), in_common(own.missing)) for row, own in found.items()
    }


@dataclass
class _Row:
    """Collect the record of a row."""

    values: dict[str, Mapping[str, float]] = field(default_factory=dict)
    unscored: dict[str, Mapping[str, str]] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)

    def add(self, control: str, reply: ControlReply, score: RowScores, of_languages: Collection[str]) -> None:
        if reply.text is None:
            self.missing[control] = reply.missing
            return
        values, unscored = score.values, score.unscored
        own = {name: value for name, value in values.items() if name in of_languages}
        if not any(map(str.isalpha, reply.text)):
            # what has no letters is in every language, which says nothing of a detector
            told = [name for name in (*values, *unscored) if name in of_languages]
            unscored = {**unscored, **dict.fromkeys(told, "the text has no letters")}
            values = {name: value for name, value in values.items() if name not in of_languages}
            own = {}
        if values:
            self.values[control] = in_common(values)
        if own and control != "foreign":
            self.values[f"{control}, {length_class(reply.text)}"] = in_common(own)
        if unscored:
            self.unscored[control] = in_common(unscored)


def _scored(
    control: str, metrics: Sequence[str], docs: Sequence[RagDoc], replies: Sequence[ControlReply], rule: ControlRule
) -> list[RowScores]:
    """Return the scores of a control's replies, aligned with them; none for a row without a reply."""
    # whatever the length: the classes of lengths show what a least length leaves out
    rules = Rules(metrics, rule.form, language=replace(rule.language, min_chars=None))
    rows, places, translated = [], [], bool({*TRANSLATED} & {*metrics})
    for place, (doc, reply) in enumerate(zip(docs, replies, strict=True)):
        if reply.text is not None:
            said = in_form(reply.text, rule.form) if control in _ANSWERS else reply.text
            row = read(Given(doc, reply=ModelReply(said)), rules).row
            # a reply in the language of the references needs no translation
            rows.append(replace(row, translated=row.answer) if translated else row)
            places.append(place)
    verdicts = rule.panel if rule.panel is not None and any(map(_judged, metrics)) else rule.verdicts
    out = [RowScores() for _ in docs]
    for place, score in zip(places, row_scores(verdicts(rows), rules), strict=True):
        out[place] = score
    return out


def _judged(metric: str) -> bool:
    return control_of(metric).kind == "judged"


def length_class(text: str) -> str:
    """Return the class of a text's length: ``up to 20 characters`` ... ``over 100 characters``."""
    least = next((most for most in LENGTHS if len(text) <= most), None)
    if least is None:
        return f"over {LENGTHS[-1]} characters"
    place = LENGTHS.index(least)
    return f"{LENGTHS[place - 1] + 1} to {least} characters" if place else f"up to {least} characters"


def _chance(doc: RagDoc) -> float | None:
    """Return the chance that an option drawn at random is right; equal options are right together."""
    if not doc.choices or doc.gold_choice is None:
        return None
    texts = [text.strip() for text in doc.choices]
    return texts.count(texts[doc.gold_choice]) / len(texts)
