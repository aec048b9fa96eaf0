"""Baseline files: the scored rows of a run, small enough for version control; on demand with its answers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from mrag_eval.config import Measurement
from mrag_eval.platform import (
    DataError,
    beside,
    fault_in,
    finite_number,
    json_value,
    regular,
    with_names_of_one_line,
    write_whole,
)
from mrag_eval.report.files._row_texts import RowTexts
from mrag_eval.report.files._runs import RunOf, SampleSet, read_runs
from mrag_eval.report.files._samples import samples_of
from mrag_eval.report.files._scored_rows import ScoredRow
from mrag_eval.scoring import tell_metrics

# 4 names the run, 5 has further cells of its rows
_FORMAT = 5
_READ = (4, _FORMAT)
_SUFFIX = ".json"


def write_baseline(runs: Sequence[Path], out: Path, model: str | None = None, *, answers: bool = False) -> int:
    """Write the scored rows of ``runs`` (sample files, or folders of them) to ``out`` and return the number of tasks.

    Questions, passages and answers are left out. Row ids, languages and cells of other breakdowns, values and the
    record of what was measured, by which a later run is comparable or not, are kept. Keys are sorted and each row is
    one line, so that two baselines can be diffed. With ``answers`` the file also keeps each row's answer, votes, and
    the ids of the passages shown: what a later comparison needs to say why a row got worse.
    """
    tasks = read_runs(runs, model)
    parts = []
    for name, run in tasks.items():
        record = None if run.measurement is None else run.measurement.portable()
        failed = sorted(row.id for row in run.rows.values() if row.failed)
        head = {"measurement": record, "groups": list(run.groups), "part": run.part, "failed": failed}
        head |= {"run": asdict(run.run), **({"judged_by": judges} if (judges := _judges(run)) else {})}
        head |= {"plain_means": dict(run.plain_means)} if run.plain_means else {}
        rows = ",\n".join(
            json.dumps(
                [
                    *(row.id, row.language, row.group, dict(sorted(row.values.items())), row.document_language),
                    dict(sorted(row.cells.items())),
                ],
                ensure_ascii=False,
            )
            for row in sorted(run.rows.values(), key=lambda row: row.id)
        )
        kept = f',\n"answers": [\n{_answers(run)}\n]' if answers else ""
        settings = json.dumps(head, sort_keys=True)
        parts.append(f'{json.dumps(name)}: {{"settings": {settings},\n"rows": [\n{rows}\n]{kept}}}')
    text = f'{{"format": {_FORMAT},\n"tasks": {{\n' + ",\n".join(parts) + "\n}}\n"
    # half a surrogate pair, which a model may write, becomes a JSON escape
    write_whole(out, text, errors="backslashreplace")
    return len(tasks)


def _judges(run: SampleSet) -> dict[str, dict[str, bool]]:
    """Return the rows that each judge was asked about, and whether it gave a verdict."""
    found: dict[str, dict[str, bool]] = {}
    for row in sorted(run.rows.values(), key=lambda row: row.id):
        for judge, spoke in row.judged_by.items():
            found.setdefault(judge, {})[row.id] = spoke
    return found


def _answers(run: SampleSet) -> str:
    """Return the lines with the answers of a run, in the order of its row ids."""
    texts = run.texts(run.rows.keys())
    return ",\n".join(json.dumps(texts[row].kept(row), ensure_ascii=False) for row in sorted(texts))


def read_runs_or_baseline(
    paths: Sequence[Path], model: str | None = None, *, of_several: bool = False
) -> dict[str, SampleSet]:
    """Return task name -> scored rows from a baseline file, or from sample files and folders of them.

    ``model`` keeps the runs of one model among those of folders, with ``of_several`` only where there are several.
    Raises DataError for any other file, and for runs of several models.
    """
    if len(paths) == 1 and paths[0].suffix == _SUFFIX and not paths[0].is_dir() and not samples_of(paths[0]):
        runs = _read_baseline(paths[0])
        models = sorted({run.run.model for run in runs.values()})
        if model is not None and not of_several and models != [model]:
            raise DataError(f"{paths[0]}: no run of the model {model}", f"the models there: {', '.join(models)}")
        return runs
    return read_runs(paths, model, of_several=of_several)


def _read_baseline(path: Path) -> dict[str, SampleSet]:
    try:
        content = json_value(regular(path).read_bytes())
    except FileNotFoundError:
        raise DataError(
            f"{path}: no such file{beside(path)}", "mrag-eval gate --save FILE.json OUT   writes one"
        ) from None
    except (OSError, ValueError) as err:
        raise DataError(
            f"{path}: not readable as JSON ({err})", "write it again: mrag-eval gate --save FILE.json RUN"
        ) from None
    content = with_names_of_one_line(content)
    if not isinstance(content, dict) or not isinstance(content.get("format"), int) or not content.get("tasks"):
        raise DataError(f"{path}: not a baseline file", "mrag-eval gate --save FILE.json OUT   writes one")
    if content["format"] not in _READ:
        raise DataError(
            f"{path}: a baseline file of format {content['format']}; this version reads {_FORMAT}",
            "write it again: mrag-eval gate --save FILE.json RUN",
        )
    try:
        return {task: _task(task, path, entry) for task, entry in content["tasks"].items()}
    except (KeyError, TypeError, ValueError, AttributeError) as err:
        raise DataError(
            f"{path}: a damaged baseline file ({fault_in(err)})", "write it again: mrag-eval gate --save FILE RUN"
        ) from None


def _task(task: str, path: Path, entry: Mapping[str, Any]) -> SampleSet:
    settings = entry["settings"]
    failed = frozenset(settings["failed"])
    judges: Mapping[str, Mapping[str, bool]] = settings.get("judged_by", {})
    rows = {
        str(key): ScoredRow(
            *(str(key), str(language), str(group)),
            {name: finite_number(v) for name, v in values.items()},
            str(document),
            failed=key in failed,
            judged_by={judge: spoke for judge, rows in judges.items() if (spoke := rows.get(key)) is not None},
            cells={str(by): str(cell) for found in cells for by, cell in found.items()},
        )
        for key, language, group, values, document, *cells in entry["rows"]
    }
    written = settings["measurement"]
    record = None if written is None else Measurement.from_dict(written, f"{path}: {task}")
    run = RunOf(**settings["run"])
    if record is not None:
        tell_metrics(record.instrument, f"{path}: {task}")
    kept = dict(RowTexts.from_kept(line) for line in entry.get("answers", ()))
    plain = {group: tuple(metrics) for group, metrics in settings.get("plain_means", {}).items()}
    return SampleSet(task, path, record, rows, tuple(settings["groups"]), settings.get("part"), run, kept, plain)
