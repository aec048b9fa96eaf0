"""Classifiers of the tokens of an answer, such as LettuceDetect's."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mrag_eval.config import Grounded
from mrag_eval.core import Claim, Span
from mrag_eval.models.grounding._checker import Asked
from mrag_eval.models.grounding._pairs import PairClassifier, WindowPair, WindowRead

# Names of labels: a negation or none, and a word for support or for its lack.
_SUPPORT = "support(?:ed)?|ground(?:ed)?|faithful|consistent|factual|entailed|attributed"
_LABEL = re.compile(rf"(not?|non|un|in)?[\W_]*(?:({_SUPPORT})|hallucinat(?:ed|ion))")


class TokenClassifier(PairClassifier):
    """A classifier of tokens, of which one label marks those of an answer that nothing supports.

    After Kovács and Recski, 2025. Its labels say in their names which that is (``hallucinated``, ``unsupported`` beside
    ``supported``, ``grounded``); of labels without names it is 1.

    It reads each window of each passage, as ``template`` has it, beside the answer; one of more than half of
    ``max_length`` tokens, or than what lies around it leaves room for, in pieces of whole sentences. Windows are
    combined token by token: a token is unsupported if its probability is ``threshold`` or more in all windows of all
    passages. One that crosses the end of a sentence is a token of each that has a letter or a digit of it. A claim is
    supported if none of its tokens is unsupported, by the passage that leaves the fewest of them unsupported; else it
    is not found.
    """

    head = "ForTokenClassification"
    expected = "supported and hallucinated, by these or similar names, or LABEL_0 and LABEL_1"

    @staticmethod
    def numbers(labels: Mapping[int, str]) -> Sequence[int] | None:
        if labels in ({0: "LABEL_0", 1: "LABEL_1"}, {0: "0", 1: "1"}):
            return [1]
        found = {_supported(name): number for number, name in labels.items()}
        return [found[False]] if found.keys() == {True, False} and len(labels) == 2 else None

    @staticmethod
    def settings(block: Grounded) -> dict[str, Any]:
        return {"threshold": block.threshold, "template": block.template}

    def pieces(self, asked: Asked, most: int) -> Iterator[Span]:
        piece: Span | None = None
        for claim in asked.claims:
            longer = claim if piece is None else Span(piece.start, claim.end)
            if piece is not None and len(self.offsets(asked.answer[longer.start : longer.end])) > most:
                yield piece
                longer = claim
            piece = longer
        if piece is not None:
            yield piece

    def around(self, asked: Asked) -> tuple[str, str]:
        kept = self.offsets(asked.question)[: self._longest // 4]
        question = asked.question[: kept[-1][1]] if kept else ""
        return self._block.around(question)

    def read(self, pair: WindowPair, encoding: Any, probabilities: NDArray[np.float64]) -> WindowRead:
        own = [place for place, part in enumerate(encoding.sequence_ids) if part == 1]
        return WindowRead(pair, probabilities[own, self._numbers[0]], [encoding.offsets[place] for place in own])

    def found(self, asked: Asked, read: Sequence[WindowRead]) -> tuple[Claim, ...]:
        pieces: dict[int, list[WindowRead]] = {}
        for one in read:
            pieces.setdefault(one.pair.start, []).append(one)
        claims = {}
        for start, group in pieces.items():
            # a piece has the same tokens beside every window
            spans = [Span(start + low, start + high) for low, high in group[0].offsets]
            by_passage: dict[int, NDArray[np.float64]] = {}
            for one in group:
                known = by_passage.get(one.pair.passage, np.ones(len(spans)))
                by_passage[one.pair.passage] = np.minimum(known, one.probabilities)
            for claim in asked.claims:
                parts = {i: part for i, span in enumerate(spans) if (part := _part(asked.answer, span, claim))}
                if parts:
                    own = {place: values[list(parts)] for place, values in by_passage.items()}
                    claims[claim] = self._claim(claim, [*parts.values()], own)
        return tuple(claims.get(claim) or _not_found(claim, 0.0, (claim,)) for claim in asked.claims)

    def _claim(self, claim: Span, spans: Sequence[Span], by_passage: Mapping[int, NDArray[np.float64]]) -> Claim:
        least = np.minimum.reduce(list(by_passage.values()))
        unsupported = least >= self._block.threshold
        support = float(1.0 - least.max())
        if unsupported.any():
            runs = groupby(range(len(spans)), key=lambda i: bool(unsupported[i]))
            groups = [list(run) for is_open, run in runs if is_open]
            return _not_found(claim, support, tuple(Span(spans[run[0]].start, spans[run[-1]].end) for run in groups))

        def left(place: int) -> tuple[int, float]:
            values = by_passage[place]
            return int((values >= self._block.threshold).sum()), float(values.sum())

        return Claim(claim.start, claim.end, "supported", support, min(by_passage, key=left))


def _not_found(claim: Span, support: float, unsupported: tuple[Span, ...]) -> Claim:
    return Claim(claim.start, claim.end, "not_found", support, unsupported=unsupported)


def _supported(label: str) -> bool | None:
    """Return whether a label's name says that a token is supported; None if it says nothing of that."""
    found = _LABEL.fullmatch(label.strip().casefold())
    return None if found is None else (found[1] is None) == (found[2] is not None)


def _part(answer: str, token: Span, claim: Span) -> Span | None:
    """Return what a claim has of a token, without the white space that some tokenizers count to it; None if nothing.

    A token that holds more than the claim is the claim's only if it shares a letter or a digit: the stop of the
    sentence before, read in one token with the next one's first word, says nothing of that sentence.
    """
    start, end = max(token.start, claim.start), min(token.end, claim.end)
    own, whole = answer[start:end], answer[token.start : token.end]
    if not own.strip() or (own.strip() != whole.strip() and not any(map(str.isalnum, own))):
        return None
    return Span(start + len(own) - len(own.lstrip()), start + len(own.rstrip()))
