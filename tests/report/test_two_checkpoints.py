"""Two models in folders of one name are two models wherever runs are read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mrag_eval.platform import DataError
from mrag_eval.report import GateRules, gate, sample_files, write_baseline
from mrag_eval.report.files._leaves import result_leaves
from mrag_eval.report.files._runs import read_runs
from mrag_eval.report.files._samples import models_beside
from tests.report.runs import write_full_run


def checkpoint(folder: Path, key: str, named: str) -> Path:
    """Write a run of a model; return its folder."""
    write_full_run(folder)
    (path,) = folder.rglob("results_*.json")
    content = json.loads(path.read_text("utf-8"))
    content["model_name"] = named
    content["config"] = {"model": "hf", "model_args": {"pretrained": "a/base", key: named}}
    path.write_text(json.dumps(content), "utf-8")
    return folder


@pytest.mark.parametrize("key", ["pretrained", "peft", "delta", "model"])
def test_neither_is_dropped_and_both_are_told_apart(tmp_path: Path, key: str) -> None:
    runs = [checkpoint(tmp_path / name, key, f"/ckpt/{name}/final") for name in "ab"]
    leaves = [leaf for leaf, _ in result_leaves(runs)]
    both = ["/ckpt/a/final", "/ckpt/b/final"]
    assert sorted(leaf.run for leaf in leaves) == sorted(both * 2)
    assert len({leaf.label for leaf in leaves}) == 4
    assert sorted({*models_beside(sample_files(runs)).values()}) == both
    with pytest.raises(DataError, match="runs of 2 models: /ckpt/a/final, /ckpt/b/final"):
        read_runs(runs)
    assert {leaf.run for leaf, _ in result_leaves(runs[:1])} == {"final"}


def test_a_tokenizer_makes_another_model(tmp_path: Path) -> None:
    runs = [checkpoint(tmp_path / name, "tokenizer", f"/ckpt/{name}/final") for name in "ab"]
    for run in runs:
        (path,) = run.rglob("results_*.json")
        path.write_text(path.read_text("utf-8").replace('"model_name": "/ckpt', '"former": "/ckpt'), "utf-8")
    assert len({leaf.label for leaf, _ in result_leaves(runs)}) == 4


@pytest.mark.parametrize("pinned", ["two", "a", "old", "old.json"])
def test_the_model_of_the_baseline_is_taken_of_a_pinned_folder_with_several(pinned: str, tmp_path: Path) -> None:
    """A pinned run of one model is that run, whatever its model is called."""
    for name in ("two/a", "two/b", "a", "old"):
        checkpoint(tmp_path / name, "model", name.rpartition("/")[2])
    write_baseline([tmp_path / "old"], tmp_path / "old.json")
    rules = GateRules.model_validate({"min_n": 2, "rules": [{"metric": "match", "max_drop": 0.3}]})
    sides = [tmp_path / "two"], [tmp_path / "two"]
    found = gate(*sides, rules, pinned=[tmp_path / pinned], model="b", baseline_model="a")
    taken = {side: run.partition(" ")[0] for side, run in found.runs.items()}
    assert taken == {"baseline": "a", "candidate": "b", "pinned": "a" if pinned == "two" else pinned.partition(".")[0]}
    if pinned == "two":
        with pytest.raises(DataError, match="runs of 2 models: a, b"):
            gate([tmp_path / "a"], [tmp_path / "a"], rules, pinned=[tmp_path / "two"])
