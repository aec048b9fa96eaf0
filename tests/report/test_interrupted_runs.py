"""Runs that were killed as they wrote: their samples lie beside those of the run that took their place."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest

from mrag_eval import score
from mrag_eval.platform import DataError
from mrag_eval.report import Sample, open_samples, read_samples, sample_files
from mrag_eval.report.files._runs import read_runs
from tests.worlds import logs
from tests.worlds.logs import rows_of


def test_samples_of_an_interrupted_run_are_passed_over_where_a_later_one_ended(tmp_path: Path) -> None:
    first, second = (score(rows_of(logs.ragas), model="mine", output=tmp_path).path for _ in range(2))
    kept = {path: path.read_bytes() for path in (first, second)}
    first.unlink()
    assert [run.run.model for run in read_runs([tmp_path]).values()] == ["mine"]
    assert sample_files([tmp_path]) == list(tmp_path.glob(f"samples_*{second.stem.partition('_')[2]}.jsonl"))
    # of the last run nothing is known but its samples
    first.write_bytes(kept[first])
    second.unlink()
    with pytest.raises(DataError, match="runs of 2 models: mine, unnamed model"):
        read_runs([tmp_path])


def test_samples_are_let_go_as_they_are_read_and_their_records_share_what_is_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    score(rows_of(logs.ragas), output=tmp_path)
    # no file is so small that it is held
    monkeypatch.setattr("mrag_eval.report.files._samples._ROOM", 0)
    (path,) = sample_files([tmp_path])
    held, records = [], []
    for sample in open_samples(path):
        records.append(sample.record)
        held.append(sum(isinstance(thing, Sample) for thing in gc.get_objects()))
    assert len(held) > 2 >= max(held)
    assert records == [sample.record for sample in read_samples(path)]
    parts = [(name, getattr(record, name)) for record in records for name in ("cell", "values", "controls")]
    assert len({id(part) for _, part in parts}) == len({(name, repr(part)) for name, part in parts})
