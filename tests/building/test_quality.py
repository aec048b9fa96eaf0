"""The quality report: properties of a set, by hand, and its difficulty, from runs of its tasks."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lm_eval
import pytest
from lm_eval.tasks import TaskManager
from lm_eval.utils import handle_non_serializable

from mrag_eval.building import build_qa, quality_tables
from mrag_eval.building.qa._qa_config import QaConfig
from mrag_eval.judging import Panel
from mrag_eval.platform import DataError
from mrag_eval.report import Cell, Table, render
from tests.building.qa_world import Paragraphs
from tests.building.scripted import ScriptedModel
from tests.building.test_territories import build as build_territories
from tests.tables import single_spaced
from tests.worlds.judges import ScriptedJudge, exact
from tests.worlds.small import ScriptedLM
from tests.worlds.xrag import row, rows, write

TASKS = Path(__file__).resolve().parents[2] / "tasks"


def table(tables: list[Table], name: str) -> Table:
    return next(t for t in tables if t.id == name)


def cells(found: Table, *labels: str) -> dict[str, Cell]:
    line = next(line for line in found.rows if line.labels == labels)
    return dict(zip(found.columns, line.cells, strict=True))


def values(found: Table, *labels: str) -> dict[str, float | None]:
    return {name: cell.value for name, cell in cells(found, *labels).items()}


def save(folder: Path, results: Any, model: str, date: str = "2026-01-01") -> Path:
    """Write result and sample files as the harness does."""
    folder.mkdir(parents=True, exist_ok=True)
    samples = results.pop("samples")
    results["config"]["model_args"] = {"model": model}
    for task, listed in samples.items():
        lines = (json.dumps(sample, default=handle_non_serializable) for sample in listed)
        (folder / f"samples_{task}_{date}.jsonl").write_text("".join(f"{line}\n" for line in lines), "utf-8")
    text = json.dumps(results, default=handle_non_serializable)
    (folder / f"results_{date}.json").write_text(text, "utf-8")
    return folder


def run(tasks: list[str], room: str, answer: Callable[[str], str], **metadata: Any) -> Any:
    manager = TaskManager(include_path=str(TASKS / room), include_defaults=False, metadata=metadata)
    return lm_eval.simple_evaluate(
        model=ScriptedLM(answer), tasks=tasks, task_manager=manager, bootstrap_iters=100, apply_chat_template=False
    )


# ------------------------------------------------------------ XRAG's layout


def test_types_as_in_table_2(tmp_path: Path) -> None:
    """Twelve questions per language and setting: three of each type; 0, 5 and 10 have a corrected answer."""
    tables = quality_tables(write(tmp_path))
    found = table(tables, "types: multilingual retrieval")
    assert found.columns == ("ar", "de", "es", "zh", "all")
    assert values(found, "number", "") == {"ar": 12, "de": 12, "es": 12, "zh": 12, "all": 48}
    assert values(found, "question", "multihop")["de"] == 3
    assert values(found, "answer", "corrected") == {"ar": 3, "de": 3, "es": 3, "zh": 3, "all": 12}
    # 0, 1, 2 in turn, as numbers or as digits
    assert values(found, "articles", "each holds part")["all"] == 16
    pairs = table(tables, "pairs: multilingual retrieval")
    assert values(pairs, "de")["en+de"] == 12
    assert "types: monolingual retrieval" in [t.id for t in tables]


def one_question(tmp_path: Path, **changes: Any) -> list[Table]:
    return quality_tables(write(tmp_path, [row("de", "mono", 0) | changes]))


def test_overlap_is_measured_within_one_language(tmp_path: Path) -> None:
    articles = ["The red fox ran over the hill.", "Nothing of note."] + ["Other words."] * 6
    tables = one_question(tmp_path, en_question="Which red fox ran over it?", en_answer="the fox", articles=articles)
    english = table(tables, "overlap: monolingual retrieval, English originals")
    # red, fox, ran, over, it: four of them occur; of the 4-grams, "red fox ran over" is the only one of three
    assert values(english, "words of the question in its sources")["en"] == pytest.approx(100 * 4 / 6)
    assert values(english, "4-grams of the question in its sources")["en"] == pytest.approx(100 / 3)
    assert values(english, "words of the answer in the sources")["en"] == 100.0
    # the German question has no German source, so there is nothing to compare
    assert "overlap: monolingual retrieval" not in [t.id for t in tables]
    lengths = table(tables, "lengths: monolingual retrieval, English originals")
    assert values(lengths, "question")["en"] == 6
    # 7 and 3 words
    assert values(lengths, "each source")["en"] == 5


def test_the_file_may_say_the_languages_of_its_articles(tmp_path: Path) -> None:
    tables = one_question(tmp_path, article_languages=["en", "de"] * 4, setting="multi")
    assert values(table(tables, "pairs: multilingual retrieval"), "de") == {"en+de": 1}


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> None:
    judge: Any = ScriptedJudge(exact)
    monkeypatch.setattr("mrag_eval.judging.build_panel", lambda block: Panel({"judge": judge}))


def knows(prompt: str) -> str:
    """Right for every town but one if it sees only the supporting articles; silent without articles."""
    shown = prompt.count("<text_")
    if not shown:
        return "<answer>None</answer>"
    town = next((t for t in ("Varga", "Port Ellis", "Tarnow", "Miravel", "Kestrel Bay", "Lindholm") if t in prompt), "")
    return f"<answer>{town if shown == 2 else 'Lindholm'}</answer>"


def test_difficulty_as_in_tables_3_to_5(tmp_path: Path, judged: None) -> None:
    folder = write(tmp_path / "set")
    leaves = ["xrag_mono_norag_en", "xrag_mono_oracle_en", "xrag_mono_en", "xrag_mono_de", "xrag_mono_es"]
    results = run(leaves, "xrag", knows, data={"path": str(folder)}, judge={"language_check": "none"})
    scores = {name: results["configs"][name]["scores"]["metrics"]["judged_accuracy"] for name in leaves}
    out = save(tmp_path / "out", results, "scripted")
    tables = quality_tables(folder, [out])
    third = table(tables, "difficulty")
    assert third.columns == ("no documents", "supporting documents", "all documents")
    english = cells(third, "mono en", "scripted")
    assert [english[name].value for name in third.columns] == [100 * scores[n]["value"] for n in leaves[:3]]
    assert english["no documents"].value == 0.0
    assert [english[name].n for name in third.columns] == [12, 12, 12]
    assert all(cell.low is not None and cell.high is not None for cell in english.values())
    assert cells(third, "mono de", "scripted")["no documents"].reason == "not run"
    fourth = table(tables, "difficulty by language: mono")
    line = cells(fourth, "all documents", "scripted")
    assert {name: line[name].value for name in ("en", "de", "es")} == {
        name: 100 * scores[f"xrag_mono_{name}"]["value"] for name in ("en", "de", "es")
    }
    # the mean leaves out the English originals; its interval comes from the sample files
    assert line["Avg."].value == pytest.approx(((line["de"].value or 0) + (line["es"].value or 0)) / 2)
    assert line["Avg."].n == 24
    assert line["Avg."].low is not None
    kinds = table(tables, "difficulty by q_type")
    assert kinds.columns == ("aggregation", "comparison", "multihop", "set")
    assert "difficulty by crossdoc_type" in [t.id for t in tables]
    # without the samples there is a mean but no interval
    for path in out.glob("samples_*"):
        path.unlink()
    bare = table(quality_tables(folder, [out]), "difficulty by language: mono")
    assert cells(bare, "all documents", "scripted")["Avg."].low is None


def test_runs_on_another_set_are_not_taken(tmp_path: Path, judged: None) -> None:
    folder = write(tmp_path / "set")
    results = run(["xrag_mono_de"], "xrag", knows, data={"path": str(folder)}, judge={"language_check": "none"})
    out = save(tmp_path / "out", results, "scripted")
    other = write(tmp_path / "other", rows()[1:])
    with pytest.raises(DataError, match="no run on the set in"):
        quality_tables(other, [out])
    with pytest.raises(DataError, match="no such file"):
        quality_tables(folder, [tmp_path / "nowhere"])


def test_the_three_formats(tmp_path: Path) -> None:
    tables = quality_tables(write(tmp_path))
    page = single_spaced(render(tables, "md"))
    assert "### Questions by type and language (multilingual retrieval)" in page
    assert "| question | multihop |" in page
    assert {t["id"] for t in json.loads(render(tables, "json"))} == {t.id for t in tables}
    assert render(tables, "csv").splitlines()[0].startswith("table,row,from,column")


# ------------------------------------------------------------ questions on documents, and territories


def test_questions_on_documents(test_data: Path, tmp_path: Path) -> None:
    world = Paragraphs(test_data / "xquad", 12, ("ar", "en"))
    model: Any = ScriptedModel(world.answers)
    config = QaConfig.model_validate({"per_document": 4, "seed": 2})
    built = build_qa(world.write(tmp_path / "xquad.jsonl"), tmp_path / "set", config, model, kind="bm25")
    data = {"path": str(built.folder), "corpus": "none"}
    retrieval = {"corpus": str(built.folder / "index"), "rerank": None}
    leaves = ["xlcost_own_norag", "xlcost_own_oracle", "xlcost_own"]
    results = run(leaves, "xlcost", lambda p: "1" if "passage 1" in p else "no", data=data, retrieval=retrieval)
    out = save(tmp_path / "out", results, "scripted")
    tables = quality_tables(built.folder, [out], metric="char3gram_recall")
    assert table(tables, "types: questions on documents").rows[0].cells[-1].value == built.rows
    pairs = table(tables, "pairs: questions on documents")
    assert {f"{row.labels[0]}->{lang}" for row in pairs.rows for lang in pairs.columns} == set(built.pairs)
    overlap = table(tables, "overlap: questions on documents")
    shared = cells(overlap, "words of the question in its sources")
    for line in overlap.rows:
        assert all(0 <= (cell.low or 0) <= (cell.high or 0) <= 100 for cell in line.cells)
    # XQuAD's questions were written on their paragraphs; half of them are in a different language from theirs
    assert 20 < (shared["en"].value or 0) < 95
    assert (shared["all"].n or 0) == sum(n for pair, n in built.pairs.items() if pair in ("ar->ar", "en->en"))
    third = table(tables, "difficulty")
    assert third.columns == ("no documents", "supporting documents", "retrieved (all)")
    pair_cells = {
        lang: cells(table(tables, "difficulty by pair"), "supporting documents", "scripted", lang)
        for lang in ("ar", "en")
    }
    shown = {f"{q}->{d}": cell for q, line in pair_cells.items() for d, cell in line.items()}
    assert {pair: cell.n for pair, cell in shown.items()} == built.pairs
    means = cells(table(tables, "difficulty across languages"), "supporting documents", "scripted")
    for name, pairs_ in (
        ("same language", ("ar->ar", "en->en")),
        ("cross-language", ("ar->en", "en->ar")),
        ("all pairs", tuple(built.pairs)),
    ):
        assert means[name].value == pytest.approx(sum(shown[pair].value or 0 for pair in pairs_) / len(pairs_))
        assert means[name].low is not None
    assert "difficulty by q_type" in [t.id for t in tables]


def test_territories(tmp_path: Path) -> None:
    built = build_territories(tmp_path)
    (types, lengths) = quality_tables(built.folder)
    assert values(types, "query", "control") == {"en": 2, "uk": 0, "zh-Hant": 0, "all": 2}
    assert values(types, "options", "3")["all"] == 2
    assert values(types, "controller", "known") == {"en": 1, "uk": 1, "zh-Hant": 1, "all": 3}
    assert [line.labels[0] for line in lengths.rows] == ["question"]
    leaves = ["bordirlines_no_ir_direct", "bordirlines_rel_langs_direct_own"]
    data, retrieval = {"path": str(built.folder)}, {"corpus": str(built.folder / "index")}
    results = [
        run(leaves[:1], "bordirlines", lambda _: "A)", data=data),
        run(leaves[1:], "bordirlines", lambda _: "B)", data=data, retrieval=retrieval),
    ]
    out = [save(tmp_path / f"out{i}", found, "scripted") for i, found in enumerate(results)]
    third = table(quality_tables(built.folder, out), "difficulty")
    # one of the two territories has a known controller, its first claimant
    assert values(third, "all", "scripted") == {"no documents": 100.0, "retrieved (rel_langs)": 0.0}


# ------------------------------------------------------------ unusable folders


def test_folders_without_a_set(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no set that `mrag-eval build` wrote"):
        quality_tables(tmp_path)
    (tmp_path / "xrag.test.jsonl").write_text("", encoding="utf-8")
    with pytest.raises(DataError, match="holds no question"):
        quality_tables(tmp_path)
    (tmp_path / "xrag.test.jsonl").write_text('{"id": 1}\n', encoding="utf-8")
    with pytest.raises(DataError, match="line 1"):
        quality_tables(tmp_path)
