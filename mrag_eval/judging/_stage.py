"""The judging stage: verdicts on answers and passages after generation, by models or their proxies."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from mrag_eval import judging, models
from mrag_eval.config import SUFFICIENCY, TRANSLATED, TaskBlocks, judged_metrics, mode_named, verdict_metrics
from mrag_eval.core import Scored
from mrag_eval.judging._answers import LanguageCheck, judged, language_check, panel_for
from mrag_eval.judging._relevance import labelled, labeller_for
from mrag_eval.platform import ConfigError
from mrag_eval.prompts import load_template
from mrag_eval.retrieval import TaskRows
from mrag_eval.scoring import LabellingShare, LanguageRule, PanelShare, with_grounding, with_translated_answers


class JudgingStage:
    """A task's panel, its language check, and its labeller of relevant passages.

    ``metrics`` are those of the task that can be scored: without a panel the judged ones are left out. ``relevance_by``
    names the labeller of passages, None if the benchmark's labels are used; ``language`` is the rule of the metric
    ``correct_language``.

    Raises ConfigError for an invalid block, and if a panel is required and there is none.
    """

    def __init__(self, blocks: TaskBlocks) -> None:
        self._judge, self._retrieval = blocks.judge, blocks.retrieval
        self._panel, self._on_claims = panel_for(blocks), blocks.claims_prompt is not None
        self._labeller = labeller_for(blocks.judge) if blocks.retrieval.searches else None
        self._check: LanguageCheck | None = None
        self.language = LanguageRule()
        self._shares: dict[str, PanelShare | LabellingShare | None] = {}
        left_out = () if self._panel is not None else judged_metrics(blocks.metrics, blocks.judge)
        self.metrics = tuple(name for name in blocks.metrics if name not in left_out)
        self.relevance_by = None if self._labeller is None else self._labeller.by

    def expect(self, languages: Iterable[str]) -> None:
        """Set the languages in which questions are asked, which the detectors distinguish."""
        asked = set(languages)
        self._check = language_check(self._judge, asked)
        told_apart = {*asked, *(self._judge.languages or ()), "en"}
        self.language = LanguageRule.of(self._judge.correct_language, told_apart)

    def check(self) -> None:
        """Check whether panel and labeller can be reached, before anything is generated."""
        for asked in (self._panel, self._labeller):
            if asked is not None:
                asked.check()

    def given(self, rows: Sequence[Scored], supply: TaskRows, checker: models.Checker | None = None) -> list[Scored]:
        """Return the rows with every verdict that the metrics need; all rows of a rank at once.

        Each stage is asked about the rows as they were read, and what it says is counted by :class:`Recount`.
        ``checker`` tells support, if a panel does not.
        """
        self._shares.clear()
        if supply.translator is not None and {*TRANSLATED} & {*self.metrics}:
            rows = with_translated_answers(rows, supply.translator)
        asked = self._panel if verdict_metrics(self.metrics) else None
        out, self._shares["panel"] = judged(rows, asked, self._judge, self._check)
        if self._panel is not None and SUFFICIENCY in self.metrics and self._retrieval.shows_passages:
            out, self._shares["sufficiency_panel"] = judging.sufficiency_judged(out, self._panel, self._judge)
        if self._panel is not None and self._on_claims:
            out, self._shares["claims_panel"] = judging.claims_judged(out, self._panel, self._judge)
        if checker is not None:
            out = with_grounding(out, checker)
        if self._labeller is not None:
            texts = supply.ranked_texts([row.doc.id for row in out])
            out, self._shares["labelling"] = labelled(out, texts, self._labeller, supply.translator)
        return out

    def checked(self, rows: Sequence[Scored]) -> list[Scored]:
        """Return the rows with the language check of the block; no model is asked."""
        return list(rows) if self._check is None else self._check.of(rows)

    def judged(self, rows: Sequence[Scored]) -> list[Scored]:
        """Return the rows with the language check and the panel's verdicts; the panel may cost money.

        Raises ConfigError without a panel.
        """
        if self._panel is None:
            raise ConfigError("no panel judges this task's answers", "name judges in mrag.yaml (docs/judges.md)")
        return judged(rows, self._panel, self._judge, self._check)[0]

    def models(self) -> dict[str, Any]:
        """Return the judges by seat, and the settings that decide their votes; empty without judges."""
        panel = self._panel or (None if self._labeller is None else self._labeller.panel)
        return {} if panel is None else {"judges": panel.identities}

    def support(self) -> dict[str, Any] | None:
        """Return what decides the panel's verdicts on claims; None if it gives none."""
        return judging.claims_by(self._panel, self._judge) if self._panel is not None and self._on_claims else None

    def shares(self) -> dict[str, Any]:
        """Return this rank's models and ledgers, for one of its rows.

        They are summed when the ranks' rows are gathered.
        """
        return dict(self._shares)


def prompt_texts(blocks: TaskBlocks) -> dict[str, Any]:
    """Return the SHA-256 of the task's prompt, and of those of its judges, by what each is for.

    Whether a judge is there to be asked does not matter. The prompts of other seats are in their identities. Raises
    ConfigError for a prompt that does not exist.
    """
    prompt, judge, retrieval = blocks.prompt, blocks.judge, blocks.retrieval
    own = load_template(prompt.template, prompt.system, name_language=prompt.name_language)
    out: dict[str, Any] = {"prompt": own.sha256}
    if verdict_metrics(blocks.metrics):
        out["judge"] = judging.verdict_rubric(judge.prompt, judge.reply, judge.scale).template.sha256
    if SUFFICIENCY in blocks.metrics:
        out["sufficiency"] = judging.sufficiency_rubric(judge.sufficiency.prompt).template.sha256
    if retrieval.searches and judge.relevance.labels in ("judge", "auto"):
        out["relevance"] = judging.relevance_rubric(judge.relevance.prompt).template.sha256
    return out


def seat_texts(blocks: TaskBlocks) -> dict[str, str]:
    """Return the SHA-256 of the prompts of the seats that retrieval asks, which their identities hold, by name."""
    looped = mode_named(blocks.retrieval.mode).source == "agents"
    out = {name: load_template(path, role="agent").sha256 for name, path in blocks.agent.prompts if looped}
    rerank = blocks.retrieval.rerank
    if rerank is not None and rerank.kind == "listwise":
        out["rerank"] = load_template(rerank.prompt, role="rerank").sha256
    return out
