"""Controls of support: what a classifier says of answers beside relevant passages, in each language of the passages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mrag_eval import models
from mrag_eval.controls._replies import NO_REFERENCE, ControlPool, ControlReply, bare, other_answers
from mrag_eval.core import Hit, ModelReply, RagDoc, Retrieved, Scored
from mrag_eval.retrieval import Relevant
from mrag_eval.scoring import ControlRecord, Given, Rules, read, row_scores, with_grounding

_METRIC = "grounded"
_NO_PASSAGE = "no relevant passage is known"


def support_controls(
    docs: Sequence[RagDoc],
    relevant: Relevant | None,
    parallel: Sequence[Mapping[str, str]],
    pool: ControlPool,
    checker: models.Checker,
) -> dict[str, ControlRecord]:
    """Return the support of a row's first reference, and of another row's answer, by row id.

    Each is shown a relevant passage, as the corpus has it, and in every language in which ``parallel`` has its text:
    the answers stay the same, and so does what the passage says, so that what differs is the classifier's.
    """
    rules, others = Rules([_METRIC]), other_answers(pool.docs, pool.seed)
    versions = {text: texts for texts in parallel for text in texts.values()}
    asked: list[tuple[str, str, Scored]] = []
    missing: dict[str, dict[str, str]] = {doc.id: {} for doc in docs}
    for doc in docs:
        own = next(iter(relevant.passages.get(doc.id, ())), None) if relevant is not None else None
        other = others.get(doc.id, ControlReply(None, NO_REFERENCE))
        for name, reply in (("beside", bare(doc)), ("aside", other)):
            if own is None or reply.text is None:
                missing[doc.id][name] = _NO_PASSAGE if own is None else reply.missing
                continue
            for lang, text in {"": own.text, **versions.get(own.text, {})}.items():
                shown = Retrieved((Hit(own.id, lang or own.lang, text, 1.0, 1),))
                row = read(Given(doc, shown, ModelReply(reply.text)), rules).row
                asked.append((doc.id, f"{name}, {lang}" if lang else name, row))
    values: dict[str, dict[str, dict[str, float]]] = {doc.id: {} for doc in docs}
    unscored: dict[str, dict[str, dict[str, str]]] = {doc.id: {} for doc in docs}
    scores = row_scores(with_grounding([row for *_, row in asked], checker), rules)
    for (doc_id, name, _), score in zip(asked, scores, strict=True):
        values[doc_id] |= {name: score.values} if score.values else {}
        unscored[doc_id] |= {name: score.unscored} if score.unscored else {}
    return {row: ControlRecord(values[row], unscored[row], why) for row, why in missing.items()}
