"""CORAL's margin over the strongest baseline, paired; and accuracy by the cost of the loop."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from mrag_eval.core._languages import CORAL_TIERS
from mrag_eval.report import Table, report_tables
from mrag_eval.report.tables._loop_tables import cost_table, language_table
from mrag_eval.report.tables._margins import margin_table
from tests.tables import told
from tests.worlds.measured import blocks_of, with_records

LABEL = "org/m · planner p, critic p"
DATE = "2026-11-22T00-00-00.000001"
MODES = {"coral": "coral", "norag": "no_ir", "monorag": "qlang", "multirag": "all"}


def write_run(folder: Path, answers: dict[str, Sequence[int]], model: str = "org/m", **agent: Any) -> Path:
    """Write a run's result file and samples: task -> 1 for every right answer."""
    folder.mkdir(parents=True)
    configs: dict[str, Any] = {}
    for task, right in answers.items():
        benchmark, mode, part = [*task.split("_"), "all"][:3]
        n = len(right)
        scores: dict[str, Any] = {"metrics": {"acc": {"value": sum(right) / n, "n": n}}, "unscored": {}, "rows": n}
        configs[task] = {"retrieval": {"mode": MODES[mode]}, "data": {"benchmark": benchmark}, "scores": scores}
        if mode != "norag":
            index = {"kind": "dense", "embedder": "Qwen/Qwen3-Embedding-8B", "passages": {"ko": 700_000}}
            configs[task]["index"] = {**index, "recipe": {"sources": {"ko": "wikimedia/wikipedia, 20251020.ko (a)"}}}
        if mode == "coral":
            settings = {"planner": "p", "critic": "p", "preset": "coral", "max_rounds": 3, "rewrite": True}
            settings |= {"corpora": "dynamic", "filter": "critic", "stop": {"when": "sufficient"}, "budget": {}}
            configs[task]["agent"] = settings | agent
            calls = 4.0 * n
            scores["loop"] = {
                "rows": n,
                "rounds": {"1": n - 1, "3": 1},
                "per_question": {"calls": calls, "tokens": 100 * calls, "valid": 1.0},
                "without_documents": {"value": 1 / n, "n": n},
                "languages": {"ko": {"chosen": {"ko": n, "en": 1}, "used": {"ko": 3}}},
            }
        lines = [
            {
                "doc_id": i,
                "rows": {"row": f"{part}-{i}", "cell": {"query_lang": "en"}, "values": {"acc": x}},
            }
            for i, x in enumerate(right)
        ]
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (folder / f"samples_{task}_{DATE}.jsonl").write_text(text, encoding="utf-8")
    content = {"model_name": model, "date": 1.0, "configs": with_records(configs), "results": {}}
    (folder / f"results_{DATE}.json").write_text(json.dumps(content), encoding="utf-8")
    return folder


def cells(table: Table | None, *labels: str) -> dict[str, Any]:
    assert table is not None
    (row,) = [r for r in table.rows if r.labels == labels]
    return dict(zip(table.columns, row.cells, strict=True))


@pytest.fixture
def click(tmp_path: Path) -> Path:
    """CLIcK, 16 questions: CORAL gets all right, multiRAG half, Non-RAG none."""
    rows = {"coral": [1, 1], "multirag": [1, 0], "norag": [0, 0]}
    return write_run(tmp_path / "click", {f"click_{mode}": 8 * right for mode, right in rows.items()})


def test_the_margin_is_over_the_strongest_baseline_and_paired(click: Path) -> None:
    table = margin_table([click])
    found = cells(table, LABEL)["CLIcK"]
    # 16 of 16 against 8 of 16: 50 points, no question lost
    assert found.value == pytest.approx(50.0)
    assert found.n == 16
    assert found.low is not None
    assert 0 < found.low < 50 < found.high
    assert table is not None
    # 8 of 16 pairs changed, all one way: 2 × 0.5^8 = .0078 given that 8 changed, .0050 over all outcomes
    assert any(note.startswith(f"{LABEL}, CLIcK: against multiRAG, 16 pairs, p .0050") for note in table.notes)
    assert cells(table, LABEL)["low"].value is None


def test_a_tier_is_a_mean_over_languages(tmp_path: Path) -> None:
    """Low tier: am gains 1 of 1, the others nothing of 4 each: (100 + 0 + 0 + 0 + 0) / 5 = 20 points, not 1 of 17."""
    answers: dict[str, Sequence[int]] = {}
    for code in CORAL_TIERS["low"]:
        answers[f"blend_coral_{code}"] = [1] if code == "am" else [1, 0, 0, 1]
        answers[f"blend_monorag_{code}"] = [0] if code == "am" else [1, 0, 1, 0]
    table = margin_table([write_run(tmp_path / "blend", answers)])
    assert cells(table, LABEL)["low"].value == pytest.approx(20.0)
    assert cells(table, LABEL)["low"].n == 17
    assert cells(table, LABEL)["su"].value == pytest.approx(0.0)
    assert cells(table, LABEL)["all"].value is None


def test_a_margin_of_nothing_is_not_certain(tmp_path: Path) -> None:
    tasks = (f"blend_{mode}_{code}" for mode in ("coral", "monorag") for code in CORAL_TIERS["low"])
    table = margin_table([write_run(tmp_path / "blend", dict.fromkeys(tasks, (1, 0, 0, 1)))])
    found = cells(table, LABEL)["low"]
    assert (found.value, found.n) == (0.0, 20)
    # four equal rows in the middle of the range are worth as many of 0 and 1 as have Wilson's limits of no spread, from
    # .5 down to .5 * 4 / (4 + z^2); then five tasks of so many are one of five times as many
    square = 1.959964**2
    worth = 8 * (2 + square) / square
    reach = 100 * (square / (5 * worth + square)) ** 0.5
    assert (found.low, found.high) == pytest.approx((-reach, reach), abs=1e-4)


def test_an_interval_goes_no_further_than_a_difference_can(tmp_path: Path) -> None:
    answers = {"blend_coral_su": [1, 1, 1, 0], "blend_norag_su": [0, 0, 1, 1]}
    cell = cells(margin_table([write_run(tmp_path / "a", answers)]), LABEL)["su"]
    assert cell.value == pytest.approx(25.0)
    assert cell.low is not None
    assert -100 <= cell.low < cell.high <= 100


def test_baselines_on_other_rows_are_no_baselines(tmp_path: Path) -> None:
    run = write_run(
        tmp_path / "a", {"blend_coral_su": [1, 1, 1], "blend_monorag_su": [0, 0], "blend_norag_su": [1, 0, 0]}
    )
    table = margin_table([run])
    assert table is not None
    assert any("su: against Non-RAG, 3 pairs" in note for note in table.notes)
    assert margin_table([write_run(tmp_path / "b", {"blend_coral_su": [1]})]) is None


def test_runs_that_differ_in_the_same_way_have_a_margin_labelled_so(tmp_path: Path) -> None:
    """Another embedder in all runs that search; of runs that differ in another way there is no margin."""
    answers = {"click_coral": [1, 1, 1, 1], "click_multirag": [1, 1, 0, 0], "click_norag": [1, 0, 0, 0]}
    (path,) = write_run(tmp_path / "a", answers).glob("results_*.json")

    def with_embedder(*tasks: str) -> Table | None:
        content = json.loads(path.read_text("utf-8"))
        for task in tasks:
            content["configs"][task]["measurement"]["data"]["index"]["embedder"] = "intfloat/e5"
        (tmp_path / "b").mkdir(exist_ok=True)
        for file in path.parent.iterdir():
            (tmp_path / "b" / file.name).write_bytes(file.read_bytes())
        (tmp_path / "b" / path.name).write_text(json.dumps(content), "utf-8")
        return margin_table([tmp_path / "b"])

    as_shipped, alike = with_embedder(), with_embedder("click_coral", "click_multirag")
    for table in (as_shipped, alike):
        assert cells(table, LABEL)["CLIcK"].value == pytest.approx(50.0)
    assert as_shipped is not None
    assert alike is not None
    assert told(as_shipped.rows[0]) == "this run"
    assert told(alike.rows[0]).startswith("this run, other settings: ")
    assert "e5" in told(alike.rows[0])
    # multiRAG with the paper's embedder is no baseline of such a CORAL; Non-RAG has none
    apart = with_embedder("click_coral")
    assert cells(apart, LABEL)["CLIcK"].value == pytest.approx(75.0)
    assert apart is not None
    assert any("against Non-RAG" in note for note in apart.notes)


def test_models_stay_distinct(tmp_path: Path) -> None:
    a = write_run(tmp_path / "a", {"blend_coral_su": [1, 1], "blend_norag_su": [0, 0]}, "org/a")
    b = write_run(tmp_path / "b", {"blend_coral_su": [1, 0], "blend_norag_su": [1, 0]}, "org/b")
    table = margin_table([a, b])
    assert cells(table, "org/a · planner p, critic p")["su"].value == 100.0
    assert cells(table, "org/b · planner p, critic p")["su"].value == 0.0


def test_cost_by_setting_the_cheapest_first(tmp_path: Path) -> None:
    dear = write_run(tmp_path / "a", {"blend_coral_ko": [1, 1, 1, 0], "blend_coral_fa": [1, 1]})
    cheap = write_run(tmp_path / "b", {"blend_coral_ko": [1, 0]}, budget={"calls_per_question": 8})
    table = cost_table([dear, cheap])
    assert table is not None
    assert [r.labels[2].partition("; ")[2] for r in table.rows] == [
        "coral; at most 3 rounds; stop sufficient; calls per question 8",
        "coral; at most 3 rounds; stop sufficient",
    ]
    first, second = (dict(zip(table.columns, row.cells, strict=True)) for row in table.rows)
    assert first["accuracy"].value == 50.0
    # 5 of 6; calls (16 × 4 + 8 × 2) / 6; rounds (3 + 3 + 1 + 3) / 6; without documents (1 + 1) / 6
    assert second["accuracy"].value == pytest.approx(500 / 6)
    assert second["accuracy"].n == 6
    assert second["calls a question"].value == pytest.approx(80 / 6)
    assert second["rounds"].value == pytest.approx(10 / 6)
    assert second["without documents"].value == pytest.approx(200 / 6)


@pytest.mark.parametrize(
    ("changed", "name"),
    [
        ({"max_corpora": 1}, "agent.max_corpora 1"),
        ({"k": 3}, "agent.k 3"),
        ({"min_score": 0}, "agent.min_score 0"),
        ({"weights": {"relevance": 2.0}}, "agent.weights.relevance 2"),
        ({"fallback": "best_scored"}, "agent.fallback best_scored"),
        ({"rewrite": False}, "agent.rewrite False"),
        ({"filter": "none"}, "agent.filter none"),
        ({"corpora": "own"}, "agent.corpora own"),
        ({"prompts": {"plan": "/mine.jinja"}}, "agent.prompts.plan /mine.jinja"),
        ({"pool": ["en", "ko"]}, "agent.pool en ko"),
    ],
)
def test_two_loops_with_different_settings_have_two_rows(changed: dict[str, Any], name: str, tmp_path: Path) -> None:
    usual = write_run(tmp_path / "a", {"click_coral": [1, 1, 1, 0]})
    other = write_run(tmp_path / "b", {"click_coral": [1, 0, 0, 0]}, **changed)
    table = cost_table([usual, other])
    assert table is not None
    found = {row.labels[2].split("; ")[-1]: row.cells[0].value for row in table.rows}
    assert len(found) == 2
    assert found[name] == 25.0


def changed_records(run: Path, **roles: Any) -> Path:
    """Write the records of a run again, with entries of a role."""
    (file,) = run.glob("results_*")
    content = json.loads(file.read_text("utf-8"))
    content["configs"] = with_records({t: blocks_of(c) for t, c in content["configs"].items()}, **roles)
    file.write_text(json.dumps(content), "utf-8")
    return run


def test_a_loop_names_the_settings_that_are_not_the_papers(tmp_path: Path) -> None:
    usual = write_run(tmp_path / "a", {"click_coral": [1, 1, 1, 0]})
    other = write_run(tmp_path / "b", {"click_coral": [1, 0]}, max_corpora=1, max_rounds=5)
    for table in (cost_table([usual, other]), language_table([usual, other])):
        assert table is not None
        sources = {told(row).replace(", n=5", "").replace(", n=3", "").replace(", n=6", "") for row in table.rows}
        # the paper gives no highest number of rounds
        assert sources == {"this run", "this run, other settings: agent.max_corpora=1, not 3"}


def test_an_alias_that_names_another_model_loses_no_run(tmp_path: Path) -> None:
    runs = []
    for name, model in (("a", "Qwen3-235B"), ("b", "GPT-OSS-120B")):
        spec = {"model": "openai-chat-completions", "args": {"model": model}}
        run = write_run(tmp_path / name, {"click_coral": [1, 0]}, planner="agents", critic="agents")
        runs.append(changed_records(run, instrument={"planner": spec, "critic": spec}))
    table = cost_table(runs)
    assert table is not None
    assert {row.labels[2].partition(";")[0] for row in table.rows} == {
        "planner Qwen3-235B, critic Qwen3-235B",
        "planner GPT-OSS-120B, critic GPT-OSS-120B",
    }
    assert not [note for note in table.notes if "left out" in note]


def test_other_questions_are_another_loop(tmp_path: Path) -> None:
    usual = write_run(tmp_path / "a", {"blend_coral_ko": [1, 1]})
    other = changed_records(write_run(tmp_path / "b", {"blend_coral_ko": [1, 0]}), setting={"data": {"country": "X"}})
    table = cost_table([usual, other])
    assert table is not None
    assert {told(row): row.cells[0].value for row in table.rows} == {
        "this run": 100.0,
        "this run, other settings: data.country=X, not set in the task": 50.0,
    }


def test_a_later_run_of_one_task_leaves_the_other_tasks_of_an_earlier_one(tmp_path: Path) -> None:
    """Five of eight questions: three of four in the task that was run once, two of four in the later run."""
    a = write_run(tmp_path / "a", {"blend_coral_ko": [1, 1, 1, 1], "blend_coral_fa": [1, 1, 1, 0]})
    b = write_run(tmp_path / "b", {"blend_coral_ko": [1, 1, 0, 0]})
    (result,) = b.glob("results_*")
    result.write_text(result.read_text("utf-8").replace('"date": 1.0', '"date": 2.0'), "utf-8")
    table = cost_table([a, b])
    assert table is not None
    (row,) = table.rows
    assert (row.cells[0].value, row.cells[0].n) == (62.5, 8)
    assert table.notes[-1].startswith("org/m, blend_coral_ko: an earlier run with the same settings is left out")


def test_languages_chosen_against_languages_shown(tmp_path: Path) -> None:
    """CORAL, Figure 3; two tasks with one source language share a row, and a second model adds nothing."""
    answers = {"blend_coral_ko": [1, 1], "blend_coral_fa": [1, 1, 0, 0]}
    runs = [write_run(tmp_path / name, answers, f"org/{name}") for name in ("a", "b")]
    table = language_table(runs)
    assert table is not None
    assert table.columns == ("en", "ko")
    chosen, used = table.rows
    assert (chosen.labels[:2], chosen.labels[3], used.labels[3]) == (
        ("blend", "ko"),
        "corpora chosen",
        "documents shown",
    )
    # chosen: ko 2 + 4, en 1 + 1; shown: ko 3 + 3
    assert [cell.value for cell in chosen.cells] == pytest.approx([25.0, 75.0])
    assert told(chosen) == "this run, n=8"
    assert [cell.value for cell in used.cells] == pytest.approx([0.0, 100.0])


def test_they_are_below_the_papers_tables(click: Path) -> None:
    found = report_tables("coral", [click])
    assert [t.id for t in found][-3:] == ["margins", "cost", "languages"]
    for file in click.glob("samples_*"):
        file.unlink()
    assert "margins" not in [t.id for t in report_tables("coral", [click])]


@pytest.mark.parametrize("part", ["samples 0 7", "limit 2"])
def test_loops_over_other_rows_have_two_rows(part: str, tmp_path: Path) -> None:
    usual = write_run(tmp_path / "a", {"click_coral": [1, 1, 1, 0]})
    other = write_run(tmp_path / "b", {"click_coral": [1, 0]})
    (file,) = other.glob("results_*")
    content = json.loads(file.read_text("utf-8"))
    if part.startswith("limit"):
        content["config"] = {"limit": 2}
    else:
        content["configs"]["click_coral"]["measurement"]["setting"]["run"] = {"samples": [0, 7]}
    file.write_text(json.dumps(content), "utf-8")
    table = cost_table([usual, other])
    assert table is not None
    found = {row.labels[2].rpartition("; ")[2]: row.cells[0].value for row in table.rows}
    assert found == {f"{part.split()[0]} not set": 75.0, part: 50.0}
