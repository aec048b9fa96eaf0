"""A finding: a record from which its sentence follows, and the form that each output gives it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from textwrap import wrap
from typing import Any

from mrag_eval.core import interval_text, p_text, points, score_text
from mrag_eval.metrics import Estimate
from mrag_eval.platform import read_yaml, to_json
from mrag_eval.scoring import scale_of

# Findings that an output opens with.
MOST = 5


@cache
def sentences() -> Mapping[str, Any]:
    """Return ``questions`` (kind -> question, and ids on the page that answer it) and ``sentences`` by template."""
    found: Mapping[str, Any] = read_yaml(Path(__file__).with_name("sentences.yaml"))
    return found


@dataclass(frozen=True, slots=True)
class Number:
    """A figure of a finding in the unit of its metric, with the 95% interval, the rows and the p-value that it has."""

    value: float
    metric: str
    low: float | None = None
    high: float | None = None
    n: int | None = None
    p: float | None = None

    @classmethod
    def of(cls, found: Estimate, metric: str, p: float | None = None) -> Number:
        """Return the figure of an estimate that has a value."""
        assert found.value is not None
        return cls(found.value, metric, found.low, found.high, found.n or None, p)

    def __format__(self, form: str) -> str:
        """Return the figure with its interval, its ``value`` alone, its ``size``, ``signed`` as a difference, or its
        ``p``.
        """
        scale = scale_of(self.metric)
        if form == "p":
            return p_text(self.p)
        if form == "signed":
            return f"{points(self.value, '+', scale)} {interval_text(self.low, self.high, scale)}".strip()
        if form in ("value", "size"):
            return points(abs(self.value) if form == "size" else self.value, scale=scale)
        return score_text(self.value, self.low, self.high, scale=scale.factor)


@dataclass(frozen=True)
class Finding:
    """One thing that runs show: the figures and words of its sentence, and the ``subjects`` that it is about.

    ``kind`` is the question that it answers, ``template`` its sentence (:func:`sentences`), ``test`` the test behind it
    (empty if it only describes), ``rows`` what its rows have in common, and ``next`` the command that shows more of it.
    """

    kind: str
    template: str
    words: Mapping[str, str]
    numbers: Mapping[str, Number] = field(default_factory=dict)
    subjects: Sequence[str] = ()
    test: str = ""
    rows: Mapping[str, Any] = field(default_factory=dict)
    next: str = ""

    @property
    def sentence(self) -> str:
        """Return what the record says."""
        return sentences()["sentences"][self.template].format_map({**self.words, **self.numbers})

    def to_dict(self) -> dict[str, Any]:
        """Return the record as JSON values, with its question and sentence."""
        question, *_ = sentences()["questions"][self.kind]
        return {"question": question, "sentence": self.sentence, **to_json(self)}


def finding_lines(found: Sequence[Finding], width: int | None = None) -> list[str]:
    """Return the sentences, within a width."""
    out: list[str] = []
    for finding in found:
        # "p < .05" stays on its line
        whole = re.sub(r"(?<=\bp) (?=[<.])|(?<=<) (?=\.)", "\N{NO-BREAK SPACE}", finding.sentence)
        lines = wrap(whole, width, break_on_hyphens=False) if width else [whole]
        out += [line.replace("\N{NO-BREAK SPACE}", " ") for line in lines]
    return out


def with_findings(found: Sequence[Finding], text: str, form: str, width: int | None = None) -> str:
    """Return tables as text in a form, ``md`` or ``json``, opened by what was found."""
    if not found:
        return text
    if form == "json":
        head = {"id": "findings", "title": "What was found", "findings": [finding.to_dict() for finding in found]}
        return json.dumps([head, *json.loads(text)], ensure_ascii=False, indent=2)
    # who reads a file sees a list
    lines = [f"- {line}" for line in finding_lines(found)] if width is None else finding_lines(found, width)
    return "\n".join(["### What was found", "", *lines, "", text])
