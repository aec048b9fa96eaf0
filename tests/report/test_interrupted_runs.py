"""Runs that were killed as they wrote: their samples lie beside those of the run that took their place."""

from __future__ import annotations

from pathlib import Path

import pytest

from mrag_eval import score
from mrag_eval.platform import DataError
from mrag_eval.report import sample_files
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
