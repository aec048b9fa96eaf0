"""Verification of result files: every check of every task, or the quick one for commands that print scores."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from mrag_eval.platform import DataError, Wait, reading_back, tasks_folder, uncollected
from mrag_eval.report.files._results import (
    LaterVerdicts,
    LeafResult,
    ResultFile,
    outcomes_text,
    read_results,
    with_later_verdicts,
)
from mrag_eval.report.files._samples import Samples, open_samples
from mrag_eval.report.files._scored_rows import ScoredSamples
from mrag_eval.report.verification._answering_checks import ReplyCounts, answering_follows
from mrag_eval.report.verification._claims import (
    dated,
    instruments_follow,
    other_versions,
    record_follows,
    rows_have,
    source_follows,
    task_settings,
)
from mrag_eval.report.verification._findings import Remark, Verified, value_text
from mrag_eval.report.verification._harness_checks import groups, run_record, task_results
from mrag_eval.report.verification._passage_checks import passages
from mrag_eval.report.verification._prompt_checks import prompts
from mrag_eval.report.verification._row_checks import judge_texts, made_again, row_counts, row_values
from mrag_eval.report.verification._sample_checks import sample_lines
from mrag_eval.report.verification._score_checks import means, recomputed_scores
from mrag_eval.report.verification._share_checks import rank_shares, seats_follow
from mrag_eval.report.verification._task_here import LOG, TaskHere
from mrag_eval.report.verification._unchecked import CheckedTask, unchecked
from mrag_eval.report.verification._verdict_checks import decided_by_judges, later_verdicts


def verify(paths: Sequence[Path | str], tasks_folder: Path, copies: Sequence[Path] = ()) -> list[Verified]:
    """Verify the result files at ``paths`` (files, or folders of them) against their samples and their data.

    For each task: its rows and their number, against the benchmark's if that is on this machine, or among ``copies`` of
    it; every key of its samples; records of rows, made again from replies, rankings and votes; all scores, by
    summarizing the rows again; the harness's averages; the record of what was measured; and that record against the
    task in ``tasks_folder``. Verdicts that were given after the run are compared in the same way, and with its samples.
    Raises DataError for a path without results, and for a copy that no task has its rows from.
    """
    files = read_results([Path(path) for path in paths], judged=False)
    with Wait("verifying results", sum(len(file.leaves) for file in files), "tasks") as wait:
        found, read = [], set[Path]()
        for file in files:
            with reading_back(file.path):
                found.append(_verified(file, tasks_folder, copies, wait, read))
    for copy in copies:
        if copy not in read:
            of = sorted({str(leaf.config.benchmark) for file in files for leaf in file.leaves.values()})
            raise DataError(f"--data {copy}: no task here has its rows there", f"name a copy of {', '.join(of)}")
    return found


def unsupported(paths: Sequence[Path | str], *, votes: bool = False) -> list[str]:
    """Return one line for each score in the results at ``paths`` that is not the mean of its samples.

    This is the quick part of :func:`verify`, for every command that prints scores. Of verdicts that were given after a
    run, their scores are compared with their own samples, and those that no judge decides with the run's. Results
    without samples, and paths that are not results, give no line. With ``votes``, verdicts after a run are verified as
    a whole. Inside :func:`read_once` the samples that a command has read are not read again.
    """
    lines = []
    leaves = [(file, task, leaf) for file in _results_of(paths) for task, leaf in file.leaves.items()]
    with Wait("comparing scores with their samples", len(leaves), "tasks") as wait:
        for file, task, leaf in wait.over(leaves):
            path, found = file.samples(task, judged=False), list[Remark]()
            # the command that reads these files names their faults
            with suppress(DataError):
                found += means(file, leaf, open_samples(path).scored) if path is not None else ()
                found += _later_means(file, leaf)
                if votes and not found and path is not None:
                    with reading_back(file.path):
                        later = later_verdicts(file, task, tasks_folder(), (), open_samples(path))
                    found += (one for one in later if one.kind == "fault")
            lines += [f"{task}: {finding.text} (mrag-eval verify {file.path})" for finding in found]
    return lines


def _later_means(file: ResultFile, leaf: LeafResult) -> Iterator[Remark]:
    """Compare the scores that verdicts after a run give it, which commands print in place of its own."""
    later = with_later_verdicts(replace(file, leaves={leaf.task: leaf})).leaves[leaf.task]
    if later is leaf:
        return
    # the harness reports the scores of the run itself
    yield from means(
        replace(file, content={}), later, open_samples(LaterVerdicts.samples_path(file.path, leaf.task)).scored
    )
    for name in {*leaf.metrics, *later.metrics} - decided_by_judges([*leaf.metrics, *later.metrics]):
        one, other = (None if name not in found.metrics else found.metrics[name].value for found in (later, leaf))
        if one != other:
            text = f"{name} is {value_text(one)} with later verdicts, {value_text(other)} in the run"
            yield Remark(leaf.task, "fault", text)


def _results_of(paths: Sequence[Path | str]) -> list[ResultFile]:
    found: dict[Path, ResultFile] = {}
    for path in map(Path, paths):
        is_results = path.is_file() and path.name.startswith("results_") and path.suffix == ".json"
        if path.is_dir() or is_results:
            try:
                found |= {file.path: file for file in read_results([path], judged=False)}
            except DataError:
                # the command that reads this path names its fault
                continue
    return list(found.values())


def _verified(file: ResultFile, tasks_folder: Path, copies: Sequence[Path], wait: Wait, read: set[Path]) -> Verified:
    """Return a file after its checks; ``read`` gets the copies that rows were read from."""
    findings: list[Remark] = []
    left: dict[str, list[str]] = {}
    rows = numbers = 0
    asked = ReplyCounts()
    for task, leaf in wait.over(file.leaves.items()):
        findings += task_settings(leaf, tasks_folder)
        if came := outcomes_text([leaf]):
            findings.append(Remark(task, "note", f"{came}: its label says so in place of 'this run'"))
        path = file.samples(task, judged=False)
        if path is None:
            asked.whole = False
            findings.append(Remark(task, "fault", "no samples next to the results; run with --log_samples"))
            continue
        # the rest makes cycles: json.dumps does, with an indent
        with uncollected():
            samples = open_samples(path, repeated=True)
        here = TaskHere.of(leaf, copies)
        read |= {copy} if here.rows is not None and (copy := here.rows.copy) is not None else set()
        checked, found, lines = _of_task(file, here, samples, asked)
        later = later_verdicts(file, task, tasks_folder, copies, samples)
        rows += len(samples)
        numbers += checked
        findings += [*found, *later]
        for line in lines:
            left.setdefault(line, []).append(task)
    findings += [*groups(file, tasks_folder), *run_record(file), *answering_follows(file, asked), *dated(file)]
    if not file.leaves:
        findings.append(Remark("", "fault", "no task of ours in these results"))
    return Verified(file.path, len(file.leaves), rows, numbers, tuple(findings), left)


def _of_task(
    file: ResultFile, here: TaskHere, samples: Samples, asked: ReplyCounts
) -> tuple[int, list[Remark], list[str]]:
    """Return how many numbers were computed again, the findings of one task, and what was not checked."""
    leaf, records = here.leaf, samples.records
    findings = [*row_counts(file, here, records)]
    if here.rows is None:
        text = (
            f"the data of {leaf.config.benchmark} are not on this machine ({here.reason}), so questions and reference "
            "answers were not compared: verify --data PATH reads a copy"
        )
        findings.append(Remark(leaf.task, "note" if here.reason == LOG else "open", text))
    scored = ScoredSamples.of(records)
    of_means = [*means(file, leaf, scored)]
    named = {finding.text.partition(" ")[0] for finding in of_means}
    scores, numbers, differing = recomputed_scores(file, leaf, records)
    again = made_again(here, samples)
    asked.add(samples)
    computed = [*row_values(here, again), *differing, *again.votes]
    # another version may read replies and compute intervals in another way
    findings += [*of_means, *([replace(f, kind="open") for f in computed] if other_versions(leaf) else computed)]
    for check in (
        sample_lines(file, here, samples),
        prompts(file, here, samples),
        passages(here, samples),
        rank_shares(here, samples),
        seats_follow(leaf, records),
        judge_texts(here),
        task_results(file, here, samples, scored, scores, named),
        record_follows(file, here, samples),
        rows_have(here, samples),
        source_follows(here),
        instruments_follow(here, records),
    ):
        findings += check
    whole = CheckedTask(here, samples, again)
    if whole.searched and whole.shows_unknown_texts and here.reason != LOG and not here.retrieved_otherwise:
        text = "the corpus is not on this machine, so that the texts of passages were not compared"
        findings.append(Remark(leaf.task, "open", text))
    return numbers, findings, [*unchecked(whole)]
