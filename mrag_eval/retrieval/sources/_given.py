"""The passages that come with a row (mode ``given``): all, the supporting ones, or these and drawn distractors."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

import numpy as np

from mrag_eval import models
from mrag_eval.config import Retrieval
from mrag_eval.core import Hit, RagDoc, Retrieved
from mrag_eval.datasets import Held
from mrag_eval.platform import DataError, content_key
from mrag_eval.retrieval.sources._source import Setup, Source


class GivenPassages(Source):
    """The passages that come with each row."""

    def __init__(self, retrieval: Retrieval) -> None:
        self._retrieval = retrieval

    def repeatable(self, docs: Sequence[RagDoc]) -> bool:
        """Return True."""
        return True

    def held(self, docs: Sequence[RagDoc]) -> Held:
        """Return the passages of all these rows, whichever of them are shown."""
        return Held.among("the rows' passages", (p for doc in docs for p in doc.given_passages), complete=False)

    def retrieve(self, docs: Sequence[RagDoc], translator: models.Translator | None = None) -> list[Retrieved]:
        """Return the row's own passages, without a ranking, and the failures of those that are shown."""
        return [_retrieved(doc, given_passages(doc, self._retrieval)) for doc in docs]


def open_source(setup: Setup) -> GivenPassages:
    """Return the source of the mode ``given``."""
    return GivenPassages(setup.retrieval)


def given_passages(doc: RagDoc, retrieval: Retrieval) -> tuple[Hit, ...]:
    """Return those of the row's passages that the block asks for, in the row's order.

    Raises DataError if the row has none.
    """
    if not doc.given_passages:
        raise DataError(
            f"row '{doc.id}' comes with no passages, which retrieval mode 'given' shows",
            "choose another retrieval.mode",
        )
    kept = list(range(len(doc.given_passages)))
    subset = retrieval.given.subset
    if subset == "none":
        return ()
    if subset == "gold":
        kept = [i for i in kept if doc.given_passages[i].is_gold]
    elif subset == "distractors":
        drawn = set(_distractors(doc, retrieval.seed)[: retrieval.given.n])
        kept = [i for i in kept if doc.given_passages[i].is_gold or i in drawn]
    return tuple(
        Hit(
            p.id,
            p.lang,
            p.text,
            score=0.0,
            rank=rank,
            title=p.title,
            doc_id=p.doc_id,
            original_lang=p.original_lang,
            is_gold=p.is_gold,
            date=p.date,
        )
        for rank, p in enumerate((doc.given_passages[i] for i in kept), 1)
    )


def _retrieved(doc: RagDoc, shown: tuple[Hit, ...]) -> Retrieved:
    ids = {hit.id for hit in shown}
    failed = (passage.failure for passage in doc.given_passages if passage.id in ids)
    return Retrieved(shown, failures=tuple(dict.fromkeys(failure for failure in failed if failure is not None)))


def _distractors(doc: RagDoc, seed: int) -> list[int]:
    """Return places of the distractors in the order in which they are added; ``n`` is always contained in ``n + 1``.

    Drawn by seed and row. If they are in several languages, these take turns, in an order that is drawn, too; a
    translated passage counts by its original language, so that a row keeps its distractors whatever is translated.
    """
    rng = np.random.default_rng(int(content_key(seed, doc.id)[:16], 16))
    others = rng.permutation([i for i, p in enumerate(doc.given_passages) if not p.is_gold]).tolist()
    by_language: dict[str, list[int]] = {}
    for i in others:
        passage = doc.given_passages[i]
        by_language.setdefault(passage.original_lang or passage.lang, []).append(int(i))
    turns = [by_language[lang] for lang in rng.permutation(sorted(by_language)).tolist()]
    return [i for in_turn in zip_longest(*turns) for i in in_turn if i is not None]
