"""Verdicts that were given after a run, against the samples that they were made of."""

from __future__ import annotations

from dataclasses import replace

from mrag_eval.platform import DataError
from mrag_eval.report.files._results import LaterVerdicts, ResultFile, with_later_verdicts
from mrag_eval.report.files._samples import read_samples
from mrag_eval.report.files._scored_rows import ScoredSamples
from mrag_eval.report.verification._findings import Finding
from mrag_eval.report.verification._score_checks import means, recomputed_scores

# What is not checked of them.
VOTES = "that the verdicts given after the run follow from their votes (mrag-eval judge gives them again)"


def later_verdicts(file: ResultFile, task: str) -> tuple[list[Finding], list[str]]:
    """Return the findings on the verdicts that a task was given after the run, and what was not checked of them."""
    paths = LaterVerdicts.path(file.path, task), LaterVerdicts.samples_path(file.path, task)
    given = [path.name for path in paths if path.is_file()]
    if not given:
        return [], []
    fault = f"{' and '.join(given)}: not of the same votes, so these verdicts do not count: judge again, or remove them"
    try:
        if LaterVerdicts.of(file.path, task) is None:
            return [Finding(task, "fault", fault)], []
        records = [sample.record for sample in read_samples(paths[1])]
        leaf = with_later_verdicts(file).leaves[task]
    except DataError as error:
        return [Finding(task, "fault", error.message)], []
    # the harness reports the scores of the run itself
    alone = replace(file, content={"configs": {task: {"scores": leaf.scores.to_dict()}}})
    found = [*means(alone, leaf, ScoredSamples.of(records)), *recomputed_scores(alone, leaf, records)[2]]
    return [replace(one, text=f"{paths[0].name}: {one.text}") for one in found], [VOTES]
