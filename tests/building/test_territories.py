"""``build territories``: tables to questions and corpus, runs of the tasks, text from a model, wrong tables."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mrag_eval.building import build_territories
from mrag_eval.building.territories._territories import TerritoriesBuilt
from mrag_eval.building.territories._territory_tables import Wording, builtin_wording, fault_of
from mrag_eval.datasets import load_benchmark
from mrag_eval.platform import DataError
from tests.building.qa_world import records
from tests.building.scripted import ScriptedModel, failed
from tests.tables import single_spaced

TABLES: dict[str, list[dict[str, Any]]] = {
    "territories": [
        {"territory": "Varn Plateau", "claimants": "Ostland;Sudmark", "controller": "Ostland", "region": "East"},
        {"territory": "Gull/Möwe Rocks", "claimants": "Sudmark;Norrey;Ostland", "controller": "Unknown", "region": ""},
        {"territory": "Empty Quarter", "claimants": "Farland;Norrey", "controller": "", "region": ""},
    ],
    "claimants": [
        {"claimant": "Ostland", "language": "uk", "religion": "", "population": "100"},
        {"claimant": "Sudmark", "language": "zht", "religion": "", "population": ""},
        {"claimant": "Norrey", "language": "en", "religion": "", "population": ""},
        {"claimant": "Farland", "language": "sw", "religion": "", "population": ""},
    ],
    "names": [
        {"name": name, "language": lang, "native": native}
        for lang, names in {
            "uk": {"Varn Plateau": "Варнське плато", "Ostland": "Остланд", "Sudmark": "Судмарк"},
            "zh-Hant": {"Varn Plateau": "瓦恩高原", "Ostland": "奧斯蘭", "Sudmark": "蘇馬克", "Norrey": "諾里",
                        "Gull/Möwe Rocks": "海鷗岩"},
        }.items()
        for name, native in names.items()
    ],
    "passages": [
        {"subject": "Varn Plateau", "lang": "en", "title": "Varn", "text": "Ostland has governed it since 1931."},
        {"subject": "Varn Plateau", "lang": "uk", "title": "Варн", "text": "Плато належить Остланду з 1931 року."},
        {"subject": "Sudmark", "lang": "zht", "title": "蘇", "text": "蘇馬克的地圖把瓦恩高原畫在境內並要求歸還。"},
        {"subject": "Ostland", "lang": "en", "title": "Ostland", "text": "Ostland is a country of fishers."},
    ],
}  # fmt: skip


def write(folder: Path, change: Callable[[dict[str, list[dict[str, Any]]]], None] = lambda t: None) -> Path:
    """Write the tables as CSV and the passages as JSON Lines."""
    tables = json.loads(json.dumps(TABLES))
    change(tables)
    folder.mkdir(exist_ok=True)
    for name, rows in tables.items():
        if name == "passages":
            text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
            (folder / "passages.jsonl").write_text(text, encoding="utf-8")
            continue
        with (folder / f"{name}.csv").open("w", encoding="utf-8", newline="") as handle:
            writer = csv.DictWriter(handle, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    return folder


def build(folder: Path, model: Any = None, **change: Any) -> TerritoriesBuilt:
    return build_territories(write(folder / "tables", **change), folder / "out", model, kind="bm25")


def drops(built: TerritoriesBuilt) -> dict[str, dict[str, int]]:
    return {report.name: dict(report.dropped) for report in built.reports if report.dropped}


def test_questions_in_english_and_in_the_claimants_languages(tmp_path: Path) -> None:
    built = build(tmp_path)
    assert built.questions == {"en": 2, "uk": 1, "zh-Hant": 2}
    assert drops(built) == {"territories": {"no passages": 1}, "questions": {"no name in uk": 1}}
    loaded = load_benchmark({"benchmark": "bordirlines", "path": str(built.folder)})
    docs = {doc.id: doc for doc in loaded.docs}
    assert list(docs) == [
        "Varn_Plateau_en",
        "Gull/Möwe_Rocks_en",
        "Varn_Plateau_uk",
        "Varn_Plateau_zh-Hant",
        "Gull/Möwe_Rocks_zh-Hant",
    ]
    ukrainian = docs["Varn_Plateau_uk"]
    assert ukrainian.query == "Якій країні належить Варнське плато: A) Остланд чи B) Судмарк?"
    assert (ukrainian.choices, ukrainian.gold_choice) == (("Остланд", "Судмарк"), 0)
    assert ukrainian.relevant_langs == ("uk", "zh-Hant", "en")
    assert ukrainian.extra["candidates"] == ["Varn Plateau", "Ostland", "Sudmark"]
    rocks = docs["Gull/Möwe_Rocks_en"]
    assert rocks.gold_choice is None
    assert rocks.query.endswith("Gull/Möwe Rocks belong to: A) Sudmark or B) Norrey or C) Ostland?")
    assert rocks.extra["candidates"][:2] == ["Gull", "Möwe Rocks"]
    # the published counts are not mentioned
    assert loaded.notes == ("5 questions on 2 territories",)


def test_searched_but_missing_languages_are_listed(tmp_path: Path) -> None:
    built = build(tmp_path)
    assert built.passages == {"en": 2, "uk": 1, "zh-Hant": 1}
    # Varn and its two claimants in en, uk, zh-Hant (9); Gull, Möwe Rocks, Norrey in the same languages (9)
    assert built.wanted == 18
    assert len(built.missing) == 18 - 4
    assert ("Sudmark", "en") in built.missing
    assert ("Varn Plateau", "uk") not in built.missing
    page = single_spaced((built.folder / "datasheet.md").read_text(encoding="utf-8"))
    assert "- Sudmark (en)" in page
    assert "| territories | 3 | 2 | 1 | no passages 1 |" in page


@pytest.mark.parametrize("task", ["rel_langs_direct_own", "qlang_citation_m3", "swap_docs_direct_own"])
def test_the_tasks_run_on_it(tmp_path: Path, task: str) -> None:
    import lm_eval
    from lm_eval.tasks import TaskManager

    from tests.worlds.small import ScriptedLM

    built = build(tmp_path)
    metadata: Any = {"data": {"path": str(built.folder)}, "retrieval": {"corpus": str(built.folder / "index")}}
    if "citation" in task:
        # these two settings turn a task of published documents into one on your own documents
        metadata["data"]["embedder"] = None
        metadata["retrieval"]["candidates"] = "row"
    tasks = Path(__file__).resolve().parents[2] / "tasks" / "bordirlines"
    manager = TaskManager(include_path=str(tasks), include_defaults=False, metadata=metadata)
    name = f"bordirlines_{task}"
    lm = ScriptedLM(lambda prompt: "Chosen Option: A)" if "citation" in task else "A)")
    results = lm_eval.simple_evaluate(model=lm, tasks=[name], task_manager=manager, bootstrap_iters=100)
    scores = results["configs"][name]["scores"]
    assert scores["concurrence"]
    shown = {p["lang"] for s in results["samples"][name] for p in s["doc"]["passages"]}
    assert shown <= {"en", "uk", "zh-Hant"}
    if task == "rel_langs_direct_own":
        assert scores["rows"] == 5
        (row,) = [s for s in results["samples"][name] if s["doc"]["id"] == "Varn_Plateau_uk"]
        assert any(p["text"].startswith("Плато") for p in row["doc"]["passages"])


def test_a_model_supplies_missing_names_and_questions(tmp_path: Path) -> None:
    def script(prompt: str) -> Any:
        if "Question:" in prompt:
            return "<question>{territory} ni ya nchi gani: {options}?</question><between>au</between>"
        found = re.search(r"Name: (.+)\nLanguage: (.+)", prompt)
        if found is None:
            return "no"
        if found[1] == "Norrey" and found[2] == "Ukrainian":
            return failed()
        return f"<name>{found[1]}-{found[2][:2]}</name>"

    def with_swahili(tables: dict[str, list[dict[str, Any]]]) -> None:
        for lang in ("en", "sw"):
            page = {"subject": "Farland", "lang": lang, "title": "Farland", "text": "Farland ni nchi ya mbali sana."}
            tables["passages"].append(page)

    model: Any = ScriptedModel(script)
    built = build(tmp_path, model, change=with_swahili)
    assert built.questions == {"en": 3, "sw": 1, "uk": 1, "zh-Hant": 2}
    assert drops(built) == {"questions": {"call failed: timeout": 1}}
    docs = {d.id: d for d in load_benchmark({"benchmark": "bordirlines", "path": str(built.folder)}).docs}
    swahili = docs["Empty_Quarter_sw"]
    assert swahili.query == "Empty Quarter-Sw ni ya nchi gani: A) Farland-Sw au B) Norrey-Sw?"
    sheet = json.loads((built.folder / "datasheet.json").read_text(encoding="utf-8"))
    assert set(sheet["prompts_sha256"]) == {"territory_name", "territory_question"}
    # the model is not asked for anything that the tables contain
    assert not any("Varn Plateau" in prompt for prompt in model.asked)


def test_a_language_without_any_passage_is_not_asked(tmp_path: Path) -> None:
    """An index without the language would make every run that searches it fail."""
    built = build(tmp_path, change=lambda tables: tables["passages"].pop(1))
    assert built.questions == {"en": 2, "zh-Hant": 2}
    assert drops(built)["questions"] == {"no passages in uk": 2}


def test_names_that_become_equal_are_not_options(tmp_path: Path) -> None:
    model: Any = ScriptedModel(lambda prompt: "<name>Остланд</name>")
    built = build(tmp_path, model)
    assert drops(built)["questions"] == {"options alike": 1}
    (entry,) = records(built.folder / "steps" / "02_questions.dropped.jsonl")
    assert entry["detail"].startswith("Gull/Möwe Rocks in uk")


def edit(table: str, row: int, **cells: Any) -> Callable[[dict[str, list[dict[str, Any]]]], None]:
    return lambda tables: tables[table][row].update(cells)


def double(table: str) -> Callable[[dict[str, list[dict[str, Any]]]], None]:
    return lambda tables: tables[table].append(tables[table][0])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (edit("claimants", 0, language="xx"), "claimants.csv, row 1: unknown language 'xx'"),
        (edit("claimants", 1, language=""), "row 2: claimant 'Sudmark' has no language"),
        (double("claimants"), "row 5: claimant 'Ostland' is listed twice"),
        (edit("claimants", 0, claimant="Ost;land"), "contains ';'"),
        (double("territories"), "territories.csv, row 4: territory 'Varn Plateau' is listed twice"),
        (edit("territories", 0, claimants="Ostland;Sudmarkk"), "'Sudmarkk' is not in the table of claimants; did you"),
        (edit("territories", 0, claimants="Ostland"), "needs two different claimants or more"),
        (edit("territories", 0, claimants="Ostland;Ostland"), "needs two different claimants or more"),
        (edit("territories", 0, territory=""), "row 1: 'territory' is missing or empty"),
        (edit("names", 0, name="Warn"), "names.csv, row 1: 'Warn' is not a territory or claimant"),
        (double("names"), "'Varn Plateau' has two names in 'uk'"),
        (edit("passages", 0, lang="dothraki"), "passages.jsonl, line 1: unknown language 'dothraki'"),
        (edit("passages", 0, subject="Atlantis"), "line 1: 'Atlantis' is not a territory or claimant"),
        (edit("passages", 0, text=["a"]), "'text' must be text, found list"),
        (double("passages"), "line 5: page 'Varn' in 'en' is listed twice"),
        (lambda tables: tables["passages"].clear(), "holds no passage"),
        (
            lambda tables: tables.update(questions=[{"language": "uk", "template": "{territory}?", "or": "чи"}]),
            "questions.csv, row 1: the template must hold {options} once",
        ),
    ],
)
def test_wrong_tables_are_named_with_their_row(tmp_path: Path, change: Any, message: str) -> None:
    with pytest.raises(DataError) as caught:
        build(tmp_path, change=change)
    assert message in caught.value.message
    assert "\n" not in caught.value.message


def test_folders_that_lack_a_table(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such folder"):
        build_territories(tmp_path / "none", tmp_path / "out")
    (write(tmp_path / "tables") / "claimants.csv").unlink()
    with pytest.raises(DataError, match=r"no file claimants\.csv"):
        build_territories(tmp_path / "tables", tmp_path / "out")
    (write(tmp_path / "tables") / "names.tsv").write_text("name\tlanguage\tnative\n", encoding="utf-8")
    with pytest.raises(DataError, match="are both there"):
        build_territories(tmp_path / "tables", tmp_path / "out")


def test_a_set_without_a_question_says_why(tmp_path: Path) -> None:
    def elsewhere(tables: dict[str, list[dict[str, Any]]]) -> None:
        tables["passages"] = [{"subject": "Ostland", "lang": "fr", "title": "O", "text": "Un pays de paysans."}]

    with pytest.raises(DataError, match=r"no question is left \(no passages 3\)"):
        build(tmp_path, change=elsewhere)


def test_your_own_wording_of_the_questions(tmp_path: Path) -> None:
    own = [{"language": "en", "template": "Whose is {territory}? {options}.", "or": "/"}]
    built = build(tmp_path, change=lambda tables: tables.update(questions=own))
    docs = {d.id: d for d in load_benchmark({"benchmark": "bordirlines", "path": str(built.folder)}).docs}
    assert docs["Varn_Plateau_en"].query == "Whose is Varn Plateau? A) Ostland / B) Sudmark."


def test_every_built_in_question_has_its_places() -> None:
    for lang in ("ar", "el", "hi", "sv", "zh", "zh-Hant"):
        wording = builtin_wording(lang)
        assert wording is not None
        assert fault_of(wording.template) is None
        asked = wording.question("{options}", ["X", "Y"])
        assert f"A) X {wording.between} B) Y" in asked
        assert "{options}" in asked
    assert builtin_wording("zh-Hans") == builtin_wording("zh") != builtin_wording("zh-Hant")
    assert builtin_wording("sw") is None
    assert fault_of("{territory} {options} {options}") == "must hold {options} once"
    assert Wording("{options} {territory}", "or").question("T", ["a"]) == "A) a T"
