"""BordIRlines' Table 4: the paper's own arithmetic, our cells, the computed row, seeds and scoring methods
kept apart.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from mrag_eval.config import Measurement
from mrag_eval.datasets import Label
from mrag_eval.metrics import t_interval
from mrag_eval.platform import MetricError
from mrag_eval.report import LayoutTable, Table, layout_tables, load_layout, render
from mrag_eval.report.labels._labelled import LabelledPair, LabelledRun, write_labelled
from tests.tables import single_spaced, told
from tests.worlds.measured import recorded, with_records

SCORES = {"rows": 720, "metrics": {}, "unscored": {}}


def concurrence(kb: float, refused: float = 0.0) -> dict[str, Any]:
    score = {"value": kb, "low": kb - 0.1, "high": kb + 0.1, "n": 161}
    return {
        "intervals": {"KB_CS": score, "countries_mean": {"value": 1.25, "low": 1.2, "high": 1.3, "n": 251}},
        "rates": {
            share: {"value": value, "low": 0.0, "high": 1.0, "n": 720}
            for share, value in (("read", 0.9 - refused), ("refused", refused), ("unread", 0.1))
        },
        "random": {"KB_CS": 0.4581, "countries_mean": 1.5},
    }


def write(
    path: Path,
    leaves: dict[str, tuple[str, float]],
    *,
    model: str = "hf",
    seed: int = 1234,
    by: str = "generation",
    rows: int = 720,
) -> Path:
    """Write a result file: task -> (IR mode, KB CS)."""
    configs = {
        task: {
            "retrieval": {"mode": mode},
            "data": {"benchmark": "bordirlines"},
            "output_type": "generate_until" if by == "generation" else "multiple_choice",
            "generation_kwargs": {"seed": seed} if by == "generation" else {},
            "scores": {"rows": rows, "metrics": {}, "unscored": {}, "concurrence": concurrence(kb, 0.05)},
        }
        for task, (mode, kb) in leaves.items()
    }
    run = {"model": model, "model_args": {"pretrained": "org/tiny"}, "torch_seed": seed}
    records = with_records(configs)
    content = {"model_name": "org/tiny", "date": float(seed), "configs": records, "results": {}, "config": run}
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def tables(*paths: Path) -> dict[str, Table]:
    return {table.id: table for table in layout_tables("bordirlines", paths)}


def own(table: Table, condition: str) -> dict[str, Any]:
    (row,) = [row for row in table.rows if row.labels == (condition, "org/tiny")]
    return dict(zip(table.columns, row.cells, strict=True))


def _table(number: str) -> LayoutTable:
    return next(table for table in load_layout("bordirlines").tables if table.id == number)


def test_the_papers_deltas_follow_from_its_columns() -> None:
    """Con - Non and its ratio to Non, within the rounding of their single decimal; swapped in the rows of Li et al."""
    checked = 0
    for row in _table("4").rows:
        # the latter is one of the errata
        if row.model == "RANDOM" or row.model.startswith("BLOOM 560M"):
            continue
        _, con, non, ratio, difference, *_ = (math.nan if v is None else v for v in row.values)
        if "Li et al." in row.model:
            ratio, difference = difference, ratio
        assert con - non == pytest.approx(difference, abs=0.11), row
        assert 100 * (con - non) / non == pytest.approx(ratio, abs=0.36), row
        checked += 1
    assert checked == 7 * 6 + 5


def test_our_figures_are_next_to_the_papers(tmp_path: Path) -> None:
    path = write(tmp_path / "results_1.json", {"bordirlines_qlang_direct_openai": ("qlang", 0.7512)})
    table = tables(path)["4"]
    cells = own(table, "qlang")
    assert (cells["KB CS"].value, cells["KB CS"].n) == (pytest.approx(75.12), 161)
    assert cells["# Country, mean"].value == 1.25
    shares = [cells[name].value for name in ("read", "refused", "not read")]
    assert shares == pytest.approx([85.0, 5.0, 10.0])
    assert cells["Con CS"].value is None
    assert "org/tiny, not run: no_ir; qlang+en; en_only; rel_langs; swap_docs" in table.notes
    (gpt,) = [row for row in table.rows if row.labels == ("qlang", "GPT-4o")]
    published = [81.4, 81.3, 72.3, 12.4, 8.9, 69.1, 76.9, 1.227, 0.429]
    assert [cell.value for cell in gpt.cells] == [*published, *[None] * 4]
    (random,) = [row for row in table.rows if row.labels == ("", "RANDOM")]
    assert told(random) == "computed, 720 questions"
    assert (random.cells[0].value, random.cells[7].value) == (pytest.approx(45.81), 1.5)
    text = single_spaced(render([table]))
    assert "1.227" in text
    assert "| RANDOM | paper, Table 4 | 43.5 |" in text
    assert "refused: no figure" not in text


def test_a_run_in_another_mode_does_not_fill_the_cell(tmp_path: Path) -> None:
    path = write(tmp_path / "results_1.json", {"bordirlines_qlang_direct_openai": ("all", 0.7)})
    ours = [told(row) for row in tables(path)["4"].rows if row.labels == ("qlang", "org/tiny")]
    assert ours == ["this run, other settings: retrieval.mode=all, not qlang"]


def test_a_run_with_all_documents_is_not_shown_as_one_with_the_relevant_ones(tmp_path: Path) -> None:
    """Results leave out data.documents if it has its default."""
    path = write(tmp_path / "results_1.json", {"bordirlines_qlang_direct_openai": ("qlang", 0.7512)})
    table = tables(path)["Figure 6"]
    assert own(table, "qlang, all")["KB CS"].value == pytest.approx(75.12)
    shown = {row.labels[0] for row in table.rows if row.labels[1] == "org/tiny"}
    assert shown == {"qlang, all"}
    (line,) = [note for note in table.notes if note.startswith("org/tiny, not run: ")]
    assert line.startswith("org/tiny, not run: qlang, relevant; qlang, not relevant; ")


def test_seeds_become_a_mean_with_a_t_interval(tmp_path: Path) -> None:
    """0.70, 0.72, 0.74: mean 0.72, deviation 0.02, t(2) = 4.302653, half-width 4.302653 x 0.02 / sqrt(3)."""
    task = "bordirlines_qlang_direct_openai"
    paths = [
        write(tmp_path / f"results_{seed}.json", {task: ("qlang", kb)}, seed=seed)
        for seed, kb in ((1, 0.70), (2, 0.72), (3, 0.74))
    ]
    cell = own(tables(*paths)["4"], "qlang")["KB CS"]
    half = 4.302653 * 0.02 / math.sqrt(3)
    assert cell.value == pytest.approx(72)
    assert (cell.low, cell.high) == (pytest.approx(72 - 100 * half, abs=1e-4), pytest.approx(72 + 100 * half, abs=1e-4))
    with pytest.raises(MetricError, match="two values or more"):
        t_interval([0.5])


def test_ways_of_scoring_are_never_mixed(tmp_path: Path) -> None:
    task = "bordirlines_no_ir_likelihood"
    likely = write(tmp_path / "results_1.json", {task: ("no_ir", 0.6)}, by="likelihood")
    assert "4 (greedy path)" not in tables(likely)
    assert own(tables(likely)["4 (likelihood)"], "no_ir")["KB CS"].value == pytest.approx(60)
    path = write(
        tmp_path / "results_2.json", {task: ("no_ir", 0.5)}, by="likelihood", model="hf-greedy-path", seed=2, rows=30
    )
    both = tables(likely, path)
    assert [told(row) for row in both["4 (greedy path)"].rows if row.labels == ("", "RANDOM")] == [
        "computed, 30 questions"
    ]
    assert own(both["4 (greedy path)"], "no_ir")["KB CS"].value == pytest.approx(50)
    assert own(both["4 (likelihood)"], "no_ir")["KB CS"].value == pytest.approx(60)
    # neither names the other's run, beneath its rows or in a line
    for name in ("4 (likelihood)", "4 (greedy path)"):
        assert len([row for row in both[name].rows if row.labels[-1] not in ("RANDOM", "not run")]) == 1
        assert not [line for line in both[name].notes if "another table" in line]


def write_citations(path: Path, date: float, cited: dict[str, int], ran: int = 720) -> Path:
    """Write the results of a citation run in rel_langs: language -> citations of documents in it."""
    rates = {"inclusion_mean": 0.5, "citation_mean": 0.5, "inclusion_pooled": 0.5, "citation_pooled": 0.5}
    tables = {code: {"language": code, **rates, "documents": 5, "citations": n} for code, n in cited.items()}
    config = {
        "retrieval": {"mode": "rel_langs", "k": 10},
        "data": {"benchmark": "bordirlines", "embedder": "openai"},
        "prompt": {"template": "territory_citation"},
        "scores": {
            "rows": 720,
            "metrics": {},
            "unscored": {},
            "citations": {"inline": {"by_language": tables, "by_query_language": {"en": tables}}},
            "languages": {"retrieved": {}, "preference": {"overall": {"ratio": {"value": date}}}},
        },
    }
    configs = {"bordirlines_rel_langs_citation_openai": config}
    records = with_records(configs, ran=ran, of=720)
    content = {"model_name": "org/tiny", "date": date, "configs": records, "results": {}}
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


FIGURES = ("Figure 4", "Figure 10", "Figures 15, 16")


def test_a_citation_run_of_a_part_of_the_rows_is_not_the_papers(tmp_path: Path) -> None:
    found = tables(write_citations(tmp_path / "results_1.json", 1.0, {"en": 3}, ran=2))
    for name in FIGURES:
        sources = {told(row) for row in found[name].rows if told(row).startswith("this run")}
        assert sources == {"this run, other settings: rows=2 of 720, not all"}, name


def test_labels_say_how_the_run_with_their_documents_differs(tmp_path: Path) -> None:
    write(tmp_path / "results_1.json", {"bordirlines_no_ir_direct": ("no_ir", 0.5)})
    label = Label(relevant=True, viewpoint="Neutral")
    pair = LabelledPair("Islet_en", "p1", "en", 1, label, (label, label))
    task = "bordirlines_qlang_direct_openai"
    for k, differs in ((10, ""), (3, "retrieval.depth=3, not 10; retrieval.k=3, not 10"), (None, "identity unknown")):
        made = None if k is None else recorded(task, {"retrieval": {"mode": "qlang", "k": k}})
        record = None if made is None else Measurement.from_dict(made, "here")
        run = LabelledRun(task, "qlang", "openai", "acme/reader", "zero-shot", (pair,), record)
        write_labelled(tmp_path, Path("samples_a.jsonl"), run)
        found = tables(tmp_path)
        sources = {told(row) for name in ("6", "7", "9", "10") for row in found[name].rows if "this run" in told(row)}
        # the paper does not say how it counts viewpoints
        said = f", other settings: {differs}" if differs else ""
        assert sources == {f"this run{said}", f"this run, our scheme{said}"}
        schemes = {row.labels[0]: "our scheme" in told(row) for row in found["9"].rows if "this run" in told(row)}
        assert {label: ", viewpoint" in label for label in schemes} == schemes


@pytest.mark.parametrize("filtered_first", [True, False])
def test_filtered_documents_take_no_place_of_all_documents(filtered_first: bool, tmp_path: Path) -> None:
    """As shipped: relevant at ranks 1 and 3 of 3. With data.documents=relevant these two are at ranks 1 and 2."""
    write(tmp_path / "results_1.json", {"bordirlines_no_ir_direct": ("no_ir", 0.5)})
    yes, no = Label(relevant=True, viewpoint="Neutral"), Label(relevant=False, viewpoint="Not relevant")
    task = "bordirlines_qlang_direct_openai"
    runs = []
    for documents, labels in (("all", (yes, no, yes)), ("relevant", (yes, yes))):
        data = {"benchmark": "bordirlines", "embedder": "openai", "documents": documents}
        record = Measurement.from_dict(recorded(task, {"retrieval": {"mode": "qlang"}, "data": data}), "here")
        pairs = tuple(
            LabelledPair("Islet_en", f"p{rank}", "en", rank, label, (label,)) for rank, label in enumerate(labels, 1)
        )
        runs.append(LabelledRun(task, "qlang", "openai", "acme/reader", "few-shot", pairs, record))
    for folder, run in zip("ab", reversed(runs) if filtered_first else runs, strict=True):
        write_labelled(tmp_path / folder, Path("samples_a.jsonl"), run)
    found = tables(tmp_path)
    (share,) = [row for row in found["10"].rows if told(row).startswith("this run")]
    assert (told(share), share.cells[1].value) == ("this run", pytest.approx(2 / 3))
    shares = {row.labels[0]: [cell.value for cell in row.cells[:4]] for row in found["Figures 8, 9"].rows}
    assert shares == {name: [100.0, 0.0, 100.0, None] for name in ("people (openai)", "acme/reader, few-shot (openai)")}


@pytest.mark.parametrize(
    ("mode", "changes"),
    [
        ("swap_docs", {}),
        ("qlang", {"data": {"flip": True}}),
        ("qlang", {"data": {"documents": "non_relevant"}}),
        ("qlang", {"retrieval": {"unanswerable": 0.5}}),
    ],
)
def test_ranks_are_those_of_the_own_question(mode: str, changes: dict[str, Any], tmp_path: Path) -> None:
    """One run shows the hits of its question, relevant at rank 1; the other shows others, relevant at rank 2."""
    write(tmp_path / "results_1.json", {"bordirlines_no_ir_direct": ("no_ir", 0.5)})
    yes, no = Label(relevant=True, viewpoint="Neutral"), Label(relevant=False, viewpoint="Not relevant")
    data = {"benchmark": "bordirlines", "embedder": "openai"}
    for name, blocks, labels in (
        ("qlang", {}, (yes, no)),
        (mode, changes, (no, yes)),
    ):
        task = f"bordirlines_{name}_direct_openai"
        given = {"retrieval": {"mode": name, **blocks.get("retrieval", {})}, "data": data | blocks.get("data", {})}
        pairs = tuple(
            LabelledPair("Islet_en", f"{name}{len(blocks)}p{rank}", "en", rank, label, (label,))
            for rank, label in enumerate(labels, 1)
        )
        record = Measurement.from_dict(recorded(task, given), "here")
        run = LabelledRun(task, name, "openai", "acme/reader", "few-shot", pairs, record)
        write_labelled(tmp_path / f"{name}{len(blocks)}", Path("samples_a.jsonl"), run)
    found = tables(tmp_path)
    shares = [row for row in found["10"].rows if told(row).startswith("this run")]
    assert [(row.labels, row.cells[1].value, row.cells[1].n) for row in shares] == [(("qlang (acme/reader)",), 0.5, 2)]
    ranks = [row for row in found["Figures 8, 9"].rows if told(row).startswith("this run")]
    assert [[(cell.value, cell.n) for cell in row.cells[:2]] for row in ranks] == [[(100.0, 1), (0.0, 1)]] * 2


@pytest.mark.parametrize("dates", [(1.0, 2.0), (2.0, 1.0)])
def test_documents_of_the_run_like_its_task_are_counted(dates: tuple[float, float], tmp_path: Path) -> None:
    for date, k in zip(dates, (10, 3), strict=True):
        task = "bordirlines_qlang_direct_openai"
        config = {"retrieval": {"mode": "qlang", "k": k}, "data": {"embedder": "openai"}, "scores": SCORES}
        content = {"model_name": "org/tiny", "date": date, "configs": with_records({task: config})}
        (tmp_path / f"results_{date}.json").write_text(json.dumps(content), "utf-8")
        passages = [{"id": f"p{n}", "lang": "en", "text": "x", "doc_id": f"d{n}"} for n in range(k)]
        rows = {"row": "Islet_en", "cell": {"query_lang": "en"}, "values": {}}
        line = {"doc": {"id": "Islet_en", "query": "?", "query_lang": "en", "passages": passages}, "rows": rows}
        (tmp_path / f"samples_{task}_{date}.jsonl").write_text(json.dumps(line) + "\n", "utf-8")
    ours = [row for row in tables(tmp_path)["2"].rows if told(row).startswith("this run")]
    assert {told(row) for row in ours} == {"this run"}
    assert ours[0].labels == ("English",)
    assert [cell.value for cell in ours[0].cells] == [1, 10, 10, 10]


def test_a_system_instruction_is_other_settings(tmp_path: Path) -> None:
    path = write(tmp_path / "results_1.json", {"bordirlines_qlang_direct_openai": ("qlang", 0.7)})
    content = json.loads(path.read_text("utf-8"))
    for config in content["configs"].values():
        config["measurement"]["setting"]["run"] = {"system_instruction": "You are a proud patriot."}
    path.write_text(json.dumps(content), "utf-8")
    ours = {told(row) for row in tables(path)["4"].rows if row.labels[-1] == "org/tiny"}
    assert ours == {"this run, other settings: run.system_instruction=You are a proud patriot., not set in the task"}


def test_a_later_run_with_other_settings_does_not_replace_one_with_the_papers(tmp_path: Path) -> None:
    found = tables(
        write_citations(tmp_path / "results_1.json", 1.0, {"en": 3, "ru": 1}),
        write_citations(tmp_path / "results_2.json", 2.0, {"en": 1}, ran=2),
    )
    (english,) = [row for row in found["Figure 10"].rows if row.labels == ("English (org/tiny)",)]
    assert (told(english), english.cells[2].value) == ("this run", 75.0)
    line = "org/tiny, bordirlines_rel_langs_citation_openai: a run with other settings is left out (results_2.json)"
    for name in FIGURES:
        assert line in found[name].notes, name
