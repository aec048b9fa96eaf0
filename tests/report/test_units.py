"""Units and ranges: every print and export reads them where the metric declares them."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mrag_eval._front import Results
from mrag_eval.core import Scale
from mrag_eval.metrics import concurrence_scores
from mrag_eval.report import Check, GateResult, Options, export, gate_lines, junit, render, score_table
from mrag_eval.report.exports._runs import runs_of
from mrag_eval.scoring import METRICS, scale_of
from tests.report.test_export import write_run

# value, interval, and the same in print
FIGURES = {
    "KB_CS": ((0.75, 0.5, 0.9), "75.0 [50.0, 90.0]"),
    "delta_CS_ratio": ((1.5, -0.5, 4.0), "150.0 [-50.0, 400.0]"),
    "delta_CS_difference": ((-0.25, -0.4, -0.1), "-25.0 [-40.0, -10.0]"),
    "countries_mean": ((2.1, 1.6, 3.2), "2.1 [1.6, 3.2]"),
}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Four measures over territories: a share, a ratio above 1, a difference below 0, and a count."""
    parts = ("value", "low", "high")
    table = {
        name: {**dict(zip(parts, ends, strict=True)), "n": 20, "method": "cluster bootstrap"}
        for name, (ends, _) in FIGURES.items()
    }
    scores: dict[str, Any] = {"concurrence": {"intervals": table, "random": {"KB_CS": 0.4612}}}
    return write_run(tmp_path / "run", benchmark="bordirlines", scores=scores)


def test_a_count_of_countries_is_not_printed_times_100(run: Path, tmp_path: Path) -> None:
    text = render([score_table([run])])
    for name, (_, shown) in FIGURES.items():
        unit = " (countries)" if name == "countries_mean" else ""
        assert f"concurrence.{name}{unit} |" in text
        assert f" {shown} (n=20) |" in text
    tex = tmp_path / "scores.tex"
    export([run], "latex", Options(output=tex))
    latex = tex.read_text("utf-8")
    for _, shown in FIGURES.values():
        value, _, interval = shown.partition(" ")
        assert f"& {value} {{\\scriptsize {interval}}}" in latex
    assert r"concurrence.countries\_mean (countries)" in latex
    assert "Percent unless a unit is named" in latex
    table = Results(next(run.rglob("results_*.json"))).table
    assert table.loc["rag_de", "concurrence.countries_mean"] == "2.1 [1.6, 3.2] (countries) n=20"
    assert table.loc["rag_de", "concurrence.delta_CS_ratio"] == "150.0 [-50.0, 400.0] n=20"


def test_exports_name_unit_and_range_of_each_metric(run: Path, tmp_path: Path) -> None:
    export([run], "eee", Options(output=tmp_path))
    (path,) = (path for path in tmp_path.glob("data/**/*.json"))
    record = json.loads(path.read_text("utf-8"))
    found = {r["evaluation_result_id"]: r["metric_config"] for r in record["evaluation_results"]}
    units = {name: found[f"rag_de:concurrence.{name}"]["metric_unit"] for name in FIGURES}
    assert units == {
        "KB_CS": "proportion",
        "delta_CS_ratio": "ratio",
        "delta_CS_difference": "proportion",
        "countries_mean": "countries",
    }
    ranges = {name: (m.get("min_score"), m.get("max_score")) for name, m in found.items()}
    assert ranges["rag_de:concurrence.KB_CS"] == (0.0, 1.0)
    assert ranges["rag_de:concurrence.delta_CS_difference"] == (-1.0, 1.0)
    assert ranges["rag_de:concurrence.countries_mean"] == (None, None)
    assert ranges["rag_de:match"] == (0.0, 1.0)

    out = tmp_path / "scores.csv"
    export([run], "csv", Options(output=out))
    lines = {(x["task"], x["metric"]): x for x in csv.DictReader(out.open(encoding="utf-8")) if not x["dimension"]}
    keys = ("unit", "lowest", "highest", "value")
    assert [lines["rag_de", "concurrence.countries_mean"][key] for key in keys] == ["countries", "0.0", "", "2.1"]
    assert [lines["rag_de", "match"][key] for key in keys] == ["share", "0.0", "1.0", "0.75"]


def test_a_gate_prints_a_metric_in_its_unit() -> None:
    count = Check(
        "t", "concurrence.countries_mean", None, "fail", n=20, baseline=2.5, candidate=2.0, difference=-0.5, low=-0.8,
        high=-0.2, limit=0.1, p_value=0.01,
    )  # fmt: skip
    share = replace(count, metric="concurrence.KB_CS", baseline=0.5, candidate=0.25, difference=-0.25)
    lines = gate_lines(GateResult((count, share)))
    assert "2.5 → 2.0 (countries)   -0.5 [-0.8, -0.2]" in lines[1]
    assert "−0.1" in lines[2]
    assert "50.0 → 25.0   -25.0 [-80.0, -20.0]" in lines[3]
    assert "−10.0" in lines[4]
    assert "2.5 → 2.0 (countries)" in junit(GateResult((count,)))


def test_every_measure_over_territories_is_declared_and_within_its_range() -> None:
    row = {"query_lang": "en", "claimants": ["A", "B"], "claimant_langs": ["en", "fr"], "controller": "A"}
    asked = [
        {**row, "query_id": f"{name}_{lang}", "territory": name, "query_lang": lang, "controller_lang": "en",
         "control_query": lang == "en"}
        for name in ("X", "Y")
        for lang in ("en", "fr")
    ]  # fmt: skip
    found = concurrence_scores(asked, [{"query_id": q["query_id"], "claimant_ind": 0} for q in asked])
    for name, value in found.scores.items():
        scale = scale_of(f"concurrence.{name}")
        assert (scale.unit == "share") != name.startswith(("countries", "delta_CS_ratio")), name
        low, high = scale.bounds
        assert value is None or low <= value <= high, name


def test_metrics_of_rows_are_shares() -> None:
    assert {METRICS[name].scale for name in METRICS} == {Scale()}
    assert scale_of("hit@20") == scale_of("rerank_ndcg@5") == scale_of("hit@20_proxy") == Scale()
    assert (Scale().factor, Scale("countries", 0.0, None).factor) == (100.0, 1.0)
    assert Scale("ratio", -1.0, None).differences == (float("-inf"), float("inf"))


def test_random_is_no_score_of_the_model(run: Path, tmp_path: Path) -> None:
    """RANDOM's scores follow from the questions alone."""
    assert not [s for r in runs_of([run])[0] for task in r.tasks for s in task.scores if "random" in s.metric]
    assert "random" not in render([score_table([run])])
    for form in ("csv", "latex", "eval-results", "model-index", "mteb", "eee"):
        written = export([run], form, Options(output=tmp_path / form))
        assert written.files
        assert all("concurrence.random" not in path.read_text("utf-8") for path in written.files)
