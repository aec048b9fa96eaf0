"""Classifiers of support by name or folder: of entailment, and of tokens."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mrag_eval.config import Grounded
from mrag_eval.core import Claim, ClaimVerdict, Span
from mrag_eval.models.grounding._checker import Asked, Checker
from mrag_eval.models.grounding._pairs import PairClassifier, WindowPair, WindowRead
from mrag_eval.platform import ConfigError, Wait
from mrag_eval.retrievers import loading, offline, transformers_library

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


_CLASSIFIERS = (TokenClassifier, EntailmentClassifier)


@lru_cache(maxsize=2)
def load_checker(block: Grounded) -> Checker:
    """Load the classifier of a block, once per process; its own configuration says of which kind it is.

    Raises ConfigError for a model that cannot be loaded or is neither kind, and MissingExtraError without transformers.
    """
    library, what = transformers_library(), f"classifier {block.model}"
    place = Path(block.model).expanduser()
    source = str(place) if place.is_dir() else block.model
    with loading(what):
        config = library.AutoConfig.from_pretrained(source, revision=block.revision, local_files_only=offline())
    names = list(getattr(config, "architectures", None) or ["no architecture"])
    for kind in _CLASSIFIERS:
        if names[0].endswith(kind.head):
            with Wait(f"loading the {what}"):
                return kind(block)
    wanted = " or ".join(f"...{kind.head}" for kind in _CLASSIFIERS)
    raise ConfigError(f"{what} is {names[0]}; expected {wanted}", "name a classifier of tokens or of entailment")
