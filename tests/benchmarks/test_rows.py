"""The rows that benchmarks write: medians, bounds and fitted exponents, derived by hand."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import pytest

ROWS = runpy.run_path(str(Path(__file__).parents[2] / "benchmarks" / "_rows.py"))
row, growth, write_rows = ROWS["row"], ROWS["growth"], ROWS["write_rows"]


def test_the_median_of_the_runs_is_compared_with_the_bound() -> None:
    found = row("search", "bare", [1.2, 1.0, 1.04], at_most=1.05, figures={"ms": 3})
    assert found["ratio"] == 1.04
    assert found["spread"] == [1.0, 1.2]
    assert found["asked"] == "≤ 1.05"
    assert found["ok"] is True
    assert row("search", "bare", [1.2, 1.06, 1.0], at_most=1.05)["ok"] is False
    assert row("search", "bare", 9.0, at_least=10)["ok"] is False
    assert row("search", "bare", 10.0, at_least=10)["asked"] == "≥ 10"


def test_small_sizes_skip_the_bound_but_not_the_other_conditions() -> None:
    assert row("search", "bare", 5.0, at_most=1.05, judged=False)["ok"] is True
    assert row("search", "bare", 1.0, at_most=1.05, holds=False)["ok"] is False
    assert row("search", "bare", 1.0, judged=False, holds=False)["ok"] is False


def test_one_figure_has_no_spread_and_may_be_reported_only() -> None:
    found = row("recall", "exact", 0.99, unit="")
    assert (found["spread"], found["asked"], found["ok"], found["unit"]) == (None, "reported", True, "")


def test_two_bounds_are_refused() -> None:
    with pytest.raises(ValueError, match="one bound"):
        row("search", "bare", 1.0, at_most=1, at_least=1)


def test_the_exponent_is_that_of_the_power_law() -> None:
    points = [{"n": n, "seconds": 3 * n**0.5, "peak_mb": 2 * n} for n in (100, 10_000, 1_000_000)]
    assert growth("search", points, below=1)["exponent"] == pytest.approx(0.5)
    assert growth("search", points, below=0.4)["ok"] is False
    assert growth("search", points, below=0.4, judged=False)["ok"] is True
    assert growth("memory", points, of="peak_mb")["exponent"] == pytest.approx(1.0)


def test_rows_are_written_where_a_file_is_asked_for(tmp_path: Path) -> None:
    rows = [row("search", "bare", 1.0)]
    write_rows(None, rows)
    write_rows(tmp_path / "rows.json", rows)
    assert json.loads((tmp_path / "rows.json").read_text(encoding="utf-8")) == rows
