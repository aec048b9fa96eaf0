"""Where answers are lost: questions by the last stage that they reached, over a task and by pair of languages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from mrag_eval.metrics import ErrorAttribution
from mrag_eval.report._table import Cell, Row, Table
from mrag_eval.report.files._leaves import Leaf

# Stages in the order of the pipeline; results of other versions may have others, which follow.
STAGES = ("correct", "not retrieved", "not shown", "not used", "judged wrong", "wrong language", "failed")
_NOTES = (
    "questions by stage; correct: right by the verdict, whatever was shown",
    "not shown: retrieved, and not in the prompt; not used: shown, and no reference answer is in the reply",
    "judged wrong: a reference answer is in the reply, and the verdict is wrong",
    "wrong language: shown, and the reply is in another language",
    "failed: a step on the way to the verdict failed",
)


def losses(leaf: Leaf) -> Iterator[tuple[str, Mapping[str, int], str]]:
    """Yield the pair (``all``, ``ar → en``), its questions by stage, and the metric that calls answers right."""
    table = leaf.result.scores.attribution
    if table is None:
        return
    parts: Mapping[str, ErrorAttribution] = {"all": table.overall, **table.by_pair}
    for pair, found in parts.items():
        yield pair.replace("->", " → "), found.stages, table.correct_by


def loss_table(leaves: Iterable[Leaf]) -> Iterator[Table]:
    """Yield the table of tasks and pairs x stages, if relevance and correctness are known of a task."""
    found = [(leaf, *loss) for leaf in leaves for loss in losses(leaf)]
    if not found:
        return
    there = dict.fromkeys(stage for _, _, stages, _ in found for stage in stages)
    columns = (*(name for name in STAGES if name in there), *(name for name in there if name not in STAGES))
    rows = []
    for leaf, pair, stages, by in found:
        cells = (Cell(float(stages[name]) if name in stages else None, "", task=leaf.task) for name in columns)
        rows.append(Row((leaf.label, pair), f"{leaf.run}, {by}", tuple(cells)))
    title, stub = "Where answers are lost", ("task", "pair")
    yield Table("losses", title, stub, columns, tuple(rows), 0, _NOTES)
