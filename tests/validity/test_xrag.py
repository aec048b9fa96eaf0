"""XRAG's tables and Figure 5 from planted replies: ten questions a set and language, cells counted by hand."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.programs import Programs
from tests.validity.everywhere import check_everywhere
from tests.validity.planted import evaluate, printed, served
from tests.worlds.xrag import ARTICLES, LANGS, row, rows, translations, write, write_translations

pytest.importorskip("lingua")
pytestmark = pytest.mark.slow

# A right and a wrong answer in each language. In Chinese both are far shorter than twenty characters.
RIGHT = {
    "en": "It is the first of the two towns.",
    "de": "Es ist die erste der beiden Städte.",
    "es": "Es la primera de las dos ciudades.",
    "zh": "是第一个城市",
    "ar": "إنها المدينة الأولى من المدينتين",
}
WRONG = {
    "en": "It is the second of the two towns.",
    "de": "Es ist die zweite der beiden Städte.",
    "es": "Es la segunda de las dos ciudades.",
    "zh": "是第二个城市",
    "ar": "إنها المدينة الثانية من المدينتين",
}
# Right to one judge of the three.
DISPUTED = "Wohl ist es die erste der beiden Städte."
JUDGES = ("ann", "ben", "cy")
ROWS = 10
# The set of a task -> how many of its ten questions are answered rightly; the rest is wrong.
PLANTED = {
    "xrag_mono_norag_en": 1,
    "xrag_mono_oracle_en": 9,
    "xrag_mono_en": 8,
    "xrag_mono_es": 5,
    "xrag_mono_ar": 3,
    **dict(zip((f"xrag_multi_{code}" for code in LANGS), (4, 3, 2, 1), strict=True)),
    **dict(zip((f"xrag_multi_eq_{code}" for code in LANGS), (5, 4, 3, 2), strict=True)),
    **dict(zip((f"xrag_multi_eqes_{code}" for code in LANGS), (6, 5, 4, 3), strict=True)),
    **dict(zip((f"xrag_multi_eqesed_{code}" for code in LANGS), (7, 6, 5, 4), strict=True)),
}
# Question by question. German: six right, two right in English, one disputed, one wrong.
# Chinese: one right in English, four right, five wrong.
ONE_BY_ONE = {
    "xrag_mono_de": [*[RIGHT["de"]] * 6, *[RIGHT["en"]] * 2, DISPUTED, WRONG["de"]],
    "xrag_mono_zh": [RIGHT["en"], *[RIGHT["zh"]] * 4, *[WRONG["zh"]] * 5],
}
# Table 2, multilingual: numbers of multi-hop questions in each set. One less has a corrected answer. The other
# questions are of the three other types in turn.
MULTI_HOP = dict(zip(LANGS, (1, 2, 3, 4), strict=True))
CONTROLS = {0: "xrag_multi_eq_", 1: "xrag_multi_eqes_", 4: "xrag_multi_eqesed_"}


def task_of(prompt: str, code: str, setting: str) -> str:
    """Return the task that a prompt belongs to; ``code`` and ``setting`` are those of its question."""
    articles = prompt.count("</text_")
    if articles < 8:
        return "xrag_mono_norag_en" if articles == 0 else "xrag_mono_oracle_en"
    if setting.startswith("multi-"):
        return CONTROLS[prompt.count("Translated.")] + setting.removeprefix("multi-")
    own = ARTICLES[code].split("}")[1].split("{")[0]
    return f"xrag_multi_{code}" if code != "en" and own in prompt else f"xrag_mono_{code}"


def questions() -> dict[str, tuple[str, str, int]]:
    """Return question -> its language, its set if it is in English, and its number."""
    out = {}
    for number in range(ROWS):
        for code in LANGS:
            mono, multi = row(code, "mono", number), row(code, "multi", number)
            out[mono["question"]] = (code, "", number)
            out[multi["en_question"]] = ("en", f"multi-{code}", number)
            out[mono["en_question"]] = ("en", "mono", number)
    return out


def reply(prompt: str) -> str:
    question = prompt.split("<question>\n")[1].split("\n</question>")[0]
    code, setting, number = KNOWN[question]
    task = task_of(prompt, code, setting)
    counted = RIGHT[code] if number < PLANTED.get(task, 0) else WRONG[code]
    answer = ONE_BY_ONE[task][number] if task in ONE_BY_ONE else counted
    return f"<answer>{answer}</answer>"


def correct(judge: str, answer: str) -> bool:
    """Grade by content, whatever the language; ``cy`` finds everything incorrect, so two of three decide."""
    return judge != "cy" and (answer in RIGHT.values() or (answer == DISPUTED and judge == "ann"))


def typed(made: dict[str, Any]) -> dict[str, Any]:
    """Return a row with the types that are planted; monolingual ones keep theirs."""
    if made["id"].startswith("mono"):
        return made
    number, most = int(made["id"].rpartition("-")[2]), MULTI_HOP[made["language"]]
    kind = "multihop" if number < most else ("aggregation", "comparison", "set")[number % 3]
    return {**made, "q_type": kind, "a_type": "corrected" if number < most - 1 else "original"}


KNOWN = questions()


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory, programs: Programs) -> Path:
    folder = tmp_path_factory.mktemp("xrag")
    kept = [typed(made) for made in rows() if int(made["id"].rpartition("-")[2]) < ROWS]
    write(folder, kept)
    write_translations(folder / "translations.jsonl", [t for t in translations() if t["id"] in {r["id"] for r in kept}])
    with served(reply, correct) as server:
        tasks = [*PLANTED, *ONE_BY_ONE]
        translated = str(folder / "translations.jsonl")
        return evaluate(programs, folder, server, tasks, JUDGES, path=str(folder), translations=translated)


@pytest.fixture(scope="module")
def tables(out: Path, programs: Programs) -> dict[str, str]:
    """Return what the command prints, by the number of the table or figure."""
    text = printed(programs, "report", out, "--layout", "xrag")
    parts = [part for part in text.split("### ") if part.strip()]
    return {part.partition(":")[0]: part for part in parts}


def ours(table: str, *labels: str) -> str:
    """Return the cells of a row of ours, as printed; the rows are not the paper's, which the row says."""
    start = f"| {' | '.join((*labels, 'planted', 'run otherwise'))}"
    (line,) = [line for line in table.splitlines() if line.startswith(start)]
    return line.removeprefix(start).partition(" | ")[2].removesuffix(" |")


def n(*values: str) -> str:
    return " | ".join(f"{value} (n=10)" for value in values)


def test_table_2(tables: dict[str, str]) -> None:
    """Questions 0 to 9. Monolingual, by number % 4: multi-hop 0, 4, 8; aggregation 1, 5, 9; comparison 2, 6; set 3, 7.
    Corrected 0 and 5.

    Multilingual, by number % 3: aggregation 3, 6, 9 (and 0); comparison 1, 4, 7; set 2, 5, 8; of these the first 1, 2,
    3, 4 are multi-hop. So aggregation loses 0 and in Arabic 3, comparison 1 from Spanish on, set 2 from Chinese on.
    """
    rows = [line.strip("| ").split(" | ") for line in tables["Table 2"].splitlines() if "| run otherwise" in line]
    assert {name: [int(n) for n in cells] for name, _, *cells in rows} == {
        "Number": [10] * 8,
        "Aggregation": [3, 3, 3, 3, 3, 3, 3, 2],
        "Comparison": [2, 2, 2, 2, 3, 2, 2, 2],
        "Multi-hop": [3, 3, 3, 3, 1, 2, 3, 4],
        "Set": [2, 2, 2, 2, 3, 3, 2, 2],
        "Original": [8, 8, 8, 8, 10, 9, 8, 7],
        "Corrected": [2, 2, 2, 2, 0, 1, 2, 3],
    }


def test_table_3(tables: dict[str, str]) -> None:
    """1 of 10 without articles, 9 of 10 with the two supporting ones."""
    assert ours(tables["Table 3"]) == n("10.00", "90.00")


def test_table_4(tables: dict[str, str]) -> None:
    """En 8, De 6 (two in English and one with a single vote are wrong), Es 5, Zh 4 (one in English), Ar 3 of 10;
    (60 + 50 + 40 + 30) / 4 = 45.
    """
    assert ours(tables["Table 4"]) == n("80.00", "60.00", "50.00", "40.00", "30.00") + " | 45.00"


def test_table_5(tables: dict[str, str]) -> None:
    """English baseline and cross-lingual score of each language in turn; (40 + 30 + 20 + 10) / 4 = 25."""
    cells = n("70.00", "40.00", "60.00", "30.00", "50.00", "20.00", "40.00", "10.00")
    assert ours(tables["Table 5"]) == f"{cells} | 25.00"


@pytest.mark.parametrize(
    ("condition", "cells", "mean"),
    [
        ("XRAG-MultiR", ("40.00", "30.00", "20.00", "10.00"), "25.00"),
        ("+EQ", ("50.00", "40.00", "30.00", "20.00"), "35.00"),
        ("+EQ, +ES", ("60.00", "50.00", "40.00", "30.00"), "45.00"),
        ("MonoRAG", ("70.00", "60.00", "50.00", "40.00"), "55.00"),
    ],
)
def test_tables_6_and_9_to_11(condition: str, cells: tuple[str, ...], mean: str, tables: dict[str, str]) -> None:
    assert ours(tables["Tables 6, 9, 10, 11"], condition) == f"{n(*cells)} | {mean}"


def test_figure_5_counts_short_answers(tables: dict[str, str]) -> None:
    """Two English answers of ten in German; one of ten in Chinese, where the other nine have six characters."""
    assert ours(tables["Figure 5"]) == n("20.00", "10.00")


def test_no_run_of_judged_answers_is_unscored(out: Path) -> None:
    """The prompt with articles offers no way to decline, which leaves no row without a score."""
    (results,) = out.rglob("results_*.json")
    found = json.loads(results.read_text("utf-8"))
    assert {task: found["results"][task]["unscored,none"] for task in (*PLANTED, *ONE_BY_ONE)} == dict.fromkeys(
        (*PLANTED, *ONE_BY_ONE), 0.0
    )
    there = {task for task in found["configs"] if "declined" not in found["configs"][task]["scores"]["metrics"]}
    assert there == {*PLANTED, *ONE_BY_ONE} - {"xrag_mono_norag_en"}


def test_a_run_of_one_question_is_below_the_table(tmp_path: Path, programs: Programs) -> None:
    """The only question is answered rightly: 100.00, which is not the paper's measurement."""
    write(tmp_path, rows())
    with served(reply, correct) as server:
        out = evaluate(programs, tmp_path, server, ["xrag_mono_es"], JUDGES, "--limit", "1", path=str(tmp_path))
    text = printed(programs, "report", out, "--layout", "xrag")
    told = r"run otherwise[^|]*"
    assert re.search(r"^- (\[\d+\]|all runs of ours differ:) rows=1 of ", text, re.MULTILINE)
    assert re.search(rf"\| planted \| {told} \| \| \| 100\.00 \(n=1\) \|", text)
    assert "| planted | this run |" not in text
    assert re.search(rf"\| Number \| {told} \| \| 1 \| \| \| \| \| \| \|", text)


def test_every_form_and_export_has_the_same_figures(out: Path, programs: Programs, tmp_path: Path) -> None:
    for form in ("csv", "json"):
        printed(programs, "report", out, "--layout", "xrag", "--format", form, "-o", tmp_path / f"tables.{form}")
    lines = list(csv.DictReader(io.StringIO((tmp_path / "tables.csv").read_text("utf-8"))))
    found = {
        (x["table"], x["task"], x["column"]): x["value"]
        for x in lines
        if x["from"].startswith(("this run", "run otherwise"))
    }
    assert found["Figure 5", "xrag_mono_zh", "Zh"] == "10.00"
    assert found["4", "xrag_mono_de", "De"] == "60.00"
    (figure,) = [t for t in json.loads((tmp_path / "tables.json").read_text("utf-8")) if t["id"] == "Figure 5"]
    assert [cell["value"] for cell in figure["rows"][-1]["cells"]] == pytest.approx([20.0, 10.0])
    expected = {
        ("xrag_mono_zh", "answered_in_english"): (0.1, "10.0", 10),
        ("xrag_mono_zh", "judged_accuracy"): (0.4, "40.0", 10),
        ("xrag_mono_zh", "judge_correct"): (0.5, "50.0", 10),
        ("xrag_mono_norag_en", "judged_accuracy"): (0.1, "10.0", 10),
        ("xrag_multi_eqesed_ar", "judged_accuracy"): (0.4, "40.0", 10),
    }
    check_everywhere(programs, out, tmp_path, expected)
