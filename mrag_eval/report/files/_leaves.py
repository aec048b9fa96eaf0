"""The tasks of the runs in a report, and their rows without texts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mrag_eval.config import CONTEXT_PAIR, Measurement, differences, shown
from mrag_eval.platform import DataError
from mrag_eval.report.files._results import LeafResult, ResultFile, outcomes_text, read_results
from mrag_eval.report.files._sample import Sample
from mrag_eval.scoring import stage_of

# Maximum number of settings in a label.
_NAMED = 2


@dataclass(frozen=True)
class Leaf:
    """One task of one run as the report shows it; ``label`` distinguishes it from the same task of other runs.

    ``run`` is the model's name. ``variant`` names the settings and the part of the rows in which the task differs from
    other runs of the same model, task and mode ("k=5"); it is empty without such runs. ``part`` says how many rows were
    run, if not all; so does the label.
    """

    run: str
    task: str
    label: str
    mode: str
    benchmark: str
    variant: str
    result: LeafResult
    samples: Path | None
    part: str | None = None


@dataclass(frozen=True, slots=True)
class PageRow:
    """A scored row. ``language`` is that of the culture it asks about, if known, else that of its question.

    ``key`` identifies the question over tasks and runs. ``stage`` is the last that it reached, and ``contexts`` the
    languages of the question and of a log's contexts; both are empty where they are not known.
    """

    key: tuple[str, str]
    language: str
    group: str
    values: Mapping[str, float]
    unscored: Mapping[str, str]
    stage: str = ""
    contexts: str = ""

    @classmethod
    def of(cls, sample: Sample) -> PageRow:
        """Return the fields of a sample that the page needs."""
        record, language = sample.record, sample.source_language
        known = (record.values, record.unscored, stage_of(record), record.cell.get(CONTEXT_PAIR, ""))
        return cls((language, record.row), language, record.resampled_with, *known)


def labelled(name: str, part: str | None) -> str:
    """Return the name with how many of the rows were run, such as ``qa [60 of 125 rows]``; alone for all of them."""
    return f"{name} [{part}]" if part else name


def mode_of(result: LeafResult) -> str:
    """Return the IR mode of a task, in the words of its benchmark if it has some."""
    mode = result.config.mode or "no_ir"
    return result.known.names.get(mode, mode)


def page_leaves(files: Sequence[ResultFile]) -> list[tuple[Leaf, ResultFile]]:
    """Return the tasks of ``files`` (in order of their date).

    Of runs of one model and task that repeat each other, with the same settings and scores, the newest counts. All
    others are kept.
    """
    found: dict[tuple[str, str, str], list[tuple[LeafResult, ResultFile]]] = defaultdict(list)
    for file in files:
        for task, result in file.leaves.items():
            same = found[file.model, task, mode_of(result)]
            same[:] = [old for old in same if not _repeats(old[0], result)]
            same.append((result, file))
    models = {model for model, _, _ in found}
    modes: dict[tuple[str, str], set[str]] = defaultdict(set)
    for model, task, mode in found:
        modes[model, task].add(mode)
    out = []
    ordered = sorted(
        found, key=lambda one: (*one[:2], (first := found[one][0][0]).known.place_of_mode(first.config.mode))
    )
    for model, task, mode in ordered:
        versions = found[model, task, mode]
        parts = [file.part(task) for _, file in versions]
        told = variants([result.measurement for result, _ in versions], parts, runs=_runs([f for _, f in versions]))
        for (result, file), part, variant in zip(versions, parts, told, strict=True):
            said = [mode] if len(modes[model, task]) > 1 else []
            said += [variant] if variant else []
            label = f"{task} ({', '.join(said)})" if said else task
            label = label if len(models) == 1 else f"{label} · {model}"
            marks = (part, result.config.starter, *result.config.marks, outcomes_text([result]))
            label = labelled(label, ", ".join(filter(None, marks)))
            if len(set(parts)) > 1:
                variant = ", ".join(filter(None, (variant, part or "all rows")))
            benchmark = result.config.benchmark or task
            leaf = Leaf(model, task, label, mode, benchmark, variant, result, file.samples(task), part)
            out.append((leaf, file))
    return out


def _repeats(old: LeafResult, new: LeafResult) -> bool:
    scores = ({name: (score.value, score.n) for name, score in one.metrics.items()} for one in (old, new))
    return not differences(old.measurement, new.measurement) and next(scores) == next(scores)


def _runs(files: Sequence[ResultFile]) -> list[str]:
    """Return folder and time of each run, of the folder the first part in which their paths differ."""
    folders = [file.path.absolute().parent.parts for file in files]
    same = next((i for i, names in enumerate(zip(*folders, strict=False)) if len(set(names)) > 1), None)
    ends = ["" if same is None else folder[same] for folder in folders]
    return [f"{end} {file.time:%Y-%m-%d %H:%M:%S}".strip() for end, file in zip(ends, files, strict=True)]


def variants(
    records: Sequence[Measurement | None],
    parts: Sequence[str | None],
    allowed: Sequence[str] = ("ran", "log"),
    runs: Sequence[str] = (),
) -> list[str]:
    """Return each task's distinguishing settings: those that are not the same in all, the first few by name.

    Tasks over the same ``parts`` of the rows that are still alike are named as their ``runs`` are, else numbered.
    ``allowed`` keys tell nothing apart.
    """
    if len(records) == 1:
        return [""]
    # against every other, so that two that agree with the first alone are distinguished as well
    pairs = {
        (i, j): {found.key: found for found in differences(a, b, allowed=allowed)}
        for i, a in enumerate(records)
        for j, b in enumerate(records)
        if i != j
    }
    keys = {key for found in pairs.values() for key in found}
    half = {key for found in pairs.values() for key, one in found.items() if None in (one.first, one.second)}
    ends = [key.rpartition(".")[2] for key in keys]
    out = []
    for i in range(len(records)):
        said: list[str] = []
        # prefer keys that every run sets, and settings over properties of the index
        for key in sorted(keys, key=lambda key: (key.startswith(("index", "source")), key in half, key)):
            values = [shown(found[key].first) for (a, _), found in pairs.items() if a == i and key in found]
            if values and len(said) < _NAMED:
                end = key.rpartition(".")[2]
                said.append(f"{end if ends.count(end) == 1 else key}={values[0][:40]}")
        out.append(", ".join(said))
    for ends in ([*runs], [f"#{i}" for i, _ in enumerate(out, 1)]):
        named = list(zip(out, parts, strict=True))
        alike = [bool(ends) and named.count(one) > 1 for one in named]
        out = [f"{text} {ends[i]}".strip() if alike[i] else text for i, text in enumerate(out)]
    return out


def result_leaves(paths: Sequence[Path]) -> list[tuple[Leaf, ResultFile]]:
    """Return the tasks of the result files at ``paths``. Raise DataError if none is ours."""
    leaves = page_leaves(read_results(paths))
    if not leaves:
        raise DataError(
            f"{', '.join(map(str, paths))}: no task of ours in these results", "name the --output_path of a run"
        )
    return leaves
