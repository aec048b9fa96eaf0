"""Judged rows: the rows that are judged, the panel's verdicts, and the language of each answer."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.util import find_spec
from typing import TYPE_CHECKING

from mrag_eval import judging
from mrag_eval.config import SUFFICIENCY, Judge, TaskBlocks, judged_metrics, verdict_metrics
from mrag_eval.core import Scored, Value, failed_in
from mrag_eval.judging._recount import Decided, Recount, case_of
from mrag_eval.platform import MetricError
from mrag_eval.scoring import ANSWERED, DECLINED, EMPTY, PanelShare

if TYPE_CHECKING:
    from mrag_eval.metrics import LanguageDetector

# Below the harness's logger, so that its command shows our lines as it shows its own.
log = logging.getLogger(f"lm_eval.{__name__}")


def panel_for(blocks: TaskBlocks) -> judging.Panel | None:
    """Return the panel of a task; None, after a warning, if a metric needs one and none is configured.

    Raises ConfigError for a judge or a judge prompt that does not exist, and if a panel is required but missing:
    before anything is generated.
    """
    block, needing = blocks.judge, judged_metrics(blocks.metrics, blocks.judge)
    if not needing:
        return None
    if verdict_metrics(needing):
        judging.verdict_rubric(block.prompt, block.reply, block.scale)
    if SUFFICIENCY in needing:
        judging.sufficiency_rubric(block.sufficiency.prompt)
    if blocks.claims_prompt is not None:
        judging.support_rubric(blocks.claims_prompt)
    panel = judging.build_panel(block)
    if panel is None:
        _warn_once(" and ".join(needing))
    return panel


@lru_cache(maxsize=64)
def _warn_once(metrics: str) -> None:
    """Log a warning once for all the tasks of a group with the same message."""
    log.warning(
        "no judge is configured, which leaves out %s; name one under 'judges' in mrag.yaml (or $MRAG_CONFIG):\n    %s",
        metrics,
        judging.EXAMPLE,
    )


@dataclass(frozen=True)
class LanguageCheck:
    """The detector of a judge block, and the note that names it."""

    detector: LanguageDetector
    note: str

    def of(self, rows: Sequence[Scored]) -> list[Scored]:
        """Return the rows with their check and the language found, whatever the answer's length.

        The check is 1 if that is the question's language, and a reason if it is unknown. An answer without letters (a
        year, a score) is in every language.
        """
        from mrag_eval.metrics import correct_language_rate

        out: list[Value] = [DECLINED if row.declined else EMPTY if not row.answer.strip() else 1.0 for row in rows]
        asked = [i for i, row in enumerate(rows) if out[i] == 1.0 and any(map(str.isalpha, row.answer))]
        rate = correct_language_rate(
            [rows[i].answer for i in asked],
            [rows[i].doc.query_lang for i in asked],
            min_chars=None,
            detector=self.detector,
        )
        labels: dict[int, str | None] = dict(zip(asked, rate.detected, strict=True))
        for i, correct, reason in zip(asked, rate.correct, rate.reasons, strict=True):
            out[i] = str(reason) if correct is None else float(correct)
        return [
            replace(row, in_language=value, detected=labels.get(i))
            for i, (row, value) in enumerate(zip(rows, out, strict=True))
        ]


def language_check(block: Judge, languages: Iterable[str]) -> LanguageCheck | None:
    """Return the check that a block asks for, over the languages of the task's questions; None if it asks for none.

    Without the extra ``lingua``, or if lingua knows fewer than two of the languages, fastText is used and the note says
    so. Answers in a language that the detector does not know are left unscored, with that reason.
    """
    if block.language_check == "none":
        return None
    from mrag_eval.metrics import load_detector

    told_apart = sorted({*languages, *(block.languages or ()), "en"})
    name, note = block.language_check, f"language by {block.language_check}"
    if name == "lingua" and find_spec("lingua") is None:
        name = "fasttext"
        note = 'language by fasttext (lingua is not installed: pip install "mrag-eval[lingua]")'
    try:
        return LanguageCheck(load_detector(name, told_apart), note)
    except MetricError as error:
        return LanguageCheck(load_detector("fasttext"), f"language by fasttext ({error.message})")


def judged(
    rows: Sequence[Scored], panel: judging.Panel | None, block: Judge, check: LanguageCheck | None
) -> tuple[list[Scored], PanelShare | None]:
    """Return the rows with their judgement and language check, and one rank's share of the panel's table.

    Rows without a reference answer are not judged; a declined or an empty answer has the worst verdict (of labels,
    none), and no judge is asked.
    Nor is one about a row on whose way to an answer a step failed.
    """
    rows = list(rows if check is None else check.of(rows))
    if panel is None:
        return rows, None
    rubric = judging.verdict_rubric(block.prompt, block.reply, block.scale)
    asked = [i for i, row in enumerate(rows) if failed_in(row.failures, ANSWERED) is None]
    votes, ledgers = panel.votes(rubric, [case_of(rows[i], block.scale) for i in asked])
    said = dict(zip(asked, votes, strict=True))
    note = None if check is None else check.note
    share = PanelShare(panel.model_names, ledgers, note, block.scale, panel.take())
    return Recount(block).of(rows, [Decided(answer=said.get(i)) for i in range(len(rows))]), share
