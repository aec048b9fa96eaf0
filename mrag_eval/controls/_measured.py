"""The scores of the controls, row by row, by the metrics' own code."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from mrag_eval.controls._replies import Drawn, Reply, control_replies, in_form
from mrag_eval.core import RagDoc, Scored
from mrag_eval.scoring import METRICS, ControlRecord, LanguageRule, control_of, parse_answer, score_rows

# Longest texts of a class of lengths, in code points; those over the last are one more.
LENGTHS = (20, 50, 100)
# Replies that answer the question, and so come in the form that the prompt demands.
_ANSWERS = frozenset({"bare", "sentence", "other", "english"})
Verdicts = Callable[[Sequence[Scored]], Sequence[Scored]]


@dataclass(frozen=True)
class Checks:
    """What decides the scores of the controls, beside the rows.

    Attributes:
        metrics: the task's metrics.
        form: where the prompt demands the answer (:func:`mrag_eval.scoring.parse_answer`).
        language: the rule of ``correct_language``; its least length is left out, as lengths are told apart.
        verdicts: what is added to rows before they are scored: the language check of the ``judge`` block.
        panel: adds the verdicts of a panel, too; without it judged metrics have no controls.
    """

    metrics: Sequence[str]
    form: str = "plain"
    language: LanguageRule = field(default_factory=LanguageRule)
    verdicts: Verdicts = list
    panel: Verdicts | None = None

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


def reply_controls(docs: Sequence[RagDoc], drawn: Drawn, checks: Checks) -> dict[str, ControlRecord]:
    """Return what the controls that are replies score, and an option at random, by row id.

    Every reply is read and scored as a model's would be, for every metric that declares the control.
    """
    values: dict[str, dict[str, dict[str, float]]] = {doc.id: defaultdict(dict) for doc in docs}
    missing: dict[str, dict[str, str]] = {doc.id: {} for doc in docs}
    for control, replies in control_replies(checks.names, docs, drawn, checks.form).items():
        metrics = checks.of(control)
        if not metrics:
            continue
        for doc, reply in zip(docs, replies, strict=True):
            if reply.text is None:
                missing[doc.id][control] = reply.missing
        for row, text, found in _scored(control, metrics, docs, replies, checks):
            values[row][control].update(found)
            detected = {name: value for name, value in found.items() if control_of(name).kind == "language"}
            if detected and control != "foreign":
                values[row][f"{control}, {length_class(text)}"].update(detected)
    if metrics := checks.of("chance"):
        for doc in docs:
            if (chance := _chance(doc)) is not None:
                values[doc.id]["chance"].update(dict.fromkeys(metrics, chance))
    return {
        doc.id: ControlRecord({name: found for name, found in values[doc.id].items() if found}, missing[doc.id])
        for doc in docs
    }


def _scored(
    control: str, metrics: Sequence[str], docs: Sequence[RagDoc], replies: Sequence[Reply], checks: Checks
) -> Iterator[tuple[str, str, dict[str, float]]]:
    """Yield row id, text and scores of every row that the control has a reply to."""
    kept = [(doc, reply.text) for doc, reply in zip(docs, replies, strict=True) if reply.text is not None]
    rows = []
    for doc, text in kept:
        said = in_form(text, checks.form) if control in _ANSWERS else text
        answer = parse_answer(said, checks.form)
        row = Scored(doc, answer.text, tagged=answer.tagged, declined=answer.declined, form=checks.form)
        # a reply in the language of the references needs no translation
        rows.append(replace(row, translated=answer.text))
    # whatever the length: the classes of lengths show what a least length leaves out
    language = replace(checks.language, min_chars=None)
    verdicts = checks.panel if checks.panel is not None and any(map(_judged, metrics)) else checks.verdicts
    scores = score_rows(list(verdicts(rows)), metrics, searched=False, language=language)
    for (doc, text), score in zip(kept, scores, strict=True):
        yield doc.id, text, score.values


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
