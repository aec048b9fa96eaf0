"""The arithmetic of the plan, derived by hand."""

from __future__ import annotations

import runpy
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def plan(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    # Python does this for a script
    monkeypatch.setattr(sys, "path", [str(BENCHMARKS), *sys.path])
    return runpy.run_path(str(BENCHMARKS / "scaling_plan.py"))


def test_a_language_of_the_slice_and_one_that_it_does_not_hold(plan: dict[str, Any]) -> None:
    one = plan["Slice"]
    found = {"en": one(300, 5_000.0, 140.0), "de": one(300, 6_000.0, 160.0), "zh": one(600, 4_000.0, 72.0)}
    options = Namespace(dim=1024, tokens_per_second=20_000.0)
    rows = {row.lang: row for row in plan["planned"](found, options)}
    assert len(rows) == 13
    # 25 million vectors of 1,024 float32, and 25e6 · 140 / 20,000 / 3,600 h
    assert rows["en"].vector_bytes == 25e6 * 4_096
    assert rows["en"].index_bytes == pytest.approx(125e9)
    assert rows["en"].gpu_hours == pytest.approx(48.611, abs=1e-3)
    assert rows["en"].is_measured
    # Finnish is cut by words, like English and German; Japanese by characters, like Chinese
    assert (rows["fi"].tokens, rows["fi"].index_bytes) == (150.0, pytest.approx(1.5e6 * 5_500))
    assert rows["ja"].tokens == 72.0
    assert not rows["fi"].is_measured


def test_the_published_rate_and_price(plan: dict[str, Any]) -> None:
    # 1.15 million tokens in 59.107 s; 0.000222 USD a second
    assert plan["TOKENS_A_SECOND"] == pytest.approx(19_456, abs=1)
    assert plan["USD_AN_HOUR"] == pytest.approx(0.7992)


def test_sums_and_machines(plan: dict[str, Any]) -> None:
    planned = plan["Planned"]
    rows = [planned("en", 1e6, 4e9, 5e9, 100, 12.0, True), planned("fi", 3e6, 12e9, 15e9, 90, 36.0, False)]
    options = Namespace(usd_per_hour=0.5, gpus=4)
    lines = list(plan["table"](rows, options))
    assert lines[2] == "| en | 1 M | 100 | ~4 | ~5 | ~12 | ~6 |"
    assert lines[3] == "| fi | 3 M | (90) | ~12 | ~15 | ~36 | ~18 |"
    assert lines[4] == "| all | 4 M |  | ~16 | ~20 | ~48 | ~24 |"
    # 4 million passages at 90 µs are 0.1 h, at 900 µs 1 h; 48 GPU hours in 1 h are 48 GPUs
    said = list(plan["machines"](rows, 90e-6, 900e-6, options))
    assert said[0] == "GPUs       4: ~12.0 hours; ~24 USD at 0.50 USD an hour"
    assert said[1].endswith("~0.1 hours of one core")
    assert said[2].endswith("~1.0 hours of the core that writes")
    assert said[3].strip() == "the GPUs set the time; one writer keeps up with ~48 such GPUs"
