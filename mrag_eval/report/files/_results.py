"""The harness's result files: one run of one model, its tasks and their scores."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from mrag_eval.config import JUDGES, Measurement
from mrag_eval.datasets import OWN_ROWS, Declaration, known_of, sha256_file
from mrag_eval.metrics import Estimate
from mrag_eval.models import CUT
from mrag_eval.platform import (
    DataError,
    JsonFault,
    Wait,
    beside,
    check_version,
    finite,
    from_json,
    hidden,
    json_value,
    name_of_model,
    names_of_models,
    number_of,
    one_line,
    regular,
    with_names_of_one_line,
    with_version,
    write_whole,
)
from mrag_eval.report.files._measured import measurement_of
from mrag_eval.report.files._task_config import TaskConfig
from mrag_eval.scoring import BY_RULE, MOST_FAILED, UNDEFINED, MetricScore, TaskScores, bounds_with, lost_headline

log = logging.getLogger(f"lm_eval.{__name__}")
# Model arguments from which the harness takes a model's name, the first that is given.
NAMING_ARGUMENTS = ("peft", "delta", "pretrained", "model", "path", "engine")
# The harness may sum the mean of a group's leaves in another order than we do.
EQUAL_MEANS = 1e-9
_CELL = re.compile(r"(.+)\[(.+)\]")
# The year 3000: what is later is no time of a run.
_LAST_DATE = 32_503_680_000
# Scores of answers drawn at random, which are no scores of the model.
_RANDOM = "concurrence.random."


@dataclass(frozen=True)
class LeafResult:
    """One task of a run: its scores and its settings.

    ``measurement`` is the record of what the scores measure.
    """

    task: str
    scores: TaskScores
    config: TaskConfig = field(repr=False)
    measurement: Measurement = field(repr=False)

    @property
    def seats(self) -> Mapping[str, Any]:
        """Return the judges by seat, each with the settings that decide its votes; empty without judges."""
        found: Mapping[str, Any] = self.measurement.instrument.get(JUDGES) or {}
        return found

    @cached_property
    def metrics(self) -> Mapping[str, MetricScore]:
        """Return the metrics of the model in the benchmark's order; scores of the task as a whole get dotted names:
        ``concurrence.KB_CS``.
        """
        out = dict(self.scores.metrics)
        found = self.scores.concurrence
        if found is not None:
            for parts, failed in ((found.intervals, found.lost), (found.rates, found.unanswered)):
                out |= {(name := f"concurrence.{key}"): _plain(name, parts[key], failed) for key in parts}
        return {name: out[name] for name in self.in_order(out)}

    def model_of(self, role: str) -> str | None:
        """Return a model as its provider names it, else its type; a translator with its backend.

        It is None without such a model. A file of translated rows is a translator, too.
        """
        file = self.config.source.get("translations") if role == "translator" else None
        found = self.measurement.instrument.get(role) or ({"backend": f"file {str(file)[:8]}"} if file else {})
        args = found.get("args") or {}
        name = args.get("model") or args.get("pretrained") or found.get("model")
        return " ".join(str(part) for part in (found.get("backend"), name) if part is not None) or None

    @property
    def unscored(self) -> Mapping[str, Mapping[str, int]]:
        """Return metric -> reason -> number of rows without a score."""
        return self.scores.unscored

    def no_headline(self, metric: str) -> str | None:
        """Return why a score is no headline and has no rank: an upper bound, or many failures; else None."""
        score = self.metrics.get(metric)
        return self.config.upper_bound_of(metric) or (None if score is None else score.no_headline)

    @cached_property
    def known(self) -> Declaration:
        """Return what is declared of the task's rows: headline, order, groups of languages, names."""
        return known_of(self.config.data)

    def in_order(self, metrics: Iterable[str]) -> list[str]:
        """Return metrics in the benchmark's order, those that it does not name in the task's."""
        found = [*metrics]
        return self.known.in_order((*(name for name in self.config.metrics if name in found), *found))

    def omits(self, reason: str) -> bool:
        """Return whether rows without a score for this reason are none that is missing: a rule, or the benchmark's."""
        return reason in BY_RULE or (self.known is not OWN_ROWS and reason in UNDEFINED)

    @property
    def lost_headline(self) -> str | None:
        """Return the main metric of the task if no row has it; None otherwise."""
        return lost_headline(self.scores, self.config.metrics, self.known.main_metric)

    @cached_property
    def outcomes(self) -> tuple[OutcomeCount, ...]:
        """Return what came of the run that its label says: each outcome of more than its share of the whole."""
        found = [(one, OutcomeCount(name, *one.counted(self))) for name, one in OUTCOMES.items()]
        return tuple(counts for one, counts in found if counts.had > one.above * counts.of)

    def score(self, name: str) -> Estimate | None:
        """Return a metric's score, or a part of one; None if it does not exist.

        ``hit@20[en->ar]`` is the score of a pair of question and document language, ``hit@20[cross_language]`` a mean
        over such pairs; ``selection.retrieved`` and ``attribution.correct_if_kept`` are links of the chain from
        retrieval to the answer; ``concurrence.random.KB_CS`` is the score of answers drawn at random.
        """
        if name in self.metrics:
            return self.metrics[name]
        cell = _CELL.fullmatch(name)
        if cell is not None:
            whole = self.metrics.get(cell[1])
            return None if whole is None else whole.cells("pair").get(cell[2]) or whole.macro.get(cell[2])
        if name.startswith(_RANDOM) and self.scores.concurrence is not None:
            drawn = self.scores.concurrence.random
            return Estimate(drawn[key]) if (key := name.removeprefix(_RANDOM)) in drawn else None
        chain, _, link = name.partition(".")
        table = {"selection": self.scores.selection, "attribution": self.scores.attribution}.get(chain)
        found = None if table is None else getattr(table.overall, link, None)
        return found if isinstance(found, Estimate) else None


class OutcomeCount(NamedTuple):
    """A count of what came of a run: ``had`` of ``of`` prompts, passages, replies or rows."""

    name: str
    had: int
    of: int


class _Counted(NamedTuple):
    """The share of the whole above which the label of a run says an outcome, and how it is counted."""

    above: float
    counted: Callable[[LeafResult], tuple[int, int]]


def _prompts_cut(leaf: LeafResult) -> tuple[int, int]:
    found = leaf.scores.prompts
    return (0, 0) if found is None else (found.shortened or 0, found.prompts)


def _untranslated(leaf: LeafResult) -> tuple[int, int]:
    """Return the passages that were to be translated and are not: a reason other than its own language."""
    counts = leaf.scores.translation.counts.get("documents", {}) if leaf.scores.translation is not None else {}
    return sum(n for name, n in counts.items() if name not in _AS_WANTED), sum(counts.values())


def _replies_cut(leaf: LeafResult) -> tuple[int, int]:
    ends = leaf.config.outcome.get("finish_reasons")
    known = {name: n for name, n in ends.items() if isinstance(n, int)} if isinstance(ends, Mapping) else {}
    return sum(n for name, n in known.items() if str(name).lower() in CUT), sum(known.values())


def _rows_unscored(leaf: LeafResult) -> tuple[int, int]:
    """Return the rows that failed, of the metric that lacks the most of its rows."""
    worst = max(leaf.metrics.values(), key=lambda score: score.failed_share, default=None)
    return (0, 0) if worst is None else (worst.failed, worst.n + worst.failed)


# What came of a run and stands in place of "this run" in its label. None of it is a setting, or compared.
OUTCOMES: Mapping[str, _Counted] = {
    "prompts cut": _Counted(0.0, _prompts_cut),
    "passages untranslated": _Counted(0.0, _untranslated),
    "replies cut": _Counted(MOST_FAILED, _replies_cut),
    "rows unscored": _Counted(MOST_FAILED, _rows_unscored),
}
# Translations that were made, and texts that need none.
_AS_WANTED = ("translated", "cached", "same_language")


def outcomes_text(leaves: Iterable[LeafResult]) -> str:
    """Return the outcomes of several tasks in one text, each counted over those that have it; empty for none."""
    found: dict[str, list[OutcomeCount]] = {}
    # one task may fill several columns
    once = {id(leaf): leaf for leaf in leaves}
    for outcome in (outcome for leaf in once.values() for outcome in leaf.outcomes):
        found.setdefault(outcome.name, []).append(outcome)
    sums = {name: (sum(one.had for one in every), sum(one.of for one in every)) for name, every in found.items()}
    return ", ".join(f"{had:,} of {of:,} {name}" for name, (had, of) in sums.items())


def _plain(name: str, score: Estimate, failed: int) -> MetricScore:
    """Return a score of the task as a whole, of which ``failed`` units (territories, or replies) are missing."""
    bounds = None
    # ΔCS compares means over different territories: it is no mean that a missing one would be part of
    if score.value is not None and ".delta" not in name:
        bounds = bounds_with(score.value * score.n, score.n, failed, name)
    kept = (score.value, score.low, score.high, score.n, score.method, score.reason)
    return MetricScore(*kept, failed=failed, bounds=bounds)


@dataclass(frozen=True)
class ResultFile:
    """One ``results_*.json``: the model by its name, the time of the run (UNIX seconds), and its scored tasks.

    ``content`` is the whole file, as the harness wrote it.
    """

    path: Path
    model: str
    date: float
    leaves: Mapping[str, LeafResult]
    content: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def called(self) -> str:
        """Return what the run calls the model: for a local folder, its path."""
        return _called(self.content) if self.content else self.model

    @property
    def configs(self) -> Mapping[str, TaskConfig]:
        """Return the configuration of every task, scored or not."""
        configs = self.content.get("configs") or {}
        return {
            task: self.leaves[task].config if task in self.leaves else TaskConfig(config, self.measurement(task))
            for task, config in configs.items()
            if isinstance(config, dict)
        }

    def measurement(self, task: str) -> Measurement | None:
        """Return the record of what a task's numbers measure, scored or not; None without one."""
        if task in self.leaves:
            return self.leaves[task].measurement
        known = isinstance((self.content.get("configs") or {}).get(task), dict)
        return measurement_of(self.content, task, f"{self.path}: configs.{task}") if known else None

    @property
    def groups(self) -> Mapping[str, Sequence[str]]:
        """Return group -> the tasks and groups directly in it."""
        found = self.content.get("group_subtasks")
        listed = found.items() if isinstance(found, Mapping) else ()
        lists = {group: inner for group, inner in listed if isinstance(inner, list)}
        return {group: inner for group, inner in lists.items() if all(isinstance(one, str) for one in inner)}

    def groups_of(self, task: str) -> tuple[str, ...]:
        """Return every group that contains the task, groups of groups too."""
        found: dict[str, None] = {}
        wanted = {task}
        while wanted:
            wanted = {group for group, inner in self.groups.items() if wanted & set(inner)} - found.keys()
            found |= dict.fromkeys(sorted(wanted))
        return tuple(found)

    def tasks_of(self, group: str) -> list[str]:
        """Return the tasks of a group, those of its groups too; empty for a task."""
        out: dict[str, None] = {}
        for child in self.groups.get(group) or ():
            inner = self.tasks_of(child)
            out |= dict.fromkeys(inner or ([child] if child in self.configs else []))
        return list(out)

    def redefined(self, tasks_folder: Path) -> set[str]:
        """Return the groups that have other members than the groups of the same names in ``tasks_folder``."""
        from mrag_eval.harness import group_rules

        rules = group_rules(tasks_folder) if self.groups else {}
        listed = {
            group: [child for child in rules.get(group, {}).get("task") or () if isinstance(child, str)]
            for group in self.groups
        }
        return {group for group, own in listed.items() if own and sorted(own) != sorted(self.groups[group])}

    @cached_property
    def plain_means(self) -> Mapping[str, tuple[str, ...]]:
        """Return group -> metrics of which it has the plain mean of its tasks, and not that weighted by their rows."""
        return {group: means for group in self.groups if (means := self._plain_means(group))}

    def _plain_means(self, group: str) -> tuple[str, ...]:
        tasks = self.tasks_of(group)
        found = []
        for key, value in self.reported(group).items():
            parts = [part for task in tasks if isinstance(part := self.reported(task).get(key), int | float)]
            if "_stderr," in key or not isinstance(value, int | float) or not parts or len(parts) < len(tasks):
                continue
            sizes = [self.rows_of(task) for task in tasks]
            weighted = sum(size * part for size, part in zip(sizes, parts, strict=True)) / (sum(sizes) or 1.0)
            if abs(sum(parts) / len(parts) - value) <= EQUAL_MEANS < abs(weighted - value):
                found.append(key.removesuffix(",none"))
        return tuple(found)

    def rows_of(self, task: str) -> int:
        """Return the rows of a task, by which the harness weights it in a group, scored by a metric or not."""
        return int(self.reported(task).get("sample_len") or self.leaves[task].scores.rows)

    def reported(self, name: str) -> Mapping[str, Any]:
        """Return what the harness reports of a task or group: ``metric,filter`` -> value."""
        found = (self.content.get("results") or {}).get(name)
        return found if isinstance(found, Mapping) else {}

    @property
    def run(self) -> Mapping[str, Any]:
        """Return the harness's call: model, arguments, seeds, limit."""
        found = self.content.get("config")
        return found if isinstance(found, Mapping) else {}

    @property
    def time(self) -> datetime:
        """Return the time of the run."""
        return datetime.fromtimestamp(self.date, tz=timezone.utc)

    @property
    def model_type(self) -> str | None:
        """Return the harness's model type."""
        found = self.run.get("model")
        return None if found is None else str(found)

    @property
    def model_revision(self) -> str | None:
        """Return the revision of the model's weights."""
        found = self.run.get("model_sha") or self.run.get("model_revision")
        return None if not found else str(found)

    @property
    def harness_version(self) -> str:
        """Return the version of lm-eval that the run recorded."""
        return str(self.content.get("lm_eval_version") or "unknown")

    @property
    def seconds(self) -> float | None:
        """Return the duration of the run in seconds."""
        found = self.content.get("total_evaluation_time_seconds")
        return None if found is None else float(found)

    def part(self, task: str) -> str | None:
        """Return how many of a task's rows were run, such as ``20 of 1,190 rows``; None for all of them."""
        rows, total = self.leaves[task].scores.rows, (self.content.get("n-samples") or {}).get(task) or {}
        if (share := self.leaves[task].config.data.get("share")) is not None:
            return f"{number_of(rows, 'row')} (data.share {share})"
        if isinstance(total.get("original"), int):
            return None if rows >= total["original"] else f"{rows:,} of {total['original']:,} rows"
        # the harness's record of the flag, in files without counts
        return None if self.run.get("limit") is None else f"{number_of(rows, 'row')} (--limit)"

    def remark(self, task: str) -> str | None:
        """Return what a table must say of a task: how many of its rows were run, its marks, and what came of it."""
        leaf = self.leaves[task]
        return ", ".join(filter(None, (self.part(task), *leaf.config.marks, outcomes_text([leaf])))) or None

    def samples(self, task: str, *, judged: bool = True) -> Path | None:
        """Return the sample file of a task next to the results, a ``judged`` one first; None if there is none."""
        if judged and LaterVerdicts.of(self.path, task) is not None:
            return LaterVerdicts.samples_path(self.path, task)
        path = _beside(self.path, "samples", task, "jsonl")
        return path if path.is_file() else None


@dataclass(frozen=True, slots=True)
class LaterVerdicts:
    """The verdicts of a panel on a finished run: the task's scores with them, and what these measure.

    They lie beside the results, which stay as the run wrote them: the judged samples, and these scores with the hash of
    the samples that they were made of. Neither counts without the other.
    """

    scores: TaskScores
    samples: str
    measurement: Measurement

    @staticmethod
    def path(results: Path, task: str) -> Path:
        """Return where the scores are that verdicts on a task of a result file give."""
        return _beside(results, "judged_scores", task, "json")

    @staticmethod
    def samples_path(results: Path, task: str) -> Path:
        """Return where the judged samples of a task of a result file are."""
        return _beside(results, "judged_samples", task, "jsonl")

    @classmethod
    def of(cls, results: Path, task: str) -> LaterVerdicts | None:
        """Return the verdicts on a task of a result file; None without any.

        Scores and samples that are not of the same votes do not count, with a warning. Raises DataError for a file of
        scores that cannot be read.
        """
        files = cls.path(results, task), cls.samples_path(results, task)
        return _later(*files, *map(_state, files))

    def write(self, results: Path, task: str) -> None:
        """Write the verdicts beside a result file, with known secrets hidden; they replace earlier ones."""
        text = json.dumps(hidden(with_version(self)), ensure_ascii=False, indent=2)
        write_whole(self.path(results, task), f"{text}\n")


def metrics_in_order(leaves: Iterable[LeafResult]) -> list[str]:
    """Return the metrics of some tasks, each once: the headlines of their benchmarks first."""
    lists = [leaf.in_order((*leaf.metrics, *leaf.unscored)) for leaf in leaves]
    return list(dict.fromkeys((*(name for own in lists for name in own[:1]), *(name for own in lists for name in own))))


def _beside(results: Path, kind: str, task: str, ending: str) -> Path:
    return results.with_name(f"{kind}_{task}_{results.stem.removeprefix('results_')}.{ending}")


def _state(path: Path) -> tuple[int, int] | None:
    """Return what changes with the content of a file; None without one."""
    if not path.is_file():
        return None
    found = path.stat()
    return found.st_mtime_ns, found.st_size


@lru_cache(maxsize=64)
def _later(
    path: Path, samples: Path, scores_state: tuple[int, int] | None, samples_state: tuple[int, int] | None
) -> LaterVerdicts | None:
    """Read the verdicts once for all that ask for them, and warn once."""
    if scores_state is None and samples_state is None:
        return None
    later, alone, why = None, samples, f"{path.name} is not beside it"
    if scores_state is not None:
        fix = f"judge the run again, or remove {path}"
        content = _json_of(path, fix)
        check_version(content if isinstance(content, dict) else {}, str(path))
        later = from_json(LaterVerdicts, finite(with_names_of_one_line(content)), str(path), fix)
        alone, why = path, f"{samples.name} {'is not beside it' if samples_state is None else 'holds other votes'}"
    if later is not None and samples_state is not None and sha256_file(samples) == later.samples:
        return later
    log.warning(
        "%s: these verdicts do not count, and the run's own scores do: %s; judge the run again, or remove it",
        alone,
        why,
    )
    return None


def with_later_verdicts(file: ResultFile) -> ResultFile:
    """Return a result file with the verdicts that were given after the run as part of its tasks.

    Raises DataError for a file of verdicts that cannot be read.
    """
    found = {}
    for task, leaf in file.leaves.items():
        later = LaterVerdicts.of(file.path, task)
        if later is not None:
            config = replace(leaf.config, record=later.measurement)
            found[task] = LeafResult(task, later.scores, config, later.measurement)
    return replace(file, leaves={**file.leaves, **found}) if found else file


def read_results(paths: Sequence[Path], *, judged: bool = True) -> list[ResultFile]:
    """Return the result files at ``paths`` (files, or folders searched for ``results_*.json``), in order of their date.

    Of models in folders of one name, each is named by its whole path. ``judged``: verdicts that were given after a run
    are part of it.

    Raises DataError naming the path that is missing, holds no result file or is not one, and for scores of another
    schema.
    """
    files: dict[Path, None] = {}
    for path in paths:
        if path.is_dir():
            found = sorted(path.rglob("results_*.json"))
            if not found:
                raise DataError(f"{path}: no results_*.json in this folder", "name the --output_path of a run")
            files |= dict.fromkeys(found)
        elif path.is_file():
            files[path] = None
        else:
            raise DataError(f"{path}: no such file or folder{beside(path)}", "name the --output_path of a run")
    with Wait("reading results", len(files), "files") as wait:
        read = [read_result_file(path) for path in wait.over(files)]
    read = [with_later_verdicts(file) for file in read] if judged else read
    names = names_of_models(result.called for result in read)
    told = [replace(result, model=names[result.called]) for result in read]
    return sorted(told, key=lambda result: (result.date, str(result.path)))


def read_result_file(path: Path) -> ResultFile:
    """Return one result file. Raises DataError as :func:`read_results` does."""
    cut_off = path.name.startswith("results_")
    named = "name the results_*.json of a run; a log is scored first: mrag-eval score LOG --output_path DIR"
    if path.suffix.lower() in (".jsonl", ".csv", ".tsv", ".parquet"):
        raise DataError(f"{path}: rows, not the results of a run", named)
    content = _json_of(path, "the run may have been cut off: run it again, or name another file" if cut_off else named)
    if not isinstance(content, dict) or not isinstance(content.get("configs"), dict):
        raise DataError(f"{path}: not a result file of lm_eval (no 'configs')", named)
    # scores that are no numbers are missing with a reason; settings that are none, without
    content = with_names_of_one_line(content)
    configs, content = content["configs"], finite(content)
    leaves = {}
    for task, config in configs.items():
        if isinstance(config, dict) and isinstance(config.get("scores"), dict):
            scores = TaskScores.from_dict(config["scores"], f"{path}: configs.{task}.scores")
            rest = {name: finite(value) for name, value in config.items() if name not in ("scores", "measurement")}
            record = measurement_of(content, task, f"{path}: configs.{task}")
            assert record is not None, "scores"
            full = TaskConfig(rest | _of_the_run(content), record)
            leaves[task] = LeafResult(task, scores, full, record)
    date = content.get("date")
    known = isinstance(date, int | float) and 0 <= date < _LAST_DATE
    return ResultFile(path, name_of_model(_called(content)), float(date) if known else 0.0, leaves, content)


def _json_of(path: Path, fix: str) -> Any:
    try:
        return json_value(regular(path).read_bytes(), lax="all")
    except OSError as err:
        raise DataError(f"{path}: cannot be read ({err.strerror})", "name a readable results_*.json") from None
    except JsonFault as err:
        raise DataError(f"{path}: not readable as JSON ({err})", fix) from None


def _of_the_run(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that a leaf takes from its run: the seed, ``--limit``, the type of the model."""
    run = content.get("config") or {}
    generation = run.get("gen_kwargs")
    seed = (generation.get("seed") if isinstance(generation, Mapping) else None) or run.get("torch_seed")
    return {"seed": seed, "limit": run.get("limit"), "model_type": run.get("model")}


def _called(content: Mapping[str, Any]) -> str:
    """Return what the run calls the evaluated model, a path as it is.

    If a model's arguments name none (``oracle_answer``), the harness makes up a different name in each run.
    """
    run = content.get("config") or {}
    args = run.get("model_args")
    args = args if isinstance(args, str | Mapping) else {}
    keys = [part.partition("=")[0].strip() for part in args.split(",")] if isinstance(args, str) else list(args)
    if isinstance(run.get("model"), str) and not {*keys} & {*NAMING_ARGUMENTS}:
        return str(run["model"])
    named = args.get("pretrained") or args.get("model") if isinstance(args, Mapping) else None
    return one_line(str(content.get("model_name") or named or run.get("model") or "unnamed model"))
