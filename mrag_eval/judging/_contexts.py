"""Context sufficiency: whether the retrieved passages are enough for a good answer, whatever the model's answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mrag_eval.config import Judge
from mrag_eval.core import Hit, Judgement, RagDoc, Scored, failed_in, way_to
from mrag_eval.judging._panel import Panel
from mrag_eval.judging._rubrics import Case, sufficiency_rubric
from mrag_eval.scoring import PanelShare

_SHOWN = way_to("translation of documents")


def sufficiency_judged(
    rows: Sequence[Scored], passages: Sequence[Sequence[Hit]], panel: Panel, block: Judge
) -> tuple[list[Scored], PanelShare]:
    """Return the rows with the panel's judgement of their passages, and one rank's share of the panel's table.

    ``passages`` are aligned with the rows, as they go into the prompt, before any shortening. The panel sees neither
    the reference answers nor the model's (XRAG, Appendix A). An empty search result is insufficient, and no judge is
    asked. Nor is one about passages that a failed step left.
    """
    settings = block.sufficiency
    asked = [i for i, row in enumerate(rows) if failed_in(row.failures, _SHOWN) is None]
    cases = [context_case(rows[i].doc, passages[i], settings.country) for i in asked]
    judgements, ledgers = panel.judge(sufficiency_rubric(settings.prompt), cases, tie=block.tie)
    out = list(rows)
    for i, judgement in zip(asked, judgements, strict=True):
        out[i] = replace(rows[i], sufficiency=judgement, failures=(*rows[i].failures, *judgement.failures))
    return out, PanelShare(panel.model_names, ledgers)


def context_case(doc: RagDoc, passages: Sequence[Hit], country: str | None) -> Case | Judgement:
    """Return what the panel is asked about passages, or the judgement of an empty search result."""
    if not passages:
        return Judgement(False, "empty")
    where = str(doc.extra.get("country") or country or "").replace("_", " ")
    return Case.of(doc, passages=passages, country=where)
