"""Classifiers of entailment (natural language inference)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mrag_eval.core import Claim, ClaimVerdict, Span
from mrag_eval.models.grounding._checker import Asked
from mrag_eval.models.grounding._pairs import PairClassifier, WindowPair, WindowRead

# What a label says of a claim, in the order in which labels are read. The first that a window has counts.
_SAYS: Mapping[str, ClaimVerdict] = {"entailment": "supported", "contradiction": "contradicted", "neutral": "not_found"}


class EntailmentClassifier(PairClassifier):
    """A classifier of entailment: a window of a passage is the premise, a claim the hypothesis.

    A window says what its likeliest label says. A claim is supported if one window of one passage entails it, whatever
    others say; else it is contradicted if one contradicts it; else it is not found. The passage is that of the
    likeliest such window. The question is not read.
    """

    head = "ForSequenceClassification"
    expected = ", ".join(_SAYS)

    @staticmethod
    def numbers(labels: Mapping[int, str]) -> Sequence[int] | None:
        found = {name.casefold(): number for number, name in labels.items()}
        return [found[name] for name in _SAYS] if found.keys() == _SAYS.keys() and len(labels) == len(_SAYS) else None

    def pieces(self, asked: Asked, most: int) -> Sequence[Span]:
        return asked.claims

    def read(self, pair: WindowPair, encoding: Any, probabilities: NDArray[np.float64]) -> WindowRead:
        return WindowRead(pair, probabilities[self._numbers])

    def found(self, asked: Asked, read: Sequence[WindowRead]) -> tuple[Claim, ...]:
        return tuple(_claim(claim, [one for one in read if one.pair.start == claim.start]) for claim in asked.claims)


def _claim(claim: Span, read: Sequence[WindowRead]) -> Claim:
    said = min(int(one.probabilities.argmax()) for one in read)
    verdict = list(_SAYS.values())[said]
    # the first passage of those that are equally likely
    best = max(
        (one for one in read if int(one.probabilities.argmax()) == said),
        key=lambda one: (one.probabilities[said], -one.pair.passage),
    )
    support = float(max(one.probabilities[0] for one in read))
    place = None if verdict == "not_found" else best.pair.passage
    unsupported = () if verdict == "supported" else (Span(claim.start, claim.end),)
    return Claim(claim.start, claim.end, verdict, support, place, unsupported=unsupported)
