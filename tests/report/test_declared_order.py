"""The headline and the order of metrics and modes are the benchmark's, whoever shows them."""

from __future__ import annotations

import csv
import inspect
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from mrag_eval._front._strategies import strategies
from mrag_eval.datasets import LOADERS, OWN_ROWS, Declaration, known_of
from mrag_eval.harness import score_table as printed_by_run
from mrag_eval.planning import shipped
from mrag_eval.report import (
    Options,
    export,
    layout_names,
    load_layout,
    read_results,
    score_table,
    starter_rules,
    write_report,
)
from mrag_eval.report.comparison._compare import headline
from mrag_eval.report.exports._runs import runs_of
from mrag_eval.report.files._runs import read_runs
from mrag_eval.report.page._gather import page_data
from mrag_eval.report.tables._row_runs import slots
from mrag_eval.scoring import TASK_MEASURES
from tests.report.runs import row, write_run

DECLARED = [loader.declaration for loader in LOADERS.values() if loader.declaration.main_metric]
ROWS = 150
# A metric that says less than any headline, and comes first in what the runs hold.
FIRST = ("option_read", "choice_parsed", "correct_language")


def measured(declared: Declaration) -> list[str]:
    """Return what the runs measure, the headline last."""
    order = [str(declared.main_metric), *declared.metrics]
    return [*FIRST, *(name for name in reversed(order) if name not in FIRST)]


def runs(folder: Path, declared: Declaration) -> Path:
    """Write a run in each mode of a benchmark, the last mode first."""
    modes = declared.modes or ("no_ir", "qlang", "all")
    names = measured(declared)
    of_rows = [name for name in names if name not in TASK_MEASURES]
    for number, mode in enumerate(reversed(modes)):
        rows = [row(n, lang, **{name: float((n + number) % 2) for name in of_rows})
                for lang in ("ar", "en", "zh") for n in range(ROWS)]  # fmt: skip
        rows = [{**one, "row": f"{one['cell']['query_lang']}{one['row']}"} for one in rows]
        cells = {name: cell(0.25 + number / 100) for name in names}
        whole = {name.removeprefix("concurrence."): cells.pop(name) for name in names if name in TASK_MEASURES}
        scores: dict[str, Any] = {"rows": len(rows), "query_langs": {"ar": ROWS, "en": ROWS, "zh": ROWS}}
        scores |= {"metrics": cells, "unscored": {}}
        scores |= {"concurrence": {"intervals": whole}} if whole else {}
        config = {"data": {"benchmark": declared.name}, "retrieval": {"mode": mode}, "scores": scores}
        config["metrics"] = list(dict.fromkeys(name.partition(".")[0] for name in names))
        write_run(folder / mode, {"qa": rows}, config=config)
    return folder


def cell(value: float) -> dict[str, Any]:
    return {"value": value, "low": value - 0.1, "high": value + 0.1, "n": 3 * ROWS, "method": "Wilson"}


def by_page(folder: Path) -> tuple[list[str], list[str]]:
    data = page_data([folder])
    boards = list(dict.fromkeys(board.metric for board in data.boards))
    figures = list(dict.fromkeys(point["metric"] for point in data.scores))
    assert boards == figures
    modes = list(dict.fromkeys(point["mode"] for point in data.points["languages"]))
    assert modes == [system.mode for system in data.systems]
    return boards, modes


def by_table(folder: Path) -> tuple[list[str], list[str]]:
    table = score_table([folder])
    modes = [one.labels[0].split("(")[1].strip(")") for one in table.rows]
    return [head.partition(" (")[0] for head in table.columns], modes


def by_csv(folder: Path) -> tuple[list[str], list[str]]:
    (path,) = export([folder], "csv", Options(output=folder / "scores.csv")).files
    lines = [line for line in csv.DictReader(path.open(encoding="utf-8")) if not line["dimension"]]
    return list(dict.fromkeys(line["metric"] for line in lines)), []


def by_latex(folder: Path) -> tuple[list[str], list[str]]:
    (path,) = export([folder], "latex", Options(output=folder / "scores.tex")).files
    head = next(line for line in path.read_text("utf-8").splitlines() if line.startswith("Task &"))
    return [one.strip(" \\").replace("\\_", "_").partition(" (")[0] for one in head.split("&")[1:]], []


def by_exported(folder: Path) -> tuple[list[str], list[str]]:
    (run, *_), _ = runs_of([folder])
    headline = run.tasks[0].headline
    assert headline is not None
    return [headline.metric], []


def by_gate(folder: Path) -> tuple[list[str], list[str]]:
    rules = yaml.safe_load(starter_rules([next(path for path in folder.iterdir() if path.is_dir())]))["rules"]
    return [rules[0]["metric"]], []


def by_run(folder: Path) -> tuple[list[str], list[str]]:
    """What ``mrag-eval run`` prints above the harness's table."""
    (file, *_) = read_results([folder])
    leaf = file.leaves["qa"]
    found = {"results": {"qa": {f"{name},none": score.value for name, score in leaf.metrics.items()}}}
    found |= {"versions": {"qa": 1}, "n-shot": {"qa": 0}, "higher_is_better": {"qa": {}}}
    text = printed_by_run(found, {"qa": str(leaf.known.main_metric)})
    return re.findall(r"^main metric (\S+): qa 0\.\d{4}$", text, re.MULTILINE), []


READERS: Mapping[str, Callable[[Path], tuple[list[str], list[str]]]] = {
    "page": by_page,
    "table": by_table,
    "csv": by_csv,
    "latex": by_latex,
    "headline of exports": by_exported,
    "gate --init": by_gate,
    "run": by_run,
}


@pytest.fixture(scope="module")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Declaration], Path]:
    found: dict[str, Path] = {}

    def world(declared: Declaration) -> Path:
        if declared.name not in found:
            found[declared.name] = runs(tmp_path_factory.mktemp(declared.name), declared)
        return found[declared.name]

    return world


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("declared", DECLARED, ids=lambda one: one.name)
def test_every_reader_has_the_headline_and_the_order(
    declared: Declaration, reader: str, worlds: Callable[[Declaration], Path]
) -> None:
    if reader == "gate --init" and declared.name == "bordirlines":
        pytest.skip("scores over territories need samples of a run: the next test has one")
    metrics, modes = READERS[reader](worlds(declared))
    order = declared.in_order(measured(declared))
    assert metrics[0] == declared.main_metric == order[0]
    assert metrics == order[: len(metrics)]
    assert modes in ([], sorted(modes, key=declared.place_of_mode))


def test_the_gate_of_bordirlines_is_on_its_headline(made: Callable[[str], Path]) -> None:
    runs = list(read_runs([made("bordirlines") / "out"]).values())
    scored = list(dict.fromkeys(name for run in runs for one in run.rows.values() for name in one.values))
    assert headline(runs, scored)[0] == LOADERS["bordirlines"].declaration.main_metric


def modes_side_by_side(name: str) -> tuple[Declaration, list[str], set[str]]:
    """Return the benchmark of a paper's first table of modes, these in its order, and the metrics of all its tables."""
    layout, first = load_layout(name), None
    metrics: set[str] = set()
    for table in layout.tables:
        lines: dict[tuple[str, str], dict[str, None]] = {}
        for slot in slots(table, layout):
            metrics |= {*(slot.column.metrics or table.metrics)}
            official = shipped(slot.task)
            assert official is not None
            setting = official.measurement.setting
            for line in (("row", slot.row), ("column", slot.column.name)):
                lines.setdefault((*line, setting["data"]["benchmark"]), {})[setting["retrieval"]["mode"]] = None
        (_, _, benchmark), modes = max(lines.items(), key=lambda one: len(one[1]), default=(("", "", ""), {}))
        if first is None and len(modes) > 2:
            first = known_of({"benchmark": benchmark}), list(modes)
    assert first is not None
    return (*first, metrics)


@pytest.mark.parametrize("name", [name for name in layout_names() if name != "xrag"])
def test_a_paper_s_table_has_the_modes_in_the_declared_order(name: str) -> None:
    """XRAG has one mode."""
    declared, modes, metrics = modes_side_by_side(name)
    assert modes == sorted(modes, key=declared.place_of_mode)
    assert declared.main_metric in metrics


def test_strategies_decide_by_what_leads_a_user_s_own_rows() -> None:
    source = inspect.getsource(strategies)
    assert "OWN_ROWS.in_order" in source
    assert OWN_ROWS.in_order(["shown@k"]) == ["shown@k"]
    assert OWN_ROWS.in_order(["shown@k", "char3gram_recall"]) == ["char3gram_recall", "shown@k"]


def test_only_benchmarks_with_groups_have_tiers(worlds: Callable[[Declaration], Path], tmp_path: Path) -> None:
    """A user's own log is in none of CORAL's tiers, and its mode has words."""
    for declared in DECLARED:
        data = page_data([worlds(declared)])
        called = {point["groups"] for point in data.points["tiers"]}
        assert called == ({declared.groups.called} if declared.groups.members else set())
    rows = [row(n, lang, match=1.0) for lang in ("ar", "en") for n in range(4)]
    log = {"data": {"benchmark": "log"}, "retrieval": {"mode": "given"}, "metrics": ["match"]}
    log["scores"] = {"rows": 8, "query_langs": {"ar": 4, "en": 4}, "metrics": {"match": cell(1.0)}, "unscored": {}}
    data = page_data([write_run(tmp_path, {"log": rows}, config=log)])
    assert data.points["tiers"] == []
    assert {system.mode for system in data.systems} == {"the passages of each row"}


@pytest.mark.parametrize(
    ("benchmark", "reason", "missing"),
    [
        ("xor_tydi", "no relevant document is known", False),
        ("jsonl", "no relevant document is known", True),
        ("xor_tydi", "timeout", True),
        ("jsonl", "the prompt asks for no answer tag", False),
    ],
)
def test_what_a_benchmark_omits_is_not_missing(benchmark: str, reason: str, missing: bool, tmp_path: Path) -> None:
    scores = {"rows": 8, "query_langs": {"en": 8}, "metrics": {"match": cell(1.0)}, "unscored": {"hit@20": {reason: 8}}}
    scores["unscored"] = {"match": {reason: 8}}
    config = {"data": {"benchmark": benchmark}, "metrics": ["match"], "scores": scores}
    run = write_run(tmp_path / "run", {"qa": [row(n, match=1.0) for n in range(8)]}, config=config)
    write_report([run], tmp_path / "page.html")
    assert ("without a score" in (tmp_path / "page.html").read_text("utf-8")) == missing
