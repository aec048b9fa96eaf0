"""The papers' tables: published figures as printed, ours in their places, blanks with their reasons."""

from __future__ import annotations

import csv
import io
import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from mrag_eval.datasets._xrag import HUB
from mrag_eval.platform import ConfigError, DataError
from mrag_eval.report import LayoutTable, Table, layout_names, layout_tables, load_layout, render
from tests.programs import Programs
from tests.tables import single_spaced, told
from tests.worlds.measured import with_records

ROOT = Path(__file__).resolve().parents[2]
GIVEN = {"mode": "given", "given": {"subset": "all", "n": None}}
ORACLE = {"mode": "given", "given": {"subset": "gold", "n": None}}
NONE = {"mode": "no_ir", "given": {"subset": "all", "n": None}}


def leaf(value: float | None, *, n: int = 300, retrieval: dict[str, Any] = GIVEN, **more: Any) -> dict[str, Any]:
    """Return the configuration of a task with its scores, as a result file contains it."""
    score = {"value": value, "low": None if value is None else value - 0.05, "high": None, "n": n}
    metrics = {} if value is None else {"judged_accuracy": score}
    scores = {"metrics": metrics | more.pop("metrics", {}), "unscored": more.pop("unscored", {})}
    if "judges" in more:
        scores["judge"] = {"judges": more.pop("judges")}
    settings = {**more.pop("settings", {}), "retrieval": {"shuffle": None, **retrieval}}
    return {"data": {"benchmark": "xrag", **more}, "scores": scores} | settings


def panel(*models: str) -> dict[str, Any]:
    """Return the judges of a run by their names in its config file."""
    return {f"j{number}": {"model": model} for number, model in enumerate(models, 1)}


def write(path: Path, leaves: dict[str, Any], model: str = "org/model", date: float = 1.0, **how: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {"model_name": model, "date": date, "configs": with_records(leaves, **how), "results": {}}
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def tables(*paths: Path) -> dict[str, Table]:
    return {table.id: table for table in layout_tables("xrag", paths)}


def row(table: Table, *labels: str, source: str = "this run") -> dict[str, Any]:
    (found,) = [r for r in table.rows if r.labels == labels and re.match(rf"{source}(, Table|$)", told(r))]
    return dict(zip(table.columns, found.cells, strict=True))


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Write a run of the monolingual set, of both bounds, and of one language of the multilingual set."""
    leaves = {f"xrag_mono_{code}": leaf(value, n=1000) for code, value in MONO.items()}
    leaves |= {
        "xrag_mono_norag_en": leaf(0.0625, retrieval=NONE),
        "xrag_mono_oracle_en": leaf(0.75, retrieval=ORACLE),
        "xrag_multi_de": leaf(0.4),
        "xrag_multi_eq_de": leaf(0.45),
        "click_norag": leaf(0.9),
    }
    return write(tmp_path / "run" / "results_2026.json", leaves)


MONO = {"en": 0.5, "de": 0.41234, "es": 0.3, "zh": 0.2, "ar": 0.1}


# -------------------------------------------------------------- published


def test_averages_printed_by_the_paper_are_those_of_its_cells() -> None:
    """Every figure is part of an average or is checked below: a typo in a digit would show here."""
    checked = 0
    for table in load_layout("xrag").tables:
        places = {column.name: i for i, column in enumerate(table.columns)}
        for published in table.rows:
            for column in table.columns:
                printed = published.values[places[column.name]]
                if column.mean_of and printed is not None:
                    cells = [published.values[places[name]] for name in column.mean_of]
                    mean = sum(cell for cell in cells if cell is not None) / 4
                    # Table 4 rounds some averages to one digit
                    assert printed == pytest.approx(mean, abs=0.051 if table.id == "4" else 0.0101), published
                    checked += 1
    # 5 models in Tables 4 and 5, 16 rows in Tables 6 and 9 to 11, one of them without an average
    assert checked == 5 + 5 + 15


def test_figures_printed_in_two_tables_agree() -> None:
    published = {table.id: table for table in load_layout("xrag").tables}
    for condition, places in (("XRAG-MultiR", (1, 3, 5, 7)), ("MonoRAG", (0, 2, 4, 6))):
        rows = {r.model: r for r in published["6, 9, 10, 11"].rows if r.condition == condition}
        assert len(rows) == 4
        for wide in published["5"].rows:
            if wide.model in rows:
                found, expected = rows[wide.model].values[:4], tuple(wide.values[i] for i in places)
                assert found == expected, wide.model


def test_the_types_of_questions_and_answers_of_table_2_add_up() -> None:
    (table,) = (table for table in load_layout("xrag").tables if table.id == "2")
    number, *types, original, corrected = [row.values for row in table.rows]
    assert [sum(value or 0 for value in column) for column in zip(*types, strict=True)] == list(number)
    assert [(a or 0) + (b or 0) for a, b in zip(original, corrected, strict=True)] == list(number)


def test_figures_without_an_average() -> None:
    published = {table.id: table for table in load_layout("xrag").tables}
    assert [r.values for r in published["3"].rows] == [
        (6.30, 75.40),
        (11.70, 67.60),
        (15.20, 66.40),
        (15.30, 63.50),
        (13.70, 68.20),
    ]
    # no cross-lingual cell exceeds the English baseline, and the drop of Mistral in Arabic is the paper's 56.3 %
    for found in published["4"].rows:
        assert all(found.values[0] > value for value in found.values[1:] if value is not None)
    mistral = published["4"].rows[2].values
    assert mistral[0] is not None
    assert mistral[4] is not None
    assert 1 - mistral[4] / mistral[0] == pytest.approx(0.563, abs=0.001)
    assert [r.values for r in published["7"].rows] == [(59.8, 56.3, 71.5), (61.1, 44.3, 68.3), (57.9, 48.4, 68.9)]


def test_every_task_of_the_layout_exists() -> None:
    names = {path.stem for path in (ROOT / "tasks" / "xrag").glob("*.yaml")}
    for table in load_layout("xrag").tables:
        for column in table.columns:
            for part in [condition.part for condition in table.conditions] or [""]:
                assert column.task is None or column.task.replace("{part}", part) in names


# ------------------------------------------------------------------- ours


def test_our_figures_are_next_to_the_published_ones_in_percent(run: Path) -> None:
    found = tables(run)
    table = found["4"]
    assert row(table, "GPT-4o", source="paper")["De"].value == 55.90
    ours = row(table, "org/model")
    assert {name: cell.value for name, cell in ours.items() if name != "Avg."} == pytest.approx(
        {"En": 50.0, "De": 41.234, "Es": 30.0, "Zh": 20.0, "Ar": 10.0}
    )
    # (41.234 + 30 + 20 + 10) / 4, without English
    assert ours["Avg."].value == pytest.approx(25.3085)
    assert (ours["De"].low, ours["De"].n, ours["De"].task) == (pytest.approx(36.234), 1000, "xrag_mono_de")
    shown = single_spaced(render([table]))
    assert "| GPT-4o | paper, Table 4 | 62.40 | 55.90 | 56.80 | 54.70 | 54.70 | 55.50 |" in shown
    assert "| org/model | this run | 50.00 (n=1,000) | 41.23 (n=1,000) |" in shown
    assert "| 25.31 |" in shown
    bounds = row(found["3"], "org/model")
    assert (bounds["No Retrieval"].value, bounds["Oracle Retrieval"].value) == (6.25, 75.0)


def test_cells_without_a_run_are_blank_with_a_reason(run: Path) -> None:
    found = tables(run)
    controls = found["6, 9, 10, 11"]
    plain, eq = row(controls, "XRAG-MultiR", "org/model"), row(controls, "+EQ", "org/model")
    assert (plain["En+De"].value, eq["En+De"].value) == (pytest.approx(40.0), pytest.approx(45.0))
    assert (plain["En+Ar"].value, plain["En+Ar"].reason) == (None, "not run")
    # never a mean over whichever cells happen to exist
    assert (plain["Avg."].value, plain["Avg."].reason) == (None, "a mean needs all of its cells")
    shown = single_spaced(render([controls]))
    assert "| XRAG-MultiR | org/model | this run | 40.00 (n=300) | | | | |" in shown
    assert "xrag_multi_ar" in shown
    assert "| 0.00" not in shown
    claude = row(controls, "XRAG-MultiR", "Claude 3.5 Sonnet", source="paper, Table 9")
    assert claude["Avg."].value is None
    assert "44.00" in str(claude["Avg."].reason)


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        (leaf(None), "scored without judged_accuracy: no judge was configured"),
        (leaf(None, unscored={"judged_accuracy": {"timeout": 3}}), "no row has a judged_accuracy (timeout: 3)"),
        (
            leaf(None, metrics={"judged_accuracy": {"value": None, "n": 0, "reason": "nothing to average"}}),
            "nothing to average",
        ),
    ],
)
def test_a_run_without_a_score_leaves_its_cell_blank(made: dict[str, Any], reason: str, tmp_path: Path) -> None:
    path = write(tmp_path / "results_1.json", {"xrag_mono_de": made})
    cell = row(tables(path)["4"], "org/model")["De"]
    assert (cell.value, cell.reason) == (None, reason)


@pytest.mark.parametrize(
    ("made", "differs"),
    [
        (
            leaf(0.5, retrieval={"mode": "given", "given": {"subset": "distractors", "n": 2}}),
            "retrieval.given.n=2, not set in the task; retrieval.given.subset=distractors, not all",
        ),
        (leaf(0.5, retrieval=NONE), "retrieval.mode=no_ir, not given"),
        (leaf(0.5, english=["question"]), "data.english=question, not []"),
        (leaf(0.5, split="dev"), "data.split=dev, not test"),
        (leaf(0.5, settings={"prompt": {"template": "mine"}}), "prompt.template=mine, not articles"),
        (leaf(0.5, language="es"), "data.language=es, not de"),
        (leaf(0.5, setting="multi"), "data.setting=multi, not mono"),
        (leaf(0.5, settings={"prompt": {"max_tokens": 900}}), "prompt.max_tokens=900, not set in the task"),
        (leaf(0.5, judges=panel("one")), "judges=1, not 3"),
        (leaf(0.5, judges=panel("one", "one", "one")), "judges=1, not 3"),
        (
            leaf(0.5, settings={"generation_kwargs": {"max_gen_toks": 16, "temperature": 0.0}}),
            "generation_kwargs.max_gen_toks=16, not 512",
        ),
        (leaf(0.5, revision="main"), f"data.revision=main, not {HUB.revision[:8]}"),
    ],
)
def test_a_run_with_other_settings_is_beneath_the_table_with_what_differs(
    made: dict[str, Any], differs: str, tmp_path: Path
) -> None:
    path = write(tmp_path / "results_1.json", {"xrag_mono_de": made, "xrag_mono_es": leaf(0.25)})
    table = tables(path)["4"]
    ours, beneath = table.rows[-2:]
    assert (told(ours), ours.cells[1].value, ours.cells[2].value) == ("this run", None, 25.0)
    assert ours.cells[1].reason == "run with other settings, see below"
    assert (beneath.labels, told(beneath)) == (("org/model",), f"this run, other settings: {differs}")
    assert (beneath.cells[1].value, beneath.cells[2].reason) == (50.0, "run, see another row of it")


def test_a_run_with_a_limit_is_not_the_papers(tmp_path: Path) -> None:
    table = tables(write(tmp_path / "results_1.json", {"xrag_mono_de": leaf(1.0, n=1)}, of=1000))["4"]
    assert [told(r) for r in table.rows if r.labels == ("org/model",)] == [
        "this run, other settings: rows=1 of 1,000, not all"
    ]
    # what ran is never said not to have run
    assert not any("not run" in note for note in table.notes)


def test_modes_over_other_parts_of_the_rows_are_not_in_one_row(tmp_path: Path) -> None:
    """--samples leaves no limit in the results, only fewer rows than the task has."""
    for date, mode, rows in ((1, "qlang", 300), (2, "en_only", 20)):
        found = leaf(None, retrieval={"mode": mode}, metrics={"context_sufficiency": {"value": 0.5, "n": rows}})
        found["scores"] |= {"rows": rows, "query_langs": {"de": rows}}
        path = write(tmp_path / f"results_{date}.json", {"xrag_mono_de": found}, date=float(date))
        sizes = {"n-samples": {"xrag_mono_de": {"original": 300, "effective": rows}}}
        path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | sizes), encoding="utf-8")
    table = tables(tmp_path)["7"]
    ours = [[cell.n for cell in r.cells] for r in table.rows if told(r) == "this run"]
    assert sorted(ours, key=str) == [[300, None, None], [None, 20, None]]
    assert any("20 of 300 rows" in r.labels[0] for r in table.rows)


@pytest.mark.parametrize("dates", [(1.0, 2.0), (2.0, 1.0)])
def test_of_two_runs_of_a_mode_the_one_like_its_task_counts(dates: tuple[float, float], tmp_path: Path) -> None:
    for date, value, more in zip(dates, (0.5, 0.9), ({}, {"query_text": "question"}), strict=True):
        scored = {"context_sufficiency": {"value": value, "n": 300}}
        found = leaf(None, retrieval={"mode": "qlang", **more}, metrics=scored)
        found["scores"] |= {"rows": 300, "query_langs": {"de": 300}}
        write(tmp_path / f"results_{date}.json", {"xrag_mono_de": found}, date=date)
    (ours,) = [r for r in tables(tmp_path)["7"].rows if told(r).startswith("this run")]
    assert (told(ours), ours.cells[0].value) == ("this run", 50.0)


def test_an_earlier_run_has_a_row_if_its_settings_differ_and_a_line_if_they_do_not(tmp_path: Path) -> None:
    panels = [panel("a", "b", name) for name in "cd"]
    write(tmp_path / "a" / "results_1.json", {"xrag_mono_de": leaf(0.1, judges=panels[0])}, date=1.0)
    write(tmp_path / "b" / "results_2.json", {"xrag_mono_de": leaf(0.2, judges=panels[1])}, date=2.0)
    write(tmp_path / "c" / "results_3.json", {"xrag_mono_de": leaf(0.3, judges=panels[1])}, date=3.0)
    table = tables(tmp_path)["4"]
    assert row(table, "org/model")["De"].value == pytest.approx(30.0)
    beneath = table.rows[-1]
    assert (told(beneath), beneath.cells[1].value) == ("this run, other settings: judges=a b c, not a b d", 10.0)
    left_out = [note for note in table.notes if "left out" in note]
    assert left_out == ["org/model, xrag_mono_de: an earlier run with the same settings is left out (results_2.json)"]


def test_a_score_of_nought_is_a_figure(tmp_path: Path) -> None:
    path = write(tmp_path / "results_1.json", {"xrag_mono_ar": leaf(0.0)})
    assert "0.00 (n=300)" in render([tables(path)["4"]])


def test_rows_left_out_and_the_judges_are_named(tmp_path: Path) -> None:
    made = leaf(
        0.5, n=297, unscored={"judged_accuracy": {"timeout": 2, "no reference": 1}}, judges=panel("one", "two", "three")
    )
    path = write(tmp_path / "results_1.json", {"xrag_mono_de": made})
    notes = tables(path)["4"].notes
    assert "org/model, xrag_mono_de: 3 rows without judged_accuracy: 2 (timeout), 1 (no reference)" in notes
    assert any("judged by one, two, three (the paper: GPT-4o-2024-08-06" in note for note in notes)


def votes(model: str, cast: int, **failed: int) -> dict[str, Any]:
    """Return a judge with this many votes that count, and of others the reasons for which they failed."""
    share = {"value": 1.0 if cast else None, "n": cast}
    return {"model": model, "correct": share, "abstained": failed, "no_verdict": {}}


@pytest.mark.parametrize("dead", range(4))
@pytest.mark.parametrize("reasons", [{"connection": 10, "stopped": 2}, {"unreadable": 12}])
def test_a_judge_without_a_vote_is_no_judge_of_the_paper_s_three(
    dead: int, reasons: dict[str, int], tmp_path: Path
) -> None:
    names = ("one", "two", "three")
    seats = {
        name: votes(name, 0 if nth < dead else 12, **(reasons if nth < dead else {})) for nth, name in enumerate(names)
    }
    path = write(tmp_path / "results_1.json", {"xrag_mono_de": leaf(0.5, judges=seats)})
    table = tables(path)["4"]
    sources = {told(row) for row in table.rows if row.labels == ("org/model",)}
    differs = {f"this run, other settings: judges={3 - dead}, not 3"} if dead else set()
    assert differs <= sources
    assert any("other settings" in source for source in sources) == bool(dead)
    counted = [note for note in table.notes if "failed votes" in note]
    assert len(counted) == bool(dead)
    for nth, name in enumerate(names):
        assert all(
            (f"{name} 12 of 12 ({', '.join(f'{n} {why}' for why, n in reasons.items())})" in note) == (nth < dead)
            for note in counted
        )
    judged = ", ".join(names[dead:])
    assert any(f"judged by {judged} (the paper: GPT-4o" in note for note in table.notes)


def test_a_judge_with_one_vote_is_one_and_its_failed_votes_are_counted(tmp_path: Path) -> None:
    seats = {name: votes(name, 1, timeout=11) for name in ("one", "two", "three")}
    path = write(tmp_path / "results_1.json", {"xrag_mono_de": leaf(0.5, judges=seats)})
    table = tables(path)["4"]
    assert not any("other settings" in told(row) for row in table.rows)
    assert any("failed votes: one 11 of 12 (11 timeout); two 11 of 12" in note for note in table.notes)
    assert not any("no judge" in note for note in table.notes)


def test_answers_in_english(tmp_path: Path) -> None:
    english = {"answered_in_english": {"value": 0.125, "low": 0.0, "high": 0.3, "n": 8}}
    path = write(tmp_path / "results_1.json", {"xrag_mono_zh": leaf(0.5, metrics=english)})
    figure = tables(path)["Figure 5"]
    assert row(figure, "org/model")["Zh"].value == 12.5
    assert figure.notes == ("the paper draws bars and prints no number",)


def test_models_have_a_row_each_and_the_later_run_counts(tmp_path: Path) -> None:
    write(tmp_path / "a" / "results_1.json", {"xrag_mono_de": leaf(0.1), "xrag_mono_es": leaf(0.2)}, date=1.0)
    write(tmp_path / "b" / "results_2.json", {"xrag_mono_de": leaf(0.3)}, date=2.0)
    write(tmp_path / "c" / "results_3.json", {"xrag_mono_de": leaf(0.4)}, model="/models/other")
    table = tables(tmp_path)["4"]
    ours, other = row(table, "org/model"), row(table, "other")
    assert (ours["De"].value, ours["Es"].value, other["De"].value) == (
        pytest.approx(30.0),
        pytest.approx(20.0),
        pytest.approx(40.0),
    )


# ------------------------------------------------------- formats and faults


def test_comma_separated_and_json_hold_every_cell(run: Path) -> None:
    found = layout_tables("xrag", [run])
    cells = sum(len(r.cells) for table in found for r in table.rows)
    lines = list(csv.DictReader(io.StringIO(render(found, "csv"))))
    assert len(lines) == cells
    (de,) = [line for line in lines if line["task"] == "xrag_mono_de" and line["metric"] == "judged_accuracy"]
    assert (de["table"], de["value"], de["low"], de["n"]) == ("4", "41.23", "36.23", "1000")
    assert all(bool(line["value"]) != bool(line["reason"]) for line in lines)
    as_json = json.loads(render(found, "json"))
    assert sum(len(r["cells"]) for table in as_json for r in table["rows"]) == cells


def test_unknown_layouts_and_unreadable_results_are_errors(tmp_path: Path, run: Path) -> None:
    assert "xrag" in layout_names()
    with pytest.raises(ConfigError, match="no layout 'xrga'; did you mean 'xrag'"):
        layout_tables("xrga", [run])
    with pytest.raises(ConfigError, match="no format 'html'"):
        render([], "html")
    with pytest.raises(DataError, match="nowhere: no such file or folder"):
        layout_tables("xrag", [tmp_path / "nowhere"])
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match=r"no results_\*\.json in this folder"):
        layout_tables("xrag", [tmp_path / "empty"])
    (tmp_path / "x.json").write_text("{", encoding="utf-8")
    with pytest.raises(DataError, match=r"x\.json: not readable as JSON"):
        layout_tables("xrag", [tmp_path / "x.json"])
    (tmp_path / "x.json").write_text("[]", encoding="utf-8")
    with pytest.raises(DataError, match="not a result file of lm_eval"):
        layout_tables("xrag", [tmp_path / "x.json"])
    other = write(tmp_path / "results_9.json", {"click_norag": leaf(0.5)})
    with pytest.raises(DataError, match="no task of this paper is among the results"):
        layout_tables("xrag", [other])


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"rows": [{"model": "m", "values": [1.0]}]}, "1 values for 2 columns"),
        ({"rows": [{"model": "m", "values": [1.0, None]}]}, "'blank' does not say why"),
        ({"rows": [{"model": "m", "values": [1.0, 2.0], "condition": "x"}]}, "unknown condition 'x'"),
        ({"columns": [{"name": "a"}, {"name": "b", "mean_of": ["c"]}]}, "no column 'c' to average"),
    ],
)
def test_a_layout_is_checked_as_it_is_read(change: dict[str, Any], expected: str) -> None:
    block = {"id": "1", "title": "t", "digits": 1, "columns": [{"name": "a"}, {"name": "b"}], **change}
    with pytest.raises(ValueError, match=expected):
        LayoutTable.model_validate(block)


def test_the_command_prints_or_writes(run: Path, tmp_path: Path, programs: Programs) -> None:
    command = [programs / "mrag-eval", "report", str(run.parent), "--layout", "xrag"]
    out = tmp_path / "tables.csv"
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert printed.startswith("### Table 3: ")
    subprocess.run([*command, "--format", "csv", "-o", str(out)], check=True)
    assert out.read_text(encoding="utf-8").startswith(
        "table,row,from,column,task,metric,value,low,high,n,reason,state,differs\n"
    )
    wrong = subprocess.run([*command, "--format", "pdf"], capture_output=True, text=True, check=False)
    assert wrong.returncode == 2
    assert "--format: pdf is none of md, csv, json, latex" in wrong.stderr
