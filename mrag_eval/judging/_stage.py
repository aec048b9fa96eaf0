"""Everything that models, or their stand-ins, say of answers and passages after the answers are there, in one place."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from mrag_eval.config import JUDGED, SUFFICIENCY, TRANSLATED, VERDICTS, TaskBlocks
from mrag_eval.core import Scored
from mrag_eval.judging._answers import judged, language_check, panel_for
from mrag_eval.judging._contexts import sufficiency_judged
from mrag_eval.judging._relevance import labelled, labeller_for
from mrag_eval.judging._rubrics import relevance_rubric, sufficiency_rubric, verdict_rubric
from mrag_eval.retrieval import TaskRows
from mrag_eval.scoring import LabellingShare, PanelShare, with_translated_answers


class Verdicts:
    """A task's panel, its language check, and who says which passages are relevant.

    ``metrics`` are those of the task that can be scored: without a panel the judged ones are left out. ``relevance_by``
    names who labels passages, None where the benchmark itself knows.

    Raises ConfigError for a block that will not do, and where a panel is required and there is none.
    """

    def __init__(self, blocks: TaskBlocks) -> None:
        self._judge, self._retrieval = blocks.judge, blocks.retrieval
        self._panel = panel_for(blocks.judge, blocks.metrics)
        self._labeller = labeller_for(blocks.judge) if blocks.retrieval.searches else None
        self._check: Any = None
        self._shares: dict[str, PanelShare | LabellingShare | None] = {}
        self.metrics = tuple(name for name in blocks.metrics if self._panel is not None or name not in JUDGED)
        self.relevance_by = None if self._labeller is None else self._labeller.by

    def expect(self, languages: Iterable[str]) -> None:
        """Say in which languages questions are asked: the language check tells these apart."""
        self._check = language_check(self._judge, set(languages))

    def check(self) -> None:
        """Ask panel and labeller whether they can be reached, before anything is generated."""
        for asked in (self._panel, self._labeller):
            if asked is not None:
                asked.check()

    def given(self, rows: Sequence[Scored], supply: TaskRows) -> list[Scored]:
        """The rows with every verdict the metrics need; all rows of a rank at once."""
        self._shares.clear()
        if supply.translator is not None and {*TRANSLATED} & {*self.metrics}:
            rows = with_translated_answers(rows, supply.translator)
        asked = self._panel if any(name in VERDICTS for name in self.metrics) else None
        out, self._shares["panel"] = judged(rows, asked, self._judge, self._check)
        if self._panel is not None and SUFFICIENCY in self.metrics and self._retrieval.shows_passages:
            shown = [supply.found(row.doc.id).passages for row in out]
            out, self._shares["sufficiency_panel"] = sufficiency_judged(out, shown, self._panel, self._judge)
        if self._labeller is not None:
            texts = supply.ranked_texts([row.doc.id for row in out])
            out, self._shares["labelling"] = labelled(out, texts, self._labeller)
        return out

    def texts(self) -> dict[str, str]:
        """The hashes of the prompts that are used here, by what they are for."""
        block, out = self._judge, {}
        if self._panel is not None and any(name in VERDICTS for name in self.metrics):
            out["judge"] = verdict_rubric(block.prompt, block.reply).template.sha256
        if self._panel is not None and SUFFICIENCY in self.metrics:
            out["sufficiency"] = sufficiency_rubric(block.sufficiency.prompt).template.sha256
        if self.relevance_by == "judge":
            out["relevance"] = relevance_rubric(block.relevance.prompt).template.sha256
        return out

    def models(self) -> dict[str, Any]:
        """The judges by seat, and what decides their votes; empty where nobody judges."""
        panel = self._panel or (None if self._labeller is None else self._labeller.panel)
        return {} if panel is None else {"judges": panel.identities}

    def shares(self) -> dict[str, Any]:
        """This rank's models and ledgers, for one of its rows: they are summed when the ranks' rows are gathered."""
        return dict(self._shares)
