"""What of the instrument is the task's: each part that no task leaves open is as it ships, or is named."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from mrag_eval.config import Measurement
from mrag_eval.datasets import sha256_file
from mrag_eval.languages import RELIABILITY_FILE
from mrag_eval.planning import deviations, shipped
from mrag_eval.scoring import words_of
from tests.report.rows import filling

TASK = "mrag_demo_norag"
MODEL = {"model": "api", "args": {"model": "acme/m"}}
OPEN: dict[str, Any] = {
    "judges": {"acme/m": MODEL},
    **dict.fromkeys(("planner", "critic", "translator", "reranker"), MODEL),
    "detector": {"sha256": "d" * 64},
    "segmenter": {"ja": "another 9"},
    "metric:mine": {"function": "mine", "sha256": "f" * 64},
    "metric:grounded": MODEL,
}


def instruments_named(instrument: dict[str, Any]) -> list[str]:
    record = filling(TASK, {}).measurement
    assert record is not None
    found = deviations(replace(record, instrument=instrument))
    assert all(one.role == "instrument" for one in found)
    return [one.key for one in found]


def test_what_ships_and_what_a_task_leaves_open_is_no_other_setting() -> None:
    ships = {**words_of(["f1_words"]), "reliability": {"sha256": sha256_file(RELIABILITY_FILE)}}
    official = shipped(TASK)
    assert official is not None
    record = replace(official.measurement, setting={**official.measurement.setting, "metrics": ["f1_words"]})
    assert "normalizer" in ships
    found = deviations(Measurement(TASK, setting=record.setting, instrument={**ships, **OPEN}))
    assert [one for one in found if one.role == "instrument"] == []
    assert instruments_named(OPEN) == []


@pytest.mark.parametrize(
    "part",
    [
        {"languages": {"en": "a" * 64}},
        {"normalizer": {"unicode": 0}},
        {"reliability": {"sha256": "a" * 64}},
        {"of tomorrow": {"version": 1}},
        {"judging": "not one of the judges"},
    ],
)
def test_every_other_part_is_named(part: dict[str, Any]) -> None:
    (name,) = part
    (found,) = instruments_named({**OPEN, **part})
    assert found.partition(".")[0] == name
