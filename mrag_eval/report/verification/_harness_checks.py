"""What the harness reports of a task and its groups: every key against the samples and the settings."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any, cast

from mrag_eval.core import LabelSource
from mrag_eval.report.files._results import NAMING_ARGUMENTS, ResultFile
from mrag_eval.report.files._samples import Samples
from mrag_eval.report.files._scored_rows import ScoredSamples
from mrag_eval.report.verification._findings import Remark, differing, same, value_text
from mrag_eval.report.verification._sample_checks import sha256_text
from mrag_eval.report.verification._task_here import TaskHere
from mrag_eval.scoring import TaskScores, halved_metrics, measured_on, reported_measures, value_names

# The harness's column that holds the largest share of rows without a score.
_UNSCORED = "unscored"


def task_results(
    file: ResultFile,
    here: TaskHere,
    samples: Samples,
    scored: ScoredSamples,
    scores: TaskScores,
    named: set[str],
) -> Iterator[Remark]:
    """Compare what the harness reports of a task with its rows; metrics ``named`` have been compared."""
    leaf, raw = here.leaf, here.leaf.config.raw
    directions = directions_of(here, samples)
    wanted: dict[str, Any] = {
        "results": reported_again(file, here, samples, scored, scores, directions),
        "higher_is_better": {_UNSCORED: False, **directions},
        "versions": leaf.config.version,
        "n-shot": raw.get("num_fewshot", 0),
    }
    for section, content in wanted.items():
        found = (file.content.get(section) or {}).get(leaf.task)
        for key, one, other in differing(found, content, section):
            if key.removeprefix(f"{section}.").partition(",")[0] not in named or one is None:
                text = f"{key} is {value_text(one)}, {value_text(other)} by the samples"
                yield Remark(leaf.task, "fault", text)


def run_record(file: ResultFile) -> Iterator[Remark]:
    """Compare what the results repeat of the run: hashes of texts, versions, and the model's name and type."""
    from mrag_eval.harness import sanitize_model_name

    versions = next((leaf.config.versions for leaf in file.leaves.values()), {})
    wanted: dict[str, Any] = {
        **{
            f"{name}_sha": sha256_text(str(file.content[name])) if file.content.get(name) else None
            for name in ("system_instruction", "chat_template")
        },
        **{
            name: versions[package]
            for name, package in (("lm_eval_version", "lm-eval"), ("transformers_version", "transformers"))
            if package in versions
        },
    }
    wanted["model_name_sanitized"] = sanitize_model_name(str(file.content.get("model_name")))
    # a model that a program hands over has no type, and no name of its own
    if file.content.get("model_source") != "CUSTOM":
        wanted["model_source"] = file.run.get("model")
    args = file.run.get("model_args")
    naming = [key for key in NAMING_ARGUMENTS if key in args] if isinstance(args, Mapping) else []
    if naming and isinstance(args, Mapping):
        wanted["model_name"] = str(args[naming[0]])
    for name, value in wanted.items():
        if name in file.content and file.content[name] != value:
            text = f"{name} is {value_text(file.content[name])}, {value_text(value)} by the rest of the results"
            yield Remark(", ".join(file.leaves), "fault", text)


def directions_of(here: TaskHere, samples: Samples) -> dict[str, bool | None]:
    """Return the names of the values that a task's samples may have, and whether more is better."""
    names = here.leaf.config.metrics
    by = next((record.relevance.by for record in samples.records if record.relevance is not None), None)
    known = value_names(names, **measured_on(here.retrieval), by=cast("LabelSource | None", by))
    return {**known, **reported_measures(names)}


def reported_again(
    file: ResultFile,
    here: TaskHere,
    samples: Samples,
    scored: ScoredSamples,
    scores: TaskScores,
    directions: Mapping[str, bool | None],
) -> dict[str, Any]:
    """Return ``results.<task>`` as the harness makes it, of the values that have ``directions``."""
    leaf, records = here.leaf, samples.records
    iterations = file.run.get("bootstrap_iters")
    errors = isinstance(iterations, int) and iterations > 0
    kept = str(samples[0].line.get("filter"))
    out: dict[str, Any] = {
        "name": leaf.task,
        "alias": leaf.config.raw.get("task_alias", leaf.task),
        "sample_len": len(samples),
        f"{_UNSCORED},{kept}": scores.unscored_share,
        f"{_UNSCORED}_stderr,{kept}": "N/A",
    }
    of_task = reported_measures(leaf.config.metrics)
    halved = halved_metrics(records, directions)
    for name in directions:
        if name in of_task:
            table = scores.concurrence
            values = [found[name] for found in scored.territories.values() if name in found]
            value = None if table is None else table.intervals[name.removeprefix("concurrence.")].value
        else:
            values = [record.values[name] for record in records if name in record.values and name not in halved]
            value = sum(values) / len(values) if values else None
        if values or name in of_task:
            out[f"{name},{kept}"] = value
            out[f"{name}_stderr,{kept}"] = "N/A"
            if errors and len(values) > 1:
                mean = sum(values) / len(values)
                deviation = math.sqrt(sum((value - mean) ** 2 for value in values) / (len(values) - 1))
                out[f"{name}_stderr,{kept}"] = deviation / math.sqrt(len(values))
    return out


def groups(file: ResultFile, tasks_folder: Path) -> Iterator[Remark]:
    """Compare a group's scores with those that the harness computes from its tasks, by the group's own file.

    A group without a file in ``tasks_folder`` may have either of the two means that the harness knows.
    """
    named = file.content.get("group_subtasks") or {}
    if not isinstance(named, Mapping):
        text = f"group_subtasks is {value_text(named)}, no groups with their tasks"
        yield Remark(", ".join(file.leaves), "fault", text)
        named = {}
    for name in named.keys() - file.groups.keys():
        yield Remark(str(name), "fault", "group_subtasks: its tasks are no list of names")
    if not file.groups:
        return
    from mrag_eval.harness import blank_half_groups, group_rules, group_scores

    rules = group_rules(tasks_folder)
    redefined = file.redefined(tasks_folder)
    results = file.content.get("results") or {}
    made: dict[str, Any] = {}
    for group in file.groups.keys() & rules.keys():
        leaves = _leaves(file, group)
        made[group] = group_scores(rules[group], leaves, {name: results[name] for name in leaves if name in results})
    blank_half_groups({"group_subtasks": file.groups, "results": {**deepcopy(results), **made}})
    for group in file.groups:
        found, rule = file.reported(group), rules.get(group)
        wanted = made.get(group, found)
        if group in redefined:
            yield Remark(group, "deviation", "its tasks are not those of the group as shipped", "groups")
        if rule is None or group in redefined:
            yield from _either_mean(file, group, _leaves(file, group))
        else:
            for key, one, other in differing(found, wanted):
                text = f"{key.partition(',')[0]} is {value_text(one)}, {value_text(other)} by its tasks"
                yield Remark(group, "fault", text)
        aggregated = any("," in key for key in wanted)
        shown = (file.content.get("groups") or {}).get(group)
        if shown != (found if aggregated or (rule or {}).get("aggregate_metric_list") else None):
            yield Remark(group, "fault", "its scores under 'groups' are not those under 'results'")
    yield from _inherited(file, {name: rule for name, rule in rules.items() if name not in redefined})


def _inherited(file: ResultFile, rules: Mapping[str, Mapping[str, Any]]) -> Iterator[Remark]:
    """Compare what groups have from their members, in the harness's order: directions, shots, and their version.

    A group that comes before one of its groups has nothing from it.
    """
    tasks = set(file.configs)
    directions = {name: found for name, found in (file.content.get("higher_is_better") or {}).items() if name in tasks}
    shots = {name: found for name, found in (file.content.get("n-shot") or {}).items() if name in tasks}
    for group, members in file.groups.items():
        joint: dict[str, Any] = {}
        for name, better in (entry for member in members for entry in (directions.get(member) or {}).items()):
            joint[name] = better if joint.get(name, better) == better else None
        if joint:
            directions[group] = joint
        known = {shots[member] for member in members if member in shots}
        if len(known) == 1:
            shots[group] = known.pop()
        wanted = {"higher_is_better": directions.get(group), "n-shot": shots.get(group)}
        if group in rules:
            wanted["versions"] = str((rules[group].get("metadata") or {}).get("version", "N/A"))
        for section, value in wanted.items():
            for key, one, other in differing((file.content.get(section) or {}).get(group), value, section):
                yield Remark(group, "fault", f"{key} is {value_text(one)}, {value_text(other)} by its tasks")


def _leaves(file: ResultFile, group: str, above: Sequence[str] = ()) -> list[str]:
    """Return the tasks of a group in the harness's order, those of its groups too; one in two groups comes twice."""
    out: list[str] = []
    for child in file.groups.get(group) or ():
        if child in file.groups:
            out += _leaves(file, child, (*above, group)) if child not in above else []
        else:
            out.append(child)
    return out


def _either_mean(file: ResultFile, group: str, leaves: Sequence[str]) -> Iterator[Remark]:
    counts = file.content.get("n-samples") or {}
    for key, value in file.reported(group).items():
        name, _, filtered = key.partition(",")
        inner = [(file.reported(leaf).get(key), (counts.get(leaf) or {}).get("effective") or 0) for leaf in leaves]
        parts = [(found, n) for found, n in inner if isinstance(found, int | float)]
        if name.endswith("_stderr") or not filtered or not isinstance(value, int | float) or not parts:
            continue
        plain = sum(part for part, _ in parts) / len(parts)
        total = sum(n for _, n in parts)
        weighted = sum(part * n for part, n in parts) / total if total else plain
        if not (same(value, plain) or same(value, weighted)):
            own = f"{value_text(plain)} or weighted by rows {value_text(weighted)}"
            yield Remark(group, "fault", f"{name} is {value_text(value)}, {own} by its tasks")
