"""The programs that read our exports: mteb and Every Eval Ever, each by its own package, and the hub's client."""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import parse_eval_result_entries
from huggingface_hub.repocard import metadata_load
from huggingface_hub.repocard_data import model_index_to_eval_results

from mrag_eval.datasets import declaration_of
from mrag_eval.platform import DataError
from mrag_eval.report import EXPORTS, Options, export
from mrag_eval.report.exports._runs import runs_of
from tests.worlds.finished_runs import RUNS

READER = Path(__file__).parent / "consumers" / "mteb_reader.py"


def foreign(name: str, package: str) -> Path:
    """Return the Python that ``MRAG_TEST_<NAME>`` names: these packages need other releases of what this one needs."""
    found = os.environ.get(f"MRAG_TEST_{name}")
    if not found:
        pytest.skip(f"no Python with {package}: MRAG_TEST_{name}=PYTHON (.ci/run makes one)")
    return Path(found)


def called(program: list[str | Path], folder: Path) -> str:
    """Run a program of another environment, away from this project."""
    clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(program, cwd=folder, env=clean, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr or done.stdout[:4000]
    return done.stdout


def exported(run: Path, form: str, folder: Path) -> list[Path]:
    """Return the files of an export; none if leaderboards do not take the run, of part of the rows or many failed."""
    scores = runs_of([run / "out"])[0][0].tasks[0].scores
    part, failed = scores[0].part is not None, all(score.no_headline for score in scores if not score.dimension)
    if (part and EXPORTS[form].repo_type is not None) or (failed and EXPORTS[form].ranked):
        with pytest.raises(DataError, match="no task is left for a leaderboard"):
            export([run / "out"], form, Options(output=folder))
        return []
    return list(export([run / "out"], form, Options(output=folder)).files)


def main_score(config: Mapping[str, Any]) -> float | None:
    """Return the unweighted mean over languages of a benchmark's main metric, from the results themselves."""
    declared = declaration_of(config["measurement"]["setting"]["data"])
    if declared is None or declared.is_own(config["measurement"]["setting"]["data"]) or declared.main_metric is None:
        return None
    scores = config["scores"]
    found = scores["metrics"].get(declared.main_metric)
    if found is None and declared.main_metric.startswith("concurrence."):
        found = scores["concurrence"]["intervals"][declared.main_metric.removeprefix("concurrence.")]
    if found is None:
        return None
    cells = (found.get("by") or {}).get("query_lang")
    value: float = sum(cell["value"] for cell in cells.values()) / len(cells) if cells else found["value"]
    return value


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_mteb_reads_every_file(made: Callable[[str], Path], tmp_path: Path) -> None:
    """Every kind of task; ``get_score()`` is the mean over languages that the results give."""
    python = foreign("MTEB", "mteb")
    wanted: dict[str, tuple[str, float | None]] = {}
    models = []
    for name in RUNS:
        files = exported(made(name), "mteb", tmp_path / name)
        models += [str(path) for path in files if path.name == "model_meta.json"]
        (results,) = (made(name) / "out").rglob("results_*.json")
        configs = json.loads(results.read_text("utf-8"))["configs"]
        for path in files:
            if path.name == "model_meta.json":
                continue
            task = next(task for task in sorted(configs, key=len, reverse=True) if path.name.startswith(task))
            wanted[str(path)] = (task, main_score(configs[task]))
    answer = json.loads(called([python, READER, tmp_path], tmp_path))
    read = answer["read"]
    assert set(read) == {*wanted, *models}
    assert len(wanted) >= 16
    for path, (task, score) in wanted.items():
        one = read[path]
        assert one["task"].startswith(task)
        assert one["revision"] not in (None, "", "no_revision_available")
        assert one["score"] == (None if score is None else pytest.approx(score, abs=1e-12)), task
    assert sum(score is not None for _, score in wanted.values()) >= 16
    for path in models:
        assert "/" in read[path]["model"]
    # one language of two
    (path,) = (path for path, (task, _) in wanted.items() if task == "xlcost_travel")
    (results,) = (made("labelled") / "out").rglob("results_*.json")
    config = json.loads(results.read_text("utf-8"))["configs"]["xlcost_travel"]
    declared = declaration_of(config["measurement"]["setting"]["data"])
    assert declared is not None
    cells = config["scores"]["metrics"][declared.main_metric]["by"]["query_lang"]
    assert read[path]["by"] == {"ara": cells["ar"]["value"], "eng": cells["en"]["value"]}


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_every_eval_ever_finds_no_fault(made: Callable[[str], Path], tmp_path: Path) -> None:
    """Records and rows of every run that a leaderboard takes, by the validator of the datastore."""
    python = foreign("EEE", "every-eval-ever")
    files = []
    for name in RUNS:
        copy = Path(shutil.copytree(made(name) / "out", tmp_path / "runs" / name / "out"))
        for results in copy.rglob("results_*.json"):
            content = json.loads(results.read_text("utf-8"))
            # without a developer nobody would find the record
            run = {**content["config"], "model_args": {"pretrained": "org/model"}}
            results.write_text(json.dumps({**content, "config": run, "model_name": "org/model"}), "utf-8")
        files += exported(copy.parent, "eee", tmp_path / name)
    assert len(files) >= 10
    command = [python, "-m", "every_eval_ever", "validate", "--format", "json", *files]
    found = json.loads(called(command, tmp_path))
    assert {Path(one["file"]) for one in found} == set(files)
    assert [one for one in found if one["errors"] or one["warnings"] or not one["valid"]] == []


@pytest.mark.slow
def test_the_hub_s_client_reads_cards_and_entries(made: Callable[[str], Path], tmp_path: Path) -> None:
    import yaml

    seen = 0
    splits: dict[str, set[str | None]] = {}
    for name in RUNS:
        for card in exported(made(name), "model-index", tmp_path / name):
            metadata = metadata_load(card)
            assert metadata is not None
            _, results = model_index_to_eval_results(metadata["model-index"])
            assert results
            for result in results:
                assert result.metric_args is not None
                assert {"unit", "better"} <= set(result.metric_args)
            splits[name] = {result.dataset_split for result in results}
            seen += len(results)
        for file in exported(made(name), "eval-results", tmp_path / name):
            entries = parse_eval_result_entries(yaml.safe_load(file.read_text("utf-8")))
            assert all(entry.task_id for entry in entries)
            seen += len(entries)
    assert seen > 100
    # a user's own rows have no splits, nor have BordIRlines and The Cross-Lingual Cost
    assert splits.pop("whole_benchmark") == {"test"}
    assert set(splits) == {"small", "bordirlines", "likelihood", "labelled"}
    assert all(found == {None} for found in splits.values())


@pytest.mark.parametrize("name", ["small", "answered", "whole_benchmark"])
def test_every_group_is_the_mean_that_it_names(name: str, made: Callable[[str], Path], tmp_path: Path) -> None:
    """Recomputed from the exported tasks and the exported weights, and n is that of the tasks together."""
    (path,) = exported(made(name), "csv", tmp_path / "scores.csv")
    lines = [line for line in csv.DictReader(path.open(encoding="utf-8")) if not line["dimension"]]
    # a task's name in the file is followed by how it was run
    tasks = {(line["task"].partition(" (")[0], line["metric"]): line for line in lines if line["kind"] == "task"}
    groups = [line for line in lines if line["kind"] == "group" and line["value"]]
    assert bool(groups) == (name != "answered")
    for line in groups:
        weights = {task: float(weight) for task, weight in (part.split(" ") for part in line["weights"].split(", "))}
        assert list(weights) == line["tasks"].split(", ")
        assert (len(set(weights.values())) == 1) == line["mean"].startswith("unweighted") or len(weights) == 1
        parts = [tasks[task, line["metric"]] for task in weights]
        mean = sum(w * float(part["value"]) for w, part in zip(weights.values(), parts, strict=True))
        assert float(line["value"]) == pytest.approx(mean / sum(weights.values()), abs=1e-9)
        assert int(line["n"]) == sum(int(part["n"]) for part in parts)
