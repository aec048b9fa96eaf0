"""The harness's sample files: the scored rows of one task of one run."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from mrag_eval.config import Measurement
from mrag_eval.core import (
    DataError,
    Hit,
    RagDoc,
    Trace,
    Vote,
    hidden,
    json_value,
    regular,
    task_and_date,
    to_json,
    write_whole,
)
from mrag_eval.report.files._results import ResultFile, read_result_file
from mrag_eval.report.files._row_texts import RowTexts
from mrag_eval.report.files._scored_rows import TERRITORY, ScoredRow, ScoredSamples, current_reading
from mrag_eval.report.files._task_config import TaskConfig
from mrag_eval.scoring import RowRecord


@dataclass(frozen=True)
class Sample:
    """One line of a sample file: the row's record, and the harness's line with question and reply."""

    record: RowRecord
    line: Mapping[str, Any] = field(repr=False)

    @property
    def _doc(self) -> Mapping[str, Any]:
        return self.line.get("doc") or {}

    @cached_property
    def doc(self) -> RagDoc:
        """Return the question; if the sample has none, only its id and language."""
        known = {"id": self.record.row, "query": "", "query_lang": self.record.query_lang}
        return RagDoc.from_dict({**known, **self._doc})

    @cached_property
    def passages(self) -> tuple[Hit, ...]:
        """Return the passages in the prompt."""
        return tuple(Hit.from_dict(passage) for passage in self._doc.get("passages") or ())

    @cached_property
    def trace(self) -> Trace | None:
        """Return the trace of the agents' loop; None without one."""
        found = self._doc.get("trace")
        return Trace.from_dict(found, f"trace of row '{self.record.row}'") if found else None

    @property
    def reply(self) -> str:
        """Return the model's reply, after the task's filter; empty if it was not kept."""
        value: Any = self.line.get("filtered_resps")
        while isinstance(value, list) and value:
            value = value[0]
        return value if isinstance(value, str) else ""

    @property
    def replies(self) -> list[str]:
        """Return every reply, after the task's filter."""
        return list(_texts(self.line.get("filtered_resps")))

    @property
    def answer(self) -> str:
        """Return the answer read off the reply."""
        return self.record.answer_to(self.reply).text

    @property
    def prompt(self) -> str | None:
        """Return the prompt as it was sent; None if the harness did not keep it."""
        value: Any = self.line.get("arguments")
        for key in ("gen_args_0", "arg_0"):
            value = value.get(key) if isinstance(value, Mapping) else None
        return None if value is None else str(value)

    @property
    def votes(self) -> Mapping[str, Mapping[str, Any]]:
        """Return the judges' votes in full, by seat."""
        return self.line.get("votes") or {}

    @property
    def source_language(self) -> str:
        """Return the language of the question's culture if its row names one, else that of the question."""
        return self.doc.culture_lang or self.record.query_lang

    def rescored(
        self, record: RowRecord, stale: Collection[str], values: Mapping[str, float], votes: Mapping[str, Vote] | None
    ) -> Sample:
        """Return the sample with a new record, and the harness's own columns of metrics to match it.

        ``stale`` names the columns that ``values`` replace; ``votes`` None keeps the column of votes.
        """
        line = {key: value for key, value in self.line.items() if key not in stale}
        kept = [name for name in line.get("metrics", ()) if name not in stale]
        if votes is not None:
            line["votes"] = to_json(votes)
            kept = [*(name for name in kept if name != "votes"), "votes"]
        return Sample(record, line | {"rows": record.to_dict(), **values, "metrics": [*kept, *values]})

    def with_labels(self, labels: Mapping[str, Mapping[str, str]]) -> Sample:
        """Return the sample with the labels of its passages (passage id -> labels), replacing any earlier ones."""
        passages = []
        for passage in self._doc.get("passages") or ():
            kept = {key: value for key, value in passage.items() if key != "labels"}
            found = labels.get(str(passage["id"]))
            passages.append(kept if found is None else kept | {"labels": dict(found)})
        return Sample(self.record, {**self.line, "doc": {**self._doc, "passages": passages}})


def _texts(value: Any) -> list[str]:
    if isinstance(value, list):
        return [text for item in value for text in _texts(item)]
    return [] if value is None else [str(value)]


@dataclass(frozen=True)
class RunOf:
    """Name a run: its model, the revision of the weights if it is known, and its time (UNIX seconds; 0: unknown)."""

    model: str = "unnamed model"
    revision: str | None = None
    date: float = 0.0

    def __str__(self) -> str:
        day = datetime.fromtimestamp(self.date, tz=timezone.utc).strftime("%Y-%m-%d %H:%M") if self.date else None
        known = [f"revision {self.revision[:12]}" if self.revision else None, day]
        named = ", ".join(text for text in known if text)
        return f"{self.model} ({named})" if named else self.model


@dataclass(frozen=True)
class SampleSet:
    """The rows of one task of one run, and its record (None if there is no result file in the same folder).

    ``groups`` are the groups of tasks in which the run reports it. ``part`` says how many of the rows were run, if not
    all, and that it is an upper bound. ``run`` names the run. ``kept`` holds the answers that a baseline keeps; None:
    the file has samples.
    """

    task: str
    path: Path
    measurement: Measurement | None
    rows: Mapping[str, ScoredRow]
    groups: tuple[str, ...] = ()
    part: str | None = None
    run: RunOf = RunOf()
    kept: Mapping[str, RowTexts] | None = None


def read_samples(path: Path, *, repeated: bool = False) -> list[Sample]:
    """Return the lines of a sample file.

    Raises DataError, naming the line, for a line that is not a sample of one of our tasks, or has another schema, and
    for a row that is there twice, unless ``repeated`` rows are looked for.
    """
    samples = _known_or_read(path)
    if not repeated:
        _check_once(path, samples)
    return samples


def _check_once(path: Path, samples: Sequence[Sample]) -> None:
    times = Counter(sample.record.row for sample in samples)
    twice = sum(number > 1 for number in times.values())
    if twice:
        raise DataError(
            f"{path}: rows that are there more than once: {twice:,}, such as '{times.most_common(1)[0][0]}'",
            "name the samples as the run wrote them (mrag-eval verify compares them with the results)",
        )


def _known_or_read(path: Path) -> list[Sample]:
    reading = current_reading()
    known = None if reading is None else reading.samples.get(path.absolute())
    if known is not None:
        return known
    samples = _read(path)
    if reading is not None:
        reading.remember(path, samples)
    return samples


def scored_samples(path: Path) -> ScoredSamples:
    """Return the scored rows of a sample file; a file that the command has read is not read again.

    Raises DataError as :func:`read_samples` does.
    """
    reading = current_reading()
    if reading is None:
        return ScoredSamples.of([sample.record for sample in read_samples(path)])
    if path.absolute() not in reading.scored:
        read_samples(path)
    return reading.scored[path.absolute()]


def _read(path: Path) -> list[Sample]:
    try:
        lines = regular(path).read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as err:
        raise DataError(f"{path}: cannot be read ({err})", "name a samples_*.jsonl of a run") from None
    samples: list[Sample] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        try:
            sample = json_value(line, lax=True)
        except ValueError:
            raise DataError(
                f"{where}: not JSON", "the run may have been cut off while it wrote: run it again"
            ) from None
        if not isinstance(sample, dict) or not isinstance(sample.get("rows"), dict) or "row" not in sample["rows"]:
            raise DataError(
                f"{where}: not a scored sample of one of our tasks",
                "run with --log_samples --output_path FOLDER, without --predict_only",
            )
        key = _misshapen(sample)
        if key is not None:
            raise DataError(
                f"{where}: {key} is not of the type that a run writes", "name the samples as the run wrote them"
            )
        samples.append(Sample(RowRecord.from_dict(sample["rows"], where), sample))
    if not samples:
        raise DataError(f"{path} holds no samples", "run again with --log_samples --output_path FOLDER")
    return samples


_DOC: Mapping[str, type] = {"query": str, "answers": list, "passages": list, "trace": dict}


def _misshapen(sample: Mapping[str, Any]) -> str | None:
    """Return the first key of a sample whose value has another type than a run writes; None if there is none."""
    for key in ("doc", "votes"):
        if sample.get(key) is not None and not isinstance(sample[key], dict):
            return f"'{key}'"
    doc = sample.get("doc") or {}
    for key, kind in _DOC.items():
        if doc.get(key) is not None and not isinstance(doc[key], kind):
            return f"'doc.{key}'"
    for i, passage in enumerate(doc.get("passages") or ()):
        if not isinstance(passage, dict) or "id" not in passage:
            return f"'doc.passages[{i}]'"
        if not isinstance(passage.get("score") or 0.0, int | float):
            return f"'doc.passages[{i}].score'"
    return None


def write_samples(path: Path, samples: Sequence[Sample]) -> None:
    """Write samples to ``path``, with known secrets hidden in their texts; create its folder if it is missing."""
    text = "".join(json.dumps(hidden(sample.line), ensure_ascii=False) + "\n" for sample in samples)
    # half a surrogate pair, which a model may write, becomes a JSON escape, as in the run's file
    write_whole(path, text, errors="backslashreplace")


def result_beside(path: Path) -> ResultFile | None:
    """Return the result file of the run that wrote the samples at ``path``; None if it is not in the same folder."""
    results = results_beside(path)
    try:
        changed = results.stat().st_mtime_ns
    except OSError:
        return None
    return _result(results, changed)


@lru_cache(maxsize=4)
def _result(path: Path, _modified: int) -> ResultFile:
    """Read the results once for all the tasks of a run."""
    return read_result_file(path)


def config_beside(path: Path) -> TaskConfig:
    """Return the task's configuration in the results next to the samples at ``path``; empty without one."""
    found = result_beside(path)
    return TaskConfig() if found is None else found.configs.get(task_of(path), TaskConfig())


def part_beside(path: Path) -> str | None:
    """Return how many of the rows the run of the samples at ``path`` was over; None for all, and without results."""
    found, task = result_beside(path), task_of(path)
    return None if found is None or task not in found.leaves else found.remark(task)


def model_beside(path: Path) -> str:
    """Return the name of the model whose run wrote the samples at ``path``."""
    found = result_beside(path)
    return "unnamed model" if found is None else found.model


def results_beside(path: Path) -> Path:
    """Return the path of the result file of the run that wrote the samples at ``path``, if it exists."""
    return path.parent / f"results_{task_and_date(path)[1]}.json"


def samples_beside(results: Path, task: str) -> Path | None:
    """Return the sample file that the run of the result file wrote for a task; None without one."""
    path = results.parent / f"samples_{task}_{results.stem.removeprefix('results_')}.jsonl"
    return path if path.is_file() else None


def sample_files(paths: Sequence[Path]) -> list[Path]:
    """Return the sample files at ``paths`` (files or folders): per task and folder the newest, a judged one first.

    Raises DataError for a path without sample files.
    """
    newest: dict[tuple[Path, str], Path] = {}
    for file in _files_at(paths):
        key = file.parent, task_of(file)
        newest[key] = max(newest.get(key, file), file, key=_order)
    return list(newest.values())


def _files_at(paths: Sequence[Path]) -> list[Path]:
    """Return the sample files among ``paths``, and those below the folders among them, each once."""
    files: dict[Path, None] = {}
    for path in paths:
        below = [] if path.is_file() else sorted(path.rglob("*samples_*.jsonl"))
        found = [path] if path.is_file() else [p for p in below if p.name.startswith(("samples_", "judged_"))]
        if not found:
            raise DataError(
                f"{path}: no sample files in this folder" if path.is_dir() else f"{path}: no such file or folder",
                "run with --log_samples --output_path FOLDER, and name that folder",
            )
        files |= dict.fromkeys(found)
    return list(files)


def _order(path: Path) -> tuple[str, bool, str]:
    """Return the order in which sample files of one task replace each other: by date, a judged one last."""
    return task_and_date(path)[1], path.name.startswith("judged_"), str(path)


def task_of(path: Path) -> str:
    """Return the name of the task whose rows the sample file at ``path`` holds."""
    return task_and_date(path)[0]


def read_runs(paths: Sequence[Path], model: str | None = None) -> dict[str, SampleSet]:
    """Return task name -> its newest scored rows, from sample files or from folders searched for them.

    A file that ``mrag-eval judge answers`` wrote takes precedence over its source. ``model`` keeps the runs of one
    model. Raises DataError for a path without sample files, and for runs of several models, listing them.
    """
    files = _files_at(paths)
    models = sorted({model_beside(file) for file in files})
    if model is not None and model not in models:
        raise DataError(f"{_listed(paths)}: no run of the model {model}", f"the models there: {', '.join(models)}")
    if model is None and len(models) > 1:
        raise DataError(
            f"{_listed(paths)}: runs of {len(models)} models: {', '.join(models)}",
            "name the folder of one, or choose it by its name (mrag-eval gate --model, --baseline-model)",
        )
    newest = {task_of(file): file for file in sorted(files, key=_order) if model is None or model_beside(file) == model}
    return {task: _sample_set(task, path) for task, path in sorted(newest.items())}


def _listed(paths: Sequence[Path]) -> str:
    return ", ".join(map(str, paths))


def _sample_set(task: str, path: Path) -> SampleSet:
    found = scored_samples(path)
    rows = dict(found.rows)
    # scores over territories compare as those over rows do, with a row for each territory
    for territory, values in found.territories.items():
        name = f"{TERRITORY}{territory}"
        rows[name] = ScoredRow(name, "", territory, values)
    file = result_beside(path)
    if file is None:
        return SampleSet(task, path, None, rows)
    leaf = file.leaves.get(task)
    part = None if leaf is None else file.remark(task)
    run = RunOf(file.model, file.model_revision, file.date)
    return SampleSet(task, path, file.measurement(task), rows, file.groups_of(task), part, run)
