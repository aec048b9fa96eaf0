"""Context sufficiency: whether the retrieved passages are enough for a good answer, whatever the model's answer."""

from __future__ import annotations

from collections.abc import Sequence

from mrag_eval.config import Judge
from mrag_eval.core import Judgement, Scored, failed_in, way_to
from mrag_eval.judging._panel import Panel
from mrag_eval.judging._recount import NOTHING_SHOWN, Decided, Recount
from mrag_eval.judging._rubrics import Case, sufficiency_rubric
from mrag_eval.scoring import PanelShare

_SHOWN = way_to("translation of documents")


def sufficiency_judged(rows: Sequence[Scored], panel: Panel, block: Judge) -> tuple[list[Scored], PanelShare]:
    """Return the rows with the panel's judgement of their passages, and one rank's share of the panel's table.

    The passages are those that go into the prompt, before any shortening. The panel sees neither the reference answers
    nor the model's (XRAG, Appendix A). An empty search result is insufficient, and no judge is asked. Nor is one about
    passages that a failed step left.
    """
    settings = block.sufficiency
    asked = [i for i, row in enumerate(rows) if failed_in(row.failures, _SHOWN) is None]
    cases = [context_case(rows[i], settings.country) for i in asked]
    votes, ledgers = panel.votes(sufficiency_rubric(settings.prompt), cases)
    said = dict(zip(asked, votes, strict=True))
    out = Recount(block).of(rows, [Decided(passages=said.get(i)) for i in range(len(rows))])
    return out, PanelShare(panel.model_names, ledgers, came_back=panel.take())


def context_case(row: Scored, country: str | None) -> Case | Judgement:
    """Return what the panel is asked about the passages shown, or the judgement of an empty search result."""
    if not row.passages:
        return NOTHING_SHOWN
    where = str(row.doc.extra.get("country") or country or "").replace("_", " ")
    return Case.of(row.doc, passages=row.passages, country=where)
